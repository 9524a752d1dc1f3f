"""Decides whether a run that ended is begun again: at once, later, or not any more.

The same policy runs on the node, in its supervisor; one set of tables holds the two together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from wlctl.model.instance import Instance, State
from wlctl.model.package import RestartPolicy

MOST_DOUBLINGS = 20
"""More would only overflow: the longest wait is reached long before."""


STUCK_MS = 600_000
"""No restart takes so long: its supervisor cannot end the run before, or cannot write."""


@dataclass(frozen=True, slots=True)
class Exhausted:
    """No more: it is held for an operator.

    Attributes:
        within: So many restarts are younger than the window.
    """

    within: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Not yet.

    Attributes:
        until_ms: Then.
    """

    until_ms: int


@dataclass(frozen=True, slots=True)
class Restart:
    """Now.

    Attributes:
        attempt: Of the window, from 1.
    """

    attempt: int


Answer = Exhausted | Wait | Restart


def decide(policy: RestartPolicy, restarts_at_ms: Sequence[int], now_ms: int) -> Answer:
    """Answer what follows the end of a run.

    A clock that was set back makes no restart younger than it is: an age is never negative.

    Args:
        restarts_at_ms: Moments of earlier restarts, in any order, as `remember` kept them.
    """
    within = remembered(policy, restarts_at_ms, now_ms)
    if len(within) >= policy.max_restarts:
        return Exhausted(len(within))
    if within:
        doubled = policy.backoff_base_ms << min(len(within) - 1, MOST_DOUBLINGS)
        until_ms = min(max(within), now_ms) + min(policy.backoff_max_ms, doubled)
        if now_ms < until_ms:
            return Wait(until_ms)
    return Restart(len(within) + 1)


def remembered(
    policy: RestartPolicy, restarts_at_ms: Sequence[int], now_ms: int
) -> tuple[int, ...]:
    """Keep the restarts that still count, oldest first."""
    return tuple(sorted(at for at in restarts_at_ms if max(0, now_ms - at) < policy.window_ms))


def is_stuck(instance: Instance, now_ms: int) -> bool:
    """Answer whether a copy is being begun again for so long that somebody has to look."""
    return instance.state is State.RESTARTING and now_ms - instance.since_ms >= STUCK_MS
