"""`wlctl move`: a copy goes to another node, and one serves all the time."""

from collections.abc import Iterator
from typing import Annotated

import typer

from wlctl.cli import render, times
from wlctl.cli.options import Session, session_of
from wlctl.cli.patience import patience
from wlctl.errors import ExitCode
from wlctl.flows import moving as flow
from wlctl.flows.moving import Moved, Step, Way
from wlctl.lifecycle.machine import LIVE
from wlctl.model.event import Json
from wlctl.model.ids import NodeName

SCHEMA = "wlctl.move/1"


def move(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Of the copy, or the beginning of its id.")],
    to: Annotated[str, typer.Option(metavar="NODE", help="This node or none.")] = "",
    stop_first: Annotated[
        bool,
        typer.Option("--stop-first", help="Prove the old copy stopped before another is placed."),
    ] = False,
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long the new copy may take to be up.")
    ] = "60s",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say where it would go, and do nothing.")
    ] = False,
) -> None:
    """Move a running copy to another node, by its own order and its own package.

    The new copy is placed through the same gate and engine, and is up and healthy before the old
    one is ended and proven gone; the name passes from one to the other in between. A copy with a
    lease, of which two may never run, is proven stopped first, as with --stop-first. Whatever fails
    leaves the old copy serving, or starts it again.

    A job is not moved, nor is a copy whose data is kept on its node. Without --to any node but its
    own may be taken; one that was ordered for a node (--pin) goes only where --to says.

    Exit 3: no other node fits, or none took it. Exit 5: nobody knows whether the new copy runs, or
    the old one is not proven gone. Exit 7: the new copy did not come up and was ended.
    """
    session = session_of(ctx)
    way = Way(
        to=NodeName(to) if to else None,
        stop_first=stop_first,
        dry_run=dry_run,
        timeout_s=times.duration_s(timeout, of="--timeout"),
    )
    instance = flow.find(session.runtime, name)
    with patience(session, "the step under way") as go_on:
        moved = flow.move(session.runtime, instance, way, go_on=go_on)
        called_off = not go_on()
    show(session, moved)
    if called_off and moved.step is not Step.MOVED:
        raise typer.Exit(ExitCode.INTERRUPTED)
    code = code_of(moved)
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


def show(session: Session, moved: Moved) -> None:
    """Print what came of a move."""
    name = moved.instance.name
    render.document(session, SCHEMA, json_of(moved), list(lines_of(moved)), name=name)


def code_of(moved: Moved) -> ExitCode:
    """Say what came of a move as an exit code."""
    match moved.step:
        case Step.MOVED | Step.WOULD:
            return ExitCode.DONE
        case Step.NO_NODE | Step.NOT_PLACED:
            return ExitCode.CANNOT_PLACE
        case Step.UNSETTLED | Step.NOT_GONE | Step.NOT_STOPPED:
            return ExitCode.INDETERMINATE
        case Step.NOT_UP | Step.DOWN:
            return ExitCode.PARTIAL


def json_of(moved: Moved) -> dict[str, Json]:
    """Say what came of a move for programs."""
    return {
        "name": moved.instance.name,
        "instance": moved.instance.id,
        "outcome": moved.step.value,
        "from": moved.origin,
        "node": moved.node,
        "state": moved.instance.state.value,
        "detail": moved.detail,
    }


def lines_of(moved: Moved) -> Iterator[str]:
    """Say what came of a move for people."""
    name, origin, node = moved.instance.name, moved.origin, moved.node
    detail = f": {moved.detail}" if moved.detail else ""
    match moved.step:
        case Step.MOVED:
            yield f"{name} moved from {origin} to {node}; the old copy is proven gone"
        case Step.WOULD:
            yield f"{name} would move from {origin} to {node}"
        case Step.NO_NODE:
            yield f"{name} stays on {origin}{detail}"
        case Step.NOT_PLACED:
            yield f"{name} stays on {origin}; no node took it{detail}"
        case Step.NOT_UP:
            yield f"{name} stays on {origin}; its new copy did not come up on {node}{detail}"
        case Step.NOT_STOPPED:
            yield f"{name} stays on {origin}, where it is not proven stopped{detail}"
        case Step.UNSETTLED:
            is_up = moved.instance.state in LIVE
            old = "serves" if is_up else f"is {moved.instance.state.value}"
            yield f"{name} {old} on {origin}; nobody knows whether its new copy runs{detail}"
            yield "  `wlctl reconcile` settles that"
        case Step.NOT_GONE:
            yield f"{name} runs on {node}; its old copy on {origin} is not proven gone{detail}"
            yield "  `wlctl reconcile` asks again until it is"
        case Step.DOWN:
            yield f"{name} is down: it was stopped on {origin}, and does not start{detail}"
            yield f"  `wlctl start {name}` tries again"
