"""Does an attribute's value satisfy a predicate? Never by guess: types that do not fit fail."""

import re
from collections.abc import Callable, Mapping

from wlctl.model.facts import AttrValue
from wlctl.model.workload import Op, Predicate
from wlctl.placement.text import KIB, size
from wlctl.placement.text import value as written

# ASCII digits only: \d would take those of every script.
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)*")
_SIGNS: Mapping[Op, str] = {Op.EQ: "=", Op.GTE: ">=", Op.LTE: "<=", Op.IN: "in", Op.HAS: "has"}


def satisfied(predicate: Predicate, found: AttrValue | None) -> bool:
    """Answer whether the value of the predicate's attribute satisfies it; an absent one does not.

    Ints and floats compare as numbers, never with booleans. `gte` and `lte` take two numbers, or
    two dotted versions compared segment by segment, a missing segment counting as 0. `in` looks for
    the value in the predicate's list, `has` for the predicate's value in the attribute's list. NaN
    satisfies nothing.
    """
    return _TESTS[predicate.op](found, predicate.value)


def shortfall(predicate: Predicate, found: AttrValue | None) -> str:
    """Say in words why `found` does not satisfy `predicate`."""
    needs = f"needs {phrase(predicate)}"
    if found is None:
        return f"no attribute {written(predicate.attr)}, {needs}"
    text = f"{written(predicate.attr)} is {_amount(predicate.attr, found)}, {needs}"
    if predicate.op is Op.HAS and not isinstance(found, tuple):
        return f"{text}: {_noun(found)} is not a list"
    ordered = predicate.op in (Op.GTE, Op.LTE)
    if (ordered and not _comparable(found, predicate.value)) or (
        predicate.op is Op.EQ and _class_of(found) is not _class_of(predicate.value)
    ):
        return f"{text}: {_noun(found)} does not compare with {_noun(predicate.value)}"
    return text


def phrase(predicate: Predicate) -> str:
    """Write a predicate as people do: `version >= 3.11`."""
    value = _amount(predicate.attr, predicate.value)
    return f"{written(predicate.attr)} {_SIGNS[predicate.op]} {value}"


def _amount(attr: str, found: AttrValue) -> str:
    """Write bytes with their unit where that is exact, and anything else as it is."""
    if attr.endswith("_bytes") and type(found) is int and found > 0 and found % KIB == 0:
        return size(found)
    return written(found)


def is_number(found: object) -> bool:
    """Answer whether `found` is an int or a float; a boolean is neither."""
    return isinstance(found, (int, float)) and not isinstance(found, bool)


def is_version(found: object) -> bool:
    """Answer whether `found` is a dotted version: digits and dots, nothing else."""
    return isinstance(found, str) and _VERSION.fullmatch(found) is not None


def _equal(left: AttrValue | None, right: AttrValue | None) -> bool:
    if isinstance(left, tuple) or isinstance(right, tuple):
        return (
            isinstance(left, tuple)
            and isinstance(right, tuple)
            and len(left) == len(right)
            and all(map(_equal, left, right))
        )
    return _class_of(left) is _class_of(right) and left == right


def _class_of(scalar: AttrValue | None) -> type:
    return float if is_number(scalar) else type(scalar)


def _at_least(high: AttrValue | None, low: AttrValue | None) -> bool:
    if isinstance(high, str) and isinstance(low, str):
        return is_version(high) and is_version(low) and _segments(high) >= _segments(low)
    if isinstance(high, int | float) and isinstance(low, int | float):
        return is_number(high) and is_number(low) and high >= low
    return False


def _is_among(found: AttrValue | None, wanted: AttrValue | None) -> bool:
    return isinstance(wanted, tuple) and any(_equal(found, item) for item in wanted)


_TESTS: Mapping[Op, Callable[[AttrValue | None, AttrValue], bool]] = {
    Op.EQ: lambda found, wanted: found is not None and _equal(found, wanted),
    Op.GTE: _at_least,
    Op.LTE: lambda found, wanted: _at_least(wanted, found),
    Op.IN: _is_among,
    Op.HAS: lambda found, wanted: _is_among(wanted, found),
}


def _comparable(left: AttrValue, right: AttrValue) -> bool:
    return (is_number(left) and is_number(right)) or (is_version(left) and is_version(right))


def _segments(version: str) -> tuple[tuple[int, str], ...]:
    # Without turning segments into numbers: a node may claim one of any length.
    segments = [segment.lstrip("0") for segment in version.split(".")]
    while segments and not segments[-1]:
        segments.pop()
    return tuple((len(segment), segment) for segment in segments)


def _noun(found: AttrValue) -> str:
    match found:
        case bool():
            return "a boolean"
        case str():
            return "a version" if is_version(found) else "a text"
        case tuple():
            return "a list"
        case _:
            return "a number"
