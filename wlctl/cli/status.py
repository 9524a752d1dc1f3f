"""`wlctl status` and `wlctl history`: how copies are, where ledger and node differ, their past."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from wlctl.cli import render, targets, times
from wlctl.cli.listing import trouble_json, trouble_line
from wlctl.cli.options import Output, session_of
from wlctl.cli.targets import Everything, Labels, Names, OnNode, Workload
from wlctl.errors import ExitCode
from wlctl.flows import status as flow
from wlctl.flows.status import Status
from wlctl.ledger.instances import Step
from wlctl.lifecycle.seen import current_of, status_text
from wlctl.model.actions import GenerationStatus
from wlctl.model.event import Json, rfc3339

MARGIN = 10

Stored = Annotated[bool, typer.Option("--stored", help="Ask no node: say what is known.")]


def status(
    ctx: typer.Context,
    names: Names = None,
    workload: Workload = "",
    node: OnNode = "",
    label: Labels = None,
    everything: Everything = False,
    stored: Stored = False,
) -> None:
    """Ask the nodes of copies how these are, and say where ledger and node differ.

    It changes nothing, the ledger included. Of a node that does not answer, what is known is shown
    with its age, and the exit code is 9.
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
    found = flow.status(session.runtime, chosen, stored=stored)
    if session.output is Output.NAME:
        for one in found:
            render.document(session, "", {}, (), name=one.instance.name)
    elif session.output is Output.JSONL:
        for one in found:
            render.document(session, "wlctl.status/1", _json(one), ())
    else:
        now_ms = session.runtime.now_ms()
        lines = [line for one in found for line in _lines(one, now_ms)]
        value: dict[str, Json] = {"items": [_json(one) for one in found]}
        render.document(session, "wlctl.status/1", value, lines)
    codes = {one.failure.exit_code for one in found if one.failure is not None}
    if codes:
        is_all = len(codes) == 1 and all(one.failure is not None for one in found)
        raise typer.Exit(codes.pop() if is_all else ExitCode.PARTIAL)


def _json(one: Status) -> dict[str, Json]:
    instance, launch = one.instance, dict(one.run.launch or {}) if one.run else {}
    run = None if one.seen is None else current_of(one.seen)
    return {
        "name": instance.name,
        "instance": instance.id,
        "node": instance.node,
        "workload": instance.workload,
        "version": instance.version,
        "kind": instance.kind.value,
        "state": instance.state.value,
        "desired": instance.desired.value,
        "unsettled": instance.unsettled,
        "since": rfc3339(instance.since_ms),
        "generation": instance.generation,
        "restarts": max(0, instance.generation - 1),
        "supervised_restarts": _restarts_json(one),
        "ports": dict(launch.get("ports", ())),
        "containment": launch.get("containment"),
        "confined": launch.get("containment") == "isolated" if launch else None,
        "unenforced": list(launch.get("unenforced", ())),
        "data_dir": launch.get("data_dir"),
        "node_answers": one.seen is not None,
        "seen_at": None if one.at_ms is None else rfc3339(one.at_ms),
        "seen": None if run is None else _seen_json(run),
        "failure": "" if one.failure is None else one.failure.code,
        "differences": list(one.differences),
        "trouble": trouble_json(one.trouble),
    }


def _restarts_json(one: Status) -> dict[str, Json] | None:
    policy = None if one.seen is None else one.seen.restarts
    if policy is None:
        return None
    return {
        "within_window": policy.within,
        "max": policy.most,
        "window_ms": policy.window_ms,
        "held": policy.held,
        "why": policy.why,
    }


def _seen_json(run: GenerationStatus) -> dict[str, Json]:
    return {
        "generation": run.number,
        "leader": run.leader.value,
        "pid": run.pid,
        "uid": run.uid,
        "populated": run.populated,
        "exit_status": run.exit_status,
        "oom_kills": run.oom_kills,
        "health": run.health,
        "misses": run.misses,
        "closed": run.closed,
    }


def _lines(one: Status, now_ms: int) -> Iterator[str]:
    instance = one.instance
    unsettled = ", unsettled" if instance.unsettled else ""
    since = times.ago(instance.since_ms, now_ms)
    yield f"{instance.name} on {instance.node}: {instance.state.value} since {since}{unsettled}"
    for text in one.differences:
        yield f"  ! {text}"
    if one.trouble is not None:
        yield f"  ! {trouble_line(one.trouble, now_ms)}"
    if one.failure is not None:
        yield f"  ! {instance.node} cannot be asked: {one.failure.message} ({one.failure.code})"
    seen = "now" if one.seen is not None else f"{times.ago(one.at_ms, now_ms)} ago"
    yield _line("wanted", instance.desired.value)
    yield _line("seen", "never" if one.at_ms is None else seen)
    yield _line("workload", f"{instance.workload} {instance.version} ({instance.kind.value})")
    yield _line("instance", instance.id)
    yield from _run_lines(one)


def _run_lines(one: Status) -> Iterator[str]:
    run = None if one.seen is None else current_of(one.seen)
    if one.instance.generation == 0:
        yield _line("run", "none so far")
        return
    number = one.instance.generation if run is None else run.number
    again = number - 1
    times_ = f", started again {again} time{'s' if again > 1 else ''}" if again else ""
    yield _line("run", f"g{number}{_leader(run)}{times_}")
    yield from _restart_lines(one)
    if run is not None and run.health:
        failed = render.counted(run.misses, "check")
        misses = f", {failed} in a row failed" if run.misses else ""
        yield _line("health", f"{run.health}{misses}")
    if run is not None and run.oom_kills:
        yield _line("memory", f"the kernel killed {run.oom_kills} of it for want of memory")
    launch: Mapping[str, Any] = (one.run.launch if one.run else None) or {}
    if launch:
        yield from _launch_lines(launch)


def _launch_lines(launch: Mapping[str, Any]) -> Iterator[str]:
    containment = launch["containment"]
    yield _line("confined", f"{'yes' if containment == 'isolated' else 'no'}, {containment}")
    ports = ", ".join(f"{name} {number}" for name, number in launch["ports"])
    if ports:
        yield _line("ports", ports)
    unenforced = ", ".join(launch["unenforced"])
    yield _line("limits", f"not enforced here: {unenforced}" if unenforced else "enforced")
    yield _line("data", launch["data_dir"])


def _restart_lines(one: Status) -> Iterator[str]:
    """Say how often its supervisor began it again, and why it does not any more."""
    policy = None if one.seen is None else one.seen.restarts
    if policy is None:
        return
    window = times.ago(0, policy.window_ms)
    yield _line("restarts", f"{policy.within} of {policy.most} within {window}, by its supervisor")
    if policy.held:
        yield _line("held", f"{policy.why} ({policy.held}); `wlctl start {one.instance.name}`")


def _leader(run: GenerationStatus | None) -> str:
    if run is None:
        return ""
    if run.exit_status is not None:
        return f": ended with {status_text(run.exit_status)}"
    pid = "" if run.pid is None else f", pid {run.pid}"
    return f": leader {run.leader.value}{pid}"


def _line(title: str, text: str) -> str:
    return f"  {title:<{MARGIN}}{text}"


def history(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Name, id, or beginning of an id.")],
) -> None:
    """List every step of a copy's life with its reason, and what was read that says so.

    Also of one that was unloaded. SEQ is the event of the chain that tells the same.
    """
    session = session_of(ctx)
    (instance,) = targets.find(
        session, [name], workload="", node="", labels=None, everything=False, gone=True
    )
    steps = flow.history(session.runtime, instance)
    render.rows(session, "wlctl.history/1", _COLUMNS, steps)


def _evidence(step: Step) -> str:
    """Say in a few words what was read: of a proof each run, of a look what it saw."""
    found = step.evidence
    if not found:
        return ""
    runs = [f"{run} {_proof(read)}" for run, read in found.items() if isinstance(read, dict)]
    if runs:
        return "; ".join(runs)
    words = [f"leader {found['leader']}"] if "leader" in found else []
    if found.get("exit_status") is not None:
        words.append(status_text(int(found["exit_status"])))
    return ", ".join(words)


def _proof(read: Mapping[str, Any]) -> str:
    words = [str(read["judgement"])]
    if read.get("how"):
        words.append(str(read["how"]))
    if read.get("exit_status") is not None:
        words.append(status_text(int(read["exit_status"])))
    return ", ".join(words)


_COLUMNS: Sequence[render.Column[Step]] = (
    render.Column("SEQ", "seq", lambda step: step.seq),
    render.Column(
        "AT", "at", lambda step: rfc3339(step.at_ms), lambda step: times.local(step.at_ms)
    ),
    render.Column("FROM", "from", lambda step: step.origin.value if step.origin else None),
    render.Column("TO", "to", lambda step: step.state.value),
    render.Column("REASON", "reason", lambda step: step.reason),
    render.Column("EVIDENCE", "evidence", lambda step: _plain(step.evidence), _evidence),
)


def _plain(found: Mapping[str, Any] | None) -> Json:
    return None if found is None else dict(found)
