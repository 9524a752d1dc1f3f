"""What should run: the spec that a verified package yields."""

from dataclasses import dataclass, field
from enum import StrEnum

from wlctl.model.facts import AttrValue, Provenance
from wlctl.model.kind import Kind as Kind  # noqa: PLC0414 - it is imported from here, too
from wlctl.model.node import Tier


class Execution(StrEnum):
    """How a variant runs on a node that matches it."""

    NATIVE = "native"
    """As it is."""
    EMULATED = "emulated"
    """Through an emulator; only where the order allows it."""


class Op(StrEnum):
    """What a predicate compares with."""

    EQ = "eq"
    """Equal."""
    GTE = "gte"
    """At least."""
    LTE = "lte"
    """At most."""
    IN = "in"
    """One of the values listed."""
    HAS = "has"
    """The attribute is a list and has the value."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """One condition on one attribute of a capability."""

    attr: str
    op: Op
    value: AttrValue


@dataclass(frozen=True, slots=True)
class Requirement:
    """Something the node must have.

    Exactly one of `id` and `id_prefix` is set; a prefix matches whole dotted segments. All
    predicates must hold on the same capability.

    Attributes:
        count: How many distinct capabilities must match, 1 to 64.
        min_provenance: None takes the policy's.
    """

    id: str | None = None
    id_prefix: str | None = None
    where: tuple[Predicate, ...] = ()
    count: int = 1
    exclusive: bool = False
    min_provenance: Provenance | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run the workload; the first matching native one wins."""

    name: str
    execution: Execution = Execution.NATIVE
    requirements: tuple[Requirement, ...] = ()


@dataclass(frozen=True, slots=True)
class Resources:
    """What an instance is promised and held to; zero is not asked for and not limited.

    Attributes:
        cpu_cores: Cores, fractions allowed.
        pids: Processes and threads at a time; 0 takes the node's default.
    """

    cpu_cores: float = 0.0
    memory_bytes: int = 0
    accel_memory_bytes: int = 0
    disk_bytes: int = 0
    pids: int = 0


@dataclass(frozen=True, slots=True)
class PerfTarget:
    """A figure of merit the workload wants, judged from measured values only.

    Attributes:
        id: Capability id, e.g. `perf.cpu.single`; its attribute `value` is compared.
        minimum: In the unit of that capability.
    """

    id: str
    minimum: float


@dataclass(frozen=True, slots=True)
class Preference:
    """A requirement that is liked, not needed; its weight adds to the locality term."""

    requirement: Requirement
    weight: float


class LatencyClass(StrEnum):
    """How much the performance term counts."""

    BATCH = "batch"
    """A little."""
    INTERACTIVE = "interactive"
    """More than anything else."""


@dataclass(frozen=True, slots=True)
class WorkloadPolicy:
    """The workload's own wishes about where it goes.

    Attributes:
        labels: Co-residency labels it carries.
        excludes: Labels it will not share a node with, its own included.
    """

    min_trust: Tier = Tier.PAIRED
    min_provenance: Provenance = Provenance.CLAIMED
    labels: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    latency_class: LatencyClass = LatencyClass.BATCH
    perf: PerfTarget | None = None
    preferences: tuple[Preference, ...] = ()
    sticky: bool = False


IMPLICIT_VARIANT = Variant("default")
"""What a workload without variants has: one native variant that asks for nothing more."""


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """Everything a decision needs to know of a workload.

    Attributes:
        common: Requirements of every variant.
        variants: In declared order; never empty.
        ports: Fixed TCP ports by name; a port of 0 is chosen on the node.
        secrets: Names of the secrets it is given.
        revocable_refs: Whatever a revocation may name: package id, signer keys, artifact hashes.
        user: The login it runs as; empty for a uid of the instance's own.
        capabilities: Linux capabilities it is given.
    """

    kind: Kind
    name: str
    version: str = ""
    common: tuple[Requirement, ...] = ()
    variants: tuple[Variant, ...] = (IMPLICIT_VARIANT,)
    resources: Resources = field(default_factory=Resources)
    policy: WorkloadPolicy = field(default_factory=WorkloadPolicy)
    ports: tuple[tuple[str, int], ...] = ()
    secrets: tuple[str, ...] = ()
    revocable_refs: tuple[str, ...] = ()
    user: str = ""
    capabilities: tuple[str, ...] = ()
