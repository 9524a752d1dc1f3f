"""Is there another copy of the same order, beside which a copy must not be started?"""

from collections.abc import Collection

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


def left_by(tx: ReadTx, names: Collection[str]) -> list[Instance]:
    """Give what stood in for copies that had one of these names and are closed, and may run."""
    left = [one for one in instances.standing_in(tx) if one.name in names]
    return [
        one
        for one in left
        if one.replaces != one.id and instances.holder_of(tx, one.name) is None and may_run(tx, one)
    ]


def may_run(tx: ReadTx, instance: Instance) -> bool:
    """Answer whether something of a current copy may run, as far as anybody knows.

    It may until all its runs are proven gone, or somebody vouched for its machine.
    """
    if instance.state is State.LOST and _is_attested_dead(tx, instance):
        return False
    if instance.unsettled or instance.state not in _AT_REST:
        return True
    return not all(run.is_gone for run in generations.of_instance(tx, instance.id))


def _is_attested_dead(tx: ReadTx, instance: Instance) -> bool:
    node = nodes.get(tx, instance.node)
    return node.attested_dead_at_ms is not None or is_replaced_and_attested(tx, instance)


def is_replaced(tx: ReadTx, instance: Instance) -> bool:
    """Answer whether another machine has its node's name by now, and nobody vouched for its own.

    Whatever that one shows, and that it was started or fell silent, says nothing about this copy.
    """
    is_elsewhere = nodes.get(tx, instance.node).was_another_at(instance.created_at_ms)
    return is_elsewhere and instances.is_holding(tx, instance.id)


def is_replaced_and_attested(tx: ReadTx, instance: Instance) -> bool:
    """Answer whether its machine was replaced, and an operator vouched that it runs nothing."""
    is_elsewhere = nodes.get(tx, instance.node).was_another_at(instance.created_at_ms)
    return is_elsewhere and not instances.is_holding(tx, instance.id)
