"""What is already promised on each node, summed once from the ledger's holds."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from wlctl.model.fleet import Hold
from wlctl.model.ids import InstanceId, NodeName

_NO_PORTS: frozenset[int] = frozenset()


class Held(NamedTuple):
    """What the holds of one node add up to.

    Attributes:
        holds: In no order that matters.
        cpu_milli: Thousandths of a core: exact where a float is not.
        outspoken: Those with a label or an exclusion.
        ports: All fixed ports.
        claims: Capability key to how many instances have it: exclusively, and shared.
    """

    holds: tuple[Hold, ...] = ()
    memory_bytes: int = 0
    accel_memory_bytes: int = 0
    cpu_milli: int = 0
    disk_bytes: int = 0
    outspoken: tuple[Hold, ...] = ()
    ports: frozenset[int] = _NO_PORTS
    claims: Mapping[str, tuple[int, int]] = {}


NOTHING_HELD = Held()


def held_by_node(holds: Iterable[Hold]) -> dict[NodeName, Held]:
    """Sum up `holds` node by node; a node without any is absent."""
    grouped: dict[NodeName, list[Hold]] = {}
    for hold in holds:
        grouped.setdefault(hold.node, []).append(hold)
    return {node: summed(found) for node, found in grouped.items()}


def summed(holds: Iterable[Hold]) -> Held:
    """Sum up the holds of one node."""
    kept = tuple(holds)
    memory = accel = cpu = disk = 0
    outspoken: tuple[Hold, ...] = ()
    ports: frozenset[int] = _NO_PORTS
    claims: dict[str, tuple[int, int]] = {}
    for hold in kept:
        memory += hold.memory_bytes
        accel += hold.accel_memory_bytes
        disk += hold.disk_bytes
        if hold.cpu_cores > 0:
            cpu += round(hold.cpu_cores * 1000) or 1  # as `milli` does
        if hold.labels or hold.excludes:
            outspoken += (hold,)
        if hold.ports:
            ports = ports.union(hold.ports)
        for claim in hold.claims:
            exclusive, shared = claims.get(claim.key, (0, 0))
            claims[claim.key] = (
                (exclusive + 1, shared) if claim.exclusive else (exclusive, shared + 1)
            )
    return Held(kept, memory, accel, cpu, disk, outspoken, ports, claims)


def without(held: Held, instance: InstanceId) -> Held:
    """Give what is left when `instance` leaves."""
    return summed(hold for hold in held.holds if hold.instance != instance)


def milli(cores: float) -> int:
    """Turn cores into thousandths; what is not zero never becomes zero."""
    return round(cores * 1000) or 1 if cores > 0 else 0
