"""The verdict of every node on one ask, kept true while placements are made."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from wlctl.model.facts import Capability
from wlctl.model.fleet import NodeView, Verdict
from wlctl.model.ids import NodeName
from wlctl.model.placement import Candidate, Gated, Rejection
from wlctl.placement.ask import Ask
from wlctl.placement.constraints import checks_of
from wlctl.placement.holdings import Held
from wlctl.placement.profile import Lens, Matter, Profile, matter_of
from wlctl.placement.relax import Blame
from wlctl.placement.route import Claims, Route, find_route
from wlctl.placement.rules import Offer
from wlctl.placement.score import NO_BEST, Rank, Scale, best_of, rank

_NO_CLAIMS: Claims = {}


class Verdicts(NamedTuple):
    """One verdict of every node at one moment."""

    ranked: tuple[Candidate, ...]
    rejected: dict[NodeName, tuple[Rejection, ...]]


class Survey:
    """One verdict of every node: a candidate with its score, or everything it fails.

    Nodes with equal capabilities are matched once. Changing one node judges one node again, and
    scores the others again only when it was, or becomes, what they are measured against.

    Attributes:
        ranked: The candidates, best first.
        candidates: The same, by node.
        rejected: Every other node with all its rejections.
        offers: What every node was judged by.
        blame: What keeps the rejected ones out.
        current_node: Where the instance is that is being moved.
    """

    def __init__(self, ask: Ask, now_ms: int) -> None:
        self.ask = ask
        self.ranked: list[Candidate] = []
        self.candidates: dict[NodeName, Candidate] = {}
        self.rejected: dict[NodeName, tuple[Rejection, ...]] = {}
        self.offers: dict[NodeName, Offer] = {}
        self.blame = Blame(ask)
        self.current_node: NodeName | None = None
        self._gated: tuple[Gated, ...] = ()  # a verdict never changes
        self._ranks: list[Rank] = []  # of `ranked`, which is searched by them
        self._now_ms = now_ms
        self._scale = Scale(ask, NO_BEST)
        self._checks = checks_of(ask)
        self._lens = Lens(ask)
        self._known: dict[int, tuple[tuple[Capability, ...], Profile, Route]] = {}
        self._routes: dict[Matter, Route] = {}
        self._routes_beside: dict[tuple[int, object], Route] = {}

    def judge_all(self, nodes: Iterable[tuple[NodeView, Held, bool]]) -> None:
        """Judge a fleet, once.

        Args:
            nodes: Each with what is held of it, and whether it is retired; in order of their names.
        """
        ask, checks, rejected, offers = self.ask, self._checks, self.rejected, self.offers
        for node, held, retired in nodes:
            offer = offers[node.name] = self.offer(node, held, retired=retired)
            failed: tuple[Rejection, ...] = ()
            for check in checks:
                found = check(ask, offer)
                if found:
                    failed += found
            if failed:
                rejected[node.name] = failed
                self.blame.add(offer, failed)
        self._score_all()

    def offer(self, node: NodeView, held: Held, *, retired: bool) -> Offer:
        """Put together what the rules look at."""
        # By identity: the offers keep every tuple alive, so no id is used twice.
        known = self._known.get(id(node.capabilities))
        if known is None:
            noted, profile = self._lens.look(node.capabilities)
            known = noted, profile, self._route(profile.matter)
            self._known[id(node.capabilities)] = known
        noted, profile, route = known
        if held.claims:
            route = self._route_beside(noted, profile.matter, held, route)
        return Offer(node, held, noted, profile, route, retired, self._now_ms)

    def holding(self, offer: Offer, held: Held) -> Offer:
        """Give `offer` with other holds."""
        return self.offer(offer.node, held, retired=offer.retired)

    def verdicts(self) -> Verdicts:
        """Give all verdicts as they are now."""
        return Verdicts(tuple(self.ranked), dict(self.rejected))

    def gated(self) -> tuple[Gated, ...]:
        """Give what the gate said of every node; the answer that most nodes got comes first."""
        if not self._gated:
            found: dict[tuple[str, ...], tuple[Verdict | None, list[NodeName]]] = {}
            for name, offer in self.offers.items():
                verdict = offer.node.gate
                key = () if verdict is None else (verdict.ruling, verdict.rule, verdict.reason)
                if key not in found:
                    found[key] = verdict, []
                found[key][1].append(name)
            order = sorted(found, key=lambda key: (-len(found[key][1]), key))
            self._gated = tuple(
                Gated(verdict, tuple(nodes)) for verdict, nodes in map(found.__getitem__, order)
            )
        return self._gated

    def put(self, offer: Offer) -> None:
        """Judge one node again, as `offer` now has it."""
        name = offer.node.name
        before = self.offers[name]
        self.offers[name] = offer
        old = self.candidates.pop(name, None)
        if old is not None:
            place = bisect_left(self._ranks, rank(old))
            del self._ranks[place], self.ranked[place]
        failed = tuple([found for check in self._checks for found in check(self.ask, offer)])
        self.blame.put(offer, failed)
        if failed:
            self.rejected[name] = failed
        else:
            self.rejected.pop(name, None)
        if self._moves_best(before if old is not None else None, None if failed else offer):
            self._score_all()
        elif not failed:
            candidate = self._scale.score(offer, self.current_node)
            self.candidates[name] = candidate
            place = bisect_left(self._ranks, rank(candidate))
            self._ranks.insert(place, rank(candidate))
            self.ranked.insert(place, candidate)

    def _survivors(self) -> list[Offer]:
        rejected = self.rejected
        return [offer for name, offer in self.offers.items() if name not in rejected]

    def _score_all(self) -> None:
        survivors = self._survivors()
        self._scale = Scale(self.ask, best_of(survivors))
        score, current = self._scale.score, self.current_node
        self.ranked = sorted([score(offer, current) for offer in survivors], key=rank)
        self._ranks = [rank(candidate) for candidate in self.ranked]
        self.candidates = {candidate.node: candidate for candidate in self.ranked}

    def _moves_best(self, gone: Offer | None, come: Offer | None) -> bool:
        """Answer whether what the others are measured against is another now."""
        if best_of([gone] if gone else []) == best_of([come] if come else []):
            return False
        return best_of(self._survivors()) != self._scale.best

    def _route(self, matter: Matter) -> Route:
        route = self._routes.get(matter)
        if route is None:
            route = self._routes[matter] = find_route(self.ask, matter, _NO_CLAIMS)
        return route

    def _route_beside(
        self, noted: tuple[Capability, ...], matter: Matter, held: Held, alone: Route
    ) -> Route:
        """Find the route beside instances that claim some of the node's own capabilities."""
        claims = held.claims
        if not (self.ask.exclusive or matter.exclusive):
            # A shared claim stands in the way only where one of the two sides is exclusive.
            claims = {key: found for key, found in claims.items() if found[0]}
        if not claims:
            return alone
        key = id(noted), tuple(sorted(claims.items()))
        route = self._routes_beside.get(key)
        if route is None:
            own = matter_of(matter.plan, noted)
            route = self._routes_beside[key] = find_route(self.ask, own, claims)
        return route
