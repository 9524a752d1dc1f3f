"""Interval jobs: when they are due in any timezone, and never two runs for one due time."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wlctl.lifecycle.schedule import DAY_MS, Due, Turn, first_due, next_due, turn
from wlctl.model.package import Schedule

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
HOURLY = Schedule(every_ms=HOUR_MS)
BERLIN = "Europe/Berlin"


def ms(text: str, zone: str = "UTC", *, fold: int = 0) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone), fold=fold)
    return round(moment.timestamp()) * 1000


def due_after(cron: str, text: str, zone: str = "UTC", *, fold: int = 0) -> str | None:
    """Say in local time, with the offset, when a line is due after a moment of local time."""
    at_ms = first_due(Schedule(cron=cron, timezone=zone), ms(text, zone, fold=fold)).at_ms
    if at_ms is None:
        return None
    return datetime.fromtimestamp(at_ms / 1000, ZoneInfo(zone)).isoformat(" ", "minutes")


@pytest.mark.parametrize(
    ("cron", "after", "due"),
    [
        pytest.param("* * * * *", "2026-01-01 00:00", "2026-01-01 00:01", id="each minute"),
        pytest.param("15 2 * * *", "2026-01-01 02:14", "2026-01-01 02:15", id="later today"),
        pytest.param("15 2 * * *", "2026-01-01 02:15", "2026-01-02 02:15", id="not the same again"),
        pytest.param("0 0 1 1 *", "2026-01-01 00:00", "2027-01-01 00:00", id="once a year"),
        pytest.param("0 0 29 2 *", "2096-02-29 00:00", "2104-02-29 00:00", id="after 2100"),
        pytest.param("0 0 31 * *", "2026-01-31 00:00", "2026-03-31 00:00", id="a long month"),
        pytest.param("0 0 31 2 *", "2026-01-01 00:00", None, id="a day that never comes"),
        pytest.param("*/20 5-6 * * *", "2026-01-01 05:41", "2026-01-01 06:00", id="steps"),
        pytest.param("10-40/15 * * * *", "2026-01-01 05:26", "2026-01-01 05:40", id="a span"),
        pytest.param("1,3 4,2 * * *", "2026-01-01 02:03", "2026-01-01 04:01", id="lists"),
        pytest.param("0 0 * * 0", "2026-01-01 00:00", "2026-01-04 00:00", id="Sunday is 0"),
        pytest.param("0 0 * * 7", "2026-01-01 00:00", "2026-01-04 00:00", id="Sunday is 7"),
        pytest.param("0 0 * * 5-7", "2026-01-04 00:00", "2026-01-09 00:00", id="Friday to Sunday"),
        pytest.param("0 0 3 * 5", "2026-01-01 00:00", "2026-01-02 00:00", id="either, weekday"),
        pytest.param("0 0 3 * 5", "2026-01-02 00:00", "2026-01-03 00:00", id="either, day"),
        pytest.param("0 0 */2 * 5", "2026-01-01 00:00", "2026-01-09 00:00", id="both, with a star"),
        pytest.param("0 0 1 3 *", "2026-12-31 23:59", "2027-03-01 00:00", id="over the year"),
    ],
)
def test_a_line_is_due_as_crontab_says(cron: str, after: str, due: str | None) -> None:
    assert due_after(cron, after) == (None if due is None else f"{due}+00:00")


@pytest.mark.parametrize(
    ("cron", "after", "fold", "due"),
    [
        # In Berlin 2026-03-29 has no 02:00 to 02:59, and 2026-10-25 has them twice.
        pytest.param("30 2 * * *", "2026-03-28 03:00", 0, "2026-03-29 03:30+02:00", id="no such"),
        pytest.param("30 2 * * *", "2026-03-29 03:30", 0, "2026-03-30 02:30+02:00", id="then once"),
        pytest.param("0 3 * * *", "2026-03-28 03:00", 0, "2026-03-29 03:00+02:00", id="after it"),
        pytest.param("30 2 * * *", "2026-10-25 02:00", 0, "2026-10-25 02:30+02:00", id="first"),
        pytest.param("30 2 * * *", "2026-10-25 02:30", 0, "2026-10-26 02:30+01:00", id="not twice"),
        pytest.param("30 * * * *", "2026-03-29 01:30", 0, "2026-03-29 03:30+02:00", id="hourly"),
        pytest.param("30 * * * *", "2026-10-25 02:30", 0, "2026-10-25 02:30+01:00", id="both"),
        pytest.param("30 * * * *", "2026-10-25 02:30", 1, "2026-10-25 03:30+01:00", id="and on"),
        pytest.param("30 2,3 * * *", "2026-03-29 01:59", 0, "2026-03-29 03:30+02:00", id="as one"),
    ],
)
def test_a_line_is_due_where_clocks_are_changed(cron: str, after: str, fold: int, due: str) -> None:
    assert due_after(cron, after, BERLIN, fold=fold) == due


def test_a_day_that_does_not_exist_is_due_on_the_one_that_came_instead() -> None:
    """Samoa left out 30 December 2011."""
    found = due_after("0 5 30 12 *", "2011-12-31 02:00", "Pacific/Apia")

    assert found == "2011-12-31 05:00+14:00"


FIELDS = st.tuples(
    st.sampled_from(["*", "0", "30", "*/15", "5,50", "10-20"]),
    st.sampled_from(["*", "0", "2", "*/6", "1-3", "2,23"]),
    st.sampled_from(["*", "1", "31", "*/2", "13"]),
    st.sampled_from(["*", "3", "10", "1,12"]),
    st.sampled_from(["*", "0", "7", "1-5"]),
)


@settings(deadline=None)
@given(
    fields=FIELDS,
    zone=st.sampled_from(["UTC", BERLIN, "Asia/Kolkata", "Australia/Lord_Howe", "America/Havana"]),
    now_ms=st.integers(ms("2026-01-01"), ms("2027-12-31")),
)
def test_a_due_time_is_the_first_that_matches_or_stands_for_one_that_does_not_exist(
    fields: tuple[str, ...], zone: str, now_ms: int
) -> None:
    """Minute by minute for two days after, against the definition."""
    schedule = Schedule(cron=" ".join(fields), timezone=zone)
    due = first_due(schedule, now_ms).at_ms

    assert due is None or due > now_ms
    assert first_due(schedule, (due or now_ms) - 1).at_ms == due or due is None
    last_ms = now_ms + 2 * DAY_MS
    local = [
        datetime.fromtimestamp(at_ms // 1000, UTC).astimezone(ZoneInfo(zone))
        for at_ms in range(now_ms - now_ms % 60_000 + 60_000, min(due or last_ms, last_ms), 60_000)
    ]
    assert not [one for one in local if matches(fields, one)]


def matches(fields: tuple[str, ...], at: datetime) -> bool:
    """The definition, written down once more: every field allows its number."""

    def allows(field: str, number: int, most: int) -> bool:
        if field == "*":
            return True
        if field.startswith("*/"):
            first = 1 if most == 31 else 0
            return (number - first) % int(field[2:]) == 0
        if "-" in field:
            first, last = map(int, field.split("-"))
            return first <= number <= last
        return number in {int(one) for one in field.split(",")}

    minute, hour, day, month, weekday = fields
    if not (allows(minute, at.minute, 59) and allows(hour, at.hour, 23)):
        return False
    if at.fold and not hour.startswith("*"):  # it was due the first time
        return False
    days = allows(day, at.day, 31), allows(weekday.replace("7", "0"), at.isoweekday() % 7, 7)
    either = not day.startswith("*") and not weekday.startswith("*")
    return allows(month, at.month, 12) and (any(days) if either else all(days))


@pytest.mark.parametrize(
    ("late_ms", "due_ms"),
    [
        pytest.param(0, HOUR_MS, id="in time"),
        pytest.param(HOUR_MS - 1, HOUR_MS, id="so late that the next one has not come"),
        pytest.param(HOUR_MS, 2 * HOUR_MS, id="so late that one was missed"),
        pytest.param(100 * HOUR_MS + 5, 101 * HOUR_MS, id="after days away"),
    ],
)
def test_what_was_missed_collapses_into_one_and_the_beat_is_kept(late_ms: int, due_ms: int) -> None:
    now_ms = NOW_MS + late_ms

    after = next_due(HOURLY, Due(NOW_MS, NOW_MS - HOUR_MS), now_ms)

    assert after == Due(NOW_MS + due_ms, now_ms)


@pytest.mark.parametrize(
    ("passed_ms", "begun_at_ms", "is_running", "expected"),
    [
        pytest.param(-1, None, False, Turn.WAIT, id="a moment too early"),
        pytest.param(0, None, False, Turn.RUN, id="on time, never run"),
        pytest.param(0, NOW_MS - 1, False, Turn.RUN, id="the last run was for the time before"),
        pytest.param(5, NOW_MS, False, Turn.BEGUN, id="somebody has begun it by now"),
        pytest.param(5, NOW_MS, True, Turn.BEGUN, id="and it runs"),
        pytest.param(0, NOW_MS - 1, True, Turn.SKIP, id="the last one still runs"),
        pytest.param(-1, NOW_MS - 1, True, Turn.WAIT, id="it runs, and nothing is due"),
    ],
)
def test_a_job_runs_when_it_is_due_and_nothing_of_it_runs(
    passed_ms: int, begun_at_ms: int | None, is_running: bool, expected: Turn
) -> None:
    due = Due(NOW_MS, NOW_MS - HOUR_MS)

    found = turn(due, NOW_MS + passed_ms, begun_at_ms=begun_at_ms, is_running=is_running)

    assert found is expected


def test_what_is_never_due_is_never_run() -> None:
    never = first_due(Schedule(cron="0 0 31 2 *"), NOW_MS)

    assert turn(never, NOW_MS + 10**12, begun_at_ms=None, is_running=False) is Turn.WAIT
    assert next_due(Schedule(cron="0 0 31 2 *"), never, NOW_MS + 10**12) == never


NIGHTLY = Schedule(cron="15 2 * * *")


@pytest.mark.parametrize(
    ("schedule", "back_ms", "is_new"),
    [
        pytest.param(HOURLY, 0, False, id="every: not at all"),
        pytest.param(HOURLY, 1, True, id="every: by more than is left of the period"),
        pytest.param(NIGHTLY, DAY_MS, False, id="cron: by a day"),
        pytest.param(NIGHTLY, DAY_MS + 1, True, id="cron: by more than a day"),
    ],
)
def test_a_clock_that_was_set_back_far_makes_nothing_wait_until_it_is_as_late_again(
    schedule: Schedule, back_ms: int, is_new: bool
) -> None:
    due = first_due(schedule, NOW_MS)
    now_ms = NOW_MS - back_ms

    found = next_due(schedule, due, now_ms)

    assert found == (first_due(schedule, now_ms) if is_new else due)


def test_a_clock_that_was_set_back_a_little_runs_nothing_a_second_time() -> None:
    at_ms = ms("2026-01-01 02:15")
    after = next_due(NIGHTLY, Due(at_ms, at_ms - DAY_MS), at_ms + 30_000)

    again = next_due(NIGHTLY, after, at_ms - 10_000)

    assert again == after
    assert turn(again, at_ms + 1, begun_at_ms=at_ms + 30_000, is_running=False) is Turn.WAIT


@settings(deadline=None)
@given(
    schedule=st.sampled_from([HOURLY, NIGHTLY, Schedule(every_ms=1_000)]),
    steps=st.lists(
        st.tuples(st.integers(-3 * DAY_MS, 3 * DAY_MS), st.booleans(), st.booleans()), max_size=30
    ),
)
def test_whatever_the_clock_does_a_due_time_is_run_at_most_once_and_the_next_one_is_near(
    schedule: Schedule, steps: list[tuple[int, bool, bool]]
) -> None:
    now_ms = NOW_MS
    due = first_due(schedule, now_ms)
    begun_at_ms: int | None = None
    ran: list[int | None] = []
    for passed_ms, is_running, _ in steps:
        now_ms += passed_ms
        now = turn(due, now_ms, begun_at_ms=begun_at_ms, is_running=is_running)
        if now is Turn.RUN:
            ran.append(due.at_ms)
            begun_at_ms = now_ms
            assert turn(due, now_ms, begun_at_ms=begun_at_ms, is_running=True) is Turn.BEGUN
        due = next_due(schedule, due, now_ms)
        assert turn(due, now_ms, begun_at_ms=begun_at_ms, is_running=False) is Turn.WAIT
        assert due.at_ms is not None
        assert now_ms < due.at_ms <= now_ms + (schedule.every_ms or 2 * DAY_MS)
        assert next_due(schedule, due, now_ms) == due


def test_the_beat_of_a_night_is_kept_over_a_year() -> None:
    due, days = first_due(Schedule(cron="30 2 * * *", timezone=BERLIN), ms("2026-01-01")), 0
    while due.at_ms is not None and due.at_ms < ms("2027-01-01"):
        days += 1
        due = next_due(Schedule(cron="30 2 * * *", timezone=BERLIN), due, due.at_ms)

    assert days == 365
