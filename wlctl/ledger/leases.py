"""When the newest lease of each instance was sent: kept before it is, whatever becomes of it."""

from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from wlctl.ledger.schema import leases
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.boottime import BootTime
from wlctl.model.ids import InstanceId


@dataclass(frozen=True, slots=True)
class Sent:
    """A lease that may have reached its node.

    Attributes:
        read_at: When the node's reading was received that it is counted from.
    """

    ttl_ms: int
    read_at: BootTime


def sent(tx: WriteTx, instance: InstanceId, lease: Sent) -> None:
    """Write down that a lease is about to be sent.

    One that was read earlier changes nothing: whoever sends it was paused, and its node has, or may
    have, a later one.
    """
    newest = find(tx, instance)
    if newest is not None and newest.read_at.since(lease.read_at):
        return
    tx.conn.execute(delete(leases).where(leases.c.instance_id == instance))
    at = lease.read_at
    row = {"instance_id": instance, "boot_id": at.boot_id, "boot_ms": at.ms}
    tx.conn.execute(insert(leases).values(ttl_ms=lease.ttl_ms, **row))


def find(tx: ReadTx, instance: InstanceId) -> Sent | None:
    """Return the newest lease that may have reached the node of an instance, if any did."""
    row = tx.conn.execute(select(leases).where(leases.c.instance_id == instance)).one_or_none()
    return None if row is None else Sent(row.ttl_ms, BootTime(row.boot_id, row.boot_ms))


def forget(tx: WriteTx) -> None:
    """Forget when every lease was sent: a ledger that is older than its nodes does not know it."""
    tx.conn.execute(delete(leases))
