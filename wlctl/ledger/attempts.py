"""Each candidate tried: written down before its first byte is sent, and what came of it."""

from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import insert, select, update

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
        outcome: None while it is under way, or was when its process died.
        code: Of the refusal or the failure; empty where it was placed.
        detail: Text from outside.
    """

    decision: DecisionId
    number: int
    instance: InstanceId
    node: NodeName
    outcome: Outcome | None
    code: str = ""
    detail: str = ""


def begin(tx: WriteTx, attempt: Attempt) -> None:
    """Write down that `attempt` is about to be made."""
    tx.conn.execute(
        insert(attempts).values(
            decision_id=attempt.decision,
            number=attempt.number,
            instance_id=attempt.instance,
            node=attempt.node,
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


def of_instance(tx: ReadTx, instance: InstanceId) -> list[Attempt]:
    """Return the attempts that were made for an instance, in their order."""
    query = select(attempts).where(attempts.c.instance_id == instance).order_by(attempts.c.number)
    return [
        Attempt(
            decision=DecisionId(row.decision_id),
            number=row.number,
            instance=instance,
            node=NodeName(row.node),
            outcome=None if row.outcome is None else Outcome(row.outcome),
            code=row.code or "",
            detail=row.detail or "",
        )
        for row in tx.conn.execute(query)
    ]
