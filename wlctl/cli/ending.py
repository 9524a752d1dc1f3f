"""`wlctl stop` and `wlctl unload`: end copies, and show the proof."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from wlctl.cli import render, times
from wlctl.cli.options import Session, session_of
from wlctl.errors import ExitCode
from wlctl.flows import ending as flow
from wlctl.flows.ending import End, Ending
from wlctl.ledger.generations import evidence_json, word
from wlctl.model.actions import RefusalCode
from wlctl.model.event import Json
from wlctl.model.generation import Proof, Proven

Names = Annotated[
    list[str], typer.Argument(metavar="NAME…", help="Names, ids, or beginnings of ids.")
]
Grace = Annotated[
    str, typer.Option(metavar="TIME", help="Between stop signal and kill, e.g. 30s; else its own.")
]


def stop(
    ctx: typer.Context,
    names: Names,
    grace: Grace = "",
    now: Annotated[bool, typer.Option("--now", help="Kill at once, as --grace 0s.")] = False,
) -> None:
    """Stop copies, and return when it is proven that no process of them is left.

    Proven means: the run is closed so that nothing can enter it any more, its leader and its init
    are gone, its cgroup was empty and could be removed, and no process has its uid. The evidence is
    kept. Capacity and ports are given back then, and not before; the name stays until `unload`.

    Exit 5: not proven; it keeps what it holds, and the same command asks again. Exit 9: the node
    cannot be reached and nothing was done; the wish is recorded, so type it again later.
    """
    session = session_of(ctx)
    grace_ms = _grace_ms(grace, now=now)
    found = [flow.stop(session.runtime, name, grace_ms=grace_ms) for name in names]
    _show(session, found)


def unload(
    ctx: typer.Context,
    names: Names,
    grace: Grace = "",
    now: Annotated[bool, typer.Option("--now", help="Kill at once, as --grace 0s.")] = False,
    purge: Annotated[bool, typer.Option("--purge", help="Remove data it was to keep.")] = False,
) -> None:
    """Stop copies as `stop` does, and remove them; their names are free then.

    Unloading what is gone already succeeds. Data that a package says to keep is kept, and its place
    on the node is said, unless --purge is given.
    """
    session = session_of(ctx)
    if purge:
        session.confirm(f"Remove the data of {', '.join(names)} for good?")
    grace_ms = _grace_ms(grace, now=now)
    found = [flow.unload(session.runtime, name, grace_ms=grace_ms, purge=purge) for name in names]
    _show(session, found)


def _grace_ms(grace: str, *, now: bool) -> int | None:
    if now:
        return 0
    return int(times.duration_s(grace) * 1000) if grace else None


def _show(session: Session, found: Sequence[Ending]) -> None:
    lines = [line for ending in found for line in _lines(ending)]
    told = {"endings": [_json(ending) for ending in found]}
    render.document(session, "wlctl.endings/1", told, lines, name=found[0].instance.name)
    codes = {_exit_code(ending) for ending in found}
    if codes != {ExitCode.DONE}:
        raise typer.Exit(codes.pop() if len(codes) == 1 else ExitCode.PARTIAL)


def _exit_code(ending: Ending) -> ExitCode:
    match ending.end:
        case End.DONE | End.ALREADY:
            return ExitCode.DONE
        case End.UNPROVEN | End.INDETERMINATE:
            return ExitCode.INDETERMINATE
        case End.UNREACHABLE:
            return ExitCode.UNREACHABLE
        case End.DENIED:
            return ExitCode.REFUSED
        case End.REFUSED:
            return ExitCode.BUSY if ending.code == RefusalCode.BUSY else ExitCode.REFUSED


def _json(ending: Ending) -> Json:
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
    name, node = ending.instance.name, ending.instance.node
    done = "stopped" if ending.verb is flow.Verb.STOP else "unloaded"
    again = f"`wlctl {ending.verb.value} {name}`"
    match ending.end:
        case End.DONE:
            yield f"{done} {name} on {node}: {_in_all(ending.proofs)}"
        case End.ALREADY:
            yield f"{name} is {ending.instance.state.value} already"
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
    for proof in ending.proofs:
        yield f"  {_proof_line(proof)}"
    if ending.kept_data:
        yield f"  its data is kept on {node}: {ending.kept_data}"


def _in_all(proofs: Sequence[Proof]) -> str:
    return "proven, no process of it is left" if proofs else "it never ran"


def _proof_line(proof: Proof) -> str:
    read = proof.evidence
    said = proof.by if isinstance(proof, Proven) else proof.why
    status = "unknown" if read.exit_status is None else str(read.exit_status)
    how = f", {read.how}, exit status {status}" if read.launched else ""
    oom = ", out of memory" if read.oom_kills else ""
    inode = f", cgroup inode {read.cgroup_inode}" if read.cgroup_inode is not None else ""
    return f"g{read.generation} {word(proof)}: {said}{how}{oom}{inode}"
