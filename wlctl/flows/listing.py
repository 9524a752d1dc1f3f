"""What `ps` lists: the current copies as the ledger has them, and whether that is old news.

Nothing here asks a node.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from wlctl.flows.runtime import Runtime
from wlctl.ledger import generations, instances, nodes, passes, schedules, troubles
from wlctl.ledger.troubles import Trouble
from wlctl.model.generation import Containment
from wlctl.model.ids import NodeName
from wlctl.model.instance import Instance

LATELY_MS = 600_000
"""The window of a restart policy that says no other."""

OVERDUE_PASSES = 3
"""So many intervals without a pass of reconcile are more than a slow one."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of `ps`.

    Attributes:
        ports: Name to number, as the node gave them to the newest run.
        containment: Of the newest run; empty where there is none, or nobody has told.
        restarts_lately: How often its supervisor has begun it again within `LATELY_MS`.
        trouble: What is not as it should be about it, as the last pass found it.
        may_run_on: Nodes where a copy that it stands in for is not proven gone: at least once.
        due_at_ms: When an interval job runs next; None for what is on no schedule.
        seen_at_ms: Of the last contact with its node; None where there was none.
    """

    instance: Instance
    ports: tuple[tuple[str, int], ...]
    containment: str = ""
    restarts_lately: int = 0
    trouble: Trouble | None = None
    may_run_on: tuple[NodeName, ...] = ()
    due_at_ms: int | None = None
    seen_at_ms: int | None = None

    @property
    def confined(self) -> bool | None:
        """Whether the newest run is unable to leave; None where nobody has told."""
        return self.containment == Containment.ISOLATED.value if self.containment else None

    @property
    def restarts(self) -> int:
        """How often it was started again, by whomever."""
        return max(0, self.instance.generation - 1)


def ps(rt: Runtime, chosen: Sequence[Instance] | None = None) -> list[Listed]:
    """Return the current copies ascending by name, or those that were chosen, in their order."""
    with rt.ledger.read() as tx:
        ports, contained = generations.ports(tx), generations.containments(tx)
        lately = generations.restarts_since(tx, rt.now_ms() - LATELY_MS)
        due = schedules.ls(tx)
        listed = instances.current(tx) if chosen is None else chosen
        wrong, old = troubles.ls(tx), instances.rescheduled(tx)
        contacts = nodes.contacts(tx)
        return [
            Listed(
                one,
                ports.get(one.id, ()),
                contained.get(one.id, ""),
                lately.get(one.id, 0),
                wrong.get(one.id),
                tuple(other.node for other in old if other.name == one.name),
                due[one.id].due_at_ms if one.id in due else None,
                seen_at_ms(one, *contacts.get(one.node, (None, None))),
            )
            for one in listed
        ]


def seen_at_ms(
    instance: Instance, node_seen_at_ms: int | None, node_rekeyed_at_ms: int | None
) -> int | None:
    """Say when the machine that a copy was placed on was in contact last.

    A look that finds a copy as it was writes nothing of it, so what is kept of the copy itself is
    older. Contact with another machine, which has the name by now, does not count.
    """
    was_another = node_rekeyed_at_ms is not None and instance.created_at_ms <= node_rekeyed_at_ms
    known = [instance.seen_at_ms, None if was_another else node_seen_at_ms]
    return max((at_ms for at_ms in known if at_ms is not None), default=None)


@dataclass(frozen=True, slots=True)
class Overdue:
    """No pass of reconcile looked at the fleet for longer than it should.

    Attributes:
        last_at_ms: When the last one began; None where none ever did.
    """

    last_at_ms: int | None


def overdue(rt: Runtime, listed: Sequence[Listed] = ()) -> Overdue | None:
    """Answer whether passes of reconcile are missing.

    Args:
        listed: Where none ever ran, one is missing once any of these is as it is for so long.
    """
    now_ms, limit_ms = rt.now_ms(), OVERDUE_PASSES * rt.settings.reconcile_interval_s * 1000
    with rt.ledger.read() as tx:
        last_ms = passes.last_at_ms(tx)
    since_ms = min((one.instance.since_ms for one in listed), default=now_ms)
    waited_ms = now_ms - (since_ms if last_ms is None else last_ms)
    return Overdue(last_ms) if waited_ms > limit_ms else None
