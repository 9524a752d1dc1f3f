"""Gather all that the ledger knows of one node, for a person or a program to read."""

from dataclasses import dataclass

from wlctl.flows.node_changes import on_node
from wlctl.flows.runtime import Runtime
from wlctl.ledger import instances, nodes, sayings
from wlctl.ledger.sayings import Saying
from wlctl.ledger.store import ReadTx
from wlctl.lifecycle.oddity import Oddity, oddities
from wlctl.model.instance import Instance
from wlctl.model.node import Node
from wlctl.model.package import fingerprint


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One node at one moment.

    Attributes:
        fingerprint: Of its recorded host key; empty for this machine.
        said: Claims, labels and figures, ascending by id.
        instances: Current ones, ascending by name.
        held: Names of what holds something there, ascending; they may be gone from the list above.
        odd: Worst first.
        lists_are_current: What an enforced node goes by is what would be put there now; None where
            nothing was put there by this ledger.
    """

    node: Node
    now_ms: int
    fingerprint: str
    said: tuple[Saying, ...]
    instances: tuple[Instance, ...]
    held: tuple[str, ...]
    odd: tuple[Oddity, ...]
    lists_are_current: bool | None = None


def report(rt: Runtime, name: str) -> NodeReport:
    """Describe one node from the ledger; it is not contacted.

    Raises:
        UnknownName: There is no such node.
    """
    now_ms = rt.now_ms()
    with rt.ledger.read() as tx:
        node = nodes.get(tx, name)
        return NodeReport(
            node=node,
            now_ms=now_ms,
            fingerprint=fingerprint(node.address.host_key) if node.address.host_key else "",
            said=tuple(sayings.of_node(tx, node.name)),
            instances=tuple(one for one in instances.current(tx) if one.node == name),
            held=on_node(tx, node.name),
            odd=oddities(node, now_ms),
            lists_are_current=_are_current(tx, node, now_ms) if node.enforced else None,
        )


def _are_current(tx: ReadTx, node: Node, now_ms: int) -> bool:
    from wlctl.flows import enforce  # few nodes are, and it needs half of all there is

    return enforce.is_current(tx, node, now_ms)
