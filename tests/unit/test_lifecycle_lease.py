"""When a lease has run out for certain: never before the node can have ended its copy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.lifecycle.lease import bound_ms, left_ms
from wlctl.model.boottime import BootTime

TTL_MS = 300_000
READ = BootTime("a", 1_000)


@pytest.mark.parametrize(
    ("elapsed_ms", "left"),
    [
        pytest.param(0, 318_001, id="just sent: ttl, kill bound, margin and a hundredth"),
        pytest.param(300_000, 18_001, id="at its time, the node may be late"),
        pytest.param(318_000, 1, id="at the bound it may still run"),
        pytest.param(318_001, 0, id="past the bound it cannot"),
        pytest.param(10**9, 0, id="long past"),
    ],
)
def test_a_lease_has_run_out_past_its_time_and_all_margins(elapsed_ms: int, left: int) -> None:
    assert left_ms(TTL_MS, READ, BootTime("a", READ.ms + elapsed_ms)) == left


def test_a_part_of_the_hundredth_counts_whole() -> None:
    assert [bound_ms(ttl_ms) - ttl_ms - 15_000 for ttl_ms in (100, 101, 200)] == [1, 2, 2]


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(BootTime("b", 10**9), id="another boot of this machine, or another machine"),
        pytest.param(BootTime("a", 999), id="a reading from before it was sent"),
    ],
)
def test_by_a_clock_that_cannot_be_compared_nothing_is_known(now: BootTime) -> None:
    assert left_ms(TTL_MS, READ, now) is None


@given(
    ttl_ms=st.integers(3_000, 10**9),
    sent_ms=st.integers(0, 10**9),
    travel_ms=st.integers(0, 10**6),
    drift=st.floats(0.9905, 1.0095),
    kill_ms=st.integers(0, 10_000),
)
def test_whatever_the_clocks_do_within_a_hundredth_no_two_copies_overlap(
    ttl_ms: int, sent_ms: int, travel_ms: int, drift: float, kill_ms: int
) -> None:
    read_over_there_ms = sent_ms - travel_ms  # by this clock, before the answer was received
    gone_ms = read_over_there_ms + ttl_ms * drift + 1_000 + min(kill_ms, 9_000)
    first_allowed_ms = sent_ms + bound_ms(ttl_ms)

    assert left_ms(ttl_ms, BootTime("a", sent_ms), BootTime("a", first_allowed_ms)) == 1
    assert gone_ms <= first_allowed_ms + 1
