"""Every decision that was made, with the event that binds its document."""

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, insert, select

from wlctl.errors import AmbiguousName, UnknownName
from wlctl.ledger import chain
from wlctl.ledger.schema import decisions, instances
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.event import Json
from wlctl.model.ids import DecisionId


@dataclass(frozen=True, slots=True)
class Stored:
    """One decision as the ledger has it.

    Attributes:
        node: Where it placed, or None.
        document: Canonical JSON; None once it was pruned (the chain keeps its hash).
    """

    id: DecisionId
    seq: int
    at_ms: int
    workload: str
    name: str
    node: str | None
    dry_run: bool
    sha256: str
    document: bytes | None


def record(
    tx: WriteTx,
    document: bytes,
    *,
    name: str,
    workload: str,
    package_id: str,
    node: str | None,
    instance_id: str | None,
    counts: Mapping[str, int],
    dry_run: bool,
) -> DecisionId:
    """Record a decision as one event and one row; its id is the event's hash.

    Args:
        document: Canonical JSON, all of the decision.
        counts: How many nodes were judged eligible, and rejected by each constraint.
        instance_id: The copy that is intended by it; None for a dry run and where nothing fits.
    """
    digest = hashlib.sha256(document).hexdigest()
    payload: dict[str, Json] = {
        "phase": "decision",
        "document": digest,
        "workload": workload,
        "package": package_id,
        "name": name,
        "node": node,
        "counts": dict(counts),
        "dry_run": dry_run,
    }
    if instance_id is not None:
        payload["instance"] = instance_id
    kind = "workload.place" if node is not None else "workload.refuse"
    if node is None:
        payload["kind"] = "decision"
    event = chain.append(tx, kind, payload)
    tx.conn.execute(
        insert(decisions).values(
            id=event.hash,
            seq=event.seq,
            at_ms=tx.now_ms,
            workload=workload,
            name=name,
            node=node,
            dry_run=dry_run,
            sha256=digest,
            document=zlib.compress(document, level=6),
        )
    )
    return DecisionId(event.hash)


def recalled(
    tx: WriteTx,
    *,
    name: str,
    workload: str,
    package_id: str,
    node: str,
    instance_id: str,
    before: str,
    told: Mapping[str, Json],
) -> DecisionId:
    """Record that a copy is where it is by a decision that a lost ledger had made.

    Args:
        before: The id of that decision; its document is lost with it.
        told: What the node says of it; the event binds it, as one of a decision binds its document.
    """
    digest = chain.sha256(chain.canonical(told))
    payload: dict[str, Json] = {
        "phase": "decision",
        "document": digest,
        "workload": workload,
        "package": package_id,
        "name": name,
        "node": node,
        "counts": {},
        "dry_run": False,
        "instance": instance_id,
        "recalled": before,
    }
    event = chain.append(tx, "workload.place", payload)
    tx.conn.execute(
        insert(decisions).values(
            id=event.hash,
            seq=event.seq,
            at_ms=tx.now_ms,
            workload=workload,
            name=name,
            node=node,
            dry_run=False,
            sha256=digest,
            document=None,
        )
    )
    return DecisionId(event.hash)


def find(tx: ReadTx, prefix: str) -> Stored:
    """Return the decision whose id begins with `prefix`.

    Raises:
        UnknownName: None does.
        AmbiguousName: More than one does.
    """
    same = decisions.c.id.startswith(prefix, autoescape=True)
    rows = tx.conn.execute(select(decisions).where(same).limit(2)).all()
    if not rows:
        raise UnknownName(
            f"there is no decision {prefix}", hint="`wlctl decisions` lists what was decided"
        )
    if len(rows) > 1:
        raise AmbiguousName(f"{prefix} fits more than one decision", hint="write more of the id")
    return _stored(rows[0], rows[0].document)


def ls(
    tx: ReadTx, *, workload: str = "", node: str = "", since_ms: int | None = None
) -> list[Stored]:
    """Return the decisions that have all of these properties, oldest first, without documents.

    Args:
        node: Where they placed.
        since_ms: Made at this moment or later.
    """
    query = select(*(column for column in decisions.c if column.name != "document"))
    if workload:
        query = query.where(decisions.c.workload == workload)
    if node:
        query = query.where(decisions.c.node == node)
    if since_ms is not None:
        query = query.where(decisions.c.at_ms >= since_ms)
    return [_stored(row, None) for row in tx.conn.execute(query.order_by(decisions.c.seq))]


def about(tx: ReadTx, word: str) -> list[Stored]:
    """Return the decisions about a name or a copy, newest first; empty where there never was one.

    Args:
        word: The name that was decided about, or the name or id of a copy that came of it.
    """
    copies = select(instances.c.decision_id).where(
        (instances.c.name == word) | (instances.c.id == word)
    )
    same = (decisions.c.name == word) | decisions.c.id.in_(copies)
    query = select(decisions).where(same).order_by(decisions.c.seq.desc())
    return [_stored(row, row.document) for row in tx.conn.execute(query)]


def newest(tx: ReadTx) -> Stored | None:
    """Return the decision that was made last; None before the first."""
    query = select(decisions).order_by(decisions.c.seq.desc()).limit(1)
    row = tx.conn.execute(query).one_or_none()
    return None if row is None else _stored(row, row.document)


def _stored(row: Row[Any], packed: bytes | None) -> Stored:
    return Stored(
        id=DecisionId(row.id),
        seq=row.seq,
        at_ms=row.at_ms,
        workload=row.workload,
        name=row.name,
        node=row.node,
        dry_run=row.dry_run,
        sha256=row.sha256,
        document=None if packed is None else zlib.decompress(packed),
    )
