"""Every row of what a pass does about a copy, and that no case is without an answer."""

import itertools
from dataclasses import replace

import pytest

from wlctl.lifecycle.machine import LIVE
from wlctl.lifecycle.table import Act, Case, Listing, decide
from wlctl.model.instance import Desired, State
from wlctl.model.node import Liveness

WANTED, HALTED, GONE = Desired.RUNNING, Desired.STOPPED, Desired.UNLOADED
LISTED = Case(State.RUNNING, WANTED, Liveness.ALIVE, Listing.LISTED)
DEAD = Case(State.RUNNING, WANTED, Liveness.DEAD)
AT_REST = [
    "rescheduled",
    "failed",
    "finished",
    "revoked",
    "unloaded",
]


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("liveness", [Liveness.SUSPECT, Liveness.UNKNOWN])
def test_of_a_node_that_is_not_known_to_be_dead_nothing_is_done(
    state: State, liveness: Liveness
) -> None:
    assert decide(Case(state, WANTED, liveness)) is Act.NOTHING


@pytest.mark.parametrize("state", State)
def test_on_a_dead_node_only_what_is_meant_to_run_is_lost(state: State) -> None:
    expected = Act.NOTHING if state.value in AT_REST else Act.LOSE
    if state is State.LOST:
        expected = Act.REPLACE

    assert decide(replace(DEAD, state=state)) is expected
    for desired in (HALTED, GONE):
        assert decide(replace(DEAD, state=state, desired=desired)) is Act.NOTHING


ROWS = [
    pytest.param({}, Act.NOTHING, id="what runs and shall run"),
    pytest.param({"state": State.UNHEALTHY}, Act.NOTHING, id="what is unwell: its supervisor's"),
    pytest.param({"state": State.FAILED}, Act.NOTHING, id="what failed is held"),
    pytest.param({"state": State.FINISHED}, Act.NOTHING, id="what finished"),
    pytest.param({"state": State.RESCHEDULED}, Act.END_ORPHAN, id="what was replaced"),
    pytest.param(
        {"state": State.RESCHEDULED, "desired": GONE},
        Act.END_ORPHAN,
        id="what was replaced, unwanted",
    ),
    pytest.param({"state": State.UNLOADED}, Act.END_ORPHAN, id="what should not be there"),
    pytest.param({"state": State.REVOKED}, Act.END_REVOKED, id="what is revoked"),
    pytest.param({"state": State.LOST}, Act.ADOPT, id="what was lost and is there"),
    pytest.param(
        {"state": State.LOST, "has_other": True}, Act.END_LOST, id="what was lost and has another"
    ),
    pytest.param(
        {"state": State.LOST, "has_open": True}, Act.NOTHING, id="what was lost, while not known"
    ),
    pytest.param(
        {"state": State.LOST, "same_boot": False}, Act.START_AGAIN, id="what was lost to a reboot"
    ),
    pytest.param(
        {"state": State.LOST, "is_gone": True},
        Act.START_AGAIN,
        id="what was lost and is proven ended: there is nothing to adopt",
    ),
    pytest.param(
        {"state": State.LOST, "is_ended": True},
        Act.START_AGAIN,
        id="what was lost and its lease has ended",
    ),
    pytest.param({"same_boot": False}, Act.START_AGAIN, id="what ran before a reboot"),
    pytest.param({"same_boot": False, "runs_once": True}, Act.FAIL, id="a job before a reboot"),
    pytest.param(
        {"state": State.LOST, "same_boot": False, "runs_once": True},
        Act.FAIL,
        id="a job that was lost to a reboot",
    ),
    pytest.param({"state": State.LOADED}, Act.START, id="what is staged and shall run"),
    pytest.param({"state": State.STOPPED}, Act.START, id="what is stopped and shall run"),
    pytest.param({"state": State.STOPPING}, Act.START, id="what was being stopped and shall run"),
    pytest.param({"desired": HALTED}, Act.STOP, id="what runs and shall not"),
    pytest.param({"desired": GONE}, Act.STOP, id="what runs and shall be gone"),
    pytest.param(
        {"state": State.STOPPING, "desired": HALTED}, Act.STOP, id="what is not proven stopped"
    ),
    pytest.param(
        {"state": State.STOPPED, "desired": HALTED}, Act.NOTHING, id="what is stopped as asked"
    ),
    pytest.param(
        {"state": State.STOPPED, "desired": HALTED, "is_holding": True},
        Act.STOP,
        id="what is stopped, and holds what a start took",
    ),
    pytest.param(
        {"state": State.STOPPED, "is_holding": True}, Act.START, id="unless it shall still run"
    ),
    pytest.param(
        {"state": State.LOADED, "desired": HALTED, "is_holding": True},
        Act.NOTHING,
        id="what is staged holds its place",
    ),
    pytest.param({"state": State.STOPPED, "desired": GONE}, Act.STOP, id="what shall be gone"),
    pytest.param({"state": State.FAILED, "desired": GONE}, Act.STOP, id="a failed one, too"),
    pytest.param(
        {"state": State.FAILED, "desired": HALTED}, Act.NOTHING, id="a failed one is stopped"
    ),
    pytest.param(
        {"listing": Listing.DEPARTED}, Act.DEPART, id="what was taken away there on purpose"
    ),
    pytest.param(
        {"listing": Listing.DEPARTED, "state": State.UNLOADED}, Act.NOTHING, id="and is known to be"
    ),
    pytest.param({"listing": Listing.MISSING}, Act.PROVE_MISSING, id="what the node lost"),
    pytest.param(
        {"listing": Listing.MISSING, "desired": GONE}, Act.PROVE_MISSING, id="even if unwanted"
    ),
    pytest.param(
        {"listing": Listing.MISSING, "state": State.PLACED}, Act.NOTHING, id="what never got there"
    ),
    pytest.param(
        {"listing": Listing.MISSING, "state": State.UNLOADED}, Act.NOTHING, id="what is gone"
    ),
    pytest.param(
        {"listing": Listing.MISSING, "state": State.RESCHEDULED},
        Act.PROVE_MISSING,
        id="a copy that was replaced, until it is proven gone",
    ),
    pytest.param(
        {"listing": Listing.MISSING, "state": State.LOST, "is_gone": True},
        Act.REPLACE,
        id="what the node lost, and is proven gone",
    ),
    pytest.param(
        {"listing": Listing.MISSING, "state": State.LOST},
        Act.PROVE_MISSING,
        id="and is not proven gone",
    ),
    pytest.param(
        {"listing": Listing.MISSING, "state": State.LOST, "is_gone": True, "desired": GONE},
        Act.PROVE_MISSING,
        id="and is not wanted any more",
    ),
    pytest.param({"listing": None}, Act.NOTHING, id="an answer of another machine lists nothing"),
]


@pytest.mark.parametrize(("changes", "act"), ROWS)
def test_each_row_of_the_table(changes: dict[str, object], act: Act) -> None:
    assert decide(replace(LISTED, **changes)) is act  # type: ignore[arg-type] # fields of Case


EVERY_CASE = [
    Case(*parts)
    for parts in itertools.product(
        State, Desired, Liveness, (None, *Listing), *itertools.repeat((False, True), 5)
    )
]


def test_nothing_is_started_that_is_not_wanted_and_nothing_ended_that_is() -> None:
    for case in EVERY_CASE:
        act = decide(case)

        starts = act in (Act.START, Act.START_AGAIN, Act.ADOPT, Act.LOSE, Act.REPLACE)
        assert not (starts and case.desired is not Desired.RUNNING), case
        if act is Act.STOP:
            assert case.desired is not Desired.RUNNING, case
        if act is Act.LOSE:
            assert case.node is Liveness.DEAD, case
        elif act is Act.REPLACE:
            forgotten = case.listing is Listing.MISSING and case.is_gone
            assert case.node is Liveness.DEAD or forgotten, case
        elif act is not Act.NOTHING:
            assert case.node is Liveness.ALIVE, case
            assert case.listing is not None, case


def test_what_lives_as_it_should_is_left_alone() -> None:
    well = [
        case
        for case in EVERY_CASE
        if case.state in LIVE
        and case.desired is Desired.RUNNING
        and case.listing is Listing.LISTED
        and case.same_boot
        and case.node is Liveness.ALIVE
    ]

    assert well
    assert {decide(case) for case in well} == {Act.NOTHING}
