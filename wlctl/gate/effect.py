"""How much could it do? Derived from what a package says and the node's tier, and nothing else."""

from wlctl.model.node import Tier
from wlctl.model.policy import TRUST_ACTIONS, Effect, GateRequest

_BY_TIER = {Tier.DISCOVERED: 0.8, Tier.PAIRED: 0.3, Tier.TRUSTED: 0.1}
_NETWORK = 0.3
"""A native process has the network of its node,"""
_WAY_OUT = 0.2
"""and what it reads can leave by it."""
_FAIR_CORES = 4.0
"""As many cores, or more, count as wholly unfair to whoever else needs the node."""


def effect_of(request: GateRequest) -> Effect:
    """Derive what an action could do; one that starts nothing could do nothing.

    A node nobody named counts as the least trusted one.
    """
    work = request.work
    if work is None or request.action in TRUST_ACTIONS:
        return Effect()
    tier = Tier.DISCOVERED if request.tier is None else request.tier
    return Effect(
        risk=_share((0.9 if work.unsigned else 0.1) + 0.1 * work.emulated + 0.2 * work.root),
        security=_share(_BY_TIER[tier] + _NETWORK),
        privacy=_share(0.5 * work.secrets + _WAY_OUT),
        novelty=_share(0.4 * work.emulated + 0.2 * bool(work.accelerators)),
        # Nothing asked for is nothing limited: it may take every core.
        fairness=_share(work.cpu_cores / _FAIR_CORES if work.cpu_cores else 1.0),
    )


def _share(value: float) -> float:
    """Keep within 0 and 1, to six decimals: no sum of tenths shows more than was meant."""
    return round(min(1.0, max(0.0, value)), 6)
