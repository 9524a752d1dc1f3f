"""What becomes of a copy whose machine is attested dead: every state, whatever was asked of it."""

import pytest

from wlctl.lifecycle.attested import after_attested
from wlctl.lifecycle.machine import STEPS
from wlctl.model.instance import CLOSED, Desired, State

OVER = {State.FINISHED, State.FAILED, State.LOST}
AT_REST = OVER | {State.LOADED, State.STOPPED}
ALL = [(state, desired) for state in State for desired in Desired]


@pytest.mark.parametrize(("state", "desired"), ALL)
def test_every_step_is_a_legal_one(state: State, desired: Desired) -> None:
    for step in after_attested(state, desired):
        assert step in STEPS[state]
        state = step


@pytest.mark.parametrize("state", sorted(set(State) - CLOSED))
def test_what_was_to_be_unloaded_is_gone(state: State) -> None:
    assert after_attested(state, Desired.UNLOADED)[-1] is State.UNLOADED


@pytest.mark.parametrize("desired", Desired)
def test_what_is_revoked_is_gone(desired: Desired) -> None:
    assert after_attested(State.REVOKED, desired) == (State.UNLOADED,)


@pytest.mark.parametrize("state", sorted(set(State) - CLOSED - OVER - {State.REVOKED}))
def test_what_was_meant_to_run_is_lost(state: State) -> None:
    assert after_attested(state, Desired.RUNNING) == (State.LOST,)


@pytest.mark.parametrize("state", sorted(AT_REST))
def test_what_was_at_rest_stays_so(state: State) -> None:
    assert after_attested(state, Desired.STOPPED) == ()


@pytest.mark.parametrize("state", sorted(OVER))
def test_what_was_over_stays_so(state: State) -> None:
    assert after_attested(state, Desired.RUNNING) == ()


@pytest.mark.parametrize("state", [State.RUNNING, State.UNHEALTHY, State.STOPPING])
def test_nothing_is_called_stopped_that_nobody_has_proven(state: State) -> None:
    assert after_attested(state, Desired.STOPPED) == ()


@pytest.mark.parametrize("state", [State.REQUESTED, State.PLACED, State.FETCHING, State.VERIFIED])
def test_what_never_began_and_is_not_to_run_has_failed(state: State) -> None:
    assert after_attested(state, Desired.STOPPED) == (State.FAILED,)


@pytest.mark.parametrize(("state", "desired"), [(s, d) for s in sorted(CLOSED) for d in Desired])
def test_what_is_closed_stays_closed(state: State, desired: Desired) -> None:
    assert after_attested(state, desired) == ()
