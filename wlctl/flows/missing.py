"""A node lists a copy no more: what proves that it is gone.

Where it was unloaded on the node on purpose, by whomever, what was read then is kept there and is
judged. Where the node has lost what it knew of the copy nothing of it can be read: only a boot that
began after the copy was last heard of ends what ran before; anything less holds all it holds.
"""

from wlctl.flows import operating, rivals
from wlctl.flows.intents import walk_to
from wlctl.flows.looking import Look
from wlctl.flows.nodes import check_identity
from wlctl.flows.runtime import Runtime
from wlctl.flows.settling import last_reading_ms
from wlctl.ledger import generations, instances, operations
from wlctl.ledger.generations import Generation
from wlctl.ledger.store import WriteTx
from wlctl.lifecycle.machine import IllegalTransition, walk
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import Refused
from wlctl.model.generation import CgroupEnd, Liveliness, Proof, Readings
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Node


def close(rt: Runtime, node: Node, instance: Instance, look: Look) -> str:
    """Prove a missing copy gone and close it; say why that cannot be done, empty when it is.

    What is meant to run is lost from then on, and can be placed anew; the rest is unloaded.
    """
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        now = instances.get(tx, instance.id)
        if now.state is not instance.state or operations.holder_of(tx, now.id) is not None:
            return ""  # somebody was at work on it since the look
        why = _unproven(tx, node, now, look)
        if why:
            return why
        is_over = now.state in (State.RESCHEDULED, State.REVOKED)
        to_run = now.desired is Desired.RUNNING and not is_over
        goal = State.LOST if to_run else State.UNLOADED
        reason = "its node has lost it, and nothing of it runs"
        if rivals.is_replaced_and_attested(tx, now):
            reason = f"the machine that was {node.name} before was attested dead"
        if now.state is not goal and not isinstance(walk(now.state, goal), IllegalTransition):
            walk_to(tx, now, goal, reason)
        instances.release(tx, now.id)
        instances.change(tx, now.id, unsettled=False, health="")
    return ""


def _unproven(tx: WriteTx, node: Node, now: Instance, look: Look) -> str:
    """Say what of it is not proven gone; no boot of another machine proves anything of it."""
    runs = [run for run in generations.of_instance(tx, now.id) if not run.is_gone]
    if not runs or rivals.is_replaced_and_attested(tx, now):
        return ""
    if rivals.is_replaced(tx, now):
        vouch = f"`wlctl node attest-dead {node.name} --replaced`"
        return f"it was placed on the machine that was {node.name} before: {vouch} releases it"
    return operating.keep(tx, now, [_judge(node, now, run, look) for run in runs])


def depart(rt: Runtime, node: Node, instance: Instance) -> str:
    """Close what was unloaded on its node; say why that cannot be done, empty when it is.

    Raises:
        WlctlError: The node cannot be asked.
    """
    with rt.connect(node.address) as session:
        told = session.prove(rt.ledger.installation, instance.id)
    if isinstance(told, Refused):
        return told.detail
    check_identity(node, told.node_id)
    now_ms = rt.now_ms()
    with rt.ledger.write(now_ms, rt.author) as tx:
        now = instances.get(tx, instance.id)
        if now.state is not instance.state or operations.holder_of(tx, now.id) is not None:
            return ""  # somebody was at work on it since the look
        runs = generations.of_instance(tx, now.id)
        why = operating.keep(tx, now, operating.prove(node, now, runs, told.readings, now_ms))
        if why:
            return why
        walk_to(tx, now, State.UNLOADED, "it was unloaded on its node, and nothing of it runs")
        instances.release(tx, now.id)
        done = {"unsettled": False, "health": "", "desired": Desired.UNLOADED.value}
        instances.change(tx, now.id, **done)
    return ""


def _judge(node: Node, instance: Instance, run: Generation, look: Look) -> Proof:
    """Judge a run by its launch as the ledger knows it, and by the boot that answered."""
    status = look.status
    readings = Readings(
        generation=run.number,
        closed=True,
        launched=True,
        recorded=run.launch is not None,
        boot_id=status.boot_id,
        recorded_boot_id=str(run.launch["boot_id"]) if run.launch is not None else "",
        containment=None,
        leader=Liveliness.UNKNOWN,
        init=Liveliness.UNKNOWN,
        ctl=CgroupEnd.MISSING_UNKNOWN,
        limit=CgroupEnd.MISSING_UNKNOWN,
        cgroup_inode=None,
        uid=None,
        uid_left=None,
        how="",
        exit_status=None,
        read_at_ms=status.uptime_ms,
    )
    return judge(
        readings,
        boot_began_at_ms=look.at_ms - status.uptime_ms,
        last_reading_at_ms=last_reading_ms(node, instance, readings),
    )
