"""What one probe saw of a node, and the capabilities that come of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum

Scalar = str | int | float | bool
AttrValue = Scalar | tuple[Scalar, ...]


class Provenance(IntEnum):
    """How far a capability can be believed; a higher one satisfies a demand for a lower."""

    CLAIMED = 0
    """An operator's word (`node set --capability`, node labels)."""
    PROBED = 1
    """A facts action saw it."""
    MEASURED = 2
    """A bounded measurement produced the figure."""

    @property
    def word(self) -> str:
        """The word used in files and output."""
        return self.name.lower()


class CapabilityState(StrEnum):
    """Whether a capability can be had now."""

    AVAILABLE = "available"
    """It can."""
    BUSY = "busy"
    """Something that is not ours uses it."""
    RESERVED = "reserved"
    """It is kept for something else."""
    DEGRADED = "degraded"
    """It is there and does not work as it should."""


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing a node has.

    Attributes:
        id: Dotted, e.g. `runtime.python`; the vocabulary is open.
        attrs: Attribute name to value; units stand last in the name (`total_bytes`). Absent means
            unknown, and a predicate on an absent attribute fails.
        exclusive: Only one instance can have it at a time.
    """

    id: str
    attrs: Mapping[str, AttrValue] = field(default_factory=dict)
    provenance: Provenance = Provenance.PROBED
    state: CapabilityState = CapabilityState.AVAILABLE
    exclusive: bool = False


FACTS_TTL_MS = 15 * 60 * 1000
"""Facts older than this say nothing about a node."""


@dataclass(frozen=True, slots=True)
class Facts:
    """One probe's answer.

    Attributes:
        seq: Grows by one with each probe of the node that is recorded.
        probed_at_ms: When the controller received it, epoch milliseconds of the controller's clock.
        ttl_ms: How long it may be decided from.
        node_id: The identity in the node's state directory, 32 hex digits.
        machine_id: `/etc/machine-id`, or empty where there is none.
        boot_id: The kernel's random id of this boot.
        uptime_ms: Of this boot, at the probe.
        clock_skew_ms: Node's wall clock minus the controller's, at the probe.
        load: Share of the processors in demand, 0 to 1, or None when unknown.
        memory_total_bytes: Of the machine.
        memory_available_bytes: The kernel's MemAvailable.
        memory_ours_bytes: What our instances used at that reading.
        disk_free_bytes: On the state directory's mount.
        ports_listening: TCP ports something listens on, ascending.
        state_dir: Absolute path of wlctl's state on the node.
        containment: What the node can do for a generation: isolated, cgroup or leader-only.
        cgroup_root: Where its generations live, or empty without a writable cgroup v2.
        instances: Ids of this installation's instances that have state on the node, ascending.
        capabilities: Everything else, ascending by id.
        missing: Tools that wlctl needs and the node lacks, ascending.
    """

    seq: int
    probed_at_ms: int
    ttl_ms: int
    node_id: str
    machine_id: str
    boot_id: str
    uptime_ms: int
    clock_skew_ms: int
    load: float | None
    memory_total_bytes: int
    memory_available_bytes: int
    memory_ours_bytes: int
    disk_free_bytes: int
    cpu_cores: int
    ports_listening: tuple[int, ...]
    state_dir: str
    containment: str
    cgroup_root: str
    instances: tuple[str, ...]
    capabilities: tuple[Capability, ...]
    missing: tuple[str, ...] = ()

    @property
    def expires_at_ms(self) -> int:
        """The first moment at which these facts no longer count."""
        return self.probed_at_ms + self.ttl_ms
