"""Ctrl-C once: finish the step under way and say how it stands; twice: leave at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from wlctl.cli.options import Session


@contextmanager
def patience(session: Session, what: str) -> Iterator[Callable[[], bool]]:
    """Give the block a question to ask before each step: whether to go on.

    The second Ctrl-C raises KeyboardInterrupt as ever; the next command finishes what it cut.

    Args:
        session: Is told of the first one.
        what: What is finished first, e.g. `what is under way on the nodes`.
    """
    asked = threading.Event()

    def once(_signal: int, _frame: FrameType | None) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)
        session.note(f"finishing {what}; Ctrl-C again leaves at once")

    def go_on() -> bool:
        return not asked.is_set()

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # ignored, as under nohup, or somebody else's
        yield go_on
        return
    signal.signal(signal.SIGINT, once)
    try:
        yield go_on
    finally:
        signal.signal(signal.SIGINT, before)
