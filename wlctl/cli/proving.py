"""`wlctl prove`: whether copies are proven gone, by readings of now or by stored ones."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeGuard

import typer

from wlctl.cli import targets, times
from wlctl.cli.options import session_of
from wlctl.cli.targets import Everything, Labels, Names, OnNode, Workload
from wlctl.errors import ExitCode
from wlctl.flows import proving as flow
from wlctl.flows.proving import Proved, RunProof
from wlctl.ledger.generations import DISPROVEN, PROVEN
from wlctl.lifecycle.seen import status_text
from wlctl.model.event import Json, rfc3339
from wlctl.model.generation import Containment


def prove(
    ctx: typer.Context,
    names: Names = None,
    workload: Workload = "",
    node: OnNode = "",
    label: Labels = None,
    everything: Everything = False,
    stored: Annotated[
        bool, typer.Option("--stored", help="Ask no node: show what was read before.")
    ] = False,
) -> None:
    """Ask nodes for readings of every run of copies, and judge whether no process of them is left.

    It ends nothing and changes nothing: what is missing for a proof is done by `stop`. What was
    proven once stays so, and is shown with its age; also of copies that were unloaded.

    Exit 0: proven gone. Exit 1: a process was seen alive. Exit 5: what was read does not suffice.
    Exit 9: a node cannot be reached, and what is stored does not prove it.
    """
    session = session_of(ctx)
    chosen = targets.find(
        session,
        names,
        workload=workload,
        node=node,
        labels=label,
        everything=everything,
        gone=True,
    )
    now_ms = session.runtime.now_ms()
    targets.answer(
        session,
        chosen,
        lambda one: flow.prove(session.runtime, one, stored=stored),
        schema="wlctl.prove/1",
        key="items",
        lines_of=lambda found: _lines(found, now_ms),
        json_of=_json,
        code_of=_exit_code,
    )


def _exit_code(found: Proved) -> ExitCode:
    if found.judgement == PROVEN:
        return ExitCode.DONE
    if found.failure is not None:
        return found.failure.exit_code
    return ExitCode.FAILED if found.judgement == DISPROVEN else ExitCode.INDETERMINATE


def _json(found: Proved) -> dict[str, Json]:
    runs: list[Json] = [
        {
            "generation": run.number,
            "judgement": run.judgement,
            "stored": run.is_stored,
            "at": None if run.at_ms is None else rfc3339(run.at_ms),
            "confined": _is_confined(run.evidence) if _is_read(run.evidence) else None,
            "evidence": None if run.evidence is None else dict(run.evidence),
        }
        for run in found.runs
    ]
    return {
        "name": found.instance.name,
        "instance": found.instance.id,
        "node": found.instance.node,
        "state": found.instance.state.value,
        "judgement": found.judgement,
        "failure": "" if found.failure is None else found.failure.code,
        "detail": found.detail,
        "runs": runs,
    }


def _lines(found: Proved, now_ms: int) -> Iterator[str]:
    name, node = found.instance.name, found.instance.node
    if not found.runs:
        yield f"{name} on {node} was never started, so there is nothing to prove"
    elif found.judgement == PROVEN:
        yield f"{name} on {node} is proven gone: no process of it is left"
    elif found.judgement == DISPROVEN:
        yield f"{name} on {node} runs"
    else:
        yield f"{name} on {node} is not proven gone"
    if found.failure is not None:
        yield f"  ! {node} cannot be asked: {found.failure.message} ({found.failure.code})"
    if found.detail:
        yield f"  ! {node} read nothing: {found.detail}"
    for run in found.runs:
        yield from _run_lines(run, now_ms)


def _is_read(evidence: Mapping[str, Any] | None) -> TypeGuard[Mapping[str, Any]]:
    """Answer whether anything was read of a run: not of one that never began, or is long gone."""
    return evidence is not None and "closed" in evidence


def _is_confined(read: Mapping[str, Any]) -> bool:
    return read.get("containment") == Containment.ISOLATED.value


def _run_lines(run: RunProof, now_ms: int) -> Iterator[str]:
    read: Mapping[str, Any] = run.evidence or {}
    why = read.get("because", "nothing was read of it so far")
    age = f", {times.ago(run.at_ms, now_ms)} ago" if run.is_stored and run.at_ms else ""
    yield f"  g{run.number} {run.judgement}{age}: {why}"
    if not _is_read(read):
        return
    words = [
        f"confined {'yes' if _is_confined(read) else 'no'} ({read.get('containment') or '-'})",
        f"closed {'yes' if read['closed'] else 'no'}",
        f"leader {read['leader']}",
        f"init {read['init']}",
        f"cgroups {read['ctl']} and {read['limit']}",
    ]
    if read.get("uid") is not None:
        left = read.get("uid_left")
        words.append(f"uid {read['uid']}: {'not listed' if left is None else f'{left} left'}")
    if read.get("how"):
        words.append(str(read["how"]))
    if read.get("exit_status") is not None:
        words.append(status_text(int(read["exit_status"])))
    yield f"     {', '.join(words)}"
