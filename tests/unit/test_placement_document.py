"""What is kept of a decision: complete, canonical, and the same for equal decisions."""

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.fleets import GIB, NOW, a_capability, a_node, a_workload, needs, place, where
from wlctl.errors import InvalidFile
from wlctl.model.fleet import Ruling, Verdict
from wlctl.model.ids import NodeName
from wlctl.model.node import Tier
from wlctl.model.placement import Decision, Weights
from wlctl.model.workload import PerfTarget, Preference
from wlctl.placement.document import MOST_DISPATCHED, decode, document, encode
from wlctl.placement.shapes import SCHEMA


def a_decision(**given: Any) -> Decision:
    nodes = [
        a_node("a", a_capability("os.linux"), load=0.1),
        a_node("b", a_capability("os.linux")),
        a_node("c", tier=Tier.DISCOVERED),
        a_node("d", tier=Tier.DISCOVERED),
    ]
    return place(a_workload(needs("os.linux"), memory_bytes=GIB), *nodes, **given)


def test_the_document_of_a_small_decision() -> None:
    doc = document(a_decision(prefer=("b",), where=(needs("os.*"),)))

    assert doc["schema"] == SCHEMA == "wlctl.decision/1"
    assert doc["decided_at_ms"] == NOW
    assert doc["outcome"] == "placed"
    assert doc["fits"] == 1
    assert doc["tiers"] == ["native", "emulated", "dev_fallback"]
    assert doc["options"] == {
        "allow_emulated": False,
        "avoid": [],
        "count": 1,
        "current_node": None,
        "pin": None,
        "prefer": ["b"],
        "where": ["os.*"],
    }
    assert [one["node"] for one in doc["eligible"]] == ["a", "b"]
    assert doc["eligible"][1] == {
        "assigned": ["os.linux", "os.linux"],
        "flags": [],
        "node": "b",
        "terms": {
            "accel_fit": 10.0,
            "execution": 100.0,
            "load": 5.0,
            "locality": 0.0,
            "perf": 0.0,
            "room": 9.375,
            "spread": 10.0,
            "stickiness": 0.0,
        },
        "tier": "native",
        "total": 134.375,
        "variant": "default",
    }
    [placement] = doc["placements"]
    assert placement["chosen"] == doc["eligible"][1]
    assert (placement["affinity"], placement["dispatch"]) == (True, ["b", "a"])
    assert doc["rejected"] == [
        {
            "nodes": ["c", "d"],
            "rejections": [
                {
                    "change": "raise tier discovered -> paired",
                    "constraint": "trust",
                    "detail": "tier discovered, needs paired",
                    "effort": 2.1,
                },
                {
                    "change": "add os.*",
                    "constraint": "requirements",
                    "detail": "os.*: not advertised",
                    "effort": 6.4,
                },
                {
                    "change": "add os.linux",
                    "constraint": "requirements",
                    "detail": "os.linux: not advertised",
                    "effort": 6.4,
                },
            ],
        }
    ]
    assert doc["summary"][0] == {
        "alone": 0,
        "among_others": 2,
        "constraint": "trust",
        "what": "tier below paired",
    }
    assert doc["relaxations"] == {"exact": True, "single": [], "smallest": None}
    assert list(doc["checks"]) == ["b"]
    assert doc["weights"]["native"] == 100.0
    assert doc["weights"]["dev_class"] == "node.class.dev"


def test_the_document_tells_all_of_the_workload() -> None:
    spec = a_workload(
        needs("b"),
        needs("a.*", where("n", "gte", 2), count=2, exclusive=True),
        version="2.0",
        ports=(("http", 80),),
        labels=("y", "x"),
        excludes=("z",),
        perf=PerfTarget("perf.cpu", 1.5),
        preferences=(Preference(needs("ssd"), 2.0),),
        sticky=True,
        cpu_cores=1,
    )

    assert document(place(spec, a_node()))["workload"] == {
        "accel_memory_bytes": 0,
        "cpu_cores": 1.0,
        "disk_bytes": 0,
        "excludes": ["z"],
        "kind": "service",
        "labels": ["x", "y"],
        "latency_class": "batch",
        "memory_bytes": 0,
        "min_provenance": "claimed",
        "min_trust": "paired",
        "name": "web",
        "perf": "perf.cpu >= 1.5",
        "ports": {"http": 80},
        "preferences": ["ssd 2.00"],
        "requirements": ["b", "exclusive 2 a.* (n >= 2)"],
        "sticky": True,
        "variants": [{"execution": "native", "name": "default", "requirements": []}],
        "version": "2.0",
    }


def test_it_is_written_as_json_dumps_would_write_it() -> None:
    stored = encode(a_decision(why=("c",), count=2))

    plain = json.dumps(json.loads(stored), sort_keys=True, separators=(",", ":"))
    assert stored == plain.encode("ascii")


def test_the_same_decision_has_the_same_hash() -> None:
    digests = {
        hashlib.sha256(encode(decision)).hexdigest()
        for decision in (
            a_decision(),
            a_decision(weights=Weights(native=100, room=10)),
            replace(a_decision(), checks=dict(reversed([*a_decision().checks.items()]))),
        )
    }

    assert len(digests) == 1
    assert hashlib.sha256(encode(a_decision(prefer=("b",)))).hexdigest() not in digests


def test_the_deciding_rule_of_every_node_is_kept_eligible_or_not() -> None:
    allowed, denied = (
        Verdict(Ruling.ALLOWED, "web"),
        Verdict(Ruling.DENIED, "freeze", "till Monday"),
    )
    nodes = [a_node(name, gate=allowed) for name in ("a", "b", "c")]
    nodes += [a_node("d", gate=denied), a_node("e", gate=None), a_node("f", gate=denied)]
    nodes.append(a_node("g", gate=Verdict(Ruling.ALLOWED, "trusted-only")))

    gated = document(place(a_workload(), *nodes))["gated"]

    assert [(one["number"], one["ruling"], one["rule"], one["reason"]) for one in gated] == [
        (3, "allowed", "web", ""),
        (2, "denied", "freeze", "till Monday"),
        (1, "denied", "", "no verdict"),
        (1, "allowed", "trusted-only", ""),
    ]
    # By name only where the answer is not the commonest: the first is that of all others.
    assert [one["nodes"] for one in gated] == [[], ["d", "f"], ["e"], ["g"]]


def test_an_empty_fleet_asks_the_gate_nothing() -> None:
    assert document(place(a_workload()))["gated"] == []


def test_of_the_order_of_dispatch_the_first_are_kept_and_the_rest_counted() -> None:
    nodes = [a_node(f"n{n:02}") for n in range(MOST_DISPATCHED + 3)]

    [placement] = document(place(a_workload(), *nodes))["placements"]

    assert placement["dispatch"] == [f"n{n:02}" for n in range(MOST_DISPATCHED)]
    assert placement["dispatch_length"] == MOST_DISPATCHED + 3


def test_text_that_is_no_unicode_survives() -> None:
    doc = document(place(a_workload(labels=("\ud800",)), a_node("\udfff")))

    assert doc["workload"]["labels"] == ["\ud800"]
    assert doc["eligible"][0]["node"] == "\udfff"


def test_a_pinned_node_that_fails_keeps_its_check_list() -> None:
    doc = document(a_decision(pin=NodeName("c"), why=("a",)))

    assert doc["outcome"] == "unplaceable"
    assert sorted(doc["checks"]) == ["a", "c"]


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (b"", "not a decision: Expecting value"),
        (b"[" * 100_000, "not a decision: "),
        (b"\xff", "not a decision: "),
        (b"[]", "schema None, not wlctl.decision/1"),
        (b"{}", "schema None, not wlctl.decision/1"),
        (b'{"schema":"wlctl.decision/2"}', "schema 'wlctl.decision/2', not wlctl.decision/1"),
    ],
)
def test_what_is_no_decision_is_refused(stored: bytes, message: str) -> None:
    with pytest.raises(InvalidFile) as refusal:
        decode(stored)

    assert message in refusal.value.message
