"""End a copy also with a ledger that is behind its node: an old one must still be able to stop."""

from contextlib import suppress

from wlctl.errors import LedgerForked, LedgerRolledBack, WlctlError
from wlctl.flows import looking
from wlctl.flows.runtime import Runtime
from wlctl.flows.witnesses import Watch
from wlctl.ledger import generations, instances, nodes, operations, witnesses
from wlctl.model.instance import Instance

VERB = "catch-up"


def catch_up(rt: Runtime, instance: Instance) -> bool:
    """Let the next operation on a copy be newer than any that its node has accepted.

    Only for a ledger that is doubted, or is found to be behind by this look: with any other, a
    node that accepted something newer has accepted it of this very ledger.

    Returns:
        Whether the next operation may be accepted now.
    """
    with rt.ledger.read() as tx:
        node = nodes.get(tx, instance.node)
    try:
        with rt.connect(node.address) as session:
            found = looking.look(rt, session, node)
            with suppress(LedgerRolledBack, LedgerForked):
                Watch(rt).check(session, node, found.status.checkpoint)
    except WlctlError:
        return False
    status = found.of(instance.id)
    if status is None or status.number is None:
        return False
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        if witnesses.doubt_of(tx) is None:
            return False
        known = {run.number for run in generations.of_instance(tx, instance.id)}
        for run in status.generations:
            if run.number not in known:
                generations.intend(tx, instance.id, run.number)
        newest = max([instance.generation, *(run.number for run in status.generations)])
        instances.change(tx, instance.id, generation=newest)
        return operations.skip_to(tx, instance.id, status.number, VERB)
