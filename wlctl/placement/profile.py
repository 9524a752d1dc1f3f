"""What of a node's capabilities matters to one ask, found in a single look at each of them."""

import math
import sys
from collections.abc import Sequence
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

# Bound once: reading a member off its enum costs ten times a plain name.
_AVAILABLE, _BUSY = CapabilityState.AVAILABLE, CapabilityState.BUSY
_ACCELERATOR = Requirement(id_prefix=ACCEL)
_IDENTIFYING = ("uuid", "serial", "path", "index")


@dataclass(slots=True, eq=False)
class Matter:
    """The capabilities that the needs speak of; nodes that no need can tell apart share it.

    Attributes:
        capabilities: Of the first such node, in its order.
        found: Slot of a need to the places, in `capabilities`, of what has its id or prefix.
        accelerated: There is an accelerator.
        dev: It is a machine of last resort.
        exclusive: One of them is for one instance at a time.
        several: Some need has more than one to choose from.
    """

    capabilities: tuple[Capability, ...]
    found: dict[int, list[int]]
    accelerated: bool
    dev: bool
    exclusive: bool
    several: bool


@dataclass(slots=True, eq=False)
class Profile:
    """A tuple of capabilities, seen with the eyes of one ask.

    Attributes:
        source: That tuple.
        needed: Those of them that the needs speak of, at the places that `matter` knows.
        unified_bytes: Memory that processors and accelerators share; None without.
        system_bytes: None when no capability tells.
        measured: The workload's figure of merit as measured here; None when there is none.
    """

    source: tuple[Capability, ...]
    needed: tuple[Capability, ...]
    matter: Matter
    unified_bytes: int | None
    system_bytes: int | None
    vram_bytes: int
    measured: float | None


class Lens:
    """Looks at capabilities for one ask and remembers which ids mean anything to it."""

    def __init__(self, ask: Ask) -> None:
        perf = ask.spec.policy.perf
        self._perf_id = "" if perf is None else perf.id
        self._figures = frozenset({*_POOLS, self._perf_id})
        self._wanted = [
            *(need.requirement for need in ask.needs),
            _ACCELERATOR,
            Requirement(id=ask.weights.dev_class),
        ]
        self._accel, self._dev = len(ask.needs), len(ask.needs) + 1
        self._only_figure = (len(self._wanted),)
        # Id to the slots of the needs that speak of it, and to the attributes they look at.
        self._slots: dict[str, tuple[int, ...]] = {}
        self._attrs: dict[str, tuple[str, ...]] = {}
        self._matters: dict[tuple[object, ...], Matter] = {}

    def look(self, capabilities: tuple[Capability, ...]) -> Profile:
        """Find what matters to the ask."""
        slots, only_figure = self._slots, self._only_figure
        try:
            relevant = [one for one in capabilities if slots[one.id]]
        except KeyError:  # an id that was not met before
            for one in capabilities:
                self._learn(one.id)
            relevant = [one for one in capabilities if slots[one.id]]
        needed: list[Capability] = []
        figures: list[Capability] = []
        for one in relevant:
            if slots[one.id] is not only_figure:
                needed.append(one)
            if one.id in self._figures:
                figures.append(one)
        found = tuple(needed)
        if len(figures) == 1 and figures[0].id == MEM_SYSTEM:  # most nodes
            return Profile(capabilities, found, self._matter(found), None, _pool(figures), 0, None)
        vram = [one for one in figures if one.id == MEM_VRAM]
        return Profile(
            capabilities,
            found,
            self._matter(found),
            _pool([one for one in figures if one.id == MEM_UNIFIED]),
            _pool([one for one in figures if one.id == MEM_SYSTEM]),
            sum(map(_total_bytes, vram)),
            _measured([one for one in figures if one.id == self._perf_id]),
        )

    def _matter(self, needed: tuple[Capability, ...]) -> Matter:
        """Find what those share that no need can tell apart.

        Only what a need looks at counts, and types do: 1 is not true, nor is it 1.0.
        """
        attrs_of = self._attrs
        prints: tuple[object, ...] = tuple(
            [
                (one.id, one.provenance, one.state, one.exclusive, _told(one, names))
                if (names := attrs_of[one.id])
                else (one.id, one.provenance, one.state, one.exclusive)
                for one in needed
            ]
        )
        matter = self._matters.get(prints)
        if matter is None:
            matter = self._matters[prints] = self.matter_of(needed)
        if matter.several:  # which of them is which decides their order
            prints += tuple(map(sort_key, needed))
            matter = self._matters.get(prints)
            if matter is None:
                matter = self._matters[prints] = self.matter_of(needed)
        return matter

    def matter_of(self, needed: tuple[Capability, ...]) -> Matter:
        """Sort capabilities that the needs speak of by the needs that do."""
        found: dict[int, list[int]] = {}
        for place, capability in enumerate(needed):
            for slot in self._slots[capability.id]:
                found.setdefault(slot, []).append(place)
        return Matter(
            capabilities=needed,
            found=found,
            accelerated=self._accel in found,
            dev=self._dev in found,
            exclusive=any(capability.exclusive for capability in needed),
            several=any(len(places) > 1 for places in found.values()),
        )

    def _learn(self, capability_id: str) -> None:
        wanted = self._wanted
        slots = [slot for slot, one in enumerate(wanted) if is_meant(one, capability_id)]
        asked = {predicate.attr for slot in slots for predicate in wanted[slot].where}
        if self._accel in slots:
            asked.add("memory_bytes")
        self._attrs[capability_id] = tuple(sorted(asked))
        is_figure = capability_id in self._figures
        self._slots[capability_id] = tuple(slots) or (self._only_figure if is_figure else ())


def is_meant(requirement: Requirement, capability_id: str) -> bool:
    """Answer whether the requirement speaks of this id; a prefix matches whole segments only."""
    prefix = requirement.id_prefix
    if prefix is None:
        return requirement.id == capability_id
    return capability_id == prefix or capability_id.startswith(f"{prefix}.")


def is_usable(capability: Capability, *, exclusive: bool) -> bool:
    """Answer whether it can be had: `busy` only when neither side is exclusive."""
    state = capability.state
    return state is _AVAILABLE or (state is _BUSY and not exclusive and not capability.exclusive)


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


def sort_key(capability: Capability) -> tuple[int, str, str, str]:
    """Give what orders alternatives: the smallest accelerator first, then by name."""
    return (
        capacity_bytes(capability) or 0,
        capability.id,
        capability_key(capability),
        repr(sorted((name, written(found)) for name, found in capability.attrs.items())),
    )


def _pool(found: Sequence[Capability]) -> int | None:
    """The one that is best known, the smaller where two are equally well known."""
    usable = [one for one in found if is_usable(one, exclusive=False)]
    if len(usable) == 1:
        return _bytes(usable[0].attrs.get("total_bytes")) or 0
    if usable:
        best = max(one.provenance for one in usable)
        usable = [one for one in usable if one.provenance == best]
    return min(map(_total_bytes, usable), default=None)


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


def _told(capability: Capability, names: tuple[str, ...]) -> tuple[object, ...]:
    values = [capability.attrs.get(name) for name in names]
    return (*values, *map(_kind, values))


def _kind(found: AttrValue | None) -> object:
    return tuple(map(type, found)) if isinstance(found, tuple) else type(found)


def _figure(found: AttrValue | None) -> float | None:
    if not isinstance(found, int | float) or isinstance(found, bool):
        return None
    # Compared first: an int beyond all floats would not become one.
    return float(found) if 0 <= found <= sys.float_info.max else None
