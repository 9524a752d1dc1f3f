"""Say what `wlctl place` did: as lines, as JSON, and as an exit code."""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from wlctl.errors import ExitCode
from wlctl.flows.dispatch import Dispatched
from wlctl.flows.place import Report
from wlctl.flows.waiting import Awaited, Came
from wlctl.ledger.attempts import Attempt, Outcome
from wlctl.model.event import Json
from wlctl.model.generation import Containment
from wlctl.model.instance import Instance, State
from wlctl.placement.explain import explain, summary, why_not
from wlctl.placement.shapes import Document

SCHEMA = "wlctl.place/1"

Waits = Mapping[str, Awaited]
"""Name of a copy to what was waited for; empty where nothing was."""

_DOWN = frozenset({Came.FAILED, Came.LATE})


def exit_code(report: Report, waits: Waits) -> ExitCode:
    """Say in one number how it went: what is unsettled first, then what was done in part."""
    if not report.placeable:
        return ExitCode.CANNOT_PLACE
    codes = [_code_of(copy, waits.get(copy.name)) for copy in report.copies]
    failed = [one.state is State.FAILED and not report.dry_run for one in report.standing]
    codes += [ExitCode.FAILED if one else ExitCode.DONE for one in failed]
    different = set(codes)
    if ExitCode.INDETERMINATE in different:
        return ExitCode.INDETERMINATE
    if len(different) <= 1:
        return next(iter(different), ExitCode.DONE)
    was_done_in_part = different & {ExitCode.DONE, ExitCode.FAILED}
    return ExitCode.PARTIAL if was_done_in_part else ExitCode.CANNOT_PLACE


def _code_of(copy: Dispatched, awaited: Awaited | None) -> ExitCode:
    if copy.failure is not None:
        return copy.failure.exit_code
    if copy.is_placed:
        return ExitCode.FAILED if awaited is not None and awaited.came in _DOWN else ExitCode.DONE
    if copy.is_open:
        return ExitCode.INDETERMINATE
    outcomes = {attempt.outcome for attempt in copy.attempts}
    if outcomes == {Outcome.UNREACHABLE}:
        return ExitCode.UNREACHABLE
    if outcomes == {Outcome.GATE_DENIED}:
        return ExitCode.REFUSED
    return ExitCode.CANNOT_PLACE


def document(report: Report, waits: Waits) -> dict[str, Json]:
    """Write down all of it."""
    instance = report.instance
    return {
        "name": report.name,
        "dry_run": report.dry_run,
        "decision": report.decision,
        "outcome": _outcome(report),
        "instance": instance.id if instance else None,
        "node": instance.node if instance else None,
        "state": instance.state.value if instance else None,
        "attempts": [_attempt(one) for copy in report.copies for one in copy.attempts],
        "copies": [_copy(copy, waits.get(copy.name)) for copy in report.copies],
        "standing": [{"name": one.name, "state": one.state.value} for one in report.standing],
        "unenforced": list(report.launched.unenforced) if report.launched else [],
        "explanation": cast("Mapping[str, Json] | None", report.document),
    }


def _copy(copy: Dispatched, awaited: Awaited | None) -> dict[str, Json]:
    instance = awaited.instance if awaited else copy.instance
    return {
        "name": copy.name,
        "instance": instance.id if instance else None,
        "node": instance.node if instance else None,
        "state": instance.state.value if instance else None,
        "unsettled": copy.is_open,
        "outcome": _outcome_of(copy),
        "passed_over": [{"node": one.node, "why": one.why} for one in copy.passed],
        "ports": dict(copy.launched.ports) if copy.launched else {},
        "unenforced": list(copy.launched.unenforced) if copy.launched else [],
        "containment": copy.launched.containment.value if copy.launched else None,
        "failure": copy.failure.code if copy.failure else None,
        "waited": None
        if awaited is None
        else {
            "came": awaited.came.value,
            "exit_status": awaited.exit_status,
            "detail": awaited.detail,
        },
    }


def _attempt(attempt: Attempt) -> dict[str, Json]:
    return {
        "number": attempt.number,
        "instance": attempt.instance,
        "node": attempt.node,
        "outcome": attempt.outcome.value if attempt.outcome else None,
        "code": attempt.code,
        "detail": attempt.detail,
        "settled": attempt.settled or None,
    }


def _outcome(report: Report) -> str:
    if report.document is None:
        return "nothing_to_do"
    if not report.placeable:
        return "unplaceable"
    if not report.copies:
        return "placeable"
    outcomes = {_outcome_of(copy) for copy in report.copies}
    return outcomes.pop() if len(outcomes) == 1 else "partial"


def _outcome_of(copy: Dispatched) -> str:
    if copy.is_placed:
        return Outcome.PLACED.value
    last = copy.attempts[-1]
    if last.outcome is Outcome.INDETERMINATE and last.settled:
        return last.settled
    return last.outcome.value if last.outcome else Outcome.INDETERMINATE.value


def lines(report: Report, waits: Waits, *, why: Sequence[str], everything: bool) -> Iterator[str]:
    """Say what became of an order, standing copies first, then why, then each attempt."""
    for one in report.standing:
        if one.unsettled:
            yield f"{one.name} is unsettled on {one.node}: that is finished before anything else"
        else:
            yield f"{one.name} is placed already, on {one.node}{_as_it_is(one)}: nothing to do"
    if report.document is None:
        return
    yield from _explanation(report, report.document, why=why, everything=everything)
    if report.decision is not None:
        yield f"decision {report.decision}"
    for copy in report.copies:
        awaited = waits.get(copy.name)
        yield from _told(copy, awaited.instance if awaited is not None else copy.instance)
        if awaited is not None:
            yield from _waited(copy.name, awaited)


def _as_it_is(one: Instance) -> str:
    """Say of what does not run that it does not, and what starts it."""
    if one.state in (State.STOPPED, State.FAILED):
        return f", and is {one.state.value} (`wlctl start {one.name}`)"
    return ", and has finished" if one.state is State.FINISHED else ""


def _explanation(
    report: Report, document: Document, *, why: Sequence[str], everything: bool
) -> Iterator[str]:
    """Say why in full where that is what was asked for, or what is needed to go on."""
    if why or report.dry_run or everything or not report.placeable:
        yield from explained(document, why=why, everything=everything)
    else:
        yield from summary(document)


def explained(document: Document, *, why: Sequence[str], everything: bool) -> Iterator[str]:
    """Say a decision in full, or the whole check list of each node of `why`."""
    if not why:
        yield from explain(document, everything=everything).splitlines()
    for node in why:
        yield from (why_not(document, node) or f"the fleet has no node {node}").splitlines()


def _told(copy: Dispatched, instance: Instance | None) -> Iterator[str]:
    """Number the attempts where there were more than one; the last one is how it stands.

    Args:
        copy: What came of dispatching it.
        instance: As it is by now.
    """
    for attempt in copy.attempts[:-1]:
        yield f"attempt {attempt.number}: {_said(attempt)}"
    for passed in copy.passed:
        yield f"{passed.node} was passed over: it does not fit any more ({passed.why})"
    last = copy.attempts[-1]
    if not copy.is_placed:
        before = f"attempt {last.number}: " if len(copy.attempts) > 1 else ""
        yield before + (_said(last) if copy.failure is None else copy.failure.message)
        if copy.is_open:
            yield f"  nobody knows whether {copy.name} runs there; it is shown as unsettled"
            yield f"  `wlctl unload {copy.name}` makes sure that it does not"
        else:
            yield f"{copy.name} was not placed, and nothing of it was left"
        return
    assert instance is not None
    if last.settled:
        yield f"the answer of {last.node} was lost and asked for again"
    how = [instance.state.value, *([instance.health] if instance.health else [])]
    how += [f"{name} {port}" for name, port in (copy.launched.ports if copy.launched else ())]
    yield f"placed {copy.name} on {last.node} as {instance.id}: {', '.join(how)}"
    if copy.launched and copy.launched.containment is Containment.LEADER_ONLY:
        yield f"  {last.node} has no cgroup for it: it is not confined (leader-only)"
    if copy.launched and copy.launched.unenforced:
        limits = ", ".join(copy.launched.unenforced)
        yield f"  {last.node} cannot hold it to its limits of {limits}"


def _said(attempt: Attempt) -> str:
    node, code, detail = attempt.node, attempt.code, attempt.detail
    match attempt.outcome:
        case Outcome.REFUSED:
            return f"{node} refused it ({code}): {detail}"
        case Outcome.GATE_DENIED:
            return f"{node} may not run it emulated ({detail}); nothing was done there"
        case Outcome.UNREACHABLE:
            return f"{node} cannot be reached ({code}): {detail}; nothing was done there"
        case _ if attempt.settled:
            return f"the answer of {node} was lost; it was settled there: {attempt.settled}"
        case _:
            return f"the answer of {node} was lost: {detail}"


def _waited(name: str, awaited: Awaited) -> Iterator[str]:
    match awaited.came:
        case Came.UP:
            return
        case Came.FINISHED:
            yield f"{name} finished"
        case Came.CALLED_OFF:
            yield f"{name} is kept; what it does next, `wlctl ps` shows"
        case Came.FAILED:
            yield f"{name} failed: {awaited.detail}; it is kept"
        case Came.LATE:
            yield f"{name} was not up in time ({awaited.detail}); it is kept"
    if awaited.log:
        yield "  the end of its output:"
        yield from (f"  | {line}" for line in awaited.log)
