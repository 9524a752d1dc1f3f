"""What is not as it should be about an instance, how often it was tried, and when it is again.

One at a time, and only while it lasts: passes of reconcile keep it, and raise an alert of it.
"""

from dataclasses import dataclass

from sqlalchemy import delete, insert, select

from wlctl.ledger.schema import instances, troubles
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.alert import AlertKind
from wlctl.model.ids import InstanceId
from wlctl.model.instance import State

HALTS = frozenset({AlertKind.DRAINED, AlertKind.MOVE_CUT})
"""It was stopped for the time being: whoever stopped it, or a pass, starts it again."""

MOVES = frozenset({AlertKind.MOVE_BLOCKED, AlertKind.MOVE_FAILED, AlertKind.LEASE_WAITING})
"""It should run elsewhere, and does not."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """One trouble.

    Attributes:
        why: In words; nothing in it changes while the trouble lasts.
        tries: How often something was done about it in vain; 0 where it only waits.
        until_ms: Nothing is done about it before; 0 for no such moment.
    """

    kind: AlertKind
    why: str
    tries: int = 0
    until_ms: int = 0

    @property
    def is_halt(self) -> bool:
        """The instance was stopped for the time being."""
        return self.kind in HALTS


def find(tx: ReadTx, instance: InstanceId) -> Trouble | None:
    """Return the trouble of an instance, if it has one."""
    query = select(troubles).where(troubles.c.instance_id == instance)
    row = tx.conn.execute(query).one_or_none()
    if row is None:
        return None
    return Trouble(AlertKind(row.kind), row.why, row.tries, row.until_ms)


def ls(tx: ReadTx) -> dict[InstanceId, Trouble]:
    """Return every trouble there is."""
    return {
        InstanceId(row.instance_id): Trouble(AlertKind(row.kind), row.why, row.tries, row.until_ms)
        for row in tx.conn.execute(select(troubles).order_by(troubles.c.instance_id))
    }


def put(tx: WriteTx, instance: InstanceId, trouble: Trouble) -> None:
    """Keep a trouble, instead of what was kept of the instance."""
    clear(tx, instance)
    tx.conn.execute(
        insert(troubles).values(
            instance_id=instance,
            kind=trouble.kind.value,
            why=trouble.why,
            tries=trouble.tries,
            until_ms=trouble.until_ms,
        )
    )


def clear(tx: WriteTx, instance: InstanceId) -> None:
    """Forget the trouble of an instance: it is over."""
    tx.conn.execute(delete(troubles).where(troubles.c.instance_id == instance))


def clear_unwanted(tx: WriteTx, instance: InstanceId) -> None:
    """Forget what only matters while an instance is to run: somebody wants it ended."""
    kept = find(tx, instance)
    if kept is not None and (kept.is_halt or kept.kind in MOVES):
        clear(tx, instance)


def of_gone(tx: ReadTx) -> list[InstanceId]:
    """List the instances that have a trouble kept, and are gone."""
    query = select(troubles.c.instance_id).join(instances, instances.c.id == troubles.c.instance_id)
    rows = tx.conn.execute(query.where(instances.c.state == State.UNLOADED.value))
    return [InstanceId(row.instance_id) for row in rows]
