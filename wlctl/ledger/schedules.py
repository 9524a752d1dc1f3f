"""When interval jobs are due, and which of them are late."""

from dataclasses import dataclass

from sqlalchemy import delete, insert, select, update

from wlctl.ledger import chain
from wlctl.ledger.schema import schedules
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.ids import InstanceId
from wlctl.model.instance import Instance


@dataclass(frozen=True, slots=True)
class Scheduled:
    """Where an interval job is on its schedule.

    Attributes:
        due_at_ms: None for never.
        kept_at_ms: When that was worked out.
        skipped_at_ms: Since when runs are left out, because one goes on; None where none was.
        failure: Why the run that was due last could not be started; empty where it was.
    """

    due_at_ms: int | None
    kept_at_ms: int
    skipped_at_ms: int | None = None
    failure: str = ""


def ls(tx: ReadTx) -> dict[InstanceId, Scheduled]:
    """Return every schedule that is kept, by its instance."""
    return {
        InstanceId(row.instance_id): Scheduled(
            row.due_at_ms, row.kept_at_ms, row.skipped_at_ms, row.failure or ""
        )
        for row in tx.conn.execute(select(schedules).order_by(schedules.c.instance_id))
    }


def put(tx: WriteTx, instance: InstanceId, now: Scheduled) -> None:
    """Keep where a job is on its schedule; that is no event, its runs are."""
    values = {
        "due_at_ms": now.due_at_ms,
        "kept_at_ms": now.kept_at_ms,
        "skipped_at_ms": now.skipped_at_ms,
        "failure": now.failure or None,
    }
    same = schedules.c.instance_id == instance
    if tx.conn.execute(update(schedules).where(same).values(**values)).rowcount == 0:
        tx.conn.execute(insert(schedules).values(instance_id=instance, **values))


def clear(tx: WriteTx, instance: InstanceId) -> None:
    """Forget the schedule of a job that is on it no longer."""
    tx.conn.execute(delete(schedules).where(schedules.c.instance_id == instance))


def record_skipped(tx: WriteTx, instance: Instance, due_at_ms: int) -> None:
    """Chain that the run of a due time is left out: one still runs."""
    chain.append(
        tx,
        "workload.start",
        {
            "phase": "outcome",
            "instance": instance.id,
            "name": instance.name,
            "node": instance.node,
            "outcome": "skipped",
            "reason": "still running",
            "generation": instance.generation,
            "due_at_ms": due_at_ms,
        },
    )
