"""What ran on a dead node is lost; so many of the lost as the budget allows are placed anew."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial

from wlctl.errors import Busy, Overtaken
from wlctl.flows import fanout, leasing, operating, replacing, rivals, staged, succession
from wlctl.flows.done import Done
from wlctl.flows.intents import walk_to
from wlctl.flows.replacing import Begun, Came, Replaced
from wlctl.flows.runtime import Runtime
from wlctl.ledger import instances, operations, troubles
from wlctl.ledger.store import ReadTx
from wlctl.ledger.troubles import Trouble
from wlctl.lifecycle.machine import UNDERWAY
from wlctl.lifecycle.table import Act, Case, decide
from wlctl.model.alert import AlertKind
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Liveness

REASON = "its node is dead"


def lose(rt: Runtime, dead: Collection[NodeName], *, dry_run: bool) -> list[Done]:
    """Write down what is lost with its node; what somebody is at work on is left alone.

    Of a copy that is unsettled nothing can be said: it stays so, and is not placed anew, unless it
    has a lease, and that is over.
    """
    if not dead:
        return []
    if not dry_run:
        _take_over_left(rt, dead)
        _settle_by_leases(rt, dead)
        _say_unsettled(rt, dead)
    with rt.ledger.read() as tx:
        copies = instances.current_on(tx, dead)
        lost = [one.id for one in copies if _is_lost(tx, one)]
    if dry_run or not lost:
        return [Done(one.name, one.node, Act.LOSE, "dry_run") for one in copies if one.id in lost]
    done = []
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        for id_ in lost:
            now = instances.get(tx, id_)
            if _is_lost(tx, now):
                walk_to(tx, now, State.LOST, REASON)
                done.append(Done(now.name, now.node, Act.LOSE, State.LOST.value))
    return done


def _take_over_left(rt: Runtime, dead: Collection[NodeName]) -> None:
    """Close what dead processes left open there: it cannot be finished before its node is back."""
    with rt.ledger.read() as tx:
        scopes = {holder.operation.scope for holder in operations.holders(tx)}
        left = [one.id for one in instances.current_on(tx, dead) if one.id in scopes]
    for id_ in left:
        with (
            suppress(Busy),
            operations.turn(rt.ledger, id_, timeout_s=0) as turn,
            rt.ledger.write(rt.now_ms(), rt.author) as tx,
        ):
            operating.take_over(tx, turn, rt.new_token())


def _settle_by_leases(rt: Runtime, dead: Collection[NodeName]) -> None:
    """Settle what a lease has ended, whatever became of what was sent and never answered.

    What was to be placed there is lost then: nothing would ask its node for it any more.
    """
    now = rt.boot_time()
    with rt.ledger.read() as tx:
        open_ = [one for one in instances.current_on(tx, dead) if one.unsettled]
        left = [
            (one, leasing.left_ms(tx, one, now))
            for one in filter(_may_run_by_lease, open_)
            if staged.lease_of(tx, one) is not None
        ]
    for one, left_ms in left:
        if left_ms is None:
            leasing.count_anew(rt, one, now)
        if left_ms != 0:
            continue
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            is_same = instances.get(tx, one.id) == one and operations.holder_of(tx, one.id) is None
            if is_same and leasing.left_ms(tx, one, now) == 0:
                instances.change(tx, one.id, unsettled=False)
                if one.state in UNDERWAY:
                    walk_to(tx, one, State.LOST, f"{REASON}, and its lease is over")


def _may_run_by_lease(instance: Instance) -> bool:
    is_to_be_placed = instance.generation > 0 and instance.desired is Desired.RUNNING
    return instance.state not in UNDERWAY or is_to_be_placed


def _say_unsettled(rt: Runtime, dead: Collection[NodeName]) -> None:
    """Keep as a trouble what nobody can settle while its node is dead, and nothing ends."""
    with rt.ledger.read() as tx:
        kept = troubles.ls(tx)
        left = [
            one
            for one in instances.current_on(tx, dead)
            if one.unsettled and staged.lease_of(tx, one) is None
        ]
    for one in left:
        why = "its node is dead, and nobody knows whether it runs there: if that machine will not "
        why += f"come back, `wlctl node attest-dead {one.node}`"
        before = kept.get(one.id)
        if before is not None and (before.is_halt or before.why == why):
            continue
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            if instances.get(tx, one.id).unsettled:
                troubles.put(tx, one.id, Trouble(AlertKind.UNSETTLED, why))


def _is_lost(tx: ReadTx, instance: Instance) -> bool:
    is_free = not instance.unsettled and operations.holder_of(tx, instance.id) is None
    return is_free and _on_dead(instance) is Act.LOSE and not rivals.is_replaced(tx, instance)


def _on_dead(instance: Instance) -> Act:
    return decide(Case(instance.state, instance.desired, Liveness.DEAD))


def lost_on(rt: Runtime, dead: Collection[NodeName]) -> list[InstanceId]:
    """List the copies that were lost with their nodes, and are meant to run.

    One of which nobody knows whether a start came through is not placed anew before that is known.
    """
    if not dead:
        return []
    with rt.ledger.read() as tx:
        return [one.id for one in instances.current_on(tx, dead) if _is_to_be_replaced(tx, one)]


def _is_to_be_replaced(tx: ReadTx, instance: Instance) -> bool:
    is_lost = _on_dead(instance) is Act.REPLACE and not instance.unsettled
    return is_lost and not rivals.is_replaced(tx, instance)


def place_anew(rt: Runtime, lost: Sequence[InstanceId], *, dry_run: bool) -> list[Done]:
    """Place lost copies anew, at most so many as the settings allow in one pass.

    What failed longest ago, or never, goes first; one that waits or is held takes nobody's turn.
    """
    if not lost:
        return []
    with rt.ledger.read() as tx:
        kept = troubles.ls(tx)
        copies = [instances.get(tx, id_) for id_ in lost]
    copies.sort(key=lambda one: (kept[one.id].until_ms if one.id in kept else 0, one.name))
    if dry_run:
        return [Done(one.name, one.node, Act.REPLACE, "dry_run") for one in copies]
    done: list[Replaced] = []
    with ExitStack() as held:
        begun = list(_begin(rt, copies, held, done))
        found = dict(fanout.each(begun, partial(replacing.carry_out, rt)))
        done += [found[position] for position in range(len(begun))]
    succession.take_places(rt)
    return [_said(came) for came in done if came.is_news]


def _begin(
    rt: Runtime, copies: Sequence[Instance], held: ExitStack, done: list[Replaced]
) -> Iterator[Begun]:
    """Write down what is done next, one after the other; what is not done is added to `done`."""
    left = rt.settings.max_moves_per_pass
    doing = replacing.Replacing(rt, held)
    for instance in copies:
        if left == 0:
            return
        try:
            begun = doing.begin(instance)
        except (Busy, Overtaken):
            begun = Replaced(instance, Came.OVERTAKEN, is_news=False)
        if isinstance(begun, Begun):
            left -= 1
            yield begun
        else:
            left -= begun.came is Came.NO_NODE or begun.came is Came.FAILED
            done.append(begun)


def _said(came: Replaced) -> Done:
    one, kind = came.instance, _KINDS.get(came.came)
    said = f"{came.came.value} on {came.node}" if came.node else came.came.value
    return Done(one.name, one.node, Act.REPLACE, said, came.why if kind else "", kind)


_KINDS = {
    Came.HELD: AlertKind.MOVE_BLOCKED,
    Came.WAITS: AlertKind.LEASE_WAITING,
    Came.NO_NODE: AlertKind.MOVE_FAILED,
    Came.FAILED: AlertKind.MOVE_FAILED,
    Came.UNSETTLED: AlertKind.UNSETTLED,
}
