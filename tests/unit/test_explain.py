"""Explanations of small fleets, held to golden files short enough to read."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.fleets import (
    GIB,
    MIB,
    MINUTE,
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
from wlctl.model.facts import Capability, CapabilityState, Provenance
from wlctl.model.fleet import Claim, ClusterState, Reading, Ruling, Verdict
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.node import Liveness, Tier
from wlctl.model.placement import Decision
from wlctl.model.workload import LatencyClass, PerfTarget, Preference
from wlctl.placement.document import document
from wlctl.placement.explain import MOST_SHOWN, explain, nearest, summary, why_not

GOLDEN = Path(__file__).parent / "golden"
LINUX = a_capability("os.linux")
PYTHON = needs("runtime.python", where("version", "gte", "3.11"))


def python(version: str) -> Capability:
    return a_capability("runtime.python", version=version)


def gpu(index: int, gib: int) -> Capability:
    return a_capability("accel.cuda", index=index, memory_bytes=gib * GIB)


def label(key: str, value: str) -> Capability:
    return Capability(f"node.label.{key}", {"value": value}, Provenance.CLAIMED)


def one_node() -> Decision:
    return place(a_workload(needs("os.linux"), version="1.4.2"), a_node("web1", LINUX))


def an_empty_fleet() -> Decision:
    return place(a_workload(needs("os.linux")))


def everything_wrong_at_once() -> Decision:
    spec = a_workload(
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
    )
    slow = Capability("perf.cpu.single", {"value": 61.5}, Provenance.MEASURED)
    node = a_node(
        "old",
        tier=Tier.DISCOVERED,
        liveness=Liveness.DEAD,
        cordoned=True,
        facts_expire_at_ms=NOW - 26 * 60 * MINUTE,
        capabilities=(slow, Capability("os.linux", {}, Provenance.CLAIMED)),
        memory=None,
        cpu_cores=0,
        disk=None,
        ports_listening=(80,),
        gate=Verdict(Ruling.DENIED, "freeze", "change freeze until Monday"),
    )
    cluster = ClusterState(
        holds=(a_hold("old", "db-1", labels=("db",), excludes=("web",)),),
        retired=frozenset({NodeName("old")}),
        revoked=frozenset({"key:k"}),
    )
    return place(spec, node, cluster=cluster)


def three_tiers_and_a_preference() -> Decision:
    spec = a_workload(
        variants=(native("arm", needs("cpu.arch.arm64")), emulated("any")),
        preferences=(Preference(needs("store.ssd"), 7.5),),
    )
    arm, dev = a_capability("cpu.arch.arm64"), a_capability("node.class.dev")
    nodes = [
        a_node("arm1", arm, a_capability("store.ssd"), load=0.9),
        a_node("arm2", arm, load=0.1),
        a_node("laptop", arm, dev, load=None),
        a_node("x86", load=0.0),
    ]
    return place(
        spec, *nodes, allow_emulated=True, prefer=("arm1", "x86"), avoid=("laptop", "arm2")
    )


def a_pin_that_cannot_be() -> Decision:
    nodes = [a_node("a", LINUX), a_node("b", tier=Tier.DISCOVERED)]
    return place(a_workload(needs("os.linux")), *nodes, pin=NodeName("b"))


def three_copies() -> Decision:
    spec = a_workload(
        needs("accel.cuda", exclusive=True), labels=("api",), ports=(("http", 8080),), cpu_cores=2
    )
    nodes = [a_node("a", gpu(0, 8), gpu(1, 8)), a_node("b", gpu(0, 24)), a_node("c", gpu(0, 80))]
    return place(spec, *nodes, count=3)


def more_copies_than_fit() -> Decision:
    spec = a_workload(labels=("db",), excludes=("db",), memory_bytes=6 * GIB)
    return place(spec, a_node("a"), a_node("b"), count=4)


def contended_devices() -> Decision:
    spec = a_workload(
        needs("accel.cuda", exclusive=True),
        variants=(
            native("two", needs("accel.*", count=2, exclusive=True)),
            native("big", needs("accel.cuda", where("memory_bytes", "gte", 40 * GIB))),
        ),
    )
    taken = a_hold("c", "train-1", claims=(Claim("accel.cuda#index=0", exclusive=True),))
    broken = Capability("accel.cuda", {}, state=CapabilityState.DEGRADED)
    nodes = [a_node("a", gpu(0, 8), gpu(1, 24)), a_node("b", broken), a_node("c", gpu(0, 80))]
    return place(spec, *nodes, holds=[taken])


def only_emulated() -> Decision:
    spec = a_workload(
        variants=(native("arm", needs("cpu.arch.arm64")), emulated("qemu", needs("os.linux")))
    )
    return place(spec, a_node("a", LINUX), a_node("b"))


def versions_and_labels() -> Decision:
    asked = needs("node.label.env", where("value", "eq", "prod"), min_provenance=Provenance.CLAIMED)
    nodes = [
        a_node("a", python("3.9"), label("env", "prod")),
        a_node("b", python("3.11"), label("env", "test")),
        a_node("c", python("3.12.1"), label("env", "prod")),
        a_node("d", a_capability("runtime.python", version=3.12), label("env", "prod")),
        a_node("e", label("env", "prod")),
    ]
    return place(a_workload(PYTHON), *nodes, where=(asked,))


def memory_of_all_kinds() -> Decision:
    spec = a_workload(memory_bytes=8 * GIB, accel_memory_bytes=4 * GIB)
    vram = a_capability("mem.vram", total_bytes=6 * GIB)
    unified = (a_capability("mem.unified", total_bytes=12 * GIB),)
    nodes = [
        a_node("discrete", vram),
        a_node("foreign", vram, memory=Reading(16 * GIB, 5 * GIB + 100 * MIB)),
        a_node("plain"),
        a_node("promised", vram),
        a_node("unified", capabilities=unified, memory=Reading(12 * GIB, 12 * GIB)),
        a_node("unified-used", capabilities=unified, memory=Reading(12 * GIB, 12 * GIB - 1)),
    ]
    holds = [
        a_hold("promised", "x", memory_bytes=9 * GIB, accel_memory_bytes=3 * GIB),
        a_hold("discrete", "y", memory_bytes=8 * GIB, accel_memory_bytes=2 * GIB),
    ]
    return place(spec, *nodes, holds=holds)


def a_move() -> Decision:
    own = a_hold("b", "web", instance=InstanceId("i-1"), workload="web", memory_bytes=9 * GIB)
    return place(
        a_workload(memory_bytes=9 * GIB, sticky=True),
        a_node("a", load=0.0),
        a_node("b", load=0.99),
        holds=[own],
        current_node=NodeName("b"),
        moving=InstanceId("i-1"),
        avoid=("b",),
        why=("a",),
    )


def measured_speed() -> Decision:
    def speed(value: float) -> Capability:
        return Capability("perf.disk", {"value": value}, Provenance.MEASURED)

    spec = a_workload(perf=PerfTarget("perf.disk", 200.0), latency_class=LatencyClass.INTERACTIVE)
    nodes = [
        a_node("fast", speed(450.0)),
        a_node("slow", speed(199.0)),
        a_node("steady", speed(225.0), load=0.0),
        a_node("unknown"),
    ]
    return place(spec, *nodes)


def hostile_words() -> Decision:
    spec = a_workload(
        needs("os.li\N{LATIN SMALL LETTER N WITH TILDE}ux"),
        name="we\N{LATIN SMALL LETTER B WITH STROKE}",
        labels=("\x1b[2J\N{RIGHT-TO-LEFT OVERRIDE}web",),
    )
    holds = [a_hold("a\x1b[31m", "evil\r\nPLACED", excludes=spec.policy.labels)]
    denial = Verdict(Ruling.DENIED, "r\x07", "\ud800\N{ZERO WIDTH SPACE}")
    return place(
        spec, a_node("a\x1b[31m"), a_node("b\nc", gate=denial), holds=holds, avoid=("b\nc",)
    )


def a_fleet_too_large_to_read() -> Decision:
    spec = a_workload(
        needs("accel.cuda"), PYTHON, memory_bytes=14 * GIB, ports=(("http", 8080),), cpu_cores=2
    )
    nodes = [
        a_node(
            f"n{n:03}",
            *([gpu(0, 8 << n % 3)] if n % 3 == 0 else []),
            python("3.11" if n % 4 else "3.9"),
            load=n % 10 / 10,
            memory=Reading(16 * GIB, (n * 37 % 17) * GIB + n * MIB),
            liveness=Liveness.DEAD if n % 40 == 39 else Liveness.ALIVE,
            facts_expire_at_ms=NOW + MINUTE if n % 13 else NOW - n * MINUTE,
            ports_listening=(8080,) if n % 25 == 0 else (),
        )
        for n in range(300)
    ]
    return place(spec, *nodes)


SCENES: list[Callable[[], Decision]] = [
    one_node,
    an_empty_fleet,
    everything_wrong_at_once,
    three_tiers_and_a_preference,
    a_pin_that_cannot_be,
    three_copies,
    more_copies_than_fit,
    contended_devices,
    only_emulated,
    versions_and_labels,
    memory_of_all_kinds,
    a_move,
    measured_speed,
    hostile_words,
    a_fleet_too_large_to_read,
]
by_name = pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)


@by_name
def test_an_explanation_reads_as_it_should(
    scene: Callable[[], Decision], golden: Callable[[Path, str], None]
) -> None:
    golden(GOLDEN / f"{scene.__name__}.txt", explain(scene()))


@by_name
def test_an_explanation_holds_no_character_that_does_not_show(
    scene: Callable[[], Decision],
) -> None:
    decision = scene()
    texts = [explain(decision, everything=True)]
    texts += [why_not(decision, one) or "" for one in (*decision.rejected, *decision.checks)]

    for text in texts:
        assert text.endswith("\n")
        assert text.replace("\n", "").isprintable()


@by_name
def test_every_node_and_reason_is_there_when_everything_is_wanted(
    scene: Callable[[], Decision],
) -> None:
    decision = scene()
    text = explain(decision, everything=True)

    assert "more (--all)" not in text
    doc = document(decision)
    for candidate in doc["eligible"]:
        assert f" {candidate['total']:.2f}" in text
    for group in doc["rejected"]:
        for one in group["rejections"]:
            assert f"    {one['constraint']}: {one['detail']}\n" in text


def test_of_a_large_fleet_twenty_are_listed_and_the_rest_counted() -> None:
    nodes = [a_node(f"ok{n:02}") for n in range(MOST_SHOWN + 1)]
    nodes += [a_node(f"no{n:02}", tier=Tier.DISCOVERED) for n in range(MOST_SHOWN + 2)]

    text = explain(place(a_workload(), *nodes))

    assert text.count("… and 1 more (--all)") == 1
    assert text.count("… and 2 more (--all)") == 2
    assert "ok19" in text
    assert "ok20 " not in text
    assert "\n  no19: " in text
    assert "\n  no20: " not in text


def test_a_fleet_of_exactly_twenty_is_listed_whole() -> None:
    nodes = [a_node(f"n{n}") for n in range(MOST_SHOWN)]

    assert "--all" not in explain(place(a_workload(), *nodes))


def test_the_gate_is_told_in_one_line_where_it_says_the_same_everywhere() -> None:
    text = explain(place(a_workload(), a_node("a"), a_node("b")))

    assert "\nthe gate: all allowed by paired-signed\n" in text


def test_the_gate_is_told_rule_by_rule_and_nodes_by_name_where_they_are_few() -> None:
    denied = Verdict(Ruling.DENIED, "no-permit", "web: the node is discovered, not paired")
    nodes = [a_node(f"ok{n}") for n in range(30)] + [a_node("no1", gate=denied)]
    nodes += [a_node(f"t{n:02}", gate=Verdict(Ruling.ALLOWED, "t")) for n in range(MOST_SHOWN + 1)]
    decision = place(a_workload(), *nodes)

    text = explain(decision)

    shown = ", ".join(f"t{n:02}" for n in range(MOST_SHOWN))
    assert "\nthe gate:\n  30 allowed by paired-signed\n" in text
    assert f"\n  21 allowed by t ({shown}, … and 1 more (--all))\n" in text
    assert "\n  1 denied by no-permit: web: the node is discovered, not paired (no1)\n" in text
    assert "t20)" in explain(decision, everything=True)


def test_why_not_names_the_rule_by_which_the_gate_let_a_node_pass() -> None:
    one = a_node("a", gate=Verdict(Ruling.ALLOWED, "t"))
    nodes = [one, *(a_node(f"b{n}", tier=Tier.DISCOVERED) for n in range(2))]
    decision = replace(place(a_workload(), *nodes), checks={})

    assert "  ok   gate: allowed by t\n" in (why_not(decision, "a") or "")
    assert "  ok   gate: allowed by paired-signed\n" in (why_not(decision, "b1") or "")


def test_the_summary_tells_what_rejects_alone_and_what_among_others() -> None:
    spec = a_workload(needs("os.linux"), memory_bytes=GIB)
    nodes = [
        a_node("a", LINUX),
        a_node("b"),
        a_node("c", capabilities=(), memory=Reading(GIB - 1, GIB - 1)),
        a_node("d", LINUX, facts_expire_at_ms=NOW),
    ]

    short = "memory (best free 1023.99 MiB, need 1 GiB)"

    assert summary(document(place(spec, *nodes))) == [
        f"4 nodes: 1 eligible; 2 lack os.linux; 1 facts expired; 1 {short}",
        "rejected by this alone / among others:",
        "  1 / 1  lack os.linux",
        "  1 / 0  facts expired",
        f"  0 / 1  {short}",
    ]


@pytest.mark.parametrize(
    ("given", "change"),
    [
        ({"facts_expire_at_ms": NOW - 3 * MINUTE}, "re-probe: facts expired 3 m ago"),
        ({"facts_expire_at_ms": None}, "probe: no facts yet"),
        ({"cordoned": True}, "uncordon it"),
        ({"tier": Tier.PAIRED}, "raise tier paired -> trusted"),
        ({"memory": Reading(16 * GIB, 8 * GIB - 512 * MIB)}, "needs 512 MiB more memory"),
        ({"cpu_cores": 1.5}, "needs 0.5 more cores"),
        ({"disk": Reading(5 * GIB, 5 * GIB)}, "needs 5 GiB more disk"),
        ({"ports_listening": (80,)}, "free port 80"),
        ({"held": {"ports": (80,)}}, "move other away"),
        ({"held": {"labels": ("db",)}}, "move other away"),
        ({"gate": Verdict(Ruling.DEFERRED, "ceiling")}, "get it approved"),
        ({"gate": None}, "permit it in the policy"),
        ({"liveness": Liveness.UNKNOWN}, "probe it: never contacted"),
        ({"liveness": Liveness.DEAD}, "bring it back: dead"),
        ({"without": "os.linux"}, "add os.linux"),
        ({"without": "runtime.python"}, "add runtime.python"),
        (
            {"without": "runtime.python", "extra": python("3.9")},
            "change runtime.python: version is 3.9, needs version >= 3.11",
        ),
        (
            {"without": "os.linux", "extra": Capability("os.linux", {}, Provenance.CLAIMED)},
            "probe os.linux",
        ),
        (
            {"without": "store.ssd", "extra": Capability("store.ssd", {}, Provenance.PROBED)},
            "measure store.ssd",
        ),
        (
            {"without": "device.x", "extra": Capability("device.x", state=CapabilityState.BUSY)},
            "free device.x",
        ),
        ({"held": {"claims": (Claim("device.x", True),)}}, "free device.x"),
        ({"without": "device.pair", "extra": a_capability("device.pair")},
         "add 1 more device.pair"),
        ({"extra": Capability("perf.x", {"value": 75}, Provenance.MEASURED)},
         "lower the target of perf.x by 25.00"),
    ],
)  # fmt: skip
def test_the_smallest_change_that_would_admit_a_near_miss(given: Any, change: str) -> None:
    spec = a_workload(
        needs("os.linux", min_provenance=Provenance.PROBED),
        needs("store.ssd", min_provenance=Provenance.MEASURED),
        needs("device.x", exclusive=True),
        needs("device.pair", count=2),
        PYTHON,
        min_trust=Tier.TRUSTED,
        memory_bytes=8 * GIB,
        cpu_cores=2,
        disk_bytes=10 * GIB,
        ports=(("http", 80),),
        excludes=("db",),
        perf=PerfTarget("perf.x", 100.0),
    )
    ssd = Capability("store.ssd", {}, Provenance.MEASURED)
    pair = [a_capability("device.pair")] * 2
    node = a_node("a", LINUX, python("3.11"), ssd, a_capability("device.x"), *pair,
                  tier=Tier.TRUSTED)  # fmt: skip
    kept = [one for one in node.capabilities if one.id != given.get("without")]
    extra = [given["extra"]] if "extra" in given else []
    fields = {key: one for key, one in given.items() if key not in ("held", "without", "extra")}
    node = replace(node, capabilities=(*kept, *extra), **fields)
    holds = [a_hold(**given["held"])] if "held" in given else []

    doc = document(place(spec, node, holds=holds))

    [(name, group)] = nearest(doc["rejected"])
    assert name == "a"
    assert [one["change"] for one in group["rejections"]] == [change]


def test_the_nearest_miss_comes_first() -> None:
    spec = a_workload(needs("x"), needs("y"), memory_bytes=8 * GIB)
    have = (a_capability("x"), a_capability("y"))
    nodes = [
        a_node("far", *have, memory=Reading(16 * GIB, GIB)),
        a_node("near", *have, memory=Reading(16 * GIB, 7 * GIB)),
        a_node("also-near", *have, memory=Reading(16 * GIB, 7 * GIB)),
        a_node("stale", *have, facts_expire_at_ms=NOW),
        a_node("lacks-one", a_capability("x")),
        a_node("lacks-both"),
        a_node("lacks-other-things", a_capability("x"), gate=None),
        a_node("dead", *have, liveness=Liveness.DEAD),
        a_node("untrusted", *have, tier=Tier.DISCOVERED),
    ]

    assert [name for name, _ in nearest(document(place(spec, *nodes))["rejected"])] == [
        "stale",
        "untrusted",
        "also-near",
        "near",
        "far",
        "lacks-one",
        "dead",
        "lacks-both",
    ]


def test_why_not_lists_passed_and_failed_checks_with_their_values() -> None:
    node = a_node("b", memory=Reading(16 * GIB, 2 * GIB))
    decision = place(a_workload(memory_bytes=4 * GIB), a_node("a"), node, why=("b",))

    assert why_not(decision, "b") == (
        "b: rejected\n"
        "  ok   node_retired: not retired\n"
        "  ok   liveness: alive\n"
        "  ok   facts_expired: facts expire in 10 m\n"
        "  ok   trust: tier paired, needs paired\n"
        "  ok   workload_revoked: nothing of it is revoked\n"
        "  ok   co_residency: no labels, excludes nothing\n"
        "  FAIL memory: needs 4 GiB memory, 2 GiB of 16 GiB free (2 GiB short)\n"
        "  ok   cpu: needs no cores, 8 of 8 free\n"
        "  ok   disk: needs no disk, 100 GiB of 100 GiB free\n"
        "  ok   port: no fixed port\n"
        "  ok   requirements: variant default (native)\n"
        "  ok   provenance: variant default (native)\n"
        "  ok   emulation_not_allowed: not needed\n"
        "  ok   gate: allowed by paired-signed\n"
        "  ok   perf_budget: no target\n"
    )


def test_why_not_of_a_node_that_was_not_asked_about_has_what_was_kept() -> None:
    nodes = [a_node("a"), a_node("b", gate=None), a_node("c", load=1.0)]
    decision = place(a_workload(), *nodes)

    told = why_not(decision, "b") or ""
    assert told.startswith("b: rejected\n  ok   node_retired: passed\n")
    assert "  FAIL gate: denied: no verdict\n" in told
    assert "FAIL" not in (why_not(decision, "c") or "FAIL")
    assert (why_not(decision, "c") or "").startswith("c: eligible, rank 2 of 2, native, 130.00\n")
    assert why_not(decision, "nowhere") is None


def test_why_not_of_a_node_that_passes_everything_that_can_be_asked() -> None:
    spec = a_workload(
        needs("device.x"),
        labels=("web",),
        excludes=("db",),
        memory_bytes=GIB,
        accel_memory_bytes=GIB,
        cpu_cores=0.5,
        disk_bytes=GIB,
        ports=(("http", 80), ("admin", 8081)),
        perf=PerfTarget("perf.x", 2.0),
    )
    vram = a_capability("mem.vram", total_bytes=2 * GIB)
    figure = Capability("perf.x", {"value": 3}, Provenance.MEASURED)
    allowed = Verdict(Ruling.ALLOWED, "all", "because")
    node = a_node("a", a_capability("device.x"), vram, figure, gate=allowed)

    lines = (why_not(place(spec, node, holds=[a_hold()]), "a") or "").splitlines()

    own = "needs 1 GiB memory, 16 GiB of 16 GiB free"
    assert [line.split(": ", 1)[1] for line in lines[6:]] == [
        "label web, excludes db: 1 neighbour, none objects",
        f"{own}; needs 1 GiB accelerator memory, 2 GiB of 2 GiB free",
        "needs 0.5 cores, 8 of 8 free",
        "needs 1 GiB disk, 100 GiB of 100 GiB free",
        "free: 80, 8081",
        "variant default (native): device.x",
        "variant default (native): device.x",
        "not needed",
        "allowed by all: because",
        "perf.x: 3.00, wants 2.00",
    ]


def test_why_not_where_a_requirement_fails_says_what_else_was_looked_at() -> None:
    unified = a_node("a", capabilities=(a_capability("mem.unified", total_bytes=GIB),))
    spec = a_workload(needs("x"), perf=PerfTarget("perf.x", 2.0))

    told = why_not(place(spec, unified, why=("a",)), "a") or ""

    assert "  ok   memory: needs no unified memory, 1 GiB of 1 GiB free\n" in told
    assert "  FAIL requirements: x: not advertised\n" in told
    assert "  ok   provenance: not the reason\n" in told
    assert "  ok   perf_budget: perf.x: not measured, wants 2.00\n" in told
