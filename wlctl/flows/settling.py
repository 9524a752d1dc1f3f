"""Find out what became of a placement whose answer was lost, and that no more comes of it.

To settle is an operation with a number of its own, higher than the placement's: what was delayed on
its way to the node can do nothing from then on. What was carried out is taken as it is; what was
not is called off on the node for ever; and until one of the two is known, everything is held.
"""

from dataclasses import dataclass, replace

from wlctl.errors import ForeignNode, Indeterminate, Unreachable
from wlctl.flows.intents import REQUEST_VALID_MS, check_ours, walk_to
from wlctl.flows.nodes import check_identity, check_placed_there
from wlctl.flows.runtime import Runtime
from wlctl.ledger import attempts, chain, generations, instances, nodes, operations
from wlctl.ledger.attempts import Attempt, Outcome
from wlctl.ledger.operations import Operation, Turn
from wlctl.ledger.store import WriteTx
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import (
    Launched,
    Placed,
    PlaceRequest,
    Refused,
    Settled,
    SettleOutcome,
    SettleRequest,
)
from wlctl.model.event import Json
from wlctl.model.generation import Proven, Readings
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Node

TRIES = 3
"""Connections that may be lost on the way before it is left to the next command."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A placement of which nobody knows what came.

    Attributes:
        placed_at_ms: When it was sent.
        again: The request as it was sent, with its number: asked again, the node says what it did.
    """

    attempt: Attempt
    node: Node
    placed_at_ms: int
    again: PlaceRequest


@dataclass(frozen=True, slots=True)
class Settlement:
    """What is known now.

    Attributes:
        attempt: Settled, or not: then `is_open`, and its code and detail say why.
        answer: What the node had done, where it had.
    """

    attempt: Attempt
    instance: Instance
    answer: Placed | Launched | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the node said, or why it said nothing.

    Attributes:
        silent: It could not be reached, or another machine answered.
    """

    said: Settled | None = None
    answer: Placed | Launched | None = None
    code: str = ""
    detail: str = ""
    silent: bool = False


def settle(rt: Runtime, lost: Lost, turn: Turn) -> Settlement:
    """Ask the node of an attempt whose operation is closed, and write down what is known then.

    Args:
        turn: Of its instance; nothing of the scope is open.

    Raises:
        Overtaken: Another process took this over meanwhile.
    """
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operation = operations.begin(tx, turn, "settle", token=rt.new_token())
    asked = _ask(rt, lost, operation)
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, operation)
        attempt, answer = _record(tx, lost, asked)
        operations.close(tx, operation, attempt.settled or "unsettled")
        return Settlement(attempt, instances.get(tx, attempt.instance), answer)


def _ask(rt: Runtime, lost: Lost, operation: Operation) -> _Asked:
    asked = _Asked()
    for _ in range(TRIES):
        asked = _ask_once(rt, lost, operation)
        working = asked.said is not None and asked.said.outcome is SettleOutcome.WORKING
        if not working and not asked.code:
            return asked
    return asked


def _ask_once(rt: Runtime, lost: Lost, operation: Operation) -> _Asked:
    try:
        return _talk(rt, lost, operation)
    except Indeterminate as failure:
        return _Asked(code=failure.code, detail=failure.message)
    except (Unreachable, ForeignNode) as failure:
        return _Asked(code=failure.code, detail=failure.message, silent=True)


def _talk(rt: Runtime, lost: Lost, operation: Operation) -> _Asked:
    request = SettleRequest(
        installation=lost.again.installation,
        instance=lost.again.instance,
        decision=lost.again.decision,
        number=operation.number,
        generation=lost.again.generation,
    )
    check_placed_there(lost.node, lost.placed_at_ms)
    with rt.connect(lost.node.address) as session:
        check_ours(rt, operation)
        said = session.settle(request)
        if isinstance(said, Refused):
            return _Asked(code=said.code.value, detail=said.detail)
        check_identity(lost.node, said.node_id)
        if said.outcome is not SettleOutcome.PLACED:
            return _Asked(said)
        check_ours(rt, operation)
        answer = session.place(lost.again)
    if isinstance(answer, Refused):
        return _Asked(code=answer.code.value, detail=answer.detail)
    return _Asked(said, answer)


def _record(tx: WriteTx, lost: Lost, asked: _Asked) -> tuple[Attempt, Placed | Launched | None]:
    attempt = lost.attempt
    instance = instances.get(tx, attempt.instance)
    settled, why = _judge(tx, lost.node, instance, asked)
    if not settled:
        if asked.code:
            attempt = replace(attempt, detail=f"{attempt.detail}; asked again: {asked.detail}")
        if asked.silent and not lost.node.was_another_at(lost.placed_at_ms):
            nodes.record_silence(tx, lost.node.name, asked.code)
        _chain(tx, attempt, "unsettled", why)
        return attempt, None
    attempt = replace(attempt, settled=settled)
    attempts.settle(tx, attempt, settled)
    if settled == SettleOutcome.PLACED.value:
        record_placed(tx, instance, asked.answer)
        chain_outcome(tx, attempt, asked.answer)
        return attempt, asked.answer
    record_nothing(tx, instance, f"settled: {settled}")
    if asked.said is not None and asked.said.refused is not None:
        refused = asked.said.refused
        attempt = replace(attempt, code=refused.code.value, detail=refused.detail)
    _chain(tx, attempt, settled, why)
    return attempt, None


def _judge(tx: WriteTx, node: Node, instance: Instance, asked: _Asked) -> tuple[str, str]:
    """Say how it is settled, or nothing and why not: what ran is gone only by the one proof."""
    if asked.said is None:
        return "", asked.code
    outcome = asked.said.outcome
    if outcome in (SettleOutcome.WORKING, SettleOutcome.UNPROVEN):
        return "", outcome.value
    for readings in asked.said.readings:
        proof = judge(
            readings,
            boot_began_at_ms=tx.now_ms - readings.read_at_ms,
            last_reading_at_ms=last_reading_ms(node, instance, readings),
        )
        generations.judged(tx, instance.id, proof)
        if not isinstance(proof, Proven):
            return "", proof.why
    return outcome.value, ""


def last_reading_ms(node: Node, instance: Instance, readings: Readings) -> int | None:
    """Say when the boot that a run was launched in was last seen, by this side's clock.

    While the node was not seen under another boot since, that is its last contact. A contact under
    another boot was believed only because that boot began later (`two-machines` otherwise), so
    then the last word of the copy itself is enough; of one whose answer was lost, that is the last
    moment at which its node would still have begun with it.
    """
    if node.boot_id == readings.recorded_boot_id:
        return node.seen_at_ms
    return instance.seen_at_ms or instance.created_at_ms + REQUEST_VALID_MS


def record_placed(tx: WriteTx, instance: Instance, answer: Placed | Launched | None) -> None:
    """Write down that the copy is on its node, and runs where that was asked for."""
    reached = (State.FETCHING, State.VERIFIED, State.LOADED)
    instances.advance(tx, instance, reached, "staged on the node")
    if isinstance(answer, Launched):
        generations.launched(tx, instance.id, answer)
        walk_to(tx, instances.get(tx, instance.id), State.RUNNING, f"g{answer.generation} launched")
    instances.change(tx, instance.id, seen_at_ms=tx.now_ms, unsettled=False)


def record_nothing(tx: WriteTx, instance: Instance, reason: str) -> None:
    """Write down that nothing of the copy is on its node, nor will be: all it held is free."""
    walk_to(tx, instance, State.FAILED, reason)
    walk_to(tx, instances.get(tx, instance.id), State.UNLOADED, "nothing was left")
    instances.change(tx, instance.id, desired=Desired.UNLOADED.value, unsettled=False)
    instances.release(tx, instance.id)


def chain_outcome(tx: WriteTx, attempt: Attempt, answer: Placed | Launched | None) -> None:
    """Append what came of an attempt."""
    payload: dict[str, Json] = _told(attempt)
    if attempt.is_there:
        payload["phase"] = "adopted" if attempt.settled else "placed"
    else:
        payload |= {"kind": "dispatch", "code": attempt.code}
    if isinstance(answer, Launched):
        payload |= {
            "generation": answer.generation,
            "containment": answer.containment.value,
            "cgroup_inode": answer.cgroup_inode,
            "boot_id": answer.boot_id,
            "unenforced": list(answer.unenforced),
        }
    chain.append(tx, "workload.place" if attempt.is_there else "workload.refuse", payload)


def _chain(tx: WriteTx, attempt: Attempt, settled: str, why: str) -> None:
    payload: dict[str, Json] = {**_told(attempt), "kind": "settle", "settled": settled}
    if why:
        payload["code"] = why
    chain.append(tx, "workload.refuse", payload)


def _told(attempt: Attempt) -> dict[str, Json]:
    outcome: Outcome | None = attempt.outcome
    return {
        "decision": attempt.decision,
        "attempt": attempt.number,
        "instance": attempt.instance,
        "node": attempt.node,
        "outcome": outcome.value if outcome else "",
    }
