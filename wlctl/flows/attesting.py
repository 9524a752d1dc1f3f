"""Take an operator's word that a machine runs nothing any more, and let go of what was held there.

It is the one way in which anything is released without a proof, so it is asked of the gate, says
what it releases before it does, and is chained.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from wlctl.errors import Busy, IllegalStep, UsageError, WlctlError
from wlctl.flows import gate, operating
from wlctl.flows import nodes as fleet
from wlctl.flows.runtime import Runtime
from wlctl.ledger import instances, nodes, operations
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.lifecycle.attested import after_attested
from wlctl.model.instance import Instance
from wlctl.model.node import Node
from wlctl.model.policy import Action

REASON = "its node was attested dead"


@dataclass(frozen=True, slots=True)
class Attested:
    """What came of it.

    Attributes:
        released: What was held there until now, as it is since, ascending by name.
    """

    node: Node
    released: tuple[Instance, ...]


def attest_dead(
    rt: Runtime, name: str, *, replaced: bool, accept: Callable[[Sequence[Instance]], None]
) -> Attested:
    """Record that the machine called `name` will not come back with what ran there.

    What was meant to run there is lost from then on, and can be placed elsewhere; what was to be
    unloaded is gone. What was to be stopped is still not proven stopped. All of it holds nothing
    any more. The word ends at the node's next answer.

    Args:
        replaced: Say it of the machine that had the name before the node was rekeyed.
        accept: Called with what will be released; raises to refuse.

    Raises:
        Busy: An operation on something there did not end in time; nothing was recorded.
        GateDenied, GateDeferred: Whoever runs this may not vouch for that; nothing was recorded.
        IllegalStep: It answers; nothing was recorded.
        UnknownName: There is no such node.
        UsageError: It was never rekeyed to another machine, so there is none from before.
    """
    with rt.ledger.read() as tx:
        node = nodes.get(tx, name)
        held = _there(tx, node, replaced=replaced)
    gate.require(rt, Action.ATTEST_DEAD, name, node=node)
    if replaced and node.rekeyed_at_ms is None:
        raise UsageError(
            f"{name} is the machine that it was from the beginning",
            hint=f"`wlctl node attest-dead {name}` vouches for that one",
        )
    if not replaced:
        _refuse_if_it_answers(rt, node)
    accept(held)
    with ExitStack() as turns:
        mine = [
            turns.enter_context(
                operations.turn(rt.ledger, one.id, timeout_s=rt.settings.busy_timeout_s)
            )
            for one in sorted(held, key=lambda one: one.id)
        ]
        with gate.permitted(rt, Action.ATTEST_DEAD, name, node=node) as tx:
            for turn in mine:
                operating.take_over(tx, turn, rt.new_token())
            _refuse_if_more(held, _there(tx, nodes.get(tx, name), replaced=replaced))
            ids = [one.id for one in held]
            for id_ in ids:
                _let_go(tx, instances.get(tx, id_))
            nodes.attest_dead(tx, node.name, replaced=replaced, released=ids)
            return Attested(nodes.get(tx, name), tuple(instances.get(tx, id_) for id_ in ids))


def _there(tx: ReadTx, node: Node, *, replaced: bool) -> tuple[Instance, ...]:
    """List what is placed or held on the machine, ascending by name."""
    ids = {hold.instance for hold in instances.holds(tx) if hold.node == node.name}
    found = {one.id: one for one in instances.of_ids(tx, ids)}
    found |= {one.id: one for one in instances.current(tx) if one.node == node.name}
    return tuple(
        one
        for one in sorted(found.values(), key=lambda one: (one.name, one.id))
        if node.was_another_at(one.created_at_ms) is replaced
    )


def _refuse_if_it_answers(rt: Runtime, node: Node) -> None:
    try:
        facts = fleet.look(rt, node.address)
        fleet.check_identity(node, facts.node_id)
    except WlctlError:
        return
    raise IllegalStep(
        f"{node.name} answers: what runs there can be stopped, and proven stopped",
        hint=f"`wlctl unload --node {node.name}`, or `wlctl ps` to see what it has",
    )


def _refuse_if_more(agreed: Sequence[Instance], there: Sequence[Instance]) -> None:
    more = {one.id for one in there} - {one.id for one in agreed}
    if more:
        raise Busy(
            f"something was placed there meanwhile: {', '.join(sorted(more))}",
            hint="look at what is there now, and vouch again",
        )


def _let_go(tx: WriteTx, instance: Instance) -> None:
    way = after_attested(instance.state, instance.desired)
    instances.advance(tx, instance, way, REASON, {"attested_dead": instance.node})
    instances.release(tx, instance.id)
    instances.change(tx, instance.id, unsettled=False, health="")
