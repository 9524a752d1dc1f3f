"""Decides what a pass does about one copy, by its state, its node, and what that node lists.

One row of the table is one branch here, in its order; what is done about it is for the flows.
"""

from dataclasses import dataclass
from enum import StrEnum

from wlctl.lifecycle.machine import LIVE, UNDERWAY
from wlctl.model.instance import Desired, State
from wlctl.model.node import Liveness


class Listing(StrEnum):
    """What a node says of a copy."""

    LISTED = "listed"
    """It has it."""
    DEPARTED = "departed"
    """It was unloaded there on purpose, and its record of that is kept."""
    MISSING = "missing"
    """It knows nothing of it."""


class Act(StrEnum):
    """What is to be done about a copy."""

    NOTHING = "nothing"
    """It is as it should be, or nothing can be done now."""
    REPLACE = "replace"
    """It is lost: try to place it elsewhere."""
    LOSE = "lose"
    """Its node is dead: mark it lost, then try to place it elsewhere."""
    END_ORPHAN = "end_orphan"
    """Another copy took its place: unload this one, and prove it gone."""
    ADOPT = "adopt"
    """Take it back in the state its node reports."""
    END_LOST = "end_lost"
    """Its order has another copy by now: unload this one, and prove it gone."""
    START_AGAIN = "start_again"
    """Its node was started anew, or has ended it: mark it lost, and start it there first."""
    DEPART = "depart"
    """It was unloaded on the node: prove that, and let it be so."""
    PROVE_MISSING = "prove_missing"
    """Its node lost it: prove its recorded run gone; then place it anew, or close it."""
    STOP = "stop"
    """It is to be stopped or unloaded and is not proven gone: again, until it is."""
    END_REVOKED = "end_revoked"
    """What it runs is revoked: stop it, prove it, unload it."""
    FAIL = "fail"
    """A job that may have run when its node was started anew: it is never run again by itself."""
    START = "start"
    """It is staged, or was being stopped, and is meant to run."""


@dataclass(frozen=True, slots=True)
class Case:
    """One copy as a pass finds it.

    Attributes:
        node: None where another machine answered in its node's name: it lists nothing.
        listing: None where the node did not answer.
        same_boot: Its node runs the boot that its newest run was launched under.
        has_other: Its order has another copy that lives.
        has_open: Its order has another copy of which it is not known whether it lives.
        is_gone: Every run of it is proven ended.
        is_ended: Its node says that its lease has ended it.
        runs_once: It is a job.
        is_holding: It holds what a start of it would need.
    """

    state: State
    desired: Desired
    node: Liveness
    listing: Listing | None = None
    same_boot: bool = True
    has_other: bool = False
    has_open: bool = False
    is_gone: bool = False
    is_ended: bool = False
    runs_once: bool = False
    is_holding: bool = False


_AT_REST = frozenset(
    {
        State.RESCHEDULED,
        State.FAILED,
        State.FINISHED,
        State.REVOKED,
        State.UNLOADED,
    }
)
"""On a dead node these stay as they are: nothing of them is missed, whatever was wanted."""

_TO_START = frozenset({State.LOADED, State.STOPPED, State.STOPPING})
"""What is not proven stopped and shall run is started: that ends what is left of it before."""


def decide(case: Case) -> Act:
    """Answer what is to be done about a copy."""
    if case.node is Liveness.DEAD:
        return _on_dead(case)
    if case.node is not Liveness.ALIVE or case.listing is None:
        return Act.NOTHING
    if case.state is State.UNLOADED:
        return Act.END_ORPHAN if case.listing is Listing.LISTED else Act.NOTHING
    match case.listing:
        case Listing.LISTED:
            return _listed(case)
        case Listing.DEPARTED:
            return Act.DEPART
        case Listing.MISSING:
            return _missing(case)


def _on_dead(case: Case) -> Act:
    if case.state in _AT_REST or case.desired is not Desired.RUNNING:
        return Act.NOTHING
    return Act.REPLACE if case.state is State.LOST else Act.LOSE


def _listed(case: Case) -> Act:
    wanted = case.desired is Desired.RUNNING
    if case.state is State.RESCHEDULED:
        return Act.END_ORPHAN
    if case.state is State.REVOKED:
        return Act.END_REVOKED
    if not wanted:
        return _unwanted(case)
    if case.state is State.LOST:
        return _lost_and_listed(case)
    if case.state in LIVE and not case.same_boot:
        return _start_again(case)
    return Act.START if case.state in _TO_START else Act.NOTHING


def _lost_and_listed(case: Case) -> Act:
    if case.has_other:
        return Act.END_LOST
    if case.has_open:
        return Act.NOTHING  # it runs on: whichever is ended before that is known may be the last
    is_there = case.same_boot and not (case.is_gone or case.is_ended)
    return Act.ADOPT if is_there else _start_again(case)


def _start_again(case: Case) -> Act:
    return Act.FAIL if case.runs_once else Act.START_AGAIN


def _unwanted(case: Case) -> Act:
    if case.state is State.STOPPED and case.is_holding:
        return (
            Act.STOP
        )  # a start that did not get there took it: only a stop that did gives it back
    to_go = case.desired is Desired.UNLOADED
    at_rest = case.state in (State.STOPPED, State.LOADED, State.FINISHED, State.FAILED)
    return Act.NOTHING if at_rest and not to_go else Act.STOP


def _missing(case: Case) -> Act:
    if case.state in UNDERWAY:
        return Act.NOTHING  # it never was there
    if case.state is State.LOST and case.is_gone and case.desired is Desired.RUNNING:
        return Act.REPLACE
    return Act.PROVE_MISSING
