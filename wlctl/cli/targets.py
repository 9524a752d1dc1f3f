"""Which copies a verb is for, as it is typed; and what several answers come to together."""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, TypeVar

import typer

from wlctl.cli import render
from wlctl.cli.options import Output, Session
from wlctl.cli.patience import patience
from wlctl.errors import ExitCode
from wlctl.flows import targets as flow
from wlctl.flows.targets import Done, Failed, Targets
from wlctl.model.event import Json
from wlctl.model.instance import Instance

T = TypeVar("T")

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="[NAME…]", help="Names, ids, or beginnings of ids."),
]
Workload = Annotated[
    str, typer.Option("--workload", metavar="WORKLOAD", help="All copies of this workload.")
]
OnNode = Annotated[str, typer.Option("--node", metavar="NODE", help="All copies on this node.")]
Labels = Annotated[
    list[str] | None,
    typer.Option("-l", "--label", metavar="LABEL", help="All copies that carry it; repeat."),
]
Everything = Annotated[bool, typer.Option("--all", help="All current copies.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List them; do nothing.")]


def find(
    session: Session,
    names: Sequence[str] | None,
    *,
    workload: str,
    node: str,
    labels: Sequence[str] | None,
    everything: bool,
    gone: bool = False,
) -> tuple[Instance, ...]:
    """Return the copies that are meant; see `flows.targets.find`."""
    wanted = Targets(tuple(names or ()), workload, node, tuple(labels or ()), everything)
    found = flow.find(session.runtime, wanted, gone=gone)
    if not found:
        session.note("no current copy is like that: nothing to do")
    return found


def show_only(session: Session, verb: str, chosen: Sequence[Instance]) -> None:
    """Print what a verb would be for."""
    told: list[Json] = [
        {
            "name": one.name,
            "instance": one.id,
            "node": one.node,
            "state": one.state.value,
            "desired": one.desired.value,
        }
        for one in chosen
    ]
    lines = [f"would {verb} {one.name} on {one.node}: it is {one.state.value}" for one in chosen]
    value: dict[str, Json] = {"verb": verb, "dry_run": True, "targets": told}
    _document(session, "wlctl.targets/1", value, lines, chosen)


def answer(
    session: Session,
    chosen: Sequence[Instance],
    act: Callable[[Instance], T],
    *,
    schema: str,
    key: str,
    lines_of: Callable[[T], Iterator[str]],
    json_of: Callable[[T], dict[str, Json]],
    code_of: Callable[[T], ExitCode],
) -> None:
    """Do `act` to every copy, print what came of each, and exit with what that comes to.

    One exit code for all is the answer; where they differ it is 7, and 130 where Ctrl-C kept some
    from being begun.

    Args:
        schema: Of the document.
        key: Of the list in it.
    """
    with patience(session, "what is under way on the nodes") as go_on:
        found = flow.each(session.runtime, chosen, act, go_on=go_on)
        called_off = not go_on()
    if len(found) == 1 and isinstance(found[0], Failed):
        raise found[0].failure
    lines, told, codes = [], [], set()
    for one in found:
        match one:
            case Done():
                lines += list(lines_of(one.result))
                told.append(json_of(one.result))
                codes.add(code_of(one.result))
            case Failed():
                lines += list(_failed_lines(one))
                told.append(_failed_json(one))
                codes.add(one.failure.exit_code)
    _document(session, schema, {key: told}, lines, chosen)
    if called_off:
        raise typer.Exit(ExitCode.INTERRUPTED)
    if codes - {ExitCode.DONE}:
        raise typer.Exit(codes.pop() if len(codes) == 1 else ExitCode.PARTIAL)


def _document(
    session: Session,
    schema: str,
    value: dict[str, Json],
    lines: Sequence[str],
    chosen: Sequence[Instance],
) -> None:
    if session.output is not Output.NAME:
        render.document(session, schema, value, lines)
        return
    for one in chosen:
        render.document(session, schema, {}, (), name=one.name)


def _failed_lines(one: Failed) -> Iterator[str]:
    failure = one.failure
    yield f"{one.instance.name} on {one.instance.node}: {failure.message} ({failure.code})"
    if failure.hint:
        yield f"  {failure.hint}"


def _failed_json(one: Failed) -> dict[str, Json]:
    instance = one.instance
    return {
        "name": instance.name,
        "instance": instance.id,
        "node": instance.node,
        "outcome": "failed",
        "state": instance.state.value,
        "code": one.failure.code,
        "detail": one.failure.message,
    }
