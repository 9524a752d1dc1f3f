"""`wlctl place`: decide where a workload goes, say why, and put it there."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, cast

import typer

from wlctl.cli import render
from wlctl.cli.options import session_of
from wlctl.errors import ExitCode, UsageError
from wlctl.flows import place as flow
from wlctl.flows import snapshot as from_snapshot
from wlctl.flows.deciding import Order
from wlctl.ledger.attempts import Outcome
from wlctl.model.event import Json
from wlctl.model.ids import NodeName
from wlctl.placement.explain import explain, summary, why_not
from wlctl.placement.shapes import Document
from wlctl.placement.where import parse


def place(
    ctx: typer.Context,
    package: Annotated[Path, typer.Argument(help="Directory of a built and signed package.")],
    name: Annotated[str, typer.Option(help="What to call the copy; else the workload's.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Decide, explain and record; do nothing else.")
    ] = False,
    pin: Annotated[str, typer.Option(metavar="NODE", help="This node or none.")] = "",
    prefer: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Liked, most liked first; repeat.")
    ] = None,
    avoid: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Taken when nothing else fits; repeat.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="The node must have it: ID, ID[.ATTR]=VALUE, >=, <=, ' in A,B', ' has VALUE'; "
            "label.K is short for node.label.K; repeat.",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option(min=1, max=1000, help="So many copies; above 1 only with --dry-run.")
    ] = 1,
    allow_emulated: Annotated[
        bool, typer.Option("--allow-emulated", help="Emulated variants may be chosen.")
    ] = False,
    start: Annotated[
        bool, typer.Option("--start/--no-start", help="Start it, or only stage it.")
    ] = True,
    refresh: Annotated[
        bool,
        typer.Option("--refresh/--no-refresh", help="Look again at nodes whose facts ran out."),
    ] = True,
    project: Annotated[
        str, typer.Option(help="Kept with the order; the policy may ask for it.")
    ] = "",
    why: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Show all checks of NODE; repeat.")
    ] = None,
    snapshot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Decide from a saved fleet (`wlctl ledger snapshot`), with --dry-run; the "
            "package may be a workload.toml that was never built.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List every node, however many there are.")
    ] = False,
) -> None:
    """Choose a node for a workload, say why, and start it there.

    Every node is judged by every constraint, and the decision is kept with all its reasons before
    anything is sent; --dry-run is the same without the sending. One candidate is tried. A copy
    whose answer got lost is neither running nor gone: exit 5, and `wlctl unload` settles it.

    The policy in force is asked for every node (`wlctl policy show`): a node it denies is rejected
    with the rule that decided, and so is one that would need an approver first.
    """
    session = session_of(ctx)
    settings = session.settings
    pinned = pin or settings.place_pin
    order = Order(
        package=package,
        name=name,
        pin=NodeName(pinned) if pinned else None,
        prefer=tuple(NodeName(node) for node in prefer or settings.place_prefer),
        avoid=tuple(NodeName(node) for node in avoid or settings.place_avoid),
        where=tuple(map(parse, where or ())),
        count=count,
        allow_emulated=allow_emulated,
        why=tuple(NodeName(node) for node in why or ()),
        start=start,
        dry_run=dry_run,
        refresh=refresh,
        project=project,
    )
    if snapshot is None:
        report = flow.place(session.runtime, order)
    elif dry_run:
        report = from_snapshot.decide(order, snapshot)
    else:
        raise UsageError("nothing can be placed on a saved fleet", hint="add --dry-run")
    if report.is_stale:
        session.note(f"{package}/workload.toml was changed after the build; what was built counts")
    told = _json(report)
    lines = _lines(report, why=why or (), everything=everything)
    render.document(session, "wlctl.place/1", told, lines, name=report.name)
    code = _exit_code(report)
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


def _exit_code(report: flow.Report) -> ExitCode:
    if report.document is None:
        return ExitCode.DONE
    if not report.placeable:
        return ExitCode.CANNOT_PLACE
    match report.attempt.outcome if report.attempt else None:
        case None | Outcome.PLACED:
            return ExitCode.DONE
        case Outcome.REFUSED:
            return ExitCode.CANNOT_PLACE
        case Outcome.GATE_DENIED:
            return ExitCode.REFUSED
        case Outcome.UNREACHABLE:
            return ExitCode.UNREACHABLE
        case Outcome.INDETERMINATE:
            return ExitCode.INDETERMINATE


def _json(report: flow.Report) -> dict[str, Json]:
    attempt, instance = report.attempt, report.instance
    return {
        "name": report.name,
        "dry_run": report.dry_run,
        "decision": report.decision,
        "outcome": _outcome(report),
        "instance": instance.id if instance else None,
        "node": instance.node if instance else None,
        "state": instance.state.value if instance else None,
        "attempts": [
            {
                "number": attempt.number,
                "node": attempt.node,
                "outcome": attempt.outcome.value if attempt.outcome else None,
                "code": attempt.code,
                "detail": attempt.detail,
            }
        ]
        if attempt
        else [],
        "unenforced": list(report.launched.unenforced) if report.launched else [],
        "explanation": cast("Mapping[str, Json] | None", report.document),
    }


def _outcome(report: flow.Report) -> str:
    if report.document is None:
        return "nothing_to_do"
    if not report.placeable:
        return "unplaceable"
    if report.attempt is None:
        return "placeable"
    return report.attempt.outcome.value if report.attempt.outcome else ""


def _explanation(
    report: flow.Report, document: Document, *, why: Sequence[str], everything: bool
) -> Iterator[str]:
    """Say why in full where that is what was asked for, or what is needed to go on."""
    if why:
        for node in why:
            yield from (why_not(document, node) or f"the fleet has no node {node}").splitlines()
    elif report.dry_run or everything or not report.placeable:
        yield from explain(document, everything=everything).splitlines()
    else:
        yield from summary(document)


def _lines(report: flow.Report, *, why: Sequence[str], everything: bool) -> Iterator[str]:
    if report.document is None:
        assert report.instance is not None
        yield f"{report.name} is placed already, on {report.instance.node}: nothing to do"
        return
    yield from _explanation(report, report.document, why=why, everything=everything)
    if report.decision is not None:
        yield f"decision {report.decision}"
    attempt, instance = report.attempt, report.instance
    if attempt is None or instance is None:
        return
    match attempt.outcome:
        case Outcome.PLACED:
            yield f"placed {report.name} on {attempt.node} as {instance.id}: {instance.state.value}"
            if report.launched and report.launched.unenforced:
                limits = ", ".join(report.launched.unenforced)
                yield f"  {attempt.node} cannot hold it to its limits of {limits}"
        case Outcome.REFUSED:
            yield f"{attempt.node} refused it ({attempt.code}): {attempt.detail}"
        case Outcome.GATE_DENIED:
            yield f"{attempt.node} may not run it emulated ({attempt.detail})"
            yield "  nothing was done there"
        case Outcome.UNREACHABLE:
            yield f"{attempt.node} cannot be reached ({attempt.code}): {attempt.detail}"
            yield "  nothing was done there"
        case Outcome.INDETERMINATE | None:
            yield f"the answer of {attempt.node} was lost: {attempt.detail}"
            yield f"  nobody knows whether {report.name} runs there; it is shown as unsettled"
            yield f"  `wlctl unload {report.name}` makes sure that it does not"
