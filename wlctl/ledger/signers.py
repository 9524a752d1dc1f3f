"""Whose signatures admit a package: one key under one name, one name for one key."""

from dataclasses import replace
from typing import Any

from sqlalchemy import Row, delete, insert, or_, select

from wlctl.errors import SignerConflict, UnknownName
from wlctl.ledger import chain
from wlctl.ledger.schema import signers
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.event import Json
from wlctl.model.package import Signer, fingerprint


def add(
    tx: WriteTx,
    name: str,
    public_key: str,
    *,
    valid_after_ms: int | None = None,
    valid_before_ms: int | None = None,
) -> bool:
    """Accept the signatures of a key from now on; True unless that was so already.

    Args:
        tx: Stamps the row and the event.
        name: What people call the signer.
        public_key: `TYPE BASE64` in its one spelling.
        valid_after_ms: Not before then; None for at once.
        valid_before_ms: No longer than to the end of that second; None for ever.

    Raises:
        SignerConflict: The name has another key, the key another name, or both other times.
    """
    if not is_new(tx, Signer(name, public_key, tx.now_ms, valid_after_ms, valid_before_ms)):
        return False
    times: dict[str, Json] = {
        "valid_after_ms": valid_after_ms,
        "valid_before_ms": valid_before_ms,
    }
    row_of = {"name": name, "public_key": public_key, "added_at_ms": tx.now_ms, **times}
    tx.conn.execute(insert(signers).values(row_of))
    told: dict[str, Json] = {
        "signer": name,
        "public_key": public_key,
        "fingerprint": fingerprint(public_key),
    }
    chain.append(tx, "signer.add", {**told, **{k: v for k, v in times.items() if v is not None}})
    return True


def is_new(tx: ReadTx, wanted: Signer) -> bool:
    """Answer whether `add` would change anything; raises as it does."""
    same = or_(signers.c.name == wanted.name, signers.c.public_key == wanted.public_key)
    for row in tx.conn.execute(select(signers).where(same).order_by(signers.c.name)):
        found = _of(row)
        if replace(found, added_at_ms=wanted.added_at_ms) == wanted:
            return False
        raise _conflict(found, wanted)
    return True


def rm(tx: WriteTx, name: str) -> Signer:
    """Accept the signatures of a signer no longer; the chain keeps that they were.

    Raises:
        UnknownName: There is no such signer.
    """
    found = get(tx, name)
    tx.conn.execute(delete(signers).where(signers.c.name == name))
    chain.append(tx, "signer.rm", {"signer": name, "fingerprint": found.fingerprint})
    return found


def get(tx: ReadTx, name: str) -> Signer:
    """Return the signer of that name.

    Raises:
        UnknownName: There is none.
    """
    row = tx.conn.execute(select(signers).where(signers.c.name == name)).one_or_none()
    if row is None:
        known = tx.conn.execute(select(signers.c.name)).scalars()
        said, hint = f"there is no signer {name}", "`wlctl signer ls` lists them"
        raise UnknownName.among(known, name, said, hint=hint)
    return _of(row)


def accepted(tx: ReadTx) -> dict[str, Signer]:
    """Return all signers by fingerprint; each counts only while `Signer.is_valid_at` says so."""
    return {signer.fingerprint: signer for signer in ls(tx)}


def ls(tx: ReadTx) -> list[Signer]:
    """Return all signers, ascending by name."""
    return [_of(row) for row in tx.conn.execute(select(signers).order_by(signers.c.name))]


def _of(row: Row[Any]) -> Signer:
    return Signer(
        row.name, row.public_key, row.added_at_ms, row.valid_after_ms, row.valid_before_ms
    )


def _conflict(found: Signer, wanted: Signer) -> SignerConflict:
    if found.name != wanted.name:
        return SignerConflict(
            f"this key is signer {found.name} already",
            hint="one key has one name; whoever signs with it is that signer",
        )
    if found.public_key != wanted.public_key:
        return SignerConflict(
            f"signer {found.name} has another key, {found.fingerprint}",
            hint="one name has one key; give the new key a name of its own",
        )
    return SignerConflict(
        f"signer {found.name} is accepted from or until another moment",
        hint=f"`wlctl signer rm {found.name}` first, if the new one is right",
    )
