"""A fleet at a moment: all that a decision takes but the request."""

from collections.abc import Mapping
from dataclasses import dataclass

from wlctl.model.fleet import ClusterState, NodeView
from wlctl.model.placement import Weights


@dataclass(frozen=True, slots=True)
class SavedGate:
    """By what the gate judged when a fleet was saved.

    Attributes:
        principal: Who asked.
        policy: Its tables, as the policy's file has them, without its approvers: a placement that
            is deferred counts as denied.
        unreadable: Why the policy, or else the revocations, could not be read, so that everything
            is denied; empty otherwise.
    """

    principal: str
    policy: Mapping[str, object]
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a decision is made from; the same one always gives the same decision.

    Attributes:
        gate: Judges each node that comes without a verdict; None where there is no policy.
    """

    nodes: tuple[NodeView, ...]
    cluster: ClusterState
    weights: Weights
    now_ms: int
    gate: SavedGate | None = None
