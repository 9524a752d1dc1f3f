"""What holds for every request and every fleet."""

import json
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.fleets import NOW
from tests.unit.naive import failing, memory_bytes
from tests.unit.placement_strategies import requests, roomy, situations
from wlctl.model.fleet import ClusterState, NodeView
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.placement import TIER_ORDER, Decision, PlaceRequest, Weights
from wlctl.model.workload import WorkloadSpec
from wlctl.placement.constraints import detail
from wlctl.placement.document import decode, document, encode
from wlctl.placement.engine import Pass, decide, hold_of
from wlctl.placement.explain import explain, why_not

Situation = tuple[PlaceRequest, list[NodeView], ClusterState]

often = settings(deadline=None)


def decided(request: PlaceRequest, fleet: list[NodeView], cluster: ClusterState) -> Decision:
    return decide(request, fleet, cluster, Weights(), NOW)


@often
@given(situations())
def test_every_verdict_is_that_of_a_naive_checker(situation: Situation) -> None:
    request, fleet, cluster = situation
    decision = decided(replace(request, count=1, pin=None), fleet, cluster)

    for node in fleet:
        found = {str(one.constraint) for one in decision.rejected.get(node.name, ())}
        assert found == failing(request, node, cluster, NOW)


@often
@given(situations())
def test_no_placement_breaks_a_constraint_even_after_the_copies_before_it(
    situation: Situation,
) -> None:
    request, fleet, cluster = situation
    by_name = {node.name: node for node in fleet}

    for placement in decided(request, fleet, cluster).placements:
        assert failing(request, by_name[placement.node], cluster, NOW) == set()
        for fallback in placement.dispatch:
            assert failing(request, by_name[fallback.node], cluster, NOW) == set()
        hold = hold_of(request.workload, placement.chosen, InstanceId("new"))
        cluster = replace(cluster, holds=(*cluster.holds, hold))


@often
@given(situations())
def test_every_node_gets_one_verdict_and_the_eligible_a_place_in_the_ranking(
    situation: Situation,
) -> None:
    request, fleet, cluster = situation
    decision = decided(request, fleet, cluster)

    named = [one.node for one in decision.ranked] + list(decision.rejected)
    assert sorted(named) == sorted(node.name for node in fleet)
    assert all(decision.rejected.values()), "a rejected node has a reason"
    keys = [(TIER_ORDER[one.tier], -one.total, one.node) for one in decision.ranked]
    assert keys == sorted(keys), "by tier, then score, then name"
    assert all(one.total == sum(one.terms) for one in decision.ranked)
    assert len(decision.placements) in (0, request.count)
    assert decision.fits == request.count or not decision.placements


@often
@given(situations(), st.randoms(use_true_random=False))
def test_no_order_of_anything_matters(situation: Situation, random: Any) -> None:
    request, fleet, cluster = situation

    def shuffled(items: Any) -> Any:
        return tuple(random.sample(list(items), len(items)))

    def shuffled_workload(spec: WorkloadSpec) -> WorkloadSpec:
        policy = spec.policy
        return replace(
            spec,
            common=shuffled(spec.common),
            variants=tuple(
                replace(one, requirements=shuffled(one.requirements)) for one in spec.variants
            ),
            policy=replace(
                policy,
                labels=shuffled(policy.labels),
                excludes=shuffled(policy.excludes),
                preferences=shuffled(policy.preferences),
            ),
        )

    other = decided(
        replace(request, workload=shuffled_workload(request.workload)),
        [replace(node, capabilities=shuffled(node.capabilities)) for node in shuffled(fleet)],
        replace(cluster, holds=shuffled(cluster.holds)),
    )

    assert encode(other) == encode(decided(request, fleet, cluster))


@often
@given(situations())
def test_removing_a_node_never_makes_another_ineligible(situation: Situation) -> None:
    request, fleet, cluster = situation
    request = replace(request, count=1, pin=None)
    whole = decided(request, fleet, cluster)

    for gone in fleet:
        rest = decided(request, [node for node in fleet if node is not gone], cluster)
        assert rest.rejected == {
            name: found for name, found in whole.rejected.items() if name != gone.name
        }


@often
@given(situations())
def test_a_choice_comes_from_the_best_tier_unless_pinned(situation: Situation) -> None:
    request, fleet, cluster = situation
    decision = decided(replace(request, count=1), fleet, cluster)

    for placement in decision.placements:
        if request.pin is None:
            assert placement.tier is decision.ranked[0].tier
            assert sorted(placement.dispatch) == sorted(decision.ranked)
        else:
            assert [one.node for one in placement.dispatch] == [request.pin]
        assert placement.affinity is (placement.node != decision.ranked[0].node)


@often
@given(situations())
def test_memory_and_cores_are_never_promised_twice(situation: Situation) -> None:
    request, fleet, cluster = situation
    held: dict[NodeName, tuple[int, int]] = {}
    for hold in cluster.holds:
        if hold.instance != request.moving:
            memory, cores = held.get(hold.node, (0, 0))
            held[hold.node] = memory + hold.memory_bytes, cores + round(hold.cpu_cores * 1000)
    wanted = request.workload.resources
    by_name = {node.name: node for node in fleet}

    for placement in decided(request, fleet, cluster).placements:
        memory, cores = held.get(placement.node, (0, 0))
        held[placement.node] = (
            memory + wanted.memory_bytes,
            cores + round(wanted.cpu_cores * 1000),
        )
    for name, (memory, cores) in held.items():
        before = [hold for hold in cluster.holds if hold.node == name]
        if name in by_name and memory > sum(hold.memory_bytes for hold in before):
            reading = by_name[name].memory
            assert memory <= memory_bytes(by_name[name]) - (
                0 if reading is None else reading.others_bytes
            )
        if name in by_name and cores > sum(round(hold.cpu_cores * 1000) for hold in before):
            assert cores <= by_name[name].cpu_cores * 1000


@often
@given(situations())
def test_text_document_and_stored_bytes_say_the_same(situation: Situation) -> None:
    decision = decided(*situation)
    stored = encode(decision)
    doc = decode(stored)

    assert encode(doc) == stored
    assert json.loads(stored) == document(decision) == doc
    assert explain(doc) == explain(decision)
    assert explain(doc, everything=True) == explain(decision, everything=True)
    for node in situation[1]:
        assert why_not(doc, node.name) == why_not(decision, node.name)
    details = [
        (name, one["constraint"], one["detail"])
        for group in doc["rejected"]
        for name in group["nodes"]
        for one in group["rejections"]
    ]
    assert sorted(details) == sorted(
        (name, str(one.constraint), detail(one))
        for name, rejections in decision.rejected.items()
        for one in rejections
    )


@st.composite
def passes(draw: Any) -> tuple[list[NodeView], ClusterState, list[PlaceRequest]]:
    """A fleet with some room, and requests for few workloads with ever other options."""
    request, fleet, cluster = draw(roomy(3))
    few = [request, draw(requests(fleet, 1))]
    nodes = st.sampled_from([*(None,) * 4, *(node.name for node in fleet)])
    asked = [
        replace(
            draw(st.sampled_from(few)),
            count=draw(st.integers(1, 3)),
            pin=draw(nodes),
            current_node=draw(nodes),
            moving=draw(st.sampled_from([None, InstanceId("i-0"), InstanceId("new-0-0")])),
        )
        for _ in range(draw(st.integers(2, 4)))
    ]
    return fleet, cluster, asked


@often
@given(passes())
def test_a_pass_decides_as_if_each_request_came_alone(
    given_: tuple[list[NodeView], ClusterState, list[PlaceRequest]],
) -> None:
    fleet, cluster, asked = given_
    shared = Pass(fleet, cluster, Weights(), NOW)

    for turn, request in enumerate(asked):
        decision = shared.decide(request)
        assert encode(decision) == encode(decided(request, fleet, cluster))
        ids = [InstanceId(f"new-{turn}-{n}") for n in range(len(decision.placements))]
        shared.take(decision, ids)
        holds = tuple(
            hold_of(request.workload, placement.chosen, instance)
            for placement, instance in zip(decision.placements, ids, strict=True)
        )
        cluster = replace(cluster, holds=(*cluster.holds, *holds))
