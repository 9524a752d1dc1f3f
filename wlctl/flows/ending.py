"""Stop and unload: record the wish, act, and believe nothing but the proof.

What a copy holds is released only when every run of it is proven ended. Anything less leaves it in
`stopping`, holding what it holds, and says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from wlctl.errors import (
    ForeignNode,
    Indeterminate,
    Interrupted,
    UnknownName,
    Unreachable,
    WlctlError,
)
from wlctl.flows import gate
from wlctl.flows.nodes import check_identity, check_placed_there
from wlctl.flows.runtime import Runtime
from wlctl.ledger import attempts, chain, generations, instances, nodes, operations
from wlctl.ledger.attempts import Outcome
from wlctl.ledger.operations import Operation, Turn
from wlctl.ledger.store import WriteTx
from wlctl.lifecycle.machine import IllegalTransition, step, walk
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import Refused, Stopped, StopRequest, Unloaded, UnloadRequest
from wlctl.model.event import Json
from wlctl.model.generation import Proof, Proven
from wlctl.model.ids import InstanceId
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Node
from wlctl.model.policy import Action


class Verb(StrEnum):
    """How a copy is ended."""

    STOP = "stop"
    UNLOAD = "unload"


class End(StrEnum):
    """How far it got."""

    DONE = "done"
    """Every run is proven ended, and what was held is released."""
    ALREADY = "already"
    """It was done before; nothing was asked of the node."""
    UNPROVEN = "unproven"
    """Something may still run; everything is still held."""
    UNREACHABLE = "unreachable"
    """Nothing was done on the node; the wish is recorded."""
    INDETERMINATE = "indeterminate"
    """It was sent and no whole answer came; everything is still held."""
    REFUSED = "refused"
    """The node said no."""
    DENIED = "denied"
    """A deny of the policy names the verb; nothing was done."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What `stop` or `unload` did.

    Attributes:
        proofs: One for each run of the copy, oldest first.
        code: Of a failure or refusal; empty when it is done.
        detail: In words; text from outside.
        kept_data: Where its data still lies on the node; empty when there is none.
    """

    verb: Verb
    end: End
    instance: Instance
    proofs: tuple[Proof, ...] = ()
    code: str = ""
    detail: str = ""
    kept_data: str = ""


def stop(rt: Runtime, word: str, *, grace_ms: int | None = None) -> Ending:
    """End every run of the copy that `word` means, and keep the copy.

    Args:
        grace_ms: Between the stop signal and the kill; None takes the package's.

    Raises:
        UnknownName, AmbiguousName: `word` means none, or more than one.
        Busy: Another operation on it did not end in time.
    """
    return _end(rt, Verb.STOP, word, grace_ms=grace_ms, purge=False)


def unload(rt: Runtime, word: str, *, grace_ms: int | None = None, purge: bool = False) -> Ending:
    """End every run of the copy that `word` means, and remove it; its name is free then.

    Unloading what is gone already succeeds and says so.

    Args:
        purge: Remove the data it was to keep, too.

    Raises:
        UnknownName, AmbiguousName: `word` never meant any, or means more than one.
        Busy: Another operation on it did not end in time.
    """
    return _end(rt, Verb.UNLOAD, word, grace_ms=grace_ms, purge=purge)


def _end(rt: Runtime, verb: Verb, word: str, *, grace_ms: int | None, purge: bool) -> Ending:
    instance = _find(rt, verb, word)
    if instance.state is State.UNLOADED:
        return Ending(verb, End.ALREADY, instance)
    with operations.turn(rt.ledger, instance.id, timeout_s=rt.settings.busy_timeout_s) as turn:
        intent = _intend(rt, verb, turn)
        if isinstance(intent, Ending):
            return intent
        instance, node, operation = intent
        try:
            answer = _ask(rt, verb, instance, node, operation, grace_ms=grace_ms, purge=purge)
        except Indeterminate as failure:
            end = End.INDETERMINATE
            return _not_done(rt, verb, operation, instance, end=end, failure=failure)
        except (Unreachable, ForeignNode) as failure:
            end = End.UNREACHABLE
            return _not_done(rt, verb, operation, instance, end=end, failure=failure)
        except KeyboardInterrupt:
            stopped = Interrupted(
                f"interrupted: {instance.name} on {node.name} keeps what it holds",
                hint=f"`wlctl {verb.value} {instance.name}` again",
            )
            _not_done(rt, verb, operation, instance, end=End.INDETERMINATE, failure=stopped)
            raise stopped from None
        if isinstance(answer, Refused):
            return _refused(rt, verb, operation, instance, answer)
        return _judge(rt, verb, operation, instance, answer)


def _find(rt: Runtime, verb: Verb, word: str) -> Instance:
    """Look `word` up; unloading also finds the last copy of that name, which is gone already."""
    with rt.ledger.read() as tx:
        try:
            return instances.find(tx, word)
        except UnknownName:
            last = instances.last_of(tx, word) if verb is Verb.UNLOAD else None
            if last is None:
                raise
            return last


def _intend(rt: Runtime, verb: Verb, turn: Turn) -> tuple[Instance, Node, Operation] | Ending:
    """Record the wish before anything is sent; what a dead process left is taken over first."""
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        token = rt.new_token()
        _take_over(tx, turn, token)
        instance = instances.get(tx, InstanceId(turn.scope))
        if instance.state is State.UNLOADED or (
            verb is Verb.STOP and instance.state is State.STOPPED
        ):
            return Ending(verb, End.ALREADY, instance)
        node = nodes.get(tx, instance.node)
        denial = gate.verb(rt, tx, Action(verb.value), instance=instance, node=node)
        if denial is not None:
            return Ending(verb, End.DENIED, instance, code=denial.code, detail=denial.message)
        operation = operations.begin(tx, turn, verb.value, token=token)
        desired = Desired.STOPPED if verb is Verb.STOP else Desired.UNLOADED
        instances.change(tx, instance.id, desired=desired.value)
        payload: dict[str, Json] = {
            "phase": "request",
            "instance": instance.id,
            "name": instance.name,
            "node": instance.node,
            "operation": operation.number,
        }
        chain.append(tx, f"workload.{verb.value}", payload)
        if not isinstance(step(instance.state, State.STOPPING), IllegalTransition):
            instances.advance(tx, instance, (State.STOPPING,), f"{verb.value} asked for")
        return instances.get(tx, instance.id), node, operation


def _take_over(tx: WriteTx, turn: Turn, token: str) -> None:
    """Close what a dead process left open: nobody knows what became of what it had sent.

    The operation that follows has a higher number, so whatever of the old one is still under way
    is refused by the node from then on.
    """
    left = operations.take_over(tx, turn, token=token)
    if left is None:
        return
    instance = InstanceId(turn.scope)
    for attempt in attempts.of_instance(tx, instance):
        if attempt.outcome is None:
            lost = replace(attempt, outcome=Outcome.INDETERMINATE, code="abandoned")
            attempts.end(tx, lost)
            instances.change(tx, instance, unsettled=True)
    operations.close(tx, left, "abandoned")


def _ask(
    rt: Runtime,
    verb: Verb,
    instance: Instance,
    node: Node,
    operation: Operation,
    *,
    grace_ms: int | None,
    purge: bool,
) -> Stopped | Unloaded | Refused:
    check_placed_there(node, instance.created_at_ms)
    with rt.connect(node.address) as session:
        if verb is Verb.STOP:
            answer: Stopped | Unloaded | Refused = session.stop(
                StopRequest(
                    installation=rt.ledger.installation,
                    instance=instance.id,
                    number=operation.number,
                    generation=instance.generation,
                    grace_ms=grace_ms,
                )
            )
        else:
            answer = session.unload(
                UnloadRequest(
                    installation=rt.ledger.installation,
                    instance=instance.id,
                    number=operation.number,
                    generation=instance.generation,
                    grace_ms=grace_ms,
                    purge=purge,
                )
            )
    if not isinstance(answer, Refused):
        check_identity(node, answer.node_id)
    return answer


def _not_done(
    rt: Runtime,
    verb: Verb,
    operation: Operation,
    instance: Instance,
    *,
    end: End,
    failure: WlctlError,
) -> Ending:
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, operation)
        if end is End.UNREACHABLE:
            nodes.record_silence(tx, instance.node, failure.code)
        _chain_outcome(tx, verb, instance, end, code=failure.code)
        operations.close(tx, operation, end.value)
        now = instances.get(tx, instance.id)
    return Ending(verb, end, now, code=failure.code, detail=failure.message)


def _refused(
    rt: Runtime, verb: Verb, operation: Operation, instance: Instance, answer: Refused
) -> Ending:
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, operation)
        _chain_outcome(tx, verb, instance, End.REFUSED, code=answer.code.value)
        operations.close(tx, operation, End.REFUSED.value)
        now = instances.get(tx, instance.id)
    return Ending(verb, End.REFUSED, now, code=answer.code.value, detail=answer.detail)


def _judge(
    rt: Runtime, verb: Verb, operation: Operation, instance: Instance, answer: Stopped | Unloaded
) -> Ending:
    """Judge every run by what was read of it; release what is held only when all are proven."""
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, operation)
        proofs = tuple(judge(readings) for readings in answer.readings)
        for proof in proofs:
            generations.judged(tx, instance.id, proof)
        why = _open_question(tx, instance, proofs)
        end = End.UNPROVEN if why else End.DONE
        if end is End.DONE:
            _record_done(tx, verb, instance, proofs)
        evidence = [generations.evidence_json(proof) for proof in proofs]
        _chain_outcome(tx, verb, instance, end, evidence=evidence)
        operations.close(tx, operation, end.value)
        now = instances.get(tx, instance.id)
    kept = answer.kept_data if isinstance(answer, Unloaded) else ""
    return Ending(verb, end, now, proofs, detail=why, kept_data=kept)


def _open_question(tx: WriteTx, instance: Instance, proofs: Sequence[Proof]) -> str:
    """Say why the copy is not proven gone; empty when it is.

    A run that got a number and of which the node read nothing is not proven: silence is no proof.
    """
    for proof in proofs:
        if not isinstance(proof, Proven):
            return f"g{proof.evidence.generation}: {proof.why}"
    for run in generations.of_instance(tx, instance.id):
        if run.proof != "proven":
            return f"g{run.number}: the node read nothing of it"
    return ""


def _record_done(tx: WriteTx, verb: Verb, instance: Instance, proofs: Sequence[Proof]) -> None:
    ran = any(proof.evidence.launched for proof in proofs)
    way = _way(verb, instance.state, ran=ran)
    instances.advance(tx, instance, way, "proven: no process of it is left")
    instances.release(tx, instance.id)
    instances.change(tx, instance.id, unsettled=False, seen_at_ms=tx.now_ms)


def _way(verb: Verb, state: State, *, ran: bool) -> tuple[State, ...]:
    """Choose the steps that say what is true: what never ran has failed, it was not stopped."""
    if not ran and state in _BEFORE_A_RUN:
        start: tuple[State, ...] = (State.FAILED,)
        return start if verb is Verb.STOP else (*start, State.UNLOADED)
    if verb is Verb.STOP and state in _ENDED:
        return ()
    way = walk(state, State.STOPPED if verb is Verb.STOP else State.UNLOADED)
    assert not isinstance(way, IllegalTransition), way
    return way


_BEFORE_A_RUN = frozenset({State.PLACED, State.FETCHING, State.VERIFIED})
_ENDED = frozenset({State.LOADED, State.FAILED, State.FINISHED, State.STOPPED})
"""A stop leaves these as they are: there is nothing to stop, and that is proven."""


def _chain_outcome(
    tx: WriteTx,
    verb: Verb,
    instance: Instance,
    end: End,
    *,
    code: str = "",
    evidence: Sequence[Mapping[str, Json]] = (),
) -> None:
    payload: dict[str, Json] = {
        "phase": "outcome",
        "instance": instance.id,
        "name": instance.name,
        "node": instance.node,
        "outcome": end.value,
    }
    if code:
        payload["code"] = code
    if evidence:
        payload["evidence"] = list(evidence)
    chain.append(tx, f"workload.{verb.value}", payload)
