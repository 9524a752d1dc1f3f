"""A node as a decision sees it follows from what the ledger has of it."""

from dataclasses import replace

from tests.unit.fleets import ALLOWED, NOW, a_capability
from wlctl.model.facts import Facts
from wlctl.model.fleet import NodeView, Reading, view_of
from wlctl.model.ids import NodeName
from wlctl.model.node import Address, Liveness, Node, Tier, TransportKind

FACTS = Facts(
    seq=1,
    probed_at_ms=NOW,
    ttl_ms=900,
    node_id="0" * 32,
    machine_id="",
    boot_id="b",
    uptime_ms=5,
    clock_skew_ms=0,
    load=0.25,
    memory_total_bytes=100,
    memory_available_bytes=60,
    memory_ours_bytes=30,
    disk_free_bytes=70,
    cpu_cores=4,
    ports_listening=(22,),
    state_dir="/var/lib/wlctl",
    containment="isolated",
    cgroup_root="",
    instances=(),
    capabilities=(a_capability("os.linux"),),
)
NODE = Node(
    name=NodeName("a"),
    address=Address(TransportKind.LOCAL),
    tier=Tier.TRUSTED,
    liveness=Liveness.SUSPECT,
    cordoned=True,
    node_id="0" * 32,
    machine_id="",
    boot_id="b",
    failed_contacts=1,
    added_at_ms=NOW,
    seen_at_ms=None,
    facts=FACTS,
)


def test_a_probed_node() -> None:
    assert view_of(NODE, ALLOWED) == NodeView(
        name=NodeName("a"),
        tier=Tier.TRUSTED,
        liveness=Liveness.SUSPECT,
        cordoned=True,
        facts_expire_at_ms=NOW + 900,
        capabilities=FACTS.capabilities,
        load=0.25,
        memory=Reading(100, 60, 30),
        cpu_cores=4,
        disk=Reading(70, 70),
        ports_listening=(22,),
        gate=ALLOWED,
    )


def test_capabilities_stay_the_same_object_so_that_equal_nodes_are_judged_once() -> None:
    assert view_of(NODE, None).capabilities is FACTS.capabilities


def test_what_the_operator_says_comes_on_top() -> None:
    label = a_capability("node.label.env", value="prod")

    assert view_of(NODE, None, (label,)).capabilities == (*FACTS.capabilities, label)
    assert view_of(replace(NODE, facts=None), None, (label,)).capabilities == (label,)


def test_a_node_that_was_never_probed_has_nothing() -> None:
    view = view_of(replace(NODE, facts=None), ALLOWED)

    assert (view.facts_expire_at_ms, view.memory, view.cpu_cores) == (None, None, 0)
    assert (view.tier, view.liveness, view.cordoned) == (Tier.TRUSTED, Liveness.SUSPECT, True)
    assert view.gate is ALLOWED


def test_others_use_what_neither_is_free_nor_ours() -> None:
    assert Reading(100, 60, 30).others_bytes == 10
    assert Reading(100, 60, 41).others_bytes == 0
