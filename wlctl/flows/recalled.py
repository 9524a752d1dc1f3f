"""Write down one copy as its node tells of it: a reading, so what it holds is held, and no more.

Nothing is taken for ended because a node says so, but what the node unloaded on purpose.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from wlctl.errors import WlctlError
from wlctl.flows.deciding import Order, options_of
from wlctl.flows.mirror import mirror
from wlctl.flows.recalling import Told
from wlctl.ledger import decisions, generations, instances, operations, packages
from wlctl.ledger.store import WriteTx
from wlctl.lifecycle.machine import LIVE, IllegalTransition, walk
from wlctl.lifecycle.seen import current_of
from wlctl.model.actions import InstanceStatus
from wlctl.model.event import Json
from wlctl.model.generation import Liveliness
from wlctl.model.ids import InstanceId, NodeName, PackageId
from wlctl.model.instance import CLOSED, Desired, Instance, State
from wlctl.model.package import Manifest, PackageVariant
from wlctl.model.upkeep import Remembered
from wlctl.package import manifest

VERB = "rebuild"
"""What the history and the operations say of whatever comes from here."""

REASON = "recalled by its node"

SUFFIX_LETTERS = 6


@dataclass(frozen=True, slots=True)
class Found:
    """One copy on its node.

    Attributes:
        asked: What it was asked to be; None where only its status is known.
    """

    node: NodeName
    told: Told
    status: InstanceStatus
    asked: Remembered | None

    @property
    def is_alive(self) -> bool:
        """Its newest run has a leader that lives."""
        run = current_of(self.status)
        return run is not None and run.leader is Liveliness.ALIVE and not run.closed


@dataclass(frozen=True, slots=True)
class Recall:
    """What came of one copy.

    Attributes:
        name: It has in the ledger; empty where it is not there.
        is_new: The ledger knew nothing of it.
        trouble: Why it is not wholly known; empty when it is.
    """

    node: NodeName
    instance: InstanceId
    name: str = ""
    is_new: bool = False
    trouble: str = ""


def recall(
    tx: WriteTx,
    found: Found,
    manifests: Mapping[PackageId, bytes],
    answered: Collection[NodeName],
) -> Recall:
    """Let the ledger know a copy as its node has it.

    Args:
        answered: The nodes that told what they have: what the ledger has elsewhere may be long
            replaced.
    """
    known = instances.of_ids(tx, [found.status.instance])
    if known and known[0].node != found.node:
        return _trouble(found, f"the ledger has it on {known[0].node}: that node's word counts")
    if known and known[0].state in CLOSED:
        operations.skip_to(tx, known[0].id, found.status.number or 0, VERB)
        return _trouble(found, f"the ledger has it as {known[0].state.value}")
    if known:
        if operations.newest(tx, known[0].id) <= (found.status.number or 0):
            _let_be(tx, known[0], found)  # of what was asked of it since the node knows nothing
        return Recall(found.node, known[0].id, known[0].name)
    if found.asked is None:
        return _trouble(found, "its node cannot say what it was asked to run")
    try:
        stated = manifest.read(_manifest_of(tx, found.asked, manifests))
    except WlctlError as failure:
        return _trouble(found, f"its package is not to be had: {failure.message}")
    variant = _variant_of(stated, found.asked.sheet)
    if variant is None:
        return _trouble(found, "its launch sheet is not one of its package's")
    made = _make(tx, found, found.asked, stated, variant, answered=answered)
    _let_be(tx, made, found)
    renamed = "" if made.name == found.asked.name else f"{found.asked.name} is another one by now"
    return Recall(found.node, made.id, made.name, is_new=True, trouble=renamed)


def _trouble(found: Found, why: str) -> Recall:
    return Recall(found.node, found.status.instance, trouble=why)


def _manifest_of(tx: WriteTx, asked: Remembered, manifests: Mapping[PackageId, bytes]) -> bytes:
    known = next((one for one in packages.ls(tx) if one.id == asked.package), None)
    return known.manifest.encode() if known is not None else manifests.get(asked.package, b"")


def _variant_of(stated: Manifest, sheet: str) -> PackageVariant | None:
    return next(
        (one for one in stated.workload.variants if manifest.sheet_of(stated, one).sha256 == sheet),
        None,
    )


def _make(
    tx: WriteTx,
    found: Found,
    asked: Remembered,
    stated: Manifest,
    variant: PackageVariant,
    *,
    answered: Collection[NodeName],
) -> Instance:
    """Write down a copy that the ledger does not know, with an order like the one it was placed by.

    What a node does not keep of an order is as if it had not been given: pin, wishes, conditions,
    project, entries of secrets, key.
    """
    packages.put(tx, stated, asked.signatures)
    start = found.status.desired == "running"
    old = _whose_place(tx, asked, answered) if start else None
    name = _free_name(tx, asked) if old is None else asked.name
    spec = manifest.spec_of(stated)
    order = Order(package=Path(), name=name, env=asked.env, args=asked.args, start=start)
    instance_id = found.status.instance
    decision = decisions.recalled(
        tx,
        name=name,
        workload=spec.name,
        package_id=stated.package_id,
        node=found.node,
        instance_id=instance_id,
        before=asked.decision,
        told={key: str(value) for key, value in asdict(asked).items() if key != "env"},
    )
    instances.reserve(
        tx,
        instance_id=instance_id,
        name=name,
        order=_order_of(tx, old, stated.package_id, order),
        decision=decision,
        node=found.node,
        variant=variant.name,
        package_id=stated.package_id,
        spec=spec,
        claims=(),
        desired=Desired.RUNNING,
        replaces=None if old is None else old.id,
    )
    return instances.get(tx, instance_id)


def _whose_place(tx: WriteTx, asked: Remembered, answered: Collection[NodeName]) -> Instance | None:
    """Find the copy that has the name in the ledger, on a node that did not answer.

    Its place may have been taken since the ledger was as it is: there is to be one of that name.
    """
    holder = instances.holder_of(tx, asked.name)
    if holder is None or holder.node in answered:
        return None
    is_taken = any(one.replaces == holder.id for one in instances.standing_in(tx))
    return None if is_taken else holder


def _order_of(tx: WriteTx, old: Instance | None, package: PackageId, order: Order) -> int:
    """Give a copy the order of the one whose place it takes, where that asks for the same."""
    options = options_of(order)
    if old is not None and old.package_id == package:
        kept = instances.options_of(tx, old.id)
        if all(kept.get(key) == options[key] for key in ("env", "args")):
            return instances.order_of(tx, old.id)
    return instances.open_order(tx, name=order.name, package_id=package, options=options)


def _free_name(tx: WriteTx, asked: Remembered) -> str:
    """Give a copy its name, or one of its own where another copy has that by now."""
    if instances.holder_of(tx, asked.name) is None:
        return asked.name
    return f"{asked.name[:100]}-{asked.instance[-SUFFIX_LETTERS:]}"


def _let_be(tx: WriteTx, instance: Instance, found: Found) -> None:
    """Let a copy be what its node shows, and its next operation newer than any of the node's."""
    status = found.status
    operations.skip_to(tx, instance.id, status.number or 0, VERB)
    known = {run.number for run in generations.of_instance(tx, instance.id)}
    newest = max(
        [instance.generation, status.current or 0, *(g.number for g in status.generations)]
    )
    for run in status.generations:
        if run.number not in known:
            generations.intend(tx, instance.id, run.number)
        if run.launch is not None:
            generations.launched(tx, instance.id, run.launch)
    columns: dict[str, object] = {"generation": newest, "unsettled": False}
    if instance.desired is not Desired.UNLOADED and status.desired:
        wanted = Desired.RUNNING if status.desired == "running" else Desired.STOPPED
        columns["desired"] = wanted.value
    instances.change(tx, instance.id, **columns)
    now = instances.get(tx, instance.id)
    goal = _goal(now, status)
    way = walk(now.state, goal)
    if isinstance(way, IllegalTransition):
        return
    instances.advance(tx, now, way, REASON)
    if goal in LIVE:
        at_ms = found.told.facts.probed_at_ms
        mirror(tx, instances.get(tx, instance.id), status, at_ms=at_ms, twice=True)


def _goal(instance: Instance, status: InstanceStatus) -> State:
    """Say in which state a copy is, by what its node has of it.

    A run that is not known to live is still held: what ends it is a proof, and a stop asks for it.
    """
    if not status.generations:
        return State.LOADED if instance.state in _BEFORE else instance.state
    if status.desired == "running":
        return instance.state if instance.state in LIVE else State.RUNNING
    return State.STOPPING if instance.state in LIVE | _BEFORE else instance.state


_BEFORE = frozenset({State.REQUESTED, State.PLACED, State.FETCHING, State.VERIFIED})
"""Nothing was heard of it yet."""


def depart(tx: WriteTx, told: Told, node: NodeName) -> int:
    """Close what the node unloaded on purpose since the ledger last heard of it; say how many."""
    gone = [
        one for one in instances.current(tx) if one.node == node and one.id in told.status.departed
    ]
    for one in gone:
        number = told.status.departed[one.id]
        way = walk(one.state, State.UNLOADED)
        if isinstance(way, IllegalTransition):
            continue
        evidence: dict[str, Json] = {"departed": number, "node_id": told.facts.node_id}
        instances.advance(tx, one, way, "its node tells that it was unloaded there", evidence)
        instances.release(tx, one.id)
        instances.change(tx, one.id, unsettled=False, health="")
        operations.skip_to(tx, one.id, number, VERB)
    return len(gone)
