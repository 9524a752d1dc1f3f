"""How far long work is: shown on a terminal, silent everywhere else."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from wlctl.cli.escape import visible
from wlctl.cli.options import Session

Advance = Callable[[int], None]
"""Says that so much more of the work is done."""


@contextmanager
def progress(session: Session, what: str, total: int | None = None) -> Iterator[Advance]:
    """Show how far `what` is while the block runs, and leave nothing behind.

    Args:
        session: Says whether somebody watches.
        what: A few words, e.g. `probing nodes`.
        total: Of what is counted; None when nobody knows.
    """
    if not session.streams.err_is_terminal or os.environ.get("TERM", "dumb") == "dumb":
        yield lambda _count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

    console = Console(
        file=session.streams.err,
        no_color=session.settings.no_color,
        markup=False,
        emoji=False,
        highlight=False,
    )
    columns = [SpinnerColumn("line"), TextColumn("{task.description}", markup=False)]
    if total is not None:
        columns += [BarColumn(), MofNCompleteColumn()]
    with Progress(*columns, console=console, transient=True) as bars:
        task = bars.add_task(visible(what), total=total)
        yield lambda count: bars.advance(task, count)
