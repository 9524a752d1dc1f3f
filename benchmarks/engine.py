"""How long does a decision take that keeps every reason, against a loop that keeps none?

    python benchmarks/engine.py [NODES ...]

Prints for each size of fleet: the time of one decision with all reasons, that of a plain loop which
stops at the first failing constraint of each node and remembers nothing, the ratio of the two, what
the decision and its stored text take, and how the cost grows. Then a node-loss storm. Times are of
the processor, the best of several runs; look at the ratios. Each line is of a process of its own,
as a command decides in one: no fleet is laid out in what a larger one left of the heap. The garbage
collector looks rarely, for both: a decision makes no cycles, and walking a whole fleet again and
again finds nothing.
"""

import gc
import math
import multiprocessing
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from wlctl.model.facts import Capability, CapabilityState
from wlctl.model.fleet import ClusterState, Hold, NodeView, Reading, Ruling, Verdict
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.node import Liveness, Tier
from wlctl.model.placement import Decision, PlaceRequest, Weights
from wlctl.model.workload import (
    Kind,
    Op,
    Predicate,
    Requirement,
    Resources,
    WorkloadPolicy,
    WorkloadSpec,
)
from wlctl.placement.document import encode
from wlctl.placement.engine import Pass, decide, hold_of
from wlctl.placement.explain import explain

GIB = 1 << 30
NOW = 1_800_000_000_000
CAPABILITIES = 30
KINDS = 12
"""Kinds of machines: each with another set of capabilities, in another order."""
MOST_RATIO = 4.0
LEAST_STORM_PER_S = 500
MOST_SLOPE = 1.15
MOST_DISTINCT = 10_000
"""Nodes of a fleet in which nothing is shared: it takes a gigabyte for ten times as many."""
SPEC = WorkloadSpec(
    Kind.SERVICE,
    "web",
    common=(
        Requirement(id="os.linux"),
        Requirement(id="runtime.python", where=(Predicate("version", Op.GTE, "3.10"),)),
        Requirement(id="accel.cuda"),
    ),
    resources=Resources(memory_bytes=8 * GIB, cpu_cores=2, disk_bytes=GIB),
    policy=WorkloadPolicy(labels=("web",)),
    ports=(("http", 8080),),
)


def some_capabilities(random: Random) -> list[Capability]:
    """Thirty capabilities in no order: what matters is anywhere among them."""
    found = [
        Capability("os.linux", {"kernel": "6.1"}),
        Capability("runtime.python", {"version": random.choice(["3.9", "3.11.2", "3.12"])}),
        Capability("cpu.arch.x86_64"),
    ]
    if random.random() < 0.6:
        found.append(Capability("accel.cuda", {"memory_bytes": random.choice([8, 24]) * GIB}))
    while len(found) < CAPABILITIES - 1:
        found.append(Capability(f"runtime.tool-{len(found)}", {"version": "1.0"}))
    random.shuffle(found)
    return found


def a_fleet(size: int, kind: str) -> list[NodeView]:
    """Make a fleet; most nodes are rejected for one reason, some for several.

    Args:
        size: Number of nodes.
        kind: `alike`: nodes share lists of capabilities, as they do when facts that read the same
            are loaded once. `distinct`: no two share anything.
    """
    random = Random(size)
    pool = [some_capabilities(Random(n)) for n in range(KINDS)]
    totals = {gib: Capability("mem.system", {"total_bytes": gib * GIB}) for gib in (16, 32, 64)}
    lists: dict[tuple[int, int], tuple[Capability, ...]] = {}
    nodes = []
    for n in range(size):
        which, gib = random.randrange(len(pool)), random.choice([16, 32, 64])
        if kind == "alike":
            key = which, gib
            capabilities = lists.setdefault(key, (*pool[which], totals[gib]))
        else:
            capabilities = tuple(
                Capability(str(bytes(one.id, "ascii"), "ascii"), dict(one.attrs))
                for one in (*pool[which], totals[gib])
            )
        free = random.randrange(gib * GIB)
        nodes.append(
            NodeView(
                name=NodeName(f"node-{n:06d}"),
                tier=Tier.PAIRED if random.random() < 0.95 else Tier.DISCOVERED,
                liveness=Liveness.ALIVE if random.random() < 0.95 else Liveness.DEAD,
                cordoned=random.random() < 0.02,
                facts_expire_at_ms=NOW + random.randrange(-60_000, 900_000),
                capabilities=capabilities,
                load=random.random(),
                memory=Reading(gib * GIB, free),
                cpu_cores=random.choice([2, 4, 8, 16]),
                disk=Reading(100 * GIB, random.randrange(100 * GIB)),
                ports_listening=(22, 8080) if random.random() < 0.05 else (22,),
                gate=Verdict(Ruling.ALLOWED, "paired-signed"),
            )
        )
    return nodes


def a_cluster(nodes: Sequence[NodeView]) -> ClusterState:
    """Two small instances on every node."""
    return ClusterState(
        holds=tuple(
            Hold(
                node=node.name,
                instance=InstanceId(f"i-{n}-{copy}"),
                name=f"app-{n}-{copy}",
                kind=Kind.SERVICE,
                workload="app",
                memory_bytes=GIB,
                cpu_cores=0.5,
            )
            for n, node in enumerate(nodes)
            for copy in range(2)
        )
    )


Promised = dict[NodeName, tuple[int, float, int, set[int]]]


def plain_loop(
    request: PlaceRequest, nodes: Sequence[NodeView], cluster: ClusterState, now_ms: int
) -> NodeName | None:
    """Decide as one would without explanations: the first failing constraint ends a node."""
    spec = request.workload
    held: Promised = {}
    for hold in cluster.holds:
        memory, cores, disk, ports = held.get(hold.node, (0, 0.0, 0, set()))
        held[hold.node] = (
            memory + hold.memory_bytes,
            cores + hold.cpu_cores,
            disk + hold.disk_bytes,
            ports.union(hold.ports),
        )
    best: tuple[float, NodeName] | None = None
    for node in nodes:
        if node.name in cluster.retired or not stands(node, spec, now_ms):
            continue
        memory, cores, disk, ports = held.get(node.name, (0, 0.0, 0, set()))
        if node.memory is None or spec.resources.memory_bytes > (
            node.memory.total_bytes - memory - node.memory.others_bytes
        ):
            continue
        if spec.resources.cpu_cores > node.cpu_cores - cores:
            continue
        if node.disk is None or spec.resources.disk_bytes > (
            node.disk.total_bytes - disk - node.disk.others_bytes
        ):
            continue
        if any(p in ports or p in node.ports_listening for _name, p in spec.ports if p):
            continue
        if not all(has(node, requirement) for requirement in spec.common):
            continue
        share = min(
            (node.memory.total_bytes - memory - spec.resources.memory_bytes)
            / node.memory.total_bytes,
            (node.cpu_cores - cores - spec.resources.cpu_cores) / node.cpu_cores,
        )
        score = 100 + 10 * (1 - (node.load or 0)) + 10 * share
        if best is None or (-score, node.name) < best:
            best = -score, node.name
    return None if best is None else best[1]


def stands(node: NodeView, spec: WorkloadSpec, now_ms: int) -> bool:
    if node.liveness is not Liveness.ALIVE or node.cordoned:
        return False
    if node.facts_expire_at_ms is None or node.facts_expire_at_ms <= now_ms:
        return False
    if node.tier < spec.policy.min_trust:
        return False
    return node.gate is not None and node.gate.ruling is Ruling.ALLOWED


def has(node: NodeView, requirement: Requirement) -> bool:
    """Look through all capabilities of the node until one will do."""
    for one in node.capabilities:
        if one.id == requirement.id and one.state is CapabilityState.AVAILABLE:
            for predicate in requirement.where:
                if version(str(one.attrs[predicate.attr])) < version(str(predicate.value)):
                    break
            else:
                return True
    return False


def version(text: str) -> list[int]:
    return [int(part) for part in text.split(".")]


def best_ms(*runs: Callable[[], object], seconds: float = 2.0) -> list[float]:
    """Give the processor time of the quickest of each, taking turns so that all meet the same."""
    best = [math.inf] * len(runs)
    spent, turns = 0.0, 0
    while spent < seconds or turns < 3:
        turns += 1
        for n, run in enumerate(runs):
            gc.collect()
            start = time.process_time()
            run()
            took = time.process_time() - start
            best[n], spent = min(best[n], took), spent + took
    return [took * 1000 for took in best]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measure(size: int, kind: str) -> tuple[float, float]:
    """Print one line; answer the decision's time in ms and its ratio to the plain loop."""
    gc.set_threshold(50_000, 20, 100)
    nodes = a_fleet(size, kind)
    cluster = a_cluster(nodes)
    request = PlaceRequest(SPEC)

    def run() -> Decision:
        return decide(request, nodes, cluster, Weights(), NOW)

    gc.collect()
    before = resident_bytes()
    kept = run()
    grown = resident_bytes() - before
    took, rival = best_ms(run, lambda: plain_loop(request, nodes, cluster, NOW))
    stored = encode(kept)
    [writing] = best_ms(lambda: encode(kept), seconds=0.5)
    rejections = sum(map(len, kept.rejected.values()))
    print(
        f"{size:>7} {kind:<8} {took:>8.1f} ms {rival:>8.1f} ms  {took / rival:>4.2f}x "
        f"{size / took:>6.0f} k/s {len(kept.ranked):>6} {rejections:>7} "
        f"{grown / 1e6:>6.1f} MB {writing:>7.1f} ms {len(zlib.compress(stored, 1)) / 1e3:>7.0f} kB"
    )
    return took, took / rival


def storm(size: int = 5_000, instances: int = 1_000, workloads: int = 10) -> float:
    """Lose nodes, re-decide their instances in one pass; answer decisions per second."""
    nodes = [
        replace(node, liveness=Liveness.DEAD) if n % 50 == 0 else node
        for n, node in enumerate(a_fleet(size, "alike"))
    ]
    lost = [node.name for node in nodes[::50]]
    specs = [
        replace(
            SPEC,
            name=f"web-{n}",
            common=SPEC.common[: 1 + n % 3],
            resources=Resources(memory_bytes=(1 + n % 4) * GIB, cpu_cores=0.5),
            ports=(),
        )
        for n in range(workloads)
    ]
    moved = [
        (InstanceId(f"m-{n}"), specs[n % workloads], lost[n % len(lost)]) for n in range(instances)
    ]
    holds = [
        Hold(
            node=node,
            instance=instance,
            name=instance,
            kind=spec.kind,
            workload=spec.name,
            memory_bytes=spec.resources.memory_bytes,
            cpu_cores=spec.resources.cpu_cores,
        )
        for instance, spec, node in moved
    ]
    cluster = ClusterState(holds=(*a_cluster(nodes).holds, *holds))
    gc.collect()
    before = resident_bytes()
    start = time.process_time()
    shared = Pass(nodes, cluster, Weights(), NOW)
    decisions = []
    for instance, spec, node in moved:
        decision = shared.decide(
            PlaceRequest(spec, avoid=(node,), current_node=node, moving=instance)
        )
        shared.take(decision, [InstanceId(f"n-{instance}")] * len(decision.placements))
        decisions.append(decision)
    took = time.process_time() - start
    grown = resident_bytes() - before
    placed = sum(bool(decision.placements) for decision in decisions)
    verdicts = sum(len(one.ranked) + len(one.rejected) for one in decisions)
    start = time.process_time()
    texts = [explain(decision) for decision in decisions[:: instances // 10]]
    explaining = (time.process_time() - start) / len(texts)
    print(
        f"storm: {instances} instances of {workloads} workloads on {size} nodes: "
        f"{instances / took:.0f} decisions/s, {placed} placed, {verdicts} verdicts kept "
        f"in {grown / 1e6:.0f} MB; "
        f"explaining one {explaining * 1000:.0f} ms"
    )
    check_against_one_by_one(decisions, moved, nodes, cluster)
    return instances / took


def check_against_one_by_one(
    decisions: Sequence[Decision],
    moved: Sequence[tuple[InstanceId, WorkloadSpec, NodeName]],
    nodes: Sequence[NodeView],
    cluster: ClusterState,
) -> None:
    """A few decisions of the storm, decided alone on what the ledger would then tell."""
    holds = list(cluster.holds)
    for n, (decision, (instance, spec, node)) in enumerate(zip(decisions, moved, strict=True)):
        if n % (len(moved) // 4) == 1:
            request = PlaceRequest(spec, avoid=(node,), current_node=node, moving=instance)
            alone = decide(request, nodes, replace(cluster, holds=tuple(holds)), Weights(), NOW)
            assert alone == decision, f"decision {n} differs when made alone"
        holds += [
            hold_of(spec, placement.chosen, InstanceId(f"n-{instance}"))
            for placement in decision.placements
        ]


def main(sizes: Sequence[int]) -> int:
    gc.set_threshold(50_000, 20, 100)
    print(
        f"{'nodes':>7} {'fleet':<8} {'decision':>11} {'plain loop':>11} {'ratio':>6} "
        f"{'verdicts':>10} {'elig.':>6} {'reasons':>7} {'memory':>9} {'writing':>10} {'stored':>10}"
    )
    worst = slope = 0.0
    for kind in ("alike", "distinct"):
        took = []
        measured = [size for size in sizes if kind == "alike" or size <= MOST_DISTINCT]
        for size in measured:
            with multiprocessing.get_context("spawn").Pool(1) as alone:
                ms, ratio = alone.apply(measure, (size, kind))
            took.append(ms)
            worst = max(worst, ratio)
        if len(measured) > 1:
            growth = math.log(took[-1] / took[0]) / math.log(measured[-1] / measured[0])
            print(f"        {kind}: time grows with nodes to the power of {growth:.2f}")
            slope = max(slope, growth)
    rate = storm()
    goals = [
        (f"all reasons within {MOST_RATIO:.0f}x of the plain loop", worst, worst <= MOST_RATIO),
        ("cost linear in nodes (power)", slope, slope <= MOST_SLOPE),
        (f"storm of at least {LEAST_STORM_PER_S}/s", rate, rate >= LEAST_STORM_PER_S),
    ]
    for goal, value, met in goals:
        print(f"{'met   ' if met else 'MISSED'} {goal}: {value:.2f}")
    return 0 if all(met for *_, met in goals) else 1


if __name__ == "__main__":
    sys.exit(main([int(word) for word in sys.argv[1:]] or [1_000, 10_000, 100_000]))
