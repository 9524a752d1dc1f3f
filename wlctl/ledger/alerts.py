"""Which troubles are open, which were, and how far each channel has told of them."""

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, func, insert, select, update

from wlctl.errors import UnknownName
from wlctl.ledger import chain
from wlctl.ledger.schema import alert_channels, alerts
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.alert import Alert, AlertKind, Channel, KeptAlert
from wlctl.model.event import Json


@dataclass(frozen=True, slots=True)
class Settled:
    """What a pass changed about alerts; both empty when it found what was open already."""

    raised: tuple[KeptAlert, ...] = ()
    closed: tuple[KeptAlert, ...] = ()

    @property
    def is_unproven(self) -> bool:
        """Something new is about what nobody knows."""
        return any(one.alert.is_unproven for one in self.raised)


def nothing_unjudged(_alert: Alert) -> bool:
    """Say that the pass could judge whatever any alert is about."""
    return False


def settle(
    tx: WriteTx,
    found: Collection[Alert],
    *,
    unjudged: Callable[[Alert], bool] = nothing_unjudged,
) -> Settled:
    """Make what is open what was found; where that is so already, write nothing.

    What is new is raised, once. What is open and was not found again is closed, unless it could not
    be judged. What somebody acknowledged stays open, and quiet, as long as its cause lasts.

    Args:
        found: Every trouble there is now, as far as it could be judged.
        unjudged: Answers whether what an open alert is about could not be judged this time.
    """
    standing = {one.alert: one for one in ls(tx)}
    fresh = sorted(set(found) - standing.keys(), key=_order)
    gone = [one for alert, one in standing.items() if alert not in found and not unjudged(alert)]
    return Settled(_raise(tx, fresh), _close(tx, gone))


def add(tx: WriteTx, found: Iterable[Alert]) -> tuple[KeptAlert, ...]:
    """Raise what is not open yet, and close nothing; for a trouble that is met outside a pass."""
    standing = {one.alert for one in ls(tx)}
    return _raise(tx, sorted(set(found) - standing, key=_order))


def _order(alert: Alert) -> tuple[str, str, str]:
    return alert.kind.value, alert.subject, alert.reason


def _raise(tx: WriteTx, fresh: Iterable[Alert]) -> tuple[KeptAlert, ...]:
    newest = tx.conn.execute(select(func.max(alerts.c.id))).scalar_one() or 0
    raised = []
    for number, alert in enumerate(fresh, newest + 1):
        said = {"kind": alert.kind.value, "subject": alert.subject, "reason": alert.reason}
        event = chain.append(tx, "alert.raise", {"alert": number, **said})
        tx.conn.execute(
            insert(alerts).values(id=number, **said, raised_at_ms=tx.now_ms, seq=event.seq)
        )
        raised.append(KeptAlert(number, alert, tx.now_ms))
    return tuple(raised)


def _close(tx: WriteTx, gone: Iterable[KeptAlert]) -> tuple[KeptAlert, ...]:
    closed = []
    for one in gone:
        chain.append(tx, "alert.close", {"alert": one.id, "closed_at_ms": tx.now_ms})
        closed.append(_changed(tx, one.id, closed_at_ms=tx.now_ms))
    return tuple(closed)


def unknowing(tx: ReadTx, id_: int) -> KeptAlert | None:
    """Find an open alert of which nobody knows yet; None where somebody does.

    Raises:
        UnknownName: No open alert has that number.
    """
    now = _find(tx, id_)
    if now is None or now.closed_at_ms is not None:
        raise UnknownName(
            f"no alert {id_} is open" if now is None else f"the cause of alert {id_} is gone",
            hint="`wlctl alerts` lists what is open",
        )
    return now if now.acked_at_ms is None else None


def ack(tx: WriteTx, id_: int) -> KeptAlert | None:
    """Record that somebody knows of an open alert; None where somebody did already.

    Raises:
        UnknownName: No open alert has that number.
    """
    if unknowing(tx, id_) is None:
        return None
    said: dict[str, Json] = {"acked_at_ms": tx.now_ms, "acked_by": tx.author.actor}
    event = chain.append(tx, "alert.ack", {"alert": id_, **said})
    return _changed(tx, id_, acked_at_ms=tx.now_ms, acked_by=event.payload["acked_by"])


def _changed(tx: WriteTx, id_: int, **values: object) -> KeptAlert:
    tx.conn.execute(update(alerts).where(alerts.c.id == id_).values(**values))
    now = _find(tx, id_)
    assert now is not None
    return now


def ls(tx: ReadTx, *, everything: bool = False, after_id: int = 0) -> list[KeptAlert]:
    """Return what is open, the oldest first.

    Args:
        everything: What was closed, too.
        after_id: Only those that were raised after this one.
    """
    query = select(alerts).where(alerts.c.id > after_id).order_by(alerts.c.id)
    if not everything:
        query = query.where(alerts.c.closed_at_ms.is_(None))
    return [_kept(row) for row in tx.conn.execute(query)]


def over(tx: ReadTx, ids: Collection[int]) -> list[KeptAlert]:
    """Return those of `ids` whose cause is gone, the oldest first."""
    if not ids:
        return []
    # Open ones are few, closed ones are kept for good: ask by what there is a bound on.
    open_ids = {one.id for one in ls(tx)}
    gone = [id_ for id_ in sorted(ids) if id_ not in open_ids]
    return [one for id_ in gone if (one := _find(tx, id_)) is not None]


def _find(tx: ReadTx, id_: int) -> KeptAlert | None:
    row = tx.conn.execute(select(alerts).where(alerts.c.id == id_)).one_or_none()
    return None if row is None else _kept(row)


def _kept(row: Row[Any]) -> KeptAlert:
    return KeptAlert(
        id=row.id,
        alert=Alert(AlertKind(row.kind), row.subject, row.reason),
        raised_at_ms=row.raised_at_ms,
        acked_at_ms=row.acked_at_ms,
        acked_by=row.acked_by or "",
        closed_at_ms=row.closed_at_ms,
    )


def channels(tx: ReadTx) -> dict[str, Channel]:
    """Return how far each channel has come that was ever used, by its name."""
    rows = tx.conn.execute(select(alert_channels).order_by(alert_channels.c.name))
    return {
        row.name: Channel(
            row.name,
            row.told_id,
            row.full_at_ms,
            row.tried_at_ms,
            row.outcome,
            tuple(json.loads(row.named)),
        )
        for row in rows
    }


def record_channel(tx: WriteTx, now: Channel) -> None:
    """Keep how far a channel has come; that is no event, since nothing depends on it."""
    values = {
        "told_id": now.told_id,
        "full_at_ms": now.full_at_ms,
        "tried_at_ms": now.tried_at_ms,
        "outcome": now.outcome,
        "named": json.dumps(now.named),
    }
    same = alert_channels.c.name == now.name
    if tx.conn.execute(update(alert_channels).where(same).values(**values)).rowcount == 0:
        tx.conn.execute(insert(alert_channels).values(name=now.name, **values))
