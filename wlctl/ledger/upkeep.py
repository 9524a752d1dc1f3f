"""What the ledger lets go after a while, and when each node was last asked to."""

from dataclasses import dataclass

from sqlalchemy import case, delete, func, insert, select, update

from wlctl.ledger import chain
from wlctl.ledger.attempts import Outcome
from wlctl.ledger.schema import (
    attempts,
    collections,
    decisions,
    dedup,
    instances,
)
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.ids import NodeName
from wlctl.model.instance import State


@dataclass(frozen=True, slots=True)
class Pruned:
    """How much was let go.

    Attributes:
        documents: Of dry runs; the chain keeps the hash of each.
        keys: That were given with orders.
    """

    documents: int = 0
    keys: int = 0


def prune(tx: WriteTx, *, documents_before_ms: int, keys_before_ms: int) -> Pruned:
    """Let go what is older; where nothing is, write nothing.

    The key of an order whose attempt nobody knows the outcome of stays: it is what keeps that from
    being placed twice.

    Args:
        documents_before_ms: Of dry runs that were decided before this moment.
        keys_before_ms: Spent before this moment.
    """
    old = (
        decisions.c.dry_run,
        decisions.c.document.is_not(None),
        decisions.c.at_ms < documents_before_ms,
    )
    documents = tx.conn.execute(update(decisions).where(*old).values(document=None)).rowcount
    is_open = attempts.c.outcome.is_(None) | (
        (attempts.c.outcome == Outcome.INDETERMINATE.value) & attempts.c.settled.is_(None)
    )
    unsettled = select(attempts.c.decision_id).where(is_open)
    spent = dedup.c.spent_at_ms < keys_before_ms, dedup.c.decision_id.not_in(unsettled)
    keys = tx.conn.execute(delete(dedup).where(*spent)).rowcount
    if documents or keys:
        chain.append(tx, "ledger.prune", {"documents": documents, "keys": keys})
    return Pruned(documents, keys)


def is_prunable(tx: ReadTx, *, documents_before_ms: int, keys_before_ms: int) -> bool:
    """Answer, without the right to write, whether `prune` might let anything go."""
    document = select(decisions.c.id).where(
        decisions.c.dry_run,
        decisions.c.document.is_not(None),
        decisions.c.at_ms < documents_before_ms,
    )
    key = select(dedup.c.key).where(dedup.c.spent_at_ms < keys_before_ms)
    return any(tx.conn.execute(query.limit(1)).first() for query in (document, key))


def collected_at_ms(tx: ReadTx) -> dict[NodeName, int]:
    """Return when each node was last asked to collect."""
    rows = tx.conn.execute(select(collections))
    return {NodeName(row.node): row.at_ms for row in rows}


def record_collected(tx: WriteTx, node: NodeName) -> None:
    """Keep that a node was asked to collect, now; that is no event, since nothing depends on it."""
    same = collections.c.node == node
    if tx.conn.execute(update(collections).where(same).values(at_ms=tx.now_ms)).rowcount == 0:
        tx.conn.execute(insert(collections).values(node=node, at_ms=tx.now_ms))


@dataclass(frozen=True, slots=True)
class Use:
    """How a node has been used.

    Attributes:
        since_ms: When the first copy was placed there.
        left_at_ms: When something was last given up there, a copy that was unloaded or an attempt
            that came to nothing; None for never. Files of the store may be left of it that nothing
            runs.
    """

    since_ms: int
    left_at_ms: int | None


def uses(tx: ReadTx, until_ms: int) -> dict[NodeName, Use]:
    """Return how each node has been used, what was given up after `until_ms` not counted."""
    gone = (instances.c.state == State.UNLOADED.value) & (instances.c.since_ms <= until_ms)
    copies = select(
        instances.c.node,
        func.min(instances.c.created_at_ms).label("since_ms"),
        func.max(case((gone, instances.c.since_ms))).label("left_at_ms"),
    ).group_by(instances.c.node)
    tried = (
        select(attempts.c.node, func.max(attempts.c.ended_at_ms).label("left_at_ms"))
        .where(attempts.c.outcome != Outcome.PLACED.value, attempts.c.ended_at_ms <= until_ms)
        .group_by(attempts.c.node)
    )
    left = {row.node: row.left_at_ms for row in tx.conn.execute(tried)}
    found = {}
    for row in tx.conn.execute(copies):
        moments = [at for at in (row.left_at_ms, left.get(row.node)) if at is not None]
        found[NodeName(row.node)] = Use(row.since_ms, max(moments, default=None))
    return found
