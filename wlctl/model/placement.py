"""A placement's nouns: what is asked, why a node will not do, and what was decided."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from wlctl.model.fleet import Claim, Verdict
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.workload import Requirement, WorkloadSpec


class Constraint(StrEnum):
    """Why a node may be rejected, in the order in which reasons are reported."""

    NODE_RETIRED = "node_retired"
    """Attested dead, or rekeyed away."""
    LIVENESS = "liveness"
    """Not alive, or cordoned."""
    FACTS_EXPIRED = "facts_expired"
    """Nothing recent is known of it."""
    TRUST = "trust"
    """Its tier is below what the workload asks for."""
    WORKLOAD_REVOKED = "workload_revoked"
    """The package, a signer or a file of it is revoked."""
    CO_RESIDENCY = "co_residency"
    """A neighbour and the workload will not share a node."""
    MEMORY = "memory"
    """Memory that is neither promised nor used."""
    CPU = "cpu"
    """Cores that are not promised."""
    DISK = "disk"
    """Space on the state directory's mount that is neither promised nor used."""
    PORT = "port"
    """A fixed port is taken."""
    REQUIREMENTS = "requirements"
    """It lacks something the workload needs, or has it in the wrong state or number."""
    PROVENANCE = "provenance"
    """It has what is needed, but nobody checked."""
    EMULATION_NOT_ALLOWED = "emulation_not_allowed"
    """Only an emulated variant matches."""
    GATE = "gate"
    """No verdict allows it."""
    PERF_BUDGET = "perf_budget"
    """It was measured below the workload's target."""


class Tiering(StrEnum):
    """How an eligible node would run the workload, best first; no score crosses them."""

    NATIVE = "native"
    """As it is."""
    EMULATED = "emulated"
    """Through an emulator."""
    DEV_FALLBACK = "dev_fallback"
    """Natively, on a machine of last resort."""


TIER_ORDER: Mapping[Tiering, int] = MappingProxyType({tier: n for n, tier in enumerate(Tiering)})


@dataclass(frozen=True, slots=True)
class Weights:
    """What the terms of a score are worth; each finite and at least zero.

    Attributes:
        interactive_factor: Multiplies `perf` for interactive workloads.
        stickiness: For the node an instance is on; `sticky` instead when its policy says so.
        dev_class: Id of the capability that marks a machine of last resort.
    """

    native: float = 100.0
    emulated: float = 40.0
    dev_fallback: float = 20.0
    accel_fit: float = 10.0
    perf: float = 30.0
    interactive_factor: float = 2.0
    load: float = 10.0
    room: float = 10.0
    spread: float = 10.0
    stickiness: float = 15.0
    sticky: float = 1000.0
    dev_class: str = "node.class.dev"


@dataclass(frozen=True, slots=True)
class PlaceRequest:
    """What is asked for, with all its options.

    Attributes:
        count: How many instances; each is decided seeing the ones before.
        where: The operator's own requirements, on top of the workload's.
        pin: Only this node, whatever its score.
        prefer: Nodes liked, most liked first.
        avoid: Nodes disliked; taken when there is no other.
        current_node: Where the instance is that is being moved.
        moving: That instance; what it holds does not stand in its own way.
        why: Nodes whose full check list is wanted.
    """

    workload: WorkloadSpec
    count: int = 1
    where: tuple[Requirement, ...] = ()
    allow_emulated: bool = False
    pin: NodeName | None = None
    prefer: tuple[NodeName, ...] = ()
    avoid: tuple[NodeName, ...] = ()
    current_node: NodeName | None = None
    moving: InstanceId | None = None
    why: tuple[NodeName, ...] = ()


class Rejection(NamedTuple):
    """One constraint that one node fails; `placement.constraints` puts it into words.

    Attributes:
        values: What was compared, as the constraint's wording takes it. Not words, because most
            rejections of a large fleet are counted and never read.
    """

    constraint: Constraint
    values: tuple[object, ...]


class Terms(NamedTuple):
    """The parts of a score."""

    execution: float
    locality: float
    accel_fit: float
    perf: float
    load: float
    room: float
    spread: float
    stickiness: float


class Candidate(NamedTuple):
    """An eligible node and its full score.

    Attributes:
        flags: `unmeasured`, `load_unknown`, `leader_only`.
        assigned: The capabilities it would be given, in the order of the requirements.
    """

    node: NodeName
    variant: str
    tier: Tiering
    total: float
    terms: Terms
    flags: tuple[str, ...]
    assigned: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one instance goes.

    Attributes:
        affinity: The choice is not the top-ranked node.
        dispatch: The order in which to try: the choice, then what comes after it; never empty.
        full: Nodes eligible for the first instance and not for this one any more.
    """

    chosen: Candidate
    affinity: bool
    dispatch: tuple[Candidate, ...]
    full: Mapping[NodeName, tuple[Rejection, ...]] = field(default_factory=dict)

    @property
    def node(self) -> NodeName:
        """The node chosen."""
        return self.chosen.node

    @property
    def variant(self) -> str:
        """The variant that matched there."""
        return self.chosen.variant

    @property
    def tier(self) -> Tiering:
        """How it runs there."""
        return self.chosen.tier

    @property
    def assigned(self) -> tuple[Claim, ...]:
        """The capabilities it is given."""
        return self.chosen.assigned


class Check(NamedTuple):
    """One line of a node's check list.

    Attributes:
        detail: What was compared, in words.
    """

    constraint: Constraint
    passed: bool
    detail: str


class Relaxation(NamedTuple):
    """What giving up one or more terms of the request would bring.

    Attributes:
        terms: In the order of the request.
        nodes: How many more nodes would be eligible.
    """

    terms: tuple[str, ...]
    nodes: int


@dataclass(frozen=True, slots=True)
class Relaxations:
    """What the request itself stands in the way of.

    Attributes:
        single: Each term that alone keeps nodes out, most nodes first.
        smallest: The fewest terms without which it can be placed at all; None when it can be
            placed, or when no term is to blame.
        exact: The search was not cut short at its bound.
    """

    single: tuple[Relaxation, ...] = ()
    smallest: Relaxation | None = None
    exact: bool = True


class Gated(NamedTuple):
    """One answer of the gate, and every node that got it.

    Attributes:
        verdict: None where the gate was not asked, which is a denial.
        nodes: Ascending.
    """

    verdict: Verdict | None
    nodes: tuple[NodeName, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """The whole answer: where it goes, and one verdict of every node.

    The verdicts are those the first instance met; when not all of `request.count` fit, those met by
    the first that did not.

    Attributes:
        ranked: The eligible nodes, best first, whatever was pinned, preferred or avoided.
        rejected: Every other node, with every reason.
        placements: One for each of `request.count`, or empty.
        fits: How many could have been placed.
        checks: The full check lists of the nodes chosen, pinned or asked about.
        gated: What the gate said of every node, the answer that most nodes got first.
    """

    request: PlaceRequest
    now_ms: int
    weights: Weights
    ranked: tuple[Candidate, ...]
    rejected: Mapping[NodeName, tuple[Rejection, ...]]
    placements: tuple[Placement, ...]
    fits: int
    relaxations: Relaxations = field(default_factory=Relaxations)
    checks: Mapping[NodeName, tuple[Check, ...]] = field(default_factory=dict)
    gated: tuple[Gated, ...] = ()
