"""Place a lost copy anew: through the same gate and engine, and never while it may still hold on.

The new copy is written first and takes the name when it runs; only then is the old one
`rescheduled`, still holding what it holds until its end is proven. What was asked for meanwhile is
asked of the new one.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from wlctl.errors import (
    Busy,
    GateDenied,
    LedgerForked,
    LedgerRolledBack,
    Overtaken,
    Revoked,
    SecretUnavailable,
    WlctlError,
)
from wlctl.flows import deciding, leasing, packages, secrets
from wlctl.flows.deciding import Order
from wlctl.flows.dispatch import Dispatched, dispatch
from wlctl.flows.intents import Intent, Wanted, claim_of, intend
from wlctl.flows.packages import Admitted
from wlctl.flows.runtime import Runtime
from wlctl.ledger import generations, instances, operations, troubles
from wlctl.ledger.generations import Generation
from wlctl.ledger.operations import Turn
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.ledger.troubles import Trouble
from wlctl.lifecycle import replacing as judging
from wlctl.lifecycle.backoff import backoff_ms, is_waiting
from wlctl.lifecycle.replacing import Backoff, Copy, Go, Held, LeaseWait
from wlctl.model.actions import Secrets
from wlctl.model.alert import AlertKind
from wlctl.model.ids import InstanceId, NodeName, PackageId
from wlctl.model.instance import CLOSED, Desired, Instance, State
from wlctl.model.placement import Candidate, Decision
from wlctl.model.workload import Kind
from wlctl.placement.engine import needs_attached_hardware


class Came(StrEnum):
    """What came of it."""

    PLACED = "placed"
    """Another copy runs, and has the name."""
    HELD = "held"
    """It may not be moved, or not now."""
    WAITS = "waits"
    """Its lease may not have run out, or it failed a moment ago."""
    NO_NODE = "no_node"
    """No node would take it; it is tried again."""
    FAILED = "failed"
    """Every node that fits refused it, or something was missing here; it is tried again."""
    UNSETTLED = "unsettled"
    """Nobody knows whether the new copy runs; that is settled first."""
    OVERTAKEN = "overtaken"
    """Something else was asked of it meanwhile."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """What came of one lost copy.

    Attributes:
        why: In words; empty when it is placed.
        node: Where the new copy is.
        is_news: It is not as it was in the pass before.
    """

    instance: Instance
    came: Came
    why: str = ""
    node: NodeName | None = None
    is_news: bool = True


@dataclass(frozen=True, slots=True)
class Begun:
    """What was committed for one lost copy, before anything is sent."""

    instance: Instance
    intent: Intent
    rest: tuple[Candidate, ...]
    turn: Turn


@dataclass(frozen=True, slots=True)
class _Package:
    """The package of a lost copy as it is now: admitted, or why not."""

    admitted: Admitted | None = None
    is_revoked: bool = False
    fault: str = ""


class Replacing:
    """Places lost copies anew, one after the other; each package is verified once.

    Args:
        held: Keeps the turn of each new copy until it is closed.
    """

    def __init__(self, rt: Runtime, held: ExitStack) -> None:
        self._rt = rt
        self._held = held
        self._packages: dict[PackageId, _Package] = {}

    def begin(self, instance: Instance) -> Begun | Replaced:
        """Decide where a lost copy goes, if it may be moved, and write that down."""
        rt, package = self._rt, self._package(instance.package_id)
        answer = judging.decide(_copy(rt, instance, package), rt.now_ms())
        match answer:
            case Held():
                is_news = _keep(rt, instance, Trouble(AlertKind.MOVE_BLOCKED, answer.why))
                return Replaced(instance, Came.HELD, answer.why, is_news=is_news)
            case LeaseWait():
                why = "it may still run by its lease, until that has run out for certain"
                waits = Trouble(AlertKind.LEASE_WAITING, why, until_ms=answer.until_ms)
                is_news = _keep(rt, instance, waits)
                return Replaced(instance, Came.WAITS, why, is_news=is_news)
            case Backoff():
                return Replaced(instance, Came.WAITS, is_news=False)
            case Go():
                assert package.admitted is not None, "a copy without its package is held"
                turn = self._held.enter_context(operations.turn(rt.ledger, rt.new_instance_id()))
                try:
                    return _begin(rt, instance, package.admitted, turn)
                except (Busy, Overtaken, LedgerForked, LedgerRolledBack):
                    raise
                except WlctlError as failure:  # of this copy: others are placed all the same
                    return _again(rt, instance, Came.FAILED, failure.message)

    def _package(self, package_id: PackageId) -> _Package:
        if package_id not in self._packages:
            self._packages[package_id] = _package(self._rt, package_id)
        return self._packages[package_id]


def carry_out(rt: Runtime, begun: Begun) -> Replaced:
    """Send what was written down; `take_places` is next."""
    try:
        done = dispatch(rt, begun.intent, begun.rest, begun.turn, go_on=lambda: True)
    except (Busy, Overtaken):
        return Replaced(begun.instance, Came.OVERTAKEN)
    except WlctlError as failure:
        return _again(rt, begun.instance, Came.FAILED, failure.message)
    return _judge(rt, begun.instance, done)


def _package(rt: Runtime, package_id: PackageId) -> _Package:
    """Verify the very package that copies were made from, by the signers of now."""
    try:
        return _Package(packages.admit_stored(rt, package_id))
    except (GateDenied, Revoked) as failure:
        return _Package(is_revoked=True, fault=failure.message)
    except WlctlError as failure:
        return _Package(fault=failure.message)


def _copy(rt: Runtime, instance: Instance, package: _Package) -> Copy:
    now = rt.boot_time()
    with rt.ledger.read() as tx:
        options = instances.options_of(tx, instance.id)
        runs = generations.of_instance(tx, instance.id)
        kept = troubles.find(tx, instance.id)
        # What is proven gone may run by no lease.
        is_gone = all(run.is_gone for run in runs)
        left_ms = 0 if is_gone else leasing.left_ms(tx, instance, now)
        others = instances.others_of_order(tx, instance.id)
        lost = instances.last_step(tx, instance.id)
        moves = instances.moves_of_order(tx, instances.order_of(tx, instance.id))
    if left_ms is None:
        left_ms = leasing.count_anew(rt, instance, now)
    own = None if package.admitted is None else package.admitted.workload
    migratable = options.get("migratable", own is None or own.lifecycle.migratable)
    most = options.get("max_reschedules", own.lifecycle.max_reschedules if own else 0)
    assert isinstance(most, int)
    return Copy(
        moves=moves,
        max_moves=most,
        migratable=migratable is True,
        pin=str(options.get("pin") or ""),
        is_attached=package.admitted is not None and needs_attached_hardware(package.admitted.spec),
        keeps_data=own is not None and own.keep_data,
        had_failed=lost.origin is State.FAILED,
        may_have_run=instance.kind is not Kind.SERVICE and any(map(_may_have_run, runs)),
        has_open_copy=any(one.unsettled or one.state not in CLOSED for one in others),
        is_revoked=package.is_revoked,
        package_fault=package.fault,
        lease_left_ms=left_ms,
        retry_at_ms=kept.until_ms if kept is not None and kept.kind in OF_MOVES else None,
    )


def _may_have_run(run: Generation) -> bool:
    """Answer whether a run was launched; of one whose answer was lost nobody knows."""
    return run.launch is not None or not run.is_gone


def _keep(rt: Runtime, instance: Instance, trouble: Trouble) -> bool:
    """Keep what a copy waits for; answer whether that is news. Nothing is written twice."""
    with rt.ledger.read() as tx:
        kept = troubles.find(tx, instance.id)
    if kept is not None and (kept.kind, kept.why) == (trouble.kind, trouble.why):
        return False
    if kept is not None and _is_at_home(kept, rt.now_ms()):
        return False
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        troubles.put(tx, instance.id, trouble)
    return True


OF_MOVES = frozenset({AlertKind.MOVE_BLOCKED, AlertKind.MOVE_FAILED, AlertKind.LEASE_WAITING})


def _is_at_home(kept: Trouble, now_ms: int) -> bool:
    """Answer whether its own node has just refused to start it: that is what is wrong with it.

    It is tried there again, and elsewhere with that.
    """
    return kept.kind is AlertKind.REBOOT_NOT_STARTED and is_waiting(kept.until_ms, now_ms)


def order_again(tx: ReadTx, instance: Instance) -> Order:
    """Read the order of a copy, to be carried out once more somewhere else."""
    kept = instances.options_of(tx, instance.id)
    order = deciding.order_read(kept, Path(instance.package_id), instance.name)
    return replace(
        order,
        avoid=(*order.avoid, instance.node),
        moving=instance.id,
        current_node=instance.node,
        start=instance.desired is Desired.RUNNING,
    )


def _begin(rt: Runtime, instance: Instance, admitted: Admitted, turn: Turn) -> Begun | Replaced:
    """Decide, and write down what is about to be done; the decision is kept where it says more."""
    with rt.ledger.read() as tx:
        order = order_again(tx, instance)
    try:
        values = secrets.resolve(rt, admitted.spec.secrets, dict(order.secrets))
    except SecretUnavailable as failure:
        return _again(rt, instance, Came.FAILED, failure.message)
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        now = instances.get(tx, instance.id)
        if not _is_still_lost(tx, now):
            return Replaced(now, Came.OVERTAKEN, "something else was asked of it meanwhile")
        begun = intend_anew(
            rt,
            tx,
            now,
            order,
            admitted,
            turn=turn,
            values=values,
            is_wanted=lambda later: _is_still_lost(later, instances.get(later, instance.id)),
        )
        if isinstance(begun, Begun):
            return begun
        why = no_node(begun)
        if _is_first(troubles.find(tx, instance.id), why, tx.now_ms):
            deciding.record(tx, order, admitted, name=now.name, decision=begun)
        _retry(tx, now, why)
        return Replaced(now, Came.NO_NODE, why)


def _is_first(kept: Trouble | None, why: str, now_ms: int) -> bool:
    """Answer whether it was not said before why no node fits: one decision is enough."""
    if kept is not None and _is_at_home(kept, now_ms):
        return kept.tries == 1
    return kept is None or kept.why != why


def _is_still_lost(tx: ReadTx, now: Instance) -> bool:
    """Answer whether a copy is lost, is meant to run, and nobody starts it or another one."""
    is_lost = now.state is State.LOST and now.desired is Desired.RUNNING
    is_free = operations.holder_of(tx, now.id) is None and not now.unsettled
    return is_lost and is_free and not instances.others_of_order(tx, now.id)


def intend_anew(
    rt: Runtime,
    tx: WriteTx,
    old: Instance,
    order: Order,
    admitted: Admitted,
    *,
    turn: Turn,
    values: Secrets,
    is_wanted: Callable[[ReadTx], bool],
) -> Begun | Decision:
    """Decide where another copy of an order goes, and write down that it is about to be placed.

    Never where the old one is. The decision is the answer where no other node fits.

    Args:
        is_wanted: See `Wanted`.
    """
    decision = deciding.decide(rt, tx, tx.now_ms, order, admitted)
    fit = decision.placements[0].dispatch if decision.placements else ()
    elsewhere = [candidate for candidate in fit if candidate.node != old.node]
    if not elsewhere:
        return decision
    found, _ = deciding.record(
        tx,
        order,
        admitted,
        name=old.name,
        decision=decision,
        instance_id=InstanceId(turn.scope),
    )
    wanted = Wanted(
        decision=found,
        claim=claim_of(found, 1, 1),
        name=old.name,
        order=order,
        order_row=instances.order_of(tx, old.id),
        admitted=admitted,
        request=decision.request,
        replaces=old.id,
        is_wanted=is_wanted,
        secrets=values,
    )
    return Begun(old, intend(rt, tx, wanted, elsewhere[0], turn), tuple(elsewhere[1:]), turn)


def no_node(decision: Decision) -> str:
    """Say why no node fits, by how many fail what: the decision itself has every reason."""
    counts = deciding.counts_of(decision)
    failed = [f"{name} ({count})" for name, count in counts.items() if name not in _NO_REASON]
    return "no node fits: " + (", ".join(failed) or "there is no other node")


_NO_REASON = frozenset({"eligible", "rejected"})


def _again(rt: Runtime, instance: Instance, came: Came, why: str) -> Replaced:
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        now = instances.get(tx, instance.id)
        if (now.state, now.desired) != (State.LOST, Desired.RUNNING):
            return Replaced(now, Came.OVERTAKEN, "something else was asked of it meanwhile")
        _retry(tx, instance, why)
    return Replaced(instance, came, why)


def _retry(tx: WriteTx, instance: Instance, why: str) -> None:
    kept = troubles.find(tx, instance.id)
    if kept is not None and _is_at_home(kept, tx.now_ms):
        return
    tries = (kept.tries if kept is not None else 0) + 1
    until_ms = tx.now_ms + backoff_ms(tries)
    trouble = Trouble(AlertKind.MOVE_FAILED, why, tries=tries, until_ms=until_ms)
    troubles.put(tx, instance.id, trouble)


def _judge(rt: Runtime, instance: Instance, done: Dispatched) -> Replaced:
    if done.is_open:
        why = f"nobody knows whether its new copy runs on {done.attempts[-1].node}"
        return Replaced(instance, Came.UNSETTLED, why)
    if not done.is_placed or done.instance is None:
        tried = ", ".join(f"{one.node}: {one.code}" for one in done.attempts)
        detail = done.failure.message if done.failure is not None else f"no node took it ({tried})"
        return _again(rt, instance, Came.FAILED, detail)
    return Replaced(instance, Came.PLACED, node=done.instance.node)
