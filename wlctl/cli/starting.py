"""`wlctl start` and `wlctl restart`: begin a run, never beside one that may still live."""

from collections.abc import Callable, Iterator

import typer

from wlctl.cli import targets
from wlctl.cli.ending import Grace, Now, grace_ms_of, proof_line
from wlctl.cli.options import Session, session_of
from wlctl.cli.targets import DryRun, Everything, Labels, Names, OnNode, Workload
from wlctl.errors import ExitCode
from wlctl.flows import starting as flow
from wlctl.flows.start_intents import Begin, Beginning, Verb
from wlctl.ledger.generations import evidence_json
from wlctl.model.actions import RefusalCode
from wlctl.model.event import Json
from wlctl.model.instance import Instance


def start(
    ctx: typer.Context,
    names: Names = None,
    workload: Workload = "",
    node: OnNode = "",
    label: Labels = None,
    everything: Everything = False,
    dry_run: DryRun = False,
) -> None:
    """Start copies where they are staged; what runs already is left as it is.

    What ended by itself, or whose answer was lost, is looked at first: where a run lives it is
    taken as it is, and where not it is proven gone before the next one starts. What a stop gave
    back is held anew, if others have not taken it.

    Exit 3: others have taken its room. Exit 5: an earlier run is not proven gone, or the answer was
    lost; the same command again finds out. Exit 9: the node cannot be reached and nothing was done;
    the wish is recorded, so type it again later.
    """
    session = session_of(ctx)
    chosen = targets.find(
        session, names, workload=workload, node=node, labels=label, everything=everything
    )
    if dry_run:
        targets.show_only(session, Verb.START.value, chosen)
        return
    _answer(session, chosen, lambda one: flow.start_one(session.runtime, one))


def restart(
    ctx: typer.Context,
    names: Names = None,
    workload: Workload = "",
    node: OnNode = "",
    label: Labels = None,
    everything: Everything = False,
    grace: Grace = "",
    now: Now = False,
    dry_run: DryRun = False,
) -> None:
    """Stop copies and, once that is proven, start them; a stop that failed starts nothing.

    The policy is asked for both before anything is done. What does not run is started. The exit
    codes are those of `stop` and `start`.
    """
    session = session_of(ctx)
    grace_ms = grace_ms_of(grace, now=now)
    chosen = targets.find(
        session, names, workload=workload, node=node, labels=label, everything=everything
    )
    if dry_run:
        targets.show_only(session, Verb.RESTART.value, chosen)
        return
    _answer(session, chosen, lambda one: flow.restart_one(session.runtime, one, grace_ms=grace_ms))


def _answer(
    session: Session, chosen: tuple[Instance, ...], act: Callable[[Instance], Beginning]
) -> None:
    targets.answer(
        session,
        chosen,
        act,
        schema="wlctl.beginnings/1",
        key="beginnings",
        lines_of=lines_of,
        json_of=json_of,
        code_of=exit_code,
    )


_TRIED = frozenset(
    {
        RefusalCode.RUNTIME.value,
        RefusalCode.RESOURCES.value,
        RefusalCode.PORT.value,
        RefusalCode.FETCH.value,
        RefusalCode.CLOCK.value,
    }
)
"""Refusals that say it could not be done, not that it may not."""


def exit_code(found: Beginning) -> ExitCode:
    """Say what came of a beginning as an exit code."""
    match found.begin:
        case Begin.DONE | Begin.ALREADY:
            return ExitCode.DONE
        case Begin.NO_ROOM:
            return ExitCode.CANNOT_PLACE
        case Begin.UNPROVEN | Begin.INDETERMINATE:
            return ExitCode.INDETERMINATE
        case Begin.UNREACHABLE:
            return ExitCode.UNREACHABLE
        case Begin.DENIED | Begin.ILLEGAL:
            return ExitCode.REFUSED
        case Begin.FAILED:
            return ExitCode.FAILED
        case Begin.REFUSED:
            if found.code == RefusalCode.BUSY:
                return ExitCode.BUSY
            return ExitCode.FAILED if found.code in _TRIED else ExitCode.REFUSED


def json_of(found: Beginning) -> dict[str, Json]:
    """Say what came of a beginning for programs."""
    launched = found.launched
    return {
        "name": found.instance.name,
        "instance": found.instance.id,
        "node": found.instance.node,
        "outcome": found.begin.value,
        "state": found.instance.state.value,
        "desired": found.instance.desired.value,
        "unsettled": found.instance.unsettled,
        "code": found.code,
        "detail": found.detail,
        "generation": None if launched is None else launched.generation,
        "ports": {} if launched is None else dict(launched.ports),
        "unenforced": [] if launched is None else list(launched.unenforced),
        "proofs": [evidence_json(proof) for proof in found.proofs],
    }


def lines_of(found: Beginning) -> Iterator[str]:
    """Say what came of a beginning for people."""
    name, node = found.instance.name, found.instance.node
    again = f"`wlctl {found.verb.value} {name}`"
    match found.begin:
        case Begin.DONE:
            yield from _done_lines(found)
        case Begin.ALREADY:
            yield f"{name} runs on {node} already: it is {found.instance.state.value}"
        case Begin.NO_ROOM:
            yield f"{name} does not fit on {node} any more: {found.detail}"
            yield "  others have what it gave back when it was stopped; nothing was done"
        case Begin.UNPROVEN:
            yield f"{name} on {node} is not proven gone: {found.detail}"
            yield f"  so no run was started beside it; {again} asks again"
        case Begin.UNREACHABLE:
            yield f"{node} cannot be reached ({found.code}): {found.detail}"
            yield f"  nothing was started; the wish is recorded, {again} carries it out later"
        case Begin.INDETERMINATE:
            yield f"the answer of {node} was lost: {found.detail}"
            yield f"  nobody knows whether {name} runs; {again} finds out"
        case Begin.REFUSED:
            yield f"{node} refused ({found.code}): {found.detail}"
        case Begin.DENIED | Begin.ILLEGAL | Begin.FAILED:
            stands = "stopped and not started" if found.proofs else "left as it is"
            yield f"{name} on {node} was {stands} ({found.code}): {found.detail}"
    for proof in found.proofs:
        yield f"  {proof_line(proof)}"


def _done_lines(found: Beginning) -> Iterator[str]:
    name, node, launched = found.instance.name, found.instance.node, found.launched
    done = "started" if found.verb is Verb.START else "restarted"
    if launched is None:
        yield f"{name} runs on {node}: it had been started, and nobody had told"
        return
    late = ": it had been started, and the answer was lost" if launched.already else ""
    ports = "".join(f", {port} {number}" for port, number in launched.ports)
    yield f"{done} {name} on {node}: g{launched.generation}{ports}{late}"
    if launched.unenforced:
        limits = ", ".join(launched.unenforced)
        yield f"  {node} cannot hold it to its limits of {limits}"
