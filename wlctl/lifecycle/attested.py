"""Says what becomes of a copy whose machine an operator has vouched to run nothing any more."""

from wlctl.lifecycle.machine import UNDERWAY, IllegalTransition, walk
from wlctl.model.instance import CLOSED, Desired, State

_OVER = frozenset({State.FINISHED, State.FAILED, State.LOST})
"""What is in one of these is not missed, whatever was wanted of it; or is lost already."""


def after_attested(state: State, desired: Desired) -> tuple[State, ...]:
    """Answer the steps it takes, all of them legal.

    What is meant to run is lost, so that it can be placed elsewhere. What is to be unloaded, or is
    revoked, is taken for gone: should the machine come back with it, it is ended there. What is to
    be stopped stays as it is, for nobody has proven that it is; where it never was anything but
    underway it has failed.
    """
    if state in CLOSED:
        return ()
    if desired is Desired.UNLOADED or state is State.REVOKED:
        return _steps(state, State.UNLOADED)
    if desired is Desired.STOPPED:
        return (State.FAILED,) if state in UNDERWAY else ()
    return () if state in _OVER else _steps(state, State.LOST)


def _steps(state: State, goal: State) -> tuple[State, ...]:
    way = walk(state, goal)
    assert not isinstance(way, IllegalTransition), way
    return way
