"""Measure nodes, and keep the figures beside what their probes see."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from wlctl.errors import NodeUnfit, WlctlError
from wlctl.flows import fanout
from wlctl.flows.nodes import check_identity
from wlctl.flows.runtime import Runtime
from wlctl.ledger import nodes, sayings
from wlctl.model.actions import Measured, Refused
from wlctl.model.facts import Capability
from wlctl.model.ids import NodeName
from wlctl.model.node import Node


@dataclass(frozen=True, slots=True)
class Measurement:
    """What came of measuring one node.

    Attributes:
        figures: `perf.*`, ascending by id; empty when it failed.
        failure: Why it failed; None when it did not.
    """

    node: NodeName
    figures: tuple[Capability, ...]
    failure: WlctlError | None


def measure(rt: Runtime, names: Iterable[str]) -> list[Measurement]:
    """Measure nodes, several at once; each fails alone. The order of the answer is that of `names`.

    Raises:
        UnknownName: One of them is not in the fleet; nothing was measured.
    """
    wanted = meant(rt, names)
    _ = rt.ledger, rt.home  # opened here once, not by many threads at once
    found = dict(fanout.each(wanted, partial(_measure, rt)))
    done = [found[position] for position in range(len(wanted))]
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        for each in done:
            if each.failure is None:
                sayings.measured(tx, each.node, each.figures)
    return done


def meant(rt: Runtime, names: Iterable[str]) -> list[Node]:
    """Find the nodes that `measure` would measure, each once.

    Raises:
        UnknownName: One of them is not in the fleet.
    """
    with rt.ledger.read() as tx:
        return list({node.name: node for node in (nodes.get(tx, one) for one in names)}.values())


def _measure(rt: Runtime, node: Node) -> Measurement:
    try:
        answer = _ask(rt, node)
    except WlctlError as failure:
        return Measurement(node.name, (), failure)
    return Measurement(node.name, answer.figures, None)


def _ask(rt: Runtime, node: Node) -> Measured:
    with rt.connect(node.address) as session:
        answer = session.measure(rt.ledger.installation)
    if isinstance(answer, Refused):
        raise NodeUnfit(f"the node refuses to be measured: {answer.detail} ({answer.code.value})")
    check_identity(node, answer.node_id)
    return answer
