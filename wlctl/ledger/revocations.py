"""What is revoked, by the newest event that says so; a list that is another is never believed.

A row is never deleted: what was taken back stays, with the event that took it back. So the number
of changes, the list's serial, only ever grows.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import insert, select, update

from wlctl.errors import UnknownName
from wlctl.ledger import chain
from wlctl.ledger.schema import installation, revocations
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.event import Json
from wlctl.model.policy import Unreadable
from wlctl.model.revocation import Revocation, RevocationKind, Revocations
from wlctl.model.upkeep import ListName

REVOKE = "workload.revoke"
UNREVOKE = "workload.unrevoke"


@dataclass(frozen=True, slots=True)
class _Rows:
    """All rows: what holds, and how many changes there were."""

    entries: tuple[Revocation, ...]
    serial: int


def in_force(tx: ReadTx) -> Revocations | Unreadable:
    """Return the list, when it is the one that its newest event binds."""
    try:
        rows = _rows(tx)
    except ValueError:
        return Unreadable("the revocation list has an entry of no known kind; `wlctl audit verify`")
    name = ListName(_epoch(tx), rows.serial, digest_of(rows.entries))
    told = chain.last_told(tx, REVOKE, UNREVOKE)
    if told is None and not rows.serial:
        return Revocations(name)
    said = {} if told is None else told[1].get("list", {})
    if (said.get("serial"), said.get("sha256")) != (name.serial, name.sha256):
        return Unreadable("the revocation list is not the one that was told; `wlctl audit verify`")
    return Revocations(name, rows.entries)


def digest_of(entries: Iterable[Revocation]) -> str:
    """Return the sha256 of a list: a line `KIND REF` for each entry, sorted."""
    lines = sorted(f"{entry.kind.value} {entry.ref}\n" for entry in entries)
    return chain.sha256("".join(lines).encode())


def revoke(tx: WriteTx, kind: RevocationKind, ref: str, reason: str) -> bool:
    """Revoke something; False where it is revoked already."""
    rows = _rows(tx)
    if _find(rows.entries, kind, ref) is not None:
        return False
    added = Revocation(0, kind, ref, reason, tx.now_ms)
    told: dict[str, Json] = {"kind": kind.value, "ref": ref, "reason": reason}
    event = chain.append(tx, REVOKE, {**told, "list": _list(tx, rows, (*rows.entries, added))})
    row = {**told, "seq": event.seq, "revoked_at_ms": tx.now_ms}
    tx.conn.execute(insert(revocations).values(row))
    return True


def unrevoke(tx: WriteTx, kind: RevocationKind, ref: str, reason: str) -> None:
    """Take a revocation back.

    Raises:
        UnknownName: It is not revoked.
    """
    rows = _rows(tx)
    found = _find(rows.entries, kind, ref)
    if found is None:
        raise UnknownName(
            f"{kind.value} {ref} is not revoked", hint="`wlctl revocations` lists what is"
        )
    left = tuple(entry for entry in rows.entries if entry is not found)
    told: dict[str, Json] = {"kind": kind.value, "ref": ref, "reason": reason, "seq": found.seq}
    event = chain.append(tx, UNREVOKE, {**told, "list": _list(tx, rows, left)})
    tx.conn.execute(
        update(revocations).where(revocations.c.seq == found.seq).values(withdrawn_seq=event.seq)
    )


def _find(entries: Iterable[Revocation], kind: RevocationKind, ref: str) -> Revocation | None:
    return next((entry for entry in entries if (entry.kind, entry.ref) == (kind, ref)), None)


def _list(tx: ReadTx, before: _Rows, entries: tuple[Revocation, ...]) -> dict[str, Json]:
    return {"epoch": _epoch(tx), "serial": before.serial + 1, "sha256": digest_of(entries)}


def _epoch(tx: ReadTx) -> int:
    return int(tx.conn.execute(select(installation.c.epoch)).scalar_one())


def _rows(tx: ReadTx) -> _Rows:
    rows = tx.conn.execute(select(revocations).order_by(revocations.c.seq)).all()
    withdrawn = [row for row in rows if row.withdrawn_seq is not None]
    entries = tuple(
        Revocation(row.seq, RevocationKind(row.kind), row.ref, row.reason, row.revoked_at_ms)
        for row in rows
        if row.withdrawn_seq is None
    )
    return _Rows(entries, len(rows) + len(withdrawn))
