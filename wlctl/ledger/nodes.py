"""The fleet as the ledger has it: nodes and what their last probe saw."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from sqlalchemy import Row, bindparam, delete, insert, select, update

from wlctl.errors import NAMES_COMPARED, NameTaken, UnknownName
from wlctl.ledger import chain
from wlctl.ledger.schema import facts as facts_table
from wlctl.ledger.schema import node_capabilities
from wlctl.ledger.schema import nodes as nodes_table
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.event import Event, Json
from wlctl.model.facts import Capability, CapabilityState, Facts, Provenance
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.node import Address, Enforced, Liveness, Node, Settles, Tier, TransportKind


def add(tx: WriteTx, node: Node) -> Event:
    """Add `node` with its first facts.

    Raises:
        NameTaken: A node has this name, or this node_id under another name.
    """
    for known in ls(tx):
        if known.name == node.name:
            raise NameTaken(
                f"there is a node {node.name} already",
                hint=f"`wlctl node ls` lists the fleet; choose another name than {node.name}",
            )
    _refuse_twin(tx, node.name, node.node_id)
    row = _row_of(tx, node)
    gone = tx.conn.execute(
        update(nodes_table).where(nodes_table.c.name == node.name, nodes_table.c.removed), row
    )
    if not gone.rowcount:
        tx.conn.execute(insert(nodes_table), row)
    if node.facts is not None:
        _put_facts(tx, {node.name: node.facts})
    return chain.append(
        tx,
        "node.add",
        {
            "node": node.name,
            "transport": node.address.transport.value,
            "host": node.address.host,
            "port": node.address.port,
            "user": node.address.user,
            "host_key": node.address.host_key,
            "enforced": node.address.enforced,
            "node_id": node.node_id,
            "tier": node.tier.word,
        },
    )


def _row_of(tx: WriteTx, node: Node) -> dict[str, object]:
    return {
        "name": node.name,
        "transport": node.address.transport.value,
        "host": node.address.host,
        "port": node.address.port,
        "login": node.address.user,
        "host_key": node.address.host_key,
        "sudo": node.address.sudo,
        "tier": node.tier.word,
        "liveness": node.liveness.value,
        "cordoned": node.cordoned,
        "cordoned_until_ms": node.cordoned_until_ms,
        "node_id": node.node_id,
        "machine_id": node.machine_id,
        "boot_id": node.boot_id,
        "failed_contacts": node.failed_contacts,
        "failure": node.failure,
        "added_at_ms": tx.now_ms,
        "seen_at_ms": node.seen_at_ms,
        "silent_ms": 0,
        "rekeyed_at_ms": node.rekeyed_at_ms,
        "settles": node.settles.value,
        "attested_dead_at_ms": None,
        "attested_boot_id": None,
        "enforced": node.address.enforced,
        "enforced_at_ms": None,
        "enforcement_sha256": None,
        "projects": "[]",
        "removed": False,
    }


def set_tier(tx: WriteTx, name: NodeName, tier: Tier) -> None:
    """Record the operator's word on a node; `node.set` tells of it."""
    _change(tx, name, tier=tier.word)


def settle_for(tx: WriteTx, name: NodeName, settles: Settles) -> None:
    """Record the operator's word on a node; `node.set` tells of it."""
    _change(tx, name, settles=settles.value)


def move_address(tx: WriteTx, name: NodeName, address: Address) -> Event:
    """Record where a node is reached from now on; who it is stays as it was."""
    _change(
        tx,
        name,
        host=address.host,
        port=address.port,
        login=address.user,
        sudo=address.sudo,
    )
    told: dict[str, Json] = {"host": address.host, "port": address.port, "user": address.user}
    return chain.append(tx, "node.set", {"node": name, **told, "sudo": address.sudo})


def cordon(tx: WriteTx, name: NodeName, until_ms: int | None) -> Event:
    """Let nothing new be placed on a node, until a moment or until `uncordon`."""
    _change(tx, name, cordoned=True, cordoned_until_ms=until_ms)
    return chain.append(tx, "node.cordon", {"node": name, "until_ms": until_ms})


def uncordon(tx: WriteTx, name: NodeName) -> Event:
    """Let a node take workloads again."""
    _change(tx, name, cordoned=False, cordoned_until_ms=None)
    return chain.append(tx, "node.uncordon", {"node": name})


def enforce(tx: WriteTx, name: NodeName, enforced: Enforced) -> Event:
    """Record that a node verifies for itself from now on, and what it goes by."""
    _change(tx, name, **_enforced_columns(enforced))
    return chain.append(
        tx,
        "node.enforce",
        {
            "node": name,
            "enforced": True,
            "enforcement_sha256": enforced.sha256,
            "projects": list(enforced.projects),
        },
    )


def unenforce(tx: WriteTx, name: NodeName) -> Event:
    """Record that wlctl's key opens a shell on a node again."""
    _change(tx, name, **_enforced_columns(None))
    payload: dict[str, Json] = {"node": name, "enforced": False, "enforcement_sha256": None}
    return chain.append(tx, "node.enforce", payload)


def _enforced_columns(enforced: Enforced | None) -> dict[str, object]:
    kept = enforced or Enforced()
    return {
        "enforced": enforced is not None,
        "enforced_at_ms": kept.at_ms,
        "enforcement_sha256": kept.sha256 or None,
        "projects": json.dumps(kept.projects),
    }


def rekey(tx: WriteTx, name: NodeName, *, address: Address, tier: Tier, facts: Facts) -> Event:
    """Take another host key for a node, and another identity when `facts` show one.

    Args:
        address: With the key that it shows, and by the way that leads there, enforced or not.

    Raises:
        NameTaken: The machine is in the fleet under another name.
    """
    before = get(tx, name)
    _refuse_twin(tx, name, facts.node_id)
    replaced = facts.node_id != before.node_id
    stays = before.enforced if not replaced else None
    kept = (stays or Enforced()) if address.enforced else None
    settles = Settles.AUTO if replaced else before.settles  # it was said of the machine
    _change(
        tx,
        name,
        host_key=address.host_key,
        tier=tier.word,
        node_id=facts.node_id,
        machine_id=facts.machine_id,
        rekeyed_at_ms=tx.now_ms if replaced else before.rekeyed_at_ms,
        settles=settles.value,
        **_enforced_columns(kept),
    )
    if replaced:  # what was measured there was another machine
        figures = node_capabilities.c.provenance == Provenance.MEASURED.word
        tx.conn.execute(delete(node_capabilities).where(node_capabilities.c.node == name, figures))
    event = chain.append(
        tx,
        "node.rekey",
        {
            "node": name,
            "host_key": address.host_key,
            "node_id": facts.node_id,
            "tier": tier.word,
            "containment": settles.value,
            "enforced": address.enforced,
            "enforcement_sha256": (kept.sha256 or None) if kept else None,
            "before": {
                "host_key": before.address.host_key,
                "node_id": before.node_id,
                "tier": before.tier.word,
            },
        },
    )
    record_contact(tx, name, facts)
    return event


def attest_dead(
    tx: WriteTx, name: NodeName, *, replaced: bool, released: Sequence[InstanceId]
) -> Event:
    """Record an operator's word that a machine runs nothing any more.

    Args:
        replaced: It is said of the machine that had the name before the node was rekeyed.
        released: What was held there until now.
    """
    before = get(tx, name)
    if not replaced:
        said = {"attested_dead_at_ms": tx.now_ms, "attested_boot_id": before.boot_id}
        _change(tx, name, liveness=Liveness.DEAD.value, **said)
        if before.liveness is not Liveness.DEAD:
            _chain_liveness(tx, before, Liveness.DEAD, "attested dead")
    payload: dict[str, Json] = {
        "node": name,
        "node_id": "" if replaced else before.node_id,
        "replaced": replaced,
        "released": list(released),
    }
    return chain.append(tx, "node.attest_dead", payload)


def remove(tx: WriteTx, name: NodeName, *, cleaned: bool) -> Event:
    """Take a node out of the fleet; its row stays, for the history of what ran there.

    The caller makes sure that the ledger holds nothing there any more.
    """
    _change(tx, name, removed=True)
    for table in (facts_table, node_capabilities):
        tx.conn.execute(delete(table).where(table.c.node == name))
    return chain.append(tx, "node.rm", {"node": name, "cleaned": cleaned})


def _change(tx: WriteTx, name: NodeName, **values: object) -> None:
    tx.conn.execute(update(nodes_table).where(nodes_table.c.name == name).values(**values))


def _refuse_twin(tx: ReadTx, name: str, node_id: str) -> None:
    for known in ls(tx):
        if known.node_id == node_id and known.name != name:
            raise NameTaken(
                f"this machine is in the fleet already, as {known.name}",
                hint=f"use {known.name}; one machine under two names would be counted twice",
            )


def record_contact(tx: WriteTx, name: NodeName, facts: Facts) -> Facts:
    """Record a probe that answered; the node is alive. Return the facts with their number."""
    return record_contacts(tx, {name: facts})[name]


def record_contacts(tx: WriteTx, seen: Mapping[NodeName, Facts]) -> dict[NodeName, Facts]:
    """Record probes that answered, as `record_contact` does, without a statement for each."""
    numbers = select(facts_table.c.node, facts_table.c.seq).where(facts_table.c.node.in_(seen))
    last = {row.node: row.seq for row in tx.conn.execute(numbers)}
    numbered = {name: replace(facts, seq=last.get(name, 0) + 1) for name, facts in seen.items()}
    record_looks(tx, {name: (one.boot_id, one.probed_at_ms) for name, one in seen.items()})
    _put_facts(tx, numbered)
    return numbered


def _answered(before: Node, boot_id: str) -> str:
    if before.attested_dead_at_ms is None:
        return "answered"
    if boot_id == before.boot_id:
        return "answered, with the boot under way that was attested dead"
    return "answered, started anew since it was attested dead"


def record_look(tx: WriteTx, name: NodeName, boot_id: str, at_ms: int) -> None:
    """Record that the node itself answered at a moment, under a boot; it is alive."""
    record_looks(tx, {name: (boot_id, at_ms)})


def record_looks(tx: WriteTx, seen: Mapping[NodeName, tuple[str, int]]) -> None:
    """Record the same of many nodes: of each the boot, and the moment."""
    if not seen:
        return
    alive = select(nodes_table.c.name).where(
        nodes_table.c.name.in_(seen),
        nodes_table.c.liveness == Liveness.ALIVE.value,
        ~nodes_table.c.removed,
    )
    for name in sorted(seen.keys() - set(tx.conn.execute(alive).scalars())):
        before = get(tx, name)
        _chain_liveness(tx, before, Liveness.ALIVE, _answered(before, seen[name][0]))
    tx.conn.execute(
        update(nodes_table)
        .where(nodes_table.c.name == bindparam("node"))
        .values(
            liveness=Liveness.ALIVE.value,
            failed_contacts=0,
            failure="",
            silent_ms=0,
            attested_dead_at_ms=None,
            boot_id=bindparam("boot"),
            seen_at_ms=bindparam("at"),
        ),
        [{"node": name, "boot": boot_id, "at": at_ms} for name, (boot_id, at_ms) in seen.items()],
    )


def record_silence(tx: WriteTx, name: NodeName, why: str) -> None:
    """Record a contact that failed for the reason code `why`; an alive node becomes suspect."""
    before = get(tx, name)
    after = Liveness.SUSPECT if before.liveness is Liveness.ALIVE else before.liveness
    tx.conn.execute(
        update(nodes_table)
        .where(nodes_table.c.name == name)
        .values(liveness=after.value, failed_contacts=before.failed_contacts + 1, failure=why)
    )
    if after is not before.liveness:
        _chain_liveness(tx, before, after, why)


def record_standing(
    tx: WriteTx, name: NodeName, liveness: Liveness, *, failures: int, silent_ms: int, why: str
) -> None:
    """Record what a pass makes of a contact that failed for the reason code `why`."""
    before = get(tx, name)
    now = {"failed_contacts": failures, "silent_ms": silent_ms, "failure": why}
    _change(tx, name, liveness=liveness.value, **now)
    if liveness is not before.liveness:
        _chain_liveness(tx, before, liveness, why)


def get(tx: ReadTx, name: str) -> Node:
    """Return the node called `name`.

    Raises:
        UnknownName: There is none.
    """
    row = tx.conn.execute(_QUERY.where(nodes_table.c.name == name)).one_or_none()
    if row is None:
        names = select(nodes_table.c.name).where(~nodes_table.c.removed).limit(NAMES_COMPARED)
        known = tx.conn.execute(names.order_by(nodes_table.c.name)).scalars()
        said, hint = f"there is no node {name}", "`wlctl node ls` lists the fleet"
        raise UnknownName.among(known, name, said, hint=hint)
    return _node_of(row)


def removed_ids(tx: ReadTx) -> set[str]:
    """Return the identities of machines that were taken out of the fleet and are not in it now."""
    rows = tx.conn.execute(select(nodes_table.c.node_id).where(nodes_table.c.removed)).scalars()
    return set(rows) - {node.node_id for node in ls(tx)}


def ls(tx: ReadTx) -> list[Node]:
    """Return the fleet, ascending by name."""
    return [_node_of(row) for row in tx.conn.execute(_QUERY.order_by(nodes_table.c.name))]


def names(tx: ReadTx, liveness: Liveness | None = None) -> frozenset[NodeName]:
    """Name the nodes of the fleet, or those that are as `liveness` says; no facts are read."""
    query = select(nodes_table.c.name).where(~nodes_table.c.removed)
    if liveness is not None:
        query = query.where(nodes_table.c.liveness == liveness.value)
    return frozenset(NodeName(name) for name in tx.conn.execute(query).scalars())


def contacts(tx: ReadTx) -> dict[NodeName, tuple[int | None, int | None]]:
    """Say when each node was in contact last, and when its name passed on; no facts are read."""
    query = select(nodes_table.c.name, nodes_table.c.seen_at_ms, nodes_table.c.rekeyed_at_ms)
    rows = tx.conn.execute(query.where(~nodes_table.c.removed))
    return {NodeName(row.name): (row.seen_at_ms, row.rekeyed_at_ms) for row in rows}


def by_now(tx: ReadTx, known: Sequence[Node]) -> list[Node]:
    """Return how nodes that were read before stand by now; no facts are read again.

    Those that were taken out, or are other machines since, are left out.
    """
    names = ("liveness", "failed_contacts", "silent_ms", "seen_at_ms", "cordoned")
    columns = [nodes_table.c[name] for name in (*names, "cordoned_until_ms")]
    query = select(nodes_table.c.name, nodes_table.c.node_id, *columns)
    rows = {row.name: row for row in tx.conn.execute(query.where(~nodes_table.c.removed))}
    return [
        replace(
            node,
            liveness=Liveness(row.liveness),
            failed_contacts=row.failed_contacts,
            silent_ms=row.silent_ms,
            seen_at_ms=row.seen_at_ms,
            cordoned=row.cordoned,
            cordoned_until_ms=row.cordoned_until_ms,
        )
        for node in known
        if (row := rows.get(node.name)) is not None and row.node_id == node.node_id
    ]


_QUERY = (
    select(nodes_table, facts_table.c.document)
    .select_from(nodes_table.outerjoin(facts_table, facts_table.c.node == nodes_table.c.name))
    .where(~nodes_table.c.removed)
)


def _chain_liveness(tx: WriteTx, node: Node, after: Liveness, why: str) -> None:
    payload = {"node": node.name, "from": node.liveness.value, "to": after.value, "reason": why}
    chain.append(tx, "node.liveness", payload)


def _node_of(row: Row[Any]) -> Node:
    address = Address(
        transport=TransportKind(row.transport),
        host=row.host,
        port=row.port,
        user=row.login,
        host_key=row.host_key,
        sudo=row.sudo,
        enforced=row.enforced,
    )
    enforced = Enforced(
        row.enforced_at_ms, row.enforcement_sha256 or "", tuple(json.loads(row.projects))
    )
    return Node(
        name=NodeName(row.name),
        address=address,
        tier=Tier[row.tier.upper()],
        liveness=Liveness(row.liveness),
        cordoned=row.cordoned,
        node_id=row.node_id,
        machine_id=row.machine_id,
        boot_id=row.boot_id,
        failed_contacts=row.failed_contacts,
        added_at_ms=row.added_at_ms,
        seen_at_ms=row.seen_at_ms,
        facts=None if row.document is None else facts_of(json.loads(row.document)),
        cordoned_until_ms=row.cordoned_until_ms,
        rekeyed_at_ms=row.rekeyed_at_ms,
        attested_dead_at_ms=row.attested_dead_at_ms,
        attested_boot_id=row.attested_boot_id,
        failure=row.failure,
        silent_ms=row.silent_ms,
        enforced=enforced if row.enforced else None,
        settles=Settles(row.settles),
    )


def _put_facts(tx: WriteTx, seen: Mapping[NodeName, Facts]) -> None:
    if not seen:
        return
    tx.conn.execute(delete(facts_table).where(facts_table.c.node.in_(seen)))
    tx.conn.execute(
        insert(facts_table),
        [
            {
                "node": name,
                "seq": one.seq,
                "probed_at_ms": one.probed_at_ms,
                "document": json.dumps(facts_json(one), ensure_ascii=False, separators=(",", ":")),
            }
            for name, one in seen.items()
        ],
    )


def facts_json(facts: Facts) -> Mapping[str, Json]:
    """Write facts as JSON; a capability is a list in the order of its fields."""
    document = {name: getattr(facts, name) for name in _FACT_NAMES}
    document["capabilities"] = [
        [one.id, dict(one.attrs), one.provenance.word, one.state.value, one.exclusive]
        for one in facts.capabilities
    ]
    return document


def facts_of(document: Mapping[str, Any]) -> Facts:
    """Read what `facts_json` wrote."""
    plain = {name: document[name] for name in _FACT_NAMES}
    plain["ports_listening"] = tuple(plain["ports_listening"])
    plain["instances"] = tuple(plain["instances"])
    plain["missing"] = tuple(plain["missing"])
    return Facts(**plain, capabilities=tuple(map(_capability_of, document["capabilities"])))


_FACT_NAMES = tuple(field.name for field in fields(Facts) if field.name != "capabilities")


def _capability_of(row: Any) -> Capability:
    id_, attrs, provenance, state, exclusive = row
    return Capability(
        id=id_,
        attrs={key: tuple(v) if isinstance(v, list) else v for key, v in attrs.items()},
        provenance=Provenance[provenance.upper()],
        state=CapabilityState(state),
        exclusive=exclusive,
    )
