"""An instance: one placed copy of a workload, and the states it goes through."""

from dataclasses import dataclass
from enum import StrEnum

from wlctl.model.ids import InstanceId, NodeName, PackageId
from wlctl.model.kind import Kind


class State(StrEnum):
    """Where an instance is in its life; the legal steps are `lifecycle.machine`'s."""

    REQUESTED = "requested"
    """Asked for; no node has it yet."""
    PLACED = "placed"
    """A node was chosen, and what it takes is reserved there."""
    FETCHING = "fetching"
    """The node is being given the files it lacks."""
    VERIFIED = "verified"
    """Every file on the node is the one the manifest names."""
    LOADED = "loaded"
    """Staged on the node and not started."""
    RUNNING = "running"
    """Its generation was seen alive; healthy, as far as it is checked."""
    UNHEALTHY = "unhealthy"
    """It runs and fails its health check."""
    RESTARTING = "restarting"
    """Its generation is replaced by the next one."""
    STOPPING = "stopping"
    """A stop was asked for and is not proven yet; it still holds all it had."""
    STOPPED = "stopped"
    """Proven: no process of it is left. It can be started again."""
    FINISHED = "finished"
    """It ended by itself with success, and no process of it is left."""
    FAILED = "failed"
    """It ended, or never began, in a way that policy does not repair; an operator decides."""
    LOST = "lost"
    """Its node is dead or rebooted; whether it runs is not known."""
    RESCHEDULED = "rescheduled"
    """Another copy took its place; if its node returns, it is unloaded there."""
    REVOKED = "revoked"
    """Its package, signer or a file of it was revoked; it is being ended."""
    UNLOADED = "unloaded"
    """Gone from its node, proven; kept for the record."""


CLOSED = frozenset({State.UNLOADED, State.RESCHEDULED})
"""An instance in one of these is no longer current: its name is free."""


class Desired(StrEnum):
    """What the operator wants of an instance."""

    RUNNING = "running"
    """It runs; what ends by itself is judged by its policy."""
    STOPPED = "stopped"
    """It does not run, and nothing starts it."""
    UNLOADED = "unloaded"
    """It is gone from its node."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One placed copy as the ledger has it.

    Attributes:
        name: Unique among the current ones; what people and scripts use.
        kind: Of the workload.
        variant: The variant of the package that was chosen.
        generation: Number of the newest generation that was given one; 0 before the first.
        unsettled: A mutation may have run on the node and its outcome is not known.
        health: starting, healthy or unhealthy, as the node's supervisor said last; empty where
            nothing is asked, or was not yet.
        since_ms: When `state` was entered.
        seen_at_ms: The last contact that told of it; None before the first.
        replaces: The copy whose place it is taking; None again once it has. Itself where another
            one has taken its place: it has no name any more, and is only ended.
    """

    id: InstanceId
    name: str
    kind: Kind
    workload: str
    version: str
    package_id: PackageId
    variant: str
    node: NodeName
    desired: Desired
    state: State
    generation: int
    unsettled: bool
    health: str
    created_at_ms: int
    since_ms: int
    seen_at_ms: int | None
    replaces: InstanceId | None = None
