"""Plans: what a dry run found, kept in a file, so that only that is carried out later."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wlctl.errors import InvalidFile, PlanMoved, UsageError
from wlctl.model.ids import SHA256_HEX
from wlctl.model.placement import Placement

SCHEMA = "wlctl.plan/1"

MAX_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Choice:
    """Where one copy was to go.

    Attributes:
        nodes: The choice, then those to fall back on, in their order.
        variant: That matched on the first of them.
    """

    nodes: tuple[str, ...]
    variant: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a dry run found.

    Attributes:
        request_sha256: Of the order: package, name, count and options.
        choices: One for each copy.
    """

    request_sha256: str
    choices: tuple[Choice, ...]


def plan_of(request_sha256: str, placements: Sequence[Placement]) -> Plan:
    """Keep of a decision what must come out the same."""
    return Plan(
        request_sha256,
        tuple(
            Choice(tuple(candidate.node for candidate in one.dispatch), one.variant)
            for one in placements
        ),
    )


def check(plan: Plan, now: Plan) -> None:
    """Make sure that what is decided now is what was planned.

    Raises:
        UsageError: It was planned for another order.
        PlanMoved: The fleet, the policy or the ledger changed what comes out.
    """
    if plan.request_sha256 != now.request_sha256:
        raise UsageError(
            "the plan was made for another order: the package or an option differs",
            hint="give the options it was made with, or make a new one with --plan-out",
        )
    if plan.choices == now.choices:
        return
    pairs = zip(plan.choices, now.choices, strict=False)
    differ = next(((was, now_) for was, now_ in pairs if was != now_), None)
    if differ is None:
        what = f"{len(now.choices)} of {len(plan.choices)} copies fit now"
    elif differ[0].nodes[0] != differ[1].nodes[0]:
        what = f"{differ[0].nodes[0]} was planned and {differ[1].nodes[0]} is the choice now"
    else:
        what = f"what comes after {differ[0].nodes[0]}, or how it runs there, is another now"
    raise PlanMoved(
        f"the plan is not what would be done any more: {what}",
        hint="look at it again with --dry-run --plan-out",
    )


def write(plan: Plan, file: Path) -> None:
    """Write a plan down.

    Raises:
        InvalidFile: The file cannot be written.
    """
    told = {
        "schema": SCHEMA,
        "request": plan.request_sha256,
        "choices": [{"nodes": one.nodes, "variant": one.variant} for one in plan.choices],
    }
    try:
        file.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidFile(f"{file} cannot be written: {error.strerror}") from error


def read(file: Path) -> Plan:
    """Read a plan.

    Raises:
        InvalidFile: It is none, or of another version.
    """
    try:
        with file.open("rb") as opened:
            told = json.loads(opened.read(MAX_BYTES))
    except OSError as error:
        raise InvalidFile(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError):
        raise _no_plan(file, "it is not JSON") from None
    if not isinstance(told, dict) or told.get("schema") != SCHEMA:
        raise _no_plan(file, f"its schema is not {SCHEMA}")
    request, choices = told.get("request"), told.get("choices")
    if not isinstance(request, str) or SHA256_HEX.fullmatch(request) is None:
        raise _no_plan(file, "request is not a sha256")
    if not isinstance(choices, list):
        raise _no_plan(file, "choices is not a list")
    return Plan(request, tuple(_choice(file, n, one) for n, one in enumerate(choices)))


def _choice(file: Path, position: int, told: object) -> Choice:
    nodes = told.get("nodes") if isinstance(told, dict) else None
    variant = told.get("variant") if isinstance(told, dict) else None
    if not (isinstance(nodes, list) and nodes and all(isinstance(one, str) for one in nodes)):
        raise _no_plan(file, f"choices[{position}].nodes is not a list of names")
    if not isinstance(variant, str):
        raise _no_plan(file, f"choices[{position}].variant is not a name")
    return Choice(tuple(nodes), variant)


def _no_plan(file: Path, why: str) -> InvalidFile:
    return InvalidFile(f"{file} is not a plan: {why}", hint="--dry-run --plan-out writes one")
