"""What is odd about a node, and when it is not."""

from dataclasses import replace

import pytest

from tests.unit.test_answer_facts import _answer as answer
from tests.unit.test_identity import NODE
from wlctl.host.probe import read
from wlctl.lifecycle.oddity import DISK_LEAST_BYTES, SKEW_MAX_MS, oddities
from wlctl.model.facts import Capability, CapabilityState, Facts
from wlctl.model.node import Liveness, Node, Settles, Tier

NOW = 1_700_000_000_250

FACTS = replace(
    read(
        answer("controllers cpu memory pids", machine_id="m1", disk_free_kib=str(1 << 20))
    ).as_facts(seq=1, probed_at_ms=NOW),
    instances=(),
)


def node(facts: Facts | None = FACTS, **changes: object) -> Node:
    return replace(NODE, facts=facts, **changes)  # type: ignore[arg-type]  # fields of Node


def codes(one: Node, now_ms: int = NOW) -> list[str]:
    return [odd.code for odd in oddities(one, now_ms)]


def test_nothing_is_odd_about_a_node_that_is_well() -> None:
    assert codes(node()) == []


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        pytest.param({"clock_skew_ms": SKEW_MAX_MS}, None, id="a clock off by what is allowed"),
        pytest.param({"clock_skew_ms": SKEW_MAX_MS + 1}, "clock-skew", id="fast by more"),
        pytest.param({"clock_skew_ms": -SKEW_MAX_MS - 1}, "clock-skew", id="slow by more"),
        pytest.param({"missing": ("flock",)}, "missing-tools", id="a tool is gone"),
        pytest.param({"machine_id": "m2"}, "machine-id", id="another machine id"),
        pytest.param(
            {"cgroup_root": "", "containment": "leader-only"}, "no-cgroup", id="no cgroup"
        ),
        pytest.param({"disk_free_bytes": DISK_LEAST_BYTES}, None, id="just enough room"),
        pytest.param({"disk_free_bytes": DISK_LEAST_BYTES - 1}, "disk-full", id="too little"),
        pytest.param(
            {"capabilities": (Capability("node.cgroup", {"controllers": ("cpu",)}),)},
            "no-controllers",
            id="not all controllers",
        ),
        pytest.param(
            {
                "capabilities": (
                    *FACTS.capabilities,
                    Capability("accel.cuda", state=CapabilityState.DEGRADED),
                )
            },
            "degraded",
            id="a card that does not answer",
        ),
    ],
)
def test_what_a_probe_saw_is_odd(facts: dict[str, object], code: str | None) -> None:
    found = replace(FACTS, **facts)  # type: ignore[arg-type]  # fields of Facts

    assert codes(node(found)) == ([code] if code else [])


@pytest.mark.parametrize(
    ("containment", "code"),
    [
        pytest.param("leader-only", ["leader-only"], id="it has none to give"),
        pytest.param("isolated", [], id="it has, so the word means nothing"),
    ],
)
def test_what_an_operator_settles_for_is_odd_where_it_comes_true(
    containment: str, code: list[str]
) -> None:
    root = "/sys/fs/cgroup/wlctl" if containment == "isolated" else ""
    facts = replace(FACTS, containment=containment, cgroup_root=root)

    assert codes(node(facts, settles=Settles.LEADER_ONLY)) == code


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        pytest.param({"tier": Tier.DISCOVERED}, "discovered", id="a tier for nothing"),
        pytest.param({"cordoned": True}, "cordoned", id="a cordon without an end"),
        pytest.param(
            {"cordoned": True, "cordoned_until_ms": NOW + 1}, "cordoned", id="a cordon to its end"
        ),
        pytest.param({"cordoned": True, "cordoned_until_ms": NOW}, None, id="and not at its end"),
        pytest.param({"failure": "foreign-node"}, "foreign-node", id="another identity"),
        pytest.param({"failure": "two-machines"}, "two-machines", id="two machines"),
        pytest.param({"failure": "host-key-changed"}, "host-key-changed", id="another key"),
        pytest.param(
            {"liveness": Liveness.DEAD, "attested_dead_at_ms": NOW},
            "attested-dead",
            id="an operator vouched for it",
        ),
        pytest.param(
            {"liveness": Liveness.SUSPECT, "failure": "connect-timeout", "failed_contacts": 2},
            "connect-timeout",
            id="silence",
        ),
    ],
)
def test_how_it_stands_is_odd(changes: dict[str, object], code: str | None) -> None:
    assert codes(node(**changes)) == ([code] if code else [])  # type: ignore[arg-type]  # fields of Node


@pytest.mark.parametrize(("after_ms", "expired"), [(0, True), (-1, False)])
def test_facts_that_ran_out_are_odd(after_ms: int, expired: bool) -> None:
    at_ms = FACTS.expires_at_ms + after_ms

    assert codes(node(), at_ms) == (["facts-expired"] if expired else [])


def test_a_node_without_facts_is_said_to_have_none() -> None:
    assert codes(node(None)) == ["facts-expired"]
