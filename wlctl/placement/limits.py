"""Is a request one that can be decided? Limits and shapes, checked before anything is judged."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from wlctl.errors import InvalidRequest, UnknownName
from wlctl.model.facts import AttrValue
from wlctl.model.ids import NodeName
from wlctl.model.placement import PlaceRequest, Weights
from wlctl.model.workload import Op, Predicate, Requirement, Resources, WorkloadPolicy
from wlctl.placement.compare import is_number, is_version
from wlctl.placement.text import visible

MAX_REQUIREMENTS = 64
MAX_VARIANTS = 16
MAX_PREDICATES = 32
MAX_NEEDED = 64
MAX_ID_CHARACTERS = 256
MAX_COUNT = 1_000
MAX_PORTS = 64
HIGHEST_PORT = 65_535
MAX_LABELS = 256
MAX_LIST = 256
MAX_BYTES = 2**53 - 1
"""The largest integer every JSON reader keeps exactly."""
MAX_CORES = 65_536.0
MAX_WEIGHT = 1e12
"""Far beyond use, and no sum of weights becomes infinite."""


def check_request(request: PlaceRequest, names: Collection[NodeName]) -> None:
    """Refuse what cannot be decided.

    Args:
        request: To look at.
        names: Of all nodes.

    Raises:
        InvalidRequest: A limit is exceeded or a value is not what it must be; the first such fault,
            with its path.
        UnknownName: A node that is pinned or asked about is not in the fleet.
    """
    for path, expected in _faults(request):
        raise InvalidRequest(f"{path}: expected {expected}")
    for option, wanted in (("--pin", request.pin), *(("--why", name) for name in request.why)):
        if wanted is not None and wanted not in names:
            said = f"there is no node {visible(wanted)} ({option})"
            raise UnknownName.among(
                sorted(names), wanted, said, hint="`wlctl node ls` lists the fleet"
            )


def checked_weights(weights: Weights) -> Weights:
    """Give the weights as floats, so that 100 and 100.0 make the same document.

    Raises:
        InvalidRequest: The first that is no finite number of at least zero, by name.
    """
    if not _is_id(weights.dev_class):
        raise InvalidRequest(f"weights.dev_class: expected {_ID}")
    names = [name for name in Weights.__dataclass_fields__ if name != "dev_class"]
    for name in names:
        if not _is_weight(getattr(weights, name)):
            raise InvalidRequest(f"weights.{name}: expected {_WEIGHT}")
    worth: dict[str, Any] = {name: float(getattr(weights, name)) for name in names}
    return replace(weights, **worth)


_ID = f"1 to {MAX_ID_CHARACTERS} printable characters"
_WEIGHT = f"a number from 0 to {MAX_WEIGHT:.0f}"
_BYTES = f"a whole number from 0 to {MAX_BYTES}"


def _faults(request: PlaceRequest) -> Iterator[tuple[str, str]]:
    spec = request.workload
    if not 1 <= request.count <= MAX_COUNT:
        yield "count", f"a whole number from 1 to {MAX_COUNT}"
    if not _is_id(spec.name):
        yield "workload.name", _ID
    yield from _requirement_faults("where", request.where)
    yield from _requirement_faults("workload.common", spec.common)
    if not 1 <= len(spec.variants) <= MAX_VARIANTS:
        yield "workload.variants", f"1 to {MAX_VARIANTS} variants"
    if len({variant.name for variant in spec.variants}) < len(spec.variants):
        yield "workload.variants", "distinct names"
    for n, variant in enumerate(spec.variants):
        if not _is_id(variant.name):
            yield f"workload.variants[{n}].name", _ID
        yield from _requirement_faults(f"workload.variants[{n}]", variant.requirements)
    yield from _resource_faults(spec.resources)
    yield from _policy_faults(spec.policy)
    yield from _port_faults([number for _name, number in spec.ports])


def _port_faults(numbers: list[int]) -> Iterator[tuple[str, str]]:
    if len(numbers) > MAX_PORTS:
        yield "workload.ports", f"at most {MAX_PORTS} ports"
    for n, number in enumerate(numbers):
        if not 0 <= number <= HIGHEST_PORT:
            yield f"workload.ports[{n}]", f"a port from 0 to {HIGHEST_PORT}"
    fixed = [number for number in numbers if number]
    if len(set(fixed)) < len(fixed):
        yield "workload.ports", "distinct ports"


def _requirement_faults(
    path: str, requirements: tuple[Requirement, ...]
) -> Iterator[tuple[str, str]]:
    if len(requirements) > MAX_REQUIREMENTS:
        yield path, f"at most {MAX_REQUIREMENTS} requirements, found {len(requirements)}"
    for n, requirement in enumerate(requirements):
        yield from _one_requirement_faults(f"{path}[{n}]", requirement)


def _one_requirement_faults(path: str, requirement: Requirement) -> Iterator[tuple[str, str]]:
    named = [id_ for id_ in (requirement.id, requirement.id_prefix) if id_ is not None]
    if len(named) != 1:
        yield path, "exactly one of id and id_prefix"
    if not all(map(_is_id, named)):
        yield path, f"an id of {_ID}"
    if not 1 <= requirement.count <= MAX_NEEDED:
        yield f"{path}.count", f"a whole number from 1 to {MAX_NEEDED}"
    if len(requirement.where) > MAX_PREDICATES:
        yield f"{path}.where", f"at most {MAX_PREDICATES} predicates"
    for n, predicate in enumerate(requirement.where):
        expected = _expected_value(predicate)
        if expected:
            yield f"{path}.where[{n}].value", expected
        if not _is_id(predicate.attr):
            yield f"{path}.where[{n}].attr", _ID


def _expected_value(predicate: Predicate) -> str:
    """What the value should have been; empty when it is right."""
    found = predicate.value
    if not all(map(_is_plain, found if isinstance(found, tuple) else (found,))):
        return "text, a finite number, true, false, or a list of these"
    is_list = isinstance(found, tuple)
    fine, expected = {
        Op.EQ: (True, ""),
        Op.IN: (is_list, "a list for in"),
        Op.HAS: (not is_list, "a single value for has"),
    }.get(
        predicate.op,
        (is_number(found) or is_version(found), f"a number or a dotted version for {predicate.op}"),
    )
    return "" if fine else expected


def _is_plain(found: AttrValue) -> bool:
    if isinstance(found, float):
        return math.isfinite(found)
    return isinstance(found, str | int)  # a boolean is an int


def _resource_faults(resources: Resources) -> Iterator[tuple[str, str]]:
    for name in ("memory_bytes", "accel_memory_bytes", "disk_bytes"):
        if not 0 <= getattr(resources, name) <= MAX_BYTES:
            yield f"workload.resources.{name}", _BYTES
    if not 0 <= resources.cpu_cores <= MAX_CORES:  # also false for NaN
        yield "workload.resources.cpu_cores", f"a number from 0 to {MAX_CORES:.0f}"


def _policy_faults(policy: WorkloadPolicy) -> Iterator[tuple[str, str]]:
    for name, labels in (("labels", policy.labels), ("excludes", policy.excludes)):
        if len(labels) > MAX_LABELS:
            yield f"workload.policy.{name}", f"at most {MAX_LABELS} labels"
    if policy.perf is not None:
        if not _is_id(policy.perf.id):
            yield "workload.policy.perf.id", _ID
        if not 0 <= policy.perf.minimum < math.inf:
            yield "workload.policy.perf.minimum", "a finite number of at least 0"
    preferences = policy.preferences
    yield from _requirement_faults(
        "workload.policy.preferences", tuple(liked.requirement for liked in preferences)
    )
    yield from (
        (f"workload.policy.preferences[{n}].weight", _WEIGHT)
        for n, liked in enumerate(preferences)
        if not _is_weight(liked.weight)
    )


def _is_id(found: str) -> bool:
    return 1 <= len(found) <= MAX_ID_CHARACTERS and found.isprintable()


def _is_weight(found: object) -> bool:
    return isinstance(found, int | float) and is_number(found) and 0 <= found <= MAX_WEIGHT


def first_duplicate(names: Sequence[NodeName]) -> NodeName | None:
    """Name the first node of a sorted list that is listed twice."""
    if len(set(names)) == len(names):
        return None
    return next(name for name, after in pairwise(names) if name == after)
