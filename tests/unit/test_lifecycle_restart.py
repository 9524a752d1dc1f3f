"""The restart policy: how often, after which waits, and when it is over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.policies import EDGES, NOW, POLICY, Case
from wlctl.lifecycle.restart import Exhausted, Restart, Wait, decide, remembered

MOMENTS = st.integers(min_value=0, max_value=4_000_000_000_000)


@pytest.mark.parametrize("case", EDGES, ids=lambda case: case.rule)
def test_each_edge_of_the_policy(case: Case) -> None:
    assert decide(case.policy, case.at_ms, NOW) == case.answer


@given(st.lists(MOMENTS, max_size=80), MOMENTS)
def test_it_never_waits_beyond_the_longest_and_never_restarts_beyond_the_count(
    at_ms: list[int], now_ms: int
) -> None:
    answer = decide(POLICY, at_ms, now_ms)

    within = remembered(POLICY, at_ms, now_ms)
    match answer:
        case Exhausted():
            assert len(within) >= POLICY.max_restarts
        case Wait(until_ms):
            assert now_ms < until_ms <= now_ms + POLICY.backoff_max_ms
        case Restart(attempt):
            assert attempt == len(within) + 1 <= POLICY.max_restarts


@given(st.lists(MOMENTS, max_size=10), MOMENTS)
def test_waiting_as_long_as_it_says_is_enough(at_ms: list[int], now_ms: int) -> None:
    answer = decide(POLICY, at_ms, now_ms)
    if isinstance(answer, Wait) and all(at <= now_ms for at in at_ms):
        assert isinstance(decide(POLICY, at_ms, answer.until_ms), Restart)


@given(st.lists(MOMENTS, max_size=10), MOMENTS)
def test_the_order_of_the_moments_does_not_matter(at_ms: list[int], now_ms: int) -> None:
    assert decide(POLICY, at_ms, now_ms) == decide(POLICY, at_ms[::-1], now_ms)
