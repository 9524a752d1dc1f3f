"""The newest passes of reconcile: how often one runs, and when the last one did."""

from collections.abc import Sequence

from sqlalchemy import delete, func, insert, select

from wlctl.ledger.schema import passes
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.boottime import BootTime

KEPT = 11
"""Ten gaps lie between them."""


def newest(tx: ReadTx) -> Sequence[BootTime]:
    """Return when the newest passes began, oldest first."""
    query = select(passes.c.boot_id, passes.c.boot_ms).order_by(passes.c.number.desc())
    rows = tx.conn.execute(query.limit(KEPT)).all()
    return [BootTime(row.boot_id, row.boot_ms) for row in reversed(rows)]


def last_at_ms(tx: ReadTx) -> int | None:
    """Return when the newest pass began, by the clock of its machine; None before the first."""
    newest_first = select(passes.c.began_at_ms).order_by(passes.c.number.desc())
    at_ms: int | None = tx.conn.execute(newest_first.limit(1)).scalar_one_or_none()
    return at_ms


def began(tx: WriteTx, at: BootTime) -> None:
    """Write down that a pass begins, and forget the oldest."""
    row = insert(passes).values(began_at_ms=tx.now_ms, boot_id=at.boot_id, boot_ms=at.ms)
    tx.conn.execute(row)
    last = tx.conn.execute(select(func.max(passes.c.number))).scalar_one()
    tx.conn.execute(delete(passes).where(passes.c.number <= last - KEPT))
