"""What nodes were left to witness, whether the ledger is doubted, and when it is so no longer."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import delete, insert, select, update

from wlctl.ledger import chain
from wlctl.ledger.schema import chain as events
from wlctl.ledger.schema import installation, witnesses
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.event import Event, Json
from wlctl.model.node import Node
from wlctl.model.upkeep import ChainPoint
from wlctl.model.witness import Doubt, Ours

DOUBT = "ledger.doubt"
RESTORED = "ledger.restored"


@dataclass(frozen=True, slots=True)
class Left:
    """What a node was left last, or was found to keep by a rebuild.

    Attributes:
        fleet_sha256: Of the members of the fleet that it was left, at whichever time.
    """

    epoch: int
    seq: int
    fleet_sha256: str
    left_at_ms: int


def doubt_of(tx: ReadTx) -> Doubt | None:
    """Answer why nothing but endings is done with the ledger; None where there is no reason."""
    word = tx.conn.execute(select(installation.c.doubt)).scalar_one()
    return None if word is None else Doubt(word)


def doubt(tx: WriteTx, why: Doubt, told: Mapping[str, Json]) -> Event | None:
    """Doubt the ledger from now on; None where it is doubted already.

    Args:
        told: What was seen, for the chain.
    """
    if doubt_of(tx) is not None:
        return None
    tx.conn.execute(update(installation).values(doubt=why.value))
    name = name_of(tx)
    return chain.append(tx, DOUBT, {**told, "installation": name, "doubt": why.value})


def restored(tx: WriteTx, epoch: int, told: Mapping[str, Json]) -> Event:
    """Begin another epoch, in which the ledger is believed again.

    Args:
        told: What it was made of, for the chain.
    """
    tx.conn.execute(update(installation).values(doubt=None, epoch=epoch))
    name = name_of(tx)
    return chain.append(tx, RESTORED, {**told, "installation": name, "epoch": epoch})


def name_of(tx: ReadTx) -> str:
    """Return the identity that nodes know the ledger by."""
    return str(tx.conn.execute(select(installation.c.id)).scalar_one())


def epoch_of(tx: ReadTx) -> int:
    """Return how often the ledger was restored."""
    return int(tx.conn.execute(select(installation.c.epoch)).scalar_one())


def head(tx: ReadTx) -> ChainPoint:
    """Return the newest event, by its place."""
    seq, digest = chain.head(tx)
    return ChainPoint(epoch_of(tx), seq, digest)


def ours(tx: ReadTx, node: Node, theirs: ChainPoint) -> Ours:
    """Gather what the ledger has in the place of a checkpoint that a node keeps."""
    newest = head(tx)
    there = select(events.c.hash).where(events.c.seq == theirs.seq)
    found = tx.conn.execute(there).scalar_one_or_none()
    before = left_with(tx, node) if theirs.epoch < newest.epoch else None
    return Ours(newest, found or "", None if before is None else (before.epoch, before.seq))


def left_with(tx: ReadTx, node: Node) -> Left | None:
    """Return what this very machine was left last; None for never."""
    same = witnesses.c.node == node.name, witnesses.c.node_id == node.node_id
    row = tx.conn.execute(select(witnesses).where(*same)).one_or_none()
    return None if row is None else Left(row.epoch, row.seq, row.fleet_sha256, row.left_at_ms)


def left(tx: WriteTx, node: Node, point: ChainPoint, fleet_sha256: str) -> None:
    """Keep what a node was left just now, or was found to keep."""
    tx.conn.execute(delete(witnesses).where(witnesses.c.node == node.name))
    tx.conn.execute(
        insert(witnesses).values(
            node=node.name,
            node_id=node.node_id,
            epoch=point.epoch,
            seq=point.seq,
            fleet_sha256=fleet_sha256,
            left_at_ms=tx.now_ms,
        )
    )
