"""Whose is the name while an order has two copies: the new one takes it when it is there."""

from wlctl.flows.runtime import Runtime
from wlctl.ledger import instances, operations, troubles
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.lifecycle.machine import UNDERWAY
from wlctl.model.event import Json
from wlctl.model.instance import CLOSED, Desired, Instance, State


def take_places(rt: Runtime) -> list[Instance]:
    """Give every copy that runs in another's place its name; answer those that got it.

    It is asked after each placement, and by each pass for what a killed one left.
    """
    with rt.ledger.read() as tx:
        ready = [one.id for one in instances.standing_in(tx) if _is_ready(tx, one)]
    if not ready:
        return []
    taken = []
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        for id_ in ready:
            new = instances.get(tx, id_)
            if new.replaces is not None and _is_ready(tx, new) and _take_place(tx, new):
                taken.append(instances.get(tx, id_))
    return taken


def _is_ready(tx: ReadTx, new: Instance) -> bool:
    """Answer whether what it replaces is lost or gone, and it got to its node itself.

    What has become of it there since, and that it was lost too, is for its own place.
    """
    if new.replaces in (None, new.id) or new.unsettled:
        return False
    assert new.replaces is not None
    old = instances.get(tx, new.replaces)
    is_there = new.state not in UNDERWAY and new.desired is not Desired.UNLOADED
    return old.state in CLOSED or (is_there and old.state is State.LOST)


def _take_place(tx: WriteTx, new: Instance) -> bool:
    assert new.replaces is not None
    old = instances.get(tx, new.replaces)
    if operations.holder_of(tx, old.id) is not None:
        return False  # a verb is at work on it; what it asks for is seen by the next pass
    if is_too_late(tx, new):
        return False
    if old.state is State.LOST:
        evidence: dict[str, Json] = {"by": new.id, "node": new.node}
        reason = f"its place was taken by {new.id} on {new.node}"
        instances.advance(tx, old, (State.RESCHEDULED,), reason, evidence)
    asked_since = old.replaces is None and old.desired is not Desired.RUNNING
    desired = old.desired if asked_since else new.desired
    instances.change(tx, new.id, replaces=None, desired=desired.value)
    troubles.clear(tx, old.id)
    return True


def is_too_late(tx: ReadTx, new: Instance) -> bool:
    """Answer whether the name that a copy stands in for is somebody else's by now."""
    holder = instances.holder_of(tx, new.name)
    return holder is not None and holder.id not in (new.id, new.replaces)


def give_way(tx: WriteTx, old: Instance) -> None:
    """Take the name from a copy that another one stands in for: from then on it is only ended."""
    instances.change(tx, old.id, replaces=old.id, desired=Desired.UNLOADED.value)
