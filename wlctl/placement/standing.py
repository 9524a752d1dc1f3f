"""The rules about a node's standing: is it there, known, trusted, permitted, a good neighbour?"""

from collections.abc import Mapping
from types import MappingProxyType

from wlctl.model.fleet import Ruling, Verdict
from wlctl.model.node import Liveness, Tier
from wlctl.model.placement import Constraint, Rejection
from wlctl.placement.ask import Ask
from wlctl.placement.rules import Offer, Rule, rejection
from wlctl.placement.text import count, span, visible

_ALLOWED = Ruling.ALLOWED  # bound once: reading it off its enum costs ten times as much
_RETIRED = rejection(Constraint.NODE_RETIRED)
_CORDONED = rejection(Constraint.LIVENESS, "cordoned")
_ALIVE = Liveness.ALIVE
_SILENT = {state: rejection(Constraint.LIVENESS, state.value) for state in Liveness}
NO_VERDICT = "no verdict"
"""Why a node is denied of which the gate was not asked."""
_NO_FACTS = rejection(Constraint.FACTS_EXPIRED, None)


def node_retired(_ask: Ask, offer: Offer) -> tuple[Rejection, ...]:
    """A node attested dead or rekeyed away takes nothing."""
    return _RETIRED if offer.retired else ()


def liveness(_ask: Ask, offer: Offer) -> tuple[Rejection, ...]:
    """Only a node that is alive and not cordoned takes anything."""
    node = offer.node
    silent = () if node.liveness is _ALIVE else _SILENT[node.liveness]
    return silent + _CORDONED if node.cordoned else silent


def facts_expired(_ask: Ask, offer: Offer) -> tuple[Rejection, ...]:
    """Facts count until, and not at, the moment they expire."""
    expire_at_ms = offer.node.facts_expire_at_ms
    if expire_at_ms is None:
        return _NO_FACTS
    if expire_at_ms > offer.now_ms:
        return ()
    return rejection(Constraint.FACTS_EXPIRED, span(offer.now_ms - expire_at_ms))


def trust(ask: Ask, offer: Offer) -> tuple[Rejection, ...]:
    """The node's tier is at least the one the workload asks for."""
    least = ask.spec.policy.min_trust
    if offer.node.tier >= least:
        return ()
    return rejection(Constraint.TRUST, offer.node.tier, least)


def workload_revoked(ask: Ask, _offer: Offer) -> tuple[Rejection, ...]:
    """Nothing of the workload is revoked."""
    return rejection(Constraint.WORKLOAD_REVOKED, *ask.revoked)


def co_residency(ask: Ask, offer: Offer) -> tuple[Rejection, ...]:
    """No neighbour carries a label we exclude, and none excludes a label of ours."""
    if not offer.held.outspoken:
        return ()
    carriers: dict[str, list[str]] = {}
    objectors: dict[str, list[str]] = {}
    for hold in offer.held.outspoken:
        for label in ask.excludes.intersection(hold.labels):
            carriers.setdefault(label, []).append(hold.name)
        for label in ask.labels.intersection(hold.excludes):
            objectors.setdefault(label, []).append(hold.name)
    return tuple(
        Rejection(Constraint.CO_RESIDENCY, (direction, label, min(names), len(names)))
        for direction, found in (("carries", carriers), ("excludes", objectors))
        for label, names in sorted(found.items())
    )


def gate(_ask: Ask, offer: Offer) -> tuple[Rejection, ...]:
    """The gate has allowed this placement on this node; no verdict is a denial."""
    verdict = offer.node.gate
    if verdict is None:
        return rejection(Constraint.GATE, Ruling.DENIED.value, "", NO_VERDICT)
    if verdict.ruling is _ALLOWED:
        return ()
    return rejection(Constraint.GATE, verdict.ruling.value, verdict.rule, verdict.reason)


def _liveness_change(state: str) -> str:
    match state:
        case "cordoned":
            return "uncordon it"
        case "unknown":
            return "probe it: never contacted"
        case _:
            return f"bring it back: {state}"


def _tier_words(has: Tier, needs: Tier) -> str:
    return f"tier {has.word}, needs {needs.word}"


def _facts_detail(ago: str | None) -> str:
    return "no facts yet" if ago is None else f"facts expired {ago} ago"


def _facts_holds(_ask: Ask, offer: Offer) -> str:
    expire_at_ms = offer.node.facts_expire_at_ms
    assert expire_at_ms is not None, "the rule has looked"
    return f"facts expire in {span(expire_at_ms - offer.now_ms)}"


def _neighbour(direction: str, label: str, name: str, names: int) -> str:
    others = f" and {names - 1} more" if names > 1 else ""
    verb = direction if names == 1 else {"carries": "carry", "excludes": "exclude"}[direction]
    return f"{visible(name)}{others} {verb} label {visible(label)}"


def _neighbours_hold(ask: Ask, offer: Offer) -> str:
    wishes = [f"label {visible(label)}" for label in sorted(ask.labels)]
    wishes += [f"excludes {visible(label)}" for label in sorted(ask.excludes)]
    if not wishes:
        return "no labels, excludes nothing"
    return f"{', '.join(wishes)}: {count(len(offer.held.holds), 'neighbour')}, none objects"


def verdict_words(ruling: str, rule: str, reason: str) -> str:
    """Put an answer of the gate into words: `allowed by paired-signed`."""
    by = f" by {visible(rule)}" if rule else ""
    return f"{ruling}{by}: {visible(reason)}" if reason else f"{ruling}{by}"


def _gate_holds(_ask: Ask, offer: Offer) -> str:
    verdict = offer.node.gate
    assert isinstance(verdict, Verdict), "the rule has looked"
    return verdict_words(verdict.ruling.value, verdict.rule, verdict.reason)


def _co_residency_cure(ask: Ask, values: tuple[str, str, str, int]) -> tuple[int, ...]:
    direction, label, *_ = values
    return (ask.bits[f"{'exclude' if direction == 'carries' else 'label'} {label}"],)


RULES: Mapping[Constraint, Rule] = MappingProxyType(
    {
        Constraint.NODE_RETIRED: Rule(
            check=node_retired,
            holds=lambda _ask, _offer: "not retired",
            detail=lambda: "retired",
            change=lambda: "add the machine as a new node",
            subject=lambda: "retired",
            effort=lambda: 11.0,
        ),
        Constraint.LIVENESS: Rule(
            check=liveness,
            holds=lambda _ask, _offer: "alive",
            detail=str,
            change=_liveness_change,
            subject=str,
            effort=lambda state: 1.0 if state == "cordoned" else 9.0,
        ),
        Constraint.FACTS_EXPIRED: Rule(
            check=facts_expired,
            holds=_facts_holds,
            detail=_facts_detail,
            change=lambda ago: f"{'re-probe' if ago else 'probe'}: {_facts_detail(ago)}",
            subject=lambda ago: "facts expired" if ago else "no facts yet",
            effort=lambda ago: 0.0 if ago else 0.5,
        ),
        Constraint.TRUST: Rule(
            check=trust,
            holds=lambda ask, offer: _tier_words(offer.node.tier, ask.spec.policy.min_trust),
            detail=_tier_words,
            change=lambda has, needs: f"raise tier {has.word} -> {needs.word}",
            subject=lambda _has, needs: f"tier below {needs.word}",
            effort=lambda has, needs: 2.0 + (needs - has) / 10,
            term="trust",
        ),
        Constraint.WORKLOAD_REVOKED: Rule(
            check=workload_revoked,
            asked=lambda ask: bool(ask.revoked),
            holds=lambda _ask, _offer: "nothing of it is revoked",
            detail=lambda *refs: f"revoked: {', '.join(map(visible, refs))}",
            change=lambda *refs: f"unrevoke {', '.join(map(visible, refs))}",
            subject=lambda *refs: f"revoked {', '.join(map(visible, refs))}",
            effort=lambda *_refs: 10.0,
        ),
        Constraint.CO_RESIDENCY: Rule(
            check=co_residency,
            asked=lambda ask: bool(ask.labels or ask.excludes),
            holds=_neighbours_hold,
            detail=_neighbour,
            change=lambda _direction, _label, name, names: (
                f"move {visible(name)} away" if names == 1 else f"move {names} neighbours away"
            ),
            subject=lambda direction, label, *_names: f"neighbour {direction} {visible(label)}",
            effort=lambda _direction, _label, _name, names: 5.0 + min(names, 99) / 100,
            cures=_co_residency_cure,
        ),
        Constraint.GATE: Rule(
            check=gate,
            holds=_gate_holds,
            detail=verdict_words,
            change=lambda ruling, _rule, _reason: (
                "get it approved" if ruling == "deferred" else "permit it in the policy"
            ),
            subject=lambda ruling, rule, _reason: (
                f"gate {ruling} by {visible(rule)}" if rule else f"gate {ruling}: no verdict"
            ),
            effort=lambda ruling, _rule, _reason: 7.0 if ruling == "deferred" else 8.0,
        ),
    }
)
