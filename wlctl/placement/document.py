"""What is kept of a decision: everything that `explain` needs, as JSON text.

The ledger stores what `encode` makes; the sha256 of that is what the chain binds. The document is
what that text says, so that what is shown and what is kept cannot differ.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import cast

from wlctl.errors import InvalidFile
from wlctl.model.fleet import Claim, Ruling
from wlctl.model.ids import NodeName
from wlctl.model.placement import (
    Candidate,
    Check,
    Constraint,
    Decision,
    Gated,
    Placement,
    PlaceRequest,
    Rejection,
    Relaxation,
    Relaxations,
    Tiering,
    Weights,
)
from wlctl.placement import constraints
from wlctl.placement.ask import describe
from wlctl.placement.shapes import (
    SCHEMA,
    CheckShape,
    Document,
    GatedShape,
    NeedsShape,
    OptionsShape,
    RelaxationShape,
    RelaxationsShape,
    TallyShape,
)
from wlctl.placement.standing import NO_VERDICT

MOST_DISPATCHED = 20
"""Nodes of a dispatch order that are kept; the rest follows from the ranking."""

_CONSTRAINT_ORDER = {constraint: n for n, constraint in enumerate(Constraint)}
_WEIGHTS = sorted(Weights.__dataclass_fields__)

Rejections = tuple[Rejection, ...]


def document(decision: Decision) -> Document:
    """Give the whole decision as plain values: what its stored text says."""
    return decode(encode(decision))


def encode(found: Decision | Document) -> bytes:
    """Write a decision, or its document, as it is stored: equal decisions give equal bytes.

    JSON in ASCII without spaces, keys sorted, as `json.dumps` writes it. The long lists of a
    decision are put together by hand: a large fleet takes half the time.
    """
    text = _written(found) if isinstance(found, Decision) else _dumps(found)
    return text.encode("ascii")


def _written(decision: Decision) -> str:
    groups = _groups(decision.rejected)
    parts = {
        "checks": _dumps({node: _checks(lines) for node, lines in decision.checks.items()}),
        "decided_at_ms": _dumps(decision.now_ms),
        "eligible": _list(map(_candidate, decision.ranked)),
        "fits": _dumps(decision.fits),
        "gated": _dumps(_gated(decision.gated)),
        "options": _dumps(_options(decision.request)),
        "outcome": _dumps("placed" if decision.placements else "unplaceable"),
        "placements": _list(map(_placement, decision.placements)),
        "rejected": _rejected(groups),
        "relaxations": _dumps(_relaxations(decision.relaxations)),
        "schema": _dumps(SCHEMA),
        "summary": _dumps(_tallies(groups)),
        "tiers": _dumps([tier.value for tier in Tiering]),
        "weights": _dumps({name: getattr(decision.weights, name) for name in _WEIGHTS}),
        "workload": _dumps(_needs(decision.request)),
    }
    return _object(parts)


def _dumps(found: object) -> str:
    return json.dumps(found, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _list(texts: Iterable[str]) -> str:
    return f"[{','.join(texts)}]"


def _object(parts: Mapping[str, str]) -> str:
    return "{" + ",".join([f'"{name}":{text}' for name, text in parts.items()]) + "}"


def decode(stored: bytes | str) -> Document:
    """Read a stored document.

    Raises:
        InvalidFile: It is not one, or of a version this wlctl does not know.
    """
    try:
        found = json.loads(stored)
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"not a decision: {error}") from error
    schema = found.get("schema") if isinstance(found, dict) else None
    if schema != SCHEMA:
        raise InvalidFile(f"not a decision this wlctl can read: schema {schema!r}, not {SCHEMA}")
    return cast("Document", found)


def _options(request: PlaceRequest) -> OptionsShape:
    return {
        "allow_emulated": request.allow_emulated,
        "avoid": list(request.avoid),
        "count": request.count,
        "current_node": request.current_node,
        "pin": request.pin,
        "prefer": list(request.prefer),
        "where": sorted(map(describe, request.where)),
    }


def _needs(request: PlaceRequest) -> NeedsShape:
    spec = request.workload
    resources, policy = spec.resources, spec.policy
    return {
        "accel_memory_bytes": resources.accel_memory_bytes,
        "cpu_cores": float(resources.cpu_cores),
        "disk_bytes": resources.disk_bytes,
        "excludes": sorted(set(policy.excludes)),
        "kind": spec.kind.value,
        "labels": sorted(set(policy.labels)),
        "latency_class": policy.latency_class.value,
        "memory_bytes": resources.memory_bytes,
        "min_provenance": policy.min_provenance.word,
        "min_trust": policy.min_trust.word,
        "name": spec.name,
        "perf": "" if policy.perf is None else f"{policy.perf.id} >= {policy.perf.minimum!r}",
        "ports": dict(spec.ports),
        "preferences": sorted(
            f"{describe(liked.requirement)} {liked.weight:.2f}" for liked in policy.preferences
        ),
        "requirements": sorted(map(describe, spec.common)),
        "sticky": policy.sticky,
        "variants": [
            {
                "execution": variant.execution.value,
                "name": variant.name,
                "requirements": sorted(map(describe, variant.requirements)),
            }
            for variant in spec.variants
        ],
        "version": spec.version,
    }


def _gated(found: Sequence[Gated]) -> list[GatedShape]:
    """Write each answer once, and by name only the nodes that did not get the commonest one."""
    return [
        {
            "nodes": list(one.nodes) if place else [],
            "number": len(one.nodes),
            "reason": one.verdict.reason if one.verdict else NO_VERDICT,
            "rule": one.verdict.rule if one.verdict else "",
            "ruling": one.verdict.ruling.value if one.verdict else Ruling.DENIED.value,
        }
        for place, one in enumerate(found)
    ]


def _checks(lines: Sequence[Check]) -> list[CheckShape]:
    return [
        {"constraint": line.constraint, "detail": line.detail, "passed": line.passed}
        for line in lines
    ]


def _relaxations(found: Relaxations) -> RelaxationsShape:
    return {
        "exact": found.exact,
        "single": [_relaxation(one) for one in found.single],
        "smallest": None if found.smallest is None else _relaxation(found.smallest),
    }


def _relaxation(found: Relaxation) -> RelaxationShape:
    return {"nodes": found.nodes, "terms": list(found.terms)}


def _candidate(found: Candidate) -> str:
    node, variant, tier, total, terms, flags, assigned = found
    execution, locality, accel_fit, perf, load, room, spread, stickiness = terms
    return (
        f'{{"assigned":{_keys(assigned)},"flags":{_texts(flags)},'
        f'"node":{encode_basestring_ascii(node)},"terms":{{"accel_fit":{accel_fit!r},'
        f'"execution":{execution!r},"load":{load!r},"locality":{locality!r},"perf":{perf!r},'
        f'"room":{room!r},"spread":{spread!r},"stickiness":{stickiness!r}}},'
        f'"tier":"{tier}","total":{total!r},"variant":{encode_basestring_ascii(variant)}}}'
    )


@lru_cache(maxsize=4096)  # most candidates of a fleet are given the same
def _keys(assigned: tuple[Claim, ...]) -> str:
    return _texts(tuple(claim.key for claim in assigned))


def _texts(texts: Iterable[str]) -> str:
    return _list(map(encode_basestring_ascii, texts))


def _placement(found: Placement) -> str:
    return _object(
        {
            "affinity": _dumps(found.affinity),
            "chosen": _candidate(found.chosen),
            "dispatch": _dumps([one.node for one in found.dispatch[:MOST_DISPATCHED]]),
            "dispatch_length": _dumps(len(found.dispatch)),
            "full": _rejected(_groups(found.full)),
        }
    )


def _groups(rejected: Mapping[NodeName, Rejections]) -> dict[Rejections, list[NodeName]]:
    """Put nodes that fail the same together, in the order of their first names."""
    groups: dict[Rejections, list[NodeName]] = {}
    for node in sorted(rejected):
        groups.setdefault(rejected[node], []).append(node)
    return groups


def _rejected(groups: Mapping[Rejections, Sequence[NodeName]]) -> str:
    return _list(
        f'{{"nodes":{_texts(nodes)},"rejections":{_list(map(_rejection, rejections))}}}'
        for rejections, nodes in groups.items()
    )


def _rejection(found: Rejection) -> str:
    rule, values = constraints.RULES[found.constraint], found.values
    return (
        f'{{"change":{encode_basestring_ascii(rule.change(*values))},'
        f'"constraint":"{found.constraint}",'
        f'"detail":{encode_basestring_ascii(rule.detail(*values))},'
        f'"effort":{rule.effort(*values)!r}}}'
    )


def _tallies(groups: Mapping[Rejections, Sequence[NodeName]]) -> list[TallyShape]:
    """Count the nodes that each cause rejects, alone and among others; the most first."""
    values: dict[tuple[Constraint, str], list[tuple[object, ...]]] = {}
    alone: dict[tuple[Constraint, str], int] = {}
    total: dict[tuple[Constraint, str], int] = {}
    for rejections, nodes in groups.items():
        causes = set()
        for constraint, compared in rejections:
            cause = constraint, constraints.RULES[constraint].subject(*compared)
            causes.add(cause)
            values.setdefault(cause, []).append(compared)
        for cause in causes:
            total[cause] = total.get(cause, 0) + len(nodes)
            alone[cause] = alone.get(cause, 0) + (len(nodes) if len(causes) == 1 else 0)
    order = sorted(total, key=lambda cause: (-total[cause], _CONSTRAINT_ORDER[cause[0]], cause[1]))
    return [
        {
            "alone": alone[cause],
            "among_others": total[cause] - alone[cause],
            "constraint": cause[0],
            "what": constraints.RULES[cause[0]].tally(cause[1], values[cause]),
        }
        for cause in order
    ]
