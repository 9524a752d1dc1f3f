"""Keys that were given with orders: each is spent once, on what it was first given with."""

from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from wlctl.ledger.schema import dedup
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.ids import DecisionId


@dataclass(frozen=True, slots=True)
class Spent:
    """What a key was spent on.

    Attributes:
        request_sha256: Of the order: package, name, count and options.
        name: Of what was placed; that of the first where there were several copies.
    """

    key: str
    request_sha256: str
    decision: DecisionId
    name: str
    spent_at_ms: int


def find(tx: ReadTx, key: str) -> Spent | None:
    """Return what `key` was spent on, if it was."""
    row = tx.conn.execute(select(dedup).where(dedup.c.key == key)).one_or_none()
    if row is None:
        return None
    decision = DecisionId(row.decision_id)
    return Spent(row.key, row.request_sha256, decision, row.name, row.spent_at_ms)


def spend(tx: WriteTx, key: str, *, request_sha256: str, decision: DecisionId, name: str) -> None:
    """Spend `key`, also again where what it was spent on before came to nothing."""
    tx.conn.execute(delete(dedup).where(dedup.c.key == key))
    tx.conn.execute(
        insert(dedup).values(
            key=key,
            request_sha256=request_sha256,
            decision_id=decision,
            name=name,
            spent_at_ms=tx.now_ms,
        )
    )
