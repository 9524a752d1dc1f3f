"""Every run of an instance: numbered before anything is sent, and proven ended, or not."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, case, delete, func, insert, select, update

from wlctl.ledger.schema import generations, instances
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.event import Json
from wlctl.model.generation import Containment, Disproven, Proof, Proven, Readings, Unproven
from wlctl.model.ids import InstanceId
from wlctl.model.instance import CLOSED

if TYPE_CHECKING:  # `ps` needs none of the actions, and would pay for them
    from wlctl.model.actions import Launched

ASKED_FOR = "current"
"""The role of a run that somebody asked for."""

RESTARTED = "restart"
"""The role of a run that a supervisor began by itself."""

PRUNED = "its node read it as gone before it began the next, and keeps no more of it"

PROVEN = "proven"
"""The word of the one judgement that releases what a run held."""

DISPROVEN = "disproven"
UNPROVEN = "unproven"


KEPT = 64
"""Of each instance so many runs are kept, and what is not proven gone.

A node keeps fewer, and the chain keeps what was read of each for ever.
"""


@dataclass(frozen=True, slots=True)
class Generation:
    """One run as the ledger has it.

    Attributes:
        launch: What the node said of it; None while no answer told.
        proof: `proven`, `disproven` or `unproven`; None before anything was asked.
        evidence: What was read, and what it was judged by.
    """

    number: int
    role: str
    intended_at_ms: int
    launch: Mapping[str, Any] | None
    proof: str | None
    evidence: Mapping[str, Any] | None
    proven_at_ms: int | None

    @property
    def is_gone(self) -> bool:
        """It is proven that no process of it is left and none can come."""
        return self.proof == PROVEN


_IS_NEWEST = (instances.c.id == generations.c.instance_id) & (
    instances.c.generation == generations.c.number
)
_IS_CURRENT = instances.c.state.not_in([state.value for state in sorted(CLOSED)])


def intend(tx: WriteTx, instance: InstanceId, number: int) -> None:
    """Give a run its number; one without a row here never started."""
    tx.conn.execute(
        insert(generations).values(
            instance_id=instance, number=number, role=ASKED_FOR, intended_at_ms=tx.now_ms
        )
    )
    _prune(tx, instance, number)


def found(tx: WriteTx, instance: InstanceId, number: int, began_at_ms: int) -> None:
    """Write down a run that a supervisor began, and of which nobody knew before."""
    tx.conn.execute(
        insert(generations).values(
            instance_id=instance, number=number, role=RESTARTED, intended_at_ms=began_at_ms
        )
    )
    _prune(tx, instance, number)


def read_as_gone(tx: WriteTx, instance: InstanceId, number: int) -> None:
    """Keep that a run's node has read it as gone, which it does before it begins the next."""
    told = {"judgement": PROVEN, "because": PRUNED, "generation": number}
    _set(tx, instance, number, proof=PROVEN, evidence=json.dumps(told), proven_at_ms=tx.now_ms)


def never_began(tx: WriteTx, instance: InstanceId, number: int, why: str) -> None:
    """Keep that a run was never launched: its node refused it whole, or nothing of it was sent."""
    told = {"judgement": PROVEN, "because": f"never launched: {why}", "generation": number}
    _set(tx, instance, number, proof=PROVEN, evidence=json.dumps(told), proven_at_ms=tx.now_ms)


def launched(tx: WriteTx, instance: InstanceId, answer: "Launched") -> None:
    """Keep what the node said of a run that it started."""
    _set(tx, instance, answer.generation, launch=json.dumps(asdict(answer)))


def judged(tx: WriteTx, instance: InstanceId, proof: Proof) -> None:
    """Keep the newest judgement of a run's end; what is proven once is never asked again."""
    columns: dict[str, object] = {
        "proof": word(proof),
        "evidence": json.dumps(evidence_json(proof)),
    }
    if isinstance(proof, Proven):
        columns["proven_at_ms"] = tx.now_ms
    _set(tx, instance, proof.evidence.generation, **columns)


def _prune(tx: WriteTx, instance: InstanceId, newest: int) -> None:
    """Let go what is proven gone, and so old that a job which runs every minute has many such."""
    old = (generations.c.instance_id == instance) & (generations.c.number <= newest - KEPT)
    tx.conn.execute(delete(generations).where(old, generations.c.proof == PROVEN))


def of_instance(tx: ReadTx, instance: InstanceId) -> list[Generation]:
    """Return the runs of an instance that are kept, oldest first."""
    query = select(generations).where(generations.c.instance_id == instance)
    return [_generation(row) for row in tx.conn.execute(query.order_by(generations.c.number))]


def ports(tx: ReadTx) -> dict[InstanceId, tuple[tuple[str, int], ...]]:
    """Return the ports of each instance whose newest run was given any: name and number."""
    query = (
        select(generations.c.instance_id, generations.c.launch)
        .join(instances, _IS_NEWEST)
        .where(generations.c.launch.is_not(None), generations.c.launch.not_like('%"ports": []%'))
    )
    rows = tx.conn.execute(query).all()
    launches = json.loads(f"[{','.join(row.launch for row in rows)}]")  # at once: much faster
    return {
        InstanceId(row.instance_id): tuple((name, int(number)) for name, number in launch["ports"])
        for row, launch in zip(rows, launches, strict=True)
    }


def containments(tx: ReadTx) -> dict[InstanceId, str]:
    """Return how the newest run of each instance was contained, where its node has said so."""
    said = case(
        *(
            (generations.c.launch.like(f'%"containment": "{one.value}"%'), one.value)
            for one in Containment
        ),
        else_="",
    )
    query = (
        select(generations.c.instance_id, said)
        .join(instances, _IS_NEWEST)
        .where(generations.c.launch.is_not(None))
    )
    return {InstanceId(instance): found for instance, found in tx.conn.execute(query)}


def restarts_since(tx: ReadTx, since_ms: int) -> dict[InstanceId, int]:
    """Count the runs that supervisors have begun since then, by instance."""
    query = (
        select(generations.c.instance_id, func.count())
        .where(generations.c.role == RESTARTED, generations.c.intended_at_ms > since_ms)
        .group_by(generations.c.instance_id)
    )
    return {InstanceId(instance): int(count) for instance, count in tx.conn.execute(query)}


def newest(tx: ReadTx) -> dict[InstanceId, Generation]:
    """Return the newest run of each current instance that has one."""
    query = select(generations).join(instances, _IS_NEWEST).where(_IS_CURRENT)
    return {InstanceId(row.instance_id): _generation(row) for row in tx.conn.execute(query)}


_BOOT_ID = re.compile(r'"boot_id": "([^"\\]*)"')
"""In a launch record; in a text that stands in it, a quote would have a backslash before it."""


def newest_boots(tx: ReadTx) -> dict[InstanceId, str | None]:
    """Return under which boot the newest run of each current instance was launched.

    None of a run of which nobody has told. No record is read whole: there are many.
    """
    query = (
        select(generations.c.instance_id, generations.c.launch)
        .join(instances, _IS_NEWEST)
        .where(_IS_CURRENT)
    )
    found = ((id_, _BOOT_ID.search(launch or "")) for id_, launch in tx.conn.execute(query))
    return {InstanceId(id_): told[1] if told else None for id_, told in found}


def _generation(row: Row[Any]) -> Generation:
    return Generation(
        number=row.number,
        role=row.role,
        intended_at_ms=row.intended_at_ms,
        launch=None if row.launch is None else json.loads(row.launch),
        proof=row.proof,
        evidence=None if row.evidence is None else json.loads(row.evidence),
        proven_at_ms=row.proven_at_ms,
    )


def word(proof: Proof) -> str:
    """Say a judgement in one word."""
    match proof:
        case Proven():
            return PROVEN
        case Disproven():
            return DISPROVEN
        case Unproven():
            return UNPROVEN


def evidence_json(proof: Proof) -> dict[str, Json]:
    """Write down what was read and how it was judged."""
    said = proof.by if isinstance(proof, Proven) else proof.why
    return {"judgement": word(proof), "because": said, **readings_json(proof.evidence)}


def readings_json(readings: Readings) -> dict[str, Json]:
    """Write readings as JSON, in the names of their fields."""
    return dict(asdict(readings))


def _set(tx: WriteTx, instance: InstanceId, number: int, **columns: object) -> None:
    same = (generations.c.instance_id == instance) & (generations.c.number == number)
    tx.conn.execute(update(generations).where(same).values(**columns))
