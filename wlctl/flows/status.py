"""How copies are: what the ledger says, what their nodes show, and where the two differ.

It changes nothing. What verbs do with what they see of a copy is `mirror`'s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from wlctl.errors import WlctlError
from wlctl.flows import fanout, looking
from wlctl.flows.listing import seen_at_ms
from wlctl.flows.looking import Look
from wlctl.flows.runtime import Runtime
from wlctl.ledger import generations, instances, nodes, troubles
from wlctl.ledger.generations import Generation
from wlctl.ledger.instances import Step
from wlctl.ledger.troubles import Trouble
from wlctl.lifecycle.differ import differences
from wlctl.model.actions import InstanceStatus
from wlctl.model.ids import NodeName
from wlctl.model.instance import Instance
from wlctl.model.node import Node


@dataclass(frozen=True, slots=True)
class Status:
    """One copy.

    Attributes:
        run: The newest run as the ledger has it; None before the first.
        seen: What its node showed now; None where it was not asked, did not answer, or does not
            list it.
        at_ms: When that was; of the last contact with its node, where it was not seen now.
        failure: Why its node could not be asked; None where it answered, or was not to be asked.
        differences: Where ledger and node do not say the same.
        trouble: What is not as it should be about it, as the last pass found it.
    """

    instance: Instance
    run: Generation | None
    seen: InstanceStatus | None
    at_ms: int | None
    failure: WlctlError | None = None
    differences: tuple[str, ...] = ()
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True)
class _Asked:
    """What came of asking one node."""

    node: NodeName
    at_ms: int
    look: Look | None = None
    failure: WlctlError | None = None


def status(rt: Runtime, chosen: Sequence[Instance], *, stored: bool = False) -> list[Status]:
    """Ask the node of every copy how it is, all nodes at once; the order is that of `chosen`.

    Args:
        stored: Ask nobody: say what is known.
    """
    with rt.ledger.read() as tx:
        runs = {one.id: generations.of_instance(tx, one.id)[-1:] for one in chosen}
        wrong = troubles.ls(tx)
        contacts = nodes.contacts(tx)
        asked_for = () if stored else {one.node: nodes.get(tx, one.node) for one in chosen}.values()
    _ = rt.home  # opened here once, not by many threads at once
    asked = {one.node: one for _, one in fanout.each(list(asked_for), partial(_ask, rt))}
    found = (_status(one, next(iter(runs[one.id]), None), asked) for one in chosen)
    return [
        replace(
            one,
            trouble=wrong.get(one.instance.id),
            at_ms=one.at_ms
            or seen_at_ms(one.instance, *contacts.get(one.instance.node, (None, None))),
        )
        for one in found
    ]


def _ask(rt: Runtime, node: Node) -> _Asked:
    try:
        with rt.connect(node.address) as session:
            found = looking.look(rt, session, node)
    except WlctlError as failure:
        return _Asked(node.name, rt.now_ms(), failure=failure)
    return _Asked(node.name, rt.now_ms(), found)


def _status(instance: Instance, run: Generation | None, asked: Mapping[NodeName, _Asked]) -> Status:
    answer = asked.get(instance.node)
    if answer is None or answer.look is None:
        failure = None if answer is None else answer.failure
        return Status(instance, run, None, None, failure)
    seen = answer.look.of(instance.id)
    differ = differences(instance, seen, twice=answer.look.twice)
    return Status(instance, run, seen, answer.at_ms, differences=differ)


def history(rt: Runtime, instance: Instance) -> list[Step]:
    """Return every step of a copy's life, oldest first, with what was read that says so."""
    with rt.ledger.read() as tx:
        return list(instances.history(tx, instance.id))
