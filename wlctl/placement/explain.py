"""Why there, and why not elsewhere? A decision's document as text, the same on every machine."""

from collections.abc import Iterable, Iterator, Sequence

from wlctl.model.placement import Constraint, Decision
from wlctl.placement.document import document
from wlctl.placement.holdings import milli
from wlctl.placement.shapes import (
    CandidateShape,
    CheckShape,
    Document,
    GatedShape,
    NeedsShape,
    OptionsShape,
    PlacementShape,
    RejectedShape,
    RejectionShape,
)
from wlctl.placement.standing import verdict_words
from wlctl.placement.text import core_count, count, size, visible

MOST_SHOWN = 20
"""Eligible nodes, nearest misses and rejected nodes that are listed unless all are wanted."""


def explain(found: Decision | Document, *, everything: bool = False) -> str:
    """Write the whole explanation: the answer, a summary of the fleet, then the details.

    Args:
        found: A decision, or its stored document: the text is the same.
        everything: List every node, however many there are.
    """
    doc = document(found) if isinstance(found, Decision) else found
    limit = None if everything else MOST_SHOWN
    parts = [
        asked(doc),
        answer(doc),
        summary(doc),
        gate(doc, limit),
        _eligible(doc["eligible"], limit),
        _nearest(doc["rejected"], limit),
        relaxations(doc),
        _rejected(doc["rejected"], limit),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def why_not(found: Decision | Document, node: str) -> str | None:
    """Write the check list of one node, passed and failed; None when the fleet has no such node.

    Values of passed checks are kept for the nodes chosen, pinned or asked about (`--why`); for the
    others a check that is not among the failed ones passed.
    """
    doc = document(found) if isinstance(found, Decision) else found
    verdict = _verdict(doc, node)
    if verdict is None:
        return None
    checks = doc["checks"].get(node)
    if checks is None:
        checks = list(_implied_checks(doc, node))
    lines = [f"{visible(node)}: {verdict}"]
    lines += [
        f"  {'ok  ' if check['passed'] else 'FAIL'} {check['constraint']}: {check['detail']}"
        for check in checks
    ]
    return "\n".join(lines) + "\n"


def summary(doc: Document) -> list[str]:
    """Write what a fleet too large to read comes down to: one line, then one for each cause."""
    eligible, rejected = len(doc["eligible"]), _nodes_of(doc["rejected"])
    head = f"{count(eligible + rejected, 'node')}: {eligible} eligible"
    causes = [
        f"{tally['alone'] + tally['among_others']} {tally['what']}" for tally in doc["summary"]
    ]
    lines = ["; ".join([head, *causes])]
    if doc["summary"]:
        width = len(str(rejected))
        lines.append("rejected by this alone / among others:")
        lines += [
            f"  {tally['alone']:>{width}} / {tally['among_others']:>{width}}  {tally['what']}"
            for tally in doc["summary"]
        ]
    return lines


def gate(doc: Document, limit: int | None = None) -> list[str]:
    """Say by which rules the gate decided, and which nodes did not get the commonest answer."""
    gated = doc.get("gated", [])
    if len(gated) == 1:
        return [f"the gate: all {_said(gated[0])}"]
    lines = []
    for one in gated:
        shown = [visible(node) for node in one["nodes"][:limit]]
        if len(shown) < len(one["nodes"]):
            shown.append(f"… and {len(one['nodes']) - len(shown)} more (--all)")
        lines.append(
            f"  {one['number']} {_said(one)}" + (f" ({', '.join(shown)})" if shown else "")
        )
    return ["the gate:", *lines] if lines else []


def _said(one: GatedShape) -> str:
    return verdict_words(one["ruling"], one["rule"], one["reason"])


def nearest(rejected: Iterable[RejectedShape]) -> list[tuple[str, RejectedShape]]:
    """List the nodes that exactly one constraint rejects, the one nearest to eligible first."""
    misses = [
        (node, group)
        for group in rejected
        if len({one["constraint"] for one in group["rejections"]}) == 1
        for node in group["nodes"]
    ]
    return sorted(misses, key=lambda miss: (*_distance(miss[1]["rejections"]), miss[0]))


def _distance(rejections: Sequence[RejectionShape]) -> tuple[int, float]:
    return len(rejections), sum(one["effort"] for one in rejections)


def asked(doc: Document) -> list[str]:
    """Say what was to be placed, and with which options."""
    needs = doc["workload"]
    version = f" {visible(needs['version'])}" if needs["version"] else ""
    lines = [f"workload {visible(needs['name'])}{version} ({needs['kind']})"]
    lines.append(f"needs: {', '.join(_wanted(needs))}")
    if len(needs["variants"]) > 1 or needs["variants"][0]["name"] != "default":
        lines += [
            f"variant {visible(one['name'])} ({one['execution']}): "
            + (", ".join(one["requirements"]) or "no further needs")
            for one in needs["variants"]
        ]
    lines.append(f"options: {', '.join(_options(doc['options'])) or 'none'}")
    lines.append(f"tier order: {', '.join(doc['tiers'])}")
    return lines


def _wanted(needs: NeedsShape) -> Iterator[str]:
    yield from needs["requirements"]
    for wanted, word in (
        (needs["memory_bytes"], "memory"),
        (needs["accel_memory_bytes"], "accelerator memory"),
        (needs["disk_bytes"], "disk"),
    ):
        if wanted:
            yield f"{size(wanted)} {word}"
    if needs["cpu_cores"]:
        yield core_count(milli(needs["cpu_cores"]))
    yield from (f"port {number}" for _name, number in sorted(needs["ports"].items()) if number)
    yield f"tier {needs['min_trust']} or better"
    if needs["min_provenance"] != "claimed":
        yield f"provenance {needs['min_provenance']} or better"
    yield from (f"label {visible(label)}" for label in needs["labels"])
    yield from (f"excludes {visible(label)}" for label in needs["excludes"])
    if needs["perf"]:
        yield f"{visible(needs['perf'])} ({needs['latency_class']})"
    yield from (f"likes {liked}" for liked in needs["preferences"])
    if needs["sticky"]:
        yield "sticky"


def _options(options: OptionsShape) -> Iterator[str]:
    if options["count"] > 1:
        yield f"count {options['count']}"
    if options["pin"] is not None:
        yield f"pin {visible(options['pin'])}"
    if options["prefer"]:
        yield f"prefer {' '.join(map(visible, options['prefer']))}"
    if options["avoid"]:
        yield f"avoid {' '.join(map(visible, options['avoid']))}"
    yield from (f"where {text}" for text in options["where"])
    if options["allow_emulated"]:
        yield "emulation allowed"
    if options["current_node"] is not None:
        yield f"moved from {visible(options['current_node'])}"


def answer(doc: Document) -> list[str]:
    """Say where each copy goes, or that it goes nowhere."""
    if doc["outcome"] == "placed":
        return [line for placement in doc["placements"] for line in _placed(placement)]
    asked = doc["options"]["count"]
    if asked > 1:
        fits = doc["fits"]
        return [f"UNPLACEABLE: {fits} of {asked} fit; the verdicts are those of copy {fits + 1}"]
    pin = doc["options"]["pin"]
    return ["UNPLACEABLE" if pin is None else f"UNPLACEABLE on the pinned node {visible(pin)}"]


def _placed(placement: PlacementShape) -> Iterator[str]:
    chosen = placement["chosen"]
    affinity = ", affinity: not the top-ranked node" if placement["affinity"] else ""
    yield (
        f"PLACED {visible(chosen['node'])} via {visible(chosen['variant'])} "
        f"({chosen['tier']}, {chosen['total']:.2f}{affinity})"
    )
    if chosen["assigned"]:
        yield f"  with {', '.join(map(visible, chosen['assigned']))}"
    after = placement["dispatch"][1:]
    if after:
        more = placement["dispatch_length"] - 1 - len(after)
        tail = f" and {more} more" if more else ""
        yield f"  then {', '.join(map(visible, after))}{tail}"
    for group in placement["full"]:
        reasons = "; ".join(_reason(one) for one in group["rejections"])
        yield f"  no longer {', '.join(map(visible, group['nodes']))}: {reasons}"


def _eligible(eligible: Sequence[CandidateShape], limit: int | None) -> list[str]:
    if not eligible:
        return []
    lines = [f"eligible, best first ({len(eligible)}):"]
    for place, candidate in enumerate(eligible[:limit], start=1):
        flags = f" [{', '.join(candidate['flags'])}]" if candidate["flags"] else ""
        terms = "  ".join(f"{name} {worth:.2f}" for name, worth in terms_of(candidate))
        lines.append(
            f"{place:>3}. {visible(candidate['node'])} via {visible(candidate['variant'])} "
            f"({candidate['tier']}) {candidate['total']:.2f}{flags}"
        )
        lines.append(f"     {terms}")
    return lines + _rest(len(eligible), limit)


def terms_of(candidate: CandidateShape) -> list[tuple[str, float]]:
    """List the terms of a score, always in this order."""
    return [(name, candidate["terms"][name]) for name in _TERMS]


_TERMS = (
    "execution",
    "locality",
    "accel_fit",
    "perf",
    "load",
    "room",
    "spread",
    "stickiness",
)


def _nearest(rejected: Sequence[RejectedShape], limit: int | None) -> list[str]:
    misses = nearest(rejected)
    if not misses:
        return []
    lines = [f"nearest misses, each rejected by one constraint ({len(misses)}):"]
    for node, group in misses[:limit]:
        changes = "; ".join(dict.fromkeys(one["change"] for one in group["rejections"]))
        lines.append(f"  {visible(node)}: {group['rejections'][0]['constraint']}: {changes}")
    return lines + _rest(len(misses), limit)


def relaxations(doc: Document) -> list[str]:
    """Say what the request itself stands in the way of."""
    found = doc["relaxations"]
    lines = [f"  {one['terms'][0]}: {count(one['nodes'], 'more node')}" for one in found["single"]]
    if lines:
        lines.insert(0, "without one term, that many more nodes would be eligible:")
    smallest = found["smallest"]
    if smallest is not None:
        fewest = "fewest terms" if found["exact"] else "few terms (search stopped at its bound)"
        lines.append(
            f"{fewest} to give up to place it: {' + '.join(smallest['terms'])} "
            f"(then {count(smallest['nodes'], 'node')} would do)"
        )
    elif doc["outcome"] != "placed" and doc["rejected"]:
        lines.append("no term of the request is to blame: giving any of them up places nothing")
    if doc["outcome"] != "placed" and doc["options"]["pin"] is not None and doc["eligible"]:
        lines.append(f"without the pin it would go to {visible(doc['eligible'][0]['node'])}")
    return lines


def _rejected(rejected: Sequence[RejectedShape], limit: int | None) -> list[str]:
    if not rejected:
        return []
    by_node = sorted((node, group) for group in rejected for node in group["nodes"])
    lines = [f"rejected ({len(by_node)}):"]
    for node, group in by_node[:limit]:
        lines.append(f"  {visible(node)}")
        lines += [f"    {_reason(one)}" for one in group["rejections"]]
    return lines + _rest(len(by_node), limit)


def _reason(found: RejectionShape) -> str:
    return f"{found['constraint']}: {found['detail']}"


def _rest(total: int, limit: int | None) -> list[str]:
    return [] if limit is None or total <= limit else [f"  … and {total - limit} more (--all)"]


def _nodes_of(rejected: Iterable[RejectedShape]) -> int:
    return sum(len(group["nodes"]) for group in rejected)


def _verdict(doc: Document, node: str) -> str | None:
    for place, candidate in enumerate(doc["eligible"], start=1):
        if candidate["node"] == node:
            return (
                f"eligible, rank {place} of {len(doc['eligible'])}, {candidate['tier']}, "
                f"{candidate['total']:.2f}"
            )
    return "rejected" if _failures_of(doc, node) else None


def _failures_of(doc: Document, node: str) -> Sequence[RejectionShape]:
    return next((group["rejections"] for group in doc["rejected"] if node in group["nodes"]), ())


def _gate_passed(doc: Document, node: str) -> str:
    gated = doc.get("gated", [])
    mine = next((one for one in gated if node in one["nodes"]), gated[0] if gated else None)
    return "passed" if mine is None else _said(mine)


def _implied_checks(doc: Document, node: str) -> Iterator[CheckShape]:
    failures = _failures_of(doc, node)
    for constraint in Constraint:
        mine = [one for one in failures if one["constraint"] == constraint]
        for one in mine:
            yield {"constraint": constraint, "detail": one["detail"], "passed": False}
        if not mine:
            detail = _gate_passed(doc, node) if constraint is Constraint.GATE else "passed"
            yield {"constraint": constraint, "detail": detail, "passed": True}
