"""Requirements: the stage at which each fails, prefixes, provenance, state, variants, claims."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.fleets import (
    GIB,
    a_capability,
    a_hold,
    a_node,
    a_workload,
    constraints,
    emulated,
    native,
    needs,
    place,
    reasons,
    where,
)
from wlctl.model.facts import Capability, CapabilityState, Provenance
from wlctl.model.fleet import Claim
from wlctl.model.workload import Requirement, Variant, WorkloadSpec

PYTHON = a_capability("runtime.python", version="3.9", flavour="cpython")
CLAIMED, PROBED, MEASURED = Provenance.CLAIMED, Provenance.PROBED, Provenance.MEASURED


def device(**given: Any) -> Capability:
    return Capability("device.serial", given.pop("attrs", {}), **given)


def state(word: str, *, exclusive: bool = False) -> Capability:
    return device(state=CapabilityState(word), exclusive=exclusive)


@pytest.mark.parametrize(
    ("requirement", "capabilities", "expected"),
    [
        pytest.param(needs("os.linux"), [a_capability("os.linux")], [], id="there"),
        pytest.param(
            needs("os.linux"), [a_capability("os.linuxes")], ["os.linux: not advertised"], id="not"
        ),
        pytest.param(needs("sensor.camera.*"), [a_capability("sensor.camera")], [], id="itself"),
        pytest.param(needs("sensor.camera.*"), [a_capability("sensor.camera.front")], [], id="sub"),
        pytest.param(
            needs("sensor.cam.*"),
            [a_capability("sensor.camera"), a_capability("sensor.camera.cam")],
            ["sensor.cam.*: not advertised"],
            id="a prefix matches whole segments only",
        ),
        pytest.param(
            needs("sensor.camera"),
            [a_capability("sensor.camera.front")],
            ["sensor.camera: not advertised"],
            id="an exact id is no prefix",
        ),
        pytest.param(
            needs("runtime.python", where("version", "gte", "3.9")), [PYTHON], [], id="fits"
        ),
        pytest.param(
            needs("runtime.python", where("version", "gte", "3.11")),
            [PYTHON],
            ["runtime.python: version is 3.9, needs version >= 3.11"],
            id="a condition fails",
        ),
        pytest.param(
            needs("runtime.python", where("jit", "eq", True)),
            [PYTHON],
            ["runtime.python: no attribute jit, needs jit = true"],
            id="an absent attribute fails",
        ),
        pytest.param(
            needs("runtime.python", where("version", "gte", "3.11"), where("jit", "eq", True)),
            [
                a_capability("runtime.python", version="3.12", jit=False),
                a_capability("runtime.python", version="3.9", jit=True),
            ],
            ["runtime.python: jit is false, needs jit = true"],
            id="all conditions must hold on the same capability",
        ),
        pytest.param(
            needs("r", where("a", "eq", 1), where("b", "eq", 1), where("c", "eq", 1)),
            [a_capability("r", a=1), a_capability("r", a=1, b=1)],
            ["r: no attribute c, needs c = 1"],
            id="what comes nearest is named",
        ),
        pytest.param(
            needs("r", min_provenance=PROBED),
            [Capability("r", {}, PROBED)],
            [],
            id="exactly the provenance",
        ),
        pytest.param(
            needs("r", min_provenance=PROBED), [Capability("r", {}, MEASURED)], [], id="more of it"
        ),
        pytest.param(
            needs("r", min_provenance=MEASURED),
            [Capability("r", {}, CLAIMED), Capability("r", {}, PROBED)],
            ["r: provenance probed, needs measured"],
            id="the best provenance is told",
        ),
        pytest.param(
            needs("r", where("a", "eq", 1), min_provenance=PROBED),
            [Capability("r", {"a": 2}, PROBED), Capability("r", {"a": 1}, CLAIMED)],
            ["r: a is 2, needs a = 1"],
            id="provenance is asked before conditions",
        ),
        pytest.param(needs("device.serial"), [state("available")], [], id="available"),
        pytest.param(needs("device.serial"), [state("busy")], [], id="busy, and both share"),
        pytest.param(
            needs("device.serial", exclusive=True),
            [state("busy")],
            ["device.serial: not available: busy"],
            id="busy, and we want it alone",
        ),
        pytest.param(
            needs("device.serial"),
            [state("busy", exclusive=True)],
            ["device.serial: not available: busy"],
            id="busy, and it is for one at a time",
        ),
        pytest.param(
            needs("device.serial"),
            [state("reserved"), state("degraded"), state("reserved")],
            ["device.serial: not available: degraded, reserved"],
            id="reserved and degraded never",
        ),
        pytest.param(
            needs("device.serial", exclusive=True),
            [state("available", exclusive=True)],
            [],
            id="available alone",
        ),
        pytest.param(
            needs("device.serial", where("n", "eq", 1)),
            [device(attrs={"n": 2}), device(attrs={"n": 1}, state=CapabilityState.RESERVED)],
            ["device.serial: not available: reserved"],
            id="conditions are asked before state",
        ),
        pytest.param(needs("device.serial", count=2), [device(), device()], [], id="enough"),
        pytest.param(
            needs("device.serial", count=3),
            [device(), device(), state("reserved")],
            ["device.serial: have 2, need 3"],
            id="one too few",
        ),
        pytest.param(
            needs("device.*", count=2),
            [device(), a_capability("device.gps")],
            [],
            id="a prefix counts different ids",
        ),
    ],
)
def test_a_requirement(
    requirement: Requirement, capabilities: list[Capability], expected: list[str]
) -> None:
    decision = place(a_workload(requirement), a_node("a", *capabilities))

    assert [text.split(": ", 1)[1] for text in reasons(decision)] == expected


def test_every_failing_requirement_is_reported_by_its_label() -> None:
    spec = a_workload(needs("z"), needs("a.*"), needs("m", count=2))

    assert reasons(place(spec, a_node("a", a_capability("m")))) == [
        "requirements: a.*: not advertised",
        "requirements: m: have 1, need 2",
        "requirements: z: not advertised",
    ]


@pytest.mark.parametrize(
    ("least", "own", "expected"),
    [
        pytest.param(PROBED, None, ["provenance"], id="the workload's minimum holds"),
        pytest.param(PROBED, CLAIMED, [], id="a requirement's own minimum wins, lower"),
        pytest.param(CLAIMED, PROBED, ["provenance"], id="or higher"),
        pytest.param(CLAIMED, None, [], id="without any, claimed suffices"),
    ],
)
def test_the_minimum_provenance(
    least: Provenance, own: Provenance | None, expected: list[str]
) -> None:
    spec = a_workload(needs("r", min_provenance=own), min_provenance=least)

    assert constraints(place(spec, a_node("a", Capability("r", {}, CLAIMED)))) == expected


def test_the_operators_where_is_a_requirement_like_any_other() -> None:
    asked = (needs("node.label.env", where("value", "eq", "prod"), min_provenance=CLAIMED),)
    labelled = [
        a_node(name, Capability("node.label.env", {"value": value}, CLAIMED))
        for name, value in (("a", "prod"), ("b", "test"))
    ]

    decision = place(a_workload(min_provenance=PROBED), *labelled, a_node("c"), where=asked)

    assert reasons(decision, "a") == []
    assert reasons(decision, "b") == [
        "requirements: node.label.env: value is test, needs value = prod"
    ]
    assert reasons(decision, "c") == ["requirements: node.label.env: not advertised"]


X86, ARM = a_capability("cpu.arch.x86_64"), a_capability("cpu.arch.arm64")
ON_X86, ON_ARM = needs("cpu.arch.x86_64"), needs("cpu.arch.arm64")


@pytest.mark.parametrize(
    ("variants", "allowed", "expected"),
    [
        pytest.param([native("n1"), native("n2")], False, "n1 native", id="the first native"),
        pytest.param(
            [native("n1", ON_ARM), native("n2")], False, "n2 native", id="the next that matches"
        ),
        pytest.param(
            [emulated("e"), native("n")], True, "n native", id="native before emulated, as declared"
        ),
        pytest.param(
            [emulated("e1"), emulated("e2")], True, "e1 emulated", id="the first emulated"
        ),
        pytest.param(
            [native("n", ON_ARM), emulated("e1", ON_ARM), emulated("e2")],
            True,
            "e2 emulated",
            id="emulated where no native matches",
        ),
        pytest.param(
            [native("n", ON_ARM), emulated("e1"), emulated("e2")],
            False,
            "emulation_not_allowed: only emulated variants match: e1, e2",
            id="emulation is not allowed",
        ),
        pytest.param(
            [emulated("e", ON_ARM)],
            False,
            "requirements: variant e: cpu.arch.arm64: not advertised",
            id="an emulated one that fails says why",
        ),
        pytest.param(
            [native("n", ON_ARM), native("m", needs("x"), needs("y"))],
            True,
            "requirements: variant n: cpu.arch.arm64: not advertised"
            "; requirements: variant m: x: not advertised"
            "; requirements: variant m: y: not advertised",
            id="every failure of every variant",
        ),
    ],
)
def test_variants(variants: list[Variant], *, allowed: bool, expected: str) -> None:
    spec = a_workload(variants=tuple(variants))

    decision = place(spec, a_node("a", X86), allow_emulated=allowed)

    found = [f"{one.variant} {one.tier}" for one in decision.ranked] or reasons(decision)
    assert "; ".join(found) == expected


def test_when_the_common_needs_fail_only_they_are_reported() -> None:
    spec = a_workload(needs("os.linux"), variants=(native("n", ON_ARM),))

    assert reasons(place(spec, a_node("a", X86))) == ["requirements: os.linux: not advertised"]


GPUS = [
    a_capability("accel.cuda", memory_bytes=gib * GIB, index=n) for n, gib in enumerate((8, 24))
]
SHORT = "contended: 3 wanted exclusively, 2 there"
ONE_GPU = needs("accel.cuda", exclusive=True)
BIG_GPU = needs("accel.cuda", where("memory_bytes", "gte", 16 * GIB), exclusive=True)


@pytest.mark.parametrize(
    ("common", "own", "expected"),
    [
        pytest.param([ONE_GPU, ONE_GPU], [], [], id="two for two"),
        pytest.param([ONE_GPU], [BIG_GPU], [], id="the less picky one leaves the other its only"),
        pytest.param([BIG_GPU], [ONE_GPU], [], id="whichever is asked first"),
        pytest.param(
            [BIG_GPU, BIG_GPU],
            [],
            ["requirements: accel.cuda, accel.cuda: contended: 2 wanted exclusively, 1 there"],
            id="two for one",
        ),
        pytest.param(
            [ONE_GPU, ONE_GPU],
            [BIG_GPU],
            [f"requirements: variant v: accel.cuda, accel.cuda, accel.cuda: {SHORT}"],
            id="a variant is matched jointly with the common needs",
        ),
        pytest.param(
            [needs("accel.cuda", count=2, exclusive=True)],
            [needs("accel.*", exclusive=True)],
            [f"requirements: variant v: accel.cuda, accel.*: {SHORT}"],
            id="numbers count",
        ),
        pytest.param(
            [ONE_GPU, ONE_GPU], [needs("accel.cuda")], [], id="a need that shares claims nothing"
        ),
    ],
)
def test_exclusive_needs(
    common: list[Requirement], own: list[Requirement], expected: list[str]
) -> None:
    spec = a_workload(*common, variants=(native("v", *own),))

    assert reasons(place(spec, a_node("a", *GPUS))) == expected


def test_a_variant_that_does_not_contend_is_taken_instead() -> None:
    spec = a_workload(ONE_GPU, ONE_GPU, variants=(native("more", ONE_GPU), native("less")))

    assert place(spec, a_node("a", *GPUS)).placements[0].variant == "less"


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        pytest.param(needs("accel.cuda"), ["accel.cuda#index=0"], id="the smallest that does"),
        pytest.param(
            needs("accel.cuda", where("memory_bytes", "gte", 9 * GIB)),
            ["accel.cuda#index=1"],
            id="the only one that does",
        ),
        pytest.param(
            needs("accel.cuda", count=2), ["accel.cuda#index=0", "accel.cuda#index=1"], id="both"
        ),
        pytest.param(needs("cpu.arch.x86_64"), ["cpu.arch.x86_64"], id="one without a name"),
    ],
)
def test_what_is_assigned(requirement: Requirement, expected: list[str]) -> None:
    [placement] = place(a_workload(requirement), a_node("a", *GPUS[::-1], X86)).placements

    assert [claim.key for claim in placement.assigned] == expected


def test_capabilities_that_are_alike_are_assigned_each_once() -> None:
    spec = a_workload(needs("device.serial", count=2, exclusive=True))
    alike = device()

    [placement] = place(spec, a_node("a", alike, alike, alike)).placements

    assert placement.assigned == (Claim("device.serial", exclusive=True),) * 2


ALONE, SHARED = (
    Claim("accel.cuda#index=0", exclusive=True),
    Claim("accel.cuda#index=0", exclusive=False),
)


@pytest.mark.parametrize(
    ("claims", "requirement", "expected"),
    [
        pytest.param([ALONE], needs("accel.cuda"), ["accel.cuda#index=1"], id="held alone"),
        pytest.param([SHARED], needs("accel.cuda"), ["accel.cuda#index=0"], id="shared by both"),
        pytest.param([SHARED], ONE_GPU, ["accel.cuda#index=1"], id="shared, and we want it alone"),
        pytest.param(
            [ALONE, Claim("accel.cuda#index=1", exclusive=True)],
            needs("accel.cuda"),
            ["accel.cuda: not available: held"],
            id="all held",
        ),
        pytest.param(
            [ALONE],
            needs("accel.cuda", count=2),
            ["accel.cuda: have 1, need 2"],
            id="too few are left",
        ),
    ],
)
def test_what_our_instances_hold_is_taken(
    claims: list[Claim], requirement: Requirement, expected: list[str]
) -> None:
    holds = [a_hold("a", f"h{n}", claims=(claim,)) for n, claim in enumerate(claims)]

    decision = place(a_workload(requirement), a_node("a", *GPUS), holds=holds)

    found = [claim.key for one in decision.ranked for claim in one.assigned]
    assert found + [text.split(": ", 1)[1] for text in reasons(decision)] == expected


@pytest.mark.parametrize(
    ("states", "claimed", "free"),
    [
        pytest.param(["available"] * 3, 2, 1, id="two of three alike"),
        pytest.param(["available"] * 2, 2, 0, id="two of two"),
        pytest.param(["reserved", "available"], 1, 1, id="the one that the node sees taken"),
        pytest.param(["available", "reserved"], 1, 1, id="wherever it stands"),
        pytest.param(["reserved", "available"], 2, 0, id="that one and another"),
    ],
)
def test_claims_on_capabilities_that_are_alike_are_counted(
    states: list[str], claimed: int, free: int
) -> None:
    node = a_node("a", *map(state, states))
    holds = [
        a_hold("a", f"h{n}", claims=(Claim("device.serial", exclusive=True),))
        for n in range(claimed)
    ]

    for wanted in range(1, 4):
        spec = a_workload(needs("device.serial", count=wanted))
        assert bool(place(spec, node, holds=holds).placements) is (wanted <= free)


def test_copies_placed_in_one_call_take_different_devices() -> None:
    spec = a_workload(ONE_GPU)

    decision = place(spec, a_node("a", *GPUS), count=2)

    assert [one.assigned[0].key for one in decision.placements] == [
        "accel.cuda#index=0",
        "accel.cuda#index=1",
    ]
    assert place(spec, a_node("a", *GPUS), count=3).placements == ()


def test_a_capability_for_one_at_a_time_is_claimed_alone_by_whoever_shares() -> None:
    lone = device(exclusive=True)

    decision = place(a_workload(needs("device.serial")), a_node("a", lone), count=2)

    assert decision.fits == 1


LIKE = Capability("device.serial", {"n": 1})


@pytest.mark.parametrize(
    ("other", "requirement"),
    [
        pytest.param(
            replace(LIKE, provenance=CLAIMED),
            needs("device.serial", min_provenance=PROBED),
            id="how well it is known",
        ),
        pytest.param(
            replace(LIKE, state=CapabilityState.DEGRADED), needs("device.serial"), id="its state"
        ),
        pytest.param(
            replace(LIKE, attrs={"n": 2}),
            needs("device.serial", where("n", "eq", 1)),
            id="what a need looks at",
        ),
        pytest.param(replace(LIKE, id="device.serials"), needs("device.serial"), id="its name"),
    ],
)
def test_nodes_that_differ_in_one_thing_are_told_apart(
    other: Capability, requirement: Requirement
) -> None:
    for nodes in (
        [a_node("a", LIKE), a_node("b", other)],
        [a_node("b", LIKE), a_node("a", other)],
    ):
        [candidate] = place(a_workload(requirement), *nodes).ranked
        assert candidate.node == nodes[0].name


def test_nodes_whose_devices_are_for_one_at_a_time_are_told_apart() -> None:
    holds = [a_hold(node, f"h-{node}", claims=(Claim("device.serial", False),)) for node in "ab"]
    nodes = [a_node("a", replace(LIKE, exclusive=True)), a_node("b", LIKE)]

    decision = place(a_workload(needs("device.serial")), *nodes, holds=holds)

    assert [one.node for one in decision.ranked] == ["b"]
    lone = place(a_workload(needs("device.serial")), *nodes)
    assert [one.assigned[0].exclusive for one in lone.ranked] == [True, False]


def test_nodes_that_no_need_can_tell_apart_are_given_their_own_devices() -> None:
    nodes = [a_node(name, a_capability("device.serial", serial=f"s-{name}")) for name in "ab"]

    decision = place(a_workload(needs("device.serial")), *nodes)

    assert [one.assigned[0].key for one in decision.ranked] == [
        "device.serial#serial=s-a",
        "device.serial#serial=s-b",
    ]


def test_of_several_devices_each_node_gives_the_first_of_its_own() -> None:
    nodes = [
        a_node(name, *(a_capability("device.serial", serial=f"{name}{n}") for n in order))
        for name, order in (("a", (1, 2)), ("b", (2, 1)))
    ]

    decision = place(a_workload(needs("device.serial")), *nodes)

    assert [one.assigned[0].key for one in decision.ranked] == [
        "device.serial#serial=a1",
        "device.serial#serial=b1",
    ]


def test_a_claim_is_on_the_device_of_its_own_node() -> None:
    nodes = [a_node(name, a_capability("device.serial", serial=f"s-{name}")) for name in "ab"]
    holds = [
        a_hold(node, f"h-{node}", claims=(Claim("device.serial#serial=s-b", True),))
        for node in "ab"
    ]

    decision = place(a_workload(needs("device.serial")), *nodes, holds=holds)

    assert [one.node for one in decision.ranked] == ["a"]
    assert decision.relaxations.single[0].terms == ("requirement device.serial",)


def nodes_alike() -> WorkloadSpec:
    return a_workload(needs("r", where("n", "eq", 1)))


@pytest.mark.parametrize(
    ("values", "eligible"),
    [
        pytest.param((1, True), {"a"}, id="1 and true"),
        pytest.param((True, 1), {"b"}, id="true and 1"),
        pytest.param((1, 1.0), {"a", "b"}, id="1 and 1.0, which are equal"),
        pytest.param(((1,), (True,)), set(), id="lists of them"),
    ],
)
def test_nodes_that_look_alike_to_python_are_not_judged_as_one(
    values: tuple[Any, Any], eligible: set[str]
) -> None:
    nodes = [
        a_node(name, a_capability("r", n=value)) for name, value in zip("ab", values, strict=True)
    ]

    assert {one.node for one in place(nodes_alike(), *nodes).ranked} == eligible


@pytest.mark.parametrize(
    ("values", "details"),
    [
        pytest.param((2, True), ("n is 2", "n is true"), id="2 and true"),
        pytest.param((True, 1.5), ("n is true", "n is 1.5"), id="true and 1.5"),
        pytest.param(((1,), (True,)), ("n is [1]", "n is [true]"), id="lists"),
        pytest.param((0, False), ("n is 0", "n is false"), id="0 and false"),
    ],
)
def test_and_each_is_told_its_own_value(values: tuple[Any, Any], details: tuple[str, str]) -> None:
    nodes = [
        a_node(name, a_capability("r", n=value)) for name, value in zip("ab", values, strict=True)
    ]
    decision = place(nodes_alike(), *nodes)

    for name, text in zip("ab", details, strict=True):
        assert text in reasons(decision, name)[0]


def test_a_shared_claim_bars_what_has_since_become_exclusive() -> None:
    hold = a_hold(claims=(Claim("device.serial", exclusive=False),))

    assert constraints(
        place(a_workload(needs("device.serial")), a_node("a", device(exclusive=True)), holds=[hold])
    ) == ["requirements"]
