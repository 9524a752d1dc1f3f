"""One look at everything of ours on a node; it changes nothing, and believes no stranger."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wlctl.errors import ForeignNode, TwoMachines
from wlctl.flows.nodes import check_identity
from wlctl.flows.runtime import Runtime
from wlctl.lifecycle.identity import Stranger, judge_identity
from wlctl.lifecycle.seen import current_of
from wlctl.model.actions import InstanceStatus, NodeStatus, Refused
from wlctl.model.generation import Liveliness
from wlctl.model.ids import InstanceId
from wlctl.model.node import Node

if TYPE_CHECKING:
    from wlctl.host.node import NodeSession

EXIT_WRITTEN_S = 0.05
"""A leader's exit is written by its waiter, a moment after it is gone."""


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a node showed.

    Attributes:
        at_ms: When it was received, by the controller's clock.
        twice: It was repeated, because a run had ended and nothing said how.
    """

    status: NodeStatus
    at_ms: int
    twice: bool = False

    def of(self, instance: InstanceId) -> InstanceStatus | None:
        """Give what was seen of one copy; None where the node does not list it."""
        return next((one for one in self.status.instances if one.instance == instance), None)


def look(rt: Runtime, session: "NodeSession", node: Node) -> Look:
    """Look at everything on a node once, and again where an exit was just about to be written.

    Raises:
        ForeignNode, TwoMachines: What answers is not the node that was added.
        Unreachable: It does not answer.
    """
    found = _look(rt, session, node)
    if not any(map(_ends_just_now, found.status.instances)):
        return found
    rt.sleep(EXIT_WRITTEN_S)
    return replace(_look(rt, session, node), twice=True)


def _ends_just_now(seen: InstanceStatus) -> bool:
    run = current_of(seen)
    return (
        run is not None
        and not run.closed
        and run.leader is Liveliness.GONE
        and run.exit_status is None
    )


def _look(rt: Runtime, session: "NodeSession", node: Node) -> Look:
    found = session.status(rt.ledger.installation)
    at_ms = rt.now_ms()
    if isinstance(found, Refused):
        raise ForeignNode(
            f"{node.name} has lost what it knew of this installation: {found.detail}",
            hint=f"`wlctl node probe {node.name}` says more",
        )
    check_identity(node, found.node_id)
    stranger = judge_identity(
        node,
        node_id=found.node_id,
        machine_id=node.machine_id,
        boot_id=found.boot_id,
        uptime_ms=found.uptime_ms,
        now_ms=at_ms,
    )
    if stranger is Stranger.TWIN:
        raise TwoMachines(
            f"{node.name} answers under another boot that was under way when it was last seen",
            hint="turn off the machine that should not be there and start the other one anew",
        )
    return Look(found, at_ms)
