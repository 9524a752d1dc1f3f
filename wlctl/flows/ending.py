"""Stop and unload: record the wish, act, and believe nothing but the proof.

What a copy holds is released only when every run of it is proven ended. Anything less leaves it in
`stopping`, holding what it holds, and says so.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from wlctl.errors import (
    ActionTimeout,
    ForeignNode,
    Indeterminate,
    Interrupted,
    OperationTimeout,
    SilenceTimeout,
    UnknownName,
    Unreachable,
    WlctlError,
)
from wlctl.flows import gate, operating, rivals
from wlctl.flows.catching_up import catch_up
from wlctl.flows.intents import check_ours
from wlctl.flows.nodes import check_identity, check_placed_there
from wlctl.flows.runtime import Runtime
from wlctl.flows.witnesses import Watch
from wlctl.ledger import generations, instances, nodes, operations, packages, troubles
from wlctl.ledger.operations import Operation, Turn
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.ledger.troubles import Trouble
from wlctl.lifecycle.machine import IllegalTransition, step, walk
from wlctl.lifecycle.seen import ended
from wlctl.model.actions import RefusalCode, Refused, Stopped, StopRequest, Unloaded, UnloadRequest
from wlctl.model.event import Json
from wlctl.model.generation import Proof
from wlctl.model.ids import InstanceId
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Node
from wlctl.model.policy import Action
from wlctl.package import manifest


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
    ASKED = "asked"
    """It was closed and asked to end, and nobody waited: everything is still held."""
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
    return stop_one(rt, _find(rt, Verb.STOP, word), grace_ms=grace_ms)


def stop_one(
    rt: Runtime,
    instance: Instance,
    *,
    grace_ms: int | None = None,
    wait: bool = True,
    within_s: float | None = None,
    halt: Trouble | None = None,
    as_seen: bool = False,
) -> Ending:
    """Stop a copy that was looked up; see `stop`.

    Args:
        wait: False has its node ask it to end, and waits for no proof.
        within_s: How long the node's answer is waited for; None for as long as it may take.
        halt: Why it is stopped for the time being only; without it whoever stops it means it, and
            nothing starts it again.
        as_seen: Only while nothing else was asked of it since `instance` was read.

    Raises:
        Overtaken: Something was.
    """
    seen = instance if as_seen else None
    how = _How(grace_ms=grace_ms, wait=wait, within_s=within_s, halt=halt, seen=seen)
    return _end(rt, Verb.STOP, instance, how)


def unload(rt: Runtime, word: str, *, grace_ms: int | None = None, purge: bool = False) -> Ending:
    """End every run of the copy that `word` means, and remove it; its name is free then.

    Unloading what is gone already succeeds and says so.

    Args:
        purge: Remove the data it was to keep, too.

    Raises:
        UnknownName, AmbiguousName: `word` never meant any, or means more than one.
        Busy: Another operation on it did not end in time.
    """
    return unload_one(rt, _find(rt, Verb.UNLOAD, word), grace_ms=grace_ms, purge=purge)


def unload_one(
    rt: Runtime,
    instance: Instance,
    *,
    grace_ms: int | None = None,
    purge: bool = False,
    within_s: float | None = None,
    as_seen: bool = False,
) -> Ending:
    """Unload a copy that was looked up; see `unload` and `stop_one`."""
    seen = instance if as_seen else None
    how = _How(grace_ms=grace_ms, purge=purge, within_s=within_s, seen=seen)
    return _end(rt, Verb.UNLOAD, instance, how)


def unload_again(rt: Runtime, instance: Instance) -> Ending:
    """Unload once more what was closed here, and its node has after all; see `unload`."""
    return _end(rt, Verb.UNLOAD, instance, _How(again=True))


@dataclass(frozen=True, slots=True)
class _How:
    """With which options.

    Attributes:
        again: Ask also for what is unloaded by the ledger's word.
        halt: It is stopped for the time being, because.
        seen: As a pass has seen it; None where somebody asks for its end now.
    """

    grace_ms: int | None = None
    purge: bool = False
    wait: bool = True
    within_s: float | None = None
    again: bool = False
    halt: Trouble | None = None
    seen: Instance | None = None


@dataclass(frozen=True, slots=True)
class _Wish:
    """What was committed before anything is sent.

    Attributes:
        node: As it was last seen before.
        grace_ms: Between the stop signal and the kill.
        how: With which options.
    """

    verb: Verb
    instance: Instance
    node: Node
    operation: Operation
    grace_ms: int
    how: _How


def _end(rt: Runtime, verb: Verb, instance: Instance, how: _How) -> Ending:
    """End a copy; where its node has accepted something newer than the ledger knows, once more."""
    found = _end_once(rt, verb, instance, how)
    if found.code == RefusalCode.SUPERSEDED.value and catch_up(rt, found.instance):
        found = _end_once(rt, verb, found.instance, how)
    return _with_its_stand_in(rt, found)


def _with_its_stand_in(rt: Runtime, found: Ending) -> Ending:
    """Call nothing done while another copy, which is to take its place, may run."""
    if found.end not in (End.DONE, End.ALREADY):
        return found
    with rt.ledger.read() as tx:
        other = rivals.standing_in(tx, found.instance)
    if other is None:
        return found
    why = f"{other.id}, which was to take its place, is {other.state.value} on {other.node}"
    return replace(found, end=End.UNPROVEN, detail=f"{why}: `wlctl reconcile` ends it")


def _end_once(rt: Runtime, verb: Verb, instance: Instance, how: _How) -> Ending:
    if instance.state is State.UNLOADED and not how.again:
        return Ending(verb, End.ALREADY, instance)
    with operations.turn(rt.ledger, instance.id, timeout_s=rt.settings.busy_timeout_s) as turn:
        wish = _intend(rt, verb, turn, how)
        if isinstance(wish, Ending):
            return wish
        try:
            answer = _ask_or_ask_again(rt, wish)
        except Indeterminate as failure:
            return _not_done(rt, wish, End.INDETERMINATE, failure)
        except (Unreachable, ForeignNode) as failure:
            return _not_done(rt, wish, End.UNREACHABLE, failure)
        except KeyboardInterrupt:
            stopped = Interrupted(
                f"interrupted: {wish.instance.name} on {wish.node.name} keeps what it holds",
                hint=f"`wlctl {verb.value} {wish.instance.name}` again",
            )
            _not_done(rt, wish, End.INDETERMINATE, stopped)
            raise stopped from None
        if isinstance(answer, Refused):
            return _refused(rt, wish, answer)
        is_waited_for = how.wait or wish.verb is Verb.UNLOAD
        return _judge(rt, wish, answer) if is_waited_for else _asked(rt, wish)


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


def _intend(rt: Runtime, verb: Verb, turn: Turn, how: _How) -> _Wish | Ending:
    """Record the wish before anything is sent; what a dead process left is taken over first."""
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        token = rt.new_token()
        operating.take_over(tx, turn, token)
        instance = instances.get(tx, InstanceId(turn.scope))
        operating.require_unasked(how.seen, instance)
        if instance.state is State.RESCHEDULED:
            verb = Verb.UNLOAD  # another one has its place: it is only ever ended
        is_meant = how.seen is None and how.halt is None
        is_gone = instance.state is State.UNLOADED and not how.again
        if is_gone or (verb is Verb.STOP and _is_stopped(tx, instance)):
            if is_meant:
                troubles.clear_unwanted(tx, instance.id)
            return Ending(verb, End.ALREADY, instance)
        node = nodes.get(tx, instance.node)
        denial = gate.verb(rt, tx, Action(verb.value), instance=instance, node=node)
        if denial is not None:
            return Ending(verb, End.DENIED, instance, code=denial.code, detail=denial.message)
        operation = operations.begin(tx, turn, verb.value, token=token)
        if how.halt is not None:
            troubles.put(tx, instance.id, how.halt)
        elif is_meant:
            troubles.clear_unwanted(tx, instance.id)
        desired = Desired.STOPPED if verb is Verb.STOP else Desired.UNLOADED
        instances.change(tx, instance.id, desired=desired.value)
        operating.request(tx, f"workload.{verb.value}", instance, operation)
        if not isinstance(step(instance.state, State.STOPPING), IllegalTransition):
            instances.advance(tx, instance, (State.STOPPING,), f"{verb.value} asked for")
        return _Wish(
            verb=verb,
            instance=instances.get(tx, instance.id),
            node=node,
            operation=operation,
            grace_ms=grace_of(tx, instance) if how.grace_ms is None else how.grace_ms,
            how=how,
        )


def _is_stopped(tx: ReadTx, instance: Instance) -> bool:
    """Answer whether there is nothing left to ask: it was stopped, and no start came after that.

    A start that did not get there left it holding what it would need.
    """
    if instance.state is not State.STOPPED or instance.desired is not Desired.STOPPED:
        return False
    if instances.is_holding(tx, instance.id):
        return False
    return all(run.is_gone for run in generations.of_instance(tx, instance.id))


def grace_of(tx: ReadTx, instance: Instance) -> int:
    """Read how long the package gives its processes to end."""
    text = packages.get(tx, instance.package_id).manifest
    return manifest.read(text.encode()).workload.lifecycle.stop_grace_ms


def _ask_or_ask_again(rt: Runtime, wish: _Wish) -> Stopped | Unloaded | Refused:
    """Ask once more where the connection was lost on the way: under one number it is done once.

    A node that was silent for as long as it had is not waited for twice.
    """
    try:
        return _ask(rt, wish)
    except Indeterminate as lost:
        if isinstance(lost.__cause__, _TIMEOUTS) or wish.how.within_s is not None:
            raise
        try:
            return _ask(rt, wish)
        except (Unreachable, ForeignNode) as failure:
            raise Indeterminate(
                f"{lost.message}; asked again: {failure.message}", hint=lost.hint
            ) from failure


def _ask(rt: Runtime, wish: _Wish) -> Stopped | Unloaded | Refused:
    check_placed_there(wish.node, wish.instance.created_at_ms)
    request = StopRequest(
        installation=rt.ledger.installation,
        instance=wish.instance.id,
        number=wish.operation.number,
        generation=wish.instance.generation,
        grace_ms=wish.grace_ms,
        wait=wish.how.wait,
        within_s=wish.how.within_s,
    )
    answer: Stopped | Unloaded | Refused
    with rt.connect(wish.node.address) as session:
        check_ours(rt, wish.operation)
        if wish.verb is Verb.STOP:
            answer = session.stop(request)
        else:
            asked = {key: value for key, value in asdict(request).items() if key != "wait"}
            answer = session.unload(UnloadRequest(**asked, purge=wish.how.purge))
        if not isinstance(answer, Refused):
            check_identity(wish.node, answer.node_id)
            if wish.how.wait:
                check_ours(rt, wish.operation)
                Watch(rt).leave(session, wish.node)
    return answer


def _not_done(rt: Runtime, wish: _Wish, end: End, failure: WlctlError) -> Ending:
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, wish.operation)
        was_asked = not wish.node.was_another_at(wish.instance.created_at_ms)
        if end is End.UNREACHABLE and was_asked:
            nodes.record_silence(tx, wish.node.name, failure.code)
        now = _finish(tx, wish, end, code=failure.code)
    return Ending(wish.verb, end, now, code=failure.code, detail=failure.message)


def _refused(rt: Runtime, wish: _Wish, answer: Refused) -> Ending:
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, wish.operation)
        now = _finish(tx, wish, End.REFUSED, code=answer.code.value)
    return Ending(wish.verb, End.REFUSED, now, code=answer.code.value, detail=answer.detail)


def _asked(rt: Runtime, wish: _Wish) -> Ending:
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, wish.operation)
        now = _finish(tx, wish, End.ASKED)
    return Ending(wish.verb, End.ASKED, now)


def _judge(rt: Runtime, wish: _Wish, answer: Stopped | Unloaded) -> Ending:
    """Judge every run by what was read of it; release what is held only when all are proven."""
    answered_at_ms = rt.now_ms()
    with rt.ledger.write(answered_at_ms, rt.author) as tx:
        operations.check(tx, wish.operation)
        runs = generations.of_instance(tx, wish.instance.id)
        proofs = operating.prove(wish.node, wish.instance, runs, answer.readings, answered_at_ms)
        why = operating.keep(tx, wish.instance, proofs, pruned=answer.pruned)
        end = End.UNPROVEN if why else End.DONE
        if end is End.DONE:
            _record_done(tx, wish.verb, wish.instance, proofs)
        now = _finish(tx, wish, end, evidence=list(map(generations.evidence_json, proofs)))
    kept = answer.kept_data if isinstance(answer, Unloaded) else ""
    return Ending(wish.verb, end, now, proofs, detail=why, kept_data=kept)


def _record_done(tx: WriteTx, verb: Verb, instance: Instance, proofs: Sequence[Proof]) -> None:
    way, reason = _way(verb, instance, proofs)
    evidence = operating.summary(proofs)
    instances.advance(tx, instance, way, reason, evidence)
    instances.release(tx, instance.id)
    instances.change(tx, instance.id, unsettled=False, health="", seen_at_ms=tx.now_ms)


def _way(verb: Verb, instance: Instance, proofs: Sequence[Proof]) -> tuple[tuple[State, ...], str]:
    """Choose the steps that say what is true, and their reason.

    What never ran has failed, it was not stopped; and so has what ended by itself with a failure
    before it was asked to.
    """
    state, gone = instance.state, "proven: no process of it is left"
    if state in _BEFORE_A_RUN and not any(proof.evidence.launched for proof in proofs):
        start: tuple[State, ...] = (State.FAILED,)
        return (start if verb is Verb.STOP else (*start, State.UNLOADED)), gone
    if verb is Verb.STOP and state in _ENDED:
        return (), gone
    goal = State.STOPPED if verb is Verb.STOP else State.UNLOADED
    if verb is Verb.STOP and state is State.STOPPING and proofs:
        last = proofs[-1].evidence
        if last.how == EXITED:
            found, why = ended(
                instance.kind,
                last.exit_status,
                f"g{last.generation}",
                oom_kills=last.oom_kills,
            )
            goal, gone = (State.FAILED if found is State.FAILED else goal), f"{why}; {gone}"
    way = walk(state, goal)
    assert not isinstance(way, IllegalTransition), way
    return way, gone


_TIMEOUTS = (SilenceTimeout, ActionTimeout, OperationTimeout)

EXITED = "exited"
"""How a run ended whose leader was gone before it was asked."""

_BEFORE_A_RUN = frozenset({State.PLACED, State.FETCHING, State.VERIFIED})
_ENDED = frozenset({State.LOADED, State.FAILED, State.FINISHED, State.STOPPED})
"""A stop leaves these as they are: there is nothing to stop, and that is proven."""


def _finish(
    tx: WriteTx, wish: _Wish, end: End, *, code: str = "", evidence: Sequence[dict[str, Json]] = ()
) -> Instance:
    """Chain the outcome, close the operation, and return the copy as it is now."""
    kind = f"workload.{wish.verb.value}"
    return operating.outcome(
        tx, kind, wish.instance, wish.operation, end.value, code=code, evidence=evidence
    )
