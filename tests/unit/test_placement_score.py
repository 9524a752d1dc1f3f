"""The eight terms of a score, each alone, at its edges and with figures that make no sense."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.fleets import (
    GIB,
    NOW,
    a_capability,
    a_hold,
    a_node,
    a_workload,
    emulated,
    needs,
    place,
)
from wlctl.model.facts import Capability, CapabilityState, Provenance
from wlctl.model.fleet import NodeView, Reading
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.placement import Candidate, Decision, Weights
from wlctl.model.workload import Kind, LatencyClass, PerfTarget, Preference, WorkloadSpec

NAN, INF = float("nan"), float("inf")
DEV = a_capability("node.class.dev")


def candidates(decision: Decision) -> dict[str, Candidate]:
    return {candidate.node: candidate for candidate in decision.ranked}


def term(name: str, spec: WorkloadSpec, *nodes: NodeView, **given: Any) -> list[float]:
    """The term of each node, in the order of the nodes."""
    found = candidates(place(spec, *nodes, **given))
    return [getattr(found[node.name].terms, name) for node in nodes]


def test_the_total_is_the_sum_of_the_terms() -> None:
    [candidate] = place(a_workload(), a_node()).ranked

    assert candidate.total == sum(candidate.terms) == 100 + 10 + 5 + 10 + 10


@pytest.mark.parametrize(
    ("spec", "node", "expected"),
    [
        pytest.param(a_workload(), a_node(), 100.0, id="native"),
        pytest.param(a_workload(variants=(emulated("e"),)), a_node(), 40.0, id="emulated"),
        pytest.param(a_workload(), a_node("a", DEV), 20.0, id="native on a machine of last resort"),
        pytest.param(
            a_workload(variants=(emulated("e"),)), a_node("a", DEV), 40.0, id="emulated on one"
        ),
    ],
)
def test_execution(spec: WorkloadSpec, node: NodeView, expected: float) -> None:
    assert term("execution", spec, node, allow_emulated=True) == [expected]


def test_the_capability_of_last_resort_is_a_setting() -> None:
    node = a_node("a", a_capability("node.class.laptop"), DEV)

    assert term(
        "execution", a_workload(), node, weights=Weights(dev_class="node.class.laptop")
    ) == [20.0]
    assert term("execution", a_workload(), node, weights=Weights(dev_class="none")) == [100.0]


LIKES = (
    Preference(needs("store.ssd"), 7.5),
    Preference(needs("node.label.*"), 2.0),
    Preference(needs("runtime.python", min_provenance=Provenance.MEASURED), 1.0),
)


@pytest.mark.parametrize(
    ("capabilities", "expected"),
    [
        pytest.param([], 0.0, id="none is satisfied"),
        pytest.param([a_capability("store.ssd")], 7.5, id="one is"),
        pytest.param([a_capability("store.ssd"), a_capability("node.label.x")], 9.5, id="two are"),
        pytest.param([a_capability("runtime.python")], 0.0, id="provenance counts here, too"),
        pytest.param(
            [Capability("store.ssd", state=CapabilityState.RESERVED)], 0.0, id="and so does state"
        ),
    ],
)
def test_locality(capabilities: list[Capability], expected: float) -> None:
    spec = a_workload(preferences=LIKES)

    assert term("locality", spec, a_node("a", *capabilities)) == [expected]


def gpu(gib: Any) -> Capability:
    return a_capability("accel.cuda", memory_bytes=gib * GIB)


@pytest.mark.parametrize(
    ("spec", "nodes", "expected"),
    [
        pytest.param(
            a_workload(), [[], [gpu(8)]], [10.0, 0.0], id="nodes with accelerators are kept free"
        ),
        pytest.param(
            a_workload(needs("accel.cuda")),
            [[gpu(8)], [gpu(16)], [gpu(80)]],
            [10.0, 5.0, 1.0],
            id="the smallest that does fits best",
        ),
        pytest.param(
            a_workload(needs("accel.cuda", count=2)),
            [[gpu(8), gpu(8)], [gpu(8), gpu(24)]],
            [10.0, 5.0],
            id="several add up",
        ),
        pytest.param(
            a_workload(needs("accel.cuda")),
            [[gpu(8)], [a_capability("accel.cuda")]],
            [10.0, 0.0],
            id="one that does not say scores nothing",
        ),
        pytest.param(
            a_workload(needs("accel.cuda", count=2)),
            [[gpu(8), gpu(8)], [gpu(4), a_capability("accel.cuda")]],
            [10.0, 0.0],
            id="nor several of which one does not",
        ),
        pytest.param(
            a_workload(needs("accel.cuda")),
            [[a_capability("accel.cuda")]],
            [0.0],
            id="nor where none says",
        ),
        pytest.param(
            a_workload(needs("accel.cuda")), [[gpu(0)]], [10.0], id="no capacity is no division"
        ),
        pytest.param(
            a_workload(needs("accel.cuda")), [[gpu(0)], [gpu(8)]], [10.0, 0.0], id="nor beside one"
        ),
        pytest.param(
            a_workload(needs("accel.cuda")),
            [[gpu(8)], [gpu(4), a_capability("accel.cuda", memory_bytes=NAN)]],
            [10.0, 0.0],
            id="nan is not a capacity",
        ),
    ],
)
def test_accel_fit(
    spec: WorkloadSpec, nodes: list[list[Capability]], expected: list[float]
) -> None:
    views = [a_node(f"n{n}", *found) for n, found in enumerate(nodes)]

    assert term("accel_fit", spec, *views) == pytest.approx(expected)


def test_accel_fit_compares_survivors_only() -> None:
    dead = a_node("a", gpu(2), facts_expire_at_ms=NOW)

    decision = place(a_workload(needs("accel.cuda")), dead, a_node("b", gpu(8)))

    assert decision.ranked[0].terms.accel_fit == 10.0


def measured(figure: Any) -> Capability:
    return Capability("perf.disk", {"value": figure}, Provenance.MEASURED)


@pytest.mark.parametrize(
    ("figures", "expected", "unmeasured"),
    [
        pytest.param([100, 50.0], [30.0, 15.0], [], id="a share of the best"),
        pytest.param([10.0], [30.0], [], id="alone is best"),
        pytest.param([0, 0.0], [0.0, 0.0], [], id="all zero"),
        pytest.param([100, None], [30.0, 0.0], ["n1"], id="missing"),
        pytest.param([100, NAN], [30.0, 0.0], ["n1"], id="no number"),
        pytest.param([100, INF], [30.0, 0.0], ["n1"], id="infinite"),
        pytest.param([100, -1], [30.0, 0.0], ["n1"], id="negative"),
        pytest.param([100, 10**400], [30.0, 0.0], ["n1"], id="beyond all floats"),
        pytest.param([None], [0.0], ["n0"], id="none is measured"),
    ],
)
def test_perf(figures: list[Any], expected: list[float], unmeasured: list[str]) -> None:
    spec = a_workload(perf=PerfTarget("perf.disk", 0.0))
    nodes = [
        a_node(f"n{n}", *([] if figure is None else [measured(figure)]))
        for n, figure in enumerate(figures)
    ]

    decision = place(spec, *nodes)

    assert term("perf", spec, *nodes) == expected
    flagged = [one.node for one in decision.ranked if "unmeasured" in one.flags]
    assert flagged == unmeasured


def test_perf_counts_twice_for_interactive_workloads_and_not_at_all_without_a_target() -> None:
    spec = a_workload(perf=PerfTarget("perf.disk", 0.0), latency_class=LatencyClass.INTERACTIVE)

    assert term("perf", spec, a_node("a", measured(5))) == [60.0]
    assert term("perf", a_workload(), a_node("a", measured(5))) == [0.0]
    assert place(a_workload(), a_node("a")).ranked[0].flags == ()


@pytest.mark.parametrize(
    ("load", "expected", "flags"),
    [
        pytest.param(0.0, 10.0, (), id="idle"),
        pytest.param(0.25, 7.5, (), id="a quarter"),
        pytest.param(1.0, 0.0, (), id="full"),
        pytest.param(7.0, 0.0, (), id="more than full is full"),
        pytest.param(None, 0.0, ("load_unknown",), id="unknown"),
        pytest.param(NAN, 0.0, ("load_unknown",), id="no number"),
        pytest.param(INF, 0.0, ("load_unknown",), id="infinite"),
        pytest.param(-0.1, 0.0, ("load_unknown",), id="negative"),
    ],
)
def test_load(load: float | None, expected: float, flags: tuple[str, ...]) -> None:
    [candidate] = place(a_workload(), a_node(load=load)).ranked

    assert candidate.terms.load == expected
    assert candidate.flags == flags


def test_where_a_copy_would_run_without_a_cgroup_is_flagged_and_costs_nothing() -> None:
    [with_one] = place(a_workload(), a_node()).ranked
    [without] = place(a_workload(), a_node(leader_only=True)).ranked

    assert (with_one.flags, without.flags) == ((), ("leader_only",))
    assert without.total == with_one.total


@pytest.mark.parametrize(
    ("wanted", "given", "held", "expected"),
    [
        pytest.param({}, {}, {}, 10.0, id="nothing is promised"),
        pytest.param({"memory_bytes": 4 * GIB}, {}, {}, 7.5, id="what is placed counts"),
        pytest.param({"cpu_cores": 6}, {}, {}, 2.5, id="cores, too"),
        pytest.param(
            {"memory_bytes": 4 * GIB, "cpu_cores": 6}, {}, {}, 2.5, id="the smaller share counts"
        ),
        pytest.param(
            {"memory_bytes": 4 * GIB},
            {},
            {"memory_bytes": 4 * GIB, "cpu_cores": 1},
            5.0,
            id="after what is held",
        ),
        pytest.param({}, {}, {"cpu_cores": 16}, 0.0, id="never below nothing"),
        pytest.param({}, {"cpu_cores": 0}, {}, 0.0, id="no cores are no room"),
        pytest.param({}, {"capabilities": (), "memory": None}, {}, 0.0, id="nor is no memory"),
        pytest.param(
            {"memory_bytes": 2 * GIB, "accel_memory_bytes": 2 * GIB},
            {"capabilities": (a_capability("mem.unified", total_bytes=16 * GIB),)},
            {"memory_bytes": 2 * GIB, "accel_memory_bytes": 2 * GIB},
            5.0,
            id="unified memory is filled from both sides",
        ),
    ],
)
def test_room(wanted: Any, given: Any, held: Any, expected: float) -> None:
    spec = a_workload(**wanted)

    assert term("room", spec, a_node(**given), holds=[a_hold(**held)]) == [expected]


def test_room_does_not_depend_on_the_reading() -> None:
    full = a_node("b", memory=Reading(16 * GIB, GIB))

    assert term("room", a_workload(memory_bytes=GIB), a_node("a"), full) == [9.375, 9.375]


def copy(name: str, **given: Any) -> Any:
    return a_hold("a", name, **{"workload": "web"} | given)


@pytest.mark.parametrize(
    ("holds", "expected"),
    [
        pytest.param([], 10.0, id="none there"),
        pytest.param([copy("web-1")], 5.0, id="one there"),
        pytest.param([copy("web-1"), copy("web-2"), copy("web-3")], 2.5, id="three there"),
        pytest.param([copy("web-1", kind=Kind.JOB)], 10.0, id="another kind of the same name"),
        pytest.param([copy("web-1", workload="db")], 10.0, id="another workload"),
        pytest.param([copy("pool", kind=None)], 10.0, id="a pool of slots"),
    ],
)
def test_spread(holds: Any, expected: float) -> None:
    assert term("spread", a_workload(), a_node(), holds=holds) == [expected]


@pytest.mark.parametrize(
    ("sticky", "expected"),
    [pytest.param(False, 15.0, id="stays by habit"), pytest.param(True, 1000.0, id="sticky")],
)
def test_stickiness_is_for_the_current_node_only(*, sticky: bool, expected: float) -> None:
    spec = a_workload(sticky=sticky)
    nodes = [a_node("a"), a_node("b")]

    assert term("stickiness", spec, *nodes, current_node=NodeName("b")) == [0.0, expected]
    assert term("stickiness", spec, *nodes, current_node=NodeName("gone")) == [0.0, 0.0]
    assert term("stickiness", spec, *nodes) == [0.0, 0.0]


def test_the_instance_being_moved_does_not_count_against_its_own_node() -> None:
    own = copy("web-1", instance=InstanceId("i-1"), memory_bytes=8 * GIB)
    given = {"holds": [own], "current_node": NodeName("a"), "moving": InstanceId("i-1")}
    spec = a_workload(memory_bytes=8 * GIB)

    assert term("spread", spec, a_node("a"), **given) == [10.0]
    assert term("room", spec, a_node("a"), **given) == [5.0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("native", 1.0),
        ("accel_fit", 1.0),
        ("load", 0.5),
        ("room", 1.0),
        ("spread", 1.0),
    ],
)
def test_each_weight_is_used(name: str, expected: float) -> None:
    given: Any = dict.fromkeys(("native", "accel_fit", "load", "room", "spread"), 0.0)
    given[name] = 1.0

    decision = place(a_workload(), a_node(), weights=replace(Weights(), **given))

    assert decision.ranked[0].total == expected


def test_weights_may_be_whole_numbers() -> None:
    one, other = (
        place(a_workload(), a_node(), weights=weights)
        for weights in (Weights(), Weights(native=100, load=10))
    )

    assert one == other
