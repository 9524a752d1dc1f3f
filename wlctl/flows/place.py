"""Place a workload: decide and record in one transaction, then act, then record the outcome.

One candidate is tried. Whatever happens to the answer, the ledger says it: a copy of which nobody
knows whether it runs is `unsettled`, keeps what it holds, and is ended by `stop` or `unload`.
"""

from dataclasses import dataclass, replace

from wlctl.errors import NameTaken, UsageError
from wlctl.flows import deciding, packages
from wlctl.flows import nodes as fleet
from wlctl.flows.deciding import Order
from wlctl.flows.dispatch import Intent, dispatch, walk_to
from wlctl.flows.packages import Admitted
from wlctl.flows.runtime import Runtime
from wlctl.ledger import attempts, chain, generations, instances, nodes, operations
from wlctl.ledger.attempts import Attempt
from wlctl.ledger.operations import Turn
from wlctl.ledger.store import ReadTx
from wlctl.model.actions import Launched
from wlctl.model.ids import DecisionId, InstanceId, is_checked_id
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.placement import Tiering
from wlctl.placement.shapes import Document


@dataclass(frozen=True, slots=True)
class Report:
    """What `place` did.

    Attributes:
        decision: None where nothing had to be decided: the copy was there already.
        document: The decision in full, as it is stored.
        attempt: None for a dry run and where nothing fits.
        instance: The copy, current or not; None for a dry run and where nothing fits.
        launched: What the node said of the run it started.
        placeable: Some node fits.
        is_stale: The description was changed after the build; what was built is what counts.
    """

    name: str
    dry_run: bool
    decision: DecisionId | None
    document: Document | None
    attempt: Attempt | None = None
    instance: Instance | None = None
    launched: Launched | None = None
    placeable: bool = True
    is_stale: bool = False


def place(rt: Runtime, order: Order) -> Report:
    """Decide where `order` goes and, unless it is a dry run, put it there.

    Raises:
        NameTaken: Another workload, or another version, has the name.
        WlctlError: The package is not what its signer signed, and all that `packages.admit` raises.
    """
    admitted = packages.admit(rt, order.package)
    return replace(_place(rt, order, admitted), is_stale=admitted.is_stale)


def _place(rt: Runtime, order: Order, admitted: Admitted) -> Report:
    name = order.name or admitted.spec.name
    if not is_checked_id(name):
        raise UsageError(
            f"{name} cannot be the name of an instance",
            hint="use lower-case letters, digits, and . _ - after the first",
        )
    if order.count > 1 and not order.dry_run:
        raise UsageError(
            "more than one copy can only be decided, not placed, in this version",
            hint="add --dry-run, or place one after the other with --name",
        )
    if order.refresh:
        fleet.refresh(rt)  # slow: SSH to every stale node, so no lock is held
    if order.dry_run:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            decision = deciding.decide(rt, tx, tx.now_ms, order, admitted)
            found, told = deciding.record(tx, order, admitted, name=name, decision=decision)
            return Report(name, True, found, told, placeable=bool(decision.placements))
    instance_id = rt.new_instance_id()
    with operations.turn(rt.ledger, instance_id, timeout_s=rt.settings.busy_timeout_s) as turn:
        intent = _intend(rt, order, admitted, name, turn)
        if isinstance(intent, Report):
            return intent
        report, sent = intent
        done = dispatch(rt, sent)
    return replace(report, attempt=done.attempt, instance=done.instance, launched=done.launched)


def _intend(
    rt: Runtime, order: Order, admitted: Admitted, name: str, turn: Turn
) -> tuple[Report, Intent] | Report:
    """Decide, and write down all that is about to be done, in one transaction."""
    instance_id = InstanceId(turn.scope)
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        holder = instances.holder_of(tx, name)
        if holder is not None:
            return _already(tx, order, admitted, holder)
        decision = deciding.decide(rt, tx, tx.now_ms, order, admitted)
        found, told = deciding.record(
            tx, order, admitted, name=name, decision=decision, instance_id=instance_id
        )
        if not decision.placements:
            return Report(name, False, found, told, placeable=False)
        chosen = decision.placements[0]
        instances.reserve(
            tx,
            instance_id=instance_id,
            name=name,
            order=instances.open_order(
                tx, name=name, package_id=admitted.package_id, options=deciding.options_of(order)
            ),
            decision=found,
            node=chosen.node,
            variant=chosen.variant,
            package_id=admitted.package_id,
            spec=admitted.spec,
            claims=chosen.assigned,
            desired=Desired.RUNNING if order.start else Desired.STOPPED,
        )
        operation = operations.begin(tx, turn, "place", token=rt.new_token())
        attempt = Attempt(found, 1, instance_id, chosen.node, None)
        attempts.begin(tx, attempt)
        walk_to(tx, instances.get(tx, instance_id), State.PLACED, f"decided: {chosen.node}")
        if order.start:
            generations.intend(tx, instance_id, 1)
            instances.change(tx, instance_id, generation=1)
        instance = instances.get(tx, instance_id)
        node = nodes.get(tx, chosen.node)
        fence, _ = chain.head(tx)
    emulated = chosen.tier is Tiering.EMULATED
    intent = Intent(
        attempt=attempt,
        instance=instance,
        node=node,
        operation=operation,
        admitted=admitted,
        start=order.start,
        fence=fence,
        emulated=(
            deciding.work_for(order, admitted, decision.request, emulated=True)
            if emulated
            else None
        ),
    )
    return Report(name, False, found, told), intent


def _already(tx: ReadTx, order: Order, admitted: Admitted, holder: Instance) -> Report:
    """Answer a repeated order: the same package with the same options is nothing to do.

    Raises:
        NameTaken: The name is in use by something else.
    """
    if holder.unsettled:
        raise NameTaken(
            f"nobody knows whether {holder.name} runs on {holder.node}: its answer was lost",
            hint=f"`wlctl unload {holder.name}` makes sure that it does not, and frees the name",
        )
    if holder.package_id == admitted.package_id:
        if instances.options_of(tx, holder.id) == deciding.options_of(order):
            return Report(holder.name, False, None, None, instance=holder)
        raise NameTaken(
            f"{holder.name} runs this very package, placed with other options",
            hint=f"`wlctl unload {holder.name}` first, or give another --name",
        )
    raise NameTaken(
        f"{holder.name} is in use by {holder.workload} {holder.version} on {holder.node}",
        hint=f"`wlctl unload {holder.name}` first, or give another --name",
    )
