"""Try the candidates of one copy in turn, until a node has it, none is left, or nobody knows.

Where nothing was done, the next candidate is safe to try. Where something may have been, the node
is asked to settle it first; what cannot be settled ends the dispatch and holds all that it held.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from io import BytesIO

from wlctl.errors import (
    FalseWitness,
    ForeignNode,
    GateDenied,
    Indeterminate,
    Interrupted,
    Overtaken,
    Unreachable,
    WlctlError,
)
from wlctl.flows import deciding, gate, leasing, settling, witnesses
from wlctl.flows.intents import (
    REQUEST_VALID_MS,
    Intent,
    Wanted,
    check_ours,
    intend,
    request_for,
    walk_to,
)
from wlctl.flows.nodes import check_identity
from wlctl.flows.runtime import Runtime
from wlctl.flows.settling import Lost
from wlctl.ledger import attempts, chain, instances, nodes, operations
from wlctl.ledger.attempts import Attempt, Outcome
from wlctl.ledger.operations import Turn
from wlctl.model.actions import Launched, Placed, RefusalCode, Refused
from wlctl.model.event import Json
from wlctl.model.fleet import Ruling
from wlctl.model.ids import NodeName
from wlctl.model.instance import Instance
from wlctl.model.placement import Candidate

_SOMEBODY_ELSE = frozenset({RefusalCode.SUPERSEDED.value, RefusalCode.CANCELLED.value})
"""Whoever called it off wants it called off: these are not refusals to go past."""


@dataclass(frozen=True, slots=True)
class Passed:
    """A candidate that was not tried: it was one when the decision was made, and is none now.

    Attributes:
        why: The constraint that it fails by now.
    """

    node: NodeName
    why: str


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What came of one copy.

    Attributes:
        name: Of the copy.
        attempts: In their order; the last one says how it ended.
        instance: The copy of the last attempt, current or not; None only where none was begun.
        launched: What the node said of the run it started.
        failure: Of this side; nothing of it was sent, and nothing more was tried.
    """

    name: str
    attempts: tuple[Attempt, ...]
    passed: tuple[Passed, ...]
    instance: Instance | None
    launched: Launched | None = None
    failure: WlctlError | None = None

    @property
    def is_placed(self) -> bool:
        """It is on its node, as asked."""
        return bool(self.attempts) and self.attempts[-1].is_there

    @property
    def is_open(self) -> bool:
        """Nobody knows whether it runs."""
        return bool(self.attempts) and self.attempts[-1].is_open


@dataclass(frozen=True, slots=True)
class _Tried:
    """What came of sending one intent.

    Attributes:
        attempt: With its outcome.
        failure: Of this side.
    """

    attempt: Attempt
    answer: Placed | Launched | None = None
    failure: WlctlError | None = None


def dispatch(
    rt: Runtime,
    intent: Intent,
    rest: Sequence[Candidate],
    turn: Turn,
    *,
    go_on: Callable[[], bool],
) -> Dispatched:
    """Send what was intended, and go on to the next candidate where that is safe.

    Args:
        rest: The candidates after the first one, best first.
        turn: Of the intent's instance; held by the caller to the end.
        go_on: Answers False once no further step may begin; the one under way is finished.

    Raises:
        Overtaken: Another process took the operation over meanwhile, and has settled it.
    """
    made: list[Attempt] = []
    passed: list[Passed] = []
    left = list(rest)
    with ExitStack() as turns:
        while True:
            tried = _try(rt, intent, go_on)
            instance = _record(rt, intent, tried)
            if tried.attempt.outcome is Outcome.INDETERMINATE:
                tried, instance = _settled(rt, intent, tried, turn)
            made.append(tried.attempt)
            launched = tried.answer if isinstance(tried.answer, Launched) else None
            following: Intent | None = None
            if _may_go_past(tried) and go_on():
                turn = turns.enter_context(operations.turn(rt.ledger, rt.new_instance_id()))
                following = _next(rt, intent.wanted, left, passed, turn)
            if following is None:
                return Dispatched(
                    name=intent.wanted.name,
                    attempts=tuple(made),
                    passed=tuple(passed),
                    instance=instance,
                    launched=launched,
                    failure=tried.failure,
                )
            intent = following


def _may_go_past(tried: _Tried) -> bool:
    """Answer whether another candidate may be tried: nothing of this one is or will be anywhere."""
    attempt = tried.attempt
    if tried.failure is not None or attempt.is_there or attempt.is_open:
        return False
    return attempt.outcome is Outcome.INDETERMINATE or attempt.code not in _SOMEBODY_ELSE


def _next(
    rt: Runtime, wanted: Wanted, left: list[Candidate], passed: list[Passed], turn: Turn
) -> Intent | None:
    """Record the attempt at the next candidate that still is one, by the ledger of this moment.

    Args:
        left: What was not tried yet; what is tried or passed over is taken out.
        passed: What is passed over is added.
    """
    if not left:
        return None
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        holder = instances.holder_of(tx, wanted.name)
        if (None if holder is None else holder.id) != wanted.replaces:
            return None  # somebody placed that name meanwhile, or ended what was to be replaced
        if not wanted.is_wanted(tx):
            return None
        again = replace(wanted.order, count=1)
        decision = deciding.decide(rt, tx, tx.now_ms, again, wanted.admitted)
        fresh = {candidate.node: candidate for candidate in decision.ranked}
        while left:
            node = left.pop(0).node
            if node in fresh:
                return intend(rt, tx, wanted, fresh[node], turn)
            rejections = decision.rejected.get(node, ())
            why = rejections[0].constraint.value if rejections else "gone"
            passed.append(Passed(node, why))
            told: dict[str, Json] = {
                "kind": "dispatch",
                "decision": wanted.decision,
                "node": node,
                "outcome": "passed_over",
                "code": why,
            }
            chain.append(tx, "workload.refuse", told)
    return None


def _try(rt: Runtime, intent: Intent, go_on: Callable[[], bool]) -> _Tried:
    """Send one intent; what the node says, or what became of the way to it, is the outcome."""
    attempt = intent.attempt
    denied = _denied_emulated(rt, intent)
    if denied is not None:
        return _Tried(denied)
    try:
        answer = _send(rt, intent, go_on)
    except Indeterminate as failure:
        return _Tried(_ended(attempt, Outcome.INDETERMINATE, failure))
    except (Unreachable, ForeignNode, FalseWitness, Interrupted) as failure:
        return _Tried(_ended(attempt, Outcome.UNREACHABLE, failure))
    except Overtaken:
        raise
    except WlctlError as failure:  # of this side, before the mutation: a file left the store
        return _Tried(_ended(attempt, Outcome.UNREACHABLE, failure), failure=failure)
    if isinstance(answer, Refused):
        refused = replace(
            attempt, outcome=Outcome.REFUSED, code=answer.code.value, detail=answer.detail
        )
        return _Tried(refused)
    return _Tried(replace(attempt, outcome=Outcome.PLACED), answer)


def _denied_emulated(rt: Runtime, intent: Intent) -> Attempt | None:
    """Ask the gate again for what would run emulated; a denial is what becomes of the attempt."""
    if intent.emulated is None:
        return None
    with rt.ledger.read() as tx:
        verdict = gate.placing(rt, tx, intent.emulated)(intent.node)
    if verdict.ruling is Ruling.ALLOWED:
        return None
    why = f"{verdict.rule}: {verdict.reason}"
    return replace(intent.attempt, outcome=Outcome.GATE_DENIED, code=GateDenied.code, detail=why)


def _send(rt: Runtime, intent: Intent, go_on: Callable[[], bool]) -> Placed | Launched | Refused:
    """Bring the files that the node lacks, then place; all over one connection."""
    admitted = intent.wanted.admitted
    manifest = admitted.manifest.text.encode()
    sizes = {f.sha256: f.size_bytes for f in admitted.variant(intent.instance.variant).files}
    sizes[admitted.package_id] = len(manifest)
    with rt.connect(intent.node.address) as session:
        _check_ours(rt, intent, go_on)
        offered = session.offer(rt.ledger.installation, tuple(sizes))
        read_at = rt.boot_time()
        if isinstance(offered, Refused):
            return offered
        check_identity(intent.node, offered.node_id)
        _check_ours(rt, intent, go_on)
        witnesses.check_and_leave(rt, session, intent.node, offered.checkpoint)
        for sha256 in offered.missing:
            _check_ours(rt, intent, go_on)
            stored = sha256 != admitted.package_id
            with admitted.store.open(sha256) if stored else BytesIO(manifest) as file:
                taken = session.receive(sha256, sizes[sha256], file)
            if isinstance(taken, Refused):
                return taken
        _check_ours(rt, intent, go_on)
        ttl_ms = intent.wanted.order.lease_ms or admitted.workload.lifecycle.lease_ms
        leasing.about_to_send(rt, intent.instance.id, ttl_ms, read_at)
        return session.place(request_for(rt, intent, uptime_ms=offered.uptime_ms))


def _check_ours(rt: Runtime, intent: Intent, go_on: Callable[[], bool]) -> None:
    """Make sure, before each step, that it is still for us to do.

    Raises:
        Interrupted: Whoever asked for it wants nothing more begun.
        Overtaken: This process slept, and another one has taken over: it sends nothing more.
    """
    if not go_on():
        raise Interrupted("it was called off before anything of it was sent")
    check_ours(rt, intent.operation)


def _ended(attempt: Attempt, outcome: Outcome, failure: WlctlError) -> Attempt:
    return replace(attempt, outcome=outcome, code=failure.code, detail=failure.message)


def _record(rt: Runtime, intent: Intent, tried: _Tried) -> Instance:
    """Write down what came of an attempt, and give back what it held where nothing is left."""
    attempt = tried.attempt
    assert attempt.outcome is not None
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, intent.operation)
        attempts.end(tx, attempt)
        instance = instances.get(tx, intent.instance.id)
        match attempt.outcome:
            case Outcome.PLACED:
                settling.record_placed(tx, instance, tried.answer)
            case Outcome.REFUSED | Outcome.UNREACHABLE | Outcome.GATE_DENIED:
                # Nothing of it is on the node, by the node's own word or because nothing was sent.
                settling.record_nothing(tx, instance, f"{attempt.outcome.value}: {attempt.code}")
            case Outcome.INDETERMINATE:
                instances.change(tx, instance.id, unsettled=True)
        if _was_silent(tried):
            nodes.record_silence(tx, intent.node.name, attempt.code)
        settling.chain_outcome(tx, attempt, tried.answer)
        operations.close(tx, intent.operation, attempt.outcome.value)
        return instances.get(tx, instance.id)


def _was_silent(tried: _Tried) -> bool:
    """Answer whether the node had a part in it: what was called off, or failed here, is not it."""
    called_off = tried.attempt.code == Interrupted.code
    return tried.attempt.outcome is Outcome.UNREACHABLE and tried.failure is None and not called_off


def _settled(rt: Runtime, intent: Intent, tried: _Tried, turn: Turn) -> tuple[_Tried, Instance]:
    """Ask the node what became of an attempt whose answer was lost."""
    again = request_for(rt, intent, uptime_ms=0)
    lost = Lost(tried.attempt, intent.node, intent.instance.created_at_ms, again)
    settled = settling.settle(rt, lost, turn)
    return _Tried(settled.attempt, settled.answer), settled.instance


__all__ = ["REQUEST_VALID_MS", "Dispatched", "Passed", "dispatch", "walk_to"]
