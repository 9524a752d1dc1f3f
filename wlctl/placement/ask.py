"""What is asked for, prepared once so that judging a node is cheap."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from wlctl.model.facts import Provenance
from wlctl.model.placement import PlaceRequest, Weights
from wlctl.model.workload import Execution, Predicate, Requirement, WorkloadSpec
from wlctl.placement.compare import phrase
from wlctl.placement.holdings import milli
from wlctl.placement.text import cores, size, visible


@dataclass(frozen=True, slots=True, eq=False)
class Need:
    """One requirement, prepared.

    Attributes:
        slot: Its place among all needs of the ask.
        term: Its bit among the terms of the request; 0 for a preference.
        label: How it is called in every message.
        where: Its conditions, in an order that does not depend on the one they were written in.
        floor: The provenance it needs, the workload's own minimum included.
        own_floor: What it would need if the workload had no minimum.
    """

    slot: int
    term: int
    label: str
    requirement: Requirement
    where: tuple[Predicate, ...]
    floor: Provenance
    own_floor: Provenance


@dataclass(frozen=True, slots=True, eq=False)
class Way:
    """One variant, prepared."""

    name: str
    execution: Execution
    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """A request, prepared.

    Attributes:
        common: The workload's requirements and the operator's, in an order that does not depend on
            the one they were written in.
        revoked: What of the workload is revoked.
        terms: What could be given up, in words; the bit of a term is 1 shifted by its place.
        bits: Name of a policy term to its bit.
        exclusive: Some need is.
    """

    spec: WorkloadSpec
    allow_emulated: bool
    weights: Weights
    common: tuple[Need, ...]
    ways: tuple[Way, ...]
    liked: tuple[tuple[Need, float], ...]
    needs: tuple[Need, ...]
    cpu_milli: int
    ports: tuple[tuple[str, int], ...]
    labels: frozenset[str]
    excludes: frozenset[str]
    revoked: tuple[str, ...]
    terms: tuple[str, ...]
    bits: dict[str, int]
    exclusive: bool


@dataclass(slots=True)
class _Terms:
    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> int:
        self.texts.append(text)
        return 1 << (len(self.texts) - 1)


def prepare(request: PlaceRequest, weights: Weights, revoked: frozenset[str]) -> Ask:
    """Prepare a request that was found valid."""
    spec, terms = request.workload, _Terms()
    needs: list[Need] = []
    floor = spec.policy.min_provenance

    def prepared(found: Iterable[Requirement], *, before: str, term: bool) -> tuple[Need, ...]:
        made = []
        for requirement in sorted(found, key=_order):
            text = f"{before}requirement {describe(requirement)}"
            need = _need(requirement, len(needs), terms.add(text) if term else 0, floor)
            needs.append(need)
            made.append(need)
        return tuple(made)

    common = prepared((*spec.common, *request.where), before="", term=True)
    ways = tuple(
        Way(
            variant.name,
            variant.execution,
            prepared(variant.requirements, before=f"variant {visible(variant.name)}: ", term=True),
        )
        for variant in spec.variants
    )
    liked = tuple(
        (prepared((found.requirement,), before="", term=False)[0], found.weight)
        for found in sorted(spec.policy.preferences, key=lambda one: _order(one.requirement))
    )
    ports = tuple((name, number) for name, number in spec.ports if number)
    bits = _policy_terms(request, ports, terms)
    return Ask(
        spec=spec,
        allow_emulated=request.allow_emulated,
        weights=weights,
        common=common,
        ways=ways,
        liked=liked,
        needs=tuple(needs),
        cpu_milli=milli(spec.resources.cpu_cores),
        ports=ports,
        labels=frozenset(spec.policy.labels),
        excludes=frozenset(spec.policy.excludes),
        revoked=tuple(sorted(revoked.intersection(spec.revocable_refs))),
        terms=tuple(terms.texts),
        bits=bits,
        exclusive=any(need.requirement.exclusive for need in needs),
    )


def _need(requirement: Requirement, slot: int, term: int, floor: Provenance) -> Need:
    own = requirement.min_provenance
    return Need(
        slot=slot,
        term=term,
        label=label_of(requirement),
        requirement=requirement,
        where=tuple(sorted(requirement.where, key=phrase)),
        floor=floor if own is None else own,
        own_floor=Provenance.CLAIMED if own is None else own,
    )


def _policy_terms(
    request: PlaceRequest, ports: tuple[tuple[str, int], ...], terms: _Terms
) -> dict[str, int]:
    spec, policy = request.workload, request.workload.policy
    bits: dict[str, int] = {}
    if policy.min_provenance > Provenance.CLAIMED:
        bits["provenance"] = terms.add(f"min_provenance {policy.min_provenance.word}")
    if not request.allow_emulated and any(
        variant.execution is Execution.EMULATED for variant in spec.variants
    ):
        bits["native"] = terms.add("no emulation (--allow-emulated lifts it)")
    if policy.min_trust > 0:
        bits["trust"] = terms.add(f"min_trust {policy.min_trust.word}")
    for label in sorted(set(policy.labels)):
        bits[f"label {label}"] = terms.add(f"label {visible(label)}")
    for label in sorted(set(policy.excludes)):
        bits[f"exclude {label}"] = terms.add(f"exclude {visible(label)}")
    resources = spec.resources
    for key, wanted, text in (
        ("memory", resources.memory_bytes, f"memory {size(resources.memory_bytes)}"),
        (
            "accel",
            resources.accel_memory_bytes,
            f"accel_memory {size(resources.accel_memory_bytes)}",
        ),
        ("cpu", resources.cpu_cores, f"cpu {cores(milli(resources.cpu_cores))}"),
        ("disk", resources.disk_bytes, f"disk {size(resources.disk_bytes)}"),
    ):
        if wanted:
            bits[key] = terms.add(text)
    for name, number in ports:
        bits[f"port {number}"] = terms.add(f"port {number} ({visible(name)})")
    if policy.perf is not None:
        bits["perf"] = terms.add(f"perf {visible(policy.perf.id)} >= {policy.perf.minimum!r}")
    return bits


def label_of(requirement: Requirement) -> str:
    """Name what is required: an id, or a prefix and `.*`."""
    if requirement.id is not None:
        return visible(requirement.id)
    return f"{visible(requirement.id_prefix or '')}.*"


def describe(requirement: Requirement) -> str:
    """Write a requirement with its conditions: `2 accel.cuda (memory_bytes >= 8)`."""
    text = label_of(requirement)
    if requirement.count > 1:
        text = f"{requirement.count} {text}"
    if requirement.exclusive:
        text = f"exclusive {text}"
    if requirement.where:
        text = f"{text} ({', '.join(sorted(map(phrase, requirement.where)))})"
    return text


def _order(requirement: Requirement) -> tuple[str, str, int]:
    floor = requirement.min_provenance
    return label_of(requirement), describe(requirement), -1 if floor is None else floor
