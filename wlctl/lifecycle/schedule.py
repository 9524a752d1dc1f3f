"""When an interval job is due, and what a pass does about it then.

Runs that were missed collapse into one. A run that is due while the one before still runs is left
out: there are never two at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from wlctl.model.package import Schedule

MINUTE_MS = 60_000
DAY_MS = 24 * 3_600_000

HORIZON_DAYS = 8 * 366 + 31
"""29 February comes again within eight years; a line that is due on no day until then never is."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Turn(StrEnum):
    """What a pass does about an interval job."""

    WAIT = "wait"
    """It is not due."""
    BEGUN = "begun"
    """The run that is due was begun already."""
    RUN = "run"
    """It is due."""
    SKIP = "skip"
    """It is due, and its last run has not ended."""


@dataclass(frozen=True, slots=True)
class Due:
    """When a job is due next, as it was worked out at a moment.

    Attributes:
        at_ms: None for never.
        kept_at_ms: When that was worked out.
    """

    at_ms: int | None
    kept_at_ms: int


def is_zone_known(schedule: Schedule) -> bool:
    """Answer whether this machine knows the timezone; of one it does not, nothing can be said."""
    try:
        ZoneInfo(schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def first_due(schedule: Schedule, now_ms: int) -> Due:
    """Say when a job that began to be on its schedule now is due: not at once."""
    return Due(_next(schedule, now_ms, now_ms), now_ms)


def turn(due: Due, now_ms: int, *, begun_at_ms: int | None, is_running: bool) -> Turn:
    """Decide what is to be done now.

    Args:
        begun_at_ms: When the newest run was asked for, by whomever; None for no run.
        is_running: It has not ended, as far as anybody knows.
    """
    if due.at_ms is None or now_ms < due.at_ms:
        return Turn.WAIT
    if begun_at_ms is not None and begun_at_ms >= due.at_ms:
        return Turn.BEGUN
    return Turn.SKIP if is_running else Turn.RUN


def next_due(schedule: Schedule, due: Due, now_ms: int) -> Due:
    """Say when a job is due after what was due has been seen to; however late that was.

    A moment that is still to come stays, unless the clock was set back since: then nothing waits
    until it is as late again.
    """
    if due.at_ms is not None and now_ms < due.at_ms:
        if schedule.every_ms is not None and due.at_ms - now_ms > schedule.every_ms:
            return first_due(schedule, now_ms)
        if due.kept_at_ms - now_ms > DAY_MS:
            return first_due(schedule, now_ms)
        return due
    if due.at_ms is None:
        return due
    return Due(_next(schedule, due.at_ms, now_ms), now_ms)


def _next(schedule: Schedule, from_ms: int, now_ms: int) -> int | None:
    """Find the first moment after `now_ms`; of `every`, counted from `from_ms`."""
    if schedule.every_ms is not None:
        passed = max(0, now_ms - from_ms) // schedule.every_ms
        return from_ms + (passed + 1) * schedule.every_ms
    assert schedule.cron is not None, "a schedule is one of the two"
    return _cron_after(schedule.cron, ZoneInfo(schedule.timezone), now_ms)


@dataclass(frozen=True, slots=True)
class _Line:
    """The five fields of a cron line, as the numbers that each of them allows.

    Attributes:
        either_day: Both the day of the month and the weekday say something: one of them is enough.
        any_hour: The hour field says every hour, or every so many.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool
    any_hour: bool

    def is_on(self, day: date) -> bool:
        """Answer whether the line is due on a day."""
        if day.month not in self.months:
            return False
        by_day, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_day or by_weekday if self.either_day else by_day and by_weekday


def _read(cron: str) -> _Line:
    minute, hour, day, month, weekday = cron.split(" ")
    return _Line(
        minutes=tuple(sorted(_numbers(minute, 0, 59))),
        hours=tuple(sorted(_numbers(hour, 0, 23))),
        days=frozenset(_numbers(day, 1, 31)),
        months=frozenset(_numbers(month, 1, 12)),
        weekdays=frozenset(number % 7 for number in _numbers(weekday, 0, 7)),
        either_day=not day.startswith("*") and not weekday.startswith("*"),
        any_hour=hour.startswith("*"),
    )


def _numbers(field: str, least: int, most: int) -> set[int]:
    """Read one field, which the package's check has found well-formed."""
    found: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("-")
        begin = least if first == "*" else int(first)
        end = most if first == "*" else int(last or first)
        found.update(range(begin, end + 1, int(step or 1)))
    return found


def _cron_after(cron: str, zone: ZoneInfo, now_ms: int) -> int | None:
    line = _read(cron)
    here = (_EPOCH + timedelta(milliseconds=now_ms)).astimezone(zone).date()
    found: list[int] = []
    for offset in range(-1, HORIZON_DAYS):
        day = here + timedelta(days=offset)
        # A day that has been looked at may still come second, where a clock was put forward.
        done = bool(found)
        if line.is_on(day):
            found += [at_ms for at_ms in _moments(line, day, zone) if at_ms > now_ms]
        if done:
            break
    return min(found, default=None)


def _moments(line: _Line, day: date, zone: ZoneInfo) -> Iterator[int]:
    """Give the moments of a day, in milliseconds.

    Where clocks are put forward, a time of day that does not exist is due as much later; where they
    are put back, one that comes twice is due the first time. A line for every hour, or every so
    many, follows the hours as they pass: none is left out, and none comes twice.

    Source: cron(8) of Vixie cron, on jobs that run at a time and those with a wildcard.
    """
    for hour in line.hours:
        for minute in line.minutes:
            for fold in (0, 1) if line.any_hour else (0,):
                wall = datetime(day.year, day.month, day.day, hour, minute, fold=fold, tzinfo=zone)
                moment = wall.astimezone(UTC)
                if line.any_hour and not _same_wall(moment.astimezone(zone), wall):
                    continue
                yield (moment - _EPOCH) // timedelta(milliseconds=1)


def _same_wall(one: datetime, other: datetime) -> bool:
    return one.replace(tzinfo=None) == other.replace(tzinfo=None)
