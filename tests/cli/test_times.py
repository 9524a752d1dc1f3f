"""Moments and durations, as people write and read them."""

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.cli import times
from wlctl.errors import UsageError

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("age_s", "said"),
    [
        pytest.param(0, "0s", id="now"),
        pytest.param(59.999, "59s", id="just under a minute"),
        pytest.param(60, "1m", id="a minute"),
        pytest.param(3599, "59m", id="just under an hour"),
        pytest.param(3600, "1h", id="an hour"),
        pytest.param(86_400, "1d", id="a day"),
        pytest.param(604_800, "1w", id="a week"),
        pytest.param(-0.999, "0s", id="less than a second ahead"),
        pytest.param(-1, "in 1s", id="a clock that was set back"),
        pytest.param(-7200, "in 2h", id="by two hours"),
    ],
)
def test_an_age_is_said_in_its_largest_whole_unit(age_s: float, said: str) -> None:
    assert times.ago(NOW_MS - round(age_s * 1000), NOW_MS) == said


def test_never_is_a_dash() -> None:
    assert times.ago(None, NOW_MS) == "-"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("90s", 90, id="seconds"),
        pytest.param("2h", 7200, id="hours"),
        pytest.param("1h30m", 5400, id="several units"),
        pytest.param("0.5s", 0.5, id="a fraction"),
        pytest.param("36500d", 36500 * 86400, id="the longest"),
    ],
)
def test_a_duration_is(text: str, seconds: float) -> None:
    assert times.duration_s(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "2", "h", "2 h", "-2h", "2H", "2h ", "36501d", "9" * 400 + "w", "1e3s", "٢h"],
)
def test_a_duration_is_not(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration"):
        times.duration_s(text)


@pytest.mark.parametrize(
    ("text", "moment_ms"),
    [
        pytest.param("2h", NOW_MS - 7_200_000, id="so long ago"),
        pytest.param("2027-01-15T08:00:00Z", NOW_MS, id="RFC 3339 in UTC"),
        pytest.param("2027-01-15T09:00:00+01:00", NOW_MS, id="with an offset"),
        pytest.param("2027-01-15T08:00:00.250Z", NOW_MS + 250, id="with milliseconds"),
    ],
)
def test_a_moment_is(text: str, moment_ms: int) -> None:
    assert times.moment_ms(text, now_ms=NOW_MS) == moment_ms


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("2027-01-15T08:00:00", id="without its offset"),
        pytest.param("2027-01-15", id="a day"),
        pytest.param("yesterday", id="a word"),
        pytest.param("2027-13-01T00:00:00Z", id="no such month"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_moment_is_not(text: str) -> None:
    with pytest.raises(UsageError, match="is not a moment"):
        times.moment_ms(text, now_ms=NOW_MS)


@given(st.text())
def test_any_other_text_is_refused_and_nothing_worse(text: str) -> None:
    with suppress(UsageError):
        assert 0 <= times.duration_s(text) <= 100 * 366 * 86_400
    with suppress(UsageError):
        assert isinstance(times.moment_ms(text, now_ms=NOW_MS), int)


def test_a_local_time_has_its_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        assert times.local(NOW_MS) == "2027-01-15 13:30:00+05:30"
    finally:
        monkeypatch.undo()
        time.tzset()
