"""What a pass does by the clock: interval jobs, and letting go what was kept long enough.

That is jobs that finished long ago, what lies unused on nodes, old documents and keys. Each does
nothing, and writes nothing, where nothing is due.
"""

from collections.abc import Collection
from dataclasses import dataclass

from wlctl.errors import Busy, Overtaken, WlctlError
from wlctl.flows import ending, gate, scheduled
from wlctl.flows.done import Done
from wlctl.flows.ending import End
from wlctl.flows.nodes import check_identity
from wlctl.flows.runtime import Runtime
from wlctl.ledger import instances, nodes, packages, upkeep
from wlctl.ledger.store import ReadTx
from wlctl.ledger.upkeep import Pruned
from wlctl.lifecycle.upkeep import (
    DOCUMENT_KEEP_MS,
    KEY_KEEP_MS,
    MINUTE_MS,
    is_collection_due,
    is_past_keep,
)
from wlctl.model.actions import Refused
from wlctl.model.alert import Alert, AlertKind
from wlctl.model.ids import NodeName, PackageId
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Node
from wlctl.model.policy import Action
from wlctl.model.workload import Kind
from wlctl.package import manifest

COLLECT_AGE_MS = 60 * MINUTE_MS
"""As `host.upkeep.COLLECT_AGE_MIN`: so young files are never taken away."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a pass did about what is due.

    Attributes:
        done: What changed, or could not be done.
        alerts: What is wrong by now, whether it is new or not.
    """

    done: tuple[Done, ...] = ()
    alerts: tuple[Alert, ...] = ()


def see_to(rt: Runtime, answered: Collection[NodeName], *, dry_run: bool = False) -> Seen:
    """Do all that a pass does by the clock: run what is due, and let go what was kept long enough.

    Args:
        answered: The nodes that were looked at; what is elsewhere waits.
        dry_run: Say which jobs would be run or unloaded, and do nothing.
    """
    ran = scheduled.run_due(rt, answered, dry_run=dry_run)
    unloaded = unload_finished(rt, answered, dry_run=dry_run)
    collected: list[Done] = []
    if not dry_run:
        collected = collect(rt, answered)
        prune(rt)
    done = (*ran.done, *unloaded.done, *collected)
    return Seen(done, (*ran.alerts, *unloaded.alerts))


def unload_finished(rt: Runtime, answered: Collection[NodeName], *, dry_run: bool = False) -> Seen:
    """Unload the jobs that finished longer ago than their packages keep them; data stays.

    Args:
        answered: The nodes that were looked at; a job elsewhere stays for now.
        dry_run: Say what would be done.
    """
    now_ms = rt.now_ms()
    done, alerts = [], []
    with rt.ledger.read() as tx:
        past = _past_keep(tx, now_ms)
        denied = {one.id: _denied(rt, tx, one) for one in past}
    for one in past:
        why = denied[one.id]
        if why:
            alerts.append(Alert(AlertKind.ACTION_FAILED, one.name, why))
        elif one.node in answered:
            done.append(_unload(rt, one, dry_run=dry_run))
    return Seen(tuple(done), tuple(alerts))


def _denied(rt: Runtime, tx: ReadTx, instance: Instance) -> str:
    node = nodes.get(tx, instance.node)
    verdict = gate.denies(rt, tx, Action.UNLOAD, instance=instance, node=node)
    return "" if verdict is None else f"it is past its time, and {verdict.rule} keeps it"


def _past_keep(tx: ReadTx, now_ms: int) -> list[Instance]:
    known: dict[PackageId, int] = {}
    found = []
    for one in instances.of_kind(tx, Kind.JOB):
        if one.state is not State.FINISHED or one.desired is Desired.UNLOADED:
            continue  # or somebody has asked for it already
        if one.package_id not in known:
            stated = manifest.read(packages.get(tx, one.package_id).manifest.encode())
            known[one.package_id] = stated.workload.lifecycle.keep_ms
        if is_past_keep(one, known[one.package_id], now_ms):
            found.append(one)
    return found


def _unload(rt: Runtime, instance: Instance, *, dry_run: bool) -> Done:
    if dry_run:
        return Done(instance.name, instance.node, None, "dry_run")
    try:
        came = ending.unload_one(rt, instance, as_seen=True)
    except (Busy, Overtaken):
        return Done(instance.name, instance.node, None, "busy")
    except WlctlError as failure:
        kind = AlertKind.ACTION_FAILED
        return Done(instance.name, instance.node, None, "failed", failure.message, kind)
    if came.end in (End.DONE, End.ALREADY):
        return Done(instance.name, instance.node, None, State.UNLOADED.value)
    why = came.detail or came.code or came.end.value
    is_open = came.end in (End.UNPROVEN, End.INDETERMINATE)
    kind = AlertKind.UNPROVEN if is_open else AlertKind.ACTION_FAILED
    return Done(instance.name, instance.node, None, came.end.value, why, kind)


def collect(rt: Runtime, answered: Collection[NodeName]) -> list[Done]:
    """Have nodes take away store files that nothing may still run, and logs kept long enough.

    A node that cannot be asked, or will not, is asked again by a later pass.

    Args:
        answered: The nodes that were looked at.
    """
    now_ms = rt.now_ms()
    with rt.ledger.read() as tx:
        uses = upkeep.uses(tx, now_ms - COLLECT_AGE_MS)
        asked = upkeep.collected_at_ms(tx)
        due = [
            node
            for node in nodes.ls(tx)
            if node.name in answered
            and (use := uses.get(node.name)) is not None
            and is_collection_due(
                now_ms,
                age_ms=COLLECT_AGE_MS,
                since_ms=use.since_ms,
                left_at_ms=use.left_at_ms,
                collected_at_ms=asked.get(node.name),
            )
        ]
    return [done for node in due if (done := _collect_on(rt, node)) is not None]


def _collect_on(rt: Runtime, node: Node) -> Done | None:
    try:
        with rt.connect(node.address) as session:
            found = session.collect(rt.ledger.installation)
            if not isinstance(found, Refused):
                check_identity(node, found.node_id)
    except WlctlError:
        return None
    if isinstance(found, Refused):
        return None
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        upkeep.record_collected(tx, node.name)
    if not (found.files or found.logs):
        return None
    return Done("store", node.name, None, f"{found.files} files and {found.logs} logs removed")


def prune(rt: Runtime) -> Pruned:
    """Let go the documents of old dry runs, and old keys of orders."""
    now_ms = rt.now_ms()
    before = {
        "documents_before_ms": now_ms - DOCUMENT_KEEP_MS,
        "keys_before_ms": now_ms - KEY_KEEP_MS,
    }
    with rt.ledger.read() as tx:
        if not upkeep.is_prunable(tx, **before):
            return Pruned()
    with rt.ledger.write(now_ms, rt.author) as tx:
        return upkeep.prune(tx, **before)
