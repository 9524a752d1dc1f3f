"""An instance: one placed copy of a workload, and the states it goes through."""

from dataclasses import dataclass
from enum import StrEnum

from wlctl.model.ids import InstanceId, NodeName, PackageId


class State(StrEnum):
    """Where an instance is in its life; the legal steps are `lifecycle.machine`'s."""

    REQUESTED = "requested"
    PLACED = "placed"
    FETCHING = "fetching"
    VERIFIED = "verified"
    LOADED = "loaded"
    RUNNING = "running"
    UNHEALTHY = "unhealthy"
    RESTARTING = "restarting"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"
    LOST = "lost"
    RESCHEDULED = "rescheduled"
    REVOKED = "revoked"
    UNLOADED = "unloaded"


CLOSED = frozenset({State.UNLOADED, State.RESCHEDULED})
"""An instance in one of these is no longer current: its name is free."""


class Desired(StrEnum):
    """What the operator wants of an instance."""

    RUNNING = "running"
    STOPPED = "stopped"
    UNLOADED = "unloaded"


@dataclass(frozen=True, slots=True)
class Instance:
    """One placed copy as the ledger has it.

    Attributes:
        name: Unique among the current ones; what people and scripts use.
        variant: The variant of the package that was chosen.
        operation_number: Of the newest operation; grows with each and fences the node.
        generation: Number of the newest generation that was given one; 0 before the first.
        unsettled: A mutation may have run on the node and its outcome is not known.
        since_ms: When `state` was entered.
        seen_at_ms: The last contact that told of it; None before the first.
    """

    id: InstanceId
    name: str
    workload: str
    version: str
    package_id: PackageId
    variant: str
    node: NodeName
    desired: Desired
    state: State
    operation_number: int
    generation: int
    unsettled: bool
    created_at_ms: int
    since_ms: int
    seen_at_ms: int | None
