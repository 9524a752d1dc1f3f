"""`wlctl stop` and `wlctl unload`: end copies, and show the proof."""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import typer

from wlctl.cli import targets, times
from wlctl.cli.options import Session, session_of
from wlctl.cli.targets import DryRun, Everything, Labels, Names, OnNode, Workload
from wlctl.errors import ExitCode, UsageError
from wlctl.flows import ending as flow
from wlctl.flows.ending import End, Ending, Verb
from wlctl.ledger.generations import evidence_json, word
from wlctl.model.actions import RefusalCode
from wlctl.model.event import Json
from wlctl.model.generation import Proof, Proven
from wlctl.model.instance import Instance

Grace = Annotated[
    str, typer.Option(metavar="TIME", help="Between stop signal and kill, e.g. 30s; else its own.")
]
Now = Annotated[bool, typer.Option("--now", help="Kill at once, as --grace 0s.")]
Timeout = Annotated[
    str, typer.Option(metavar="TIME", help="Wait at most so long for the node's answer.")
]


def stop(
    ctx: typer.Context,
    names: Names = None,
    workload: Workload = "",
    node: OnNode = "",
    label: Labels = None,
    everything: Everything = False,
    grace: Grace = "",
    now: Now = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Ask them to end, and wait for no proof.")
    ] = False,
    timeout: Timeout = "",
    dry_run: DryRun = False,
) -> None:
    """Stop copies, and return when it is proven that no process of them is left.

    Proven means: the run is closed so that nothing can enter it any more, its leader and its init
    are gone, its cgroup was empty and could be removed, and no process has its uid. The evidence is
    kept. Capacity and ports are given back then, and not before; the name stays until `unload`.

    --no-wait closes the run and sends its stop signal; what is left is ended, and proven gone, by
    the next stop or by `wlctl reconcile`.

    Exit 5: not proven, or no answer in time; it keeps what it holds, and the same command asks
    again. Exit 9: the node cannot be reached and nothing was done; the wish is recorded, so type it
    again later.
    """
    session = session_of(ctx)
    grace_ms = grace_ms_of(grace, now=now)
    chosen = targets.find(
        session, names, workload=workload, node=node, labels=label, everything=everything
    )
    if dry_run:
        targets.show_only(session, Verb.STOP.value, chosen)
        return
    within_s = times.duration_s(timeout, of="--timeout") if timeout else None
    _answer(
        session,
        chosen,
        lambda one: flow.stop_one(
            session.runtime, one, grace_ms=grace_ms, wait=not no_wait, within_s=within_s
        ),
    )


def unload(
    ctx: typer.Context,
    names: Names = None,
    workload: Workload = "",
    node: OnNode = "",
    label: Labels = None,
    everything: Everything = False,
    grace: Grace = "",
    now: Now = False,
    purge: Annotated[bool, typer.Option("--purge", help="Remove data it was to keep.")] = False,
    timeout: Timeout = "",
    dry_run: DryRun = False,
) -> None:
    """Stop copies as `stop` does, and remove them; their names are free then.

    Unloading what is gone already succeeds. Data that a package says to keep is kept, and its place
    on the node is said, unless --purge is given.
    """
    session = session_of(ctx)
    grace_ms = grace_ms_of(grace, now=now)
    chosen = targets.find(
        session,
        names,
        workload=workload,
        node=node,
        labels=label,
        everything=everything,
        gone=True,
    )
    if dry_run:
        targets.show_only(session, Verb.UNLOAD.value, chosen)
        return
    if purge and chosen:
        session.confirm(f"Remove the data of {', '.join(one.name for one in chosen)} for good?")
    within_s = times.duration_s(timeout, of="--timeout") if timeout else None
    _answer(
        session,
        chosen,
        lambda one: flow.unload_one(
            session.runtime, one, grace_ms=grace_ms, purge=purge, within_s=within_s
        ),
    )


def grace_ms_of(grace: str, *, now: bool) -> int | None:
    """Read how long a copy has between stop signal and kill; None for its package's own word.

    Raises:
        UsageError: It is no duration, or two are given.
    """
    if now and grace:
        raise UsageError("--now is --grace 0s, so only one of them", hint="leave one out")
    if now:
        return 0
    return int(times.duration_s(grace, of="--grace") * 1000) if grace else None


def _answer(
    session: Session, chosen: tuple[Instance, ...], act: Callable[[Instance], Ending]
) -> None:
    targets.answer(
        session,
        chosen,
        act,
        schema="wlctl.endings/1",
        key="endings",
        lines_of=_lines,
        json_of=_json,
        code_of=_exit_code,
    )


def _exit_code(ending: Ending) -> ExitCode:
    match ending.end:
        case End.DONE | End.ALREADY | End.ASKED:
            return ExitCode.DONE
        case End.UNPROVEN | End.INDETERMINATE:
            return ExitCode.INDETERMINATE
        case End.UNREACHABLE:
            return ExitCode.UNREACHABLE
        case End.DENIED:
            return ExitCode.REFUSED
        case End.REFUSED:
            return ExitCode.BUSY if ending.code == RefusalCode.BUSY else ExitCode.REFUSED


def _json(ending: Ending) -> dict[str, Json]:
    return {
        "name": ending.instance.name,
        "instance": ending.instance.id,
        "node": ending.instance.node,
        "outcome": ending.end.value,
        "state": ending.instance.state.value,
        "code": ending.code,
        "detail": ending.detail,
        "proofs": [evidence_json(proof) for proof in ending.proofs],
        "kept_data": ending.kept_data,
    }


def _lines(ending: Ending) -> Iterator[str]:
    yield from _outcome(ending)
    yield from _details(ending)


def _outcome(ending: Ending) -> Iterator[str]:
    name, node = ending.instance.name, ending.instance.node
    done = "stopped" if ending.verb is Verb.STOP else "unloaded"
    again = f"`wlctl {ending.verb.value} {name}`"
    match ending.end:
        case End.DONE:
            yield f"{done} {name} on {node}: {_in_all(ending.proofs)}"
        case End.ALREADY:
            yield f"{name} is {ending.instance.state.value} already"
        case End.ASKED:
            yield f"{name} on {node} was asked to end"
            yield f"  it keeps what it holds until {again} proves that it is gone"
        case End.UNPROVEN:
            yield f"{name} on {node} is not proven gone: {ending.detail}"
            yield f"  it keeps what it holds; {again} asks again"
        case End.UNREACHABLE:
            yield f"{node} cannot be reached ({ending.code}): {ending.detail}"
            yield f"  nothing was done; the wish is recorded, {again} carries it out later"
        case End.INDETERMINATE:
            yield f"the answer of {node} was lost: {ending.detail}"
            yield f"  {name} keeps what it holds; {again} asks again"
        case End.REFUSED:
            yield f"{node} refused ({ending.code}): {ending.detail}"
        case End.DENIED:
            yield f"{name} on {node} was left as it is ({ending.code}): {ending.detail}"


def _details(ending: Ending) -> Iterator[str]:
    for proof in ending.proofs:
        yield f"  {proof_line(proof)}"
    if ending.kept_data:
        yield f"  its data is kept on {ending.instance.node}: {ending.kept_data}"


def _in_all(proofs: Sequence[Proof]) -> str:
    return "proven, no process of it is left" if proofs else "it never ran"


def proof_line(proof: Proof) -> str:
    """Say how a run was judged, and by what."""
    read = proof.evidence
    said = proof.by if isinstance(proof, Proven) else proof.why
    status = "unknown" if read.exit_status is None else str(read.exit_status)
    how = f", {read.how}, exit status {status}" if read.how else ""
    oom = ", out of memory" if read.oom_kills else ""
    inode = f", cgroup inode {read.cgroup_inode}" if read.cgroup_inode is not None else ""
    return f"g{read.generation} {word(proof)}: {said}{how}{oom}{inode}"
