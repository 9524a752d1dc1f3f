"""The rules of placement once more, deliberately naive: slow, plain, and nothing of it shared."""

import math
from collections.abc import Sequence
from dataclasses import replace

from wlctl.model.facts import Capability, CapabilityState, Provenance
from wlctl.model.fleet import ClusterState, Hold, NodeView, Ruling
from wlctl.model.node import Liveness
from wlctl.model.placement import PlaceRequest
from wlctl.model.workload import Execution, Op, Predicate, Requirement


def failing(request: PlaceRequest, node: NodeView, cluster: ClusterState, now_ms: int) -> set[str]:
    """Name every constraint that the node fails."""
    spec = request.workload
    there = [hold for hold in cluster.holds if hold.node == node.name]
    own = [hold for hold in there if request.moving and hold.instance == request.moving]
    others = [hold for hold in there if hold not in own]
    own_ports = {port for hold in own for port in hold.ports}
    listening = set(node.ports_listening) - own_ports
    taken = listening | {port for hold in others for port in hold.ports}
    labels, excludes = set(spec.policy.labels), set(spec.policy.excludes)
    expires = node.facts_expire_at_ms
    answers = {
        "node_retired": node.name in cluster.retired,
        "liveness": node.liveness != Liveness.ALIVE or node.cordoned,
        "facts_expired": expires is None or expires <= now_ms,
        "trust": node.tier < spec.policy.min_trust,
        "workload_revoked": bool(set(spec.revocable_refs) & cluster.revoked),
        "co_residency": any(
            set(hold.labels) & excludes or set(hold.excludes) & labels for hold in others
        ),
        "port": any(port in taken for _name, port in spec.ports if port),
        "gate": node.gate is None or node.gate.ruling != Ruling.ALLOWED,
        "perf_budget": _too_slow(request, node),
    }
    failed = {name for name, fails in answers.items() if fails}
    return failed | _short_of(request, node, others) | _routes(request, node, others)


def _too_slow(request: PlaceRequest, node: NodeView) -> bool:
    perf = request.workload.policy.perf
    figures = [
        one.attrs["value"]
        for one in node.capabilities
        if perf is not None and one.id == perf.id and one.provenance == Provenance.MEASURED
    ]
    known = [one for one in figures if isinstance(one, int | float) and 0 <= one < math.inf]
    return perf is not None and bool(known) and max(known) < perf.minimum


def _short_of(request: PlaceRequest, node: NodeView, others: Sequence[Hold]) -> set[str]:
    wanted = request.workload.resources
    failed = set()
    foreign = 0
    if node.memory is not None:
        used = node.memory.total_bytes - node.memory.available_bytes
        foreign = max(0, used - node.memory.ours_bytes)
    held = sum(hold.memory_bytes for hold in others)
    held_accel = sum(hold.accel_memory_bytes for hold in others)
    host, accel = wanted.memory_bytes, wanted.accel_memory_bytes
    if pool(node, "mem.unified"):
        left = memory_bytes(node) - held - held_accel - foreign
        if host + accel > 0 and host + accel > left:
            failed.add("memory")
    else:
        if host > 0 and host > memory_bytes(node) - held - foreign:
            failed.add("memory")
        if accel > 0 and accel > sum(pool(node, "mem.vram")) - held_accel:
            failed.add("memory")
    promised = sum(round(hold.cpu_cores * 1000) for hold in others)
    cores = round(wanted.cpu_cores * 1000)
    if cores > 0 and cores > node.cpu_cores * 1000 - promised:
        failed.add("cpu")
    disk = 0
    if node.disk is not None:
        used = node.disk.total_bytes - node.disk.available_bytes
        disk = node.disk.total_bytes - max(0, used - node.disk.ours_bytes)
    if wanted.disk_bytes > 0 and wanted.disk_bytes > disk - sum(h.disk_bytes for h in others):
        failed.add("disk")
    return failed


def pool(node: NodeView, capability_id: str) -> list[int]:
    """List the sizes, in bytes, of what of this id can be had by several."""
    return [
        int(str(one.attrs["total_bytes"]))
        for one in node.capabilities
        if one.id == capability_id and _free(Requirement(capability_id), one, ())
    ]


def memory_bytes(node: NodeView) -> int:
    """Give the node's own memory: unified before system, and of two of a kind the best known.

    The smaller where both are equally well known.
    """
    for kind in ("mem.unified", "mem.system"):
        for known in sorted(Provenance, reverse=True):
            same = [one for one in node.capabilities if one.provenance == known]
            if found := pool(replace(node, capabilities=tuple(same)), kind):
                return min(found)
    return 0 if node.memory is None else node.memory.total_bytes


def _routes(request: PlaceRequest, node: NodeView, others: Sequence[Hold]) -> set[str]:
    spec = request.workload
    floor = spec.policy.min_provenance
    common = [*spec.common, *request.where]
    failed = {word for one in common for word in _why_not(one, node, others, floor)}
    if failed:
        return failed
    if not _assignable(common, node, others, floor):
        return {"requirements"}
    emulated = False
    for variant in spec.variants:
        lacks = {
            word for one in variant.requirements for word in _why_not(one, node, others, floor)
        }
        if not lacks and not _assignable([*common, *variant.requirements], node, others, floor):
            lacks = {"requirements"}
        if not lacks and variant.execution == Execution.NATIVE:
            return set()
        emulated = emulated or not lacks
        failed |= lacks
    if emulated:
        return set() if request.allow_emulated else {"emulation_not_allowed"}
    return failed


def _why_not(
    one: Requirement, node: NodeView, others: Sequence[Hold], floor: Provenance
) -> set[str]:
    named = [found for found in node.capabilities if _named(one, found.id)]
    least = floor if one.min_provenance is None else one.min_provenance
    if named and all(found.provenance < least for found in named):
        return {"provenance"}
    return set() if len(usable(one, node, others, floor)) >= one.count else {"requirements"}


def _named(one: Requirement, capability_id: str) -> bool:
    if one.id is not None:
        return capability_id == one.id
    prefix = (one.id_prefix or "").split(".")
    return capability_id.split(".")[: len(prefix)] == prefix


def usable(
    one: Requirement, node: NodeView, others: Sequence[Hold], floor: Provenance
) -> list[Capability]:
    """List what the requirement could have."""
    least = floor if one.min_provenance is None else one.min_provenance
    return [
        found
        for found in node.capabilities
        if _named(one, found.id)
        and found.provenance >= least
        and all(_holds(predicate, found) for predicate in one.where)
        and _free(one, found, others)
    ]


def _free(one: Requirement, found: Capability, others: Sequence[Hold]) -> bool:
    alone = one.exclusive or found.exclusive
    if found.state == CapabilityState.BUSY and alone:
        return False
    if found.state in (CapabilityState.RESERVED, CapabilityState.DEGRADED):
        return False
    key = f"{found.id}#index={found.attrs.get('index')}"
    claims = [claim for hold in others for claim in hold.claims if claim.key == key]
    return not any(claim.exclusive or alone for claim in claims)


def _holds(predicate: Predicate, found: Capability) -> bool:
    if predicate.attr not in found.attrs:
        return False
    value, wanted = found.attrs[predicate.attr], predicate.value
    match predicate.op:
        case Op.EQ:
            return _same(value, wanted)
        case Op.IN:
            return any(_same(value, one) for one in wanted)  # type: ignore[union-attr]  # a list
        case Op.HAS:
            return isinstance(value, tuple) and any(_same(one, wanted) for one in value)
        case Op.GTE:
            return _not_below(value, wanted)
        case Op.LTE:
            return _not_below(wanted, value)


def _same(left: object, right: object) -> bool:
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    return left == right


def _not_below(high: object, low: object) -> bool:
    if isinstance(high, str) and isinstance(low, str):
        return [int(part) for part in high.split(".")] >= [int(part) for part in low.split(".")]
    if isinstance(high, bool | str | tuple) or isinstance(low, bool | str | tuple):
        return False
    return high >= low  # type: ignore[no-any-return,operator]  # two numbers


def _assignable(
    wanted: Sequence[Requirement], node: NodeView, others: Sequence[Hold], floor: Provenance
) -> bool:
    """Try every way to give each exclusive requirement capabilities of its own."""
    slots = [
        [id(found) for found in usable(one, node, others, floor)]
        for one in wanted
        if one.exclusive
        for _ in range(one.count)
    ]
    return _fits(slots, frozenset())


def _fits(slots: Sequence[Sequence[int]], taken: frozenset[int]) -> bool:
    if not slots:
        return True
    return any(_fits(slots[1:], taken | {place}) for place in slots[0] if place not in taken)
