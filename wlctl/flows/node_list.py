"""Add many nodes at once: keys first, then questions, then a look at each; each fails alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from wlctl.errors import HostKeyChanged, NameTaken, WlctlError
from wlctl.flows import fanout, gate
from wlctl.flows import nodes as fleet
from wlctl.flows.runtime import Runtime
from wlctl.ledger import nodes
from wlctl.model.facts import Capability
from wlctl.model.ids import NodeName
from wlctl.model.node import Address, Node, Tier, TransportKind
from wlctl.model.package import fingerprint
from wlctl.model.policy import Action


@dataclass(frozen=True, slots=True)
class Wanted:
    """One machine to add.

    Attributes:
        address: Without a host key.
        fingerprint: `SHA256:…` of the key it must show; empty to ask.
        claims: Labels and capabilities that the operator says it has.
    """

    name: str
    address: Address
    tier: Tier = Tier.PAIRED
    fingerprint: str = ""
    claims: tuple[Capability, ...] = ()


@dataclass(frozen=True, slots=True)
class Added:
    """What came of one.

    Attributes:
        node: As recorded; None when it failed.
        failure: Why it failed; None when it did not.
        already: It was in the fleet under this name and address; nothing was done.
    """

    wanted: Wanted
    node: Node | None = None
    failure: WlctlError | None = None
    already: bool = False


def add_all(
    rt: Runtime, listed: Sequence[Wanted], *, accept: Callable[[Wanted, str], None]
) -> list[Added]:
    """Add every machine that is listed; the order of the answer is that of the list.

    Args:
        listed: Names are well-formed, and none comes twice.
        accept: Called one after another with each fingerprint that was not given; raises to refuse
            that one.

    Raises:
        GateDenied: Whoever runs this may not add nodes; nothing was contacted.
    """
    gate.require(rt, Action.NODE_ADD, f"{len(listed)} nodes")
    _ = rt.ledger, rt.home  # opened here once, not by many threads at once
    with rt.ledger.read() as tx:
        known = {node.name: node for node in nodes.ls(tx)}
    done = [_known(one, known.get(NodeName(one.name))) for one in listed]
    done = _for_each_left(done, partial(_keyed, rt))
    for position, one in enumerate(done):
        if _is_left(one):
            done[position] = _alone(one.wanted, partial(_accepted, accept))
    done = _for_each_left(done, partial(_met, rt))
    return [_recorded(rt, one) for one in done]


def foresee(rt: Runtime, listed: Sequence[Wanted]) -> list[Added]:
    """Say of every machine that is listed what the ledger alone can tell; nothing is contacted.

    Where there is neither a node nor a failure, it would be added.

    Raises:
        GateDenied: Whoever runs this may not add nodes; that is not chained.
    """
    with rt.ledger.read() as tx:
        denial = gate.foreseen(rt, tx, Action.NODE_ADD, f"{len(listed)} nodes")
        known = {node.name: node for node in nodes.ls(tx)}
    if denial is not None:
        raise denial
    return [_known(one, known.get(NodeName(one.name))) for one in listed]


def _known(wanted: Wanted, node: Node | None) -> Added:
    if node is None:
        return Added(wanted)
    if replace(node.address, host_key="", enforced=False) == wanted.address:
        return Added(wanted, node, already=True)
    taken = NameTaken(
        f"there is a node {wanted.name} already, at another address",
        hint="`wlctl node ls` lists them",
    )
    return Added(wanted, failure=taken)


def _is_left(one: Added) -> bool:
    return one.failure is None and not one.already


def _for_each_left(done: list[Added], work: Callable[[Wanted], Added]) -> list[Added]:
    left = [position for position, one in enumerate(done) if _is_left(one)]
    results = fanout.each([done[at].wanted for at in left], lambda one: _alone(one, work))
    after = list(done)
    for position, result in results:
        after[left[position]] = result
    return after


def _alone(wanted: Wanted, work: Callable[[Wanted], Added]) -> Added:
    try:
        return work(wanted)
    except WlctlError as failure:
        return Added(wanted, failure=failure)


def _keyed(rt: Runtime, wanted: Wanted) -> Added:
    """Ask a machine for its host key, and keep it with the address."""
    address = fleet.with_host_key(rt, wanted.address, partial(_check, wanted))
    return Added(replace(wanted, address=address))


def _check(wanted: Wanted, shown: str) -> None:
    if wanted.fingerprint and shown != wanted.fingerprint:
        raise HostKeyChanged(
            f"{wanted.name} shows the host key {shown}, not {wanted.fingerprint}",
            hint="find out which is right before you trust it",
        )


def _accepted(accept: Callable[[Wanted, str], None], wanted: Wanted) -> Added:
    if wanted.address.transport is TransportKind.SSH and not wanted.fingerprint:
        accept(wanted, fingerprint(wanted.address.host_key))
    return Added(wanted)


def _met(rt: Runtime, wanted: Wanted) -> Added:
    return Added(wanted, fleet.meet(rt, wanted.name, wanted.address, wanted.tier))


def _recorded(rt: Runtime, one: Added) -> Added:
    if one.node is None or one.already:
        return one
    try:
        fleet.record(rt, one.node, one.wanted.claims)
    except WlctlError as failure:
        return Added(one.wanted, failure=failure)
    return one
