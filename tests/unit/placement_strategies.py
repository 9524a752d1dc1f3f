"""Small fleets that collide a lot: few ids, few sizes, every state.

Drawn from ready-made parts, so that an example takes a few draws and not hundreds.
"""

from dataclasses import replace
from itertools import product
from typing import Any

from hypothesis import strategies as st

from tests.unit.fleets import ALLOWED, NOW
from wlctl.model.facts import AttrValue, Capability, CapabilityState, Provenance
from wlctl.model.fleet import Claim, ClusterState, Hold, NodeView, Reading, Ruling, Verdict
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.node import Liveness, Tier
from wlctl.model.placement import PlaceRequest
from wlctl.model.workload import (
    IMPLICIT_VARIANT,
    Execution,
    Kind,
    Op,
    PerfTarget,
    Predicate,
    Preference,
    Requirement,
    Resources,
    Variant,
    WorkloadPolicy,
    WorkloadSpec,
)

IDS = ("accel.cuda", "accel.rocm", "device.serial", "device.serial.front", "runtime.python")
NAMES = tuple(map(NodeName, "abcde"))
_STATES = (*(CapabilityState.AVAILABLE,) * 4, *list(CapabilityState)[1:])
_VALUES: tuple[AttrValue, ...] = (1, 2, 2.5, True, "3.9", "3.11", ("x", "y"))

_CAPABILITIES = [
    Capability(id_, {"n": value, "memory_bytes": size}, provenance, state, exclusive)
    for id_, value, size, provenance, state, exclusive in product(
        IDS, _VALUES, (1, 3), Provenance, _STATES, (False, False, True)
    )
]
_FIGURES = [
    Capability("perf.cpu", {"value": figure}, provenance)
    for figure, provenance in product((1, 5, 10.5, float("nan"), -1), Provenance)
]
_EXTRAS = [
    *(((), (), (Capability("node.class.dev"),))),
    *((figure,) for figure in _FIGURES),
]
_SYSTEM = Capability("mem.system", {"total_bytes": 8})
_VRAM = Capability("mem.vram", {"total_bytes": 2})
_OTHER_POOLS = [
    Capability(id_, {"total_bytes": size}, provenance, state, exclusive)
    for id_, size, provenance, state, exclusive in product(
        ("mem.system", "mem.vram", "mem.unified"),
        (0, 4, 12),
        Provenance,
        CapabilityState,
        (False, True),
    )
]
_MEMORY = [
    (),
    (_SYSTEM,),
    (_SYSTEM, _VRAM),
    (_SYSTEM, _VRAM, _VRAM),
    (Capability("mem.unified", {"total_bytes": 8}),),
]
_ODD_MEMORY = [
    pools for other in _OTHER_POOLS for pools in ((_SYSTEM, _VRAM, other), (other, _SYSTEM))
]
_pools = st.sampled_from(_MEMORY) | st.sampled_from(_ODD_MEMORY)
_READINGS = [None, *(Reading(8, free, ours) for free in range(9) for ours in (0, 2) if free < 7)]

_FINE = NodeView(
    NAMES[0], Tier.PAIRED, Liveness.ALIVE, facts_expire_at_ms=NOW + 1, load=0.3, gate=ALLOWED
)
_FRAMES = [
    *(_FINE,) * 8,
    replace(_FINE, tier=Tier.TRUSTED, load=None),
    replace(_FINE, tier=Tier.DISCOVERED, load=0.0),
    replace(_FINE, liveness=Liveness.DEAD),
    replace(_FINE, cordoned=True),
    replace(_FINE, facts_expire_at_ms=NOW),
    replace(_FINE, facts_expire_at_ms=None),
    replace(_FINE, gate=None),
    replace(_FINE, gate=Verdict(Ruling.DENIED, "freeze")),
    replace(_FINE, ports_listening=(80,)),
    replace(_FINE, gate=None, cordoned=True, facts_expire_at_ms=NOW - 1, tier=Tier.DISCOVERED),
]

_PREDICATES = [
    *(Predicate("n", op, value) for op in (Op.GTE, Op.LTE) for value in (1, 2.5, "3.9", "3.11")),
    *(Predicate("n", op, value) for op in (Op.EQ, Op.HAS) for value in (1, True, "3.9", "x")),
    *(Predicate("n", Op.IN, values) for values in ((), (1,), (True, "3.9"))),
]
_CONDITIONS = [*((),) * len(_PREDICATES), *((one,) for one in _PREDICATES)]
_NAMED: list[tuple[str | None, str | None]] = [
    *((id_, None) for id_ in IDS),
    *((None, prefix) for prefix in ("accel", "device", "device.serial", "run")),
]
_REQUIREMENTS = [
    Requirement(id_, prefix, where, count, exclusive, least)
    for (id_, prefix), where, count, exclusive, least in product(
        _NAMED, _CONDITIONS, (1, 1, 2), (False, True), (None, None, *Provenance)
    )
]
requirements = st.sampled_from(_REQUIREMENTS)
_FEW = st.sampled_from([*((),) * 12, *((Requirement(*named),) for named in _NAMED)])

_HOLDS = [
    Hold(
        NAMES[0],
        InstanceId(""),
        "",
        kind,
        workload,
        labels=labels,
        excludes=excludes,
        ports=ports,
        memory_bytes=size,
        accel_memory_bytes=size // 2,
        cpu_cores=cores,
        disk_bytes=size,
    )
    for kind, workload, labels, excludes, ports, size, cores in product(
        (Kind.SERVICE, Kind.JOB, None),
        ("web", "db"),
        ((), ("web",), ("db",)),
        ((), (), ("web",)),
        ((), (80,)),
        (0, 1, 3),
        (0, 0.1, 1),
    )
]
_CLAIMS = [
    *((),) * 10,
    *(
        (Claim(f"{id_}#index={index}", exclusive),)
        for id_, index, exclusive in product(IDS, range(4), (False, True))
    ),
]
_RESOURCES = [
    Resources(cpu_cores=cores, memory_bytes=host, accel_memory_bytes=accel, disk_bytes=disk)
    for cores, host, accel, disk in product((0, 0, 0.5, 1.5), (0, 1, 3), (0, 0, 1, 3), (0, 0, 3))
]
_POLICIES = [
    WorkloadPolicy(
        min_trust=trust,
        min_provenance=provenance,
        labels=labels,
        excludes=excludes,
        perf=perf,
        sticky=sticky,
    )
    for trust, provenance, labels, excludes, perf, sticky in product(
        (Tier.DISCOVERED, Tier.PAIRED),
        (Provenance.CLAIMED, Provenance.PROBED),
        ((), ("web",)),
        ((), (), ("db",), ("web",)),
        (None, None, PerfTarget("perf.cpu", 5.0)),
        (False, True),
    )
]


@st.composite
def views(draw: Any, name: NodeName) -> NodeView:
    drawn = draw(st.lists(st.sampled_from(_CAPABILITIES), max_size=5))
    numbered = [
        replace(one, attrs={**one.attrs, "index": index}) for index, one in enumerate(drawn)
    ]
    extra = draw(st.sampled_from(_EXTRAS))
    frame: NodeView = draw(st.sampled_from(_FRAMES))
    return replace(
        frame,
        name=name,
        capabilities=(*numbered, *draw(_pools), *extra),
        memory=draw(st.sampled_from(_READINGS)),
        disk=draw(st.sampled_from(_READINGS)),
        cpu_cores=draw(st.integers(0, 4)),
    )


@st.composite
def fleets(draw: Any, most: int = 4) -> list[NodeView]:
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=most))
    return [draw(views(name)) for name in names]


@st.composite
def clusters(draw: Any) -> ClusterState:
    drawn = draw(
        st.lists(
            st.tuples(st.sampled_from(_HOLDS), st.sampled_from(NAMES), st.sampled_from(_CLAIMS)),
            max_size=4,
        )
    )
    return ClusterState(
        holds=tuple(
            replace(hold, node=node, claims=claims, instance=InstanceId(f"i-{n}"), name=f"x-{n}")
            for n, (hold, node, claims) in enumerate(drawn)
        ),
        retired=frozenset(draw(st.sampled_from([(), (), (NAMES[0],)]))),
        revoked=frozenset(draw(st.sampled_from([(), (), ("key:x",)]))),
    )


@st.composite
def workloads(draw: Any, most: int = 2) -> WorkloadSpec:
    some = st.lists(requirements, max_size=most).map(tuple)
    variants = tuple(
        Variant(f"v{n}", execution, draw(some))
        for n, execution in enumerate(draw(st.lists(st.sampled_from(Execution), max_size=2)))
    )
    liked = tuple(Preference(one, 3.0) for one in draw(st.lists(requirements, max_size=1)))
    return WorkloadSpec(
        kind=draw(st.sampled_from([Kind.SERVICE, Kind.JOB])),
        name="web",
        common=draw(some),
        variants=variants or (IMPLICIT_VARIANT,),
        resources=draw(st.sampled_from(_RESOURCES)),
        policy=replace(draw(st.sampled_from(_POLICIES)), preferences=liked),
        ports=draw(st.sampled_from([(), (), (("http", 80),), (("any", 0),)])),
        revocable_refs=draw(st.sampled_from([(), ("key:x",)])),
    )


@st.composite
def requests(draw: Any, fleet: list[NodeView], most: int = 2) -> PlaceRequest:
    names = st.lists(st.sampled_from(NAMES), max_size=2).map(tuple)
    return PlaceRequest(
        workload=draw(workloads(most)),
        count=draw(st.sampled_from([1, 1, 2, 3])),
        where=tuple(draw(st.lists(requirements, max_size=1))),
        allow_emulated=draw(st.booleans()),
        pin=draw(st.sampled_from([*(None,) * 6, *(node.name for node in fleet)])),
        prefer=draw(names),
        avoid=draw(names),
        current_node=draw(st.sampled_from([None, *NAMES])),
        moving=draw(st.sampled_from([None, InstanceId("i-0")])),
    )


@st.composite
def roomy(draw: Any, most: int = 4) -> tuple[PlaceRequest, list[NodeView], ClusterState]:
    """One where most nodes would do, so that copies are placed and get in each other's way."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=most))
    fleet = [
        replace(
            _FINE,
            name=name,
            tier=draw(st.sampled_from([Tier.PAIRED, Tier.TRUSTED])),
            load=draw(st.sampled_from([None, 0.0, 0.5])),
            capabilities=(*draw(views(name)).capabilities, _SYSTEM, _VRAM, _VRAM),
            disk=Reading(8, 7, 1),
            cpu_cores=draw(st.integers(1, 4)),
        )
        for name in names
    ]
    request = draw(requests(fleet))
    spec = request.workload
    spec = replace(
        spec,
        common=draw(_FEW),
        variants=tuple(replace(one, requirements=draw(_FEW)) for one in spec.variants),
        policy=replace(spec.policy, min_provenance=Provenance.CLAIMED),
    )
    request = replace(request, workload=spec, where=(), count=draw(st.integers(1, 5)))
    return request, fleet, ClusterState(holds=draw(clusters()).holds)


@st.composite
def situations(draw: Any, most: int = 4) -> tuple[PlaceRequest, list[NodeView], ClusterState]:
    """A request, a fleet and what it holds; in half of them there is room."""
    if draw(st.booleans()):
        found: tuple[PlaceRequest, list[NodeView], ClusterState] = draw(roomy(most))
        return found
    fleet = draw(fleets(most))
    return draw(requests(fleet)), fleet, draw(clusters())
