"""Let go of what killed moves have left, which nobody is at work on any more."""

from collections.abc import Sequence
from contextlib import suppress

from wlctl.errors import Busy
from wlctl.flows import recover, rivals, succession
from wlctl.flows.done import Done
from wlctl.flows.runtime import Runtime
from wlctl.ledger import instances, operations, troubles
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.lifecycle.table import Act
from wlctl.model.alert import AlertKind
from wlctl.model.instance import CLOSED, Desired, Instance, State


def scope_of(old: Instance) -> str:
    """Name what a move holds from its beginning to its end: who finds it free, finds no move."""
    return f"move {old.id}"


def let_go(rt: Runtime) -> list[Done]:
    """Let go of what killed moves have left: a new copy beside an old one that serves, or a halt.

    Both are only written down: the one is to be gone then, the other to run, and the pass sees to
    it as to all that is wanted. A move that goes on is left alone.
    """
    with rt.ledger.read() as tx:
        beside = [one for one in instances.standing_in(tx) if _is_beside(tx, one)]
        kept = troubles.ls(tx).items()
        halted = [id_ for id_, trouble in kept if trouble.kind is AlertKind.MOVE_CUT]
        old = {one.replaces for one in beside if one.replaces is not None} | set(halted)
        left = instances.of_ids(tx, old)
    done: list[Done] = []
    for one in left:
        with suppress(Busy), operations.turn(rt.ledger, scope_of(one), timeout_s=0):
            done += _let_go(rt, one, [new for new in beside if new.replaces == one.id])
    return done


def _let_go(rt: Runtime, old: Instance, beside: Sequence[Instance]) -> list[Done]:
    """Write down what is wanted where a move was cut off; nobody moves that copy now."""
    done = []
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        for new in (instances.get(tx, one.id) for one in beside):
            if _is_beside(tx, new):
                give_up(tx, new)
                done.append(Done(new.name, new.node, Act.STOP, "given up"))
        if want_again(tx, old):
            done.append(Done(old.name, old.node, Act.START, "wanted again"))
    return done


def give_up(tx: WriteTx, new: Instance) -> None:
    """Let a copy that was to take a place be only ended; it stands in the way until it is gone."""
    instances.change(tx, new.id, desired=Desired.UNLOADED.value)


def want_again(tx: WriteTx, old: Instance) -> bool:
    """Let a copy that a move has stopped run again, once nothing else of its order may run.

    Not where somebody wants it stopped by now: that has taken the halt away.
    """
    kept, now = troubles.find(tx, old.id), instances.get(tx, old.id)
    if kept is None or kept.kind is not AlertKind.MOVE_CUT or now.state in CLOSED:
        return False
    if any(rivals.may_run(tx, one) for one in instances.others_of_order(tx, now.id)):
        return False
    if now.desired is Desired.STOPPED:
        instances.change(tx, now.id, desired=Desired.RUNNING.value)
    troubles.clear(tx, now.id)
    return True


def _is_beside(tx: ReadTx, new: Instance) -> bool:
    if new.replaces in (None, new.id) or recover.is_open(tx, new):
        return False
    assert new.replaces is not None
    old = instances.get(tx, new.replaces)
    serves = old.state not in CLOSED and old.state is not State.LOST
    return serves or succession.is_too_late(tx, new)
