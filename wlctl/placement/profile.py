"""What of a node's capabilities matters to one ask, found in a single look at each of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wlctl.model.facts import Capability, CapabilityState, Provenance
from wlctl.model.workload import Requirement
from wlctl.placement.ask import Ask
from wlctl.placement.compare import is_number
from wlctl.placement.text import value as written

MEM_UNIFIED = "mem.unified"
MEM_SYSTEM = "mem.system"
MEM_VRAM = "mem.vram"
ACCEL = "accel"
"""First segment of what computes apart from the processors."""

_IDENTIFYING = ("uuid", "serial", "path", "index")


@dataclass(slots=True, eq=False)
class Profile:
    """A tuple of capabilities, seen with the eyes of one ask.

    Attributes:
        found: Slot of a need to the places, in `capabilities`, of what has its id or prefix.
        unified_bytes: Memory that processors and accelerators share; None without.
        system_bytes: None when no capability tells.
        accelerated: It has an accelerator.
        dev: It is a machine of last resort.
        measured: The workload's figure of merit as measured here; None when there is none.
        locality: What the workload's satisfied preferences add up to.
    """

    capabilities: tuple[Capability, ...]
    found: dict[int, list[int]]
    unified_bytes: int | None
    system_bytes: int | None
    vram_bytes: int
    accelerated: bool
    dev: bool
    measured: float | None
    locality: float = 0.0


class Lens:
    """Looks at capabilities for one ask and remembers which ids mean anything to it."""

    def __init__(self, ask: Ask) -> None:
        perf = ask.spec.policy.perf
        extra = [
            Requirement(id=MEM_UNIFIED),
            Requirement(id=MEM_SYSTEM),
            Requirement(id=MEM_VRAM),
            Requirement(id_prefix=ACCEL),
            Requirement(id=ask.weights.dev_class),
            Requirement(id=None if perf is None else perf.id),
        ]
        self._wanted = [need.requirement for need in ask.needs] + extra
        self._unified, self._system, self._vram, self._accel, self._dev, self._perf = range(
            len(ask.needs), len(self._wanted)
        )
        self._slots: dict[str, tuple[int, ...]] = {}

    def look(self, capabilities: tuple[Capability, ...]) -> Profile:
        """Find what matters to the ask."""
        found: dict[int, list[int]] = {}
        known = self._slots
        for place, capability in enumerate(capabilities):
            slots = known.get(capability.id)
            if slots is None:
                slots = self._learn(capability.id)
            for slot in slots:
                found.setdefault(slot, []).append(place)

        def at(slot: int) -> list[Capability]:
            return [capabilities[place] for place in found.get(slot, ())]

        return Profile(
            capabilities=capabilities,
            found=found,
            unified_bytes=_pool(at(self._unified)),
            system_bytes=_pool(at(self._system)),
            vram_bytes=sum(map(_total_bytes, at(self._vram))),
            accelerated=self._accel in found,
            dev=self._dev in found,
            measured=_measured(at(self._perf)),
        )

    def _learn(self, capability_id: str) -> tuple[int, ...]:
        slots = tuple(
            slot for slot, wanted in enumerate(self._wanted) if is_meant(wanted, capability_id)
        )
        self._slots[capability_id] = slots
        return slots


def is_meant(requirement: Requirement, capability_id: str) -> bool:
    """Answer whether the requirement speaks of this id; a prefix matches whole segments only."""
    if requirement.id is not None:
        return requirement.id == capability_id
    prefix = requirement.id_prefix
    return prefix is not None and (
        capability_id == prefix or capability_id.startswith(f"{prefix}.")
    )


def is_usable(capability: Capability, *, exclusive: bool) -> bool:
    """Answer whether it can be had: `busy` only when neither side is exclusive."""
    if capability.state is CapabilityState.BUSY:
        return not (exclusive or capability.exclusive)
    return capability.state is CapabilityState.AVAILABLE


def capacity_bytes(capability: Capability) -> int | None:
    """Give the memory of an accelerator; None for anything else, or when it does not say."""
    if capability.id.split(".", 1)[0] != ACCEL:
        return None
    return _bytes(capability.attrs.get("memory_bytes"))


def capability_key(capability: Capability) -> str:
    """Name one capability of a node so that a claim on it is recognised at the next probe.

    Its id, and the first of uuid, serial, path and index that it has. Those without any are alike:
    a claim is then on any one of them.
    """
    for name in _IDENTIFYING:
        if name in capability.attrs:
            return f"{capability.id}#{name}={written(capability.attrs[name])}"
    return capability.id


def sort_key(capability: Capability) -> tuple[int, str, str]:
    """Give what orders alternatives: the smallest accelerator first, then by name."""
    return (
        capacity_bytes(capability) or 0,
        capability_key(capability),
        repr(sorted((name, written(found)) for name, found in capability.attrs.items())),
    )


def _pool(found: Sequence[Capability]) -> int | None:
    """The one that is best known, the smaller where two are equally well known."""
    usable = [one for one in found if is_usable(one, exclusive=False)]
    if not usable:
        return None
    best = max(one.provenance for one in usable)
    return min(_total_bytes(one) for one in usable if one.provenance == best)


def _total_bytes(capability: Capability) -> int:
    if not is_usable(capability, exclusive=False):
        return 0
    return _bytes(capability.attrs.get("total_bytes")) or 0


def _bytes(found: object) -> int | None:
    # A node may claim NaN, infinity or less than nothing: no memory at all.
    if not isinstance(found, int | float) or isinstance(found, bool):
        return None
    return int(found) if 0 <= found < math.inf else None


def _measured(found: Sequence[Capability]) -> float | None:
    figures = [
        figure
        for one in found
        if one.provenance is Provenance.MEASURED
        and (figure := _figure(one.attrs.get("value"))) is not None
    ]
    return max(figures, default=None)


def _figure(found: object) -> float | None:
    if not is_number(found):
        return None
    try:
        figure = float(found)  # type: ignore[arg-type]  # is_number has looked
    except OverflowError:
        return None
    return figure if 0 <= figure < math.inf else None
