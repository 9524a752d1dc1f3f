"""Every hard rule, both sides of every edge, and all of them at once."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.fleets import (
    GIB,
    MINUTE,
    NOW,
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
)
from wlctl.model.facts import Capability, CapabilityState, Provenance
from wlctl.model.fleet import ClusterState, NodeView, Reading, Ruling, Verdict
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.node import Liveness, Tier
from wlctl.model.placement import Constraint
from wlctl.model.workload import Kind, PerfTarget

MEMORY = "needs {} memory, {} of {} free ({} short)"
CPU = (a_capability("cpu.arch.x86_64"),)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        pytest.param(a_node(), [], id="a node that has everything"),
        pytest.param(a_node(liveness=Liveness.SUSPECT), ["liveness: suspect"], id="suspect"),
        pytest.param(a_node(liveness=Liveness.DEAD), ["liveness: dead"], id="dead"),
        pytest.param(a_node(liveness=Liveness.UNKNOWN), ["liveness: unknown"], id="unknown"),
        pytest.param(a_node(cordoned=True), ["liveness: cordoned"], id="cordoned"),
        pytest.param(
            a_node(cordoned=True, liveness=Liveness.DEAD),
            ["liveness: dead", "liveness: cordoned"],
            id="cordoned and dead are two details",
        ),
        pytest.param(
            a_node(facts_expire_at_ms=NOW),
            ["facts_expired: facts expired 0 ms ago"],
            id="facts that expire now have expired",
        ),
        pytest.param(a_node(facts_expire_at_ms=NOW + 1), [], id="facts with a millisecond left"),
        pytest.param(
            a_node(facts_expire_at_ms=NOW - 3 * MINUTE),
            ["facts_expired: facts expired 3 m ago"],
            id="facts long expired",
        ),
        pytest.param(
            a_node(facts_expire_at_ms=None), ["facts_expired: no facts yet"], id="never probed"
        ),
        pytest.param(a_node(gate=None), ["gate: denied: no verdict"], id="no verdict is a denial"),
        pytest.param(
            a_node(gate=Verdict(Ruling.DENIED, "freeze", "until Monday")),
            ["gate: denied by freeze: until Monday"],
            id="denied",
        ),
        pytest.param(
            a_node(gate=Verdict(Ruling.DEFERRED, "ceiling")),
            ["gate: deferred by ceiling"],
            id="deferred counts as denied",
        ),
    ],
)
def test_a_nodes_standing(node: NodeView, expected: list[str]) -> None:
    assert reasons(place(a_workload(), node)) == expected


@pytest.mark.parametrize(
    ("has", "least", "expected"),
    [
        pytest.param(Tier.DISCOVERED, Tier.DISCOVERED, [], id="the lowest suffices for the lowest"),
        pytest.param(Tier.PAIRED, Tier.PAIRED, [], id="exactly the tier"),
        pytest.param(Tier.TRUSTED, Tier.PAIRED, [], id="a higher tier includes the lower"),
        pytest.param(
            Tier.DISCOVERED,
            Tier.PAIRED,
            ["trust: tier discovered, needs paired"],
            id="one tier below",
        ),
        pytest.param(
            Tier.DISCOVERED,
            Tier.TRUSTED,
            ["trust: tier discovered, needs trusted"],
            id="two tiers below",
        ),
    ],
)
def test_trust(has: Tier, least: Tier, expected: list[str]) -> None:
    assert reasons(place(a_workload(min_trust=least), a_node(tier=has))) == expected


def test_the_default_tier_is_paired() -> None:
    assert constraints(place(a_workload(), a_node(tier=Tier.DISCOVERED))) == ["trust"]


def test_a_retired_node_takes_nothing() -> None:
    retired = ClusterState(retired=frozenset({NodeName("a")}))

    decision = place(a_workload(), a_node("a"), a_node("b"), cluster=retired)

    assert reasons(decision, "a") == ["node_retired: retired"]
    assert reasons(decision, "b") == []


def test_what_is_revoked_is_named_and_nothing_else() -> None:
    cluster = ClusterState(revoked=frozenset({"key:bad", "package:old", "unrelated"}))
    spec = a_workload(revocable_refs=("package:old", "artifact:fine", "key:bad"))

    assert reasons(place(spec, a_node(), cluster=cluster)) == [
        "workload_revoked: revoked: key:bad, package:old"
    ]


def test_nothing_revoked_of_the_workload_is_no_reason() -> None:
    cluster = ClusterState(revoked=frozenset({"unrelated"}))

    assert reasons(place(a_workload(revocable_refs=("x",)), a_node(), cluster=cluster)) == []


@pytest.mark.parametrize(
    ("ours", "neighbour", "expected"),
    [
        pytest.param({"excludes": ("db",)}, {"labels": ("cache",)}, [], id="another label"),
        pytest.param({"excludes": ("db",)}, {"excludes": ("db",)}, [], id="both exclude the same"),
        pytest.param({"labels": ("db",)}, {"labels": ("db",)}, [], id="both carry the same"),
        pytest.param(
            {"excludes": ("db",)},
            {"labels": ("db",)},
            ["co_residency: other carries label db"],
            id="a neighbour carries what we exclude",
        ),
        pytest.param(
            {"labels": ("web",)},
            {"excludes": ("web",)},
            ["co_residency: other excludes label web"],
            id="a neighbour excludes what we carry",
        ),
        pytest.param(
            {"labels": ("web",), "excludes": ("db", "cache")},
            {"labels": ("db", "cache"), "excludes": ("web",)},
            [
                "co_residency: other carries label cache",
                "co_residency: other carries label db",
                "co_residency: other excludes label web",
            ],
            id="every label, both ways",
        ),
    ],
)
def test_co_residency(ours: Any, neighbour: Any, expected: list[str]) -> None:
    decision = place(a_workload(**ours), a_node("a"), a_node("b"), holds=[a_hold("a", **neighbour)])

    assert reasons(decision, "a") == expected
    assert reasons(decision, "b") == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        pytest.param(["z", "y"], "y and 1 more carry label db", id="two neighbours"),
        pytest.param(["z", "y", "x"], "x and 2 more carry label db", id="three neighbours"),
    ],
)
def test_many_neighbours_are_one_reason(names: list[str], expected: str) -> None:
    holds = [a_hold("a", name, labels=("db",)) for name in names]

    assert reasons(place(a_workload(excludes=("db",)), a_node(), holds=holds)) == [
        f"co_residency: {expected}"
    ]


def test_a_workload_may_exclude_its_own_label_and_then_has_a_node_to_itself() -> None:
    spec = a_workload(labels=("web",), excludes=("web",))
    copy = a_hold("a", "web-1", workload="web", labels=("web",), excludes=("web",))

    assert reasons(place(spec, a_node(), holds=[copy])) == [
        "co_residency: web-1 carries label web",
        "co_residency: web-1 excludes label web",
    ]


@pytest.mark.parametrize(
    ("neighbour", "expected"),
    [
        pytest.param({"instance": InstanceId("i-1")}, [], id="the instance itself"),
        pytest.param(
            {"instance": InstanceId("i-2")},
            ["co_residency"],
            id="another copy of the same workload",
        ),
        pytest.param(
            {"instance": InstanceId("i-3"), "kind": Kind.JOB},
            ["co_residency"],
            id="another kind of the same name",
        ),
    ],
)
def test_the_instance_being_moved_is_not_its_own_neighbour(
    neighbour: Any, expected: list[str]
) -> None:
    spec = a_workload(excludes=("web",))
    hold = a_hold("a", "web", workload="web", labels=("web",), **neighbour)

    decision = place(
        spec, a_node(), holds=[hold], current_node=NodeName("a"), moving=InstanceId("i-1")
    )

    assert constraints(decision) == expected


@pytest.mark.parametrize(
    ("wanted", "given", "held", "expected"),
    [
        pytest.param(16 * GIB, {}, 0, [], id="all there is"),
        pytest.param(
            16 * GIB + 1,
            {},
            0,
            ["needs 16.00 GiB memory, 16 GiB of 16 GiB free (1 B short)"],
            id="one byte more than there is",
        ),
        pytest.param(6 * GIB, {}, 10 * GIB, [], id="what is not promised"),
        pytest.param(
            6 * GIB + 1,
            {},
            10 * GIB,
            ["needs 6.00 GiB memory, 6 GiB of 16 GiB free (1 B short)"],
            id="one byte of what is promised",
        ),
        pytest.param(
            4 * GIB,
            {"memory": Reading(16 * GIB, 4 * GIB)},
            0,
            [],
            id="what others do not use",
        ),
        pytest.param(
            4 * GIB + 1,
            {"memory": Reading(16 * GIB, 4 * GIB)},
            0,
            ["needs 4.00 GiB memory, 4 GiB of 16 GiB free (1 B short)"],
            id="one byte of what others use",
        ),
        pytest.param(
            6 * GIB,
            {"memory": Reading(16 * GIB, 6 * GIB, ours_bytes=10 * GIB)},
            10 * GIB,
            [],
            id="what ours use is counted once: by what it was promised",
        ),
        pytest.param(
            2 * GIB,
            {"memory": Reading(16 * GIB, 2 * GIB, ours_bytes=10 * GIB)},
            10 * GIB,
            [],
            id="promised, used by ours and used by others together",
        ),
        pytest.param(
            2 * GIB + 1,
            {"memory": Reading(16 * GIB, 2 * GIB, ours_bytes=10 * GIB)},
            10 * GIB,
            ["needs 2.00 GiB memory, 2 GiB of 16 GiB free (1 B short)"],
            id="one byte more than all of that leaves",
        ),
        pytest.param(
            12 * GIB,
            {"memory": Reading(16 * GIB, 14 * GIB, ours_bytes=10 * GIB)},
            4 * GIB,
            [],
            id="others never use less than nothing",
        ),
        pytest.param(
            1,
            {"capabilities": (), "memory": None},
            0,
            ["needs 1 B memory, 0 B of 0 B free (1 B short)"],
            id="no memory facts are no memory",
        ),
        pytest.param(
            16 * GIB, {"capabilities": ()}, 0, [], id="the reading tells where no capability does"
        ),
        pytest.param(
            1,
            {"capabilities": (a_capability("mem.system", total_bytes=float("nan")),)},
            0,
            ["needs 1 B memory, 0 B of 0 B free (1 B short)"],
            id="a total that is no number is none",
        ),
        pytest.param(
            1,
            {"capabilities": (a_capability("mem.system", total_bytes=-5),)},
            0,
            ["needs 1 B memory, 0 B of 0 B free (1 B short)"],
            id="a negative total is none",
        ),
        pytest.param(
            1,
            {"capabilities": (a_capability("mem.system", total_bytes=True),)},
            0,
            ["needs 1 B memory, 0 B of 0 B free (1 B short)"],
            id="a boolean total is none",
        ),
        pytest.param(
            1,
            {"capabilities": (a_capability("mem.system"),)},
            0,
            ["needs 1 B memory, 0 B of 0 B free (1 B short)"],
            id="a total that is not told is none",
        ),
        pytest.param(
            0, {"capabilities": (), "memory": None}, 99 * GIB, [], id="zero is not checked"
        ),
    ],
)
def test_memory(wanted: int, given: Any, held: int, expected: list[str]) -> None:
    decision = place(
        a_workload(memory_bytes=wanted), a_node(**given), holds=[a_hold(memory_bytes=held)]
    )

    assert reasons(decision) == [f"memory: {text}" for text in expected]


def vram(*totals: int, state: str = "available") -> tuple[Capability, ...]:
    return tuple(
        Capability("mem.vram", {"total_bytes": total}, state=CapabilityState(state))
        for total in totals
    )


UNIFIED = (a_capability("mem.unified", total_bytes=16 * GIB),)


@pytest.mark.parametrize(
    ("capabilities", "host", "accel", "expected"),
    [
        pytest.param(vram(8 * GIB), 0, 8 * GIB, [], id="accelerator memory is its own pool"),
        pytest.param(vram(4 * GIB, 4 * GIB), 0, 8 * GIB, [], id="accelerators add up"),
        pytest.param(
            vram(8 * GIB),
            0,
            8 * GIB + 1,
            ["needs 8.00 GiB accelerator memory, 8 GiB of 8 GiB free (1 B short)"],
            id="one byte more than the accelerators have",
        ),
        pytest.param(
            vram(8 * GIB, state="degraded"),
            0,
            1,
            ["needs 1 B accelerator memory, 0 B of 0 B free (1 B short)"],
            id="a degraded accelerator has none",
        ),
        pytest.param(
            vram(8 * GIB, state="busy"), 0, 8 * GIB, [], id="memory of a busy one can be shared"
        ),
        pytest.param(
            (),
            1,
            1,
            ["needs 1 B accelerator memory, 0 B of 0 B free (1 B short)"],
            id="own memory does not stand in for an accelerator's",
        ),
        pytest.param(
            (),
            17 * GIB,
            1 * GIB,
            [
                "needs 17 GiB memory, 16 GiB of 16 GiB free (1 GiB short)",
                "needs 1 GiB accelerator memory, 0 B of 0 B free (1 GiB short)",
            ],
            id="both pools short are two reasons",
        ),
        pytest.param(UNIFIED, 10 * GIB, 6 * GIB, [], id="unified memory serves both"),
        pytest.param(
            UNIFIED,
            10 * GIB,
            6 * GIB + 1,
            ["needs 16.00 GiB unified memory, 16 GiB of 16 GiB free (1 B short)"],
            id="and together they must fit",
        ),
        pytest.param(
            (*UNIFIED, *vram(64 * GIB)),
            0,
            17 * GIB,
            ["needs 17 GiB unified memory, 16 GiB of 16 GiB free (1 GiB short)"],
            id="with unified memory nothing else counts",
        ),
    ],
)
def test_pools_of_memory(
    capabilities: tuple[Capability, ...], host: int, accel: int, expected: list[str]
) -> None:
    spec = a_workload(memory_bytes=host, accel_memory_bytes=accel)

    assert reasons(place(spec, a_node("a", *capabilities))) == [
        f"memory: {text}" for text in expected
    ]


@pytest.mark.parametrize(
    ("capabilities", "free"),
    [
        pytest.param((), (12, 0), id="discrete"),
        pytest.param(vram(8 * GIB), (12, 6), id="with an accelerator"),
        pytest.param(UNIFIED, (10, 10), id="unified: both holds weigh on the one pool"),
    ],
)
def test_holds_weigh_on_the_pool_they_are_in(
    capabilities: tuple[Capability, ...], free: tuple[int, int]
) -> None:
    holds = [a_hold(memory_bytes=4 * GIB, accel_memory_bytes=2 * GIB)]
    node = a_node("a", *capabilities)

    for key, gib in zip(("memory_bytes", "accel_memory_bytes"), free, strict=True):
        assert constraints(place(a_workload(**{key: gib * GIB}), node, holds=holds)) == []
        assert constraints(place(a_workload(**{key: gib * GIB + 1}), node, holds=holds)) == [
            "memory"
        ]


@pytest.mark.parametrize(
    ("claimed", "expected"),
    [
        pytest.param([(Provenance.PROBED, 4), (Provenance.CLAIMED, 64)], 4, id="the best known"),
        pytest.param([(Provenance.PROBED, 4), (Provenance.PROBED, 2)], 2, id="else the smaller"),
    ],
)
def test_where_two_totals_are_told_one_counts(
    claimed: list[tuple[Provenance, int]], expected: int
) -> None:
    capabilities = tuple(
        Capability("mem.system", {"total_bytes": gib * GIB}, provenance)
        for provenance, gib in claimed
    )
    node = a_node(capabilities=capabilities, memory=None)

    assert constraints(place(a_workload(memory_bytes=expected * GIB), node)) == []
    assert constraints(place(a_workload(memory_bytes=expected * GIB + 1), node)) == ["memory"]


@pytest.mark.parametrize(
    ("wanted", "cores", "held", "expected"),
    [
        pytest.param(8, 8, [], [], id="all there are"),
        pytest.param(
            8.001, 8, [], ["needs 8.001 cores, 8 of 8 free (0.001 short)"], id="a thousandth more"
        ),
        pytest.param(0.7, 1, [0.1, 0.2], [], id="tenths add up exactly"),
        pytest.param(
            0.701,
            1,
            [0.1, 0.2],
            ["needs 0.701 cores, 0.7 of 1 free (0.001 short)"],
            id="a thousandth of what is promised",
        ),
        pytest.param(0.43, 1, [0.57], [], id="where a float is not exact"),
        pytest.param(
            0.431,
            1,
            [0.57],
            ["needs 0.431 cores, 0.43 of 1 free (0.001 short)"],
            id="a thousandth more than that",
        ),
        pytest.param(
            1,
            1,
            [0.0001],
            ["needs 1 core, 0.999 of 1 free (0.001 short)"],
            id="what is held is never rounded away",
        ),
        pytest.param(
            1, 2, [4.0], ["needs 1 core, 0 of 2 free (3 short)"], id="a node that shrank has none"
        ),
        pytest.param(
            0.0001, 0, [], ["needs 0.001 cores, 0 of 0 free (0.001 short)"], id="never rounded away"
        ),
        pytest.param(0, 0, [8.0], [], id="zero is not checked"),
        pytest.param(
            1,
            float("nan"),
            [],
            ["needs 1 core, 0 of 0 free (1 short)"],
            id="cores that are no number",
        ),
        pytest.param(
            1,
            float("inf"),
            [],
            ["needs 1 core, 0 of 0 free (1 short)"],
            id="infinitely many cores are none",
        ),
    ],
)
def test_cpu(wanted: float, cores: float, held: list[float], expected: list[str]) -> None:
    holds = [a_hold("a", f"h{n}", cpu_cores=share) for n, share in enumerate(held)]

    decision = place(a_workload(cpu_cores=wanted), a_node(cpu_cores=cores), holds=holds)

    assert reasons(decision) == [f"cpu: {text}" for text in expected]


@pytest.mark.parametrize(
    ("wanted", "disk", "held", "expected"),
    [
        pytest.param(100 * GIB, Reading(100 * GIB, 100 * GIB), 0, [], id="all there is"),
        pytest.param(
            100 * GIB + 1,
            Reading(100 * GIB, 100 * GIB),
            0,
            ["needs 100.00 GiB disk, 100 GiB of 100 GiB free (1 B short)"],
            id="one byte more",
        ),
        pytest.param(
            20 * GIB,
            Reading(100 * GIB, 30 * GIB, ours_bytes=20 * GIB),
            30 * GIB,
            [],
            id="what ours use is counted by what it was promised",
        ),
        pytest.param(
            20 * GIB + 1,
            Reading(100 * GIB, 30 * GIB, ours_bytes=20 * GIB),
            30 * GIB,
            ["needs 20.00 GiB disk, 20 GiB of 100 GiB free (1 B short)"],
            id="one byte more than that leaves",
        ),
        pytest.param(
            1, None, 0, ["needs 1 B disk, 0 B of 0 B free (1 B short)"], id="an unknown disk"
        ),
        pytest.param(0, None, 5, [], id="zero is not checked"),
    ],
)
def test_disk(wanted: int, disk: Reading | None, held: int, expected: list[str]) -> None:
    decision = place(
        a_workload(disk_bytes=wanted), a_node(disk=disk), holds=[a_hold(disk_bytes=held)]
    )

    assert reasons(decision) == [f"disk: {text}" for text in expected]


@pytest.mark.parametrize(
    ("ports", "holds", "listening", "expected"),
    [
        pytest.param([80], [], (22, 443), [], id="free"),
        pytest.param([0], [a_hold(ports=(80,))], (80,), [], id="a port to be chosen never clashes"),
        pytest.param(
            [80],
            [a_hold("a", "z", ports=(80,)), a_hold("a", "y", ports=(80,))],
            (),
            ["port 80 (p80): y has it"],
            id="one of ours has it",
        ),
        pytest.param(
            [80], [], (80,), ["port 80 (p80): something on the node listens"], id="listened on"
        ),
        pytest.param(
            [80],
            [a_hold(ports=(80,))],
            (80,),
            ["port 80 (p80): other has it"],
            id="one of ours listens on its own",
        ),
        pytest.param(
            [80, 443, 22],
            [a_hold(ports=(443,))],
            (22,),
            ["port 443 (p443): other has it", "port 22 (p22): something on the node listens"],
            id="every port that is taken",
        ),
        pytest.param([80], [a_hold("b", ports=(80,))], (), [], id="taken on another node"),
    ],
)
def test_port(ports: list[int], holds: Any, listening: Any, expected: list[str]) -> None:
    spec = a_workload(ports=tuple((f"p{number}", number) for number in ports))

    decision = place(spec, a_node("a", ports_listening=listening), a_node("b"), holds=holds)

    assert reasons(decision) == [f"port: {text}" for text in expected]


def measured(figure: Any, provenance: Provenance = Provenance.MEASURED) -> Capability:
    return Capability("perf.cpu.single", {"value": figure}, provenance)


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        pytest.param((measured(100.0),), [], id="exactly the target"),
        pytest.param(
            (measured(99.99),),
            ["perf_budget: perf.cpu.single measured 99.99, needs 100.00"],
            id="just below",
        ),
        pytest.param((measured(50), measured(120)), [], id="the best of several"),
        pytest.param((), [], id="not measured is no reason"),
        pytest.param((measured(1.0, Provenance.PROBED),), [], id="probed is not measured"),
        pytest.param((measured(float("nan")),), [], id="no number is not measured"),
        pytest.param((measured(-1),), [], id="negative is not measured"),
        pytest.param((measured(float("inf")),), [], id="infinite is not measured"),
        pytest.param((measured(10**400),), [], id="beyond all floats is not measured"),
        pytest.param((measured("fast"),), [], id="text is not measured"),
        pytest.param((measured(True),), [], id="a boolean is not measured"),
    ],
)
def test_perf_budget(capabilities: tuple[Capability, ...], expected: list[str]) -> None:
    spec = a_workload(perf=PerfTarget("perf.cpu.single", 100.0))

    assert reasons(place(spec, a_node("a", *capabilities))) == expected


def test_a_figure_counts_only_where_there_is_a_target() -> None:
    assert reasons(place(a_workload(), a_node("a", measured(1.0)))) == []


HARD_TO_PLEASE = a_workload(
    needs("os.linux"),
    labels=("web",),
    excludes=("db",),
    memory_bytes=GIB,
    accel_memory_bytes=GIB,
    cpu_cores=1,
    disk_bytes=GIB,
    ports=(("http", 80),),
    perf=PerfTarget("perf.cpu.single", 100.0),
    revocable_refs=("key:k",),
    min_provenance=Provenance.PROBED,
    variants=(native("n", needs("cpu.arch.arm64")), emulated("e", needs("cpu.arch.x86_64"))),
)
PLEASES = a_node(
    "a",
    a_capability("os.linux"),
    a_capability("cpu.arch.arm64"),
    measured(100.0),
    *vram(GIB),
)


def without(node: NodeView, capability_id: str, *instead: Capability) -> NodeView:
    kept = tuple(one for one in node.capabilities if one.id != capability_id)
    return replace(node, capabilities=(*kept, *instead))


def test_the_node_that_is_mutated_below_is_eligible() -> None:
    assert reasons(place(HARD_TO_PLEASE, PLEASES)) == []


@pytest.mark.parametrize(
    ("constraint", "node", "cluster"),
    [
        ("node_retired", PLEASES, ClusterState(retired=frozenset({NodeName("a")}))),
        ("liveness", replace(PLEASES, liveness=Liveness.DEAD), None),
        ("facts_expired", replace(PLEASES, facts_expire_at_ms=NOW), None),
        ("trust", replace(PLEASES, tier=Tier.DISCOVERED), None),
        ("workload_revoked", PLEASES, ClusterState(revoked=frozenset({"key:k"}))),
        ("co_residency", PLEASES, ClusterState(holds=(a_hold(labels=("db",)),))),
        ("memory", PLEASES, ClusterState(holds=(a_hold(memory_bytes=16 * GIB),))),
        ("cpu", PLEASES, ClusterState(holds=(a_hold(cpu_cores=7.5),))),
        ("disk", PLEASES, ClusterState(holds=(a_hold(disk_bytes=100 * GIB),))),
        ("port", replace(PLEASES, ports_listening=(80,)), None),
        ("requirements", without(PLEASES, "os.linux"), None),
        (
            "provenance",
            without(PLEASES, "os.linux", Capability("os.linux", {}, Provenance.CLAIMED)),
            None,
        ),
        (
            "emulation_not_allowed",
            without(PLEASES, "cpu.arch.arm64", a_capability("cpu.arch.x86_64")),
            None,
        ),
        ("gate", replace(PLEASES, gate=None), None),
        ("perf_budget", without(PLEASES, "perf.cpu.single", measured(99.0)), None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_change_yields_exactly_one_constraint(
    constraint: str, node: NodeView, cluster: ClusterState | None
) -> None:
    assert constraints(place(HARD_TO_PLEASE, node, cluster=cluster)) == [constraint]


def test_every_constraint_has_its_one_change() -> None:
    [marker] = [
        mark
        for mark in test_one_change_yields_exactly_one_constraint.pytestmark  # type: ignore[attr-defined]  # pytest puts it there
        if mark.name == "parametrize"
    ]

    assert [row[0] for row in marker.args[1]] == [str(constraint) for constraint in Constraint]


def test_all_failures_of_a_node_are_reported_at_once_and_in_order() -> None:
    node = NodeView(
        NodeName("a"),
        Tier.DISCOVERED,
        Liveness.DEAD,
        cordoned=True,
        ports_listening=(80,),
        capabilities=(measured(1.0), Capability("os.linux", {}, Provenance.CLAIMED)),
    )
    cluster = ClusterState(
        holds=(a_hold(labels=("db",), excludes=("web",)),),
        retired=frozenset({NodeName("a")}),
        revoked=frozenset({"key:k"}),
    )

    decision = place(HARD_TO_PLEASE, node, cluster=cluster)

    assert reasons(decision) == [
        "node_retired: retired",
        "liveness: dead",
        "liveness: cordoned",
        "facts_expired: no facts yet",
        "trust: tier discovered, needs paired",
        "workload_revoked: revoked: key:k",
        "co_residency: other carries label db",
        "co_residency: other excludes label web",
        "memory: needs 1 GiB memory, 0 B of 0 B free (1 GiB short)",
        "memory: needs 1 GiB accelerator memory, 0 B of 0 B free (1 GiB short)",
        "cpu: needs 1 core, 0 of 0 free (1 short)",
        "disk: needs 1 GiB disk, 0 B of 0 B free (1 GiB short)",
        "port: port 80 (http): something on the node listens",
        "provenance: os.linux: provenance claimed, needs probed",
        "gate: denied: no verdict",
        "perf_budget: perf.cpu.single measured 1.00, needs 100.00",
    ]
    order = list(Constraint)
    found = [order.index(Constraint(one)) for one in constraints(decision)]
    assert found == sorted(found)
