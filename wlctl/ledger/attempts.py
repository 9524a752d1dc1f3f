"""Each candidate tried: written down before its first byte is sent, and what came of it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Row, func, insert, select, update

from wlctl.ledger.schema import attempts
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.ids import DecisionId, InstanceId, NodeName


class Outcome(StrEnum):
    """What came of trying a candidate."""

    PLACED = "placed"
    """It runs there, or is staged there, as asked."""
    REFUSED = "refused"
    """The node said no, and holds nothing of it."""
    UNREACHABLE = "unreachable"
    """Nothing was done on the node."""
    GATE_DENIED = "gate_denied"
    """The policy denies it emulated; nothing was done on the node."""
    INDETERMINATE = "indeterminate"
    """It may or may not be there: no whole answer came."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One candidate tried for one decision.

    Attributes:
        number: From 1.
        claim: What the node knows it by: it does what has a claim once.
        outcome: None while it is under way, or was when its process died.
        code: Of the refusal or the failure; empty where it was placed.
        detail: Text from outside.
        settled: Of one whose answer was lost: `placed`, `cancelled` or `refused`, as the node said
            later; empty before that.
    """

    decision: DecisionId
    number: int
    instance: InstanceId
    node: NodeName
    claim: DecisionId
    outcome: Outcome | None
    code: str = ""
    detail: str = ""
    settled: str = ""

    @property
    def is_there(self) -> bool:
        """What was asked for is on the node, or was when this was written."""
        return self.outcome is Outcome.PLACED or self.settled == "placed"

    @property
    def is_open(self) -> bool:
        """Nobody knows what became of it."""
        return self.outcome in (None, Outcome.INDETERMINATE) and not self.settled


def next_number(tx: ReadTx, decision: DecisionId) -> int:
    """Count the attempts of a decision, for all its copies; give the next one its number."""
    same = attempts.c.decision_id == decision
    newest = select(func.coalesce(func.max(attempts.c.number), 0)).where(same)
    return int(tx.conn.execute(newest).scalar_one()) + 1


def begin(tx: WriteTx, attempt: Attempt) -> None:
    """Write down that `attempt` is about to be made."""
    tx.conn.execute(
        insert(attempts).values(
            decision_id=attempt.decision,
            number=attempt.number,
            instance_id=attempt.instance,
            node=attempt.node,
            claim=attempt.claim,
            started_at_ms=tx.now_ms,
        )
    )


def end(tx: WriteTx, attempt: Attempt) -> None:
    """Write down the outcome of `attempt`."""
    assert attempt.outcome is not None, "an attempt ends with an outcome"
    tx.conn.execute(
        update(attempts)
        .where(attempts.c.decision_id == attempt.decision, attempts.c.number == attempt.number)
        .values(
            outcome=attempt.outcome.value,
            code=attempt.code,
            detail=attempt.detail,
            ended_at_ms=tx.now_ms,
        )
    )


def settle(tx: WriteTx, attempt: Attempt, settled: str) -> None:
    """Write down what a node said of one whose answer was lost."""
    same = (attempts.c.decision_id == attempt.decision) & (attempts.c.number == attempt.number)
    tx.conn.execute(update(attempts).where(same).values(settled=settled))


def of_decision(tx: ReadTx, decision: DecisionId) -> list[Attempt]:
    """Return the attempts that were made for a decision, in their order."""
    query = select(attempts).where(attempts.c.decision_id == decision)
    return [_attempt(row) for row in tx.conn.execute(query.order_by(attempts.c.number))]


def of_instance(tx: ReadTx, instance: InstanceId) -> list[Attempt]:
    """Return the attempts that were made for an instance, in their order."""
    query = select(attempts).where(attempts.c.instance_id == instance).order_by(attempts.c.number)
    return [_attempt(row) for row in tx.conn.execute(query)]


def _attempt(row: Row[Any]) -> Attempt:
    return Attempt(
        decision=DecisionId(row.decision_id),
        number=row.number,
        instance=InstanceId(row.instance_id),
        node=NodeName(row.node),
        claim=DecisionId(row.claim),
        outcome=None if row.outcome is None else Outcome(row.outcome),
        code=row.code or "",
        detail=row.detail or "",
        settled=row.settled or "",
    )
