"""Add nodes to the fleet and look at them again: contact first, record after."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from wlctl import signing
from wlctl.errors import (
    AuthFailed,
    DoorRefused,
    ForeignNode,
    NameTaken,
    NodeUnfit,
    ShellFailed,
    TwoMachines,
    Unreachable,
    UsageError,
    WlctlError,
)
from wlctl.flows import fanout, gate
from wlctl.flows.runtime import Runtime
from wlctl.ledger import instances, nodes, sayings
from wlctl.ledger.store import ReadTx
from wlctl.lifecycle.identity import Stranger, judge_identity
from wlctl.model.actions import Refused
from wlctl.model.facts import Capability, Facts
from wlctl.model.ids import InstanceId, NodeName, is_checked_id
from wlctl.model.node import Address, Enforced, Liveness, Node, Tier, TransportKind
from wlctl.model.policy import Action

RECORD_EVERY_S = 1.0
"""What was seen is written down about so often while more comes, so an interrupt loses little."""


@dataclass(frozen=True, slots=True)
class Contact:
    """What came of one contact.

    Attributes:
        facts: As recorded; None when it failed.
        failure: Why it failed; None when it did not.
    """

    node: NodeName
    facts: Facts | None
    failure: WlctlError | None


def add(
    rt: Runtime,
    name: str,
    address: Address,
    tier: Tier,
    *,
    accept_key: Callable[[str], None],
    known_hosts: Path | None = None,
) -> Node:
    """Add the machine at `address` to the fleet, after looking at it once.

    Args:
        address: Without a host key; the one that it shows is recorded when `accept_key` agrees.
        accept_key: Called with the fingerprint of the host key; raises to refuse it.
        known_hosts: A file that must know that key.

    Raises:
        GateDenied: Whoever runs this may not add nodes; the machine was not contacted.
        GateDenied: Whoever runs this may not add nodes.
        NameTaken: The fleet has a node of this name, or this machine under another.
        NodeUnfit: The machine lacks something; nothing was recorded.
        Unreachable: It could not be looked at.
        UsageError: `name` cannot be a node's name.
    """
    gate.require(rt, Action.NODE_ADD, name)
    check_name(rt, name)
    node = meet(rt, name, with_host_key(rt, address, accept_key, known_hosts), tier)
    record(rt, node)
    return node


def check_name(rt: Runtime, name: str) -> None:
    """Make sure that a node may be called `name`.

    Raises:
        NameTaken: The fleet has a node of this name.
        UsageError: `name` cannot be a node's name.
    """
    if not is_checked_id(name):
        raise UsageError(
            f"{name} cannot be the name of a node",
            hint="use lower-case letters, digits, and . _ - after the first",
        )
    with rt.ledger.read() as tx:
        if any(node.name == name for node in nodes.ls(tx)):
            raise NameTaken(f"there is a node {name} already", hint="`wlctl node ls` lists them")


def meet(rt: Runtime, name: str, address: Address, tier: Tier) -> Node:
    """Look at a machine for the first time; nothing is recorded.

    Raises:
        NodeUnfit: It lacks something, or refuses.
        Unreachable: It could not be looked at.
    """
    address, facts = look_either_way(rt, address)
    check_tools(name, facts)
    return Node(
        name=NodeName(name),
        address=address,
        tier=tier,
        liveness=Liveness.ALIVE,
        cordoned=False,
        node_id=facts.node_id,
        machine_id=facts.machine_id,
        boot_id=facts.boot_id,
        failed_contacts=0,
        added_at_ms=facts.probed_at_ms,
        seen_at_ms=facts.probed_at_ms,
        facts=replace(facts, seq=1),
        enforced=Enforced() if address.enforced else None,
    )


def record(rt: Runtime, node: Node, claims: tuple[Capability, ...] = ()) -> None:
    """Write down a node that was met, and what is claimed of it.

    Raises:
        NameTaken: The fleet has a node of this name, or this machine under another; or had it
            under another, and it still has copies from then.
    """
    with gate.permitted(rt, Action.NODE_ADD, node.name) as tx:
        _refuse_other_name(tx, node)
        nodes.add(tx, node)
        if claims:
            sayings.say(tx, node.name, claims=claims)


def _refuse_other_name(tx: ReadTx, node: Node) -> None:
    """Take a machine that still has copies of ours by the name that they know it by.

    Under another name nobody would end them.
    """
    there = [InstanceId(id_) for id_ in node.facts.instances] if node.facts is not None else []
    before = {one.node for one in instances.of_ids(tx, there)} - {node.name}
    if before:
        was = min(before)
        raise NameTaken(
            f"this machine has copies from when it was {was}",
            hint=f"add it as {was}, and the next `wlctl reconcile` ends what should not be there",
        )


def check_tools(name: str, facts: Facts) -> None:
    """Make sure that a machine has what a node needs.

    Raises:
        NodeUnfit: It lacks something.
    """
    if facts.missing:
        raise NodeUnfit(
            f"{name} lacks {', '.join(facts.missing)}",
            hint="install what is missing there (Debian: util-linux, coreutils) and add it again",
        )


def key_not_let_in(rt: Runtime, node: Node) -> str:
    """Give the public key that a node has yet to let in; empty where it lets one of ours in.

    It is tried with keys, whatever was logged in with before.
    """
    rt.passwords = None
    try:
        look(rt, node.address)
    except (Unreachable, NodeUnfit) as failure:
        return signing.public_key(rt.home.ssh_key) if isinstance(failure, AuthFailed) else ""
    return ""


def get(rt: Runtime, name: str) -> Node:
    """Return the node called `name`.

    Raises:
        UnknownName: There is none.
    """
    with rt.ledger.read() as tx:
        return nodes.get(tx, name)


def ls(rt: Runtime) -> list[Node]:
    """Return the fleet, ascending by name."""
    with rt.ledger.read() as tx:
        return nodes.ls(tx)


def probe(rt: Runtime, names: Iterable[str] | None) -> list[Contact]:
    """Look at the nodes called `names` now, all at once, and record what each shows.

    Args:
        names: None for every node.

    Raises:
        UnknownName: One of them is not in the fleet; nothing was contacted.
    """
    with rt.ledger.read() as tx:
        fleet = nodes.ls(tx) if names is None else [nodes.get(tx, name) for name in names]
    wanted = list({node.name: node for node in fleet}.values())
    return contact(rt, wanted)


def refresh(rt: Runtime) -> list[Contact]:
    """Look again at every node whose facts have run out, or that was silent when asked last.

    Those known to be dead are left alone: they would only cost the time it takes to give up.
    """
    with rt.ledger.read() as tx:
        fleet = nodes.ls(tx)
    now_ms = rt.now_ms()
    return contact(
        rt,
        [
            node
            for node in fleet
            if node.liveness is not Liveness.DEAD
            and (
                node.liveness is not Liveness.ALIVE
                or node.facts is None
                or node.facts.expires_at_ms <= now_ms
            )
        ],
    )


def contact(rt: Runtime, wanted: list[Node]) -> list[Contact]:
    """Look at each of `wanted`; each fails alone. The order of the answer is theirs."""
    if not wanted:
        return []
    _ = rt.ledger, rt.home  # opened here once, not by many threads at once
    found: dict[int, Contact] = {}
    fresh: dict[int, Contact] = {}
    recorded_at_s = time.monotonic()
    try:
        for position, one in fanout.each(wanted, partial(_contact, rt)):
            fresh[position] = one
            if time.monotonic() - recorded_at_s >= RECORD_EVERY_S:
                found |= _record(rt, fresh)
                fresh = {}
                recorded_at_s = time.monotonic()
    finally:
        found |= _record(rt, fresh)
    return [found[position] for position in range(len(wanted))]


def _record(rt: Runtime, contacts: dict[int, Contact]) -> dict[int, Contact]:
    """Write down what came of contacts, in one transaction."""
    if not contacts:
        return {}
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        seen = {each.node: each.facts for each in contacts.values() if each.facts is not None}
        numbered = nodes.record_contacts(tx, seen)
        for each in contacts.values():
            if each.failure is not None:
                nodes.record_silence(tx, each.node, each.failure.code)
    return {
        position: replace(each, facts=numbered.get(each.node))
        for position, each in contacts.items()
    }


def _contact(rt: Runtime, node: Node) -> Contact:
    try:
        facts = look(rt, node.address)
        recognise(node, facts)
    except WlctlError as failure:
        return Contact(node.name, None, failure)
    return Contact(node.name, facts, None)


def check_identity(node: Node, node_id: str) -> None:
    """Make sure that what answered is the node that was added.

    Raises:
        ForeignNode: It is not.
    """
    if node_id != node.node_id:
        raise _foreign(node, node_id, "its state directory was lost or another machine answers")


def check_placed_there(node: Node, placed_at_ms: int) -> None:
    """Make sure that what was placed on a node then is on the machine that has its name now.

    Raises:
        ForeignNode: The name has passed to another machine since: its answer would prove nothing.
    """
    if node.was_another_at(placed_at_ms):
        raise ForeignNode(
            f"it was placed on the machine that was {node.name} before it was replaced",
            hint=f"`wlctl node attest-dead {node.name} --replaced` releases what it held there",
        )


def recognise(node: Node, facts: Facts) -> None:
    """Believe an answer only when it is the node's.

    Raises:
        ForeignNode, TwoMachines: It is not.
    """
    stranger = judge_identity(
        node,
        node_id=facts.node_id,
        machine_id=facts.machine_id,
        boot_id=facts.boot_id,
        uptime_ms=facts.uptime_ms,
        now_ms=facts.probed_at_ms,
    )
    match stranger:
        case None:
            return
        case Stranger.EMPTIED:
            why = f"its state directory {facts.state_dir} was emptied, or its disk is not mounted"
            raise _foreign(node, facts.node_id, why)
        case Stranger.REPLACED:
            raise _foreign(node, facts.node_id, "another machine answers at its address")
        case Stranger.TWIN:
            raise TwoMachines(
                f"{node.name} answers under another boot that was under way when it was last seen",
                hint="turn off the machine that should not be there and start the other one anew",
            )


def _foreign(node: Node, node_id: str, why: str) -> ForeignNode:
    return ForeignNode(
        f"{node.name} answers as another node ({node_id[:8]}, was {node.node_id[:8]}): {why}",
        hint=f"bring it back, or `wlctl node rekey {node.name}` when that is meant",
    )


def look(rt: Runtime, address: Address) -> Facts:
    """Look at a machine once, whoever it is.

    Raises:
        NodeUnfit: It refuses.
        Unreachable: It cannot be looked at.
    """
    with rt.connect(address) as session:
        asked_at_ms = rt.now_ms()
        found = session.facts(rt.ledger.installation)
        probed_at_ms = rt.now_ms()
    if isinstance(found, Refused):
        raise NodeUnfit(f"the node refuses to be looked at: {found.detail} ({found.code.value})")
    return found.as_facts(
        seq=0,
        probed_at_ms=probed_at_ms,
        asked_at_ms=asked_at_ms,
        ttl_ms=int(rt.settings.facts_ttl_s * 1000),
    )


def look_either_way(rt: Runtime, address: Address) -> tuple[Address, Facts]:
    """Look at a machine that may have become enforced, or may be no longer.

    Returns:
        The address with the way that leads there, and what was seen.

    Raises:
        NodeUnfit, Unreachable: As `look`.
    """
    try:
        return address, look(rt, address)
    except (DoorRefused, ShellFailed) as failure:
        if address.transport is TransportKind.LOCAL:
            raise
        other = replace(address, enforced=not address.enforced)
        try:
            return other, look(rt, other)
        except (Unreachable, NodeUnfit):
            raise failure from None


def with_host_key(
    rt: Runtime,
    address: Address,
    accept_key: Callable[[str], None],
    known_hosts: Path | None = None,
) -> Address:
    """Give an address the host key that the machine shows, once `accept_key` agrees to it.

    Raises:
        Unreachable: It shows none, or not the one that `known_hosts` has.
    """
    if address.transport is TransportKind.LOCAL:
        return address
    shown, named = rt.scan_host_key(address, known_hosts)
    accept_key(named)
    return replace(address, host_key=shown)
