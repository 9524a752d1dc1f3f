"""What cannot be decided is refused, with its path; what is exactly at a limit is decided."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.fleets import a_node, a_workload, emulated, native, needs, place, where
from wlctl.errors import InvalidRequest
from wlctl.model.placement import Weights
from wlctl.model.workload import (
    Op,
    PerfTarget,
    Predicate,
    Preference,
    Requirement,
    Variant,
    WorkloadSpec,
)

NAN, INF = float("nan"), float("inf")
LIKED = needs("x")


def many(number: int) -> tuple[Requirement, ...]:
    return tuple(needs(f"r{n}") for n in range(number))


def variants(number: int) -> tuple[Variant, ...]:
    return tuple(native(f"v{n}") for n in range(number))


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(a_workload(*many(64)), id="64 requirements"),
        pytest.param(a_workload(variants=variants(16)), id="16 variants"),
        pytest.param(a_workload(variants=(native("v", *many(64)),)), id="64 of a variant"),
        pytest.param(
            a_workload(needs("x", *[where(f"a{n}", "eq", n) for n in range(32)])),
            id="32 predicates",
        ),
        pytest.param(a_workload(needs("x" * 256)), id="an id of 256 characters"),
        pytest.param(a_workload(needs("x", count=64)), id="64 of one"),
        pytest.param(a_workload(memory_bytes=2**53 - 1), id="2^53 - 1 bytes"),
        pytest.param(a_workload(cpu_cores=65536), id="65536 cores"),
        pytest.param(a_workload(ports=(("a", 65535), ("b", 0), ("c", 0))), id="port 65535"),
        pytest.param(a_workload(perf=PerfTarget("x", 0.0)), id="a target of 0"),
        pytest.param(a_workload(preferences=(Preference(LIKED, 1e12),)), id="a weight of 1e12"),
    ],
)
def test_what_is_exactly_at_a_limit_is_decided(spec: WorkloadSpec) -> None:
    assert place(spec, a_node()).now_ms


def one(requirement: Requirement) -> WorkloadSpec:
    return a_workload(requirement)


BYTES = "a whole number from 0 to 9007199254740991"
ID = "1 to 256 printable characters"
VALUE = "text, a finite number, true, false, or a list of these"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (a_workload(*many(65)), "workload.common: expected at most 64 requirements, found 65"),
        (a_workload(variants=()), "workload.variants: expected 1 to 16 variants"),
        (a_workload(variants=variants(17)), "workload.variants: expected 1 to 16 variants"),
        (
            a_workload(variants=(native("v"), emulated("v"))),
            "workload.variants: expected distinct names",
        ),
        (a_workload(variants=(native(""),)), f"workload.variants[0].name: expected {ID}"),
        (
            a_workload(variants=(native("v"), native("w", *many(65)))),
            "workload.variants[1]: expected at most 64 requirements, found 65",
        ),
        (a_workload(name=""), f"workload.name: expected {ID}"),
        (a_workload(name="a\nb"), f"workload.name: expected {ID}"),
        (one(needs("x" * 257)), f"workload.common[0]: expected an id of {ID}"),
        (one(needs("")), f"workload.common[0]: expected an id of {ID}"),
        (one(needs("a\x00")), f"workload.common[0]: expected an id of {ID}"),
        (one(needs("\ud800")), f"workload.common[0]: expected an id of {ID}"),
        (one(Requirement()), "workload.common[0]: expected exactly one of id and id_prefix"),
        (
            one(Requirement(id="a", id_prefix="a")),
            "workload.common[0]: expected exactly one of id and id_prefix",
        ),
        (
            one(needs("x", count=0)),
            "workload.common[0].count: expected a whole number from 1 to 64",
        ),
        (
            one(needs("x", count=65)),
            "workload.common[0].count: expected a whole number from 1 to 64",
        ),
        (
            one(needs("x", *[where(f"a{n}", "eq", n) for n in range(33)])),
            "workload.common[0].where: expected at most 32 predicates",
        ),
        (
            one(needs("x", where("a\t", "eq", 1))),
            f"workload.common[0].where[0].attr: expected {ID}",
        ),
        (
            one(needs("x", where("n", "gte", "new"))),
            "workload.common[0].where[0].value: expected a number or a dotted version for gte",
        ),
        (
            one(needs("x", where("n", "lte", True))),
            "workload.common[0].where[0].value: expected a number or a dotted version for lte",
        ),
        (
            one(needs("x", where("n", "in", "abc"))),
            "workload.common[0].where[0].value: expected a list for in",
        ),
        (
            one(needs("x", where("n", "has", ("a",)))),
            "workload.common[0].where[0].value: expected a single value for has",
        ),
        (
            one(needs("x", where("n", "gte", NAN))),
            f"workload.common[0].where[0].value: expected {VALUE}",
        ),
        (
            one(needs("x", where("n", "eq", -INF))),
            f"workload.common[0].where[0].value: expected {VALUE}",
        ),
        (
            one(needs("x", where("n", "in", (1, NAN)))),
            f"workload.common[0].where[0].value: expected {VALUE}",
        ),
        (
            one(needs("x", Predicate("n", Op.EQ, None))),  # type: ignore[arg-type]  # on purpose
            f"workload.common[0].where[0].value: expected {VALUE}",
        ),
        (a_workload(memory_bytes=-1), f"workload.resources.memory_bytes: expected {BYTES}"),
        (a_workload(disk_bytes=2**53), f"workload.resources.disk_bytes: expected {BYTES}"),
        (
            a_workload(accel_memory_bytes=10**400),
            f"workload.resources.accel_memory_bytes: expected {BYTES}",
        ),
        (
            a_workload(cpu_cores=NAN),
            "workload.resources.cpu_cores: expected a number from 0 to 65536",
        ),
        (
            a_workload(cpu_cores=-0.1),
            "workload.resources.cpu_cores: expected a number from 0 to 65536",
        ),
        (
            a_workload(cpu_cores=INF),
            "workload.resources.cpu_cores: expected a number from 0 to 65536",
        ),
        (
            a_workload(labels=tuple(map(str, range(257)))),
            "workload.policy.labels: expected at most 256 labels",
        ),
        (
            a_workload(excludes=tuple(map(str, range(257)))),
            "workload.policy.excludes: expected at most 256 labels",
        ),
        (a_workload(perf=PerfTarget("", 1.0)), f"workload.policy.perf.id: expected {ID}"),
        *(
            (
                a_workload(perf=PerfTarget("p", figure)),
                "workload.policy.perf.minimum: expected a finite number of at least 0",
            )
            for figure in (NAN, INF, -1.0)
        ),
        *(
            (
                a_workload(preferences=(Preference(LIKED, 1.0), Preference(LIKED, weight))),
                "workload.policy.preferences[1].weight: expected a number from 0 to 1000000000000",
            )
            for weight in (NAN, INF, -0.5, 1e13, True)
        ),
        (
            a_workload(preferences=(Preference(needs("x", count=0), 1.0),)),
            "workload.policy.preferences[0].count: expected a whole number from 1 to 64",
        ),
        (a_workload(ports=(("a", 65536),)), "workload.ports[0]: expected a port from 0 to 65535"),
        (a_workload(ports=(("a", -1),)), "workload.ports[0]: expected a port from 0 to 65535"),
        (
            a_workload(ports=tuple((f"p{n}", n) for n in range(65))),
            "workload.ports: expected at most 64 ports",
        ),
        (
            a_workload(ports=(("a", 80), ("b", 80))),
            "workload.ports: expected distinct ports",
        ),
    ],
)
def test_what_is_past_a_limit_is_refused(spec: WorkloadSpec, message: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        place(spec, a_node())

    assert refusal.value.message == message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "count: expected a whole number from 1 to 1000"),
        ({"count": 1001}, "count: expected a whole number from 1 to 1000"),
        ({"where": many(65)}, "where: expected at most 64 requirements, found 65"),
        ({"where": (needs("x", count=0),)}, "where[0].count: expected a whole number from 1 to 64"),
    ],
)
def test_options_have_limits_too(options: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        place(a_workload(), a_node(), **options)

    assert refusal.value.message == message


@pytest.mark.parametrize(
    "name", [name for name in Weights.__dataclass_fields__ if name != "dev_class"]
)
@pytest.mark.parametrize("weight", [NAN, INF, -INF, -0.001, 1.1e12, True, "1"])
def test_a_weight_is_a_number_from_zero(name: str, weight: Any) -> None:
    changed: Any = {name: weight}

    with pytest.raises(InvalidRequest, match=rf"weights\.{name}: expected a number from 0"):
        place(a_workload(), a_node(), weights=replace(Weights(), **changed))


@pytest.mark.parametrize("dev_class", ["", "x" * 257, "a\nb"])
def test_the_class_of_last_resort_is_an_id(dev_class: str) -> None:
    with pytest.raises(InvalidRequest, match=r"weights\.dev_class: expected 1 to 256"):
        place(a_workload(), a_node(), weights=Weights(dev_class=dev_class))


def test_the_largest_weights_still_add_up_to_a_finite_score() -> None:
    largest: Any = {name: 1e12 for name in Weights.__dataclass_fields__ if name != "dev_class"}
    liked = tuple(Preference(needs(f"x{n}.*"), 1e12) for n in range(64))

    decision = place(a_workload(preferences=liked), a_node(), weights=Weights(**largest))

    assert decision.ranked[0].total < 1e16
