"""The hard rules in the order of their report; every one is asked of every node."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from wlctl.model.facts import Provenance
from wlctl.model.placement import Check as CheckLine
from wlctl.model.placement import Constraint, Rejection
from wlctl.placement import room, standing
from wlctl.placement.ask import Ask
from wlctl.placement.route import Lack, claims_of
from wlctl.placement.rules import Check, Offer, Rule
from wlctl.placement.text import visible


def route(_ask: Ask, offer: Offer) -> tuple[Rejection, ...]:
    """A variant matches, together with what all of them need."""
    return offer.route.rejections


_LACK_WORDS: Mapping[Lack, Callable[..., str]] = MappingProxyType(
    {
        Lack.NOT_ADVERTISED: lambda: "not advertised",
        Lack.PROVENANCE: lambda best, floor: f"provenance {best.word}, needs {floor.word}",
        Lack.PREDICATE: str,
        Lack.UNAVAILABLE: lambda *why: f"not available: {', '.join(why)}",
        Lack.COUNT: lambda have, need: f"have {have}, need {need}",
        Lack.CONTENDED: lambda asked, there: (
            f"contended: {asked} wanted exclusively, {there} there"
        ),
    }
)
_LACK_CHANGES: Mapping[Lack, Callable[..., str]] = MappingProxyType(
    {
        Lack.NOT_ADVERTISED: lambda label: f"add {label}",
        Lack.PROVENANCE: lambda label, _best, floor: (
            f"{'measure' if floor is Provenance.MEASURED else 'probe'} {label}"
        ),
        Lack.PREDICATE: lambda label, shortfall: f"change {label}: {shortfall}",
        Lack.UNAVAILABLE: lambda label, *_why: f"free {label}",
        Lack.COUNT: lambda label, have, need: f"add {need - have} more {label}",
        Lack.CONTENDED: lambda label, asked, there: f"add {asked - there} more of {label}",
    }
)
_LACK_SUBJECTS: Mapping[Lack, str] = MappingProxyType(
    {
        Lack.NOT_ADVERTISED: "lack {}",
        Lack.PROVENANCE: "{} not checked well enough",
        Lack.PREDICATE: "{} does not fit",
        Lack.UNAVAILABLE: "{} not available",
        Lack.COUNT: "too few {}",
        Lack.CONTENDED: "{} contended",
    }
)
_LACK_EFFORT: Mapping[Lack, float] = MappingProxyType(
    {
        Lack.PROVENANCE: 2.5,
        Lack.UNAVAILABLE: 6.0,
        Lack.COUNT: 6.1,
        Lack.CONTENDED: 6.2,
        Lack.PREDICATE: 6.3,
        Lack.NOT_ADVERTISED: 6.4,
    }
)


def _need_detail(variant: str, label: str, lack: Lack, *values: Any) -> str:
    before = f"variant {visible(variant)}: " if variant else ""
    return f"{before}{label}: {_LACK_WORDS[lack](*values)}"


def _need_change(variant: str, label: str, lack: Lack, *values: Any) -> str:
    change = _LACK_CHANGES[lack](label, *values)
    return f"{change} (variant {visible(variant)})" if variant else change


def _need_subject(variant: str, label: str, lack: Lack, *_values: Any) -> str:
    subject = _LACK_SUBJECTS[lack].format(label)
    return f"{subject} (variant {visible(variant)})" if variant else subject


def _names(variants: tuple[str, ...]) -> str:
    return ", ".join(map(visible, variants))


def _route_holds(_ask: Ask, offer: Offer) -> str:
    found = offer.route
    if not found.variant:
        return "not the reason"
    given = ", ".join(visible(one.key) for one in claims_of(found, offer.noted))
    return f"variant {visible(found.variant)} ({found.execution})" + (f": {given}" if given else "")


_NEED = Rule(
    check=route,
    holds=_route_holds,
    detail=_need_detail,
    change=_need_change,
    subject=_need_subject,
    effort=lambda _variant, _label, lack, *_values: _LACK_EFFORT[lack],
)
_EMULATION = Rule(
    check=lambda _ask, _offer: (),  # `route` reports it
    holds=lambda _ask, _offer: "not needed",
    detail=lambda *variants: f"only emulated variants match: {_names(variants)}",
    change=lambda *variants: f"allow emulation ({_names(variants)})",
    subject=lambda *_variants: "only emulated",
    effort=lambda *_variants: 1.5,
)

RULES: Mapping[Constraint, Rule] = MappingProxyType(
    {
        **standing.RULES,
        **room.RULES,
        Constraint.REQUIREMENTS: _NEED,
        Constraint.PROVENANCE: _NEED,
        Constraint.EMULATION_NOT_ALLOWED: _EMULATION,
    }
)
ROUTE = frozenset(
    {Constraint.REQUIREMENTS, Constraint.PROVENANCE, Constraint.EMULATION_NOT_ALLOWED}
)
"""What the one check `route` reports."""

_RULES_ASKED = tuple(
    RULES[constraint]
    for constraint in Constraint
    if constraint not in ROUTE - {Constraint.REQUIREMENTS}
)


def checks_of(ask: Ask) -> tuple[Check, ...]:
    """Give the checks that a node could fail, in the order of the report."""
    return tuple(rule.check for rule in _RULES_ASKED if rule.asked(ask))


def detail(found: Rejection) -> str:
    """Put a rejection into words: the need and what the node has, with units."""
    return RULES[found.constraint].detail(*found.values)


def check_list(ask: Ask, offer: Offer) -> Iterator[CheckLine]:
    """Go through every constraint, met or not, with the values that were compared."""
    failed = [found for check in checks_of(ask) for found in check(ask, offer)]
    for constraint in Constraint:
        mine = [found for found in failed if found.constraint is constraint]
        for found in mine:
            yield CheckLine(constraint, passed=False, detail=detail(found))
        if not mine:
            yield CheckLine(constraint, passed=True, detail=RULES[constraint].holds(ask, offer))
