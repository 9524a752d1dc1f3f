"""Who is dead after a pass: never a node alone in its silence too early, never for our own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.lifecycle.liveness import BEGUN_MS, DEAD_AFTER_MS, Standing, is_isolated, judge
from wlctl.model.ids import NodeName
from wlctl.model.node import Liveness

A, B, C, D = (NodeName(name) for name in "abcd")
ALIVE = Standing(Liveness.ALIVE)
SUSPECT = Liveness.SUSPECT


def after(one: Standing, *, answers: bool, since_ms: int = 60_000) -> Standing:
    """Judge one node whose three neighbours are well."""
    before = {A: one, B: ALIVE, C: ALIVE, D: ALIVE}
    answered = {A: answers, B: True, C: True, D: True}
    judged = judge(before, answered, since_last_pass_ms=since_ms)
    assert not judged.isolated
    return judged.nodes[A]


@pytest.mark.parametrize(
    ("before", "after_"),
    [
        pytest.param(ALIVE, Standing(SUSPECT, 1, BEGUN_MS), id="one failure is a suspicion"),
        pytest.param(
            Standing(SUSPECT, 1, BEGUN_MS),
            Standing(SUSPECT, 2, BEGUN_MS + 60_000),
            id="two failures are not enough",
        ),
        pytest.param(
            Standing(SUSPECT, 9, 0),
            Standing(SUSPECT, 10, BEGUN_MS),
            id="however often verbs have failed: its silence begins with this pass",
        ),
        pytest.param(
            Standing(SUSPECT, 2, DEAD_AFTER_MS - 60_001),
            Standing(SUSPECT, 3, DEAD_AFTER_MS - 1),
            id="three failures within less than the time are not enough",
        ),
        pytest.param(
            Standing(SUSPECT, 2, DEAD_AFTER_MS - 60_000),
            Standing(Liveness.DEAD, 3, DEAD_AFTER_MS),
            id="three failures over the time are",
        ),
        pytest.param(
            Standing(SUSPECT, 1, 10 * DEAD_AFTER_MS),
            Standing(SUSPECT, 2, 10 * DEAD_AFTER_MS + 60_000),
            id="any time with two failures is not",
        ),
        pytest.param(
            Standing(SUSPECT, 9, 10 * DEAD_AFTER_MS, in_maintenance=True),
            Standing(SUSPECT, 10, 10 * DEAD_AFTER_MS + 60_000, in_maintenance=True),
            id="in maintenance it is not dead",
        ),
        pytest.param(
            Standing(Liveness.UNKNOWN),
            Standing(Liveness.UNKNOWN, 1, BEGUN_MS),
            id="what was never seen cannot be missed",
        ),
        pytest.param(
            Standing(Liveness.DEAD, 9, DEAD_AFTER_MS),
            Standing(Liveness.DEAD, 10, DEAD_AFTER_MS + 60_000),
            id="the dead stay dead",
        ),
    ],
)
def test_what_a_failed_contact_makes_of_a_node(before: Standing, after_: Standing) -> None:
    assert after(before, answers=False) == after_


@pytest.mark.parametrize("liveness", Liveness)
def test_an_answer_makes_it_alive_whatever_it_was(liveness: Liveness) -> None:
    assert after(Standing(liveness, 5, 10**6), answers=True) == ALIVE


@pytest.mark.parametrize("silent_ms", [0, 10 * DEAD_AFTER_MS])
def test_a_pass_over_some_nodes_counts_a_failure_and_no_time_and_kills_nobody(
    silent_ms: int,
) -> None:
    judged = judge(
        {A: Standing(SUSPECT, 5, silent_ms), B: ALIVE},
        {A: False, B: True},
        since_last_pass_ms=None,
    )

    assert judged.nodes[A] == Standing(SUSPECT, 6, silent_ms)


def test_time_in_which_no_pass_ran_is_not_held_against_a_node() -> None:
    standing = Standing(SUSPECT, 2, 0)

    for _ in range(5):
        standing = after(standing, answers=False, since_ms=0)

    assert standing.liveness is SUSPECT
    assert standing.failures == 7


@pytest.mark.parametrize(
    ("alive", "silent", "isolated"),
    [
        pytest.param(4, 2, False, id="half of them is not more than half"),
        pytest.param(4, 3, True, id="more than half of them"),
        pytest.param(3, 2, True, id="two of three"),
        pytest.param(2, 1, False, id="one of two is one node's silence"),
        pytest.param(2, 2, True, id="both"),
        pytest.param(1, 1, False, id="the only node: there is nobody to compare it with"),
        pytest.param(1, 0, False, id="the only node answers"),
    ],
)
def test_when_most_fall_silent_at_once_it_is_the_controller(
    alive: int, silent: int, isolated: bool
) -> None:
    names = [NodeName(f"n{number}") for number in range(alive)]
    before = dict.fromkeys(names, ALIVE)
    answered = {name: number >= silent for number, name in enumerate(names)}

    assert is_isolated(before, answered) is isolated


def test_when_nobody_answers_it_is_the_controller_even_if_none_was_alive() -> None:
    before = {A: Standing(SUSPECT, 2, DEAD_AFTER_MS), B: Standing(Liveness.DEAD, 9, 10**6)}

    judged = judge(before, {A: False, B: False}, since_last_pass_ms=60_000)

    assert judged.isolated
    assert judged.nodes == before


STANDINGS = st.builds(
    Standing,
    st.sampled_from(Liveness),
    st.integers(0, 20),
    st.integers(0, 10**7),
    st.booleans(),
)
NAMES = st.text("abcdefgh", min_size=1, max_size=3).map(NodeName)


@given(st.dictionaries(NAMES, STANDINGS, max_size=12), st.data())
def test_nobody_dies_of_one_pass_that_did_not_answer_too_often_or_too_long(
    before: dict[NodeName, Standing], data: st.DataObject
) -> None:
    answered = {name: data.draw(st.booleans()) for name in before}

    judged = judge(before, answered, since_last_pass_ms=data.draw(st.integers(0, 10**6)))

    for name, standing in judged.nodes.items():
        was = before[name]
        if standing.liveness is Liveness.DEAD and was.liveness is not Liveness.DEAD:
            assert not answered[name]
            assert not judged.isolated
            assert not was.in_maintenance
            assert standing.failures >= 3
            assert standing.silent_ms >= DEAD_AFTER_MS
