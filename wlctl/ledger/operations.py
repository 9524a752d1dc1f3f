"""Whose turn it is: one operation at a time on a scope, and none by who was overtaken.

While an operation lives, its process holds the kernel lock of its scope; the row says to people who
that is, and decides nothing. A free lock over an open operation means that its process is gone: who
gets the lock takes the operation over and gives it a new token before anything else. Every later
transaction compares the token, so a process that was paused and overtaken can write nothing.
"""

import os
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, Row, func, insert, select, update

from wlctl.errors import Busy, Overtaken
from wlctl.ledger import chain
from wlctl.ledger.schema import operations as table
from wlctl.ledger.store import Ledger, ReadTx, WriteTx
from wlctl.model.event import Author, rfc3339

BUSY_TIMEOUT_S = 30.0
"""How long an operation waits for the one before it, unless told otherwise."""

POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Turn:
    """The kernel lock of `scope`, held by this process as long as `turn` says."""

    scope: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One intent's life.

    Attributes:
        scope: An instance's id, or the name of something only one may do at a time.
        number: Grows with each operation of the scope; sent with every mutation to fence the node.
        token: Of its present holder.
        phase: How far it got, in the verb's own words.
    """

    scope: str
    number: int
    verb: str
    token: str
    phase: str
    started_at_ms: int


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has an operation, for people to read.

    Attributes:
        author: Its actor is the login and host.
        since_ms: When it was begun or taken over.
    """

    operation: Operation
    author: Author
    pid: int
    since_ms: int


@contextmanager
def turn(ledger: Ledger, scope: str, *, timeout_s: float = BUSY_TIMEOUT_S) -> Iterator[Turn]:
    """Wait for the turn of `scope`, and keep it to the end of the block.

    Never wait for one inside a transaction: its holder may need the ledger to finish.

    Raises:
        Busy: Another process, which is named, had it for all of `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while not ledger.locks.try_lock(scope):
        if time.monotonic() >= deadline:
            raise _busy(ledger, scope, timeout_s)
        time.sleep(POLL_S)
    try:
        yield Turn(scope)
    finally:
        ledger.locks.unlock(scope)


def take_over(tx: WriteTx, mine: Turn, *, token: str) -> Operation | None:
    """Take over what a dead process left open in this scope; None when nothing is.

    From then on `token` is its token: settle every attempt without an outcome, then close it.
    """
    holder = holder_of(tx, mine.scope)
    if holder is None:
        return None
    taken = replace(holder.operation, token=token)
    tx.conn.execute(update(table).where(*_is(taken)).values(token=token, **_holding(tx)))
    chain.append(
        tx,
        "ledger.takeover",
        {
            "scope": taken.scope,
            "operation": taken.number,
            "verb": taken.verb,
            "phase": taken.phase,
            "from": holder.author.actor,
            "since_ms": holder.since_ms,
        },
    )
    return taken


def begin(tx: WriteTx, mine: Turn, verb: str, *, token: str, phase: str = "intent") -> Operation:
    """Record the intent of `verb` on the scope of `mine`, with the next number.

    What a dead process left open there has been taken over and closed before.
    """
    assert holder_of(tx, mine.scope) is None, "take over what is open, and close it, first"
    number = newest(tx, mine.scope) + 1
    tx.conn.execute(
        insert(table).values(
            scope=mine.scope,
            number=number,
            verb=verb,
            token=token,
            phase=phase,
            started_at_ms=tx.now_ms,
            **_holding(tx),
        )
    )
    return Operation(mine.scope, number, verb, token, phase, tx.now_ms)


def newest(tx: ReadTx, scope: str) -> int:
    """Return the number of the newest operation of a scope; 0 before the first."""
    query = select(func.coalesce(func.max(table.c.number), 0)).where(table.c.scope == scope)
    return int(tx.conn.execute(query).scalar_one())


def skip_to(tx: WriteTx, scope: str, number: int, verb: str) -> bool:
    """Let the next operation have a higher number than one that a lost ledger began; False if so.

    Args:
        number: The highest that the node has accepted.
    """
    if newest(tx, scope) >= number:
        return False
    tx.conn.execute(
        insert(table).values(
            scope=scope,
            number=number,
            verb=verb,
            token="",
            phase=verb,
            started_at_ms=tx.now_ms,
            closed_at_ms=tx.now_ms,
            outcome=verb,
            **_holding(tx),
        )
    )
    return True


def check(tx: ReadTx, operation: Operation) -> None:
    """Make sure that `operation` is still ours; the first thing in each of its transactions.

    Raises:
        Overtaken: Another process has taken it over, or has finished it.
    """
    query = select(table.c.token).where(*_is(operation), table.c.closed_at_ms.is_(None))
    if tx.conn.execute(query).scalar_one_or_none() != operation.token:
        raise Overtaken(
            f"another process has taken over the {operation.verb} of {operation.scope}",
            hint="it settles what was begun; see the history of what you changed",
        )


def advance(tx: WriteTx, operation: Operation, phase: str) -> Operation:
    """Record how far the operation got.

    Raises:
        Overtaken: See `check`.
    """
    check(tx, operation)
    tx.conn.execute(update(table).where(*_is(operation)).values(phase=phase))
    return replace(operation, phase=phase)


def close(tx: WriteTx, operation: Operation, outcome: str) -> None:
    """Record the end of the operation.

    Raises:
        Overtaken: See `check`.
    """
    check(tx, operation)
    done = update(table).where(*_is(operation)).values(closed_at_ms=tx.now_ms, outcome=outcome)
    tx.conn.execute(done)


def holder_of(tx: ReadTx, scope: str) -> Holder | None:
    """Return who has the open operation of `scope`, dead or alive."""
    row = tx.conn.execute(_OPEN.where(table.c.scope == scope)).one_or_none()
    return None if row is None else _holder(row)


def was_begun(tx: ReadTx, scope: str, verbs: Collection[str]) -> bool:
    """Answer whether an operation of one of these verbs was ever begun in this scope."""
    query = select(table.c.number).where(table.c.scope == scope, table.c.verb.in_(verbs)).limit(1)
    return tx.conn.execute(query).first() is not None


def holders(tx: ReadTx) -> tuple[Holder, ...]:
    """Return who has every open operation, dead or alive, by scope."""
    return tuple(_holder(row) for row in tx.conn.execute(_OPEN.order_by(table.c.scope)))


_OPEN = select(table).where(table.c.closed_at_ms.is_(None))


def _is(operation: Operation) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return table.c.scope == operation.scope, table.c.number == operation.number


def _holding(tx: WriteTx) -> dict[str, object]:
    return {
        "holder_actor": tx.author.actor,
        "holder_command": tx.author.command,
        "holder_pid": os.getpid(),
        "held_since_ms": tx.now_ms,
    }


def _holder(row: Row[tuple[object, ...]]) -> Holder:
    return Holder(
        operation=Operation(
            row.scope, row.number, row.verb, row.token, row.phase, row.started_at_ms
        ),
        author=Author(row.holder_actor, row.holder_command),
        pid=row.holder_pid,
        since_ms=row.held_since_ms,
    )


def _busy(ledger: Ledger, scope: str, timeout_s: float) -> Busy:
    with ledger.read() as tx:
        holder = holder_of(tx, scope)
    if holder is None:
        return Busy(f"another wlctl is at work on {scope}", hint="try again in a moment")
    what = holder.author.command or holder.operation.verb
    return Busy(
        f"{holder.author.actor} is at work on {scope} since {rfc3339(holder.since_ms)}: "
        f"`{what}` (process {holder.pid}); waited {timeout_s:g} s",
        hint="wait for it, or for longer with WLCTL_BUSY_TIMEOUT_S",
    )
