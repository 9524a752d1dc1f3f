"""Sizes, durations and cores as people write them: strict, exact, or not at all."""

import re
from collections.abc import Mapping
from fractions import Fraction

MAX_INTEGER = 2**53 - 1
"""The largest integer every JSON reader keeps exactly (RFC 8785, I-JSON)."""
MAX_CORES = 4096

_SIZES: Mapping[str, int] = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_DURATIONS_MS: Mapping[str, int] = {
    "ms": 1,
    "s": 1_000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
# ASCII only: \d would take the digits of every script.
_QUANTITY = re.compile(r"([0-9]{1,16}(?:\.[0-9]{1,9})?)([A-Za-z]*)")

SIZE_WORDS = 'a number with B, KiB, MiB, GiB, TiB, kB, MB, GB or TB, e.g. "256MiB", or "0"'
DURATION_WORDS = 'a number with ms, s, m, h or d, e.g. "10s"'
CORES_WORDS = "a number of cores in steps of 0.001, e.g. 0.5"


def size_bytes(text: str) -> int | None:
    """Read a size; None unless it is a whole number of bytes with its unit (a zero needs none)."""
    return _read(text, _SIZES)


def duration_ms(text: str) -> int | None:
    """Read a duration; None unless it is a whole number of milliseconds with its unit."""
    return _read(text, _DURATIONS_MS)


def cores(value: object) -> float | None:
    """Read a number of cores; None unless it is a number, 0 to 4096, in steps of 0.001."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= MAX_CORES:  # also false for nan
        return None
    return float(value) if Fraction(str(value)) % Fraction(1, 1000) == 0 else None


def _read(text: str, units: Mapping[str, int]) -> int | None:
    if text == "0":
        return 0
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in units:
        return None
    exact = Fraction(match[1]) * units[match[2]]
    return int(exact) if exact.denominator == 1 and exact <= MAX_INTEGER else None
