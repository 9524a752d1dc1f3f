"""Is there another copy of the same order, beside which a copy must not be started?"""

from wlctl.ledger import generations, instances, nodes
from wlctl.ledger.store import ReadTx
from wlctl.model.instance import CLOSED, Instance, State

_AT_REST = frozenset({State.LOADED, State.STOPPED, State.FINISHED, State.FAILED})


def of(tx: ReadTx, instance: Instance) -> Instance | None:
    """Give a copy that has, or is being given, the place of `instance`, and may run; None for none.

    A copy that stands in for a lost one may run beside it: that one was lost.
    """
    if instance.replaces == instance.id:
        others = instances.others_of_order(tx, instance.id)
        return next((one for one in others if one.replaces is None), None)
    if instance.replaces is not None:
        old = instances.get(tx, instance.replaces)
        return None if old.state in CLOSED or old.state is State.LOST else old
    return standing_in(tx, instance)


def standing_in(tx: ReadTx, instance: Instance) -> Instance | None:
    """Give the copy that is to take the place of `instance`, if there is one and it may run."""
    for one in instances.others_of_order(tx, instance.id):
        if one.replaces == instance.id and may_run(tx, one):
            return one
    return None


def may_run(tx: ReadTx, instance: Instance) -> bool:
    """Answer whether something of a copy may run, as far as anybody has proven or vouched for."""
    if instance.state in CLOSED:
        return instance.state is State.RESCHEDULED
    if instance.state is State.LOST and _is_attested_dead(tx, instance):
        return False
    if instance.unsettled or instance.state not in _AT_REST:
        return True
    return not all(run.is_gone for run in generations.of_instance(tx, instance.id))


def _is_attested_dead(tx: ReadTx, instance: Instance) -> bool:
    return nodes.get(tx, instance.node).attested_dead_at_ms is not None
