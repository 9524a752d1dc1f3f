"""Send one intended placement to its node, and write down what came of it."""

from dataclasses import dataclass, replace

from wlctl.errors import (
    ForeignNode,
    GateDenied,
    Indeterminate,
    Interrupted,
    Unreachable,
    WlctlError,
)
from wlctl.flows import gate
from wlctl.flows.nodes import check_identity
from wlctl.flows.packages import Admitted
from wlctl.flows.runtime import Runtime
from wlctl.ledger import attempts, chain, generations, instances, nodes, operations
from wlctl.ledger.attempts import Attempt, Outcome
from wlctl.ledger.operations import Operation
from wlctl.ledger.store import WriteTx
from wlctl.lifecycle.machine import IllegalTransition, walk
from wlctl.model.actions import Launched, Placed, PlaceRequest, Refused
from wlctl.model.event import Json
from wlctl.model.fleet import Ruling
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Node
from wlctl.model.policy import Work

REQUEST_VALID_MS = 60_000
"""How long a node may take to begin with a request; one that is read later does nothing."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What was committed before anything is sent.

    Attributes:
        fence: The chain's newest number then: it grows with every run of a name, on any node.
        emulated: What the gate is asked about once more, when the variant runs emulated; else None.
    """

    attempt: Attempt
    instance: Instance
    node: Node
    operation: Operation
    admitted: Admitted
    start: bool
    fence: int
    emulated: Work | None


@dataclass(frozen=True, slots=True)
class Dispatched:
    """What came of an intent.

    Attributes:
        launched: What the node said of the run it started.
    """

    attempt: Attempt
    instance: Instance
    launched: Launched | None


def dispatch(rt: Runtime, intent: Intent) -> Dispatched:
    """Send what was intended, and write down what came of it.

    Raises:
        Interrupted: Ctrl-C; what may run by then is unsettled.
        Overtaken: Another process took the operation over meanwhile, and has settled it.
        WlctlError: Something of this side was not there; nothing was sent.
    """
    denied = _denied_emulated(rt, intent)
    if denied is not None:
        return _finish(rt, intent, denied)
    try:
        answer = _send(rt, intent)
    except Indeterminate as failure:
        return _finish(rt, intent, _ended(intent.attempt, Outcome.INDETERMINATE, failure))
    except (Unreachable, ForeignNode) as failure:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            nodes.record_silence(tx, intent.node.name, failure.code)
        return _finish(rt, intent, _ended(intent.attempt, Outcome.UNREACHABLE, failure))
    except WlctlError as failure:  # of this side, before the mutation: a file left the store
        _finish(rt, intent, _ended(intent.attempt, Outcome.UNREACHABLE, failure))
        raise
    except KeyboardInterrupt:
        stopped = Interrupted(
            f"interrupted while {intent.instance.name} was placed on {intent.node.name}",
            hint=f"it may run there: `wlctl unload {intent.instance.name}` settles it",
        )
        _finish(rt, intent, _ended(intent.attempt, Outcome.INDETERMINATE, stopped))
        raise stopped from None
    if isinstance(answer, Refused):
        refused = replace(
            intent.attempt, outcome=Outcome.REFUSED, code=answer.code.value, detail=answer.detail
        )
        return _finish(rt, intent, refused)
    placed = replace(intent.attempt, outcome=Outcome.PLACED)
    return _finish(rt, intent, placed, answer)


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


def _send(rt: Runtime, intent: Intent) -> Placed | Launched | Refused:
    """Bring the files that the node lacks, then place; all over one connection."""
    chosen = intent.admitted.variant(intent.instance.variant)
    with rt.connect(intent.node.address) as session:
        sizes = {file.sha256: file.size_bytes for file in chosen.files}
        offered = session.offer(tuple(sizes))
        if isinstance(offered, Refused):
            return offered
        check_identity(intent.node, offered.node_id)
        for sha256 in offered.missing:
            with intent.admitted.store.open(sha256) as file:
                taken = session.receive(sha256, sizes[sha256], file)
            if isinstance(taken, Refused):
                return taken
        return session.place(
            PlaceRequest(
                installation=rt.ledger.installation,
                instance=intent.instance.id,
                name=intent.instance.name,
                node=intent.node.name,
                decision=intent.attempt.decision,
                number=intent.operation.number,
                generation=max(1, intent.instance.generation),
                fence=intent.fence,
                package=intent.admitted.package_id,
                sheet=chosen.sheet,
                deadline_ms=offered.uptime_ms + REQUEST_VALID_MS,
                start=intent.start,
            )
        )


def _ended(attempt: Attempt, outcome: Outcome, failure: WlctlError) -> Attempt:
    return replace(attempt, outcome=outcome, code=failure.code, detail=failure.message)


def _finish(
    rt: Runtime,
    intent: Intent,
    attempt: Attempt,
    answer: Placed | Launched | None = None,
) -> Dispatched:
    """Write down what came of the attempt."""
    assert attempt.outcome is not None
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, intent.operation)
        attempts.end(tx, attempt)
        instance = instances.get(tx, intent.instance.id)
        match attempt.outcome:
            case Outcome.PLACED:
                _record_placed(tx, instance, answer)
            case Outcome.REFUSED | Outcome.UNREACHABLE | Outcome.GATE_DENIED:
                # Nothing of it is on the node, by the node's own word or because nothing was sent.
                walk_to(tx, instance, State.FAILED, f"{attempt.outcome.value}: {attempt.code}")
                walk_to(tx, instances.get(tx, instance.id), State.UNLOADED, "nothing was left")
                instances.change(tx, instance.id, desired=Desired.UNLOADED.value)
                instances.release(tx, instance.id)
            case Outcome.INDETERMINATE:
                instances.change(tx, instance.id, unsettled=True)
        _chain_outcome(tx, attempt, answer)
        operations.close(tx, intent.operation, attempt.outcome.value)
        instance = instances.get(tx, instance.id)
    launched = answer if isinstance(answer, Launched) else None
    return Dispatched(attempt, instance, launched)


def _record_placed(tx: WriteTx, instance: Instance, answer: Placed | Launched | None) -> None:
    reached = (State.FETCHING, State.VERIFIED, State.LOADED)
    instances.advance(tx, instance, reached, "staged on the node")
    if isinstance(answer, Launched):
        generations.launched(tx, instance.id, answer)
        walk_to(tx, instances.get(tx, instance.id), State.RUNNING, f"g{answer.generation} launched")
    instances.change(tx, instance.id, seen_at_ms=tx.now_ms)


def _chain_outcome(tx: WriteTx, attempt: Attempt, answer: Placed | Launched | None) -> None:
    placed = attempt.outcome is Outcome.PLACED
    payload: dict[str, Json] = {
        "decision": attempt.decision,
        "attempt": attempt.number,
        "instance": attempt.instance,
        "node": attempt.node,
        "outcome": attempt.outcome.value if attempt.outcome else "",
    }
    if placed:
        payload["phase"] = "placed"
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
    chain.append(tx, "workload.place" if placed else "workload.refuse", payload)


def walk_to(tx: WriteTx, instance: Instance, goal: State, reason: str) -> None:
    """Walk an instance to `goal`; only ever called where the table has a way."""
    way = walk(instance.state, goal)
    assert not isinstance(way, IllegalTransition), way
    instances.advance(tx, instance, way, reason)
