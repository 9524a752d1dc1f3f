"""Whether what answers is the node that was added."""

from dataclasses import replace

import pytest

from wlctl.lifecycle.identity import CLOCK_MARGIN_MS, Stranger, judge_identity
from wlctl.model.ids import NodeName
from wlctl.model.node import Address, Liveness, Node, Tier, TransportKind

SEEN = 1_000_000_000
NOW = SEEN + 60_000
SINCE_SEEN = NOW - SEEN

NODE = Node(
    name=NodeName("elm"),
    address=Address(TransportKind.LOCAL),
    tier=Tier.PAIRED,
    liveness=Liveness.ALIVE,
    cordoned=False,
    node_id="n1",
    machine_id="m1",
    boot_id="b1",
    failed_contacts=0,
    added_at_ms=0,
    seen_at_ms=SEEN,
    facts=None,
)


@pytest.mark.parametrize(
    ("says", "verdict"),
    [
        pytest.param({}, None, id="it is itself"),
        pytest.param({"uptime_ms": 10**12}, None, id="and under its boot, however long it is up"),
        pytest.param({"machine_id": "m2"}, None, id="and its state was moved to another machine"),
        pytest.param({"node_id": "n2"}, Stranger.EMPTIED, id="another state on its machine"),
        pytest.param(
            {"node_id": "n2", "machine_id": "m2"}, Stranger.REPLACED, id="another machine"
        ),
        pytest.param({"node_id": "n2", "machine_id": ""}, Stranger.REPLACED, id="one of no id"),
        pytest.param({"boot_id": "b2", "uptime_ms": 1}, None, id="it was started anew just now"),
        pytest.param(
            {"boot_id": "b2", "uptime_ms": SINCE_SEEN + CLOCK_MARGIN_MS},
            None,
            id="it was started anew at the margin",
        ),
        pytest.param(
            {"boot_id": "b2", "uptime_ms": SINCE_SEEN + CLOCK_MARGIN_MS + 1},
            Stranger.TWIN,
            id="a boot that was under way before the margin",
        ),
        pytest.param(
            {"boot_id": "b2", "uptime_ms": 10**12, "now_ms": SEEN - 1},
            None,
            id="our own clock was set back, so nothing can be told",
        ),
        pytest.param(
            {"boot_id": "b2", "uptime_ms": 10**12, "now_ms": SEEN},
            Stranger.TWIN,
            id="our own clock stands where it stood at the last reading",
        ),
    ],
)
def test_what_answers_is_judged_by_what_it_says(
    says: dict[str, object], verdict: Stranger | None
) -> None:
    usual = {"node_id": "n1", "machine_id": "m1", "boot_id": "b1", "uptime_ms": 5, "now_ms": NOW}

    assert judge_identity(NODE, **{**usual, **says}) is verdict  # type: ignore[arg-type]  # by name


def test_a_node_that_was_never_seen_has_no_twin() -> None:
    unseen = replace(NODE, seen_at_ms=None)

    assert (
        judge_identity(
            unseen, node_id="n1", machine_id="m1", boot_id="b2", uptime_ms=10**12, now_ms=NOW
        )
        is None
    )
