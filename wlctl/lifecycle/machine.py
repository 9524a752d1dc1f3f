"""Which steps an instance may take: the one table, and the walks over it."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from wlctl.model.instance import State

_NEXT: Mapping[State, str] = {
    State.REQUESTED: "placed failed",
    State.PLACED: "fetching loaded running failed",
    State.FETCHING: "verified failed",
    State.VERIFIED: "loaded failed",
    State.LOADED: "running unloaded failed",
    State.RUNNING: "unhealthy stopping stopped finished failed unloaded",
    State.UNHEALTHY: "running restarting stopping failed unloaded",
    State.RESTARTING: "running unhealthy failed stopping",
    State.STOPPING: "stopped unloaded failed",
    State.STOPPED: "running unloaded failed",
    State.FINISHED: "running unloaded",
    State.FAILED: "running unloaded",
    State.LOST: "running rescheduled unloaded failed",
    State.RESCHEDULED: "unloaded",
    State.REVOKED: "unloaded failed",
    State.UNLOADED: "",
}

_NEVER_LOST_OR_REVOKED = frozenset({State.RESCHEDULED, State.UNLOADED})


def _steps_from(state: State) -> tuple[State, ...]:
    steps = [State(word) for word in _NEXT[state].split()]
    if state not in _NEVER_LOST_OR_REVOKED:
        steps += [step for step in (State.REVOKED, State.LOST) if step is not state]
    if state is State.REVOKED:
        steps.remove(State.LOST)
    return tuple(steps)


STEPS: Mapping[State, tuple[State, ...]] = {state: _steps_from(state) for state in State}
"""State to the states it may step to, in the table's order; a step to the same state is illegal."""

TERMINAL = frozenset({State.UNLOADED})
UNDERWAY = frozenset({State.REQUESTED, State.PLACED, State.FETCHING, State.VERIFIED})
"""What is in one of these was not heard of by its node yet, as far as anybody knows."""

LIVE = frozenset({State.RUNNING, State.UNHEALTHY, State.RESTARTING})


@dataclass(frozen=True, slots=True)
class IllegalTransition:
    """The step is not in the table, so nothing changes. An answer, not an error."""

    origin: State
    goal: State


def step(origin: State, goal: State) -> State | IllegalTransition:
    """Answer the state after one step from `origin` to `goal`."""
    return goal if goal in STEPS[origin] else IllegalTransition(origin, goal)


def walk(origin: State, goal: State) -> tuple[State, ...] | IllegalTransition:
    """Answer the shortest legal way from `origin` to `goal`, without `origin` itself.

    Of several shortest ways the one over `stopping` is taken, else the one whose steps stand first
    in the table. A detour over `revoked` or `lost` is taken only where nothing else leads there:
    they say what happened, and a walk must not claim that it did. Already there is the empty way.
    """
    if origin is goal:
        return ()
    for detours in (False, True):
        found = _search(origin, goal, detours=detours)
        if found is not None:
            return found
    return IllegalTransition(origin, goal)


def _search(origin: State, goal: State, *, detours: bool) -> tuple[State, ...] | None:
    ways: deque[tuple[State, ...]] = deque([(origin,)])
    seen = {origin}
    while ways:
        way = ways.popleft()
        for after in sorted(STEPS[way[-1]], key=lambda after: after is not State.STOPPING):
            if after is goal:
                return (*way[1:], goal)
            if after in seen or (after in (State.REVOKED, State.LOST) and not detours):
                continue
            seen.add(after)
            ways.append((*way, after))
    return None
