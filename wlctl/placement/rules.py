"""What a hard rule is made of: the check, and everything it can say."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from wlctl.model.facts import Capability
from wlctl.model.fleet import NodeView
from wlctl.model.placement import Constraint, Rejection
from wlctl.placement.ask import Ask
from wlctl.placement.holdings import Held
from wlctl.placement.profile import Profile
from wlctl.placement.route import Route


@dataclass(slots=True, eq=False)
class Offer:
    """One node with all that a rule may look at.

    Attributes:
        held: What is promised on it, without the instance that is being moved.
        noted: Those of its capabilities that mean anything to the ask.
        retired: Attested dead, or rekeyed away.
        now_ms: The moment of the decision.
    """

    node: NodeView
    held: Held
    noted: tuple[Capability, ...]
    profile: Profile
    route: Route
    retired: bool
    now_ms: int


Check = Callable[[Ask, Offer], tuple[Rejection, ...]]
"""Answers every way in which the offer fails the rule: nothing when it holds."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One constraint: the check, and its words. Each takes the values of a rejection.

    Attributes:
        holds: What to say in a check list when the rule is met.
        detail: What the node has and what is needed, with units.
        change: The smallest change that would admit the node.
        subject: What rejections are counted together under.
        asked: Whether any node at all could fail this ask.
        tally: How such a count is called, given the values of all of them.
        effort: How much the change asks for: among nearest misses the lower comes first. The whole
            part is the kind of change, the fraction how far off the node is.
        term: The policy term that, given up, would admit it; empty when none would.
        cures: Where that depends on the values: the terms (as bits) any one set of which would.
    """

    check: Check
    holds: Callable[[Ask, Offer], str]
    detail: Callable[..., str]
    change: Callable[..., str]
    subject: Callable[..., str]
    effort: Callable[..., float]
    term: str = ""
    cures: Callable[[Ask, tuple[Any, ...]], tuple[int, ...]] | None = None
    asked: Callable[[Ask], bool] = lambda _ask: True
    tally: Callable[[str, Sequence[tuple[Any, ...]]], str] = lambda subject, _values: subject


def rejection(constraint: Constraint, *values: object) -> tuple[Rejection, ...]:
    """Say that one thing is wrong."""
    return (Rejection(constraint, values),)
