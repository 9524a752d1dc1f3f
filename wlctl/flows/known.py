"""What the ledger has of every copy, read once for a whole pass: who is well needs nothing more."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from wlctl.flows import recover, staged
from wlctl.flows.leasing import Leases
from wlctl.flows.looking import Look
from wlctl.flows.mirror import changes
from wlctl.ledger import generations, instances, operations, troubles
from wlctl.ledger.store import ReadTx
from wlctl.lifecycle import restart
from wlctl.lifecycle import seen as judging
from wlctl.lifecycle.machine import LIVE
from wlctl.lifecycle.table import Act, Case, Listing, decide
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Liveness
from wlctl.model.workload import Kind


@dataclass(frozen=True, slots=True)
class Known:
    """The copies of a fleet.

    Attributes:
        here: By node; those whose place was taken first, and all that are current.
        busy: Ids of which an operation is open, a trouble kept, or another copy of their order
            known, and which hold something though they are stopped: for these more is to be read.
        boots: Under which the newest run of each was launched; None where nobody told.
        leases: Time to live of the lease of each that has one and may live.
    """

    here: Mapping[NodeName, tuple[Instance, ...]]
    busy: frozenset[str]
    boots: Mapping[InstanceId, str | None]
    leases: Mapping[InstanceId, int]

    def leases_on(self, node: NodeName) -> Leases:
        """List the copies on a node that may live and have a lease."""
        here = self.here.get(node, ())
        return [(one, self.leases[one.id]) for one in here if one.id in self.leases]


def read(tx: ReadTx) -> Known:
    """Read all of it; each part is one query."""
    here: defaultdict[NodeName, list[Instance]] = defaultdict(list)
    current = instances.current(tx)
    for one in [*instances.rescheduled(tx), *current]:
        here[one.node].append(one)
    return Known(
        here={name: tuple(copies) for name, copies in here.items()},
        busy=frozenset(
            {holder.operation.scope for holder in operations.holders(tx)}
            | troubles.ls(tx).keys()
            | instances.holding_though_stopped(tx)
            | instances.of_shared_orders(tx)
        ),
        boots=generations.newest_boots(tx),
        leases=staged.leases_of(tx, [one for one in current if one.state in LIVE]),
    )


def is_well(known: Known, instance: Instance, look: Look) -> bool:
    """Answer whether nothing is to be done about a copy, nothing to be written, nothing wrong.

    It may say no where that is so; then whoever asks reads more, and finds the same.
    """
    if instance.id in known.busy or recover.is_unfinished(instance):
        return False
    if instance.state is State.FAILED and instance.desired is Desired.RUNNING:
        return False
    if restart.is_stuck(instance, look.at_ms):
        return False
    status = look.of(instance.id)
    if status is None or changes(instance, judging.judge(instance, status, twice=look.twice)):
        return False
    boot_id = known.boots.get(instance.id, look.status.boot_id)
    if boot_id is None:
        return False
    case = Case(
        state=instance.state,
        desired=instance.desired,
        node=Liveness.ALIVE,
        listing=Listing.LISTED,
        same_boot=boot_id == look.status.boot_id,
        runs_once=instance.kind is not Kind.SERVICE,
    )
    return decide(case) is Act.NOTHING
