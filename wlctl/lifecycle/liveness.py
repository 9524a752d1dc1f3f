"""Decides which nodes are alive, suspect or dead by what one pass of contacts found.

Silence alone never kills: it must have lasted, over passes that really ran, and the others must
have answered meanwhile. When most of the fleet falls silent at once, the controller is cut off.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from wlctl.model.ids import NodeName
from wlctl.model.node import Liveness

DEAD_AFTER_MS = 90_000
LEAST_FAILURES = 3
LEAST_SILENT = 2
"""With fewer nodes silent at once, it is they and not the controller."""

BEGUN_MS = 1
"""So long a node was silent for the first pass that finds it so: before that, nobody knows."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of one node before a pass.

    Attributes:
        failures: Contacts that failed in a row, those of verbs too.
        silent_ms: How long it was asked and did not answer: only time in which passes ran counts.
        in_maintenance: Cordoned for a time that is not over: not declared dead meanwhile.
    """

    liveness: Liveness
    failures: int = 0
    silent_ms: int = 0
    in_maintenance: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """What is known after it.

    Attributes:
        nodes: Every node that was asked.
        isolated: The controller is cut off: nobody was judged by this pass's silence.
    """

    nodes: Mapping[NodeName, Standing]
    isolated: bool


def judge(
    before: Mapping[NodeName, Standing],
    answered: Mapping[NodeName, bool],
    *,
    since_last_pass_ms: int | None,
    dead_after_ms: int = DEAD_AFTER_MS,
) -> Judged:
    """Judge a pass.

    Args:
        before: Every node that was asked.
        answered: Whether each did, with the identity it is known by.
        since_last_pass_ms: Time between the last pass and this one in which passes ran; 0 where
            they did not, as after a pause or at the first one. None for a pass over some nodes
            alone: to be silent then is a failure, and nobody dies of it.
    """
    isolated = is_isolated(before, answered)
    after = {}
    for name, standing in before.items():
        if answered[name]:
            after[name] = Standing(Liveness.ALIVE, in_maintenance=standing.in_maintenance)
        elif isolated:
            after[name] = standing
        else:
            after[name] = _silent(standing, since_last_pass_ms, dead_after_ms)
    return Judged(after, isolated)


def is_isolated(before: Mapping[NodeName, Standing], answered: Mapping[NodeName, bool]) -> bool:
    """Answer whether it is the controller that is cut off.

    It is when more than half of the nodes that were alive, and at least two, fail at once, or when
    none of several answers.
    """
    alive = [name for name, standing in before.items() if standing.liveness is Liveness.ALIVE]
    silent = [name for name in alive if not answered[name]]
    if len(silent) >= LEAST_SILENT and len(silent) * 2 > len(alive):
        return True
    return len(before) >= LEAST_SILENT and not any(answered[name] for name in before)


def _silent(standing: Standing, since_ms: int | None, dead_after_ms: int) -> Standing:
    failures = standing.failures + 1
    silent_ms = standing.silent_ms
    if since_ms is not None:
        silent_ms = silent_ms + since_ms if silent_ms else BEGUN_MS
    liveness = standing.liveness
    if liveness is Liveness.ALIVE:
        liveness = Liveness.SUSPECT
    lasted = failures >= LEAST_FAILURES and silent_ms >= dead_after_ms and since_ms is not None
    if liveness is Liveness.SUSPECT and lasted and not standing.in_maintenance:
        liveness = Liveness.DEAD
    return Standing(liveness, failures, silent_ms, standing.in_maintenance)
