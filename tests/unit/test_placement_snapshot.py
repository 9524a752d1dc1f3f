"""A fleet in a file: written and read back the same, and refused with its path when it is wrong."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from tests.unit.fleets import (
    ALLOWED,
    GIB,
    NOW,
    a_capability,
    a_hold,
    a_node,
    a_workload,
    needs,
    place,
)
from tests.unit.placement_strategies import situations
from wlctl.errors import InvalidFile
from wlctl.model.facts import Capability, CapabilityState, Provenance
from wlctl.model.fleet import Claim, ClusterState, NodeView, Reading, Ruling, Verdict
from wlctl.model.ids import NodeName
from wlctl.model.node import Liveness, Tier
from wlctl.model.placement import PlaceRequest, Weights
from wlctl.model.snapshot import SavedGate, Snapshot
from wlctl.placement.document import encode
from wlctl.placement.engine import decide
from wlctl.placement.snapshot import read
from wlctl.placement.snapshot.read import load
from wlctl.placement.snapshot.write import dump

SHARED = (a_capability("os.linux", kernel="6.1"), a_capability("mem.system", total_bytes=GIB))
FULL = Snapshot(
    nodes=(
        a_node("a", capabilities=SHARED, load=None, ports_listening=(22, 80)),
        a_node("b", capabilities=SHARED, gate=None, memory=None, disk=None, leader_only=True),
        a_node(
            "c",
            Capability(
                "accel.cuda",
                {"flags": ("a", 1, True), "n": 1.5},
                Provenance.MEASURED,
                CapabilityState.BUSY,
                exclusive=True,
            ),
            tier=Tier.TRUSTED,
            liveness=Liveness.DEAD,
            cordoned=True,
            facts_expire_at_ms=None,
            memory=Reading(10, 7, 2),
            gate=Verdict(Ruling.DEFERRED, "ceiling", "risky"),
        ),
    ),
    cluster=ClusterState(
        holds=(
            a_hold(
                "a",
                "x",
                labels=("l",),
                excludes=("e",),
                ports=(80,),
                claims=(Claim("accel.cuda", exclusive=True),),
                memory_bytes=1,
                accel_memory_bytes=2,
                cpu_cores=0.5,
                disk_bytes=3,
            ),
            a_hold("b", "pool", kind=None),
        ),
        retired=frozenset({NodeName("c"), NodeName("gone")}),
        revoked=frozenset({"key:k"}),
    ),
    weights=Weights(native=99.0, dev_class="node.class.laptop"),
    now_ms=NOW,
    gate=SavedGate("ann", {"permit": [{"id": "a"}, {"id": "b"}], "effect": {"ceiling": 0.5}}, "no"),
)


def test_a_snapshot_is_read_back_as_it_was_written() -> None:
    assert load(dump(FULL), "fleet.json") == FULL


def test_capability_lists_that_nodes_share_are_written_once_and_read_as_one() -> None:
    text = dump(FULL)

    assert text.count('"os.linux"') == 1
    first, second, _ = load(text, "fleet.json").nodes
    assert first.capabilities is second.capabilities


def test_a_snapshot_has_a_line_for_each_node_and_instance() -> None:
    lines = dump(FULL).splitlines()

    assert [line for line in lines if line.startswith('  {"name": "')] == lines[19:22]
    assert [line for line in lines if line.startswith('  {"node": "')] == lines[24:26]


def test_the_order_of_things_does_not_change_the_text() -> None:
    cluster = replace(FULL.cluster, holds=FULL.cluster.holds[::-1])

    assert dump(replace(FULL, nodes=FULL.nodes[::-1], cluster=cluster)) == dump(FULL)


def test_an_empty_fleet() -> None:
    empty = Snapshot((), ClusterState(), Weights(), 0)

    assert load(dump(empty), "f") == empty


def test_figures_that_are_none_are_left_out() -> None:
    odd = a_capability(
        "perf.x", value=float("nan"), top=float("inf"), list=(1.0, float("nan")), n=1
    )
    node = a_node("a", capabilities=(odd,), load=float("nan"))

    [found] = load(dump(replace(FULL, nodes=(node,), cluster=ClusterState())), "f").nodes

    assert found.capabilities[0].attrs == {"n": 1}
    assert found.load is None


@settings(deadline=None)
@given(situations())
def test_a_decision_is_the_same_from_a_snapshot(
    situation: tuple[PlaceRequest, list[NodeView], ClusterState],
) -> None:
    request, fleet, cluster = situation
    here = {node.name for node in fleet}
    cluster = replace(cluster, holds=tuple(one for one in cluster.holds if one.node in here))

    saved = load(dump(Snapshot(tuple(fleet), cluster, Weights(), NOW)), "f")

    assert encode(decide(request, saved.nodes, saved.cluster, saved.weights, saved.now_ms)) == (
        encode(decide(request, fleet, cluster, Weights(), NOW))
    )


def minimal(**given: Any) -> dict[str, Any]:
    return {"schema": "wlctl.snapshot/2", "taken_at_ms": NOW, "nodes": [{"name": "a"}], **given}


def test_what_is_not_told_has_a_default_and_no_gate_is_ungated() -> None:
    [node] = load(json.dumps(minimal()), "f").nodes

    assert node == NodeView(
        NodeName("a"), Tier.PAIRED, Liveness.ALIVE, gate=Verdict(Ruling.ALLOWED, "ungated")
    )


def test_a_snapshot_from_before_the_gate_was_saved_is_read() -> None:
    saved = load(json.dumps(minimal(schema="wlctl.snapshot/1")), "f")

    assert saved.gate is None
    assert [node.gate for node in saved.nodes] == [Verdict(Ruling.ALLOWED, "ungated")]


def test_a_small_fleet_may_be_written_by_hand() -> None:
    nodes = [
        {"name": "a", "facts_expire_at_ms": NOW + 1, "capabilities": [{"id": "os.linux"}]},
        {
            "name": "b",
            "facts_expire_at_ms": NOW + 1,
            "capability_set": "gpu",
            "capabilities": [{"id": "os.linux", "attrs": {"v": [1, "x"]}}],
        },
    ]
    sets = {"gpu": [{"id": "accel.cuda", "provenance": "measured"}]}
    saved = load(json.dumps(minimal(nodes=nodes, capability_sets=sets)), "f")

    decision = place(a_workload(needs("accel.cuda")), *saved.nodes)

    assert [one.node for one in decision.ranked] == ["b"]
    assert saved.nodes[1].capabilities == (
        Capability("accel.cuda", {}, Provenance.MEASURED),
        a_capability("os.linux", v=(1, "x")),
    )


def with_node(**given: Any) -> dict[str, Any]:
    return minimal(nodes=[{"name": "a"} | given])


def with_hold(**given: Any) -> dict[str, Any]:
    return minimal(instances=[{"node": "a", "instance": "i", "name": "x"} | given])


def with_capability(**given: Any) -> dict[str, Any]:
    return with_node(capabilities=[{"id": "x"} | given])


BYTES = "expected a whole number from 0 to 9007199254740991"
ID = "expected 1 to 256 printable characters"
MANY = [f"n{n}" for n in range(1 << 16)]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        pytest.param([], "$.schema: expected wlctl.snapshot/2, found null", id="a list"),
        pytest.param(
            minimal(schema="wlctl.snapshot/1", gate={}),
            "$.gate: expected one of the keys schema, taken_at_ms, weights, capability_sets, "
            "nodes, instances, retired, revoked, found an object",
            id="a gate before there was one",
        ),
        pytest.param(
            minimal(gate={"policy": {}}),
            "$.gate: expected the key principal, found an object",
            id="nobody asks",
        ),
        pytest.param(
            minimal(gate={"principal": "a", "policy": []}),
            "$.gate.policy: expected an object, found a list of 0",
            id="no tables of a policy",
        ),
        pytest.param(
            minimal(gate={"principal": "a", "policy": {}, "rules": []}),
            "$.gate.rules: expected one of the keys principal, policy, unreadable, "
            "found a list of 0",
            id="an unknown word about the gate",
        ),
        pytest.param({}, "$.schema: expected wlctl.snapshot/2, found null", id="no version"),
        pytest.param(
            minimal(schema="wlctl.snapshot/3", more="unknown"),
            "$.schema: expected wlctl.snapshot/2, found wlctl.snapshot/3",
            id="another version is told first",
        ),
        pytest.param(
            minimal(nodse=[]),
            "$.nodse: expected one of the keys schema, taken_at_ms, weights, gate, "
            "capability_sets, nodes, instances, retired, revoked, found a list of 0",
            id="an unknown key",
        ),
        pytest.param(
            {"schema": "wlctl.snapshot/2", "taken_at_ms": 0},
            "$: expected the key nodes, found an object",
            id="a missing key",
        ),
        pytest.param(
            minimal(taken_at_ms=1.5),
            "$.taken_at_ms: expected a whole number from 0 to 9007199254740991, found 1.5",
            id="a moment that is no whole number",
        ),
        pytest.param(
            minimal(nodes={}), "$.nodes: expected a list, found an object", id="no list"
        ),
        pytest.param(minimal(nodes=[7]), "$.nodes[0]: expected an object, found 7", id="no object"),
        pytest.param(
            minimal(nodes=[{"name": "a"}, {"name": "a"}]),
            "$.nodes[1].name: expected a name no other node has, found a",
            id="a name twice",
        ),
        pytest.param(with_node(name=""), f'$.nodes[0].name: {ID}, found ""', id="an empty name"),
        pytest.param(
            with_node(name="a\x1b"),
            f"$.nodes[0].name: {ID}, found a\\x1b",
            id="a control character",
        ),
        pytest.param(
            with_node(name=5),
            "$.nodes[0].name: expected a text of at most 65536 characters, found 5",
            id="a name that is a number",
        ),
        pytest.param(
            with_node(tier="owned"),
            "$.nodes[0].tier: expected one of discovered, paired, trusted, found owned",
            id="an unknown tier",
        ),
        pytest.param(
            with_node(liveness=None),
            "$.nodes[0].liveness: expected one of unknown, alive, suspect, dead, found null",
            id="null is no word",
        ),
        pytest.param(
            with_node(cordoned=0),
            "$.nodes[0].cordoned: expected true or false, found 0",
            id="zero is not false",
        ),
        pytest.param(
            with_node(load=1.01),
            "$.nodes[0].load: expected a number from 0 to 1, found 1.01",
            id="more load than all",
        ),
        pytest.param(
            with_node(load=True),
            "$.nodes[0].load: expected a number from 0 to 1, found true",
            id="true is not one",
        ),
        pytest.param(
            with_node(cpu_cores=-1),
            "$.nodes[0].cpu_cores: expected a number from 0 to 65536, found -1",
            id="negative cores",
        ),
        pytest.param(
            with_node(memory={"total_bytes": 2**53, "available_bytes": 0}),
            f"$.nodes[0].memory.total_bytes: {BYTES}, found 9007199254740992",
            id="more bytes than can be kept exactly",
        ),
        pytest.param(
            with_node(disk={"total_bytes": 1}),
            "$.nodes[0].disk: expected the key available_bytes, found an object",
            id="half a reading",
        ),
        pytest.param(
            with_node(ports_listening=[0]),
            "$.nodes[0].ports_listening[0]: expected a whole number from 1 to 65535, found 0",
            id="port 0",
        ),
        pytest.param(
            with_node(gate={"ruling": "maybe", "rule": "r"}),
            "$.nodes[0].gate.ruling: expected one of allowed, denied, deferred, found maybe",
            id="an unknown ruling",
        ),
        pytest.param(
            with_node(capability_set="none"),
            "$.nodes[0].capability_set: expected one of , found none",
            id="a set that is not there",
        ),
        pytest.param(
            minimal(capability_sets=[]),
            "$.capability_sets: expected an object, found a list of 0",
            id="sets without names",
        ),
        pytest.param(
            with_capability(id=None),
            "$.nodes[0].capabilities[0].id: expected a text of at most 65536 characters, "
            "found null",
            id="a capability without an id",
        ),
        pytest.param(
            with_capability(attrs={"n": {}}),
            "$.nodes[0].capabilities[0].attrs.n: expected text, a number, true, false, or a list "
            "of these, found an object",
            id="an attribute that is an object",
        ),
        pytest.param(
            with_capability(attrs={"n": [None]}),
            "$.nodes[0].capabilities[0].attrs.n[0]: expected text, a number, true, false, or a "
            "list of these, found null",
            id="an attribute that is a list of nothing",
        ),
        pytest.param(
            with_capability(attrs=dict.fromkeys(MANY[:257], 1)),
            "$.nodes[0].capabilities[0].attrs: expected at most 256 attributes, found an object",
            id="257 attributes",
        ),
        pytest.param(
            with_capability(state="gone"),
            "$.nodes[0].capabilities[0].state: expected one of available, busy, reserved, "
            "degraded, found gone",
            id="an unknown state",
        ),
        pytest.param(
            with_capability(provenance=2),
            "$.nodes[0].capabilities[0].provenance: expected one of claimed, probed, measured, "
            "found 2",
            id="a provenance that is a number",
        ),
        pytest.param(
            with_hold(node="b"),
            "$.instances[0].node: expected the name of a node of this snapshot, found b",
            id="an instance on no node",
        ),
        pytest.param(
            with_hold(kind="daemon"),
            "$.instances[0].kind: expected one of service, job, interval, found daemon",
            id="an unknown kind",
        ),
        pytest.param(
            with_hold(memory_bytes=-1),
            f"$.instances[0].memory_bytes: {BYTES}, found -1",
            id="negative memory",
        ),
        pytest.param(
            with_hold(claims=[{"key": "x"}]),
            "$.instances[0].claims[0]: expected the key exclusive, found an object",
            id="half a claim",
        ),
        pytest.param(
            with_hold(labels=["l"] * 257),
            "$.instances[0].labels: expected at most 256 entries, found a list of 257",
            id="257 labels",
        ),
        pytest.param(
            minimal(weights={"native": -1}),
            "$.weights.native: expected a number from 0 to 1e+12, found -1",
            id="a negative weight",
        ),
        pytest.param(
            minimal(weights={"dev_class": ""}),
            f'$.weights.dev_class: {ID}, found ""',
            id="no class",
        ),
        pytest.param(
            minimal(retired="a"), '$.retired: expected a list, found a', id="retired is no list"
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_file_path_and_what_was_expected(
    found: Any, message: str
) -> None:
    with pytest.raises(InvalidFile) as refusal:
        load(json.dumps(found), "fleet.json")

    assert refusal.value.message == f"fleet.json: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "fleet.json is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("{", "fleet.json is not JSON: Expecting property name"),
        ("[" * 100_000, "fleet.json is nested too deeply"),
        ('{"a": 1, "b": 2, "a": 3}', "fleet.json is not JSON: the key a is there twice"),
        ('{"\\u001b": 1, "\\u001b": 2}', "fleet.json is not JSON: the key \\x1b is there twice"),
        ('{"schema": NaN}', "fleet.json is not JSON: NaN is not a number"),
        ('{"schema": -Infinity}', "fleet.json is not JSON: -Infinity is not a number"),
        (f'{{"schema": {"9" * 5000}}}', "fleet.json is not JSON: Exceeds the limit"),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_strict_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidFile) as refusal:
        load(text, "fleet.json")

    assert refusal.value.message.startswith(message)


def test_a_number_beyond_all_floats_is_out_of_bounds_anywhere() -> None:
    text = json.dumps(with_capability(attrs={"n": 1})).replace('"n": 1', '"n": 1e999')

    with pytest.raises(InvalidFile, match=r"attrs\.n: expected a finite number, found inf"):
        load(text, "f")
    with pytest.raises(InvalidFile, match=r"load: expected a number from 0 to 1, found inf"):
        load(json.dumps(with_node(load=7)).replace("7", "1e999"), "f")


def test_a_file_that_is_too_large_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MAX_CHARACTERS", 99)

    with pytest.raises(InvalidFile, match="expected at most 99 characters, found 100"):
        load(" " * 100, "f")
    with pytest.raises(InvalidFile, match="is not JSON"):
        load(" " * 99, "f")


def test_too_many_nodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MAX_NODES", 2)

    assert len(load(json.dumps(minimal(nodes=[{"name": n} for n in "ab"])), "f").nodes) == 2
    with pytest.raises(InvalidFile, match=r"\$\.nodes: expected at most 2 entries"):
        load(json.dumps(minimal(nodes=[{"name": n} for n in "abc"])), "f")


def test_the_gate_may_be_told_to_deny() -> None:
    [node] = load(json.dumps(with_node(gate=None)), "f").nodes

    assert node.gate is None
    assert (
        load(json.dumps(with_node(gate={"ruling": "allowed", "rule": "paired-signed"})), "f")
        .nodes[0]
        .gate
        == ALLOWED
    )
