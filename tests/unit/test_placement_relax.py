"""What giving up a term would bring, and the fewest terms to give up, against trying them all."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings

from tests.unit.fleets import (
    GIB,
    NOW,
    a_capability,
    a_hold,
    a_node,
    a_workload,
    emulated,
    native,
    needs,
    place,
    where,
)
from tests.unit.placement_strategies import situations
from wlctl.model.facts import Capability, Provenance
from wlctl.model.fleet import ClusterState, NodeView
from wlctl.model.ids import NodeName
from wlctl.model.node import Liveness, Tier
from wlctl.model.placement import PlaceRequest, Relaxation, Weights
from wlctl.model.workload import PerfTarget, WorkloadSpec
from wlctl.placement.ask import prepare
from wlctl.placement.engine import decide

LINUX, CUDA = a_capability("os.linux"), a_capability("accel.cuda")


def single(decision: Any) -> dict[str, int]:
    return {one.terms[0]: one.nodes for one in decision.relaxations.single}


@pytest.mark.parametrize(
    ("spec", "node", "term"),
    [
        pytest.param(
            a_workload(needs("x", where("n", "gte", 2), count=2, exclusive=True)),
            a_node(),
            "requirement exclusive 2 x (n >= 2)",
            id="a requirement",
        ),
        pytest.param(
            a_workload(variants=(native("v", needs("x.*")),)),
            a_node(),
            "variant v: requirement x.*",
            id="a variant's requirement",
        ),
        pytest.param(
            a_workload(variants=(emulated("e"),)),
            a_node(),
            "no emulation (--allow-emulated lifts it)",
            id="emulation",
        ),
        pytest.param(
            a_workload(min_trust=Tier.TRUSTED), a_node(), "min_trust trusted", id="the tier"
        ),
        pytest.param(a_workload(memory_bytes=17 * GIB), a_node(), "memory 17 GiB", id="the memory"),
        pytest.param(
            a_workload(accel_memory_bytes=GIB), a_node(), "accel_memory 1 GiB", id="accelerators'"
        ),
        pytest.param(a_workload(cpu_cores=9), a_node(), "cpu 9", id="the cores"),
        pytest.param(a_workload(disk_bytes=101 * GIB), a_node(), "disk 101 GiB", id="the disk"),
        pytest.param(
            a_workload(ports=(("http", 80),)),
            a_node(ports_listening=(80,)),
            "port 80 (http)",
            id="a port",
        ),
        pytest.param(
            a_workload(perf=PerfTarget("perf.x", 2.0)),
            a_node("a", Capability("perf.x", {"value": 1}, Provenance.MEASURED)),
            "perf perf.x >= 2.0",
            id="a target",
        ),
    ],
)
def test_each_term_alone(spec: WorkloadSpec, node: NodeView, term: str) -> None:
    found = place(spec, node).relaxations

    assert found.single == (Relaxation((term,), 1),)
    assert found.smallest == Relaxation((term,), 1)
    assert found.exact


def test_labels_are_terms_each() -> None:
    spec = a_workload(labels=("web", "api"), excludes=("db", "cache"))
    holds = [a_hold("a", labels=("db",)), a_hold("b", excludes=("api",))]

    assert single(place(spec, a_node("a"), a_node("b"), holds=holds)) == {
        "label api": 1,
        "exclude db": 1,
    }


def test_a_minimum_provenance_or_the_requirement_may_go() -> None:
    spec = a_workload(needs("x"), min_provenance=Provenance.PROBED)

    decision = place(spec, a_node("a", Capability("x", {}, Provenance.CLAIMED)))

    assert single(decision) == {"requirement x": 1, "min_provenance probed": 1}


@pytest.mark.parametrize(
    ("host", "accel", "expected"),
    [
        pytest.param(10, 8, {"memory 10 GiB", "accel_memory 8 GiB"}, id="either of two that fit"),
        pytest.param(17, 8, {"memory 17 GiB"}, id="only the one that is too large"),
        pytest.param(8, 17, {"accel_memory 17 GiB"}, id="or the other"),
        pytest.param(17, 0, {"memory 17 GiB"}, id="the only one"),
        pytest.param(17, 17, set(), id="both are too large"),
    ],
)
def test_unified_memory(host: int, accel: int, expected: set[str]) -> None:
    spec = a_workload(memory_bytes=host * GIB, accel_memory_bytes=accel * GIB)
    node = a_node(capabilities=(a_capability("mem.unified", total_bytes=16 * GIB),))

    decision = place(spec, node)

    assert set(single(decision)) == expected
    assert decision.relaxations.smallest is not None
    assert len(decision.relaxations.smallest.terms) == (1 if expected else 2)


def test_nodes_are_counted_and_the_most_come_first() -> None:
    spec = a_workload(needs("os.linux"), min_trust=Tier.TRUSTED)
    nodes = [
        a_node("a", LINUX, tier=Tier.TRUSTED),
        *(a_node(f"b{n}", tier=Tier.TRUSTED) for n in range(3)),
        *(a_node(f"c{n}", LINUX) for n in range(2)),
        *(a_node(f"d{n}") for n in range(9)),
    ]

    found = place(spec, *nodes).relaxations

    assert found.single == (
        Relaxation(("requirement os.linux",), 3),
        Relaxation(("min_trust trusted",), 2),
    )
    assert found.smallest is None, "it can be placed as it is"


def test_the_smallest_set_admits_as_many_as_it_can() -> None:
    spec = a_workload(needs("os.linux"), needs("accel.cuda"), min_trust=Tier.TRUSTED)
    nodes = [a_node("a"), a_node("b"), a_node("c", LINUX), a_node("d", CUDA), a_node("e", CUDA)]

    assert place(spec, *nodes).relaxations.smallest == Relaxation(
        ("requirement os.linux", "min_trust trusted"), 2
    )


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"liveness": Liveness.DEAD}, id="a dead node"),
        pytest.param({"cordoned": True}, id="a cordoned node"),
        pytest.param({"facts_expire_at_ms": NOW}, id="stale facts"),
        pytest.param({"gate": None}, id="a denial"),
    ],
)
def test_no_term_is_to_blame_for(given: Any) -> None:
    found = place(a_workload(needs("x")), a_node(**given)).relaxations

    assert (found.single, found.smallest) == ((), None)


@pytest.mark.parametrize(
    "cluster",
    [
        ClusterState(retired=frozenset({NodeName("a")})),
        ClusterState(revoked=frozenset({"key:k"})),
    ],
    ids=["a retired node", "a revocation"],
)
def test_nor_for(cluster: ClusterState) -> None:
    spec = a_workload(needs("x"), revocable_refs=("key:k",))

    assert place(spec, a_node(), cluster=cluster).relaxations.single == ()


def test_with_a_pin_only_the_pinned_node_counts() -> None:
    spec = a_workload(needs("os.linux"), cpu_cores=9)
    nodes = [a_node("a", LINUX), a_node("b", LINUX), a_node("c", cpu_cores=9)]

    assert single(place(spec, *nodes)) == {"cpu 9": 2, "requirement os.linux": 1}
    assert single(place(spec, *nodes, pin=NodeName("c"))) == {"requirement os.linux": 1}


def test_what_keeps_a_further_copy_out_is_told() -> None:
    decision = place(a_workload(ports=(("http", 80),)), a_node(), count=2)

    assert decision.relaxations.smallest == Relaxation(("port 80 (http)",), 1)


def test_of_contending_needs_the_fewest_go() -> None:
    gpus = [a_capability("accel.cuda", index=n) for n in range(2)]
    spec = a_workload(
        needs("accel.cuda", exclusive=True),
        needs("accel.cuda", where("index", "lte", 1), exclusive=True),
        needs("accel.*", exclusive=True),
        needs("os.linux"),
    )

    found = place(spec, a_node("a", *gpus, LINUX)).relaxations

    assert {one.terms[0] for one in found.single} == {
        "requirement exclusive accel.cuda",
        "requirement exclusive accel.cuda (index <= 1)",
        "requirement exclusive accel.*",
    }
    assert found.exact


@pytest.mark.parametrize(
    ("contending", "exact"),
    [pytest.param(12, True, id="twelve needs"), pytest.param(13, False, id="thirteen")],
)
def test_the_search_is_exact_up_to_twelve_contending_needs(contending: int, *, exact: bool) -> None:
    needed = [needs("device.x", where("n", "lte", n), exclusive=True) for n in range(contending)]
    devices = [a_capability("device.x", n=0)] * (contending - 2)

    found = place(a_workload(*needed), a_node("a", *devices)).relaxations

    assert found.exact is exact
    assert found.smallest is not None
    assert len(found.smallest.terms) == 2
    assert found.smallest.nodes == 1


def test_a_search_that_would_take_too_long_is_cut_short_and_says_so() -> None:
    needed = [needs("device.x", where("n", "lte", n), count=9, exclusive=True) for n in range(12)]
    devices = [a_capability("device.x", n=0)] * 100

    found = place(a_workload(*needed), a_node("a", *devices)).relaxations

    assert not found.exact
    assert found.smallest is not None
    assert len(found.smallest.terms) == 1


Change = Callable[[PlaceRequest], PlaceRequest]


def spec_change(change: Callable[[WorkloadSpec], WorkloadSpec]) -> Change:
    return lambda request: replace(request, workload=change(request.workload))


def policy_change(**given: Any) -> Change:
    return spec_change(lambda spec: replace(spec, policy=replace(spec.policy, **given)))


def resource_change(name: str) -> Change:
    return spec_change(lambda spec: replace(spec, resources=replace(spec.resources, **{name: 0})))


def changes(request: PlaceRequest) -> list[Change]:
    """One change for each term of the request, requirements by identity."""

    def dropping(gone: Any) -> Change:
        def drop(found: Any) -> Any:
            return tuple(one for one in found if one is not gone)

        return lambda request: replace(
            request,
            where=drop(request.where),
            workload=replace(
                request.workload,
                common=drop(request.workload.common),
                variants=tuple(
                    replace(one, requirements=drop(one.requirements))
                    for one in request.workload.variants
                ),
            ),
        )

    spec = request.workload
    own = [one for variant in spec.variants for one in variant.requirements]
    found = [dropping(one) for one in (*spec.common, *request.where, *own)]
    found.append(policy_change(min_provenance=Provenance.CLAIMED))
    found.append(lambda request: replace(request, allow_emulated=True))
    found.append(policy_change(min_trust=Tier.DISCOVERED))
    found += [policy_change(labels=()), policy_change(excludes=()), policy_change(perf=None)]
    found += [
        resource_change(name)
        for name in ("memory_bytes", "accel_memory_bytes", "cpu_cores", "disk_bytes")
    ]
    found.append(spec_change(lambda spec: replace(spec, ports=())))
    return found


def distinct(request: PlaceRequest) -> PlaceRequest:
    """The same request, each requirement an object of its own."""
    spec = request.workload
    return replace(
        request,
        where=tuple(map(replace, request.where)),
        workload=replace(
            spec,
            common=tuple(map(replace, spec.common)),
            variants=tuple(
                replace(one, requirements=tuple(map(replace, one.requirements)))
                for one in spec.variants
            ),
        ),
    )


@settings(deadline=None, max_examples=60)
@given(situations(most=2))
def test_relaxations_agree_with_trying_every_set_of_terms(
    situation: tuple[PlaceRequest, list[NodeView], ClusterState],
) -> None:
    request, fleet, cluster = situation
    request = distinct(replace(request, count=1, pin=None))
    decision = decide(request, fleet, cluster, Weights(), NOW)

    def eligible(*given: Change) -> int:
        changed = request
        for change in given:
            changed = change(changed)
        return len(decide(changed, fleet, cluster, Weights(), NOW).ranked)

    asked = changes(request)
    before = len(decision.ranked)
    alone = Counter(eligible(change) - before for change in asked)
    del alone[0]
    found = decision.relaxations
    assert Counter(one.nodes for one in found.single) == alone
    if before or not eligible(*asked):
        assert found.smallest is None
        return
    assert found.smallest is not None
    fewest = len(found.smallest.terms)
    for size in range(1, min(fewest, 4)):
        assert not any(eligible(*some) for some in combinations(asked, size))
    if fewest < 4:
        most = max(eligible(*some) for some in combinations(asked, fewest))
        assert found.smallest.nodes == most


def test_terms_are_written_in_the_order_of_the_request() -> None:
    spec = a_workload(
        needs("b"),
        needs("a"),
        variants=(emulated("e", needs("c")),),
        min_provenance=Provenance.PROBED,
        labels=("l",),
        excludes=("x",),
        memory_bytes=GIB,
        accel_memory_bytes=GIB,
        cpu_cores=1,
        disk_bytes=GIB,
        ports=(("http", 80), ("any", 0)),
        perf=PerfTarget("p", 1.0),
    )

    ask = prepare(PlaceRequest(spec, where=(needs("w"),)), Weights(), frozenset())

    assert ask.terms == (
        "requirement a",
        "requirement b",
        "requirement w",
        "variant e: requirement c",
        "min_provenance probed",
        "no emulation (--allow-emulated lifts it)",
        "min_trust paired",
        "label l",
        "exclude x",
        "memory 1 GiB",
        "accel_memory 1 GiB",
        "cpu 1",
        "disk 1 GiB",
        "port 80 (http)",
        "perf p >= 1.0",
    )
