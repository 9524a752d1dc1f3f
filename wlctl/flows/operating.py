"""What every verb on a copy does in the ledger: take over, say what is asked, judge the end."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from wlctl.errors import Overtaken
from wlctl.flows.runtime import Runtime
from wlctl.flows.settling import last_reading_ms
from wlctl.ledger import attempts, chain, generations, instances, nodes, operations
from wlctl.ledger.attempts import Outcome
from wlctl.ledger.generations import Generation
from wlctl.ledger.operations import Operation, Turn
from wlctl.ledger.store import WriteTx
from wlctl.lifecycle.machine import IllegalTransition, walk
from wlctl.lifecycle.proof import judge
from wlctl.model.event import Json
from wlctl.model.generation import Proof, Proven, Readings, Unproven
from wlctl.model.ids import InstanceId
from wlctl.model.instance import Instance, State
from wlctl.model.node import Node

NOTHING_MORE: Mapping[str, Json] = MappingProxyType({})

STARTING = frozenset({"start", "restart"})
"""Verbs of which a run may live that nobody has told of."""


def take_over(tx: WriteTx, turn: Turn, token: str) -> None:
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
    if left.verb in STARTING:
        instances.change(tx, instance, unsettled=True)
    operations.close(tx, left, "abandoned")


def require_unasked(seen: Instance | None, now: Instance) -> None:
    """Make sure that nobody has asked anything of a copy since it was looked up.

    What a pass carries out is what was wanted when it looked; whoever came after that, and while it
    waited for its turn, wants something else.

    Args:
        seen: As it was looked up; None where whoever looked it up is the one who asks.

    Raises:
        Overtaken: Somebody has.
    """
    if seen is not None and (seen.desired, seen.generation) != (now.desired, now.generation):
        raise Overtaken(
            f"somebody else has asked something of {now.name} meanwhile",
            hint="what was asked for last is what counts",
        )


def request(
    tx: WriteTx,
    kind: str,
    instance: Instance,
    operation: Operation,
    more: Mapping[str, Json] = NOTHING_MORE,
) -> None:
    """Chain what is about to be asked of the copy's node.

    Args:
        kind: Of the event, e.g. `workload.stop`.
    """
    payload: dict[str, Json] = {
        "phase": "request",
        "instance": instance.id,
        "name": instance.name,
        "node": instance.node,
        "operation": operation.number,
        **more,
    }
    chain.append(tx, kind, payload)


def outcome(
    tx: WriteTx,
    kind: str,
    instance: Instance,
    operation: Operation,
    end: str,
    *,
    code: str = "",
    evidence: Sequence[Mapping[str, Json]] = (),
    more: Mapping[str, Json] = NOTHING_MORE,
) -> Instance:
    """Chain what came of an operation and close it; answer the copy as it is then.

    Args:
        end: In one word.
        code: Of a failure or refusal.
    """
    payload: dict[str, Json] = {
        "phase": "outcome",
        "instance": instance.id,
        "name": instance.name,
        "node": instance.node,
        "outcome": end,
        **more,
    }
    if code:
        payload["code"] = code
    if evidence:
        payload["evidence"] = list(evidence)
    chain.append(tx, kind, payload)
    operations.close(tx, operation, end)
    return instances.get(tx, instance.id)


def silent(rt: Runtime, node: Node, code: str) -> None:
    """Record that a node did not answer."""
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        nodes.record_silence(tx, node.name, code)


def prove(
    node: Node,
    instance: Instance,
    runs: Sequence[Generation],
    readings: Sequence[Readings],
    answered_at_ms: int,
) -> tuple[Proof, ...]:
    """Judge every run by what was read of it; what was proven once stays so.

    Args:
        node: As it was last seen before the readings.
        runs: What is known of them from before.
        answered_at_ms: When the readings came.
    """
    gone = {run.number: run for run in runs if run.is_gone}
    proofs = (
        judge(
            one,
            boot_began_at_ms=answered_at_ms - one.read_at_ms,
            last_reading_at_ms=last_reading_ms(node, instance, one),
        )
        for one in readings
    )
    return tuple(_as_before(gone.get(proof.evidence.generation), proof) for proof in proofs)


def _as_before(run: Generation | None, proof: Proof) -> Proof:
    """Keep what was proven of a run; later readings may say less, as those under another boot do.

    What speaks against it is never kept back.
    """
    if run is None or not isinstance(proof, Unproven):
        return proof
    return Proven(proof.evidence, f"as before: {(run.evidence or {}).get('because', '')}")


def unknown_to(runs: Sequence[Generation], proofs: Sequence[Proof]) -> list[Proof]:
    """Give what was judged of runs that the ledger knows nothing of: a supervisor began them."""
    known = {run.number for run in runs}
    return [
        proof
        for proof in proofs
        if proof.evidence.launched and proof.evidence.generation not in known
    ]


def _unknown(proof: Proof) -> Generation:
    return Generation(
        number=proof.evidence.generation,
        role=generations.RESTARTED,
        intended_at_ms=0,
        launch=None,
        proof=None,
        evidence=None,
        proven_at_ms=None,
    )


def is_pruned(run: Generation, proof: Proof | None, pruned: int) -> bool:
    """Answer whether a run's node has read it as gone, and keeps no record of it any more."""
    return run.number <= pruned and (proof is None or not proof.evidence.launched)


def match(
    runs: Sequence[Generation], proofs: Sequence[Proof]
) -> list[tuple[Generation, Proof | None]]:
    """Give each run that the ledger knows of what was judged of it; None of which nothing was read.

    That a run was launched is known here, whatever its node's records say by now.
    """
    judged = {proof.evidence.generation: proof for proof in proofs}
    runs = [*runs, *(_unknown(proof) for proof in unknown_to(runs, proofs))]
    found: list[tuple[Generation, Proof | None]] = []
    for run in runs:
        proof = judged.get(run.number)
        if run.launch is not None and proof is not None and not proof.evidence.launched:
            proof = Unproven(proof.evidence, "it was launched, and its node has no record of that")
        found.append((run, proof))
    return found


def keep(tx: WriteTx, instance: Instance, proofs: Sequence[Proof], *, pruned: int = 0) -> str:
    """Keep what was judged; say why the copy is not proven gone, empty when it is.

    What was proven once stays so. A run that got a number and of which the node read nothing is not
    proven: silence is no proof. Runs that a supervisor began by itself are known from here on.

    Args:
        pruned: Up to this number, runs of which the node has no record any more were read as gone.
    """
    why = ""
    for unknown in unknown_to(generations.of_instance(tx, instance.id), proofs):
        generations.found(tx, instance.id, unknown.evidence.generation, tx.now_ms)
    newest = max((one.evidence.generation for one in proofs), default=0)
    if newest > instances.get(tx, instance.id).generation:
        instances.change(tx, instance.id, generation=newest)
    for run, proof in match(generations.of_instance(tx, instance.id), proofs):
        if run.is_gone:
            continue
        if is_pruned(run, proof, pruned):
            generations.read_as_gone(tx, instance.id, run.number)
            continue
        if proof is None:
            why = why or f"g{run.number}: the node read nothing of it"
            continue
        generations.judged(tx, instance.id, proof)
        if not isinstance(proof, Proven):
            why = why or f"g{run.number}: {proof.why}"
    return why


def summary(proofs: Sequence[Proof]) -> dict[str, Json]:
    """Write the evidence of an end as the history keeps it: a line for each run."""
    return {
        f"g{proof.evidence.generation}": {
            "judgement": generations.word(proof),
            "because": proof.by if isinstance(proof, Proven) else proof.why,
            "how": proof.evidence.how,
            "exit_status": proof.evidence.exit_status,
            "cgroup_inode": proof.evidence.cgroup_inode,
            "boot_id": proof.evidence.boot_id,
        }
        for proof in proofs
    }


def proven_stopped(tx: WriteTx, instance: Instance, proofs: Sequence[Proof]) -> None:
    """Walk a copy that lived, or was being stopped, to `stopped`, by the proof."""
    way = walk(instance.state, State.STOPPED)
    assert not isinstance(way, IllegalTransition), way
    instances.advance(tx, instance, way, "proven: no process of it is left", summary(proofs))
