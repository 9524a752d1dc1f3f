"""The table of legal steps, spelled out a second time by hand, and the walks over it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.lifecycle.machine import LIVE, STEPS, TERMINAL, IllegalTransition, step, walk
from wlctl.model.instance import State

LEGAL = {
    "requested": {"placed", "failed", "revoked", "lost"},
    "placed": {"fetching", "loaded", "running", "failed", "revoked", "lost"},
    "fetching": {"verified", "failed", "revoked", "lost"},
    "verified": {"loaded", "failed", "revoked", "lost"},
    "loaded": {"running", "unloaded", "failed", "revoked", "lost"},
    "running": {
        *{"unhealthy", "stopping", "stopped", "finished", "failed", "unloaded"},
        *{"revoked", "lost"},
    },
    "unhealthy": {"running", "restarting", "stopping", "failed", "unloaded", "revoked", "lost"},
    "restarting": {"running", "unhealthy", "failed", "stopping", "revoked", "lost"},
    "stopping": {"stopped", "unloaded", "failed", "revoked", "lost"},
    "stopped": {"running", "unloaded", "failed", "revoked", "lost"},
    "finished": {"running", "unloaded", "revoked", "lost"},
    "failed": {"running", "unloaded", "revoked", "lost"},
    "lost": {"running", "rescheduled", "unloaded", "failed", "revoked"},
    "rescheduled": {"unloaded"},
    "revoked": {"unloaded", "failed"},
    "unloaded": set(),
}


def reachable(origin: str) -> set[str]:
    found = {origin}
    while (wider := found.union(*(LEGAL[state] for state in found))) != found:
        found = wider
    return found


@pytest.mark.parametrize("origin", State)
@pytest.mark.parametrize("goal", State)
def test_a_step_is_legal_exactly_where_the_table_says_so(origin: State, goal: State) -> None:
    answer = step(origin, goal)

    expected = goal if goal.value in LEGAL[origin.value] else IllegalTransition(origin, goal)
    assert answer == expected


@pytest.mark.parametrize(
    ("origin", "goal", "way"),
    [
        pytest.param("running", "running", "", id="being there is the empty way"),
        pytest.param("lost", "finished", "running finished", id="a lost job that finished ran"),
        pytest.param("restarting", "unloaded", "stopping unloaded", id="restarting stops first"),
        pytest.param("loaded", "stopped", "running stopped", id="what never ran has to run"),
        pytest.param("requested", "running", "placed running", id="the short way to running"),
        pytest.param("stopped", "lost", "lost", id="a direct step to lost is no detour"),
        pytest.param("requested", "rescheduled", "lost rescheduled", id="only lost leads there"),
    ],
)
def test_a_walk_takes_the_shortest_way(origin: str, goal: str, way: str) -> None:
    assert walk(State(origin), State(goal)) == tuple(State(word) for word in way.split())


@given(st.sampled_from(State), st.sampled_from(State))
def test_every_step_of_a_walk_is_legal_and_the_last_one_arrives(origin: State, goal: State) -> None:
    way = walk(origin, goal)

    if isinstance(way, IllegalTransition):
        assert goal.value not in reachable(origin.value)
        return
    here = origin
    for after in way:
        assert step(here, after) is after
        here = after
    assert here is goal


@pytest.mark.parametrize("state", State)
def test_only_unloaded_is_without_a_next_step(state: State) -> None:
    assert (not STEPS[state]) == (state in TERMINAL)


@pytest.mark.parametrize("state", sorted(LIVE))
def test_what_is_live_can_be_stopped(state: State) -> None:
    assert State.STOPPING in STEPS[state]


@pytest.mark.parametrize("state", set(State) - {State.REQUESTED})
def test_every_state_but_the_first_can_be_reached_from_the_first(state: State) -> None:
    assert not isinstance(walk(State.REQUESTED, state), IllegalTransition)
