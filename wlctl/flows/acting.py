"""Carry out what the table says about one copy, on a node that answers, while it is as read."""

from dataclasses import replace

from wlctl.errors import Overtaken
from wlctl.flows import ending, missing, starting, succession
from wlctl.flows.done import Done
from wlctl.flows.ending import End, Ending
from wlctl.flows.intents import walk_to
from wlctl.flows.looking import Look
from wlctl.flows.mirror import mirror
from wlctl.flows.runtime import Runtime
from wlctl.flows.start_intents import Begin, Beginning
from wlctl.ledger import generations, instances, operations
from wlctl.ledger.store import ReadTx
from wlctl.lifecycle.machine import LIVE, UNDERWAY
from wlctl.lifecycle.table import Act
from wlctl.model.alert import AlertKind
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Node
from wlctl.model.workload import Kind


def carry_out(rt: Runtime, node: Node, instance: Instance, act: Act, look: Look) -> Done:
    """Do it, and say what came of it.

    Args:
        instance: As it was read when that was decided.

    Raises:
        Busy, Overtaken: Somebody else is at work on it, or was since.
        WlctlError: It cannot be done now.
    """
    match act:
        case Act.STOP | Act.END_REVOKED | Act.END_LOST | Act.END_ORPHAN:
            return _end(rt, instance, act)
        case Act.DEPART:
            return _gone(rt, instance, act, missing.depart(rt, node, instance))
        case Act.START:
            return _started(act, starting.start_one(rt, instance, as_seen=True))
        case Act.START_AGAIN:
            _lose(rt, instance)
            came = _started(act, starting.start_one(rt, instance, as_seen=True))
            kind = AlertKind.REBOOT_NOT_STARTED
            return replace(came, kind=kind) if came.kind is AlertKind.ACTION_FAILED else came
        case Act.FAIL:
            return _fail(rt, instance, act)
        case Act.ADOPT:
            return _adopt(rt, instance, act, look)
        case Act.PROVE_MISSING:
            return _prove_missing(rt, node, instance, look)
        case Act.NOTHING | Act.LOSE | Act.REPLACE:
            raise AssertionError(f"{act.value} is nothing to do on a node that answers")


def _end(rt: Runtime, instance: Instance, act: Act) -> Done:
    if act is Act.STOP and instance.desired is Desired.STOPPED:
        return _ended(act, ending.stop_one(rt, instance, as_seen=True))
    if act is Act.END_ORPHAN:
        return _ended(act, ending.unload_again(rt, instance), AlertKind.ORPHAN)
    if act is Act.END_LOST:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            _require_as_read(tx, instance)
            succession.give_way(tx, instance)
            instance = instances.get(tx, instance.id)
        return _ended(act, ending.unload_one(rt, instance, as_seen=True), AlertKind.ORPHAN)
    return _ended(act, ending.unload_one(rt, instance, as_seen=True))


def _require_as_read(tx: ReadTx, instance: Instance) -> None:
    """Make sure that what was decided about a copy still holds.

    Raises:
        Overtaken: Somebody was at work on it since, or is now.
    """
    if not is_as_read(tx, instance):
        raise Overtaken(f"somebody else is at work on {instance.name}")


def _lose(rt: Runtime, instance: Instance) -> None:
    """Write down that it is lost."""
    if instance.state is not State.LOST:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            _require_as_read(tx, instance)
            walk_to(tx, instance, State.LOST, "its node was started anew")


def _fail(rt: Runtime, instance: Instance, act: Act) -> Done:
    """Hold a job that may have run: how it ended is not known, and it is not run again."""
    why = "it may have run when it was lost, and how that ended is not known (exit-unknown)"
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        _require_as_read(tx, instance)
        walk_to(tx, instance, State.FAILED, why)
    failed = Done(instance.name, instance.node, act, State.FAILED.value)
    return replace(failed, trouble=waits(instance, why), kind=AlertKind.HELD)


def _adopt(rt: Runtime, instance: Instance, act: Act, look: Look) -> Done:
    """Take back what was lost and was not proven gone, as its node shows it."""
    status = look.of(instance.id)
    assert status is not None, "what its node lists"
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        _require_as_read(tx, instance)
        others = instances.others_of_order(tx, instance.id)
        if any(lives(one) or may_live(one) for one in others):
            raise Overtaken(f"{instance.name} has another copy by now")
        walk_to(tx, instance, State.RUNNING, "its node answers again, and has it")
        instances.hold_as_before(tx, instance.id)
        now = instances.get(tx, instance.id)
        now = mirror(tx, now, status, at_ms=look.at_ms, twice=look.twice)
    return Done(instance.name, instance.node, act, now.state.value)


def _prove_missing(rt: Runtime, node: Node, instance: Instance, look: Look) -> Done:
    if instance.state is State.RESCHEDULED and _was_never_told(rt, instance):
        ended = ending.unload_again(rt, instance)  # a late placement of it is refused from then on
        return _ended(Act.PROVE_MISSING, ended, AlertKind.ORPHAN)
    why = missing.close(rt, node, instance, look)
    lost = f"{node.name} has lost what it knew of it, and {why}" if why else ""
    return _gone(rt, instance, Act.PROVE_MISSING, lost)


def _was_never_told(rt: Runtime, instance: Instance) -> bool:
    """Answer whether a run of it got a number, and nobody ever heard whether it was launched."""
    with rt.ledger.read() as tx:
        runs = generations.of_instance(tx, instance.id)
    return any(run.launch is None and not run.is_gone for run in runs)


def _gone(rt: Runtime, instance: Instance, act: Act, why: str) -> Done:
    if why:
        return Done(instance.name, instance.node, act, "held", why, AlertKind.STATE_LOST)
    with rt.ledger.read() as tx:
        now = instances.get(tx, instance.id)
    return Done(now.name, now.node, act, now.state.value)


def _ended(act: Act, came: Ending, kind: AlertKind = AlertKind.ACTION_FAILED) -> Done:
    done = Done(came.instance.name, came.instance.node, act, came.end.value)
    if came.end in (End.DONE, End.ALREADY):
        return done
    unproven = came.end in (End.UNPROVEN, End.INDETERMINATE)
    if unproven and kind is not AlertKind.ORPHAN:
        kind = AlertKind.UNPROVEN
    return replace(done, trouble=came.detail or came.code or came.end.value, kind=kind)


def _started(act: Act, came: Beginning) -> Done:
    done = Done(came.instance.name, came.instance.node, act, came.begin.value)
    if came.begin in (Begin.DONE, Begin.ALREADY):
        return done
    kinds = {Begin.UNPROVEN: AlertKind.UNPROVEN, Begin.INDETERMINATE: AlertKind.UNSETTLED}
    kind = kinds.get(came.begin, AlertKind.ACTION_FAILED)
    if came.code == "secret-unavailable":
        kind = AlertKind.SECRET_UNAVAILABLE
    return replace(done, trouble=came.detail or came.code or came.begin.value, kind=kind)


def is_as_read(tx: ReadTx, instance: Instance) -> bool:
    """Answer whether nobody was at work on a copy since it was read, nor is now."""
    now = instances.get(tx, instance.id)
    same = (now.state, now.desired, now.generation) == (
        instance.state,
        instance.desired,
        instance.generation,
    )
    return same and operations.holder_of(tx, instance.id) is None


def waits(instance: Instance, reason: str) -> str:
    """Say that it stays as it is until somebody starts it, or it is due, and why."""
    if instance.kind is Kind.INTERVAL:
        return f"{reason}: it runs again when it is due"
    return f"{reason}: it waits for `wlctl start {instance.name}`"


def lives(other: Instance) -> bool:
    """Answer whether another copy of an order does what the order asks for."""
    is_wanted = other.desired is Desired.RUNNING
    return other.state in LIVE and is_wanted and not other.unsettled


def may_live(other: Instance) -> bool:
    """Answer whether it is not known whether another copy does, or soon will."""
    return other.unsettled or other.state in UNDERWAY
