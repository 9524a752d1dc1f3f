"""Does one thing for many nodes at once, so that no slow one delays the others."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from queue import Empty, SimpleQueue
from typing import NoReturn, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

WIDTH = 16
"""Between 16 and 48 nothing is gained on two cores; 8 were a tenth slower, 4 half as fast."""

PATIENCE_S = 0.5
"""What takes longer than this is waiting for a node, not for us, and the next one may begin."""

WIDTH_MAX = 128
"""So many at most, the slow ones included: each is a connection and two threads."""

LOOK_UP_S = 0.2
"""An interrupt that arrives just before a wait does not end the wait: so none is longer."""


def each(
    items: Sequence[Item],
    work: Callable[[Item], Result],
    *,
    width: int = WIDTH,
    width_max: int = WIDTH_MAX,
    patience_s: float = PATIENCE_S,
) -> Iterator[tuple[int, Result]]:
    """Yield the position of each item and what `work` made of it, as they are done.

    When whoever reads this stops, or is interrupted, nothing more is begun, and what is under way
    is not waited for: its threads end with the process at the latest.

    Args:
        work: Raises only what is to end all: what may fail for one is a result.
        width: How many may be at work at once, those not counted that are slow.
        patience_s: After which time one counts as slow.
    """
    done: SimpleQueue[tuple[int, Callable[[], Result]]] = SimpleQueue()
    began_at_s: dict[int, float] = {}

    def run(position: int) -> None:
        try:
            result = work(items[position])
        except BaseException as failure:  # noqa: BLE001 - raised again where it is read
            done.put((position, partial(_raise, failure)))
        else:
            done.put((position, lambda: result))

    following = 0
    while following < len(items) or began_at_s:
        now_s = time.monotonic()
        quick = [at_s for at_s in began_at_s.values() if now_s - at_s < patience_s]
        if following < len(items) and len(quick) < width and len(began_at_s) < width_max:
            began_at_s[following] = now_s
            threading.Thread(target=run, args=(following,), daemon=True).start()
            following += 1
            continue
        some_slow_at_s = min(quick, default=now_s) + patience_s
        try:
            wait_s = some_slow_at_s - now_s if following < len(items) else LOOK_UP_S
            position, outcome = done.get(timeout=min(max(0.001, wait_s), LOOK_UP_S))
        except Empty:
            continue
        del began_at_s[position]
        yield position, outcome()


def _raise(failure: BaseException) -> NoReturn:
    raise failure
