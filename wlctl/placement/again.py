"""Is there still room for what was stopped, on the node where it is staged?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from wlctl.model.fleet import Claim, ClusterState, Hold, NodeView, Ruling, Verdict
from wlctl.model.ids import InstanceId
from wlctl.model.node import Liveness, Tier
from wlctl.model.placement import PlaceRequest, Weights
from wlctl.model.workload import WorkloadSpec
from wlctl.placement import engine
from wlctl.placement.constraints import detail


@dataclass(frozen=True, slots=True)
class Fits:
    """There is room.

    Attributes:
        claims: The capabilities that it is given this time.
    """

    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Taken:
    """There is none any more.

    Attributes:
        reasons: In words, one for each constraint that is failed.
    """

    reasons: tuple[str, ...]


def fits_again(
    spec: WorkloadSpec,
    variant: str,
    node: NodeView,
    holds: Sequence[Hold],
    *,
    instance: InstanceId,
    now_ms: int,
) -> Fits | Taken:
    """Answer whether a copy fits where it is, by what is promised there now.

    It is judged by the rules of every placement about room, neighbours and what it needs. Whether
    the node is to be used at all was asked when the copy was placed there, and is asked of the
    gate; that it answers is seen when it is asked. What listens on a fixed port may have been the
    copy itself: its node looks before it starts it.

    Args:
        variant: Of the spec; the one that is staged.
        holds: Of the whole fleet or of this node; what the copy holds itself does not count.
    """
    chosen = tuple(one for one in spec.variants if one.name == variant)
    view = replace(
        node,
        tier=Tier.TRUSTED,
        liveness=Liveness.ALIVE,
        cordoned=False,
        facts_expire_at_ms=now_ms + 1,
        ports_listening=(),
        gate=Verdict(Ruling.ALLOWED, "staged-there"),
    )
    workload = replace(spec, variants=chosen, policy=replace(spec.policy, perf=None))
    request = PlaceRequest(workload, allow_emulated=True, pin=node.name, moving=instance)
    decision = engine.decide(request, [view], ClusterState(tuple(holds)), Weights(), now_ms)
    if decision.placements:
        return Fits(decision.placements[0].chosen.assigned)
    found = decision.rejected[node.name]
    return Taken(tuple(f"{one.constraint}: {detail(one)}" for one in found))
