"""Are requirements, predicates and placement wishes well-formed, within what a decision takes?"""

import re
from collections.abc import Iterable, Sequence

from wlctl.model.facts import AttrValue
from wlctl.model.workload import Op, Predicate, Requirement, WorkloadPolicy
from wlctl.package import units, words
from wlctl.package.fault import Fault, quoted

MAX_REQUIREMENTS = 64
MAX_PREDICATES = 32
MAX_COUNT = 64
MAX_LABELS = 256
MAX_LIST = 256
MAX_ID_CHARACTERS = 256
MAX_WEIGHT = 1e12
_MAX_WORD_BYTES = 32_768

_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,15}")


def check_all(where: str, requirements: Sequence[Requirement]) -> None:
    """Check a list of requirements; see `placement.limits` for the same limits at a decision.

    Raises:
        Fault: At the first thing that is wrong.
    """
    if len(requirements) > MAX_REQUIREMENTS:
        raise Fault(where, f"{len(requirements)} requirements; at most {MAX_REQUIREMENTS}")
    for index, requirement in enumerate(requirements):
        _check_requirement(f"{where}[{index}]", requirement)


def check_policy(policy: WorkloadPolicy) -> None:
    """Check labels, the performance target and preferences.

    Raises:
        Fault: At the first thing that is wrong.
    """
    for key, labels in (("labels", policy.labels), ("excludes", policy.excludes)):
        if len(labels) > MAX_LABELS:
            raise Fault(f"policy.{key}", f"{len(labels)} labels; at most {MAX_LABELS}")
        distinct(f"policy.{key}", labels)
        for index, label in enumerate(labels):
            _check_id(f"policy.{key}[{index}]", label)
    if policy.perf is not None:
        _check_id("policy.perf.id", policy.perf.id)
        _check_weight("policy.perf.minimum", policy.perf.minimum)
    if len(policy.preferences) > MAX_REQUIREMENTS:
        count = len(policy.preferences)
        raise Fault("policy.preferences", f"{count} preferences; at most {MAX_REQUIREMENTS}")
    for index, preference in enumerate(policy.preferences):
        where = f"policy.preferences[{index}]"
        _check_requirement(where, preference.requirement)
        _check_weight(f"{where}.weight", preference.weight)


def check_words(where: str, text: str) -> None:
    """Check text that a process or a program is given.

    Raises:
        Fault: It has a NUL, is not Unicode, or is too long.
    """
    if "\0" in text:
        raise Fault(where, "a NUL character cannot be passed to a process")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Fault(where, "a lone surrogate is not Unicode text")
    if (size := len(text.encode())) > _MAX_WORD_BYTES:
        raise Fault(where, f"{size} bytes; at most {_MAX_WORD_BYTES}")


def distinct(where: str, texts: Iterable[str]) -> None:
    """Check that nothing stands in a list twice.

    Raises:
        Fault: Something does.
    """
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            raise Fault(where, f"{quoted(text)} stands there twice")
        seen.add(text)


def _check_requirement(where: str, requirement: Requirement) -> None:
    if (requirement.id is None) == (requirement.id_prefix is None):
        raise Fault(where, "write exactly one of id and id_prefix")
    key = "id" if requirement.id is not None else "id_prefix"
    _check_id(f"{where}.{key}", requirement.id or requirement.id_prefix or "")
    if not 1 <= requirement.count <= MAX_COUNT:
        raise Fault(f"{where}.count", f"{requirement.count} is not 1 to {MAX_COUNT}")
    if len(requirement.where) > MAX_PREDICATES:
        count = len(requirement.where)
        raise Fault(f"{where}.where", f"{count} predicates; at most {MAX_PREDICATES}")
    for index, predicate in enumerate(requirement.where):
        _check_predicate(f"{where}.where[{index}]", predicate)


def _check_predicate(where: str, predicate: Predicate) -> None:
    _check_id(f"{where}.attr", predicate.attr)
    value = predicate.value
    items = value if isinstance(value, tuple) else (value,)
    if len(items) > MAX_LIST:
        raise Fault(f"{where}.value", f"{len(items)} values; at most {MAX_LIST}")
    for item in items:
        _check_scalar(f"{where}.value", item)
    if predicate.op is Op.IN and not isinstance(value, tuple):
        raise Fault(f"{where}.value", f"{quoted(value)} is not a list, which in needs")
    if predicate.op is Op.HAS and isinstance(value, tuple):
        raise Fault(f"{where}.value", "a list; has looks for one value")
    if predicate.op in {Op.GTE, Op.LTE} and not _is_ordered(value):
        what = f'{quoted(value)} is neither a number nor a dotted version such as "3.11"'
        raise Fault(f"{where}.value", what)


def _check_scalar(where: str, value: AttrValue) -> None:
    if isinstance(value, str):
        check_words(where, value)
    # Also true for nan: JSON has neither it nor larger integers.
    elif not isinstance(value, bool | tuple) and not abs(value) <= units.MAX_INTEGER:
        raise Fault(where, f"{quoted(value)} is not a number that can be kept exactly")


def _is_ordered(value: AttrValue) -> bool:
    if isinstance(value, str):
        return _VERSION.fullmatch(value) is not None
    return not isinstance(value, bool | tuple)


def _check_weight(where: str, value: float) -> None:
    if not 0 <= value <= MAX_WEIGHT:
        raise Fault(where, f"{quoted(value)} is not a number from 0 to {MAX_WEIGHT:.0f}")


def _check_id(where: str, text: str) -> None:
    if not words.is_printable(text, MAX_ID_CHARACTERS):
        raise Fault(where, f"{quoted(text)} is not 1 to {MAX_ID_CHARACTERS} printable characters")
