"""`wlctl ps`: what runs where, as the ledger has it."""

import typer

from wlctl.cli import render, targets, times
from wlctl.cli.escape import visible
from wlctl.cli.options import session_of
from wlctl.flows import listing as flow
from wlctl.flows.listing import Listed
from wlctl.ledger.troubles import Trouble
from wlctl.model.event import Json, rfc3339
from wlctl.model.generation import Containment
from wlctl.model.instance import State

ENDED = frozenset({State.STOPPED, State.FINISHED, State.FAILED})


def ps(
    ctx: typer.Context,
    names: targets.Names = None,
    workload: targets.Workload = "",
    node: targets.OnNode = "",
    label: targets.Labels = None,
) -> None:
    """List the current copies as they were seen last.

    SEEN is the age of the last contact with the node.

    RESTARTS counts the runs after the first, whoever began them; lately are those that its node
    began by itself within ten minutes, as far as the ledger was told of them. ACTUAL names what is
    wrong with a copy, as the last pass of `reconcile` found it, and the nodes where one that it was
    placed anew for may still run (at least once). DUE, with `-o wide`, is when an interval job runs
    next. No node is asked: `wlctl status` does that. When passes of `reconcile` are missing, a line
    on stderr says so.
    """
    session = session_of(ctx)
    is_some = bool(names or workload or node or label)
    chosen = (
        targets.find(session, names, workload=workload, node=node, labels=label, everything=False)
        if is_some
        else None
    )
    now_ms = session.runtime.now_ms()
    listed = flow.ps(session.runtime, chosen)
    none = "" if is_some else "nothing is placed"  # who chose some was told already
    render.rows(session, "wlctl.ps/1", _columns(now_ms), listed, none=none)
    if missing := flow.overdue(session.runtime, listed):
        session.note(f"{_overdue(missing, now_ms)}: `wlctl reconcile`, and `wlctl help cron`")


def _columns(now_ms: int) -> list[render.Column[Listed]]:
    return [
        render.Column("NAME", "name", lambda one: one.instance.name),
        render.Column("NODE", "node", lambda one: one.instance.node),
        render.Column("DESIRED", "desired", lambda one: one.instance.desired.value),
        render.Column("ACTUAL", "actual", lambda one: one.instance.state.value, _actual),
        render.Column("HEALTH", "health", lambda one: one.instance.health),
        render.Column("VERSION", "version", lambda one: one.instance.version),
        render.Column("PORTS", "ports", lambda one: dict(one.ports), _ports),
        render.Column("RESTARTS", "restarts", lambda one: one.restarts, _restarts),
        render.Column("", "restarts_lately", lambda one: one.restarts_lately),
        render.Column(
            "SINCE",
            "since",
            lambda one: rfc3339(one.instance.since_ms),
            lambda one: times.ago(one.instance.since_ms, now_ms),
        ),
        render.Column(
            "SEEN",
            "seen_at",
            lambda one: None if one.seen_at_ms is None else rfc3339(one.seen_at_ms),
            lambda one: times.ago(one.seen_at_ms, now_ms),
        ),
        render.Column(
            "DUE",
            "due_at",
            lambda one: None if one.due_at_ms is None else rfc3339(one.due_at_ms),
            lambda one: times.ago(one.due_at_ms, now_ms),
            wide=True,
        ),
        render.Column("WORKLOAD", "workload", lambda one: one.instance.workload, wide=True),
        render.Column("INSTANCE", "instance", lambda one: one.instance.id, wide=True),
        render.Column("RUN", "generation", lambda one: one.instance.generation, wide=True),
        render.Column("CONFINED", "confined", lambda one: one.confined, _confined, wide=True),
        render.Column("", "containment", lambda one: one.containment or None),
        render.Column("", "unsettled", lambda one: one.instance.unsettled),
        render.Column("", "trouble", lambda one: trouble_json(one.trouble)),
        render.Column("", "may_run_on", lambda one: list(one.may_run_on)),
        render.Column("", "package", lambda one: one.instance.package_id),
    ]


def _overdue(missing: flow.Overdue, now_ms: int) -> str:
    if missing.last_at_ms is None:
        return "this is as the last commands left it, since no pass of reconcile ever ran"
    return f"the last pass of reconcile was {times.ago(missing.last_at_ms, now_ms)} ago"


def _actual(one: Listed) -> str:
    remarks = ["unsettled"] if one.instance.unsettled else []
    if one.containment == Containment.LEADER_ONLY.value:
        remarks.append(one.containment)
    if one.trouble is not None:
        remarks.append(one.trouble.kind.value)
    if one.may_run_on:
        remarks.append(f"may also run on {', '.join(one.may_run_on)}")
    remark = f" ({', '.join(remarks)})" if remarks else ""
    return f"{one.instance.state.value}{remark}"


def trouble_json(trouble: Trouble | None) -> dict[str, Json] | None:
    """Say what is wrong with a copy for programs."""
    if trouble is None:
        return None
    until = rfc3339(trouble.until_ms) if trouble.until_ms else None
    return {"kind": trouble.kind.value, "why": trouble.why, "until": until}


def trouble_line(trouble: Trouble, now_ms: int) -> str:
    """Say what is wrong with a copy for people, and for how long where that is known."""
    said = f"{trouble.kind.value}: {trouble.why}"
    if trouble.until_ms <= now_ms:
        return said
    what = "it is tried again" if trouble.tries else "that is over"
    return f"{said}; {what} in {times.ago(now_ms, trouble.until_ms)}"


def _confined(one: Listed) -> str:
    if one.confined is None:
        return "-"
    return "yes" if one.confined else f"no, {one.containment}"


def _restarts(one: Listed) -> str:
    return (
        f"{one.restarts} ({one.restarts_lately} lately)"
        if one.restarts_lately
        else str(one.restarts)
    )


def _ports(one: Listed) -> str:
    if one.instance.state in ENDED:
        return "-"  # they were given back
    return ",".join(f"{visible(name)}:{number}" for name, number in one.ports) or "-"
