"""What does a node list as ours that the ledger does not know there?"""

from collections.abc import Iterator, Mapping

from wlctl.flows.known import Known
from wlctl.flows.looking import Look
from wlctl.flows.runtime import Runtime
from wlctl.ledger import instances
from wlctl.model.alert import Alert, AlertKind
from wlctl.model.ids import InstanceId, NodeName

NAMED = 5
"""So many are named of those on one node."""


def alerts_of(rt: Runtime, known: Known, looks: Mapping[NodeName, Look]) -> list[Alert]:
    """Tell of every node that has such copies: nobody ends them, for nobody asked for them here.

    Args:
        known: As it was before the looks; what came since is looked up.
    """
    return [
        Alert(AlertKind.ORPHAN, node, _reason(strange))
        for node, look in looks.items()
        if (strange := sorted(_strange(rt, known, node, look)))
    ]


def _strange(rt: Runtime, known: Known, node: NodeName, look: Look) -> Iterator[InstanceId]:
    here = {one.id for one in known.here.get(node, ())}
    listed = {one.instance for one in look.status.instances} - here
    if not listed:
        return
    with rt.ledger.read() as tx:
        placed_here = {one.id for one in instances.of_ids(tx, listed) if one.node == node}
    yield from listed - placed_here


def _reason(strange: list[InstanceId]) -> str:
    more = f" and {len(strange) - NAMED} more" if len(strange) > NAMED else ""
    named = ", ".join(strange[:NAMED]) + more
    return (
        f"it has {named}, unknown to the ledger there: `wlctl ledger rebuild` asks for what it is"
    )
