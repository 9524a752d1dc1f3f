"""Hold the ledger to what its nodes were told, and leave them what it has now.

A chain on one disk can be cut, set back, copied or written anew by who owns the disk. So each
contact reads the newest checkpoint that the node keeps, and leaves a newer one before it changes
anything there. What is found once is kept: the ledger is doubted until it was rebuilt.
"""

from collections.abc import Collection
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from wlctl import signing
from wlctl.errors import FalseWitness, LedgerForked, LedgerRolledBack, WlctlError
from wlctl.flows.runtime import Runtime
from wlctl.ledger import alerts, chain, nodes, witnesses
from wlctl.ledger.store import ReadTx
from wlctl.lifecycle.witnesses import is_due, judge
from wlctl.model.actions import Refused
from wlctl.model.alert import Alert, AlertKind
from wlctl.model.event import Checkpoint as Head
from wlctl.model.event import Json, checkpoint_text, parse_checkpoint
from wlctl.model.member import fleet_text, member_text, members_sha256, parse_fleet
from wlctl.model.node import Node
from wlctl.model.policy import TEARDOWN, Action
from wlctl.model.upkeep import ChainPoint, Checkpoint, Fleet, FleetMember
from wlctl.model.witness import DOUBTFUL, Doubt, Standing

if TYPE_CHECKING:
    from wlctl.host.node import NodeSession

EVERY_MS = 10 * 60_000
"""So often at most a pass leaves a node a checkpoint; whatever changes something leaves one."""

FLEET_MAX_BYTES = 2 << 20
"""A larger fleet is not kept by its nodes: a request has a bound."""

DONE_IN_DOUBT = TEARDOWN | {
    Action.REVOKE,
    Action.ATTEST_DEAD,
    Action.LEDGER_REBUILD,
}
"""What is done with a ledger that is doubted: it ends things, or ends the doubt."""

_KINDS = {Doubt.ROLLED_BACK: AlertKind.ROLLBACK, Doubt.FORKED: AlertKind.FORK}
OF_WITNESSES = frozenset(_KINDS.values())
"""Alerts that are raised where the doubt is found, and closed by the rebuild that ends it."""


def require_believed(tx: ReadTx, action: Action | None = None) -> None:
    """Make sure that `action` is done with the ledger as it is.

    Args:
        action: None for what the gate is not asked about, and ends nothing.

    Raises:
        LedgerRolledBack, LedgerForked: The ledger is doubted, and the action ends nothing.
    """
    why = None if action in DONE_IN_DOUBT else witnesses.doubt_of(tx)
    if why is not None:
        raise error_of(why)


def error_of(why: Doubt) -> WlctlError:
    """Say a doubt as the error that it is."""
    hint = (
        "`wlctl help recover-ledger` says how to go on; stop, unload and cordon are done meanwhile"
    )
    match why:
        case Doubt.RESTORED:
            said = "this ledger is a backup, and what happened since it was made is not known yet"
            return LedgerRolledBack(said, hint=hint)
        case Doubt.ROLLED_BACK:
            said = "this ledger is older than what its nodes were told"
            return LedgerRolledBack(said, hint=hint)
        case Doubt.FORKED:
            return LedgerForked(
                "a node was told another chain: this ledger is an old copy, or one of two in use",
                hint=hint,
            )


class Watch:
    """What one command knows of nodes' checkpoints; it reads and signs the chain's head once."""

    def __init__(self, rt: Runtime) -> None:
        self._rt = rt
        self._agreed: set[ChainPoint] = set()

    def check(self, session: "NodeSession", node: Node, theirs: ChainPoint | None) -> None:
        """Hold the ledger to the newest checkpoint that `node` keeps.

        Where the ledger does not have that event, the node is asked for the signature; one that has
        none tells of nothing but itself.

        Raises:
            LedgerRolledBack, LedgerForked: It is an old copy, or one of two; that is kept.
            FalseWitness: The node keeps what was never signed.
            Unreachable: It does not answer any more.
        """
        if theirs is None or theirs in self._agreed:
            return
        rt = self._rt
        with rt.ledger.read() as tx:
            standing = judge(witnesses.ours(tx, node, theirs), theirs)
        doubt = DOUBTFUL.get(standing)
        if doubt is None:
            if standing is Standing.AGREES:
                self._agreed.add(theirs)
            return
        self._confirm(session, node, theirs)
        keep_doubt(rt, node, theirs, doubt)
        raise error_of(doubt)

    def leave(self, session: "NodeSession", node: Node) -> bool:
        """Leave the newest checkpoint on a node, and the fleet where that is another by now.

        A witness that is missed is no reason for anything else to fail; the next contact tries
        again.

        Returns:
            Whether the node keeps it; one that has a newer one, or cannot, does not.
        """
        rt = self._rt
        with suppress(WlctlError):
            with rt.ledger.read() as tx:
                before = witnesses.left_with(tx, node)
            fleet, sha256 = self._fleet
            known = before is not None and before.fleet_sha256 == sha256
            answer = session.checkpoint(
                rt.ledger.installation, self._signed, None if known else fleet
            )
            if isinstance(answer, Refused):
                return False
            with rt.ledger.write(rt.now_ms(), rt.author) as tx:
                witnesses.left(tx, node, self._signed.at, sha256)
            return True
        return False

    def keep(self, session: "NodeSession", node: Node, theirs: ChainPoint | None) -> None:
        """Check, and leave a checkpoint when one is due; for a pass, on each node that it looks at.

        Where nothing has happened since the one the node keeps, nothing is asked and written.

        Raises:
            LedgerRolledBack, LedgerForked, FalseWitness, Unreachable: As `check`.
        """
        self.check(session, node, theirs)
        if theirs == self._head:
            return
        with self._rt.ledger.read() as tx:
            before = witnesses.left_with(tx, node)
        due = is_due(
            self._head,
            theirs,
            left_at_ms=None if before is None else before.left_at_ms,
            now_ms=self._rt.now_ms(),
            every_ms=EVERY_MS,
        )
        if due:
            self.leave(session, node)

    @cached_property
    def _head(self) -> ChainPoint:
        with self._rt.ledger.read() as tx:
            return witnesses.head(tx)

    @cached_property
    def _signed(self) -> Checkpoint:
        return Checkpoint(self._head, sign_head(self._rt, self._head))

    @cached_property
    def _fleet(self) -> tuple[Fleet, str]:
        return signed_fleet(self._rt)

    def _confirm(self, session: "NodeSession", node: Node, theirs: ChainPoint) -> None:
        rt = self._rt
        found = session.witness(rt.ledger.installation)
        kept = () if isinstance(found, Refused) else found.checkpoints
        known = verifiers(rt)
        if not any(one.at == theirs and is_signed(rt, one, known) for one in kept):
            raise FalseWitness(
                f"{node.name} keeps a checkpoint of event {theirs.epoch}.{theirs.seq} that was "
                "never signed here",
                hint=f"look at {node.name} itself: somebody has changed what it keeps",
            )


def check_and_leave(
    rt: Runtime, session: "NodeSession", node: Node, theirs: ChainPoint | None
) -> None:
    """Hold the ledger to what a node keeps, and leave it the newest checkpoint, before a change.

    Raises:
        LedgerRolledBack, LedgerForked, FalseWitness, Unreachable: As `Watch.check`.
    """
    watch = Watch(rt)
    watch.check(session, node, theirs)
    watch.leave(session, node)


def keep_doubt(rt: Runtime, node: Node, theirs: ChainPoint, why: Doubt) -> None:
    """Doubt the ledger from now on, because of what a node keeps, and alert; once."""
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        seq, _ = chain.head(tx)
        told: dict[str, Json] = {
            "node": node.name,
            "their_epoch": theirs.epoch,
            "their_seq": theirs.seq,
        }
        if witnesses.doubt(tx, why, told) is None:
            return
        reason = f"it keeps event {theirs.epoch}.{theirs.seq}, and the ledger ended at {seq}"
        alerts.add(tx, [Alert(_KINDS[why], node.name, reason)])


def sign_head(rt: Runtime, head: ChainPoint) -> str:
    """Write an event's place and hash as the signed note that nodes keep.

    Raises:
        FilesUnreadable, UnsafeKey, UnusableKey: The checkpoint key cannot be used.
    """
    text = checkpoint_text(Head(rt.ledger.installation, head.epoch, head.seq, head.sha256))
    return signing.sign_note(text, name=origin(rt), key=rt.home.checkpoint_key)


def is_signed(rt: Runtime, kept: Checkpoint, known: Collection[str]) -> bool:
    """Answer whether what a node keeps is a checkpoint that this installation has signed."""
    return is_signed_by(rt.ledger.installation, kept, known)


def is_signed_by(installation: str, kept: Checkpoint, known: Collection[str]) -> bool:
    """Answer whether what a node keeps is a checkpoint that one of these keys has signed."""
    try:
        found = parse_checkpoint(signing.verify_note(kept.note, known))
    except WlctlError:
        return False
    at = kept.at
    return found == Head(installation, at.epoch, at.seq, at.sha256)


def signed_fleet(rt: Runtime) -> tuple[Fleet, str]:
    """Write down who is in the fleet, signed; and the digest of it, for what was left before."""
    with rt.ledger.read() as tx:
        members = tuple(
            FleetMember(one.name, one.node_id, one.address, one.tier) for one in nodes.ls(tx)
        )
        head = witnesses.head(tx)
    if sum(len(member_text(member)) for member in members) > FLEET_MAX_BYTES:
        members = ()
    sha256 = members_sha256(members)
    text = fleet_text(rt.ledger.installation, head.epoch, head.seq, sha256)
    note = signing.sign_note(text, name=origin(rt), key=rt.home.checkpoint_key)
    return Fleet(members, note), sha256


def parse_signed_fleet(
    installation: str, fleet: Fleet, known: Collection[str]
) -> tuple[int, int] | None:
    """Read as of which epoch and event these machines were the fleet; None where nobody signed it.

    Args:
        known: Public keys of the installation.
    """
    try:
        found = parse_fleet(signing.verify_note(fleet.note, known))
    except WlctlError:
        return None
    if found is None or (found[0], found[3]) != (installation, members_sha256(fleet.members)):
        return None
    return found[1], found[2]


def verifiers(rt: Runtime) -> set[str]:
    """Collect the public keys that checkpoints may be signed with: ours now, and all before."""
    with rt.ledger.read() as tx:
        told = {str(event.payload["checkpoint"]) for event in chain.events(tx, kind="ledger.keys")}
    try:
        told.add(signing.note_verifier(rt.home.checkpoint_key, name=origin(rt)))
    except WlctlError:  # a ledger that was copied elsewhere without its keys
        return told
    return told


def origin(rt: Runtime) -> str:
    """Name the installation as the signer of its notes."""
    return f"wlctl/{rt.ledger.installation}"
