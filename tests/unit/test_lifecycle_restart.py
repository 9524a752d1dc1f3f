"""The restart policy: how often, after which waits, and when it is over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.lifecycle.restart import Answer, Exhausted, Restart, Wait, decide, remembered
from wlctl.model.package import RestartPolicy

POLICY = RestartPolicy(
    max_restarts=3, window_ms=600_000, backoff_base_ms=1_000, backoff_max_ms=30_000
)
NOW = 1_800_000_000_000
MOMENTS = st.integers(min_value=0, max_value=4_000_000_000_000)


@pytest.mark.parametrize(
    ("ages_ms", "answer"),
    [
        pytest.param([], Restart(1), id="the first one waits for nothing"),
        pytest.param([999], Wait(NOW + 1), id="the second waits for the base, not yet over"),
        pytest.param([1_000], Restart(2), id="the second, when the base is just over"),
        pytest.param([5_000, 1_999], Wait(NOW + 1), id="the third waits for twice the base"),
        pytest.param([5_000, 2_000], Restart(3), id="the third, when that is just over"),
        pytest.param([9_000, 5_000, 4_000], Exhausted(3), id="after three there is no more"),
        pytest.param(
            [599_999, 599_999, 599_999], Exhausted(3), id="just inside the window they count"
        ),
        pytest.param([600_000, 600_000, 600_000], Restart(1), id="at its very end they do not"),
        pytest.param([-5_000], Wait(NOW + 1_000), id="one of the future is as old as now"),
    ],
)
def test_each_edge_of_the_policy(ages_ms: list[int], answer: Answer) -> None:
    assert decide(POLICY, [NOW - age for age in ages_ms], NOW) == answer


def test_a_policy_of_none_is_exhausted_at_once() -> None:
    assert decide(RestartPolicy(max_restarts=0), [], NOW) == Exhausted(0)


def test_the_wait_is_never_longer_than_the_longest() -> None:
    policy = RestartPolicy(max_restarts=100, window_ms=10**9, backoff_max_ms=30_000)

    assert decide(policy, [NOW] * 50, NOW) == Wait(NOW + 30_000)


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
