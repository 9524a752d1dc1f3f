"""Reads `--where`: one more requirement, in an operator's short words."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from wlctl.errors import UsageError
from wlctl.model.facts import AttrValue, Capability, Provenance, Scalar
from wlctl.model.workload import Op, Predicate, Requirement

LABEL = "label."
NODE_LABEL = "node.label."
VALUE = "value"
"""The attribute that is meant where none is named."""

_OPS = {">=": Op.GTE, "<=": Op.LTE, "=": Op.EQ, " in ": Op.IN, " has ": Op.HAS}
_SPLIT = re.compile(r"(?P<subject>.*?)(?P<op>>=|<=|=|\s+in\s+|\s+has\s+)(?P<value>.*)", re.DOTALL)
_SUBJECT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_DECIMAL = re.compile(r"-?[0-9]{1,18}\.[0-9]{1,18}")
_SIZE = re.compile(r"([0-9]{1,15})(KiB|MiB|GiB|TiB)")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_FORMS = "ID, ID[.ATTR]=VALUE, >=, <=, ' in A,B' or ' has VALUE', e.g. runtime.python.version>=3.11"


Known = Mapping[str, Mapping[str, AttrValue]]
"""Id of each capability of the fleet to an example of each of its attributes."""


@dataclass(frozen=True, slots=True)
class Where:
    """One condition as it was typed; what its parts mean depends on the fleet.

    Attributes:
        subject: A capability's id, perhaps with an attribute as its last segment.
        op: None asks only for the capability.
        value: As typed; of a list, commas and all.
    """

    subject: str
    op: Op | None = None
    value: str = ""


def parse(text: str) -> Where:
    """Read one condition.

    Raises:
        UsageError: It is none.
    """
    found = _SPLIT.fullmatch(text.strip())
    subject = (text if found is None else found["subject"]).strip()
    if _SUBJECT.fullmatch(subject) is None:
        raise UsageError(f"--where {text!r} is not a condition", hint=_FORMS)
    if subject.startswith(LABEL):
        subject = NODE_LABEL + subject.removeprefix(LABEL)
    if found is None:
        return Where(subject)
    op = _OPS[found["op"] if found["op"] in _OPS else f" {found['op'].strip()} "]
    raw = found["value"].strip()
    if not raw:
        raise UsageError(f"--where {text!r} compares with nothing", hint=_FORMS)
    if raw.startswith("="):
        raise UsageError(f"--where {text!r}: equal is a single =", hint=_FORMS)
    return Where(subject, op, raw)


def known_of(fleet: Iterable[Sequence[Capability]]) -> Known:
    """Collect the capabilities of a fleet; of two that differ the first is the example."""
    found: dict[str, dict[str, AttrValue]] = {}
    for capabilities in fleet:
        for one in capabilities:
            attrs = found.setdefault(one.id, {})
            for attr, value in one.attrs.items():
                attrs.setdefault(attr, value)
    return found


def resolve(where: Where, known: Known) -> Requirement:
    """Decide what is the id, what the attribute, and whether the value is a number.

    A subject that is the id of a capability, or a node label, means its attribute `value`. In any
    other its last segment is the attribute; one of a single segment is always an id. A value is of
    the type that the attribute has in the fleet, so `3.11` is a version where versions are
    compared; where nobody has the attribute, what looks like a number is one. Bytes may have a
    unit. An operator's condition is met by what is merely claimed, as labels are, whatever
    provenance the workload asks for.
    """
    if where.op is None:
        return Requirement(id=where.subject, min_provenance=Provenance.CLAIMED)
    head, _, last = where.subject.rpartition(".")
    whole = where.subject in known or where.subject.startswith(NODE_LABEL) or not head
    id_, attr = (where.subject, VALUE) if whole else (head, last)
    example = known.get(id_, {}).get(attr)
    if isinstance(example, tuple):
        example = example[0] if example else None
    if where.subject.startswith(NODE_LABEL):
        example = ""  # labels are text, whatever they look like
    words = where.value.split(",") if where.op is Op.IN else [where.value]
    read = _bytes if attr.endswith("_bytes") else _scalar
    values = tuple(read(word.strip(), example) for word in words)
    value: AttrValue = values if where.op is Op.IN else values[0]
    return Requirement(
        id=id_, where=(Predicate(attr, where.op, value),), min_provenance=Provenance.CLAIMED
    )


def _bytes(text: str, example: AttrValue | None) -> Scalar:
    found = _SIZE.fullmatch(text)
    return int(found[1]) * _UNITS[found[2]] if found else _scalar(text, example)


def _scalar(text: str, example: AttrValue | None) -> Scalar:
    if isinstance(example, str):
        return text
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text
