"""Is a copy where somebody waits for it to be, and could it still get there?"""

from dataclasses import dataclass
from enum import StrEnum

from wlctl.lifecycle.machine import IllegalTransition, walk
from wlctl.model.instance import CLOSED, Desired, Instance, State
from wlctl.model.workload import Kind

HEALTHY = "healthy"
"""What is waited for that is no state: it runs, and its health check, if it has one, passed."""


class Reach(StrEnum):
    """How near a copy is to what is waited for."""

    THERE = "there"
    NOT_YET = "not_yet"
    NEVER = "never"
    """Not by itself, nor by what is wanted of it: only another verb could bring it there."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The answer.

    Attributes:
        why: Of `never`, in words.
    """

    reach: Reach
    why: str = ""


_LIVING = frozenset({State.RUNNING, State.UNHEALTHY, State.RESTARTING})
_HELD = frozenset({State.FAILED, State.FINISHED})
"""What is in one of these stays there until somebody starts or unloads it."""

_RESTING = frozenset({State.LOADED, State.STOPPING, State.STOPPED})
"""What is in one of these starts only where that is wanted of it."""


def judge(instance: Instance, goal: State, *, healthy: bool = False, checked: bool) -> Judged:
    """Answer whether `instance` is in the state `goal`, or can come into it.

    Args:
        healthy: It has to be healthy, too.
        checked: Its package says how its health is asked for.
    """
    state = instance.state
    if state is goal:
        well = not healthy or not checked or instance.health == HEALTHY
        return Judged(Reach.THERE if well else Reach.NOT_YET)
    if state in CLOSED or isinstance(walk(state, goal), IllegalTransition):
        return _never(f"it is {state.value}")
    if goal is State.FINISHED and instance.kind is Kind.SERVICE:
        return _never("a service does not finish")
    if goal in _HELD and state in (_HELD | {State.STOPPED}):
        return _never(f"it is {state.value}")
    is_wanted = instance.desired is Desired.RUNNING
    if goal in _LIVING | {State.FINISHED}:
        if state in _HELD:
            return _never(f"it is {state.value}, and stays so until it is started")
        if state in _RESTING and not is_wanted:
            return _never(f"it is {state.value}, and {instance.desired.value} is wanted of it")
    if goal is State.STOPPED and state in _HELD:
        return _never(f"it is {state.value}, which a stop leaves it")
    return Judged(Reach.NOT_YET)


def _never(why: str) -> Judged:
    return Judged(Reach.NEVER, why)
