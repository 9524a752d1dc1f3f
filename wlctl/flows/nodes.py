"""Add nodes to the fleet and look at them again: contact first, record after."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from wlctl.errors import ForeignNode, NameTaken, NodeUnfit, UsageError, WlctlError
from wlctl.flows import gate
from wlctl.flows.runtime import Runtime
from wlctl.ledger import nodes
from wlctl.model.actions import NodeFacts, Refused
from wlctl.model.facts import Facts
from wlctl.model.ids import NodeName, is_checked_id
from wlctl.model.node import Address, Liveness, Node, Tier, TransportKind
from wlctl.model.policy import Action

PARALLEL_CONTACTS = 8
"""More threads than this only wait for each other: most of a contact is the node's own time."""


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
        NameTaken: The fleet has a node of this name, or this machine under another.
        NodeUnfit: The machine lacks something; nothing was recorded.
        Unreachable: It could not be looked at.
        UsageError: `name` cannot be a node's name.
    """
    if not is_checked_id(name):
        raise UsageError(
            f"{name} cannot be the name of a node",
            hint="use lower-case letters, digits, and . _ - after the first",
        )
    gate.require(rt, Action.NODE_ADD, name)
    with rt.ledger.read() as tx:
        if any(node.name == name for node in nodes.ls(tx)):
            raise NameTaken(f"there is a node {name} already", hint="`wlctl node ls` lists them")
    if address.transport is TransportKind.SSH:
        address = _with_host_key(rt, address, accept_key, known_hosts)
    found = _look(rt, address)
    if found.missing:
        raise NodeUnfit(
            f"{name} lacks {', '.join(found.missing)}",
            hint="install what is missing there (Debian: util-linux, coreutils) and add it again",
        )
    now_ms = rt.now_ms()
    node = Node(
        name=NodeName(name),
        address=address,
        tier=tier,
        liveness=Liveness.ALIVE,
        cordoned=False,
        node_id=found.node_id,
        machine_id=found.machine_id,
        boot_id=found.boot_id,
        failed_contacts=0,
        added_at_ms=now_ms,
        seen_at_ms=now_ms,
        facts=_facts(rt, found, seq=1, now_ms=now_ms),
    )
    with gate.permitted(rt, Action.NODE_ADD, name) as tx:
        nodes.add(tx, node)
    return node


def ls(rt: Runtime) -> list[Node]:
    """Return the fleet, ascending by name."""
    with rt.ledger.read() as tx:
        return nodes.ls(tx)


def probe(rt: Runtime, names: Iterable[str]) -> list[Contact]:
    """Look at the nodes called `names` now, all at once, and record what each shows.

    Raises:
        UnknownName: One of them is not in the fleet; nothing was contacted.
    """
    with rt.ledger.read() as tx:
        wanted = [nodes.get(tx, name) for name in names]
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
    with ThreadPoolExecutor(max_workers=min(PARALLEL_CONTACTS, len(wanted))) as pool:
        contacts = list(pool.map(lambda node: _contact(rt, node), wanted))
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        for position, each in enumerate(contacts):
            if each.facts is not None:
                numbered = nodes.record_contact(tx, each.node, each.facts)
                contacts[position] = replace(each, facts=numbered)
            elif each.failure is not None:
                nodes.record_silence(tx, each.node, each.failure.code)
    return contacts


def _contact(rt: Runtime, node: Node) -> Contact:
    try:
        found = _look(rt, node.address)
        check_identity(node, found.node_id)
    except WlctlError as failure:
        return Contact(node.name, None, failure)
    return Contact(node.name, _facts(rt, found, seq=0, now_ms=rt.now_ms()), None)


def check_identity(node: Node, node_id: str) -> None:
    """Make sure that what answered is the node that was added.

    Raises:
        ForeignNode: It is not.
    """
    if node_id != node.node_id:
        raise ForeignNode(
            f"{node.name} answers as another node ({node_id[:8]}, was {node.node_id[:8]})",
            hint="its state directory was lost or another machine has its address; "
            "if it was replaced on purpose, add it under another name",
        )


def _look(rt: Runtime, address: Address) -> NodeFacts:
    with rt.connect(address) as session:
        found = session.facts(rt.ledger.installation)
    if isinstance(found, Refused):
        raise NodeUnfit(f"the node refuses to be looked at: {found.detail} ({found.code.value})")
    return found


def _facts(rt: Runtime, found: NodeFacts, *, seq: int, now_ms: int) -> Facts:
    ttl_ms = int(rt.settings.facts_ttl_s * 1000)
    return found.as_facts(seq=seq, probed_at_ms=now_ms, ttl_ms=ttl_ms)


def _with_host_key(
    rt: Runtime,
    address: Address,
    accept_key: Callable[[str], None],
    known_hosts: Path | None,
) -> Address:
    shown, fingerprint = rt.scan_host_key(address, known_hosts)
    accept_key(fingerprint)
    return replace(address, host_key=shown)
