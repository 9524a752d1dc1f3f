"""The rules about room: memory, cores, disk, ports, and the speed a workload wants."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from wlctl.model.fleet import Reading
from wlctl.model.placement import Constraint, Rejection
from wlctl.placement.ask import Ask
from wlctl.placement.rules import Offer, Rule, rejection
from wlctl.placement.text import core_count, cores, size, visible

# Bound once: reading a member off its enum costs ten times a plain name.
_MEMORY, _CPU = Constraint.MEMORY, Constraint.CPU
_DISK, _PORT = Constraint.DISK, Constraint.PORT
_MOST_CORES = 1_000_000
HOST, ACCEL, UNIFIED = "memory", "accelerator memory", "unified memory"


def memory_total_bytes(offer: Offer) -> int:
    """Give the node's own memory, as its capabilities tell or else its reading; 0 when neither."""
    profile = offer.profile
    if profile.unified_bytes is not None:
        return profile.unified_bytes
    if profile.system_bytes is not None:
        return profile.system_bytes
    return 0 if offer.node.memory is None else offer.node.memory.total_bytes


def free_bytes(total: int, held: int, reading: Reading | None) -> int:
    """Give what of `total` is neither promised to ours nor was used by others."""
    return total - held if reading is None else total - held - reading.others_bytes


def memory(ask: Ask, offer: Offer) -> tuple[Rejection, ...]:
    """The memory asked for is there, neither promised to ours nor used by others.

    Unified memory is one pool for both demands.
    """
    resources, held, profile = ask.spec.resources, offer.held, offer.profile
    host, accel = resources.memory_bytes, resources.accel_memory_bytes
    total = memory_total_bytes(offer)
    if profile.unified_bytes is not None:
        free = free_bytes(total, held.memory_bytes + held.accel_memory_bytes, offer.node.memory)
        if host + accel <= free:
            return ()
        return rejection(_MEMORY, UNIFIED, host + accel, free, total, host, accel)
    failed: tuple[Rejection, ...] = ()
    free = free_bytes(total, held.memory_bytes, offer.node.memory)
    if host and host > free:
        failed = (Rejection(_MEMORY, (HOST, host, free, total)),)
    if accel and accel > profile.vram_bytes - held.accel_memory_bytes:
        left = profile.vram_bytes - held.accel_memory_bytes
        failed += rejection(_MEMORY, ACCEL, accel, left, profile.vram_bytes)
    return failed


def cpu(ask: Ask, offer: Offer) -> tuple[Rejection, ...]:
    """The cores asked for are not promised to others."""
    need, total = ask.cpu_milli, cpu_total_milli(offer)
    free = total - offer.held.cpu_milli
    return () if need <= free else (Rejection(_CPU, (need, free, total)),)


def cpu_total_milli(offer: Offer) -> int:
    """Give the node's cores in thousandths; none where the figure makes no sense."""
    found = offer.node.cpu_cores
    return round(found * 1000) if 0 <= found <= _MOST_CORES else 0


def disk(ask: Ask, offer: Offer) -> tuple[Rejection, ...]:
    """The space asked for is there, neither promised to ours nor used by others."""
    need, reading = ask.spec.resources.disk_bytes, offer.node.disk
    total = 0 if reading is None else reading.total_bytes
    free = free_bytes(total, offer.held.disk_bytes, reading)
    return () if need <= free else (Rejection(_DISK, (need, free, total)),)


def port(ask: Ask, offer: Offer) -> tuple[Rejection, ...]:
    """No instance of ours has the port, and nothing on the node listens on it."""
    failed: tuple[Rejection, ...] = ()
    held, listening = offer.held, offer.node.ports_listening
    for name, number in ask.ports:
        if number in held.ports:
            holder = min(hold.name for hold in held.holds if number in hold.ports)
            failed += rejection(_PORT, number, name, holder)
        elif number in listening:
            failed += rejection(_PORT, number, name, None)
    return failed


def perf_budget(ask: Ask, offer: Offer) -> tuple[Rejection, ...]:
    """Where the figure was measured it reaches the target; where it was not, nothing is said."""
    target, measured = ask.spec.policy.perf, offer.profile.measured
    if target is None or measured is None or measured >= target.minimum:
        return ()
    return rejection(Constraint.PERF_BUDGET, target.id, measured, target.minimum)


def _pool_detail(pool: str, need: int, free: int, total: int, *_parts: int) -> str:
    return (
        f"needs {size(need)} {pool}, {size(max(0, free))} of {size(total)} free "
        f"({size(need - free)} short)"
    )


def _wanted_bytes(ask: Ask) -> int:
    return ask.spec.resources.memory_bytes + ask.spec.resources.accel_memory_bytes


def _memory_holds(ask: Ask, offer: Offer) -> str:
    resources, held, profile = ask.spec.resources, offer.held, offer.profile
    host, accel = resources.memory_bytes, resources.accel_memory_bytes
    total = memory_total_bytes(offer)
    if profile.unified_bytes is not None:
        free = free_bytes(total, held.memory_bytes + held.accel_memory_bytes, offer.node.memory)
        return _pool_holds(UNIFIED, host + accel, free, total)
    own = _pool_holds(HOST, host, free_bytes(total, held.memory_bytes, offer.node.memory), total)
    if not accel:
        return own
    vram = profile.vram_bytes
    return f"{own}; {_pool_holds(ACCEL, accel, vram - held.accel_memory_bytes, vram)}"


def _pool_holds(pool: str, need: int, free: int, total: int) -> str:
    wants = f"needs {size(need)} {pool}" if need else f"needs no {pool}"
    return f"{wants}, {size(max(0, free))} of {size(total)} free"


def _cpu_holds(ask: Ask, offer: Offer) -> str:
    total = cpu_total_milli(offer)
    wants = f"needs {core_count(ask.cpu_milli)}" if ask.cpu_milli else "needs no cores"
    return f"{wants}, {cores(max(0, total - offer.held.cpu_milli))} of {cores(total)} free"


def _disk_holds(ask: Ask, offer: Offer) -> str:
    reading = offer.node.disk
    total = 0 if reading is None else reading.total_bytes
    free = free_bytes(total, offer.held.disk_bytes, reading)
    return _pool_holds("disk", ask.spec.resources.disk_bytes, free, total)


def _memory_cures(ask: Ask, values: tuple[Any, ...]) -> tuple[int, ...]:
    pool, _need, free, *_ = values
    if pool == HOST:
        return (ask.bits["memory"],)
    if pool == ACCEL:
        return (ask.bits["accel"],)
    host, accel = values[-2:]
    either = [
        ask.bits[name]
        for name, given_up, kept in (("memory", host, accel), ("accel", accel, host))
        if given_up and kept <= max(0, free)
    ]
    return tuple(either) or (ask.bits["memory"] | ask.bits["accel"],)


def _best_free(subject: str, values: Sequence[tuple[Any, ...]]) -> str:
    _pool, need, *_ = values[0]
    best = max(free for _pool, _need, free, *_ in values)
    return f"{subject} (best free {size(max(0, best))}, need {size(need)})"


def _taken(number: int, name: str, holder: str | None) -> str:
    by = "something on the node listens" if holder is None else f"{visible(holder)} has it"
    return f"port {number} ({visible(name)}): {by}"


def _ports_hold(ask: Ask, _offer: Offer) -> str:
    if not ask.ports:
        return "no fixed port"
    return "free: " + ", ".join(str(number) for _name, number in ask.ports)


def _perf_holds(ask: Ask, offer: Offer) -> str:
    target, measured = ask.spec.policy.perf, offer.profile.measured
    if target is None:
        return "no target"
    has = "not measured" if measured is None else f"{measured:.2f}"
    return f"{visible(target.id)}: {has}, wants {target.minimum:.2f}"


def _share(short: float, need: float) -> float:
    """How far off, as a fraction below 1 that still orders what is further off than all of it."""
    return 0.9 * (short / (short + need))


RULES: Mapping[Constraint, Rule] = MappingProxyType(
    {
        Constraint.MEMORY: Rule(
            check=memory,
            asked=lambda ask: bool(_wanted_bytes(ask)),
            holds=_memory_holds,
            detail=_pool_detail,
            change=lambda pool, need, free, *_rest: f"needs {size(need - free)} more {pool}",
            subject=lambda pool, *_rest: pool,
            tally=_best_free,
            effort=lambda _pool, need, free, *_rest: 3.0 + _share(need - free, need),
            cures=_memory_cures,
        ),
        Constraint.CPU: Rule(
            check=cpu,
            asked=lambda ask: ask.cpu_milli > 0,
            holds=_cpu_holds,
            detail=lambda need, free, total: (
                f"needs {core_count(need)}, {cores(max(0, free))} of {cores(total)} free "
                f"({cores(need - free)} short)"
            ),
            change=lambda need, free, _total: f"needs {cores(need - free)} more cores",
            subject=lambda *_values: "cores",
            tally=lambda subject, values: (
                f"{subject} (best free {cores(max(0, *(free for _n, free, _t in values)))}, "
                f"need {cores(values[0][0])})"
            ),
            effort=lambda need, free, _total: 3.0 + _share(need - free, need),
            term="cpu",
        ),
        Constraint.DISK: Rule(
            check=disk,
            asked=lambda ask: ask.spec.resources.disk_bytes > 0,
            holds=_disk_holds,
            detail=lambda need, free, total: _pool_detail("disk", need, free, total),
            change=lambda need, free, _total: f"needs {size(need - free)} more disk",
            subject=lambda *_values: "disk",
            tally=lambda subject, values: _best_free(
                subject, [("disk", *found) for found in values]
            ),
            effort=lambda need, free, _total: 3.0 + _share(need - free, need),
            term="disk",
        ),
        Constraint.PORT: Rule(
            check=port,
            asked=lambda ask: bool(ask.ports),
            holds=_ports_hold,
            detail=_taken,
            change=lambda number, _name, holder: (
                f"free port {number}" if holder is None else f"move {visible(holder)} away"
            ),
            subject=lambda number, *_rest: f"port {number} taken",
            effort=lambda *_values: 4.0,
            cures=lambda ask, values: (ask.bits[f"port {values[0]}"],),
        ),
        Constraint.PERF_BUDGET: Rule(
            check=perf_budget,
            asked=lambda ask: ask.spec.policy.perf is not None,
            holds=_perf_holds,
            detail=lambda id_, measured, minimum: (
                f"{visible(id_)} measured {measured:.2f}, needs {minimum:.2f}"
            ),
            change=lambda id_, measured, minimum: (
                f"lower the target of {visible(id_)} by {minimum - measured:.2f}"
            ),
            subject=lambda id_, *_values: f"{visible(id_)} below target",
            effort=lambda _id, measured, minimum: 6.5 + 0.4 * (minimum - measured) / minimum,
            term="perf",
        ),
    }
)
