"""The verdict of every node on one ask, kept true while placements are made."""

from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import NamedTuple

from wlctl.model.facts import Capability
from wlctl.model.fleet import NodeView
from wlctl.model.ids import NodeName
from wlctl.model.placement import Candidate, Rejection
from wlctl.placement.ask import Ask
from wlctl.placement.constraints import CHECKS
from wlctl.placement.holdings import Held
from wlctl.placement.profile import Lens, Profile
from wlctl.placement.relax import Blame
from wlctl.placement.route import Claims, Route, find_route, likes
from wlctl.placement.rules import Offer
from wlctl.placement.score import Best, best_of, rank, score

_NO_CLAIMS: Claims = {}


class Verdicts(NamedTuple):
    """One verdict of every node at one moment."""

    ranked: tuple[Candidate, ...]
    rejected: dict[NodeName, tuple[Rejection, ...]]


class Survey:
    """One verdict of every node: a candidate with its score, or everything it fails.

    Nodes that share one tuple of capabilities are matched once. Changing one node judges one node
    again, and scores the others again only when it was, or becomes, what they are measured against.

    Attributes:
        ranked: The candidates, best first.
        candidates: The same, by node.
        rejected: Every other node with all its rejections.
        blame: What keeps the rejected ones out.
        current_node: Where the instance is that is being moved.
    """

    def __init__(self, ask: Ask, now_ms: int) -> None:
        self.ask = ask
        self.ranked: list[Candidate] = []
        self.candidates: dict[NodeName, Candidate] = {}
        self.rejected: dict[NodeName, tuple[Rejection, ...]] = {}
        self.offers: dict[NodeName, Offer] = {}
        self.current_node: NodeName | None = None
        self.blame = Blame(ask)
        self._now_ms = now_ms
        self._best = Best(None, None)
        self._lens = Lens(ask)
        self._profiles: dict[int, Profile] = {}
        self._routes: dict[tuple[int, object], Route] = {}

    def judge_all(self, nodes: Iterable[tuple[NodeView, Held, bool]]) -> None:
        """Judge a fleet, once.

        Args:
            nodes: Each with what is held of it, and whether it is retired; in order of their names.
        """
        for node, held, retired in nodes:
            offer = self.offer(node, held, retired=retired)
            self.offers[node.name] = offer
            failed = self._failures(offer)
            if failed:
                self.rejected[node.name] = failed
                self.blame.put(offer, self._claims(held), failed)
        self._score_all()

    def offer(self, node: NodeView, held: Held, *, retired: bool) -> Offer:
        """Put together what the rules look at."""
        profile = self._profile(node.capabilities)
        return Offer(node, held, profile, self._route(profile, held), retired, self._now_ms)

    def holding(self, offer: Offer, held: Held) -> Offer:
        """Give `offer` with other holds."""
        return self.offer(offer.node, held, retired=offer.retired)

    def verdicts(self) -> Verdicts:
        """Give all verdicts as they are now."""
        return Verdicts(tuple(self.ranked), dict(self.rejected))

    def put(self, offer: Offer) -> None:
        """Judge one node again, as `offer` now has it."""
        name = offer.node.name
        before = self.offers[name]
        self.offers[name] = offer
        old = self.candidates.pop(name, None)
        if old is not None:
            del self.ranked[bisect_left(self.ranked, rank(old), key=rank)]
        failed = self._failures(offer)
        self.blame.put(offer, self._claims(offer.held), failed)
        if failed:
            self.rejected[name] = failed
        else:
            self.rejected.pop(name, None)
        if self._moves_best(before if old is not None else None, None if failed else offer):
            self._score_all()
        elif not failed:
            candidate = score(self.ask, offer, self._best, self.current_node)
            self.candidates[name] = candidate
            insort(self.ranked, candidate, key=rank)

    def _failures(self, offer: Offer) -> tuple[Rejection, ...]:
        failed: tuple[Rejection, ...] = ()
        ask = self.ask
        for check in CHECKS:
            found = check(ask, offer)
            if found:
                failed += found
        return failed

    def _score_all(self) -> None:
        survivors = [offer for name, offer in self.offers.items() if name not in self.rejected]
        self._best = best_of(survivors)
        ask, best, current = self.ask, self._best, self.current_node
        self.ranked = sorted((score(ask, offer, best, current) for offer in survivors), key=rank)
        self.candidates = {candidate.node: candidate for candidate in self.ranked}

    def _moves_best(self, gone: Offer | None, come: Offer | None) -> bool:
        """Answer whether what the others are measured against may be another now."""
        best = self._best
        if gone is not None and (
            (best.capacity_bytes is not None and gone.route.capacity_bytes == best.capacity_bytes)
            or (best.measured is not None and gone.profile.measured == best.measured)
        ):
            return come is None or (come.route, come.profile) != (gone.route, gone.profile)
        if come is None:
            return False
        joint = best_of((come,))
        return (
            joint.capacity_bytes is not None
            and (best.capacity_bytes is None or joint.capacity_bytes < best.capacity_bytes)
        ) or (
            joint.measured is not None and (best.measured is None or joint.measured > best.measured)
        )

    def _profile(self, capabilities: tuple[Capability, ...]) -> Profile:
        # By identity: the offers keep every tuple alive, so no id is used twice.
        profile = self._profiles.get(id(capabilities))
        if profile is None:
            profile = self._lens.look(capabilities)
            if self.ask.liked:
                profile.locality = likes(self.ask, profile)
            self._profiles[id(capabilities)] = profile
        return profile

    def _route(self, profile: Profile, held: Held) -> Route:
        claims = self._claims(held)
        key = (id(profile), tuple(sorted(claims.items())) if claims else None)
        route = self._routes.get(key)
        if route is None:
            route = self._routes[key] = find_route(self.ask, profile, claims)
        return route

    def _claims(self, held: Held) -> Claims:
        """Those that could stand in the way: a shared one only does where a need is exclusive."""
        if not held.claims:
            return _NO_CLAIMS
        if self.ask.exclusive:
            return held.claims
        return {key: found for key, found in held.claims.items() if found[0]}
