"""Which variant matches a node, and with which of its capabilities? If none, why not?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from wlctl.model.facts import Capability, Provenance
from wlctl.model.fleet import Claim
from wlctl.model.placement import Constraint, Rejection
from wlctl.model.workload import Execution
from wlctl.placement.ask import Ask, Need, Way
from wlctl.placement.compare import satisfied, shortfall
from wlctl.placement.matching import Contended, Want, assign
from wlctl.placement.profile import (
    Matter,
    capability_key,
    capacity_bytes,
    is_accelerator,
    is_usable,
    sort_key,
)

Claims = Mapping[str, tuple[int, int]]
"""Capability key to how many instances have it: exclusively, and shared."""


class Lack(StrEnum):
    """The first stage at which a need was left with nothing."""

    NOT_ADVERTISED = "not_advertised"
    PROVENANCE = "provenance"
    PREDICATE = "predicate"
    UNAVAILABLE = "unavailable"
    COUNT = "count"
    CONTENDED = "contended"


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """How a node meets the needs, or every reason why it does not.

    Attributes:
        variant: Empty when nothing matched.
        assigned: In the order of the needs: a place among what was noted of the node, and whether
            it is for this instance alone.
        capacity_bytes: Memory of the accelerators assigned; None when none is, or one does not say.
        accelerated: An accelerator is assigned.
        locality: What the workload's satisfied preferences add up to.
    """

    rejections: tuple[Rejection, ...] = ()
    variant: str = ""
    execution: Execution = Execution.NATIVE
    assigned: tuple[tuple[int, bool], ...] = ()
    capacity_bytes: int | None = None
    accelerated: bool = False
    locality: float = 0.0


def claims_of(route: Route, noted: Sequence[Capability]) -> tuple[Claim, ...]:
    """Name what a node would give: its own capabilities, which others may only be alike."""
    return tuple(
        Claim(capability_key(noted[place]), exclusive) for place, exclusive in route.assigned
    )


@dataclass(frozen=True, slots=True, eq=False)
class Met:
    """A need and the places of what it could have."""

    need: Need
    places: list[int]


def find_route(ask: Ask, matter: Matter, claims: Claims) -> Route:
    """Match the common needs, then each variant jointly with them.

    The first matching native variant wins in declared order, else the first matching emulated one
    where that is allowed. When the common needs fail, only their failures are reported.
    """
    common, rejections = _meet(ask.common, matter, claims, "")
    if not rejections:
        _, rejections = _give(common, matter, "")
    if rejections:
        return Route(rejections=rejections)
    failed: tuple[Rejection, ...] = ()
    emulated: dict[str, Route] = {}
    for way in ask.ways:
        met, rejections = _meet(way.needs, matter, claims, way.name)
        given: Mapping[int, list[int]] = {}
        if not rejections:
            given, rejections = _give([*common, *met], matter, way.name)
        if rejections:
            failed += rejections
            continue
        route = _routed(way, [*common, *met], given, matter, _likes(ask, matter, claims))
        if way.execution is Execution.NATIVE:
            return route
        emulated[way.name] = route
    if not emulated:
        return Route(rejections=failed)
    if ask.allow_emulated:
        return next(iter(emulated.values()))
    return Route(rejections=(Rejection(Constraint.EMULATION_NOT_ALLOWED, tuple(emulated)),))


def meets(
    need: Need, matter: Matter, claims: Claims, floor: Provenance
) -> list[int] | tuple[object, ...]:
    """Answer the places of what the need could have, or what it lacks and at which stage.

    All conditions must hold on the same capability. The first stage that leaves fewer than needed
    is the one reported.
    """
    caps = matter.noted
    places = matter.plan.found.get(need.slot)
    if not places:
        return (Lack.NOT_ADVERTISED,)
    known = [place for place in places if caps[place].provenance >= floor]
    if not known:
        best = max(caps[place].provenance for place in places)
        return Lack.PROVENANCE, best, floor
    fitting = [place for place in known if _fits(need, caps[place])]
    if not fitting:
        return Lack.PREDICATE, _nearest(need, [caps[place] for place in known])
    free = _free(need, caps, fitting, claims)
    if not free:
        return Lack.UNAVAILABLE, *sorted({_why_taken(caps[place]) for place in fitting})
    if len(free) < need.requirement.count:
        return Lack.COUNT, len(free), need.requirement.count
    if len(free) > 1:
        free.sort(key=lambda place: sort_key(caps[place]))
    return free


def contention(met: Sequence[Met]) -> dict[int, list[int]] | Contended:
    """Give each exclusive need places of its own, by its slot, or say which ones contend."""
    exclusive = [one for one in met if one.need.requirement.exclusive]
    if not exclusive:
        return {}
    found = assign([Want(one.need.requirement.count, one.places) for one in exclusive])
    if isinstance(found, Contended):
        return Contended(
            tuple(exclusive[n].need.slot for n in found.wants), found.asked, found.there
        )
    return {one.need.slot: places for one, places in zip(exclusive, found, strict=True)}


def _meet(
    needs: Sequence[Need], matter: Matter, claims: Claims, variant: str
) -> tuple[list[Met], tuple[Rejection, ...]]:
    met, rejections = [], []
    for need in needs:
        found = meets(need, matter, claims, need.floor)
        if isinstance(found, list):
            met.append(Met(need, found))
        else:
            rejections.append(_rejection(variant, need, found))
    return met, tuple(rejections)


def _give(
    met: Sequence[Met], matter: Matter, variant: str
) -> tuple[Mapping[int, list[int]], tuple[Rejection, ...]]:
    given = contention(met)
    if isinstance(given, Contended):
        labels = tuple(one.need.label for one in met if one.need.slot in given.wants)
        values = (variant, ", ".join(labels), Lack.CONTENDED, given.asked, given.there)
        return {}, (Rejection(Constraint.REQUIREMENTS, values),)
    return given, ()


def _rejection(variant: str, need: Need, lack: tuple[object, ...]) -> Rejection:
    constraint = Constraint.PROVENANCE if lack[0] is Lack.PROVENANCE else Constraint.REQUIREMENTS
    return Rejection(constraint, (variant, need.label, *lack))


def _fits(need: Need, capability: Capability) -> bool:
    attrs = capability.attrs
    return all(satisfied(predicate, attrs.get(predicate.attr)) for predicate in need.where)


def _nearest(need: Need, found: Sequence[Capability]) -> str:
    """Say which condition fails first on the capability that satisfies most of them.

    In words at once, because 1 and true would pass for the same value later.
    """

    def held(capability: Capability) -> int:
        attrs = capability.attrs
        return sum(satisfied(predicate, attrs.get(predicate.attr)) for predicate in need.where)

    nearest = min(found, key=lambda one: (-held(one), sort_key(one))) if found[1:] else found[0]
    failing = next(
        predicate
        for predicate in need.where
        if not satisfied(predicate, nearest.attrs.get(predicate.attr))
    )
    return shortfall(failing, nearest.attrs.get(failing.attr))


def _free(need: Need, caps: Sequence[Capability], places: list[int], claims: Claims) -> list[int]:
    exclusive = need.requirement.exclusive
    free = [place for place in places if is_usable(caps[place], exclusive=exclusive)]
    if not claims:
        return free
    for key, (alone, shared) in claims.items():
        named = [place for place in places if capability_key(caps[place]) == key]
        # What the node itself reports as taken is what the claims are about, in the first place.
        named.sort(key=lambda place: (place in free, sort_key(caps[place])))
        barred = named[alone:]
        if not exclusive:
            barred = [p for p in barred if p not in free or caps[p].exclusive]
        gone = {*named[:alone], *barred[:shared]}
        free = [place for place in free if place not in gone]
    return free


def _why_taken(capability: Capability) -> str:
    return str(capability.state) if capability.state != "available" else "held"


def _likes(ask: Ask, matter: Matter, claims: Claims) -> float:
    """Add up the weights of the preferences that the node satisfies."""
    return sum(
        (
            weight
            for need, weight in ask.liked
            if isinstance(meets(need, matter, claims, need.floor), list)
        ),
        start=0.0,
    )


def _routed(
    way: Way,
    met: Sequence[Met],
    given: Mapping[int, list[int]],
    matter: Matter,
    locality: float,
) -> Route:
    caps = matter.noted
    assigned: list[tuple[int, bool]] = []
    accelerators: set[int] = set()
    for one in met:
        places = given.get(one.need.slot, one.places[: one.need.requirement.count])
        for place in places:
            capability = caps[place]
            exclusive = one.need.requirement.exclusive or capability.exclusive
            assigned.append((place, exclusive))
            if is_accelerator(capability):
                accelerators.add(place)
    sizes = [capacity_bytes(caps[place]) for place in accelerators]
    known = [size for size in sizes if size is not None]
    return Route(
        variant=way.name,
        execution=way.execution,
        assigned=tuple(assigned),
        capacity_bytes=sum(known) if known and len(known) == len(sizes) else None,
        accelerated=bool(accelerators),
        locality=locality,
    )
