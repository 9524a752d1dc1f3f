"""Move a copy by hand: the new one is up and healthy first, then the old one is proven gone.

Where two may never run, or that is asked for, the old one is proven stopped first. Whatever fails
leaves the old one serving, or starts it again; what a killed move leaves, the next pass ends.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum

from wlctl.errors import IllegalStep, UsageError
from wlctl.flows import (
    cut_off,
    deciding,
    ending,
    packages,
    recover,
    replacing,
    secrets,
    staged,
    starting,
    succession,
)
from wlctl.flows.deciding import Order
from wlctl.flows.dispatch import Dispatched, dispatch
from wlctl.flows.ending import End
from wlctl.flows.packages import Admitted
from wlctl.flows.replacing import Begun
from wlctl.flows.runtime import Runtime
from wlctl.flows.start_intents import Begin
from wlctl.flows.waiting import Awaited, Came, Until, wait
from wlctl.ledger import instances, nodes, operations, troubles
from wlctl.ledger.store import ReadTx
from wlctl.ledger.troubles import Trouble
from wlctl.lifecycle.machine import LIVE
from wlctl.model.actions import Secrets
from wlctl.model.alert import AlertKind
from wlctl.model.ids import NodeName
from wlctl.model.instance import CLOSED, Desired, Instance, State
from wlctl.model.placement import Decision
from wlctl.model.workload import Kind


class Step(StrEnum):
    """How far a move got."""

    MOVED = "moved"
    """The new copy runs, and the old one is proven gone."""
    WOULD = "would_move"
    """A dry run: so it would be done."""
    NO_NODE = "no_node"
    """No other node fits; the old copy runs on."""
    NOT_STOPPED = "not_stopped"
    """The old copy was to be stopped first and is not proven stopped; no other was begun."""
    NOT_PLACED = "not_placed"
    """No node took it; the old copy serves."""
    NOT_UP = "not_up"
    """The new copy did not come up and was ended; the old one serves."""
    UNSETTLED = "unsettled"
    """Nobody knows whether the new copy runs; `reconcile` settles that. The old one serves, but not
    where it was stopped first."""
    NOT_GONE = "not_gone"
    """The new copy runs and has the name; the old one is not proven gone and holds what it held."""
    DOWN = "down"
    """The old copy was stopped first, no new one came up, and the old one does not start again."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What came of a move.

    Attributes:
        instance: The copy that has the name now.
        node: Where the new copy is, or would be; None where there is none.
        detail: In words; text from outside.
    """

    step: Step
    instance: Instance
    origin: NodeName
    node: NodeName | None = None
    detail: str = ""
    awaited: Awaited | None = None
    decision: Decision | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """How a copy is moved.

    Attributes:
        to: This node or none.
        stop_first: Prove the old copy stopped before the new one is placed.
        timeout_s: How long the new copy may take to be up.
    """

    to: NodeName | None = None
    stop_first: bool = False
    dry_run: bool = False
    timeout_s: float = 60.0


def find(rt: Runtime, word: str) -> Instance:
    """Find the copy that `word` means.

    Raises:
        UnknownName, AmbiguousName: It means none, or more than one.
    """
    with rt.ledger.read() as tx:
        return instances.find(tx, word)


def move(
    rt: Runtime, instance: Instance, way: Way, *, go_on: Callable[[], bool] = lambda: True
) -> Moved:
    """Move a running copy to another node.

    Args:
        go_on: Answers False once no further step may begin.

    Raises:
        Busy: Another operation on it did not end in time.
        IllegalStep: It does not run, or is being moved.
        UnknownName: There is no such node.
        UsageError: Its data would stay behind, or it was ordered for its node alone.
        WlctlError: Its package or its secrets cannot be had: nothing was begun.
    """
    if way.dry_run:
        return _move(rt, instance, way, go_on)
    scope, timeout_s = cut_off.scope_of(instance), rt.settings.busy_timeout_s
    with operations.turn(rt.ledger, scope, timeout_s=timeout_s):
        with rt.ledger.read() as tx:
            instance = instances.get(tx, instance.id)
        return _move(rt, instance, way, go_on)


def _move(rt: Runtime, instance: Instance, way: Way, go_on: Callable[[], bool]) -> Moved:
    admitted = packages.admit_stored(rt, instance.package_id)
    _check(rt, instance, admitted, way)
    with rt.ledger.read() as tx:
        order = replacing.order_again(tx, instance)
        is_leased = staged.lease_of(tx, instance) is not None
    way = replace(way, stop_first=way.stop_first or is_leased)
    order = replace(order, pin=way.to)
    if way.dry_run:
        return _would(rt, instance, order, admitted)
    values = secrets.resolve(rt, admitted.spec.secrets, dict(order.secrets))
    one = _Move(rt, instance, way, order, admitted, values, go_on)
    return one.old_first() if way.stop_first else one.new_first()


def _check(rt: Runtime, instance: Instance, admitted: Admitted, way: Way) -> None:
    with rt.ledger.read() as tx:
        if way.to is not None:
            nodes.get(tx, way.to)
        is_open = recover.is_open(tx, instance)
        others = instances.others_of_order(tx, instance.id)
        pin = instances.options_of(tx, instance.id).get("pin")
    if instance.kind is not Kind.SERVICE:
        raise IllegalStep(
            f"{instance.name} is a job: another copy would do its work a second time",
            hint=f"`wlctl wait {instance.name} --for finished`, or stop it",
        )
    if instance.state not in LIVE or instance.desired is not Desired.RUNNING or is_open:
        raise IllegalStep(
            f"{instance.name} is {instance.state.value} and is to be {instance.desired.value}",
            hint="only a copy that runs, and that nothing is at work on, is moved",
        )
    if others:
        raise IllegalStep(
            f"{instance.name} has another copy, on {others[0].node}, that is not settled",
            hint="`wlctl reconcile` settles it",
        )
    if way.to == instance.node:
        raise UsageError(f"{instance.name} is on {instance.node} already")
    if admitted.workload.keep_data:
        raise UsageError(
            f"the data of {instance.name} is on {instance.node} and would stay behind",
            hint=f"`wlctl stop {instance.name}`, bring its data over, and place it there",
        )
    if pin and way.to is None:
        raise UsageError(
            f"{instance.name} was ordered for {pin} alone",
            hint="say where it is to go: --to NODE",
        )


def _would(rt: Runtime, instance: Instance, order: Order, admitted: Admitted) -> Moved:
    with rt.ledger.read() as tx:
        decision = deciding.decide(rt, tx, rt.now_ms(), order, admitted)
    fit = decision.placements[0].dispatch if decision.placements else ()
    node = next((one.node for one in fit if one.node != instance.node), None)
    step = Step.NO_NODE if node is None else Step.WOULD
    detail = replacing.no_node(decision) if node is None else ""
    return Moved(step, instance, instance.node, node, detail, decision=decision)


@dataclass(frozen=True)
class _Move:
    """One move under way."""

    rt: Runtime
    old: Instance
    way: Way
    order: Order
    admitted: Admitted
    values: Secrets
    go_on: Callable[[], bool]

    def new_first(self) -> Moved:
        """Bring the new copy up beside the old one, then end the old one."""
        up = self._bring_up()
        return self._end_old(up) if up.step is Step.MOVED else self._without_new(up)

    def old_first(self) -> Moved:
        """Prove the old copy stopped, then bring the new one up; else start the old one again."""
        halt = Trouble(AlertKind.MOVE_CUT, "a move has stopped it, and was cut off")
        stopped = ending.stop_one(self.rt, self.old, halt=halt)
        if stopped.end not in (End.DONE, End.ALREADY):
            detail = stopped.detail or stopped.code
            return self._start_old(Moved(Step.NOT_STOPPED, self.old, self.old.node, detail=detail))
        up = self._bring_up()
        return self._end_old(up) if up.step is Step.MOVED else self._start_old(up)

    def _bring_up(self) -> Moved:
        """Place the new copy, wait until it is up, and give it the name."""
        with ExitStack() as held:
            up = self._place_and_wait(held)
            if up.step is Step.MOVED and not self._take_name(up):
                return replace(up, step=Step.NOT_UP, detail="something else was asked of it since")
            return up

    def _take_name(self, up: Moved) -> bool:
        """Give the new copy the name, while it runs, and nobody asked for anything else."""
        with self.rt.ledger.write(self.rt.now_ms(), self.rt.author) as tx:
            old, new = instances.get(tx, self.old.id), instances.get(tx, up.instance.id)
            if new.replaces is None and new.state in LIVE:
                return True  # the old one was lost meanwhile, and a pass has seen to it
            is_up = new.state in LIVE and new.desired is Desired.RUNNING
            if new.replaces != old.id or not is_up or not self._is_ours(tx, old):
                return False
            succession.give_way(tx, old)
            instances.change(tx, new.id, replaces=None)
            troubles.clear(tx, old.id)
            return True

    def _is_ours(self, tx: ReadTx, old: Instance) -> bool:
        """Answer whether the old copy is as this move has left it: nobody asked anything of it."""
        if operations.holder_of(tx, old.id) is not None:
            return False
        if not self.way.stop_first:
            return old.desired is Desired.RUNNING
        kept = troubles.find(tx, old.id)
        is_halted = kept is not None and kept.kind is AlertKind.MOVE_CUT
        return is_halted and (old.state, old.desired) == (State.STOPPED, Desired.STOPPED)

    def _may_be_placed(self, tx: ReadTx) -> bool:
        """Answer whether another copy may be begun, while the old one is as this move has it."""
        now = instances.get(tx, self.old.id)
        serves = self.way.stop_first or now.state in LIVE
        return serves and self._is_ours(tx, now) and not instances.others_of_order(tx, now.id)

    def _place_and_wait(self, held: ExitStack) -> Moved:
        rt, old = self.rt, self.old
        turn = held.enter_context(operations.turn(rt.ledger, rt.new_instance_id()))
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            now = instances.get(tx, old.id)
            if not self._may_be_placed(tx):
                return Moved(Step.NOT_PLACED, now, old.node, detail=_why_not(tx, now))
            begun = replacing.intend_anew(
                rt,
                tx,
                now,
                self.order,
                self.admitted,
                turn=turn,
                values=self.values,
                is_wanted=self._may_be_placed,
            )
        if not isinstance(begun, Begun):
            why = replacing.no_node(begun)
            return Moved(Step.NO_NODE, old, old.node, detail=why, decision=begun)
        done = dispatch(rt, begun.intent, begun.rest, turn, go_on=self.go_on)
        if not done.is_placed or done.instance is None:
            step = Step.UNSETTLED if done.is_open else Step.NOT_PLACED
            return Moved(step, done.instance or old, old.node, detail=_why(done))
        if done.instance.id != turn.scope:
            held.enter_context(operations.turn(rt.ledger, done.instance.id))
        awaited = wait(
            rt,
            done.instance.id,
            until=Until.RUNNING,
            has_health=self.admitted.workload.health is not None,
            timeout_s=self.way.timeout_s,
            go_on=self.go_on,
        )
        step = Step.MOVED if awaited.came is Came.UP else Step.NOT_UP
        new = awaited.instance
        return Moved(step, new, old.node, new.node, awaited.detail, awaited)

    def _without_new(self, failed: Moved) -> Moved:
        """End a new copy that did not come up; the old one has the name."""
        if failed.step is Step.NOT_UP and not self._give_up(failed.instance):
            failed = replace(failed, step=Step.UNSETTLED)
        with self.rt.ledger.read() as tx:
            return replace(failed, instance=instances.get(tx, self.old.id))

    def _give_up(self, new: Instance) -> bool:
        """End a new copy, unless a pass has given it the name; answer whether it is proven gone."""
        with self.rt.ledger.write(self.rt.now_ms(), self.rt.author) as tx:
            now = instances.get(tx, new.id)
            if now.replaces is None and now.state not in CLOSED:
                return False
            cut_off.give_up(tx, now)
        return ending.unload_one(self.rt, now).end in (End.DONE, End.ALREADY)

    def _start_old(self, failed: Moved) -> Moved:
        """Start the old copy again; where another one may run, only `reconcile` may."""
        failed = self._without_new(failed)
        with self.rt.ledger.write(self.rt.now_ms(), self.rt.author) as tx:
            is_wanted = cut_off.want_again(tx, self.old)
            old = instances.get(tx, self.old.id)
        if not is_wanted:
            return failed
        again = starting.start_one(self.rt, old, as_seen=True)
        with self.rt.ledger.read() as tx:
            now = instances.get(tx, old.id)
        if again.begin in (Begin.DONE, Begin.ALREADY):
            return replace(failed, instance=now)
        detail = f"{failed.detail}; {again.detail or again.code}"
        return replace(failed, step=Step.DOWN, instance=now, detail=detail)

    def _end_old(self, up: Moved) -> Moved:
        """Prove gone what has no name any more."""
        ended = ending.unload_one(self.rt, self.old)
        with self.rt.ledger.read() as tx:
            now = instances.get(tx, up.instance.id)
        if ended.end in (End.DONE, End.ALREADY):
            return replace(up, instance=now)
        return replace(up, step=Step.NOT_GONE, instance=now, detail=ended.detail or ended.code)


def _why_not(tx: ReadTx, now: Instance) -> str:
    if instances.others_of_order(tx, now.id):
        return "it has another copy"
    return f"it is {now.state.value} now, and is to be {now.desired.value}"


def _why(done: Dispatched) -> str:
    if done.failure is not None:
        return done.failure.message
    return ", ".join(f"{one.node}: {one.detail or one.code}" for one in done.attempts)
