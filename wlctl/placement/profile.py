"""What of a node's capabilities matters to one ask, found in a single look at each of them."""

import math
import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from wlctl.model.facts import AttrValue, Capability, CapabilityState, Provenance
from wlctl.model.workload import Requirement
from wlctl.placement.ask import Ask
from wlctl.placement.text import value as written

MEM_UNIFIED = "mem.unified"
MEM_SYSTEM = "mem.system"
MEM_VRAM = "mem.vram"
_POOLS = (MEM_UNIFIED, MEM_SYSTEM, MEM_VRAM)
ACCEL = "accel"
"""First segment of what computes apart from the processors."""

_IDENTIFYING = ("uuid", "serial", "path", "index")


@dataclass(slots=True, eq=False)
class Matter:
    """The capabilities of a node that the needs speak of; nodes with equal ones share it.

    Attributes:
        capabilities: Those, in the node's order.
        found: Slot of a need to the places, in `capabilities`, of what has its id or prefix.
        accelerated: There is an accelerator.
        dev: It is a machine of last resort.
        exclusive: One of them is for one instance at a time.
    """

    capabilities: tuple[Capability, ...]
    found: dict[int, list[int]]
    accelerated: bool
    dev: bool
    exclusive: bool


@dataclass(slots=True, eq=False)
class Profile:
    """A tuple of capabilities, seen with the eyes of one ask.

    Attributes:
        source: That tuple.
        unified_bytes: Memory that processors and accelerators share; None without.
        system_bytes: None when no capability tells.
        measured: The workload's figure of merit as measured here; None when there is none.
    """

    source: tuple[Capability, ...]
    matter: Matter
    unified_bytes: int | None
    system_bytes: int | None
    vram_bytes: int
    measured: float | None


class _Slots(dict[str, tuple[int, ...]]):
    """Capability id to the slots of what speaks of it; found out when first asked."""

    def __init__(self, wanted: Sequence[Requirement], figures: frozenset[str]) -> None:
        super().__init__()
        self.figures = figures
        self.only_figure = (len(wanted),)
        self._wanted = wanted

    def __missing__(self, capability_id: str) -> tuple[int, ...]:
        slots = tuple(
            slot for slot, wanted in enumerate(self._wanted) if is_meant(wanted, capability_id)
        )
        if not slots and capability_id in self.figures:
            slots = self.only_figure
        self[capability_id] = slots
        return slots


class Lens:
    """Looks at capabilities for one ask and remembers which ids mean anything to it."""

    def __init__(self, ask: Ask) -> None:
        perf = ask.spec.policy.perf
        self._perf_id = "" if perf is None else perf.id
        wanted = [
            *(need.requirement for need in ask.needs),
            Requirement(id_prefix=ACCEL),
            Requirement(id=ask.weights.dev_class),
        ]
        self._accel, self._dev = len(ask.needs), len(ask.needs) + 1
        self._slots = _Slots(wanted, frozenset({*_POOLS, self._perf_id}))
        self._prints: dict[Hashable, int] = {}
        self._matters: dict[tuple[int, ...], Matter] = {}

    def look(self, capabilities: tuple[Capability, ...]) -> Profile:
        """Find what matters to the ask."""
        slots_of = self._slots
        needed: list[Capability] = []
        figures: dict[str, list[Capability]] = {}
        for capability in [one for one in capabilities if slots_of[one.id]]:
            if slots_of[capability.id] is not slots_of.only_figure:
                needed.append(capability)
            if capability.id in slots_of.figures:
                figures.setdefault(capability.id, []).append(capability)
        return Profile(
            source=capabilities,
            matter=self._matter(needed),
            unified_bytes=_pool(figures[MEM_UNIFIED]) if MEM_UNIFIED in figures else None,
            system_bytes=_pool(figures[MEM_SYSTEM]) if MEM_SYSTEM in figures else None,
            vram_bytes=sum(map(_total_bytes, figures[MEM_VRAM])) if MEM_VRAM in figures else 0,
            measured=_measured(figures[self._perf_id]) if self._perf_id in figures else None,
        )

    def _matter(self, needed: Sequence[Capability]) -> Matter:
        prints = tuple([self._print(capability) for capability in needed])
        matter = self._matters.get(prints)
        if matter is None:
            found: dict[int, list[int]] = {}
            for place, capability in enumerate(needed):
                for slot in self._slots[capability.id]:
                    found.setdefault(slot, []).append(place)
            matter = self._matters[prints] = Matter(
                capabilities=tuple(needed),
                found=found,
                accelerated=self._accel in found,
                dev=self._dev in found,
                exclusive=any(capability.exclusive for capability in needed),
            )
        return matter

    def _print(self, capability: Capability) -> int:
        """Number a capability so that equal ones have one number: 1 is not true, nor is it 1.0."""
        attrs = capability.attrs
        key: tuple[object, ...] = (
            capability.id,
            capability.provenance,
            capability.state,
            capability.exclusive,
        )
        if attrs:
            key += (tuple(attrs.items()), tuple(map(_kind, attrs.values())))
        return self._prints.setdefault(key, len(self._prints))


def is_meant(requirement: Requirement, capability_id: str) -> bool:
    """Answer whether the requirement speaks of this id; a prefix matches whole segments only."""
    prefix = requirement.id_prefix
    if prefix is None:
        return requirement.id == capability_id
    return capability_id == prefix or capability_id.startswith(f"{prefix}.")


def is_usable(capability: Capability, *, exclusive: bool) -> bool:
    """Answer whether it can be had: `busy` only when neither side is exclusive."""
    if capability.state is CapabilityState.BUSY:
        return not (exclusive or capability.exclusive)
    return capability.state is CapabilityState.AVAILABLE


def is_accelerator(capability: Capability) -> bool:
    """Answer whether it computes apart from the processors."""
    return capability.id.split(".", 1)[0] == ACCEL


def capacity_bytes(capability: Capability) -> int | None:
    """Give the memory of an accelerator; None for anything else, or when it does not say."""
    return _bytes(capability.attrs.get("memory_bytes")) if is_accelerator(capability) else None


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
    if len(usable) > 1:
        best = max(one.provenance for one in usable)
        return min(_total_bytes(one) for one in usable if one.provenance == best)
    return _total_bytes(usable[0]) if usable else None


def _total_bytes(capability: Capability) -> int:
    if not is_usable(capability, exclusive=False):
        return 0
    return _bytes(capability.attrs.get("total_bytes")) or 0


def _measured(found: Sequence[Capability]) -> float | None:
    figures = [
        figure
        for one in found
        if one.provenance is Provenance.MEASURED
        and (figure := _figure(one.attrs.get("value"))) is not None
    ]
    return max(figures, default=None)


def _bytes(found: AttrValue | None) -> int | None:
    # A node may claim NaN, infinity or less than nothing: no memory at all.
    if not isinstance(found, int | float) or isinstance(found, bool):
        return None
    return int(found) if 0 <= found < math.inf else None


def _kind(found: AttrValue) -> object:
    return tuple(map(type, found)) if isinstance(found, tuple) else type(found)


def _figure(found: AttrValue | None) -> float | None:
    if not isinstance(found, int | float) or isinstance(found, bool):
        return None
    # Compared first: an int beyond all floats would not become one.
    return float(found) if 0 <= found <= sys.float_info.max else None
