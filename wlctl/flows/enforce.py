"""Have a node verify for itself what it is sent, by an administrator's login; or no longer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from wlctl import signing
from wlctl.errors import (
    DoorRefused,
    GateDenied,
    NotEnforceable,
    ShellFailed,
    UsageError,
)
from wlctl.flows import gate, trust
from wlctl.flows.nodes import check_identity, look
from wlctl.flows.runtime import Runtime
from wlctl.host import script
from wlctl.ledger import nodes, signers
from wlctl.ledger.store import ReadTx
from wlctl.model.actions import Refused
from wlctl.model.enforcement import Enforcement, Keyholder, KeyLines
from wlctl.model.ids import NodeName
from wlctl.model.node import Address, Enforced, Node, TransportKind
from wlctl.model.policy import Action

EVERY_PROJECT = "*"


@dataclass(frozen=True, slots=True)
class Wish:
    """What an administrator asks for.

    Attributes:
        admin: Login on the node that is root, or may become it by `sudo -n`.
        projects: Those whose work the node is to take; `*` for all, None for those it takes now.
        key_line: False leaves the files of keys to whoever keeps them.
    """

    admin: str
    projects: Sequence[str] | None = None
    key_line: bool = True


@dataclass(frozen=True, slots=True)
class Done:
    """What came of it.

    Attributes:
        is_shut: wlctl's key was seen to open nothing but the doorkeeper; only then it is recorded.
    """

    node: Node
    wanted: Enforcement
    keys: KeyLines
    is_shut: bool


def enforce(rt: Runtime, name: str, wish: Wish, *, accept: Callable[[KeyLines], None]) -> Done:
    """Put a doorkeeper and the lists it goes by on a node, and have wlctl's key open nothing else.

    The same again renews the lists. Whether the key opens a shell is tried, not believed; where it
    still does, all is taken away again.

    Args:
        accept: Called with what would become of the key's lines; raises to refuse.

    Raises:
        GateDenied: Whoever runs this may not have a node enforced.
        NotEnforceable: The node is not fit for it, or refuses; nothing was left there.
        UnknownName: There is no such node.
        Unreachable, Indeterminate: As for any change; the same again settles it.
    """
    with rt.ledger.read() as tx:
        node = nodes.get(tx, name)
        wanted = to_put(tx, node, wish.projects, rt.now_ms())
    gate.require(rt, Action.NODE_ENFORCE, name, node=node)
    holder = _holder(rt, node)
    with rt.administrate(node.address, wish.admin) as session:
        seen = _agreed(name, session.look(holder, wanted))
        if wish.key_line and not (seen.shut or seen.open):
            raise NotEnforceable(
                f"no file that sshd reads for {holder.login} on {name} has wlctl's key",
                hint=f"with --leave-key, put this where its keys come from: {seen.line}",
            )
        accept(seen)
        keys = _agreed(name, session.put(holder, wanted, key_line=wish.key_line))
        was_shut = bool(seen.shut) and not seen.open
        try:
            is_shut = _tried(rt, node, must_be_shut=wish.key_line)
        except BaseException:
            if not was_shut:  # leave it as it was
                session.remove(holder)
            raise
    if is_shut:
        with gate.permitted(rt, Action.NODE_ENFORCE, name, node=node) as tx:
            nodes.enforce(tx, node.name, Enforced(tx.now_ms, wanted.sha256, wanted.projects))
            node = nodes.get(tx, name)
    return Done(node, wanted, keys, is_shut)


def remove(rt: Runtime, name: str, admin: str, *, accept: Callable[[], None]) -> tuple[str, ...]:
    """Take away from a node what `enforce` put there: wlctl's key opens a shell again.

    Args:
        accept: Called before anything is changed; raises to refuse.

    Returns:
        Paths that were there.

    Raises:
        GateDenied, NotEnforceable, UnknownName, Unreachable, Indeterminate: As `enforce`.
    """
    with rt.ledger.read() as tx:
        node = nodes.get(tx, name)
    gate.require(rt, Action.NODE_ENFORCE, name, node=node)
    holder = _holder(rt, node)
    with rt.administrate(node.address, admin) as session:
        accept()
        removed = session.remove(holder)
    if isinstance(removed, Refused):
        raise _no(name, removed)
    with gate.permitted(rt, Action.NODE_ENFORCE, name, node=node) as tx:
        nodes.unenforce(tx, node.name)
    return removed


def is_current(tx: ReadTx, node: Node, now_ms: int) -> bool:
    """Answer whether what an enforced node goes by is what would be put there now.

    It is not where nobody can say what that would be: the list of what is revoked is unreadable.
    """
    assert node.enforced is not None, "there is nothing to compare"
    try:
        now = to_put(tx, node, None, now_ms)
    except GateDenied:
        return False
    return node.enforced.sha256 == now.sha256


def outdated(rt: Runtime) -> tuple[NodeName, ...]:
    """Name the enforced nodes that go by other lists than would be put there now, ascending."""
    now_ms = rt.now_ms()
    with rt.ledger.read() as tx:
        enforced = [node for node in nodes.ls(tx) if node.enforced is not None]
        return tuple(sorted(n.name for n in enforced if not is_current(tx, n, now_ms)))


def _holder(rt: Runtime, node: Node) -> Keyholder:
    address = node.address
    if address.transport is TransportKind.LOCAL:
        raise NotEnforceable(
            f"{node.name} is this machine: no key leads there that could be held to anything",
            hint="who may run wlctl here is whoever may read its ledger",
        )
    login, key = rt.login_of(address), signing.public_key(rt.home.ssh_key)
    return Keyholder(rt.ledger.installation, login, address.sudo, key)


def to_put(tx: ReadTx, node: Node, projects: Sequence[str] | None, now_ms: int) -> Enforcement:
    """Gather what would be put on a node now.

    Args:
        projects: None for those that it takes already.

    Raises:
        GateDenied: The list of what is revoked is unreadable.
    """
    from wlctl.host import doorkeeper

    if projects is None:
        chosen = node.enforced.projects if node.enforced else ()
    else:
        chosen = tuple(sorted({_project(word) for word in projects}))
    known = signers.ls(tx)
    revoked = trust.trust_in(tx, now_ms).revoked
    return Enforcement(
        doorkeeper=script.doorkeeper(),
        actions=doorkeeper.actions(),
        signers=signing.allowed_signers(known),
        revoked="".join(f"{s.public_key}\n" for s in known if s.fingerprint in revoked),
        projects=() if EVERY_PROJECT in chosen else chosen,
    )


def _project(word: str) -> str:
    if not word or not word.isprintable() or word != word.strip():
        raise UsageError(f"{word!r} cannot be a project", hint="--projects shop,web, or '*'")
    return word


def _agreed(name: str, answer: KeyLines | Refused) -> KeyLines:
    if isinstance(answer, Refused):
        raise _no(name, answer)
    return answer


def _no(name: str, refused: Refused) -> NotEnforceable:
    return NotEnforceable(f"{name} cannot be enforced: {refused.detail} ({refused.code.value})")


def _tried(rt: Runtime, node: Node, *, must_be_shut: bool) -> bool:
    """Try what wlctl's key opens: answer whether it is nothing but the doorkeeper.

    Raises:
        NotEnforceable: It is more, and must not be.
        WlctlError: The doorkeeper does not let this version look at the node.
    """
    if _opens_shell(rt, replace(node.address, enforced=False)):
        if must_be_shut:
            raise NotEnforceable(
                f"wlctl's key still opens a shell on {node.name}, by another line or a certificate",
                hint="`sshd -T` there names the files and commands that keys come from",
            )
        return False
    facts = look(rt, replace(node.address, enforced=True))
    check_identity(node, facts.node_id)
    return True


def _opens_shell(rt: Runtime, address: Address) -> bool:
    try:
        with rt.connect(address) as session:
            session.facts(rt.ledger.installation)
    except (DoorRefused, ShellFailed):
        return False
    return True
