"""Moments and durations as people write and read them; programs get RFC 3339 in UTC."""

import re
from datetime import UTC, datetime

from wlctl.errors import UsageError

_UNITS_S = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?[wdhms])+")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([wdhms])")
_SECOND_MS = 1000
_MOST_S = 100 * 365 * 86_400


def ago(at_ms: int | None, now_ms: int) -> str:
    """Say how long ago a moment was, in its largest whole unit: `3m`; `-` for never.

    A moment after now, as clocks that were set back leave them, reads `in 3m`.
    """
    if at_ms is None:
        return "-"
    age_s = abs(now_ms - at_ms) // _SECOND_MS
    unit = next((unit for unit, length_s in _UNITS_S.items() if age_s >= length_s), "s")
    age = f"{age_s // _UNITS_S[unit]}{unit}"
    return f"in {age}" if at_ms - now_ms >= _SECOND_MS else age


def local(at_ms: int) -> str:
    """Write a moment in this machine's time zone, offset included, to the second."""
    at = datetime.fromtimestamp(at_ms // _SECOND_MS, tz=UTC)
    return at.astimezone().isoformat(sep=" ", timespec="seconds")


def local_of(at: str) -> str:
    """Write a moment that is given in RFC 3339 as `local` does."""
    return local(int(datetime.fromisoformat(at).timestamp() * _SECOND_MS))


def duration_s(text: str, *, of: str = "") -> float:
    """Read a duration such as `90s`, `2h` or `1h30m`.

    Args:
        of: The option that it was given with, for whoever mistyped it.

    Raises:
        UsageError: It is another thing, or longer than 100 years.
    """
    if _DURATION.fullmatch(text):
        total_s = sum(float(count) * _UNITS_S[unit] for count, unit in _PART.findall(text))
        if total_s <= _MOST_S:
            return total_s
    said = f"{of} {text!r}".lstrip()
    raise UsageError(f"{said} is not a duration", hint="write one as 90s, 15m, 2h, 3d or 1h30m")


def moment_ms(text: str, *, now_ms: int, of: str = "") -> int:
    """Read a moment: a duration before now, or RFC 3339.

    Args:
        of: As `duration_s` has it.

    Raises:
        UsageError: It is neither, or has no offset from UTC.
    """
    if _DURATION.fullmatch(text):
        return now_ms - int(duration_s(text) * _SECOND_MS)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        said = f"{of} {text!r}".lstrip()
        raise UsageError(
            f"{said} is not a moment",
            hint="write 2h for two hours ago, or RFC 3339 with its offset: 2026-01-31T18:00:00Z",
        )
    return int(at.timestamp() * _SECOND_MS)
