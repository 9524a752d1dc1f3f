"""Change what the ledger says of nodes: tier, labels, claims, cordon, another key, removal."""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from wlctl.errors import Busy, NodeInUse, NodeUnfit, UsageError
from wlctl.flows import gate, witnesses
from wlctl.flows import nodes as fleet
from wlctl.flows.runtime import Runtime
from wlctl.ledger import instances, nodes, sayings
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.lifecycle.machine import IllegalTransition, walk
from wlctl.model.actions import Cleaned, Refused
from wlctl.model.facts import Capability, Provenance
from wlctl.model.ids import NodeName
from wlctl.model.instance import Instance, State
from wlctl.model.node import Address, Node, Settles, Tier, TransportKind
from wlctl.model.policy import Action

NAMES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Words:
    """What an operator says of a node anew.

    Attributes:
        tier: None leaves it.
        settles: For how little, where something is started there; None leaves it.
        claims: Capabilities and labels; each replaces what was said under its id.
        withdrawn: Ids of claims and labels that no longer hold.
    """

    tier: Tier | None = None
    settles: Settles | None = None
    claims: tuple[Capability, ...] = ()
    withdrawn: tuple[str, ...] = ()


def say(rt: Runtime, name: str, words: Words) -> Node:
    """Record an operator's word on a node; the same word again changes nothing.

    Raises:
        GateDenied: Whoever runs this may not say how far a node is trusted, or that something may
            be started there without a cgroup.
        UnknownName: There is no such node, or nothing was said under an id to withdraw.
    """
    with rt.ledger.read() as tx:
        node = nodes.get(tx, name)
    with _permitted(rt, node, words) as tx:
        sayings.say(
            tx,
            node.name,
            tier=words.tier,
            settles=words.settles,
            claims=words.claims,
            withdrawn=words.withdrawn,
        )
        return nodes.get(tx, name)


def _permitted(rt: Runtime, node: Node, words: Words) -> AbstractContextManager[WriteTx]:
    """Open the transaction for words, once the gate has permitted what they change."""
    asked: list[tuple[Action, str]] = []
    if words.settles not in (None, node.settles):
        asked.append((Action.NODE_CONTAINMENT, f"{node.name} {words.settles.value}"))
    if words.tier not in (None, node.tier):
        asked.append((Action.NODE_TIER, f"{node.name} {words.tier.word}"))
    if not asked:
        return rt.ledger.write(rt.now_ms(), rt.author)
    for action, about in asked[:-1]:
        gate.require(rt, action, about, node=node)
    action, about = asked[-1]
    return gate.permitted(rt, action, about, node=node)


def move_address(
    rt: Runtime, name: str, where: Address, *, sudo: bool | None = None
) -> tuple[Node, bool]:
    """Reach a node at another address from now on, once it has answered there as itself.

    Args:
        where: Without a host key: the recorded one is what it must show.
        sudo: Run actions through sudo; None for as it was.

    Returns:
        The node, and whether it was reached otherwise before.

    Raises:
        Busy: Somebody else gave it another key or address meanwhile.
        ForeignNode, TwoMachines: Another machine answers there; nothing was recorded.
        HostKeyChanged: What answers there shows another host key; nothing was recorded.
        UnknownName: There is no such node.
        Unreachable: Nothing answers there; nothing was recorded.
        UsageError: This machine has no address, and no other machine can be this one.
    """
    with rt.ledger.read() as tx:
        before = nodes.get(tx, name)
    known = before.address
    if TransportKind.LOCAL in (known.transport, where.transport):
        raise UsageError(
            "an address leads to another machine, and `local` is this one",
            hint=f"`wlctl node rekey {name}` takes another machine for it",
        )
    address = replace(
        known,
        host=where.host,
        port=where.port,
        user=where.user,
        sudo=known.sudo if sudo is None else sudo,
    )
    if address == known:
        return before, False
    facts = fleet.look(rt, address)
    fleet.recognise(before, facts)
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        now = nodes.get(tx, name)
        if (now.address, now.node_id) != (known, before.node_id):
            raise Busy(f"somebody else has changed how {name} is reached", hint="look, and repeat")
        nodes.move_address(tx, before.name, address)
        nodes.record_contact(tx, before.name, facts)
        return nodes.get(tx, name), True


def cordon(rt: Runtime, name: str, *, for_ms: int | None) -> Node:
    """Let nothing new be placed on a node; what runs there goes on.

    Args:
        for_ms: After which time it ends by itself; None for never.

    Raises:
        UnknownName: There is no such node.
    """
    with rt.ledger.read() as tx:
        node = nodes.get(tx, name)
    with gate.permitted(rt, Action.CORDON, name, node=node) as tx:
        nodes.cordon(tx, node.name, None if for_ms is None else tx.now_ms + for_ms)
        return nodes.get(tx, name)


def uncordon(rt: Runtime, name: str) -> tuple[Node, bool]:
    """Let a node take workloads again; answer whether it did not before.

    Raises:
        UnknownName: There is no such node.
    """
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        node = nodes.get(tx, name)
        if node.cordoned:
            nodes.uncordon(tx, node.name)
        return nodes.get(tx, name), node.is_cordoned_at(tx.now_ms)


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """What came of taking another identity for a node.

    Attributes:
        replaced: It is another machine, or another state directory.
        other_key: It shows another host key.
        left: Names of what the ledger holds on the machine that it was before.
    """

    node: Node
    replaced: bool
    other_key: bool
    left: tuple[str, ...]


def rekey(
    rt: Runtime, name: str, tier: Tier, *, accept: Callable[[str, tuple[str, ...]], None]
) -> Rekeyed:
    """Take the host key and identity that a node shows now, in place of the recorded ones.

    What the ledger holds on the machine that it was before stays held: this one cannot prove that
    anything ended there.

    Args:
        accept: Called with the fingerprint that it shows (empty for this machine) and the names of
            what is placed there; raises to refuse.

    Raises:
        GateDenied: Whoever runs this may not take another identity for a node.
        NameTaken: That machine is in the fleet under another name.
        NodeUnfit, Unreachable: It could not be looked at; nothing was recorded.
        UnknownName: There is no such node.
    """
    with rt.ledger.read() as tx:
        before = nodes.get(tx, name)
        placed = on_node(tx, before.name)
    gate.require(rt, Action.NODE_REKEY, name, node=before)
    bare = replace(before.address, host_key="")  # and it may be enforced no longer, or by now
    address = fleet.with_host_key(rt, bare, lambda shown: accept(shown, placed))
    if not address.host_key:
        accept("", placed)
    address, facts = fleet.look_either_way(rt, address)
    fleet.check_tools(name, facts)
    with gate.permitted(rt, Action.NODE_REKEY, name, node=before) as tx:
        nodes.rekey(tx, before.name, address=address, tier=tier, facts=facts)
        replaced = facts.node_id != before.node_id
        return Rekeyed(
            node=nodes.get(tx, name),
            replaced=replaced,
            other_key=address.host_key != before.address.host_key,
            left=placed if replaced else (),
        )


def remove(rt: Runtime, name: str, *, clean: bool) -> Cleaned | None:
    """Take a node out of the fleet; what was lost with one that is attested dead ends with it.

    Args:
        clean: Take away what this installation has there first.

    Raises:
        NodeInUse: Something is still placed or held there.
        NodeUnfit: It refuses to be cleaned; nothing was done.
        UnknownName: There is no such node.
        Unreachable, Indeterminate: It could not be cleaned, or nobody knows; the node stays.
        LedgerRolledBack, LedgerForked: The ledger is doubted: who knows what is there.
    """
    with rt.ledger.read() as tx:
        witnesses.require_believed(tx)
        node = nodes.get(tx, name)
        _refuse_while_used(tx, node)
    cleaned = _clean(rt, node) if clean else None
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        _refuse_while_used(tx, nodes.get(tx, name))
        for one in _left_on(tx, node.name):
            way = walk(one.state, State.UNLOADED)
            assert not isinstance(way, IllegalTransition), way
            instances.advance(tx, one, way, "its node was attested dead and removed")
        nodes.remove(tx, node.name, cleaned=clean)
    return cleaned


def _clean(rt: Runtime, node: Node) -> Cleaned:
    with rt.connect(node.address) as session:
        answer = session.clean(rt.ledger.installation, node.node_id)
    if isinstance(answer, Refused):
        raise NodeUnfit(
            f"{node.name} refuses to be cleaned: {answer.detail} ({answer.code.value})",
            hint="remove it without --clean to leave things there as they are",
        )
    return answer


def on_node(tx: ReadTx, name: NodeName) -> tuple[str, ...]:
    """Name what is placed or held on a node, ascending."""
    held = {hold.name for hold in instances.holds(tx) if hold.node == name}
    placed = {one.name for one in instances.current(tx) if one.node == name}
    return tuple(sorted(held | placed))


def _refuse_while_used(tx: ReadTx, node: Node) -> None:
    held = {hold.name for hold in instances.holds(tx) if hold.node == node.name}
    if node.attested_dead_at_ms is None:
        held |= {one.name for one in _left_on(tx, node.name)}
    if held:
        first = min(held)
        raise NodeInUse(
            f"{node.name} is in use by {listed(held)}",
            hint=f"`wlctl unload {first}` first; if the machine will never come back, "
            f"`wlctl node attest-dead {node.name}`",
        )


def _left_on(tx: ReadTx, name: NodeName) -> list[Instance]:
    """List what is not proven gone there, that which was placed elsewhere meanwhile too."""
    there = [*instances.rescheduled(tx), *instances.current(tx)]
    return [one for one in there if one.node == name]


def listed(names: Collection[str]) -> str:
    """Name a few of many."""
    shown = ", ".join(sorted(names)[:NAMES_SHOWN])
    more = len(names) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def label(key: str, value: str) -> Capability:
    """Make a node label.

    Raises:
        UsageError: `key` cannot be one.
    """
    return Capability(label_id(key), {"value": value}, Provenance.CLAIMED)


def label_id(key: str) -> str:
    """Give the capability that a node label is.

    Raises:
        UsageError: `key` cannot be one.
    """
    return checked_id(f"node.label.{key}", f"{key!r} cannot be a label's name")


def checked_id(id_: str, complaint: str) -> str:
    """Make sure that a capability may have this id.

    Raises:
        UsageError: It may not; said as `complaint`.
    """
    segments = id_.split(".")
    plain = all(part and part.replace("_", "").replace("-", "").isalnum() for part in segments)
    if not (plain and id_.isascii() and len(id_) <= ID_MAX_CHARS):
        raise UsageError(complaint, hint="use letters, digits, _ and -, in segments with dots")
    return id_


ID_MAX_CHARS = 128
