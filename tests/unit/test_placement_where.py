"""`--where`: an operator's short words mean what the fleet's own words mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.errors import UsageError
from wlctl.model.facts import AttrValue, Capability, Provenance
from wlctl.model.workload import Op, Predicate, Requirement
from wlctl.placement.where import known_of, parse, resolve

CLAIMED = Provenance.CLAIMED
KNOWN = known_of(
    [
        (
            Capability("runtime.python", {"version": "3.11.2"}),
            Capability("perf.cpu.single", {"value": 810.5}),
            Capability("cpu.cores", {"count": 8}),
        ),
        (
            Capability("node.cgroup", {"controllers": ("cpu", "memory"), "root": ()}),
            Capability("cpu.cores", {"count": 4, "online": "0-3"}),
        ),
    ]
)


def wants(id_: str, attr: str, op: Op, value: AttrValue) -> Requirement:
    return Requirement(id=id_, where=(Predicate(attr, op, value),), min_provenance=CLAIMED)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        pytest.param(
            "accel.cuda",
            Requirement(id="accel.cuda", min_provenance=CLAIMED),
            id="an id alone asks for it",
        ),
        pytest.param(
            "runtime.python.version>=3.11",
            wants("runtime.python", "version", Op.GTE, "3.11"),
            id="a version stays text where versions are compared",
        ),
        pytest.param(
            "cpu.cores.count>=4",
            wants("cpu.cores", "count", Op.GTE, 4),
            id="a number is one where numbers are",
        ),
        pytest.param(
            "perf.cpu.single<=900.5",
            wants("perf.cpu.single", "value", Op.LTE, 900.5),
            id="an id that the fleet has means its value",
        ),
        pytest.param(
            "perf.cpu.single.value<=900",
            wants("perf.cpu.single", "value", Op.LTE, 900),
            id="the value may be named",
        ),
        pytest.param(
            "accel.cuda.memory_bytes>=16GiB",
            wants("accel.cuda", "memory_bytes", Op.GTE, 16 << 30),
            id="bytes may have a unit",
        ),
        pytest.param(
            "accel.cuda.memory_bytes in 1024,1KiB,many",
            wants("accel.cuda", "memory_bytes", Op.IN, (1024, 1024, "many")),
            id="or none, or be no size",
        ),
        pytest.param(
            "node.cgroup.root=x",
            wants("node.cgroup", "root", Op.EQ, "x"),
            id="an example that is an empty list tells nothing",
        ),
        pytest.param(
            "cpu.cores.pinned=true",
            wants("cpu.cores", "pinned", Op.EQ, True),
            id="true and false are booleans",
        ),
        pytest.param(
            "label.env=prod",
            wants("node.label.env", "value", Op.EQ, "prod"),
            id="label is short for node.label",
        ),
        pytest.param(
            "node.label.rack=7",
            wants("node.label.rack", "value", Op.EQ, "7"),
            id="a label is text, though it looks like a number",
        ),
        pytest.param(
            "label.zone in a,b , c",
            wants("node.label.zone", "value", Op.IN, ("a", "b", "c")),
            id="one of a list",
        ),
        pytest.param(
            "node.cgroup.controllers has memory",
            wants("node.cgroup", "controllers", Op.HAS, "memory"),
            id="an attribute that is a list",
        ),
        pytest.param(
            "gpu.count>=2",
            wants("gpu", "count", Op.GTE, 2),
            id="what nobody has: the last segment is the attribute, a number is one",
        ),
        pytest.param(
            "gpu=yes", wants("gpu", "value", Op.EQ, "yes"), id="one segment is always an id"
        ),
        pytest.param(
            "a.b = c=d", wants("a", "b", Op.EQ, "c=d"), id="the first sign splits; spaces may stand"
        ),
    ],
)
def test_a_condition_means(text: str, meant: Requirement) -> None:
    assert resolve(parse(text), KNOWN) == meant


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("=x", id="no subject"),
        pytest.param("a.b=", id="no value"),
        pytest.param("label.env==prod", id="equal as programmers write it"),
        pytest.param("a.b>==1", id="nor so"),
        pytest.param("a..b=1", id="an empty segment"),
        pytest.param("a b=1", id="two words"),
        pytest.param("a.b>1", id="an unknown sign"),
        pytest.param("a\x1b[2J=1", id="a control character"),
    ],
)
def test_what_is_no_condition_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError) as failure:
        parse(text)

    assert failure.value.hint


@given(st.text())
def test_any_text_is_a_condition_or_a_usage_error(text: str) -> None:
    try:
        where = parse(text)
    except UsageError:
        return
    requirement = resolve(where, KNOWN)
    assert requirement.id is not None
    assert len(requirement.where) == (0 if where.op is None else 1)
