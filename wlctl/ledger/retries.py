"""What could not be done about an instance: why, how often it was tried, and when it is again."""

from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from wlctl.ledger.schema import retries
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.ids import InstanceId


@dataclass(frozen=True, slots=True)
class Retry:
    """What is to be tried again.

    Attributes:
        tries: How often it was tried and failed; 0 where it only waits.
        next_at_ms: Not before.
        why: In words.
    """

    tries: int
    next_at_ms: int
    why: str


def find(tx: ReadTx, instance: InstanceId) -> Retry | None:
    """Return what is to be tried again of an instance."""
    row = tx.conn.execute(select(retries).where(retries.c.instance_id == instance)).one_or_none()
    return None if row is None else Retry(row.tries, row.next_at_ms, row.why)


def ls(tx: ReadTx) -> dict[InstanceId, Retry]:
    """Return all that is to be tried again."""
    rows = tx.conn.execute(select(retries))
    return {InstanceId(row.instance_id): Retry(row.tries, row.next_at_ms, row.why) for row in rows}


def put(tx: WriteTx, instance: InstanceId, retry: Retry) -> None:
    """Keep what is to be tried again, instead of what was kept."""
    clear(tx, instance)
    row = {"tries": retry.tries, "next_at_ms": retry.next_at_ms, "why": retry.why}
    tx.conn.execute(insert(retries).values(instance_id=instance, **row))


def clear(tx: WriteTx, instance: InstanceId) -> None:
    """Forget it: it was done, or is wanted no more."""
    tx.conn.execute(delete(retries).where(retries.c.instance_id == instance))
