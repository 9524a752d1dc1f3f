"""How good is an eligible node? The eight terms of a score, and the tier no score crosses."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from wlctl.model.fleet import Claim
from wlctl.model.ids import NodeName
from wlctl.model.placement import TIER_ORDER, Candidate, Terms, Tiering
from wlctl.model.workload import Execution, LatencyClass
from wlctl.placement.ask import Ask
from wlctl.placement.room import cpu_total_milli, memory_total_bytes
from wlctl.placement.route import claims_of
from wlctl.placement.rules import Offer


@dataclass(frozen=True, slots=True)
class Best:
    """What a score is relative to: the extremes among the survivors.

    Attributes:
        capacity_bytes: The smallest accelerator memory assigned; None when none is known.
        measured: The best measured figure; None without one.
    """

    capacity_bytes: int | None
    measured: float | None


NO_BEST = Best(None, None)


def best_of(survivors: Iterable[Offer], best: Best = NO_BEST) -> Best:
    """Find the extremes among `survivors`, and `best` where it is more extreme."""
    capacity, measured = best.capacity_bytes, best.measured
    for offer in survivors:
        mine, figure = offer.route.capacity_bytes, offer.profile.measured
        if mine is not None and (capacity is None or mine < capacity):
            capacity = mine
        if figure is not None and (measured is None or figure > measured):
            measured = figure
    return Best(capacity, measured)


def tier_of(offer: Offer) -> Tiering:
    """A native variant on a machine of last resort is a fallback, whatever it scores."""
    if offer.route.execution is Execution.EMULATED:
        return Tiering.EMULATED
    return Tiering.DEV_FALLBACK if offer.profile.matter.plan.dev else Tiering.NATIVE


class _Fixed(NamedTuple):
    """The part of a score that follows from a node's capabilities alone."""

    tier: Tiering
    execution: float
    locality: float
    accel_fit: float
    perf: float
    flags: tuple[str, ...]
    assigned: tuple[Claim, ...]


class Scale:
    """Scores the survivors of one ask against the best of them."""

    def __init__(self, ask: Ask, best: Best) -> None:
        self.best = best
        self._ask = ask
        weights = ask.weights
        self._execution = {
            Tiering.NATIVE: weights.native,
            Tiering.EMULATED: weights.emulated,
            Tiering.DEV_FALLBACK: weights.dev_fallback,
        }
        self._fixed: dict[tuple[int, int], _Fixed] = {}

    def score(self, offer: Offer, current_node: NodeName | None) -> Candidate:
        """Score one survivor.

        `perf` counts measured values only; without one the node is flagged `unmeasured`. An unknown
        load scores 0 and is flagged `load_unknown`. `room` comes from the ledger, so that
        consecutive placements do not pile up on one stale reading. Where a copy would run without a
        cgroup is flagged `leader_only`; it costs nothing.
        """
        ask, node, route = self._ask, offer.node, offer.route
        weights = ask.weights
        # By identity: the survey keeps what was noted and routes alive, so no id is used twice.
        mine = id(offer.noted), id(route)
        fixed = self._fixed.get(mine)
        if fixed is None:
            fixed = self._fixed[mine] = self._look(offer)
        tier, execution, locality, accel_fit, perf, flags, assigned = fixed
        load = node.load
        if load is None or not 0 <= load < math.inf:
            flags, idle = (*flags, "load_unknown"), 0.0
        else:
            idle = weights.load * (1.0 - min(load, 1.0))
        if node.leader_only:
            flags = (*flags, "leader_only")
        room = weights.room * _room(ask, offer)
        spread = weights.spread / (1 + _copies(ask, offer)) if offer.held.holds else weights.spread
        sticky = _stickiness(ask) if node.name == current_node else 0.0
        return Candidate(
            node.name,
            route.variant,
            tier,
            execution + locality + accel_fit + perf + idle + room + spread + sticky,
            Terms(execution, locality, accel_fit, perf, idle, room, spread, sticky),
            flags,
            assigned,
        )

    def _look(self, offer: Offer) -> _Fixed:
        ask, tier = self._ask, tier_of(offer)
        measured, wanted = offer.profile.measured, ask.spec.policy.perf is not None
        return _Fixed(
            tier=tier,
            execution=self._execution[tier],
            locality=offer.route.locality,
            accel_fit=ask.weights.accel_fit * _fit(offer, self.best),
            perf=0.0 if measured is None else _perf(ask, measured, self.best),
            flags=("unmeasured",) if wanted and measured is None else (),
            assigned=claims_of(offer.route, offer.noted),
        )


Rank = tuple[int, float, NodeName]


def rank(candidate: Candidate) -> Rank:
    """Order candidates: by tier, then by score, the higher first, then by name."""
    return TIER_ORDER[candidate.tier], -candidate.total, candidate.node


def _fit(offer: Offer, best: Best) -> float:
    """The smallest accelerator that does is best; without one, a node that has none."""
    if not offer.route.accelerated:
        return 0.0 if offer.profile.matter.plan.accelerated else 1.0
    mine = offer.route.capacity_bytes
    if mine is None or best.capacity_bytes is None:
        return 0.0
    return best.capacity_bytes / mine if mine else 1.0


def _perf(ask: Ask, measured: float, best: Best) -> float:
    weight = ask.weights.perf
    if ask.spec.policy.latency_class is LatencyClass.INTERACTIVE:
        weight *= ask.weights.interactive_factor
    return weight * (measured / best.measured) if best.measured else 0.0


def _room(ask: Ask, offer: Offer) -> float:
    """The smaller share of memory and cores that the ledger has left after placing."""
    resources, held = ask.spec.resources, offer.held
    promised = held.memory_bytes + resources.memory_bytes
    if offer.profile.unified_bytes is not None:
        promised += held.accel_memory_bytes + resources.accel_memory_bytes
    return min(
        _share(memory_total_bytes(offer), promised),
        _share(cpu_total_milli(offer), held.cpu_milli + ask.cpu_milli),
    )


def _share(total: int, promised: int) -> float:
    return (total - promised) / total if promised < total else 0.0


def _copies(ask: Ask, offer: Offer) -> int:
    spec = ask.spec
    return sum(hold.workload == spec.name and hold.kind is spec.kind for hold in offer.held.holds)


def _stickiness(ask: Ask) -> float:
    return ask.weights.sticky if ask.spec.policy.sticky else ask.weights.stickiness
