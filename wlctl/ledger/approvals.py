"""What the gate has deferred, who approved it, and whether that was used: once, and no more.

Approving and using are told of by events; a signature is judged again whenever it is used.
"""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Row, insert, select, update

from wlctl.errors import AmbiguousName, UnknownName
from wlctl.ledger import chain
from wlctl.ledger.schema import approvals
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.event import Json, rfc3339


class Standing(StrEnum):
    """What became of a deferred request."""

    OPEN = "open"
    """Nobody has approved it yet."""
    APPROVED = "approved"
    """It can be carried out, once."""
    SPENT = "spent"
    """It was carried out."""
    EXPIRED = "expired"
    """Nobody carried it out in time."""


VALID_MS = 24 * 3_600_000
"""How long after it was deferred a request may be approved and carried out."""


@dataclass(frozen=True, slots=True)
class Approval:
    """A request that waits for an approver, or has one.

    Attributes:
        request_sha256: Of the canonical JSON of the whole request.
        principal: Who asked.
        approver: Whose signature it has; empty while nobody's.
        signature: Armored; of `text`.
    """

    id: str
    installation: str
    request_sha256: str
    request: dict[str, Json]
    principal: str
    deferred_at_ms: int
    expires_at_ms: int
    approver: str = ""
    signature: str = ""
    spent_at_ms: int | None = None

    def standing(self, now_ms: int) -> Standing:
        """Say what has become of it."""
        if self.spent_at_ms is not None:
            return Standing.SPENT
        if self.expires_at_ms <= now_ms:
            return Standing.EXPIRED
        return Standing.APPROVED if self.signature else Standing.OPEN

    @property
    def text(self) -> str:
        """What an approver signs: this one request, of this ledger, until then."""
        return (
            f"wlctl-approval/1\n{self.installation}\n{self.id}\n{self.request_sha256}\n"
            f"{rfc3339(self.expires_at_ms)}\n"
        )


def digest_of(request: dict[str, Json]) -> str:
    """Return the sha256 of the canonical JSON of a request."""
    return chain.sha256(chain.canonical(request))


def defer(tx: WriteTx, id_: str, installation: str, request: dict[str, Json]) -> Approval:
    """Remember a request that needs an approver; one that waits already is the same."""
    digest = digest_of(request)
    waiting = find_open(tx, installation, digest, tx.now_ms)
    if waiting is not None:
        return waiting
    made = Approval(
        id=id_,
        installation=installation,
        request_sha256=digest,
        request=request,
        principal=str(request["principal"]),
        deferred_at_ms=tx.now_ms,
        expires_at_ms=tx.now_ms + VALID_MS,
    )
    told: dict[str, Json] = {
        "approval": made.id,
        "request_sha256": digest,
        "principal": made.principal,
        "expires_at_ms": made.expires_at_ms,
    }
    chain.append(tx, "policy.defer", told)
    tx.conn.execute(
        insert(approvals).values(
            id=made.id,
            request_sha256=digest,
            request=chain.canonical(request).decode(),
            principal=made.principal,
            deferred_at_ms=made.deferred_at_ms,
            expires_at_ms=made.expires_at_ms,
        )
    )
    return made


def find_open(tx: ReadTx, installation: str, request_sha256: str, now_ms: int) -> Approval | None:
    """Return the approval of this request that is neither used nor expired."""
    rows = tx.conn.execute(
        select(approvals)
        .where(
            approvals.c.request_sha256 == request_sha256,
            approvals.c.spent_at_ms.is_(None),
            approvals.c.expires_at_ms > now_ms,
        )
        .order_by(approvals.c.deferred_at_ms.desc())
        .limit(1)
    )
    return next((_of(row, installation) for row in rows), None)


def find(tx: ReadTx, installation: str, prefix: str) -> Approval:
    """Return the approval whose id begins with `prefix`.

    Raises:
        UnknownName: None does.
        AmbiguousName: More than one does.
    """
    same = approvals.c.id.startswith(prefix, autoescape=True)
    rows = tx.conn.execute(select(approvals).where(same).limit(2)).all()
    if not rows:
        raise UnknownName(
            f"nothing that was deferred has the id {prefix}",
            hint="`wlctl approvals` lists what waits for an approver",
        )
    if len(rows) > 1:
        raise AmbiguousName(f"{prefix} fits more than one approval", hint="write more of the id")
    return _of(rows[0], installation)


def ls(tx: ReadTx, installation: str) -> list[Approval]:
    """Return all that was ever deferred, the newest first."""
    rows = tx.conn.execute(
        select(approvals).order_by(approvals.c.deferred_at_ms.desc(), approvals.c.id)
    )
    return [_of(row, installation) for row in rows]


def approve(tx: WriteTx, approval: Approval, *, approver: str, signature: str) -> None:
    """Record that a request was approved; the caller has judged the signature."""
    told: dict[str, Json] = {
        "approval": approval.id,
        "approver": approver,
        "signature": signature,
    }
    chain.append(tx, "policy.approve", told)
    tx.conn.execute(
        update(approvals)
        .where(approvals.c.id == approval.id)
        .values(approver=approver, signature=signature, approved_at_ms=tx.now_ms)
    )


def spend(tx: WriteTx, approval: Approval) -> None:
    """Record that an approval was used; there is no second time."""
    chain.append(tx, "policy.spend", {"approval": approval.id, "spent_at_ms": tx.now_ms})
    tx.conn.execute(
        update(approvals).where(approvals.c.id == approval.id).values(spent_at_ms=tx.now_ms)
    )


def _of(row: Row[Any], installation: str) -> Approval:
    return Approval(
        id=row.id,
        installation=installation,
        request_sha256=row.request_sha256,
        request=json.loads(row.request),
        principal=row.principal,
        deferred_at_ms=row.deferred_at_ms,
        expires_at_ms=row.expires_at_ms,
        approver=row.approver or "",
        signature=row.signature or "",
        spent_at_ms=row.spent_at_ms,
    )
