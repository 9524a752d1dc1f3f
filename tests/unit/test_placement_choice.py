"""Which of the eligible nodes it is: tiers, scores, pins, preferences, copies and moves."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.fleets import (
    ALLOWED,
    GIB,
    NOW,
    a_capability,
    a_hold,
    a_node,
    a_workload,
    chosen,
    constraints,
    emulated,
    native,
    needs,
    place,
    reasons,
)
from wlctl.errors import InvalidRequest, UnknownName
from wlctl.model.facts import Capability
from wlctl.model.fleet import Claim, ClusterState, NodeView, Ruling, Verdict
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.node import Liveness, Tier
from wlctl.model.placement import Decision, PlaceRequest, Tiering, Weights
from wlctl.model.workload import Kind, Preference
from wlctl.placement.engine import Pass, hold_of, needs_attached_hardware

ARM = a_capability("cpu.arch.arm64")
DEV = a_capability("node.class.dev")
BOTH = a_workload(variants=(native("n", needs("cpu.arch.arm64")), emulated("e")))


def full(name: str, **given: Any) -> NodeView:
    """A node that takes nothing."""
    return a_node(name, **{"gate": None} | given)


def ranking(decision: Decision) -> list[str]:
    return [candidate.node for candidate in decision.ranked]


def order(decision: Decision) -> list[str]:
    return [candidate.node for candidate in decision.placements[0].dispatch]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([a_node("a", load=0.9), a_node("b", load=0.1)], ["b", "a"], id="by score"),
        pytest.param([a_node("b"), a_node("c"), a_node("a")], ["a", "b", "c"], id="then by name"),
        pytest.param(
            [a_node("a", DEV, load=0.0), a_node("z", load=1.0)], ["z", "a"], id="last resort last"
        ),
        pytest.param([full("a"), a_node("b")], ["b"], id="only the eligible"),
        pytest.param([full("a")], [], id="none"),
        pytest.param([], [], id="an empty fleet"),
    ],
)
def test_the_ranking(nodes: list[NodeView], expected: list[str]) -> None:
    decision = place(a_workload(), *nodes)

    assert ranking(decision) == expected
    assert chosen(decision) == expected[:1]
    assert decision.fits == len(expected[:1])


def test_tiers_are_native_then_emulated_then_last_resort() -> None:
    nodes = [a_node("a", ARM, DEV), a_node("b"), a_node("c", ARM)]

    decision = place(BOTH, *nodes, allow_emulated=True)

    assert [(one.node, one.tier) for one in decision.ranked] == [
        ("c", Tiering.NATIVE),
        ("b", Tiering.EMULATED),
        ("a", Tiering.DEV_FALLBACK),
    ]
    assert chosen(decision) == ["c"]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"weights": Weights(dev_fallback=1e12)}, id="the tier's own weight"),
        pytest.param({"weights": Weights(native=0.0)}, id="a native that is worth nothing"),
        pytest.param(
            {"weights": Weights(stickiness=1e12), "current_node": NodeName("a")}, id="stickiness"
        ),
        pytest.param({"liked": 1e12}, id="locality"),
        pytest.param({"prefer": ("a",)}, id="a preference of the operator"),
        pytest.param({"avoid": ("z",)}, id="what the operator would avoid"),
    ],
)
def test_no_bonus_of_any_size_beats_a_tier(given: dict[str, Any]) -> None:
    liked = Preference(needs("node.class.dev"), given.pop("liked", 0.0))

    decision = place(a_workload(preferences=(liked,)), a_node("a", DEV), a_node("z"), **given)

    assert chosen(decision) == ["z"]
    assert decision.placements[0].affinity is False


FLEET = [
    a_node("a", load=0.1),
    a_node("b", load=0.2),
    a_node("c", load=0.3),
    a_node("d", DEV),
    full("x"),
]


@pytest.mark.parametrize(
    ("options", "expected", "affinity"),
    [
        pytest.param({}, "abcd", False, id="by rank"),
        pytest.param({"prefer": ("c",)}, "cabd", True, id="the preferred first"),
        pytest.param({"prefer": ("c", "b")}, "cbad", True, id="in the order given"),
        pytest.param({"prefer": ("a",)}, "abcd", False, id="preferring the best changes nothing"),
        pytest.param({"prefer": ("x", "b")}, "bacd", True, id="an ineligible one is ignored"),
        pytest.param({"prefer": ("x",)}, "abcd", False, id="and no flag is set for it"),
        pytest.param({"prefer": ("nowhere",)}, "abcd", False, id="so is one that does not exist"),
        pytest.param({"prefer": ("d",)}, "abcd", False, id="a preference stays in its tier"),
        pytest.param({"avoid": ("a",)}, "bcad", True, id="the avoided last of their tier"),
        pytest.param({"avoid": ("a", "b")}, "cabd", True, id="several by rank"),
        pytest.param(
            {"avoid": ("a", "b", "c", "d")}, "abcd", False, id="avoiding all still places"
        ),
        pytest.param({"avoid": ("c",)}, "abcd", False, id="avoiding a later one"),
        pytest.param(
            {"prefer": ("c",), "avoid": ("a",)}, "cbad", True, id="preferred, rest, avoided"
        ),
        pytest.param(
            {"prefer": ("b",), "avoid": ("b",)}, "bacd", True, id="preferred and avoided: preferred"
        ),
        pytest.param({"prefer": ("c", "b", "c")}, "cbad", True, id="named twice: the first counts"),
        pytest.param({"pin": NodeName("c")}, "c", True, id="a pin allows only its node"),
        pytest.param({"pin": NodeName("a")}, "a", False, id="a pin on the best"),
        pytest.param({"pin": NodeName("d")}, "d", True, id="a pin beats tier and score"),
        pytest.param(
            {"pin": NodeName("c"), "prefer": ("b",), "avoid": ("c",)},
            "c",
            True,
            id="a pin beats preferences",
        ),
    ],
)
def test_the_order_of_dispatch(options: dict[str, Any], expected: str, *, affinity: bool) -> None:
    decision = place(a_workload(), *FLEET, **options)

    assert "".join(order(decision)) == expected
    assert chosen(decision) == [expected[0]]
    assert decision.placements[0].affinity is affinity
    assert ranking(decision) == ["a", "b", "c", "d"], "wishes do not change the ranking"
    assert constraints(decision, "x") == ["gate"]


def test_a_pin_does_not_beat_a_constraint_and_the_others_are_judged_all_the_same() -> None:
    decision = place(
        a_workload(min_trust=Tier.TRUSTED, memory_bytes=32 * GIB),
        full("x"),
        a_node(
            "a", tier=Tier.TRUSTED, capabilities=(a_capability("mem.system", total_bytes=2**40),)
        ),
        pin=NodeName("x"),
    )

    assert decision.placements == ()
    assert decision.fits == 0
    assert constraints(decision, "x") == ["trust", "memory", "gate"]
    assert ranking(decision) == ["a"]


@pytest.mark.parametrize("option", ["pin", "why"])
def test_a_node_that_does_not_exist_can_be_neither_pinned_nor_asked_about(option: str) -> None:
    name = NodeName("no\nwhere")

    with pytest.raises(UnknownName, match=rf"there is no node no\\nwhere \(--{option}\)"):
        options: Any = {option: name if option == "pin" else (name,)}
        place(a_workload(), a_node(), **options)


def test_two_nodes_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="two nodes are called b"):
        place(a_workload(), a_node("c"), a_node("b"), a_node("a"), a_node("b", cordoned=True))


@pytest.mark.parametrize("copies", [1, 3, 4, 7])
def test_copies_spread_evenly_over_equal_nodes(copies: int) -> None:
    nodes = [a_node(name) for name in "abc"]

    placed = Counter(chosen(place(a_workload(), *nodes, count=copies)))

    assert sum(placed.values()) == copies
    assert max(placed.values()) - min(placed[name] for name in "abc") <= 1


def test_each_copy_sees_the_ones_before() -> None:
    spec = a_workload(memory_bytes=6 * GIB, labels=("web",))

    decision = place(spec, a_node("a"), a_node("b", load=0.6), count=4)

    assert chosen(decision) == ["a", "b", "a", "b"]
    assert place(spec, a_node("a"), a_node("b"), count=5).fits == 4


def test_copies_that_exclude_each_other_go_to_nodes_of_their_own() -> None:
    spec = a_workload(labels=("web",), excludes=("web",))
    nodes = [a_node(name) for name in "abc"]

    assert sorted(chosen(place(spec, *nodes, count=3))) == ["a", "b", "c"]
    decision = place(spec, *nodes, count=4)
    assert (decision.placements, decision.fits) == ((), 3)
    assert reasons(decision, "b") == [
        "co_residency: web carries label web",
        "co_residency: web excludes label web",
    ]


def test_when_not_all_fit_none_is_placed_and_every_node_has_its_reason() -> None:
    decision = place(a_workload(ports=(("http", 80),)), a_node("a"), a_node("b"), count=3)

    assert decision.placements == ()
    assert decision.ranked == ()
    assert reasons(decision, "a") == ["port: port 80 (http): web has it"]
    assert sorted(decision.rejected) == ["a", "b"]


def test_the_verdicts_of_copies_are_those_of_the_first_and_what_fills_up_is_told() -> None:
    decision = place(a_workload(ports=(("http", 80),)), a_node("a"), a_node("b"), count=2)

    assert ranking(decision) == ["a", "b"]
    assert decision.placements[0].full == {}
    assert list(decision.placements[1].full) == ["a"]
    assert order(replace(decision, placements=decision.placements[1:])) == ["b"]


def test_copies_may_share_a_pinned_node() -> None:
    assert chosen(place(a_workload(), *FLEET, count=3, pin=NodeName("b"))) == ["b", "b", "b"]


OWN = a_hold(
    "b",
    "web",
    instance=InstanceId("i-1"),
    workload="web",
    labels=("web",),
    excludes=("web",),
    ports=(80,),
    claims=(Claim("accel.cuda", exclusive=True),),
    memory_bytes=12 * GIB,
    cpu_cores=6,
    disk_bytes=80 * GIB,
)
MOVED = a_workload(
    needs("accel.cuda", exclusive=True),
    labels=("web",),
    excludes=("web",),
    ports=(("http", 80),),
    memory_bytes=12 * GIB,
    cpu_cores=6,
    disk_bytes=80 * GIB,
)
GPU = a_capability("accel.cuda")


def test_what_an_instance_holds_does_not_stand_in_its_own_way() -> None:
    node = a_node("b", GPU, ports_listening=(80,))
    moved: Any = {"holds": [OWN], "current_node": NodeName("b"), "moving": InstanceId("i-1")}

    assert reasons(place(MOVED, node, **moved), "b") == []
    assert constraints(place(MOVED, node, holds=[OWN]), "b") == [
        "co_residency",
        "co_residency",
        "memory",
        "cpu",
        "disk",
        "port",
        "requirements",
    ]


def test_nor_where_it_is_found_without_its_node_being_named() -> None:
    decision = place(MOVED, a_node("b", GPU), holds=[OWN], moving=InstanceId("i-1"))

    assert chosen(decision) == ["b"]
    assert decision.ranked[0].terms.stickiness == 0.0


def test_what_others_hold_there_still_does() -> None:
    other = a_hold("b", "other", memory_bytes=5 * GIB)
    moved: Any = {"holds": [OWN, other], "current_node": NodeName("b"), "moving": InstanceId("i-1")}

    assert constraints(place(MOVED, a_node("b", GPU), **moved), "b") == ["memory"]


def test_an_instance_is_moved_off_a_dead_node() -> None:
    nodes = [a_node("a", GPU), a_node("b", GPU, liveness=Liveness.DEAD)]

    decision = place(
        MOVED,
        *nodes,
        holds=[OWN],
        current_node=NodeName("b"),
        moving=InstanceId("i-1"),
        avoid=("b",),
    )

    assert chosen(decision) == ["a"]


def test_stickiness_keeps_an_instance_where_it_is_until_another_is_clearly_better() -> None:
    moved: Any = {"current_node": NodeName("b"), "moving": InstanceId("i-1")}
    hold = [a_hold("b", "web", instance=InstanceId("i-1"), workload="web")]
    nodes = [a_node("a", load=0.0), a_node("b", load=1.0)]

    assert chosen(place(a_workload(), *nodes, holds=hold, **moved)) == ["b"]
    assert chosen(place(a_workload(), *nodes, holds=hold)) == ["a"]
    assert chosen(
        place(a_workload(), *nodes, holds=hold, weights=Weights(stickiness=9.9), **moved)
    ) == ["a"]


@pytest.mark.parametrize(
    ("requirement", "attached"),
    [
        ("sensor.camera", True),
        ("device.*", True),
        ("feed.adsb.*", True),
        ("accel.cuda", False),
        ("sensors.camera", False),
        ("node.sensor", False),
    ],
)
def test_attached_hardware(requirement: str, *, attached: bool) -> None:
    wanted = needs(requirement)

    assert needs_attached_hardware(a_workload(wanted)) is attached
    assert needs_attached_hardware(a_workload(variants=(native("n"), emulated("e", wanted)))) is (
        attached
    )
    assert needs_attached_hardware(a_workload()) is False


def test_what_a_placement_holds() -> None:
    spec = replace(MOVED, ports=(("http", 80), ("admin", 0)))
    [placement] = place(spec, a_node("b", GPU)).placements

    assert hold_of(spec, placement.chosen, InstanceId("i-1")) == OWN
    assert hold_of(spec, placement.chosen, InstanceId("i-1"), "web-7").name == "web-7"
    assert hold_of(spec, placement.chosen, InstanceId("")).kind is Kind.SERVICE


def test_a_pass_sees_what_it_has_placed_as_if_the_ledger_told_it() -> None:
    nodes = [a_node(name, GPU, load=n / 10) for n, name in enumerate("abcd")]
    requests = [
        PlaceRequest(a_workload(memory_bytes=5 * GIB), count=2),
        PlaceRequest(MOVED),
        PlaceRequest(a_workload(memory_bytes=5 * GIB), avoid=(NodeName("a"),)),
        PlaceRequest(MOVED),
        PlaceRequest(a_workload(memory_bytes=9 * GIB), count=9),
        PlaceRequest(MOVED, current_node=NodeName("c"), moving=InstanceId("i-2")),
    ]
    shared = Pass(nodes, ClusterState(), Weights(), NOW)
    holds: list[Any] = []

    for turn, request in enumerate(requests):
        decision = shared.decide(request)
        alone = Pass(nodes, ClusterState(holds=tuple(holds)), Weights(), NOW).decide(request)
        assert decision == alone
        assert shared.decide(request) == decision, "deciding changes nothing"
        ids = [InstanceId(f"i-{turn}-{n}") for n in range(len(decision.placements))]
        if turn == 1:
            ids = [InstanceId("i-2")]
        shared.take(decision, ids)
        holds += [
            hold_of(request.workload, placement.chosen, instance)
            for placement, instance in zip(decision.placements, ids, strict=True)
        ]
    assert holds


def test_a_pass_may_be_given_the_gates_verdicts_for_each_request() -> None:
    shared = Pass([a_node("a", gate=None), a_node("b")], ClusterState(), Weights(), NOW)
    request = PlaceRequest(a_workload())
    denied = Verdict(Ruling.DENIED, "freeze")

    assert chosen(shared.decide(request)) == ["b"]
    gates = {NodeName("a"): ALLOWED, NodeName("b"): denied}
    assert chosen(shared.decide(request, gates)) == ["a"]
    assert chosen(shared.decide(request, {NodeName("a"): ALLOWED})) == ["a"]
    assert constraints(shared.decide(request, {}), "a") == ["gate"]
    assert chosen(shared.decide(request)) == ["b"]


def gpu(gib: int) -> Capability:
    return a_capability("accel.cuda", memory_bytes=gib * GIB)


def test_scores_are_measured_against_the_survivors_left_as_nodes_fill_up() -> None:
    spec = a_workload(needs("accel.cuda", exclusive=True))
    nodes = [a_node("a", gpu(8)), a_node("b", gpu(16)), a_node("c", gpu(32))]

    decision = place(spec, *nodes, count=3)

    assert chosen(decision) == ["a", "b", "c"]
    assert [one.chosen.terms.accel_fit for one in decision.placements] == [10.0, 10.0, 10.0]
    assert [one.terms.accel_fit for one in decision.ranked] == [10.0, 5.0, 2.5]


def test_and_again_when_the_best_comes_back() -> None:
    spec = a_workload(needs("accel.cuda", exclusive=True))
    nodes = [a_node("a", gpu(8)), a_node("b", gpu(16))]
    taken = [a_hold("a", "x", claims=(Claim("accel.cuda", exclusive=True),))]
    shared = Pass(nodes, ClusterState(holds=tuple(taken)), Weights(), NOW)

    before = shared.decide(PlaceRequest(spec))
    moved = shared.decide(PlaceRequest(spec, current_node=NodeName("a"), moving=InstanceId("i-x")))

    assert [one.terms.accel_fit for one in before.ranked] == [10.0]
    assert [(one.node, one.terms.accel_fit) for one in moved.ranked] == [("a", 10.0), ("b", 5.0)]
    assert shared.decide(PlaceRequest(spec)) == before


def test_what_was_tried_for_a_decision_leaves_no_trace_in_the_pass() -> None:
    cluster = ClusterState(holds=(a_hold("b", "web", instance=InstanceId("i-1")),))
    nodes = [a_node("a"), a_node("b"), a_node("c", cordoned=True)]
    shared = Pass(nodes, cluster, Weights(), NOW)
    spec = a_workload(memory_bytes=6 * GIB)
    plain = PlaceRequest(spec)
    before = shared.decide(plain)

    for tried in (
        PlaceRequest(spec, count=9),
        PlaceRequest(spec, count=2, pin=NodeName("a")),
        PlaceRequest(spec, count=3, pin=NodeName("a")),
        PlaceRequest(spec, current_node=NodeName("b"), moving=InstanceId("i-1")),
        PlaceRequest(spec, current_node=NodeName("a")),
        PlaceRequest(spec, current_node=NodeName("c"), why=(NodeName("c"),)),
    ):
        assert shared.decide(tried) == Pass(nodes, cluster, Weights(), NOW).decide(tried)
        assert shared.decide(plain) == before
