"""A fleet at a moment: all that a decision takes but the request."""

from dataclasses import dataclass

from wlctl.model.fleet import ClusterState, NodeView
from wlctl.model.placement import Weights


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a decision is made from; the same one always gives the same decision."""

    nodes: tuple[NodeView, ...]
    cluster: ClusterState
    weights: Weights
    now_ms: int
