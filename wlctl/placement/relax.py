"""Which terms of the request keep nodes out, and which few would have to go to place it at all?"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

from wlctl.model.facts import Provenance
from wlctl.model.ids import NodeName
from wlctl.model.placement import Rejection, Relaxation, Relaxations
from wlctl.model.workload import Execution
from wlctl.placement.ask import Ask, Need
from wlctl.placement.constraints import ROUTE, RULES
from wlctl.placement.matching import Contended
from wlctl.placement.profile import Matter
from wlctl.placement.route import Claims, Met, contention, meets
from wlctl.placement.rules import Offer

MOST_EXACT = 12
"""Exclusive needs up to which every way of giving some up is tried."""
MOST_STEPS = 50_000_000
"""Steps that trying all of them may take; beyond, it is done greedily and said so."""


@dataclass(frozen=True, slots=True, eq=False)
class Cure:
    """The fewest terms (as bits) that must go for a node to become eligible.

    Attributes:
        sets: Each of the smallest sets that do; empty when none does.
        exact: No smaller one was missed.
    """

    sets: tuple[int, ...]
    exact: bool = True


_CURES = {constraint: rule.cures for constraint, rule in RULES.items() if rule.cures is not None}
"""Of the constraints whose cure depends on the values that were compared."""
HOPELESS = Cure(())
_FREE = Cure((0,))


class Blame:
    """What keeps the rejected nodes of one survey out, kept true as verdicts change."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._fixed = {
            constraint: ask.bits.get(rule.term, 0)
            for constraint, rule in RULES.items()
            if constraint not in _CURES.keys() | ROUTE
        }
        self._by_node: dict[NodeName, Cure] = {}
        self._nodes: dict[Cure, int] = {}
        self._routes: dict[int, Cure] = {}
        self._joined: dict[tuple[int, Cure, tuple[tuple[int, ...], ...]], Cure] = {}
        self._cures: dict[tuple[object, ...], Cure] = {}

    def put(self, offer: Offer, rejections: tuple[Rejection, ...]) -> None:
        """Note why a node is rejected, or that it is not any more."""
        before = self._by_node.pop(offer.node.name, None)
        if before is not None:
            self._nodes[before] -= 1
            if not self._nodes[before]:
                del self._nodes[before]
        if rejections:
            self.add(offer, rejections)

    def add(self, offer: Offer, rejections: tuple[Rejection, ...]) -> None:
        """Note why a node is rejected that was not yet looked at."""
        ask = self._ask
        # Worked out once for all that fail alike. By identity: the offers keep every route alive.
        alike: list[object] = [id(offer.route)]
        for constraint, values in rejections:
            alike.append(constraint)
            cures = _CURES.get(constraint)
            if cures is not None:
                alike.append(cures(ask, values))
        key = tuple(alike)
        cure = self._cures.get(key)
        if cure is None:
            cure = self._cures[key] = self._worked_out(offer, rejections)
        self._by_node[offer.node.name] = cure
        self._nodes[cure] = self._nodes.get(cure, 0) + 1

    def relaxations(self, *, placed: bool, pin: NodeName | None) -> Relaxations:
        """Say what giving up terms would bring.

        Args:
            placed: A node was found, so that no smallest set is wanted.
            pin: The only node that counts; None for all.
        """
        if pin is None:
            cures: Iterable[tuple[Cure, int]] = self._nodes.items()
        else:
            cures = [(self._by_node[pin], 1)] if pin in self._by_node else []
        nodes: Counter[int] = Counter()
        exact = True
        for cure, number in cures:
            exact = exact and cure.exact
            for terms in cure.sets:
                nodes[terms] += number
        single = [terms for terms in nodes if terms.bit_count() == 1]
        single.sort(key=lambda terms: (-nodes[terms], terms))
        fewest = min(nodes, key=lambda terms: (terms.bit_count(), -nodes[terms], terms), default=0)
        return Relaxations(
            single=tuple(self._named(terms, nodes) for terms in single),
            smallest=self._named(fewest, nodes) if fewest and not placed else None,
            exact=exact,
        )

    def _named(self, terms: int, nodes: Counter[int]) -> Relaxation:
        texts = tuple(text for n, text in enumerate(self._ask.terms) if terms >> n & 1)
        return Relaxation(texts, nodes[terms])

    def _worked_out(self, offer: Offer, rejections: tuple[Rejection, ...]) -> Cure:
        forced, route = 0, _FREE
        choices: tuple[tuple[int, ...], ...] = ()
        for constraint, values in rejections:
            if constraint in ROUTE:
                route = self._route(offer)
            elif constraint in _CURES:
                choices += (_CURES[constraint](self._ask, values),)
            elif self._fixed[constraint]:
                forced |= self._fixed[constraint]
            else:
                return HOPELESS
        key = forced, route, choices
        if key not in self._joined:
            sets = (_union((forced, *chosen)) for chosen in product(*choices, route.sets))
            self._joined[key] = Cure(_smallest(sets), route.exact)
        return self._joined[key]

    def _route(self, offer: Offer) -> Cure:
        # By identity: the offers keep every route alive, so no id is used twice.
        cure = self._routes.get(id(offer.route))
        if cure is None:
            # As the node has them: claims are on its own capabilities.
            own = replace(offer.profile.matter, noted=offer.noted)
            cure = cure_route(self._ask, own, offer.held.claims)
            self._routes[id(offer.route)] = cure
        return cure


def _union(masks: Iterable[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _smallest(masks: Iterable[int]) -> tuple[int, ...]:
    found = sorted(set(masks), key=lambda mask: (mask.bit_count(), mask))
    return tuple(mask for mask in found if mask.bit_count() == found[0].bit_count())


def cure_route(ask: Ask, matter: Matter, claims: Claims) -> Cure:
    """Find the fewest needs and terms to give up so that some variant matches.

    Every variant is tried, emulated ones at the price of that term, and all of it again at the
    price of the workload's minimum provenance. A need that fails must go; among exclusive needs
    that contend, the fewest that leave enough for the rest.
    """
    sets: list[int] = []
    exact = True
    for price, relaxed in ((0, False), (ask.bits.get("provenance", 0), True)):
        if relaxed and not price:
            continue
        common, common_met = _failing(ask.common, matter, claims, relaxed=relaxed)
        for way in ask.ways:
            own, met = _failing(way.needs, matter, claims, relaxed=relaxed)
            forbidden = way.execution is Execution.EMULATED and not ask.allow_emulated
            forced = price | common | own | (ask.bits["native"] if forbidden else 0)
            extra = cure_contention([*common_met, *met])
            exact = exact and extra.exact
            sets.extend(forced | mask for mask in extra.sets)
    return Cure(_smallest(sets), exact)


def _failing(
    needs: Sequence[Need], matter: Matter, claims: Claims, *, relaxed: bool
) -> tuple[int, list[Met]]:
    failing, met = 0, []
    for need in needs:
        floor: Provenance = need.own_floor if relaxed else need.floor
        found = meets(need, matter, claims, floor)
        if isinstance(found, list):
            met.append(Met(need, found))
        else:
            failing |= need.term
    return failing, met


def cure_contention(met: Sequence[Met]) -> Cure:
    """Find the fewest exclusive needs to give up so that each of the others has its own."""
    given = contention(met)
    if not isinstance(given, Contended):
        return _FREE
    exclusive = [one for one in met if one.need.requirement.exclusive]
    asked = sum(one.need.requirement.count for one in exclusive)
    steps = asked * sum(len(one.places) for one in exclusive) << len(exclusive)
    if len(exclusive) > MOST_EXACT or steps > MOST_STEPS:
        return _give_up_greedily(exclusive, given)
    tries = (_giving_up(exclusive, size) for size in range(1, len(exclusive) + 1))
    return Cure(_smallest(next(filter(None, tries))))  # giving up all of them always helps


def _giving_up(exclusive: list[Met], size: int) -> list[int]:
    return [
        _union(one.need.term for one in dropped)
        for dropped in combinations(exclusive, size)
        if not isinstance(contention([one for one in exclusive if one not in dropped]), Contended)
    ]


def _give_up_greedily(exclusive: list[Met], given: Contended) -> Cure:
    left, dropped = exclusive, 0
    found: object = given
    while isinstance(found, Contended):
        contending = [one for one in left if one.need.slot in found.wants]
        gone = max(contending, key=lambda one: (one.need.requirement.count, -one.need.slot))
        dropped |= gone.need.term
        left = [one for one in left if one is not gone]
        found = contention(left)
    return Cure((dropped,), exact=False)
