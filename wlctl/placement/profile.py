"""What of a node's capabilities matters to one ask, found in a single look at each of them."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

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
_PROBED = Provenance.PROBED
_ACCELERATOR = Requirement(id_prefix=ACCEL)
_IDENTIFYING = ("uuid", "serial", "path", "index")


_Figures = tuple[int | None, int | None, int, float | None]
"""Unified, system and accelerator memory, and what was measured."""


@dataclass(slots=True, eq=False)
class Plan:
    """What follows from the ids of the capabilities that were noted, in their order.

    Attributes:
        looked_at: The places and attributes that a need looks at.
        found: Slot of a need to the places of what has its id or prefix.
        figures: Id of a figure to its places.
        system_only: The place of the one figure that most nodes have; None where there is another.
        accelerated: There is an accelerator.
        dev: It is a machine of last resort.
        several: Some need has more than one to choose from.
        matters: Those met so far, by what the needs see.
    """

    looked_at: tuple[tuple[int, str], ...]
    found: dict[int, list[int]]
    figures: dict[str, list[int]]
    system_only: int | None
    accelerated: bool
    dev: bool
    several: bool
    matters: dict[tuple[object, ...], "Matter"] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Matter:
    """What the needs can see; nodes that none of them can tell apart share it.

    Attributes:
        noted: The capabilities of the first such node that mean anything to the ask.
        exclusive: One of them is for one instance at a time.
        profiles: Those met so far, by their figures.
    """

    plan: Plan
    noted: tuple[Capability, ...]
    exclusive: bool
    profiles: "dict[_Figures, Profile]" = field(default_factory=dict)


def matter_of(plan: Plan, noted: tuple[Capability, ...]) -> Matter:
    """Give the matter of a node's own capabilities."""
    return Matter(plan, noted, any(capability.exclusive for capability in noted))


@dataclass(slots=True, eq=False)
class Profile:
    """What the ask can see; nodes that look the same share it.

    Attributes:
        unified_bytes: Memory that processors and accelerators share; None without.
        system_bytes: None when no capability tells.
        measured: The workload's figure of merit as measured here; None when there is none.
    """

    matter: Matter
    unified_bytes: int | None
    system_bytes: int | None
    vram_bytes: int
    measured: float | None


class Lens:
    """Looks at capabilities for one ask and remembers which ids mean nothing to it."""

    def __init__(self, ask: Ask) -> None:
        perf = ask.spec.policy.perf
        self._figures = {*_POOLS, "" if perf is None else perf.id}
        self._perf_id = "" if perf is None else perf.id
        self._wanted = [
            *(need.requirement for need in ask.needs),
            _ACCELERATOR,
            Requirement(id=ask.weights.dev_class),
        ]
        self._accel, self._dev = len(ask.needs), len(ask.needs) + 1
        self._idle: set[str] = set()
        self._plans: dict[tuple[str, ...], Plan] = {}

    def look(self, capabilities: tuple[Capability, ...]) -> tuple[tuple[Capability, ...], Profile]:
        """Pick out those that mean anything to the ask, which most do not, and what they tell."""
        idle = self._idle
        noted = tuple([one for one in capabilities if one.id not in idle])
        ids = tuple([one.id for one in noted])
        plan = self._plans.get(ids)
        if plan is None:
            new = {id_ for id_ in ids if id_ not in self._figures and not self._slots_of(id_)}
            if new:
                idle |= new
                return self.look(capabilities)
            plan = self._plans[ids] = self._plan(ids)
        matter = _matter(plan, noted)
        if plan.system_only is None:
            figures = self._figured(plan, noted)
        else:
            one = noted[plan.system_only]
            can = one.state is _AVAILABLE or is_usable(one, exclusive=False)
            figures = (None, _total_bytes(one) if can else None, 0, None)
        profile = matter.profiles.get(figures)
        if profile is None:
            profile = matter.profiles[figures] = Profile(matter, *figures)
        return noted, profile

    def _figured(self, plan: Plan, noted: tuple[Capability, ...]) -> _Figures:
        found = {name: [noted[place] for place in places] for name, places in plan.figures.items()}
        vram = [one for one in found.get(MEM_VRAM, ()) if is_usable(one, exclusive=False)]
        return (
            _pool(found.get(MEM_UNIFIED, ())),
            _pool(found.get(MEM_SYSTEM, ())),
            sum(map(_total_bytes, vram)),
            _measured(found.get(self._perf_id, ())),
        )

    def _plan(self, ids: tuple[str, ...]) -> Plan:
        found: dict[int, list[int]] = {}
        figures: dict[str, list[int]] = {}
        looked_at: set[tuple[int, str]] = set()
        for place, id_ in enumerate(ids):
            for slot in self._slots_of(id_):
                found.setdefault(slot, []).append(place)
                looked_at |= {(place, one.attr) for one in self._wanted[slot].where}
                if slot == self._accel:
                    looked_at.add((place, "memory_bytes"))
            if id_ in self._figures:
                figures.setdefault(id_, []).append(place)
        return Plan(
            looked_at=tuple(sorted(looked_at)),
            found=found,
            figures=figures,
            system_only=(
                figures[MEM_SYSTEM][0]
                if figures.keys() == {MEM_SYSTEM} and len(figures[MEM_SYSTEM]) == 1
                else None
            ),
            accelerated=self._accel in found,
            dev=self._dev in found,
            several=any(len(places) > 1 for places in found.values()),
        )

    def _slots_of(self, capability_id: str) -> list[int]:
        return [slot for slot, one in enumerate(self._wanted) if is_meant(one, capability_id)]


def _matter(plan: Plan, noted: tuple[Capability, ...]) -> Matter:
    """Find what those share that no need can tell apart.

    Only what a need looks at counts, and types do: 1 is not true, nor is it 1.0.
    """
    told: list[object] = []
    for place, name in plan.looked_at:
        value = noted[place].attrs.get(name)
        told += (value, tuple(map(type, value)) if isinstance(value, tuple) else type(value))
    for place, one in enumerate(noted):
        if one.state is not _AVAILABLE or one.provenance is not _PROBED or one.exclusive:
            told.append((place, one.provenance, one.state, one.exclusive))
    if plan.several:  # which of them is which decides their order
        told += map(sort_key, noted)
    seen = tuple(told)
    matter = plan.matters.get(seen)
    if matter is None:
        matter = plan.matters[seen] = matter_of(plan, noted)
    return matter


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
    best = max((one.provenance for one in usable), default=None)
    return min((_total_bytes(one) for one in usable if one.provenance == best), default=None)


def _total_bytes(capability: Capability) -> int:
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
    if type(found) is int:  # and not a bool
        return found if found >= 0 else None
    return int(found) if isinstance(found, float) and 0 <= found < math.inf else None


def _figure(found: AttrValue | None) -> float | None:
    if not isinstance(found, (int, float)) or isinstance(found, bool):
        return None
    # Compared first: an int beyond all floats would not become one.
    return float(found) if 0 <= found <= sys.float_info.max else None
