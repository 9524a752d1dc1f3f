"""What is wrong and waits for a person: the kinds there are, one alert, and who was told of it."""

import re
from dataclasses import dataclass
from enum import StrEnum


class AlertKind(StrEnum):
    """What is not as it should be; `wlctl help topics` lists them."""

    NODE_DEAD = "node-dead"
    """A node has not answered for so long that what ran there counts as lost.

    Look at the machine; `wlctl node attest-dead` when it will not come back.
    """
    NODE_REFUSES = "node-refuses"
    """A node answers and cannot be used: nothing is done there, and nothing there is lost.

    `wlctl node probe NODE` says why.
    """
    CONTROLLER_ISOLATED = "controller-isolated"
    """So many nodes fell silent at once that it is this machine which is cut off.

    Look at its network; nothing is moved meanwhile.
    """
    STATE_LOST = "state-lost"
    """A node no longer knows a copy, and nothing proves that it is gone.

    Find out what became of its state directory; then `wlctl unload`, or
    `wlctl node attest-dead NODE --replaced` where another machine took the name.
    """
    TWO_MACHINES = "two-machines"
    """Two machines answer as one node, or one as another than it was.

    `wlctl node rekey` when it was replaced; end the other one when it was copied.
    """
    RETURNED = "returned"
    """A node that was attested dead answers again with the boot it had.

    Nothing, it ends what was placed elsewhere; be slower to attest.
    """
    ORPHAN = "orphan"
    """A node has a copy that it should not have, or that the ledger does not know there.

    Nothing while it is asked for again; else look at the node, or `wlctl ledger rebuild`.
    """
    UNPROVEN = "unproven"
    """An ending was asked for and is not proven.

    `wlctl prove NAME` says what is left.
    """
    UNSETTLED = "unsettled"
    """An answer was lost, and the node cannot say yet what came of it.

    Make the node reachable: the next pass asks it; `wlctl node attest-dead` when it will not come
    back.
    """
    MOVE_BLOCKED = "move-blocked"
    """A copy should run elsewhere and may not be moved.

    `wlctl explain NAME` says why; move it by hand, or wait.
    """
    MOVE_FAILED = "move-failed"
    """A copy should run elsewhere, and no node took it yet.

    `wlctl explain NAME` says why; it is tried again.
    """
    MOVE_CUT = "move-cut"
    """A move had stopped a copy and was cut off: the copy is started again where it was.

    Nothing, it is started again where it was.
    """
    DRAINED = "drained"
    """A copy was stopped because its node is drained; `node uncordon --resume` starts it.

    `wlctl node uncordon` when the node may be used again.
    """
    HELD = "held"
    """A copy failed for good and waits for an operator's start.

    `wlctl logs NAME`, mend it, `wlctl start NAME`; an interval job runs again when it is due.
    """
    LEASE_WAITING = "lease-waiting"
    """A copy is replaced only when the lease of the old one has provably run out.

    Wait.
    """
    REBOOT_NOT_STARTED = "reboot-not-started"
    """A node was started anew, and a copy could not be started there again.

    `wlctl start NAME` says why.
    """
    ACTION_FAILED = "action-failed"
    """A pass could not do what it had to.

    The reason says what; `wlctl reconcile --dry-run`.
    """
    SECRET_UNAVAILABLE = "secret-unavailable"  # noqa: S105 - the name of a kind
    """A copy cannot be started, because the value of a secret cannot be had.

    Look at `[secrets]` in your config.toml.
    """
    JOB_SKIPPED = "job-skipped"
    """A run of an interval job was due while the one before was still running.

    A longer interval, or a faster job.
    """
    CLOCK_SKEW = "clock-skew"
    """The clock of a node is far from this machine's.

    Mend its time service.
    """
    PASS_STUCK = "pass-stuck"  # noqa: S105 - likewise
    """Another reconcile has held its lock for longer than any pass takes.

    Look at that process, and end it if it hangs.
    """
    ROLLBACK = "rollback"
    """A node was told more of the chain than this ledger has.

    Never go on with an old copy of a ledger: `wlctl help recover-ledger`.
    """
    FORK = "fork"
    """A node was told another chain than this ledger's.

    Find the other ledger: `wlctl help recover-ledger`.
    """

    @property
    def is_unproven(self) -> bool:
        """Nobody knows whether something runs that should not, or what has been done."""
        return self in _UNPROVEN


_UNPROVEN = frozenset(
    {
        AlertKind.STATE_LOST,
        AlertKind.TWO_MACHINES,
        AlertKind.RETURNED,
        AlertKind.ORPHAN,
        AlertKind.UNPROVEN,
        AlertKind.UNSETTLED,
        AlertKind.ROLLBACK,
        AlertKind.FORK,
    }
)

REASON_MAX = 1000
"""More of somebody's output than this tells nobody anything."""

_UNFIT = re.compile("[\ud800-\udfff\0]")
"""What no database and no JSON takes."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One trouble; two that are equal are the same, however often it is found.

    Words from outside are made valid and cut short when it is made.

    Attributes:
        subject: The name of the node or copy that it is about; empty for the whole fleet.
        reason: Why, for people. Without moments, counts or anything else that changes while the
            trouble lasts: another reason is another alert.
    """

    kind: AlertKind
    subject: str
    reason: str

    def __post_init__(self) -> None:
        """Make the words fit to be kept."""
        object.__setattr__(self, "subject", _fit(self.subject))
        object.__setattr__(self, "reason", _fit(self.reason))

    @property
    def is_unproven(self) -> bool:
        """See `AlertKind.is_unproven`."""
        return self.kind.is_unproven


@dataclass(frozen=True, slots=True)
class KeptAlert:
    """An alert that was raised.

    Attributes:
        id: Counts up from 1; never used again.
        acked_by: Who said that they know; empty while nobody did.
        closed_at_ms: When its cause was found gone; None while it lasts.
    """

    id: int
    alert: Alert
    raised_at_ms: int
    acked_at_ms: int | None = None
    acked_by: str = ""
    closed_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Channel:
    """How far one way to tell people has come.

    Attributes:
        name: As the settings have it.
        told_id: Every alert up to this one has been told of, or needs not be any more.
        full_at_ms: When its budget of messages will be full again.
        tried_at_ms: When it was last used; None for never.
        outcome: Of that: `told`, or how it failed.
        named: The alerts that it named, and has not told the end of; ascending.
    """

    name: str
    told_id: int = 0
    full_at_ms: int = 0
    tried_at_ms: int | None = None
    outcome: str = ""
    named: tuple[int, ...] = ()


def _fit(text: str) -> str:
    fit = _UNFIT.sub("\ufffd", text)
    return fit if len(fit) <= REASON_MAX else f"{fit[: REASON_MAX - 1]}…"
