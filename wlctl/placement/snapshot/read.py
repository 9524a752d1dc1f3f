"""Reads a snapshot of a fleet, strictly: it may have been changed by hand."""

import math
from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from wlctl.model.facts import AttrValue, Capability, CapabilityState, Provenance, Scalar
from wlctl.model.fleet import Claim, ClusterState, Hold, NodeView, Reading, Ruling, Verdict
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.node import Liveness, Tier
from wlctl.model.placement import Weights
from wlctl.model.snapshot import SavedGate, Snapshot
from wlctl.model.workload import Kind
from wlctl.placement.limits import (
    HIGHEST_PORT,
    MAX_BYTES,
    MAX_CORES,
    MAX_ID_CHARACTERS,
    MAX_WEIGHT,
)
from wlctl.placement.snapshot.values import Fields, Value, parsed
from wlctl.placement.snapshot.write import SCHEMA, UNGATED

MAX_CHARACTERS = 256 * 1024 * 1024
MAX_NODES = 200_000
MAX_INSTANCES = 2_000_000
MAX_CAPABILITIES = 4_096
MAX_ATTRIBUTES = 256
MAX_LIST = 65_536
MAX_MOMENT_MS = 2**53 - 1

BEFORE_THE_GATE = "wlctl.snapshot/1"
"""As now, but without what the gate judges by."""

_TIERS = MappingProxyType({tier.word: tier for tier in Tier})
_PROVENANCES = MappingProxyType({provenance.word: provenance for provenance in Provenance})
_STATES = MappingProxyType({state.value: state for state in CapabilityState})
_LIVENESS = MappingProxyType({liveness.value: liveness for liveness in Liveness})
_RULINGS = MappingProxyType({ruling.value: ruling for ruling in Ruling})
_KINDS = MappingProxyType({kind.value: kind for kind in Kind})
_WEIGHTS = tuple(field.name for field in fields(Weights))
_TOP = (
    "schema",
    "taken_at_ms",
    "weights",
    "gate",
    "capability_sets",
    "nodes",
    "instances",
    "retired",
    "revoked",
)
_NODE = (
    "name",
    "tier",
    "liveness",
    "cordoned",
    "facts_expire_at_ms",
    "capabilities",
    "capability_set",
    "load",
    "leader_only",
    "memory",
    "cpu_cores",
    "disk",
    "ports_listening",
    "gate",
)
_HOLD = (
    "node",
    "instance",
    "name",
    "kind",
    "workload",
    "labels",
    "excludes",
    "ports",
    "claims",
    "memory_bytes",
    "accel_memory_bytes",
    "cpu_cores",
    "disk_bytes",
)


def load(text: str, file: str) -> Snapshot:
    """Read a snapshot.

    What a node does not tell is what a node that was never probed has. Without a verdict of its
    own it is `UNGATED`, for the snapshot's `gate` to judge.

    Args:
        text: The whole file.
        file: How the file is called in messages.

    Raises:
        InvalidFile: It is no JSON, of another version, or a value is not what it must be. The
            message names file, path, what was expected and what was found.
    """
    value = parsed(text, file, MAX_CHARACTERS)
    known = _TOP if _version(value) == SCHEMA else tuple(key for key in _TOP if key != "gate")
    top = value.fields(known)
    sets = {
        name: _capabilities(found)
        for name, found in (top["capability_sets"].entries() if top.has("capability_sets") else ())
    }
    nodes: dict[NodeName, NodeView] = {}
    for entry in top["nodes"].items(MAX_NODES):
        node = _node(entry.fields(_NODE), sets)
        if node.name in nodes:
            raise entry.at("name").fault("a name no other node has")
        nodes[node.name] = node
    entries = top["instances"].items(MAX_INSTANCES) if top.has("instances") else []
    return Snapshot(
        nodes=tuple(nodes.values()),
        cluster=ClusterState(
            holds=tuple(_hold(entry.fields(_HOLD), nodes) for entry in entries),
            retired=frozenset(map(NodeName, _texts(top, "retired", MAX_NODES))),
            revoked=frozenset(_texts(top, "revoked", MAX_INSTANCES)),
        ),
        weights=_weights(top["weights"]) if top.has("weights") else Weights(),
        now_ms=top["taken_at_ms"].integer(0, MAX_MOMENT_MS),
        gate=_gate(top["gate"]) if top.has("gate") else None,
    )


def _version(value: Value) -> str:
    """Look at the version first: of another one nothing else is known."""
    found = value.found.get("schema") if isinstance(value.found, dict) else None
    if found not in (SCHEMA, BEFORE_THE_GATE):
        raise Value(found, f"{value.path}.schema", value.file).fault(SCHEMA)
    return str(found)


def _gate(value: Value) -> SavedGate:
    """Read all but the policy's own tables, which the gate reads as strictly."""
    found = value.fields(("principal", "policy", "unreadable"))
    return SavedGate(
        principal=found["principal"].text(),
        policy={key: one.found for key, one in found["policy"].entries()},
        unreadable=found["unreadable"].text() if found.has("unreadable") else "",
    )


def _node(found: Fields, sets: Mapping[str, tuple[Capability, ...]]) -> NodeView:
    capabilities: tuple[Capability, ...] = ()
    if found.has("capability_set"):
        capabilities = found["capability_set"].choice(sets)
    if found.has("capabilities"):
        capabilities += _capabilities(found["capabilities"])
    expires, load, gate = (
        found.get("facts_expire_at_ms"),
        found.get("load"),
        found["gate"] if found.has("gate") else None,
    )
    return NodeView(
        name=NodeName(_id(found["name"])),
        tier=found["tier"].choice(_TIERS) if found.has("tier") else Tier.PAIRED,
        liveness=found["liveness"].choice(_LIVENESS) if found.has("liveness") else Liveness.ALIVE,
        cordoned=found["cordoned"].flag() if found.has("cordoned") else False,
        facts_expire_at_ms=None if expires is None else expires.integer(0, MAX_MOMENT_MS),
        capabilities=capabilities,
        load=None if load is None else load.number(0.0, 1.0),
        memory=_reading(found.get("memory")),
        cpu_cores=found["cpu_cores"].number(0.0, MAX_CORES) if found.has("cpu_cores") else 0.0,
        disk=_reading(found.get("disk")),
        ports_listening=_ports(found, "ports_listening"),
        gate=UNGATED if gate is None else _verdict(gate),
        leader_only=found["leader_only"].flag() if found.has("leader_only") else False,
    )


def _id(found: Value) -> str:
    text = found.text()
    if not text or len(text) > MAX_ID_CHARACTERS or not text.isprintable():
        raise found.fault(f"1 to {MAX_ID_CHARACTERS} printable characters")
    return text


def _reading(found: Value | None) -> Reading | None:
    if found is None:
        return None
    reading = found.fields(("total_bytes", "available_bytes", "ours_bytes"))
    return Reading(
        reading["total_bytes"].integer(0, MAX_BYTES),
        reading["available_bytes"].integer(0, MAX_BYTES),
        _bytes(reading, "ours_bytes"),
    )


def _verdict(found: Value) -> Verdict | None:
    if found.is_null:
        return None
    verdict = found.fields(("ruling", "rule", "reason"))
    return Verdict(
        ruling=verdict["ruling"].choice(_RULINGS),
        rule=verdict["rule"].text(),
        reason=verdict["reason"].text() if verdict.has("reason") else "",
    )


def _capabilities(found: Value) -> tuple[Capability, ...]:
    return tuple(map(_capability, found.items(MAX_CAPABILITIES)))


def _capability(value: Value) -> Capability:
    found = value.fields(("id", "attrs", "provenance", "state", "exclusive"))
    attrs = (
        {name: _attr(one) for name, one in found["attrs"].entries()} if found.has("attrs") else {}
    )
    if len(attrs) > MAX_ATTRIBUTES:
        raise found["attrs"].fault(f"at most {MAX_ATTRIBUTES} attributes")
    return Capability(
        id=_id(found["id"]),
        attrs=attrs,
        provenance=(
            found["provenance"].choice(_PROVENANCES)
            if found.has("provenance")
            else Provenance.PROBED
        ),
        state=found["state"].choice(_STATES) if found.has("state") else CapabilityState.AVAILABLE,
        exclusive=found["exclusive"].flag() if found.has("exclusive") else False,
    )


def _attr(value: Value) -> AttrValue:
    if isinstance(value.found, list):
        return tuple(map(_scalar, value.items(MAX_LIST)))
    return _scalar(value)


def _scalar(value: Value) -> Scalar:
    found = value.found
    if isinstance(found, float) and not math.isfinite(found):
        raise value.fault("a finite number")
    if not isinstance(found, str | int | float):
        raise value.fault("text, a number, true, false, or a list of these")
    return found


def _hold(found: Fields, nodes: Mapping[NodeName, NodeView]) -> Hold:
    node = NodeName(found["node"].text())
    if node not in nodes:
        raise found["node"].fault("the name of a node of this snapshot")
    kind = found.get("kind")
    return Hold(
        node=node,
        instance=InstanceId(found["instance"].text()),
        name=found["name"].text(),
        kind=None if kind is None else kind.choice(_KINDS),
        workload=found["workload"].text() if found.has("workload") else "",
        labels=tuple(_texts(found, "labels", MAX_ATTRIBUTES)),
        excludes=tuple(_texts(found, "excludes", MAX_ATTRIBUTES)),
        ports=_ports(found, "ports"),
        claims=tuple(
            map(_claim, found["claims"].items(MAX_CAPABILITIES) if found.has("claims") else ())
        ),
        memory_bytes=_bytes(found, "memory_bytes"),
        accel_memory_bytes=_bytes(found, "accel_memory_bytes"),
        cpu_cores=found["cpu_cores"].number(0.0, MAX_CORES) if found.has("cpu_cores") else 0.0,
        disk_bytes=_bytes(found, "disk_bytes"),
    )


def _claim(value: Value) -> Claim:
    found = value.fields(("key", "exclusive"))
    return Claim(found["key"].text(), found["exclusive"].flag())


def _bytes(found: Fields, key: str) -> int:
    return found[key].integer(0, MAX_BYTES) if found.has(key) else 0


def _ports(found: Fields, key: str) -> tuple[int, ...]:
    entries = found[key].items(MAX_LIST) if found.has(key) else []
    return tuple(entry.integer(1, HIGHEST_PORT) for entry in entries)


def _texts(found: Fields, key: str, most: int) -> list[str]:
    return [entry.text() for entry in found[key].items(most)] if found.has(key) else []


def _weights(value: Value) -> Weights:
    found = value.fields(_WEIGHTS)
    given: dict[str, Any] = {
        name: _id(found[name]) if name == "dev_class" else found[name].number(0.0, MAX_WEIGHT)
        for name in _WEIGHTS
        if found.has(name)
    }
    return Weights(**given)
