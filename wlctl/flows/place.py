"""Place a workload: decide and record in one transaction, then act, then record the outcome.

Whatever happens to an answer, the ledger says it: a copy of which nobody knows whether it runs is
settled with its node before anything else is tried, and where that cannot be done it is `unsettled`
and keeps what it holds.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from wlctl.errors import Indeterminate, KeySpent, NameTaken, UsageError, WlctlError
from wlctl.flows import deciding, fanout, packages, plan, recover, rivals, secrets, succession
from wlctl.flows import nodes as fleet
from wlctl.flows.deciding import Order
from wlctl.flows.dispatch import Dispatched, dispatch
from wlctl.flows.intents import Intent, Wanted, claim_of, intend
from wlctl.flows.packages import Admitted
from wlctl.flows.plan import Plan
from wlctl.flows.runtime import Runtime
from wlctl.ledger import attempts, chain, instances, keys, operations, passes
from wlctl.ledger.attempts import Attempt
from wlctl.ledger.operations import Turn
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.lifecycle import pace
from wlctl.model.actions import Launched, Secrets
from wlctl.model.event import Json
from wlctl.model.ids import DecisionId, InstanceId, is_checked_id
from wlctl.model.instance import Desired, Instance
from wlctl.model.package import ArgsRule
from wlctl.model.placement import Candidate, Decision
from wlctl.model.workload import Kind
from wlctl.package import words
from wlctl.placement.shapes import Document


@dataclass(frozen=True, slots=True)
class Report:
    """What `place` did.

    Attributes:
        decision: None where nothing had to be decided: every copy was there already.
        document: The decision in full, as it is stored.
        copies: What came of each copy that was dispatched, in the order of their names.
        standing: Those that were there already.
        placeable: Some node fits.
        is_stale: The description was changed after the build; what was built is what counts.
        plan: What `--plan-out` writes; None where nothing was decided.
        has_health: The package says how its health is asked for.
    """

    name: str
    dry_run: bool
    decision: DecisionId | None
    document: Document | None
    copies: tuple[Dispatched, ...] = ()
    standing: tuple[Instance, ...] = ()
    placeable: bool = True
    is_stale: bool = False
    plan: Plan | None = None
    has_health: bool = False

    @property
    def attempt(self) -> Attempt | None:
        """The last attempt at the first copy; None where nothing was dispatched."""
        return self.copies[0].attempts[-1] if self.copies else None

    @property
    def instance(self) -> Instance | None:
        """The first copy; None for a dry run and where nothing fits."""
        if self.copies:
            return self.copies[0].instance
        return self.standing[0] if self.standing else None

    @property
    def launched(self) -> Launched | None:
        """What the node said of the run it started for the first copy."""
        return self.copies[0].launched if self.copies else None


@dataclass(frozen=True, slots=True)
class _Ask:
    """An order that can be carried out, as far as that is known before the ledger is asked.

    Attributes:
        name: Of the order; that of its copy where it is one.
        names: Of the copies.
        secrets: Values of those it needs; never shown.
    """

    order: Order
    admitted: Admitted
    name: str
    names: tuple[str, ...]
    secrets: Secrets = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class _Open:
    """A copy has the name, or stood in for one that had it, and something of it is open.

    That is to be finished first.
    """

    instance: Instance


@dataclass(frozen=True, slots=True)
class _Begun:
    """What was committed: one intent for each copy, and where else each may go."""

    report: Report
    lines: tuple[tuple[Intent, tuple[Candidate, ...], Turn], ...]


def always() -> bool:
    """Let everything go on."""
    return True


def place(rt: Runtime, order: Order, *, go_on: Callable[[], bool] = always) -> Report:
    """Decide where `order` goes and, unless it is a dry run, put it there.

    Args:
        go_on: Asked before each step; once it answers False, what is under way is finished and
            nothing more is begun.

    Raises:
        NameTaken: Another workload, or another version, has the name.
        KeySpent: The key was given with another order, or its copy was unloaded since.
        PlanMoved: The plan is not what would be done now.
        Indeterminate: A copy of that name is unsettled, and its node cannot be asked.
        WlctlError: The package is not what its signer signed, and all that `packages.admit` raises.
    """
    admitted = packages.admit(rt, order.package)
    name = order.name or admitted.spec.name
    _check(order, admitted, name)
    if order.refresh:
        fleet.refresh(rt)  # slow: SSH to every stale node, so no lock is held
    ask = _Ask(order, admitted, name, names_of(order, name), _secrets(rt, order, admitted))
    _check_lease(rt, order, admitted)
    has_health = admitted.workload.health is not None
    report = _place(rt, ask, go_on)
    return replace(report, is_stale=admitted.is_stale, has_health=has_health)


def names_of(order: Order, name: str) -> tuple[str, ...]:
    """Name the copies of an order."""
    if order.count == 1:
        return (name,)
    return tuple(f"{name}.{n}" for n in range(1, order.count + 1))


def _check(order: Order, admitted: Admitted, name: str) -> None:
    """Refuse what could only fail later, on a node."""
    if not is_checked_id(name):
        raise UsageError(
            f"{name} cannot be the name of an instance",
            hint="use lower-case letters, digits, and . _ - after the first",
        )
    if order.to_finish and admitted.spec.kind is Kind.SERVICE:
        raise UsageError(
            f"{admitted.spec.name} is a service: it does not finish",
            hint="wait until it runs (--wait running), or for nothing (--detach)",
        )
    run = admitted.workload.run
    if order.args and run.args is not ArgsRule.APPEND:
        raise UsageError(
            f"{admitted.spec.name} takes no arguments after --",
            hint='its package would have to say args = "append" under [run]',
        )
    for variable, _value in order.env:
        if not words.may_set(variable, run.env_allow):
            raise UsageError(
                f"{admitted.spec.name} does not let an order set {variable}",
                hint="its package allows " + (", ".join(run.env_allow) or "none (env_allow)"),
            )


def _check_lease(rt: Runtime, order: Order, admitted: Admitted) -> None:
    """Refuse a lease that would run out before it could be renewed.

    Raises:
        UsageError: It is shorter than three passes of `reconcile`.
    """
    lease_ms = order.lease_ms or admitted.workload.lifecycle.lease_ms
    if lease_ms is None:
        return
    with rt.ledger.read() as tx:
        known = passes.newest(tx)
    setting_ms = round(1000 * rt.settings.reconcile_interval_s)
    least_ms = 3 * pace.usual_gap_ms(known, setting_ms)
    if lease_ms < least_ms:
        raise UsageError(
            f"a lease of {lease_ms / 1000:g} s would run out between two passes of reconcile",
            hint=f"at least three of them: {least_ms / 1000:g} s, as they run by now",
        )


def _secrets(rt: Runtime, order: Order, admitted: Admitted) -> Secrets:
    """Get the values that will be sent; a dry run, and what is only staged, look for no value.

    Raises:
        UsageError: The package has no secret of a name that the order gives.
        SecretUnavailable: One cannot be had.
    """
    names, entries = admitted.spec.secrets, dict(order.secrets)
    for name in entries:
        if name not in names:
            raise UsageError(
                f"{admitted.spec.name} takes no secret {name}",
                hint="it takes " + (", ".join(names) or "none"),
            )
    if order.dry_run or not order.start:
        secrets.sources(rt, names, entries)
        return ()
    return secrets.resolve(rt, names, entries)


def _place(rt: Runtime, ask: _Ask, go_on: Callable[[], bool]) -> Report:
    while True:
        with ExitStack() as held:
            turns = [] if ask.order.dry_run else list(_turns(rt, held, len(ask.names)))
            begun = _begin(rt, ask, turns)
            if isinstance(begun, Report):
                return begun
            if isinstance(begun, _Begun):
                report = replace(begun.report, copies=_carry_out(rt, begun, go_on))
                if go_on() and _is_outrun(rt, report):
                    continue
                return report
        _finish_first(rt, begun.instance)


def _is_outrun(rt: Runtime, report: Report) -> bool:
    """Answer whether somebody placed a copy of that name while ours found no node.

    Between a refusal and the next candidate the name is nobody's; whose it is then, and whether by
    the very same order, is to be looked at anew.
    """
    missing = [one.name for one in report.copies if not (one.is_placed or one.is_open)]
    with rt.ledger.read() as tx:
        return any(instances.holder_of(tx, name) is not None for name in missing)


def _turns(rt: Runtime, held: ExitStack, count: int) -> Iterator[Turn]:
    """Make ids, each with the turn of its scope: nobody else can know them yet."""
    for _ in range(count):
        instance_id = rt.new_instance_id()
        yield held.enter_context(operations.turn(rt.ledger, instance_id))


def _finish_first(rt: Runtime, instance: Instance) -> None:
    """Finish what is open of the copy that has the name, or stood in for one that had it.

    Raises:
        Indeterminate: It cannot be: nothing may be placed under that name before it is.
        Busy: A living process is at work on it.
    """
    now = recover.recover(rt, instance.id)
    if now.unsettled:
        raise Indeterminate(
            f"nobody knows whether {now.name} runs on {now.node}: its answer was lost, and "
            "the node cannot be asked",
            hint=f"type it again when {now.node} can be reached, or `wlctl unload {now.name}`",
        )
    if recover.is_unfinished(now):
        verb = "unload" if now.desired is Desired.UNLOADED else "start"
        raise Indeterminate(
            f"{now.name} on {now.node} is {now.state.value} and is to be {now.desired.value}: "
            "that could not be done yet",
            hint=f"`wlctl {verb} {now.name}` says why",
        )
    succession.take_places(rt)
    with rt.ledger.read() as tx:
        if any(one.id == now.id for one in rivals.left_by(tx, [now.name])):
            raise Indeterminate(
                f"{now.id} on {now.node}, which was to take the place of {now.name}, may still run",
                hint="`wlctl reconcile` sees to it",
            )


def _begin(rt: Runtime, ask: _Ask, turns: Sequence[Turn]) -> Report | _Begun | _Open:
    """Decide, and write down all that is about to be done, in one transaction."""
    order, admitted = ask.order, ask.admitted
    digest = _digest(ask)
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        standing = _standing(tx, ask.names)
        _check_key(tx, order, digest, standing)
        for holder in standing:
            if recover.is_open(tx, holder) and not order.dry_run:
                return _Open(holder)
            _check_same(tx, order, admitted, holder)
        there = {holder.name for holder in standing}
        missing = [name for name in ask.names if name not in there]
        left = rivals.left_by(tx, missing)
        if left and not order.dry_run:
            return _Open(left[0])
        if not missing:
            return Report(ask.name, order.dry_run, None, None, standing=standing)
        wanted = replace(order, count=len(missing))
        decision = deciding.decide(rt, tx, tx.now_ms, wanted, admitted)
        made = plan.plan_of(digest, decision.placements)
        if order.plan is not None:
            plan.check(order.plan, made)
        found, told = deciding.record(
            tx,
            wanted,
            admitted,
            name=ask.name,
            decision=decision,
            instance_id=InstanceId(turns[0].scope) if turns else None,
        )
        report = Report(
            name=ask.name,
            dry_run=order.dry_run,
            decision=found,
            document=told,
            standing=standing,
            placeable=bool(decision.placements),
            plan=made,
        )
        if order.dry_run or not decision.placements:
            return report
        if order.key:
            keys.spend(tx, order.key, request_sha256=digest, decision=found, name=missing[0])
        copies = _wanted(tx, ask, found, decision, missing)
        return _Begun(
            report,
            tuple(
                (intend(rt, tx, copy, placement.chosen, turn), placement.dispatch[1:], turn)
                for copy, placement, turn in zip(copies, decision.placements, turns, strict=False)
            ),
        )


def _standing(tx: ReadTx, names: Sequence[str]) -> tuple[Instance, ...]:
    """Find the copies that are there already."""
    holders = (instances.holder_of(tx, name) for name in names)
    return tuple(holder for holder in holders if holder is not None)


def _wanted(
    tx: WriteTx, ask: _Ask, found: DecisionId, decision: Decision, names: Sequence[str]
) -> list[Wanted]:
    """Keep the order of each copy."""
    options = deciding.options_of(ask.order)
    return [
        Wanted(
            decision=found,
            claim=claim_of(found, position, len(names)),
            name=name,
            order=ask.order,
            order_row=instances.open_order(
                tx, name=name, package_id=ask.admitted.package_id, options=options
            ),
            admitted=ask.admitted,
            request=decision.request,
            secrets=ask.secrets,
        )
        for position, name in enumerate(names, 1)
    ]


def _carry_out(rt: Runtime, begun: _Begun, go_on: Callable[[], bool]) -> tuple[Dispatched, ...]:
    """Dispatch every copy, many at once; of a single one, raise what is wrong on this side."""

    def run(line: tuple[Intent, tuple[Candidate, ...], Turn]) -> Dispatched:
        intent, rest, turn = line
        try:
            return dispatch(rt, intent, rest, turn, go_on=go_on)
        except WlctlError as failure:
            return Dispatched(
                intent.wanted.name, (intent.attempt,), (), intent.instance, None, failure
            )

    if len(begun.lines) == 1:
        intent, rest, turn = begun.lines[0]
        done = dispatch(rt, intent, rest, turn, go_on=go_on)
        if done.failure is not None:
            raise done.failure
        return (done,)
    found = dict(fanout.each(begun.lines, run))
    return tuple(found[position] for position in sorted(found))


def _digest(ask: _Ask) -> str:
    """Tell orders apart by all that makes a difference to what is carried out."""
    told: dict[str, Json] = {
        "package": ask.admitted.package_id,
        "name": ask.name,
        "count": ask.order.count,
        "options": deciding.options_of(ask.order),
    }
    return hashlib.sha256(chain.canonical(told)).hexdigest()


def _check_key(tx: ReadTx, order: Order, digest: str, standing: Sequence[Instance]) -> None:
    """Make sure that the key of an order is free, or that this is the order it was spent on.

    What it was spent on that came to nothing leaves it free: the command may be repeated.

    Raises:
        KeySpent: Otherwise.
    """
    spent = keys.find(tx, order.key) if order.key else None
    if spent is None:
        return
    if spent.request_sha256 != digest:
        raise KeySpent(
            f"the key {order.key} was given with another order, for {spent.name}",
            hint="take a new key for a new order",
        )
    was_placed = any(one.is_there for one in attempts.of_decision(tx, spent.decision))
    if was_placed and not standing:
        raise KeySpent(
            f"{spent.name}, which the key {order.key} was spent on, was unloaded since",
            hint="take a new key to place it anew",
        )


def _check_same(tx: ReadTx, order: Order, admitted: Admitted, holder: Instance) -> None:
    """Answer a repeated order: the same package with the same options is nothing to do.

    Raises:
        NameTaken: The name is in use by something else.
    """
    if holder.package_id == admitted.package_id:
        if instances.options_of(tx, holder.id) == deciding.options_of(order):
            return
        raise NameTaken(
            f"{holder.name} runs this very package, placed with other options",
            hint=f"`wlctl unload {holder.name}` first, or give another --name",
        )
    raise NameTaken(
        f"{holder.name} is in use by {holder.workload} {holder.version} on {holder.node}",
        hint=f"`wlctl unload {holder.name}` first, or give another --name",
    )
