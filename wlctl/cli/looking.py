"""`wlctl ps` and `wlctl logs`: what runs where, and what it printed."""

from typing import Annotated

import typer

from wlctl.cli import render, times
from wlctl.cli.escape import visible
from wlctl.cli.options import Output, session_of
from wlctl.flows import looking as flow
from wlctl.flows.looking import Listed
from wlctl.model.event import Json, rfc3339


def ps(ctx: typer.Context) -> None:
    """List the current copies as they were seen last; SEEN is the age of the last contact."""
    session = session_of(ctx)
    now_ms = session.runtime.now_ms()
    columns: list[render.Column[Listed]] = [
        render.Column("NAME", "name", lambda one: one.instance.name),
        render.Column("NODE", "node", lambda one: one.instance.node),
        render.Column("DESIRED", "desired", lambda one: one.instance.desired.value),
        render.Column("ACTUAL", "actual", lambda one: one.instance.state.value, _actual),
        render.Column("VERSION", "version", lambda one: one.instance.version),
        render.Column("PORTS", "ports", lambda one: dict(one.ports), _ports),
        render.Column(
            "SINCE",
            "since",
            lambda one: rfc3339(one.instance.since_ms),
            lambda one: times.ago(one.instance.since_ms, now_ms),
        ),
        render.Column(
            "SEEN",
            "seen_at",
            lambda one: (
                None if one.instance.seen_at_ms is None else rfc3339(one.instance.seen_at_ms)
            ),
            lambda one: times.ago(one.instance.seen_at_ms, now_ms),
        ),
        render.Column("WORKLOAD", "workload", lambda one: one.instance.workload, wide=True),
        render.Column("INSTANCE", "instance", lambda one: one.instance.id, wide=True),
        render.Column("RUN", "generation", lambda one: one.instance.generation, wide=True),
        render.Column("", "unsettled", lambda one: one.instance.unsettled),
        render.Column("", "package", lambda one: one.instance.package_id),
    ]
    listed = flow.ps(session.runtime)
    if not listed and session.streams.out_is_terminal:
        session.note("nothing is placed")
    render.rows(session, "wlctl.ps/1", columns, listed)


def logs(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Name, id, or beginning of an id.")],
    tail: Annotated[int, typer.Option(min=1, max=10_000, help="So many lines.")] = 100,
    generation: Annotated[
        int | None, typer.Option(min=1, help="Which run of it; else the newest.")
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print it as it is, control characters and all.")
    ] = False,
) -> None:
    """Print the end of what a copy wrote to its standard output and error."""
    session = session_of(ctx)
    found = flow.logs(session.runtime, name, generation=generation, lines=tail)
    lines = found.text.splitlines()
    if raw and session.output in (Output.TABLE, Output.WIDE):
        session.streams.data("".join(f"{line}\n" for line in lines))
        return
    value: dict[str, Json] = {
        "generation": found.generation,
        "size_bytes": found.size_bytes,
        "lines": list(lines),
    }
    render.document(session, "wlctl.logs/1", value, lines)


def _actual(one: Listed) -> str:
    state = one.instance.state.value
    return f"{state} (unsettled)" if one.instance.unsettled else state


def _ports(one: Listed) -> str:
    return ",".join(f"{visible(name)}:{number}" for name, number in one.ports)
