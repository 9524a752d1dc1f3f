"""Decide where an order goes, by the fleet of this very transaction, and record the decision."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from wlctl.flows import gate, packages
from wlctl.flows.packages import Admitted
from wlctl.flows.plan import Plan
from wlctl.flows.runtime import Runtime
from wlctl.gate.work import work_of
from wlctl.ledger import decisions, instances, nodes, sayings
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.event import Json
from wlctl.model.fleet import ClusterState, NodeView, view_of
from wlctl.model.ids import DecisionId, InstanceId, NodeName
from wlctl.model.placement import Decision, PlaceRequest, Weights
from wlctl.model.policy import Work
from wlctl.model.workload import Op, WorkloadSpec
from wlctl.placement import engine
from wlctl.placement.document import document, encode
from wlctl.placement.shapes import Document
from wlctl.placement.where import Where, known_of, resolve


@dataclass(frozen=True, slots=True)
class Order:
    """What the operator asks for, with all its options.

    Attributes:
        package: Directory of a built and signed package.
        name: What to call the copy; empty for the workload's name.
        dry_run: Decide and record the decision, and do nothing else.
        count: How many copies; NAME.1 to NAME.N when there is more than one.
        refresh: Look again at nodes whose facts have run out.
        project: Kept with the order, and matched by permits; empty for none.
        env: Added to the sheet's environment; only names that the package allows.
        args: Added to the command, where the package allows it.
        secrets: The package's name of each to the entry of the settings, where they differ.
        lease_ms: Time to live of the dead-man lease; None for the package's own.
        migratable: Whether it may be moved by itself; None for what the package says.
        max_reschedules: How often it may be moved by itself; None for what the package says.
        key: Spent by the first order that is carried out with it; empty for none.
        plan: What `--plan-out` wrote: the decision must come out the same; None for any.
        moving: The copy that it moves; what that one holds is not in its way.
        current_node: Where that copy is.
        to_finish: It will be waited for to its end, so it must be one that ends by itself.
    """

    package: Path
    count: int = 1
    name: str = ""
    pin: NodeName | None = None
    prefer: tuple[NodeName, ...] = ()
    avoid: tuple[NodeName, ...] = ()
    where: tuple[Where, ...] = ()
    allow_emulated: bool = False
    why: tuple[NodeName, ...] = ()
    start: bool = True
    dry_run: bool = False
    refresh: bool = True
    project: str = ""
    env: tuple[tuple[str, str], ...] = ()
    args: tuple[str, ...] = ()
    secrets: tuple[tuple[str, str], ...] = ()
    lease_ms: int | None = None
    migratable: bool | None = None
    max_reschedules: int | None = None
    key: str = ""
    plan: Plan | None = None
    to_finish: bool = False
    moving: InstanceId | None = None
    current_node: NodeName | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """What of an order every later start and move needs, as it was kept with it."""

    env: tuple[tuple[str, str], ...]
    args: tuple[str, ...]
    start: bool
    secrets: Mapping[str, str]


def decide(rt: Runtime, tx: ReadTx, now_ms: int, order: Order, admitted: Admitted) -> Decision:
    """Decide by what the ledger says now, and by the gate's verdict for each node."""
    # What a condition means depends on what the fleet has, and the gate judges conditions.
    request = request_of(order, admitted.spec, fleet_of(tx, now_ms)[0] if order.where else ())
    verdict_of = gate.placing(rt, tx, work_for(order, admitted, request))
    views, cluster = fleet_of(tx, now_ms, verdict_of)
    return engine.decide(request, views, cluster, weights_of(rt), now_ms)


def work_for(
    order: Order, admitted: Admitted, request: PlaceRequest, *, emulated: bool = False
) -> Work:
    """Say what the gate is asked about."""
    return work_of(admitted.spec, where=request.where, project=order.project, emulated=emulated)


def fleet_of(
    tx: ReadTx, now_ms: int, verdict_of: gate.NodeGate | None = None
) -> tuple[list[NodeView], ClusterState]:
    """Read all that a decision takes of the fleet.

    Args:
        verdict_of: The gate for what is placed; without it every node is denied.
    """
    said, fleet = sayings.of_fleet(tx), nodes.ls(tx)
    views = [
        view_of(
            replace(node, cordoned=node.is_cordoned_at(now_ms)),
            verdict_of(node) if verdict_of else None,
            said.get(node.name, ()),
        )
        for node in fleet
    ]
    retired = frozenset(node.name for node in fleet if node.attested_dead_at_ms is not None)
    return views, ClusterState(holds=instances.holds(tx), retired=retired)


def weights_of(rt: Runtime) -> Weights:
    """Take the weights from the settings, each of which has the name of its field."""
    return Weights(
        **{one.name: getattr(rt.settings, f"weights_{one.name}") for one in fields(Weights)}
    )


def request_of(order: Order, spec: WorkloadSpec, views: Sequence[NodeView]) -> PlaceRequest:
    """Put what was ordered into the words of a decision about this fleet."""
    known = known_of(view.capabilities for view in views) if order.where else {}
    return PlaceRequest(
        workload=spec,
        count=order.count,
        where=tuple(resolve(where, known) for where in order.where),
        allow_emulated=order.allow_emulated,
        pin=order.pin,
        prefer=order.prefer,
        avoid=order.avoid,
        current_node=order.current_node,
        moving=order.moving,
        why=order.why,
    )


def record(
    tx: WriteTx,
    order: Order,
    admitted: Admitted,
    *,
    name: str,
    decision: Decision,
    instance_id: InstanceId | None = None,
) -> tuple[DecisionId, Document]:
    """Record a decision with all its reasons; it is an intent only with an `instance_id`."""
    packages.record(tx, admitted)
    chosen = decision.placements[0] if decision.placements else None
    told = document(decision)
    found = decisions.record(
        tx,
        encode(told),
        name=name,
        workload=admitted.spec.name,
        package_id=admitted.package_id,
        node=None if chosen is None else chosen.node,
        instance_id=None if chosen is None else instance_id,
        counts=counts_of(decision),
        dry_run=order.dry_run,
    )
    return found, told


def counts_of(decision: Decision) -> dict[str, int]:
    """Count who is eligible, who is not, and how many nodes fail each constraint."""
    counts = {"eligible": len(decision.ranked), "rejected": len(decision.rejected)}
    for rejections in decision.rejected.values():
        for constraint in {rejection.constraint for rejection in rejections}:
            counts[constraint.value] = counts.get(constraint.value, 0) + 1
    return counts


def options_of(order: Order) -> dict[str, Json]:
    """Write the options down, as they are kept for moves and compared when an order is repeated.

    What the package decides unless it was ordered otherwise, `migratable` and `max_reschedules`, is
    there only when it was ordered.
    """
    told: dict[str, Json] = {
        "pin": order.pin,
        "prefer": list(order.prefer),
        "avoid": list(order.avoid),
        "where": [asdict(where) for where in order.where],
        "allow_emulated": order.allow_emulated,
        "start": order.start,
        "project": order.project,
        "env": dict(order.env),
        "args": list(order.args),
        "secrets": dict(order.secrets),
        "lease_ms": order.lease_ms,
    }
    if order.migratable is not None:
        told["migratable"] = order.migratable
    if order.max_reschedules is not None:
        told["max_reschedules"] = order.max_reschedules
    return told


def options_read(kept: Mapping[str, Json]) -> Options:
    """Read back what `options_of` wrote."""
    env, args, secrets = kept["env"], kept["args"], kept["secrets"]
    assert isinstance(env, Mapping)
    assert isinstance(secrets, Mapping)
    assert isinstance(args, list | tuple)
    return Options(
        env=tuple((name, str(value)) for name, value in env.items()),
        args=tuple(map(str, args)),
        start=kept["start"] is True,
        secrets={name: str(entry) for name, entry in secrets.items()},
    )


def order_read(kept: Mapping[str, Json], package: Path, name: str) -> Order:
    """Read back an order that `options_of` wrote, to carry it out once more for one copy."""
    options = options_read(kept)
    pin, lease_ms = kept["pin"], kept["lease_ms"]
    return Order(
        package=package,
        name=name,
        pin=NodeName(str(pin)) if pin else None,
        prefer=tuple(NodeName(str(one)) for one in _list(kept["prefer"])),
        avoid=tuple(NodeName(str(one)) for one in _list(kept["avoid"])),
        where=tuple(where_read(one) for one in _list(kept["where"])),
        allow_emulated=kept["allow_emulated"] is True,
        start=options.start,
        project=str(kept["project"]),
        env=options.env,
        args=options.args,
        secrets=tuple(options.secrets.items()),
        lease_ms=lease_ms if isinstance(lease_ms, int) else None,
    )


def where_read(kept: Json) -> Where:
    """Read back one condition of an order."""
    assert isinstance(kept, Mapping)
    op = kept["op"]
    return Where(str(kept["subject"]), None if op is None else Op(str(op)), str(kept["value"]))


def _list(kept: Json) -> Sequence[Json]:
    assert isinstance(kept, list | tuple)
    return kept
