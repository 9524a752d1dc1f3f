"""Is a copy proven gone? Its node is asked again, or what was stored is shown; nothing changes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wlctl.errors import ForeignNode, TwoMachines, Unreachable, WlctlError
from wlctl.flows import operating
from wlctl.flows.nodes import check_identity, check_placed_there
from wlctl.flows.runtime import Runtime
from wlctl.ledger import generations, nodes
from wlctl.ledger.generations import DISPROVEN, PROVEN, UNPROVEN, Generation, evidence_json
from wlctl.model.actions import Read, Refused
from wlctl.model.generation import Disproven, Proof
from wlctl.model.instance import Instance
from wlctl.model.node import Node


@dataclass(frozen=True, slots=True)
class RunProof:
    """How the end of one run stands.

    Attributes:
        judgement: `proven`, `disproven` or `unproven`.
        evidence: What was read and how it was judged; None where nothing ever was.
        at_ms: When; None where nothing ever was.
        is_stored: It was read then, not now.
    """

    number: int
    judgement: str
    evidence: Mapping[str, Any] | None
    at_ms: int | None
    is_stored: bool


@dataclass(frozen=True, slots=True)
class Proved:
    """How the end of a copy stands.

    Attributes:
        runs: Oldest first; none of a copy that was never started.
        failure: Why its node could not be asked; None where it was, or was not to be.
        detail: What the node said where it refused to read.
    """

    instance: Instance
    runs: tuple[RunProof, ...]
    failure: WlctlError | None = None
    detail: str = ""

    @property
    def judgement(self) -> str:
        """The word for all of it: one run that is not proven gone is enough."""
        words = {run.judgement for run in self.runs}
        return next((word for word in (DISPROVEN, UNPROVEN) if word in words), PROVEN)


def prove(rt: Runtime, instance: Instance, *, stored: bool = False) -> Proved:
    """Judge every run of a copy by what its node reads now; what was proven once stays so.

    Args:
        stored: Ask nobody: show what was read when it was asked last.
    """
    with rt.ledger.read() as tx:
        runs = generations.of_instance(tx, instance.id)
        node = nodes.get(tx, instance.node)
    kept = tuple(map(_stored, runs))
    if stored or not runs:
        return Proved(instance, kept)
    try:
        answer = _read(rt, instance, node)
    except (Unreachable, ForeignNode, TwoMachines) as failure:
        return Proved(instance, kept, failure)
    if isinstance(answer, Refused):
        return Proved(instance, kept, detail=f"{answer.detail} ({answer.code.value})")
    at_ms = rt.now_ms()
    proofs = operating.prove(node, instance, runs, answer.readings, at_ms)
    matched = operating.match(runs, proofs)
    judged = (_judged(run, proof, at_ms, pruned=answer.pruned) for run, proof in matched)
    return Proved(instance, tuple(judged))


def _read(rt: Runtime, instance: Instance, node: Node) -> Read | Refused:
    check_placed_there(node, instance.created_at_ms)
    with rt.connect(node.address) as session:
        answer = session.prove(rt.ledger.installation, instance.id)
    if not isinstance(answer, Refused):
        check_identity(node, answer.node_id)
    return answer


def _judged(run: Generation, proof: Proof | None, at_ms: int, *, pruned: int) -> RunProof:
    if not run.is_gone and operating.is_pruned(run, proof, pruned):
        told = {"judgement": PROVEN, "because": generations.PRUNED}
        return RunProof(run.number, PROVEN, told, at_ms, is_stored=False)
    if proof is None or (run.is_gone and not isinstance(proof, Disproven)):
        return _stored(run)
    return RunProof(
        run.number, generations.word(proof), evidence_json(proof), at_ms, is_stored=False
    )


def _stored(run: Generation) -> RunProof:
    judgement = run.proof or UNPROVEN
    return RunProof(run.number, judgement, run.evidence, run.proven_at_ms, is_stored=True)
