"""Frozen values as plain JSON values: every field, each of its type, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.package.fault import Fault
from wlctl.package.plain import decode, encode


class Level(IntEnum):
    LOW = 0
    HIGH = 1


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    value: str | int | float | bool | tuple[str | int | float | bool, ...]


@dataclass(frozen=True)
class Outer:
    number: int = 1
    share: float = 0.5
    flag: bool = True
    maybe: int | None = None
    level: Level = Level.LOW
    colour: Colour = Colour.RED
    inner: tuple[Inner, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)


numbers = st.integers(-(2**53) + 1, 2**53 - 1)
floats = st.floats(-1e15, 1e15)
scalars = st.one_of(st.text(), numbers, floats, st.booleans())
outers = st.builds(
    Outer,
    number=numbers,
    share=floats,
    flag=st.booleans(),
    maybe=st.none() | numbers,
    level=st.sampled_from(Level),
    colour=st.sampled_from(Colour),
    inner=st.lists(
        st.builds(Inner, scalars | st.lists(scalars, max_size=3).map(tuple)), max_size=3
    ).map(tuple),
    words=st.dictionaries(st.text(), st.text(), max_size=3),
)


@given(outers)
def test_a_value_comes_back(value: Outer) -> None:
    assert decode(Outer, encode(value)) == value


PLAIN = encode(Outer(inner=(Inner("a"),), words={"a": "b"}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"number": "1"}, 'number: "1" is not of type int', id="text for a number"),
        pytest.param({"number": True}, "number: true is not of type int", id="a truth for one"),
        pytest.param({"number": 1.5}, "number: 1.5 is not of type int", id="a part of one"),
        pytest.param({"number": None}, "number: None is not of type int", id="nothing for one"),
        pytest.param({"number": 2**53}, "kept exactly", id="a number that readers round"),
        pytest.param({"share": float("inf")}, "kept exactly", id="a number without end"),
        pytest.param({"share": float("nan")}, "kept exactly", id="no number"),
        pytest.param({"flag": 1}, "flag: 1 is not of type bool", id="a number for a truth"),
        pytest.param({"maybe": "x"}, "maybe:", id="text for a number or nothing"),
        pytest.param({"level": "mid"}, 'level: "mid"', id="a level that is none"),
        pytest.param({"level": 1}, "level: 1", id="a level by its number"),
        pytest.param({"colour": "RED"}, 'colour: "RED"; did you mean red?', id="upper case"),
        pytest.param({"inner": {}}, "inner: a table is not a list", id="no list"),
        pytest.param({"inner": [1]}, "inner[0]: 1 is not an object", id="no object"),
        pytest.param({"inner": [{}]}, "inner[0].value: missing", id="a field missing below"),
        pytest.param({"inner": [{"value": {}}]}, "inner[0].value:", id="no kind of value"),
        pytest.param({"inner": [{"value": [[]]}]}, "inner[0].value[0]:", id="lists in lists"),
        pytest.param({"words": []}, "words: a list is not an object", id="no mapping"),
        pytest.param({"words": {"a": 1}}, "words.a: 1 is not of type str", id="no text in it"),
        pytest.param({"more": 1}, 'unknown field "more"', id="a field too many"),
    ],
)
def test_what_is_not_of_its_type_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(Fault) as fault:
        decode(Outer, {**PLAIN, **change})

    assert said in str(fault.value)


@pytest.mark.parametrize("name", sorted(PLAIN))
def test_no_field_has_a_default(name: str) -> None:
    with pytest.raises(Fault, match=f"{name}: missing"):
        decode(Outer, {key: value for key, value in PLAIN.items() if key != name})
