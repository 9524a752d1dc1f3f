"""Ask every node what it keeps of the chain, and say how the chain stands to all of it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from wlctl.errors import FalseWitness, ForeignNode, WlctlError
from wlctl.flows import fanout
from wlctl.flows.nodes import check_identity
from wlctl.flows.runtime import Runtime
from wlctl.flows.witnesses import error_of, is_signed, keep_doubt, verifiers
from wlctl.ledger import nodes, witnesses
from wlctl.lifecycle.witnesses import judge
from wlctl.model.actions import Refused
from wlctl.model.ids import NodeName
from wlctl.model.node import Node
from wlctl.model.upkeep import ChainPoint, Checkpoint
from wlctl.model.witness import DOUBTFUL, Standing


@dataclass(frozen=True, slots=True)
class Witnessed:
    """What one node says of the ledger.

    Attributes:
        standing: None where it could not be asked, or cannot be believed.
        newest: Of the checkpoints that it keeps, or the one that the chain does not have.
        checked: So many checkpoints were held against the chain.
        failure: Why there is no standing.
    """

    node: NodeName
    standing: Standing | None
    newest: ChainPoint | None = None
    checked: int = 0
    failure: WlctlError | None = None


def ask(rt: Runtime) -> list[Witnessed]:
    """Hold the chain to every checkpoint of every node; that it does not hold is kept.

    A node that cannot be asked says nothing, and one that keeps what this installation never signed
    speaks only against itself.
    """
    with rt.ledger.read() as tx:
        fleet = nodes.ls(tx)
    known = verifiers(rt)
    found = dict(fanout.each(fleet, partial(_ask, rt, known)))
    return [found[position] for position in range(len(fleet))]


def _ask(rt: Runtime, known: Collection[str], node: Node) -> Witnessed:
    try:
        with rt.connect(node.address) as session:
            answer = session.witness(rt.ledger.installation)
        if isinstance(answer, Refused):
            raise ForeignNode(f"{node.name} cannot read what it keeps: {answer.detail}")
        check_identity(node, answer.node_id)
        return _judge(rt, node, answer.checkpoints, known)
    except WlctlError as failure:
        return Witnessed(node.name, None, failure=failure)


def _judge(
    rt: Runtime, node: Node, kept: Sequence[Checkpoint], known: Collection[str]
) -> Witnessed:
    """Judge all that a node keeps, newest first: the first that the chain lacks is the answer."""
    if not kept:
        return Witnessed(node.name, Standing.NONE)
    newest = Standing.AGREES
    for position, one in enumerate(reversed(kept)):
        if not is_signed(rt, one, known):
            raise FalseWitness(
                f"{node.name} keeps a checkpoint of event {one.at.epoch}.{one.at.seq} that was "
                "never signed here"
            )
        with rt.ledger.read() as tx:
            standing = judge(witnesses.ours(tx, node, one.at), one.at)
        if standing in DOUBTFUL:
            keep_doubt(rt, node, one.at, DOUBTFUL[standing])
            failure = error_of(DOUBTFUL[standing])
            return Witnessed(node.name, standing, one.at, position + 1, failure)
        newest = standing if position == 0 else newest
    return Witnessed(node.name, newest, kept[-1].at, len(kept))
