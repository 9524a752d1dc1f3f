"""What is said of nodes beside their facts: operators' claims and labels, and measured figures."""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, delete, insert, select

from wlctl.errors import UnknownName
from wlctl.ledger import chain, nodes
from wlctl.ledger.schema import node_capabilities
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.event import Event, Json
from wlctl.model.facts import Capability, Provenance
from wlctl.model.ids import NodeName
from wlctl.model.node import Settles, Tier


@dataclass(frozen=True, slots=True)
class Saying:
    """One claim or one figure.

    Attributes:
        at_ms: When it was said or measured.
    """

    capability: Capability
    at_ms: int


def of_node(tx: ReadTx, name: NodeName) -> list[Saying]:
    """Return what is said of one node, ascending by id."""
    query = _QUERY.where(node_capabilities.c.node == name)
    return [_saying_of(row) for row in tx.conn.execute(query)]


def of_fleet(tx: ReadTx) -> dict[NodeName, tuple[Capability, ...]]:
    """Return what is said of every node; a node of which nothing is said is absent."""
    found: dict[NodeName, list[Capability]] = {}
    for row in tx.conn.execute(_QUERY):
        found.setdefault(NodeName(row.node), []).append(_saying_of(row).capability)
    return {name: tuple(said) for name, said in found.items()}


_QUERY = select(node_capabilities).order_by(
    node_capabilities.c.node, node_capabilities.c.id, node_capabilities.c.provenance
)


def say(
    tx: WriteTx,
    name: NodeName,
    *,
    tier: Tier | None = None,
    settles: Settles | None = None,
    claims: Collection[Capability] = (),
    withdrawn: Collection[str] = (),
) -> Event | None:
    """Record an operator's word on a node; None when all of it was said already.

    Args:
        claims: Each replaces what was claimed under its id.
        withdrawn: Ids that are no longer claimed.

    Raises:
        UnknownName: Nothing was claimed under an id to withdraw.
    """
    said = {
        one.capability.id: one.capability
        for one in of_node(tx, name)
        if one.capability.provenance is Provenance.CLAIMED
    }
    for id_ in withdrawn:
        if id_ not in said:
            raise UnknownName(
                f"nobody has claimed {id_} of {name}", hint=f"`wlctl node show {name}` lists all"
            )
    fresh = [one for one in claims if one.id in withdrawn or said.get(one.id) != one]
    told: dict[str, Json] = {}
    if tier is not None and tier is not nodes.get(tx, name).tier:
        nodes.set_tier(tx, name, tier)
        told["tier"] = tier.word
    if settles is not None and settles is not nodes.get(tx, name).settles:
        nodes.settle_for(tx, name, settles)
        told["containment"] = settles.value
    if fresh:
        told["claims"] = {one.id: _json(one) for one in fresh}
    if withdrawn:
        told["withdrawn"] = sorted(withdrawn)
    _drop(tx, name, Provenance.CLAIMED, [*withdrawn, *(one.id for one in fresh)])
    _put(tx, name, fresh)
    return chain.append(tx, "node.set", {"node": name, **told}) if told else None


def measured(tx: WriteTx, name: NodeName, figures: Collection[Capability]) -> Event:
    """Record what was measured on a node, in place of what was measured there before."""
    rows = node_capabilities.c
    measured_before = rows.node == name, rows.provenance == Provenance.MEASURED.word
    tx.conn.execute(delete(node_capabilities).where(*measured_before))
    _put(tx, name, figures)
    told = {one.id: _json(one) for one in figures}
    return chain.append(tx, "node.measure", {"node": name, "figures": told})


def _drop(tx: WriteTx, name: NodeName, provenance: Provenance, ids: Iterable[str]) -> None:
    rows = node_capabilities.c
    tx.conn.execute(
        delete(node_capabilities).where(
            rows.node == name, rows.provenance == provenance.word, rows.id.in_(list(ids))
        )
    )


def _put(tx: WriteTx, name: NodeName, said: Collection[Capability]) -> None:
    if said:
        tx.conn.execute(
            insert(node_capabilities),
            [
                {
                    "node": name,
                    "provenance": one.provenance.word,
                    "id": one.id,
                    "attrs": json.dumps(_json(one), ensure_ascii=False, sort_keys=True),
                    "at_ms": tx.now_ms,
                }
                for one in said
            ],
        )


def _json(one: Capability) -> dict[str, Json]:
    return {**one.attrs, "exclusive": True} if one.exclusive else dict(one.attrs)


def _saying_of(row: Row[Any]) -> Saying:
    return Saying(capability_of(row.id, row.provenance, json.loads(row.attrs)), row.at_ms)


def capability_of(id_: str, provenance: str, said: Mapping[str, Any]) -> Capability:
    """Read what `node.set` and `node.measure` tell of one capability."""
    attrs = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in said.items()
        if key != "exclusive"
    }
    exclusive = said.get("exclusive") is True
    return Capability(id_, attrs, Provenance[provenance.upper()], exclusive=exclusive)
