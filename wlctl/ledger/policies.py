"""Which policy is in force: the text of its file, bound by the event that applied it.

What cannot be read is never passed over for the policy before it.
"""

import hashlib
from dataclasses import dataclass

from sqlalchemy import insert, select

from wlctl.ledger import chain
from wlctl.ledger.schema import policies
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.policy import Unreadable

APPLY = "policy.apply"


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A policy as it was put in force.

    Attributes:
        seq: Of the event that says so.
        text: The file, as it was.
    """

    seq: int
    sha256: str
    text: str
    applied_at_ms: int


def digest_of(text: str) -> str:
    """Return what the event says of a policy: the sha256 of its text."""
    return hashlib.sha256(text.encode()).hexdigest()


def apply(tx: WriteTx, text: str) -> StoredPolicy:
    """Put a policy in force; the caller has found that it says something."""
    digest = digest_of(text)
    event = chain.append(tx, APPLY, {"sha256": digest})
    tx.conn.execute(
        insert(policies).values(seq=event.seq, sha256=digest, text=text, applied_at_ms=tx.now_ms)
    )
    return StoredPolicy(event.seq, digest, text, tx.now_ms)


def in_force(tx: ReadTx) -> StoredPolicy | Unreadable:
    """Return the policy that was applied last, when its text is the one that its event binds."""
    told = chain.last_told(tx, APPLY)
    if told is None:
        return Unreadable("the ledger has no policy; `wlctl init` makes what is missing")
    seq, payload = told
    newest = select(policies).order_by(policies.c.seq.desc()).limit(1)
    row = tx.conn.execute(newest).one_or_none()
    if row is None or row.seq != seq or digest_of(row.text) != payload["sha256"]:
        return Unreadable("the policy is not the one that was applied; `wlctl audit verify`")
    return StoredPolicy(row.seq, payload["sha256"], row.text, row.applied_at_ms)


def was_ever_applied(tx: ReadTx) -> bool:
    """Answer whether the chain tells of any policy, whatever has become of it."""
    return chain.last_told(tx, APPLY) is not None
