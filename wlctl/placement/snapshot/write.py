"""Writes a snapshot of a fleet: one node, instance or capability set a line.

Capability lists that nodes share are written once. No secrets: nothing of how nodes are reached, no
environment, no arguments.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from wlctl.model.facts import AttrValue, Capability
from wlctl.model.fleet import Hold, NodeView, Reading, Ruling, Verdict
from wlctl.model.placement import Weights
from wlctl.model.snapshot import SavedGate, Snapshot

SCHEMA = "wlctl.snapshot/2"
UNGATED = Verdict(Ruling.ALLOWED, "ungated")
"""The verdict of a node whose snapshot tells of none, and has no policy to ask."""

Json = dict[str, Any]

_WEIGHTS = tuple(field.name for field in fields(Weights))


def dump(snapshot: Snapshot) -> str:
    """Write a snapshot: one node, instance or capability set a line, in the order of their names.

    Equal snapshots give equal texts.
    """
    nodes = sorted(snapshot.nodes, key=lambda node: node.name)
    shared = _shared_sets(nodes)
    cluster = snapshot.cluster
    holds = sorted(cluster.holds, key=lambda hold: (hold.node, hold.instance, hold.name))
    parts: dict[str, str] = {
        "schema": _line(SCHEMA),
        "taken_at_ms": _line(snapshot.now_ms),
        "weights": _line({name: getattr(snapshot.weights, name) for name in _WEIGHTS}),
        **({} if snapshot.gate is None else {"gate": _gate(snapshot.gate)}),
        "capability_sets": _lines(
            [f"{_line(name)}: {written}" for written, name in shared.items()], "{}"
        ),
        "nodes": _lines([_line(_node_json(node, shared)) for node in nodes], "[]"),
        "instances": _lines([_line(_hold_json(hold)) for hold in holds], "[]"),
        "retired": _line(sorted(cluster.retired)),
        "revoked": _line(sorted(cluster.revoked)),
    }
    body = ",\n".join(f"{_line(key)}: {text}" for key, text in parts.items())
    return f"{{\n{body}\n}}\n"


def _line(found: object) -> str:
    return json.dumps(found, allow_nan=False, separators=(", ", ": "))


def _lines(texts: Sequence[str], brackets: str) -> str:
    if not texts:
        return brackets
    body = ",\n".join(f"  {text}" for text in texts)
    return f"{brackets[0]}\n{body}\n{brackets[1]}"


def _gate(gate: SavedGate) -> str:
    """Write what the gate judges by: one rule of the policy a line."""
    policy = ",\n".join(
        f"    {_line(key)}: {_lines([_line(rule) for rule in found], '[]')}".replace("\n", "\n    ")
        if isinstance(found, list)
        else f"    {_line(key)}: {_line(found)}"
        for key, found in gate.policy.items()
    )
    fields = [f'"principal": {_line(gate.principal)}']
    if gate.unreadable:
        fields.append(f'"unreadable": {_line(gate.unreadable)}')
    fields.append(f'"policy": {{\n{policy}\n  }}' if policy else '"policy": {}')
    body = ",\n".join(f"  {text}" for text in fields)
    return f"{{\n{body}\n}}"


def _shared_sets(nodes: Sequence[NodeView]) -> dict[str, str]:
    """Name the capability lists, as they are written, that more than one node has."""
    counted = Counter(_line(_capabilities_json(node.capabilities)) for node in nodes)
    shared = [written for written, times in counted.items() if times > 1 and written != "[]"]
    return {written: f"set-{n}" for n, written in enumerate(shared, start=1)}


def _node_json(node: NodeView, shared: Mapping[str, str]) -> Json:
    found: Json = {
        "name": node.name,
        "tier": node.tier.word,
        "liveness": node.liveness.value,
        "cordoned": node.cordoned,
        "facts_expire_at_ms": node.facts_expire_at_ms,
        "load": _finite(node.load),
        "memory": _reading_json(node.memory),
        "cpu_cores": node.cpu_cores,
        "disk": _reading_json(node.disk),
        "ports_listening": list(node.ports_listening),
    }
    if node.leader_only:
        found["leader_only"] = True
    if node.gate != UNGATED:
        found["gate"] = None if node.gate is None else _verdict_json(node.gate)
    capabilities = _capabilities_json(node.capabilities)
    name = shared.get(_line(capabilities))
    if name is None:
        found["capabilities"] = capabilities
    else:
        found["capability_set"] = name
    return found


def _finite(found: float | None) -> float | None:
    return found if found is not None and math.isfinite(found) else None


def _reading_json(reading: Reading | None) -> Json | None:
    if reading is None:
        return None
    return {
        "total_bytes": reading.total_bytes,
        "available_bytes": reading.available_bytes,
        "ours_bytes": reading.ours_bytes,
    }


def _verdict_json(verdict: Verdict) -> Json:
    return {"ruling": verdict.ruling.value, "rule": verdict.rule, "reason": verdict.reason}


def _capabilities_json(capabilities: Iterable[Capability]) -> list[Json]:
    return [
        {
            "id": capability.id,
            # A figure that is none says nothing, as an absent one does.
            "attrs": {name: found for name, found in capability.attrs.items() if _is_json(found)},
            "provenance": capability.provenance.word,
            "state": capability.state.value,
            "exclusive": capability.exclusive,
        }
        for capability in capabilities
    ]


def _is_json(found: AttrValue) -> bool:
    items = found if isinstance(found, tuple) else (found,)
    return all(not isinstance(item, float) or math.isfinite(item) for item in items)


def _hold_json(hold: Hold) -> Json:
    return {
        "node": hold.node,
        "instance": hold.instance,
        "name": hold.name,
        "kind": None if hold.kind is None else hold.kind.value,
        "workload": hold.workload,
        "labels": list(hold.labels),
        "excludes": list(hold.excludes),
        "ports": list(hold.ports),
        "claims": [{"key": claim.key, "exclusive": claim.exclusive} for claim in hold.claims],
        "memory_bytes": hold.memory_bytes,
        "accel_memory_bytes": hold.accel_memory_bytes,
        "cpu_cores": hold.cpu_cores,
        "disk_bytes": hold.disk_bytes,
    }
