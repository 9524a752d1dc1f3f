"""The shape of a decision as it is kept: `wlctl.decision/1`. Keys are only ever added."""

from typing import TypedDict

SCHEMA = "wlctl.decision/1"


class CandidateShape(TypedDict):
    """An eligible node and its full score."""

    assigned: list[str]
    flags: list[str]
    node: str
    terms: dict[str, float]
    tier: str
    total: float
    variant: str


class RejectionShape(TypedDict):
    """One constraint that is failed; the lower the effort, the nearer the miss."""

    change: str
    constraint: str
    detail: str
    effort: float


class RejectedShape(TypedDict):
    """Nodes that fail exactly the same."""

    nodes: list[str]
    rejections: list[RejectionShape]


class PlacementShape(TypedDict):
    """Where one instance goes.

    `dispatch` has the first of the `dispatch_length` nodes to try; `full` those that were eligible
    for the first instance and not for this one any more.
    """

    affinity: bool
    chosen: CandidateShape
    dispatch: list[str]
    dispatch_length: int
    full: list[RejectedShape]


class TallyShape(TypedDict):
    """How many nodes one cause rejects: alone, and among other causes."""

    alone: int
    among_others: int
    constraint: str
    what: str


class RelaxationShape(TypedDict):
    """How many more nodes would be eligible without the terms."""

    nodes: int
    terms: list[str]


class RelaxationsShape(TypedDict):
    """What the request itself stands in the way of."""

    exact: bool
    single: list[RelaxationShape]
    smallest: RelaxationShape | None


class CheckShape(TypedDict):
    """One line of a node's check list."""

    constraint: str
    detail: str
    passed: bool


class GatedShape(TypedDict):
    """One answer of the gate; the first is that of every node which no other one lists."""

    nodes: list[str]
    number: int
    reason: str
    rule: str
    ruling: str


class VariantShape(TypedDict):
    """One way to run it."""

    execution: str
    name: str
    requirements: list[str]


class NeedsShape(TypedDict):
    """What was to be placed."""

    accel_memory_bytes: int
    cpu_cores: float
    disk_bytes: int
    excludes: list[str]
    kind: str
    labels: list[str]
    latency_class: str
    memory_bytes: int
    min_provenance: str
    min_trust: str
    name: str
    perf: str
    ports: dict[str, int]
    preferences: list[str]
    requirements: list[str]
    sticky: bool
    variants: list[VariantShape]
    version: str


class OptionsShape(TypedDict):
    """With which options."""

    allow_emulated: bool
    avoid: list[str]
    count: int
    current_node: str | None
    pin: str | None
    prefer: list[str]
    where: list[str]


class Document(TypedDict):
    """A whole decision: what was asked, every verdict, what was chosen."""

    checks: dict[str, list[CheckShape]]
    decided_at_ms: int
    eligible: list[CandidateShape]
    fits: int
    gated: list[GatedShape]
    options: OptionsShape
    outcome: str
    placements: list[PlacementShape]
    rejected: list[RejectedShape]
    relaxations: RelaxationsShape
    schema: str
    summary: list[TallyShape]
    tiers: list[str]
    weights: dict[str, float | str]
    workload: NeedsShape
