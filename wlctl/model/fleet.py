"""The fleet as a decision sees it: nodes, and what the ledger knows that no node does."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from wlctl.model.facts import Capability
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.node import Liveness, Node, Tier
from wlctl.model.workload import Kind


class Ruling(StrEnum):
    """What the gate says; a deferred placement counts as denied."""

    ALLOWED = "allowed"
    """Yes."""
    DENIED = "denied"
    """No."""
    DEFERRED = "deferred"
    """Not before somebody approves it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The gate's answer for one action on one node.

    Attributes:
        rule: Id of the rule that decided.
        reason: Its words, or empty.
    """

    ruling: Ruling
    rule: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """How full a store of bytes was when the node was probed.

    Attributes:
        available_bytes: What could still be had then (MemAvailable; free space).
        ours_bytes: What our instances used of it then.
    """

    total_bytes: int
    available_bytes: int
    ours_bytes: int = 0

    @property
    def others_bytes(self) -> int:
        """What others used: never ours, which is counted by what it was promised."""
        return max(0, self.total_bytes - self.available_bytes - self.ours_bytes)


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node as a decision sees it.

    Attributes:
        facts_expire_at_ms: From this moment its facts do not count; None before the first probe.
        capabilities: Nodes that share one tuple are judged once; memory totals are among them
            (`mem.system`, `mem.vram`, `mem.unified`, attribute `total_bytes`).
        load: Share of the processors in demand, 0 to 1; None when unknown.
        memory: None when unknown.
        disk: Of the state directory's mount; None when unknown.
        ports_listening: Ports something listens on, ours included.
        gate: None is denied.
        leader_only: It has no cgroup to give, and its operator settles for that.
    """

    name: NodeName
    tier: Tier
    liveness: Liveness
    cordoned: bool = False
    facts_expire_at_ms: int | None = None
    capabilities: tuple[Capability, ...] = ()
    load: float | None = None
    memory: Reading | None = None
    cpu_cores: float = 0.0
    disk: Reading | None = None
    ports_listening: tuple[int, ...] = ()
    gate: Verdict | None = None
    leader_only: bool = False


def view_of(node: Node, gate: Verdict | None, labels: tuple[Capability, ...] = ()) -> NodeView:
    """See `node` as a decision does.

    Args:
        node: With its newest facts, if it has any.
        gate: The gate's verdict for this placement on it.
        labels: What the operator says of it (`node.label.*` and claimed capabilities).
    """
    facts = node.facts
    if facts is None:
        return NodeView(
            node.name, node.tier, node.liveness, node.cordoned, capabilities=labels, gate=gate
        )
    return NodeView(
        name=node.name,
        tier=node.tier,
        liveness=node.liveness,
        cordoned=node.cordoned,
        facts_expire_at_ms=facts.expires_at_ms,
        # Without labels the tuple stays the same object, which lets equal nodes be judged once.
        capabilities=(*facts.capabilities, *labels) if labels else facts.capabilities,
        load=facts.load,
        memory=Reading(
            facts.memory_total_bytes, facts.memory_available_bytes, facts.memory_ours_bytes
        ),
        cpu_cores=facts.cpu_cores,
        # How much of the disk is used, and by whom, is not known: what is free is all there is.
        disk=Reading(facts.disk_free_bytes, facts.disk_free_bytes),
        ports_listening=facts.ports_listening,
        gate=gate,
        leader_only=node.is_leader_only,
    )


class Claim(NamedTuple):
    """A capability of a node that an instance was given.

    Attributes:
        key: `placement.route.capability_key` of it.
        exclusive: Nobody else may have it meanwhile.
    """

    key: str
    exclusive: bool


@dataclass(frozen=True, slots=True)
class Hold:
    """What an instance, a placement in flight or a pool of slots keeps of a node until proof.

    Attributes:
        instance: Empty for a pool.
        name: What people know it by.
        kind: None for a pool.
        workload: Name of the workload.
        labels: Co-residency labels it carries.
        excludes: Labels it will not share a node with.
        memory_bytes: Promised, whether used or not.
    """

    node: NodeName
    instance: InstanceId
    name: str
    kind: Kind | None
    workload: str
    labels: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    claims: tuple[Claim, ...] = ()
    memory_bytes: int = 0
    accel_memory_bytes: int = 0
    cpu_cores: float = 0.0
    disk_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ClusterState:
    """What the ledger knows that no node does.

    Attributes:
        holds: Of every instance that is not proven gone, placements in flight and unsettled ones
            included, and the caps of slot pools, booted or not.
        revoked: Whatever is revoked: package ids, signer keys, artifact hashes.
    """

    holds: tuple[Hold, ...] = ()
    retired: frozenset[NodeName] = frozenset()
    revoked: frozenset[str] = frozenset()
