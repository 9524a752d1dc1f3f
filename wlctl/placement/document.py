"""What is kept of a decision: everything that `explain` needs, as plain JSON values.

The ledger stores what `encode` makes of it; the sha256 of that is what the chain binds.
"""

import json
from collections.abc import Iterable, Mapping
from typing import cast

from wlctl.errors import InvalidFile
from wlctl.model.ids import NodeName
from wlctl.model.placement import (
    Candidate,
    Constraint,
    Decision,
    Placement,
    PlaceRequest,
    Rejection,
    Relaxation,
    Terms,
    Tiering,
    Weights,
)
from wlctl.placement import constraints
from wlctl.placement.ask import describe
from wlctl.placement.shapes import (
    SCHEMA,
    CandidateShape,
    Document,
    NeedsShape,
    OptionsShape,
    PlacementShape,
    RejectedShape,
    RejectionShape,
    RelaxationShape,
    TallyShape,
)

MOST_DISPATCHED = 20
"""Nodes of a dispatch order that are kept; the rest follows from the ranking."""

_CONSTRAINT_ORDER = {constraint: n for n, constraint in enumerate(Constraint)}


def document(decision: Decision) -> Document:
    """Put the whole decision into plain values; equal decisions give equal documents."""
    request, relaxations = decision.request, decision.relaxations
    smallest = relaxations.smallest
    return {
        "checks": {
            node: [
                {"constraint": check.constraint, "detail": check.detail, "passed": check.passed}
                for check in checks
            ]
            for node, checks in decision.checks.items()
        },
        "decided_at_ms": decision.now_ms,
        "eligible": [_candidate(candidate) for candidate in decision.ranked],
        "fits": decision.fits,
        "options": _options(request),
        "outcome": "placed" if decision.placements else "unplaceable",
        "placements": [_placement(placement) for placement in decision.placements],
        "rejected": _grouped(decision.rejected),
        "relaxations": {
            "exact": relaxations.exact,
            "single": [_relaxation(one) for one in relaxations.single],
            "smallest": None if smallest is None else _relaxation(smallest),
        },
        "schema": SCHEMA,
        "summary": _tallies(decision.rejected.values()),
        "tiers": [tier.value for tier in Tiering],
        "weights": {name: getattr(decision.weights, name) for name in _WEIGHTS},
        "workload": _needs(request),
    }


_WEIGHTS = sorted(Weights.__dataclass_fields__)


def encode(found: Document) -> bytes:
    """Write a document as it is stored: the same document always gives the same bytes."""
    text = json.dumps(found, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


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


def _candidate(found: Candidate) -> CandidateShape:
    return {
        "assigned": [claim.key for claim in found.assigned],
        "flags": list(found.flags),
        "node": found.node,
        "terms": dict(zip(Terms._fields, found.terms, strict=True)),
        "tier": found.tier,
        "total": found.total,
        "variant": found.variant,
    }


def _placement(found: Placement) -> PlacementShape:
    return {
        "affinity": found.affinity,
        "chosen": _candidate(found.chosen),
        "dispatch": [one.node for one in found.dispatch[:MOST_DISPATCHED]],
        "dispatch_length": len(found.dispatch),
        "full": _grouped(found.full),
    }


def _relaxation(found: Relaxation) -> RelaxationShape:
    return {"nodes": found.nodes, "terms": list(found.terms)}


def _grouped(rejected: Mapping[NodeName, tuple[Rejection, ...]]) -> list[RejectedShape]:
    """Put nodes that fail the same together, in the order of their first names."""
    groups: dict[tuple[Rejection, ...], list[str]] = {}
    for node in sorted(rejected):
        groups.setdefault(rejected[node], []).append(node)
    return [
        {"nodes": nodes, "rejections": [_rejection(found) for found in rejections]}
        for rejections, nodes in groups.items()
    ]


def _rejection(found: Rejection) -> RejectionShape:
    return {
        "change": constraints.change(found),
        "constraint": found.constraint,
        "detail": constraints.detail(found),
        "effort": constraints.effort(found),
    }


def _tallies(rejected: Iterable[tuple[Rejection, ...]]) -> list[TallyShape]:
    """Count the nodes that each cause rejects, alone and among others; the most first."""
    values: dict[tuple[Constraint, str], list[tuple[object, ...]]] = {}
    alone: dict[tuple[Constraint, str], int] = {}
    nodes: dict[tuple[Constraint, str], int] = {}
    for rejections in rejected:
        causes = set()
        for found in rejections:
            cause = found.constraint, constraints.RULES[found.constraint].subject(*found.values)
            causes.add(cause)
            values.setdefault(cause, []).append(found.values)
        for cause in causes:
            nodes[cause] = nodes.get(cause, 0) + 1
            alone[cause] = alone.get(cause, 0) + (len(causes) == 1)
    order = sorted(nodes, key=lambda cause: (-nodes[cause], _CONSTRAINT_ORDER[cause[0]], cause[1]))
    return [
        {
            "alone": alone[cause],
            "among_others": nodes[cause] - alone[cause],
            "constraint": cause[0],
            "what": constraints.RULES[cause[0]].tally(cause[1], values[cause]),
        }
        for cause in order
    ]
