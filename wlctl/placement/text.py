"""How a decision writes sizes, times and values: one way each, the same on every machine."""

import re
from functools import lru_cache

KIB = 1 << 10
_UNITS = ((KIB**4, "TiB"), (KIB**3, "GiB"), (KIB**2, "MiB"), (KIB, "KiB"))
_SPANS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"))
_LONGEST = 80
_WIDEST_BITS = 256


def visible(text: str) -> str:
    r"""Write every character that does not show as itself as `\xNN`, `\uNNNN` or `\UNNNNNNNN`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@lru_cache(maxsize=4096)  # what is needed, and what nodes have, is the same for most of a fleet
def size(count: int) -> str:
    """Write bytes in the largest unit that leaves at least one, exactly or with two decimals."""
    if count.bit_length() > _WIDEST_BITS:  # what no node has, but may claim
        return f"{'-' if count < 0 else ''}2^{count.bit_length() - 1} B"
    for unit, name in _UNITS:
        if abs(count) >= unit:
            whole, rest = divmod(count, unit)
            return f"{whole} {name}" if rest == 0 else f"{_hundredths(count, unit)} {name}"
    return f"{count} B"


def _hundredths(count: int, unit: int) -> str:
    # In whole numbers: a float would overflow on what a node may claim to have.
    hundredths = abs(count) * 100 // unit
    sign = "-" if count < 0 else ""
    return f"{sign}{hundredths // 100}.{hundredths % 100:02d}"


def cores(milli: int) -> str:
    """Write thousandths of a core as cores, without trailing zeros."""
    whole, rest = divmod(abs(milli), 1000)
    sign = "-" if milli < 0 else ""
    return f"{sign}{whole}" if rest == 0 else f"{sign}{whole}.{rest:03d}".rstrip("0")


def core_count(milli: int) -> str:
    """Write `1 core`, `0.5 cores`."""
    return f"{cores(milli)} core" if milli == 1000 else f"{cores(milli)} cores"  # noqa: PLR2004


def span(milliseconds: int) -> str:
    """Write a duration in its largest whole unit, rounded down."""
    for unit, name in _SPANS:
        if milliseconds >= unit:
            return f"{milliseconds // unit} {name}"
    return f"{milliseconds} ms"


def value(found: object) -> str:
    """Write an attribute's value; text only in quotes where it would be misread without."""
    match found:
        case bool():
            return "true" if found else "false"
        case int():
            bits = found.bit_length()
            return str(found) if bits <= _WIDEST_BITS else f"an integer of {bits} bits"
        case str():
            return _text(found)
        case tuple():
            return _cut("[" + ", ".join(value(item) for item in found[:_LONGEST]) + "]")
        case _:
            return repr(found)


_PLAIN = re.compile(r"[^\s\"'\[\],;:]+")


def _text(text: str) -> str:
    shown = visible(_cut(text))
    return shown if _PLAIN.fullmatch(text) else f'"{shown}"'


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def count(number: int, thing: str) -> str:
    """Write `1 node`, `2 nodes`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
