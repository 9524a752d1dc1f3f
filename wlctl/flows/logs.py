"""What a copy has printed: the end of it, or what it goes on to print."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

from wlctl.errors import NoOutput, Unreachable, UsageError
from wlctl.flows.nodes import check_placed_there
from wlctl.flows.runtime import Runtime
from wlctl.ledger import instances, nodes
from wlctl.model.actions import LogTail, Refused
from wlctl.model.instance import Instance

POLL_S = 0.25
POLL_MAX_S = 2.0
GROWTH = 1.5

CONNECTION_S = 120.0
"""So long is one connection used: all that a command does on one is bounded."""


NEWEST = 0
"""The run that was launched last, by its node's word: a supervisor may have begun it by itself."""


def run_of(
    rt: Runtime, instance: Instance, *, generation: int | None = None, previous: bool = False
) -> int:
    """Say which run's output is meant: `NEWEST`, the one before, or the one of that number.

    Which one is before the newest its node is asked: a supervisor may have begun that by itself.

    Raises:
        NoOutput: It was never started, or only once.
        UsageError: Two are asked for.
        Unreachable: Its node would have to say it, and does not answer.
    """
    if previous and generation is not None:
        raise UsageError("--previous and --generation name two runs", hint="leave one out")
    if instance.generation == 0:
        raise NoOutput(f"{instance.name} never ran, so there is no output")
    if not previous:
        return NEWEST if generation is None else generation
    newest = tail(rt, instance, NEWEST, lines=0).generation
    if newest == 1:
        raise NoOutput(f"{instance.name} ran only once, so there is no run before")
    return newest - 1


def logs(rt: Runtime, word: str, *, generation: int | None = None, lines: int) -> LogTail:
    """Fetch the end of what a copy has printed.

    Args:
        generation: Which run; None for the newest.

    Raises:
        NoOutput: It never ran, or the node no longer has that output.
        UnknownName, AmbiguousName: `word` means none, or more than one.
        Unreachable: The node does not answer.
    """
    with rt.ledger.read() as tx:
        instance = instances.find(tx, word)
    return tail(rt, instance, run_of(rt, instance, generation=generation), lines=lines)


def tail(rt: Runtime, instance: Instance, run: int, *, lines: int) -> LogTail:
    """Fetch the end of what one run has printed; see `logs`."""
    return next(_pieces(rt, instance, run, lines=lines))


def follow(
    rt: Runtime,
    instance: Instance,
    run: int,
    *,
    lines: int,
    go_on: Callable[[], bool] = lambda: True,
) -> Iterator[str]:
    """Yield the end of what one run has printed and then every line more, until the run is over.

    A node that does not answer for a while is asked again where it was left. Its output is bounded
    there: of a burst that is larger than that, lines in between may be lost.

    Args:
        go_on: Answers False once nobody wants more.
    """
    for piece in _pieces(rt, instance, run, lines=lines):
        yield from piece.text.splitlines()
        is_all = piece.is_over and piece.next_byte >= piece.size_bytes
        if is_all or not go_on():
            return


def _pieces(rt: Runtime, instance: Instance, run: int, *, lines: int) -> Iterator[LogTail]:
    """Yield the end of the output, then what came after it, for ever."""
    with rt.ledger.read() as tx:
        node = nodes.get(tx, instance.node)
    check_placed_there(node, instance.created_at_ms)
    after: int | None = None
    pause_s = POLL_S
    while True:
        began_s = rt.elapsed_s()
        with ExitStack() as ways:
            try:
                session = ways.enter_context(rt.connect(node.address))
                while rt.elapsed_s() - began_s < CONNECTION_S:
                    found = session.logs(
                        rt.ledger.installation,
                        instance.id,
                        generation=run,
                        lines=lines,
                        after=after,
                    )
                    if isinstance(found, Refused):
                        raise NoOutput(
                            f"{node.name} has no output: {found.detail}",
                            hint=f"`wlctl history {instance.name}` lists its runs",
                        )
                    run = found.generation
                    after = found.next_byte
                    yield found
                    if found.text:
                        pause_s = POLL_S
                    if found.next_byte >= found.size_bytes:
                        rt.sleep(pause_s)
                        pause_s = min(POLL_MAX_S, pause_s * GROWTH)
            except Unreachable:
                if after is None:
                    raise
        rt.sleep(POLL_MAX_S)
