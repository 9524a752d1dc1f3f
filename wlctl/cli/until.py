"""`wlctl wait`: until copies or nodes are in a state, or cannot come into it any more."""

from collections.abc import Sequence
from typing import Annotated

import typer

from wlctl.cli import render, targets, times
from wlctl.cli.options import Session, session_of
from wlctl.cli.patience import patience
from wlctl.cli.targets import Everything, Labels, Names, OnNode, Workload
from wlctl.errors import ExitCode, IllegalStep, Interrupted, TimedOut, UsageError, WlctlError
from wlctl.flows import targets as choosing
from wlctl.flows import until as flow
from wlctl.flows.targets import Failed
from wlctl.flows.until import Came, Waited
from wlctl.model.event import Json

NODE = "node/"
"""What a name begins with that means a node."""


def wait(
    ctx: typer.Context,
    goal: Annotated[
        str,
        typer.Option(
            "--for", metavar="STATE", help="A state, or healthy; of a node alive, suspect or dead."
        ),
    ],
    names: Names = None,
    workload: Workload = "",
    node: OnNode = "",
    label: Labels = None,
    everything: Everything = False,
    timeout: Annotated[str, typer.Option(metavar="TIME", help="At most so long.")] = "5m",
) -> None:
    """Wait until every copy is in a state; `node/NAME` waits for a node.

    `healthy` is running and, where a package says how its health is asked for, healthy. What lives
    is looked at on its node again and again, and what is seen is kept in its history.

    Exit 1: not in time. Exit 4: the state cannot come any more; a service does not finish, and what
    has failed does not run until somebody starts it.
    """
    session = session_of(ctx)
    ends_at_s = session.runtime.elapsed_s() + times.duration_s(timeout, of="--timeout")
    machines = [name.removeprefix(NODE) for name in names or () if name.startswith(NODE)]
    if machines and (workload or node or label or everything or len(machines) < len(names or ())):
        raise UsageError("copies and nodes are waited for apart", hint="give one kind of names")
    if machines:
        found = _wait_for_nodes(session, machines, goal, ends_at_s)
    else:
        chosen = targets.find(
            session,
            names,
            workload=workload,
            node=node,
            labels=label,
            everything=everything,
            gone=True,
        )
        wanted = flow.goal_of(goal)
        with patience(session, "the look that is under way") as go_on:
            answers = choosing.each(
                session.runtime,
                chosen,
                lambda one: flow.wait(
                    session.runtime, one, wanted, ends_at_s=ends_at_s, go_on=go_on
                ),
            )
        for answer in answers:
            if isinstance(answer, Failed):
                raise answer.failure
        found = [answer.result for answer in answers if not isinstance(answer, Failed)]
    _show(session, found, goal)


def _wait_for_nodes(
    session: Session, names: Sequence[str], goal: str, ends_at_s: float
) -> list[Waited]:
    with patience(session, "the probe that is under way") as go_on:
        return [
            flow.wait_for_node(session.runtime, name, goal, ends_at_s=ends_at_s, go_on=go_on)
            for name in names
        ]


def _show(session: Session, found: Sequence[Waited], goal: str) -> None:
    told: list[Json] = [
        {"name": one.name, "came": one.came.value, "state": one.state, "detail": one.detail}
        for one in found
    ]
    lines = [f"{one.name} is {one.state}" for one in found if one.came is Came.THERE]
    render.document(session, "wlctl.wait/1", {"for": goal, "items": told}, lines)
    failures = [(one, _failure(one, goal)) for one in found if one.came is not Came.THERE]
    codes = {failure.exit_code for _, failure in failures}
    if not failures:
        return
    if len(found) == 1:
        raise failures[0][1]
    for _, failure in failures:
        session.streams.failure(failure)
    is_all = len(codes) == 1 and len(failures) == len(found)
    if ExitCode.INTERRUPTED in codes:
        raise typer.Exit(ExitCode.INTERRUPTED)
    raise typer.Exit(codes.pop() if is_all else ExitCode.PARTIAL)


def _failure(one: Waited, goal: str) -> WlctlError:
    detail = f": {one.detail}" if one.detail else ""
    match one.came:
        case Came.NEVER:
            return IllegalStep(f"{one.name} will not be {goal}{detail}")
        case Came.CALLED_OFF:
            return Interrupted(f"interrupted: {one.name} is {one.state}{detail}")
        case _:
            return TimedOut(f"{one.name} is not {goal} in time, it is {one.state}{detail}")
