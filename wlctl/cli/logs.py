"""`wlctl logs`: what a copy has printed, or goes on to print."""

from typing import Annotated

import typer

from wlctl.cli import render, targets
from wlctl.cli.options import Output, Session, session_of
from wlctl.cli.patience import patience
from wlctl.flows import logs as flow
from wlctl.model.event import Json
from wlctl.model.instance import Instance

READABLE = (Output.TABLE, Output.WIDE)


def logs(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Name, id, or beginning of an id.")],
    tail: Annotated[int, typer.Option(min=1, max=10_000, help="So many lines.")] = 100,
    generation: Annotated[
        int | None, typer.Option(min=1, help="Which run of it; else the newest.")
    ] = None,
    previous: Annotated[
        bool, typer.Option("--previous", help="The run before the newest.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on with what it prints from now on.")
    ] = False,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print it as it is, control characters and all.")
    ] = False,
) -> None:
    """Print the end of what a copy wrote to its standard output and error.

    --follow ends when the run does, or with Ctrl-C. Also of a copy that was unloaded, as long as
    its node keeps the output: seven days.
    """
    session = session_of(ctx)
    (instance,) = targets.find(
        session, [name], workload="", node="", labels=None, everything=False, gone=True
    )
    run = flow.run_of(session.runtime, instance, generation=generation, previous=previous)
    if follow:
        _follow(session, instance, run, tail=tail, raw=raw)
        return
    found = flow.tail(session.runtime, instance, run, lines=tail)
    lines = found.text.splitlines()
    if raw and session.output in READABLE:
        session.streams.data("".join(f"{line}\n" for line in lines))
        return
    value: dict[str, Json] = {
        "generation": found.generation,
        "size_bytes": found.size_bytes,
        "over": found.is_over,
        "lines": list(lines),
    }
    render.document(session, "wlctl.logs/1", value, lines)


def _follow(session: Session, instance: Instance, run: int, *, tail: int, raw: bool) -> None:
    if run == flow.NEWEST:
        run = flow.tail(session.runtime, instance, run, lines=0).generation
    with patience(session, "the look that is under way") as go_on:

        def is_wanted() -> bool:
            return go_on() and session.streams.is_read()

        lines = flow.follow(session.runtime, instance, run, lines=tail, go_on=is_wanted)
        render.follow_lines(session, "wlctl.logs.line/1", {"generation": run}, lines, raw=raw)
