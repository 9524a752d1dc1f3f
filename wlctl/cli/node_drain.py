"""`wlctl node drain` and `uncordon`: empty a node copy by copy, and let it take workloads again.

The flows are imported where they are used: the other commands of `wlctl node` need none of them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from wlctl.cli import render, times
from wlctl.cli.options import Session, session_of
from wlctl.cli.patience import patience
from wlctl.errors import ExitCode
from wlctl.model.event import Json

if TYPE_CHECKING:
    from wlctl.flows.draining import Drained, Emptied

SCHEMA = "wlctl.drain/1"


def uncordon(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A node.")],
    resume: Annotated[
        bool, typer.Option("--resume", help="Start what a drain has stopped there.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would start, and do nothing.")
    ] = False,
) -> None:
    """Let a node take workloads again.

    Exit 7, with --resume: something that a drain had stopped does not start.
    """
    from wlctl.flows import node_changes

    session = session_of(ctx)
    if dry_run:
        _foresee(session, name, resume=resume)
        return
    node, changed = node_changes.uncordon(session.runtime, name)
    document: dict[str, Json] = {"name": node.name, "cordoned": False, "cordoned_until": None}
    lines = [f"{node.name} is no longer cordoned" if changed else f"{node.name} was not cordoned"]
    is_whole = True
    if resume:
        from wlctl.cli import starting
        from wlctl.flows import draining

        begun = draining.resume(session.runtime, node.name)
        document["resumed"] = [starting.json_of(one) for one in begun]
        lines += [line for one in begun for line in starting.lines_of(one)]
        is_whole = all(starting.exit_code(one) is ExitCode.DONE for one in begun)
    render.document(session, "wlctl.cordon/1", document, lines, name=node.name)
    if not is_whole:
        raise typer.Exit(ExitCode.PARTIAL)


def _foresee(session: Session, name: str, *, resume: bool) -> None:
    """Say what `uncordon` would do."""
    from wlctl.flows import draining, nodes

    node = nodes.get(session.runtime, name)
    is_cordoned = node.is_cordoned_at(session.runtime.now_ms())
    said = "would no longer be cordoned" if is_cordoned else "is not cordoned"
    halted = draining.halted(session.runtime, node.name) if resume else []
    lines = [f"{node.name} {said}"]
    lines += [f"would start {one.name} on {one.node}: it is {one.state.value}" for one in halted]
    document: dict[str, Json] = {
        "name": node.name,
        "dry_run": True,
        "cordoned": is_cordoned,
        "resumed": [{"name": one.name, "instance": one.id} for one in halted],
    }
    render.document(session, "wlctl.cordon/1", document, lines, name=node.name)


def drain(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Of the node.")],
    stop_rest: Annotated[
        bool,
        typer.Option("--stop-rest", help="Stop what cannot be moved; `uncordon --resume` starts."),
    ] = False,
    deadline: Annotated[
        str, typer.Option(metavar="TIME", help="Begin nothing more after that, e.g. 10m.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say where everything would go, and do nothing.")
    ] = False,
) -> None:
    """Cordon a node and move every copy that runs there, each as `wlctl move` does.

    The drain is done when every copy that ran there is proven gone or stopped. What cannot be moved
    runs on, unless --stop-rest: a job, a copy whose data is on the node, one that was ordered for
    it alone, one that no other node takes. The cordon stays: `wlctl node uncordon` ends it, and
    with --resume starts what the drain has stopped.

    Exit 7: something is left; type it again. Exit 0: nothing is.
    """
    from wlctl.flows import draining as flow

    session = session_of(ctx)
    with patience(session, "the moves under way") as go_on:
        found = flow.drain(
            session.runtime,
            name,
            stop_rest=stop_rest,
            dry_run=dry_run,
            deadline_s=times.duration_s(deadline, of="--deadline") if deadline else None,
            go_on=go_on,
        )
        called_off = not go_on()
    document: dict[str, Json] = {
        "node": found.node.name,
        "dry_run": dry_run,
        "done": not found.left and not dry_run,
        "copies": [_json(one) for one in found.copies],
    }
    render.document(session, SCHEMA, document, list(_lines(found)), name=found.node.name)
    if called_off and found.left:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if found.left:
        raise typer.Exit(ExitCode.PARTIAL)


def _json(one: "Emptied") -> dict[str, Json]:
    return {
        "name": one.instance.name,
        "instance": one.instance.id,
        "outcome": "left" if one.why else "stopped" if one.is_stopped else "moved",
        "node": one.moved.node if one.moved is not None else None,
        "detail": one.why,
    }


def _lines(found: "Drained") -> Iterator[str]:
    from wlctl.cli import moving

    for one in found.copies:
        if one.why:
            yield f"{one.instance.name} is left on {found.node.name}: {one.why}"
        elif one.is_stopped:
            did = "would be stopped" if found.dry_run else "is stopped"
            yield f"{one.instance.name} {did} on {found.node.name}"
        elif one.moved is not None:
            yield from moving.lines_of(one.moved)
    if found.dry_run:
        return
    if found.left:
        yield f"{found.node.name} is cordoned and not empty: {len(found.left)} left"
    else:
        yield f"{found.node.name} is cordoned, and nothing that ran there runs there now"
