"""Builders for placement tests: a node that takes anything, a workload that asks for nothing."""

from collections.abc import Iterable
from typing import Any

from wlctl.model.facts import AttrValue, Capability
from wlctl.model.fleet import ClusterState, Hold, NodeView, Reading, Ruling, Verdict
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.node import Liveness, Tier
from wlctl.model.placement import Decision, PlaceRequest, Weights
from wlctl.model.workload import (
    Execution,
    Kind,
    Op,
    Predicate,
    Requirement,
    Resources,
    Variant,
    WorkloadPolicy,
    WorkloadSpec,
)
from wlctl.placement.constraints import detail
from wlctl.placement.engine import decide

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
NOW = 1_800_000_000_000
MINUTE = 60_000
ALLOWED = Verdict(Ruling.ALLOWED, "paired-signed")


def a_node(name: str = "a", *capabilities: Capability, **given: Any) -> NodeView:
    """A node of 16 GiB and 8 cores, alive, idle and paired."""
    view: dict[str, Any] = {
        "name": NodeName(name),
        "tier": Tier.PAIRED,
        "liveness": Liveness.ALIVE,
        "facts_expire_at_ms": NOW + 10 * MINUTE,
        "capabilities": (*capabilities, a_capability("mem.system", total_bytes=16 * GIB)),
        "load": 0.5,
        "memory": Reading(16 * GIB, 16 * GIB),
        "cpu_cores": 8,
        "disk": Reading(100 * GIB, 100 * GIB),
        "gate": ALLOWED,
    }
    return NodeView(**view | given)


def a_capability(capability_id: str, **attrs: AttrValue) -> Capability:
    """A probed, available capability."""
    return Capability(capability_id, attrs)


def a_hold(node: str = "a", name: str = "other", **given: Any) -> Hold:
    """What an instance of another workload holds: nothing, unless given."""
    hold: dict[str, Any] = {
        "node": NodeName(node),
        "instance": InstanceId(f"i-{name}"),
        "name": name,
        "kind": Kind.SERVICE,
        "workload": name,
    }
    return Hold(**hold | given)


_RESOURCES = {"memory_bytes", "accel_memory_bytes", "cpu_cores", "disk_bytes", "pids"}
_POLICY = set(WorkloadPolicy.__dataclass_fields__)


def a_workload(*common: Requirement, **given: Any) -> WorkloadSpec:
    """A service called web; resources and policy are given flat."""
    resources = {key: given.pop(key) for key in _RESOURCES & given.keys()}
    policy = {key: given.pop(key) for key in _POLICY & given.keys()}
    spec: dict[str, Any] = {
        "kind": Kind.SERVICE,
        "name": "web",
        "common": common,
        "resources": Resources(**resources),
        "policy": WorkloadPolicy(**policy),
    }
    return WorkloadSpec(**spec | given)


def needs(capability_id: str, *where: Predicate, **given: Any) -> Requirement:
    """A requirement; an id that ends in .* is a prefix."""
    if capability_id.endswith(".*"):
        return Requirement(id_prefix=capability_id[:-2], where=where, **given)
    return Requirement(id=capability_id, where=where, **given)


def where(attr: str, op: str, value: AttrValue) -> Predicate:
    return Predicate(attr, Op(op), value)


def native(name: str, *requirements: Requirement) -> Variant:
    return Variant(name, Execution.NATIVE, requirements)


def emulated(name: str, *requirements: Requirement) -> Variant:
    return Variant(name, Execution.EMULATED, requirements)


def place(
    workload: WorkloadSpec,
    *nodes: NodeView,
    holds: Iterable[Hold] = (),
    cluster: ClusterState | None = None,
    weights: Weights | None = None,
    **options: Any,
) -> Decision:
    """Decide; names in the options may be plain text."""
    for key in ("prefer", "avoid", "why"):
        if key in options:
            options[key] = tuple(map(NodeName, options[key]))
    return decide(
        PlaceRequest(workload, **options),
        nodes,
        cluster or ClusterState(holds=tuple(holds)),
        weights or Weights(),
        NOW,
    )


def reasons(decision: Decision, node: str = "a") -> list[str]:
    """Every reason against a node, `constraint: detail`; empty when it is eligible."""
    return [
        f"{found.constraint}: {detail(found)}"
        for found in decision.rejected.get(NodeName(node), ())
    ]


def constraints(decision: Decision, node: str = "a") -> list[str]:
    """The constraints a node fails, in the order of the report."""
    return [str(found.constraint) for found in decision.rejected.get(NodeName(node), ())]


def chosen(decision: Decision) -> list[str]:
    """The nodes chosen, in the order of the instances."""
    return [placement.node for placement in decision.placements]
