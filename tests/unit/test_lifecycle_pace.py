"""How often passes run, and which time between them was watched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.lifecycle.pace import usual_gap_ms, watched_ms
from wlctl.model.boottime import BootTime

MINUTE_MS = 60_000


def every(gap_ms: int, count: int) -> list[BootTime]:
    return [BootTime("a", number * gap_ms) for number in range(count)]


@pytest.mark.parametrize(
    ("passes", "expected"),
    [
        pytest.param([], MINUTE_MS, id="none yet: the setting"),
        pytest.param(every(5_000, 10), MINUTE_MS, id="nine gaps: the setting"),
        pytest.param(every(5_000, 11), 5_000, id="ten gaps: their median"),
        pytest.param([*every(5_000, 11), BootTime("a", 10**9)], 5_000, id="one long gap in ten"),
        pytest.param(
            [*every(5_000, 10), BootTime("b", 1)], MINUTE_MS, id="a gap over a boot is none"
        ),
    ],
)
def test_the_usual_gap_is_the_median_of_ten(passes: list[BootTime], expected: int) -> None:
    assert usual_gap_ms(passes, MINUTE_MS) == expected


LAST = BootTime("a", 1_000_000)


@pytest.mark.parametrize(
    ("passes", "now", "expected"),
    [
        pytest.param([], LAST, 0, id="the first pass"),
        pytest.param([LAST], BootTime("a", 1_060_000), 60_000, id="a minute later"),
        pytest.param([LAST], BootTime("a", 1_180_000), 180_000, id="three gaps later"),
        pytest.param([LAST], BootTime("a", 1_180_001), 0, id="a moment more: nobody watched"),
        pytest.param(
            every(5_000, 11), BootTime("a", 230_000), 180_000, id="three of the setting, if longer"
        ),
        pytest.param(every(90_000, 11), BootTime("a", 1_170_000), 270_000, id="three usual ones"),
        pytest.param(every(90_000, 11), BootTime("a", 1_170_001), 0, id="and a moment more"),
        pytest.param([LAST], BootTime("b", 2_000_000), 0, id="after a boot"),
        pytest.param([LAST], BootTime("a", 999_999), 0, id="a clock of before"),
    ],
)
def test_time_counts_as_watched_up_to_three_usual_gaps(
    passes: list[BootTime], now: BootTime, expected: int
) -> None:
    assert watched_ms(passes, now, MINUTE_MS) == expected


@given(
    passes=st.lists(
        st.builds(BootTime, st.sampled_from("ab"), st.integers(0, 10**12)), max_size=15
    ),
    now=st.builds(BootTime, st.sampled_from("ab"), st.integers(0, 10**12)),
)
def test_no_more_is_watched_than_passed_and_never_less_than_nothing(
    passes: list[BootTime], now: BootTime
) -> None:
    found = watched_ms(passes, now, MINUTE_MS)

    assert found >= 0
    if found:
        assert now.since(passes[-1]) == found
