"""Whose signatures admit a package: one key under one name, one name for one key."""

from sqlalchemy import insert, or_, select

from wlctl.errors import SignerConflict
from wlctl.ledger import chain
from wlctl.ledger.schema import signers
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.package import Signer, fingerprint


def add(tx: WriteTx, name: str, public_key: str) -> bool:
    """Accept the signatures of a key from now on; True unless that was so already.

    Args:
        tx: Stamps the row and the event.
        name: What people call the signer.
        public_key: `TYPE BASE64` in its one spelling.

    Raises:
        SignerConflict: The name has another key, or the key another name.
    """
    query = select(signers).where(or_(signers.c.name == name, signers.c.public_key == public_key))
    for row in tx.conn.execute(query.order_by(signers.c.name)):
        if (row.name, row.public_key) == (name, public_key):
            return False
        if row.name == name:
            raise SignerConflict(
                f"signer {name} has another key, {fingerprint(row.public_key)}",
                hint="one name has one key; give the new key a name of its own",
            )
        raise SignerConflict(
            f"this key is signer {row.name} already",
            hint="one key has one name; whoever signs with it is that signer",
        )
    tx.conn.execute(insert(signers).values(name=name, public_key=public_key, added_at_ms=tx.now_ms))
    payload = {"signer": name, "public_key": public_key, "fingerprint": fingerprint(public_key)}
    chain.append(tx, "signer.add", payload)
    return True


def accepted(tx: ReadTx) -> dict[str, Signer]:
    """Return everyone whose signatures count now, by fingerprint."""
    return {signer.fingerprint: signer for signer in ls(tx)}


def ls(tx: ReadTx) -> list[Signer]:
    """Return all signers, ascending by name."""
    return [
        Signer(row.name, row.public_key, row.added_at_ms)
        for row in tx.conn.execute(select(signers).order_by(signers.c.name))
    ]
