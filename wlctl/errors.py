"""Every failure a user can meet, with its stable code, its exit code and what to do.

The docstring of a leaf is what `wlctl help CODE` prints: it says what happened in general and what
to do about it. The message and the hint of a raised error say it for the case at hand.
"""

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """What a script may rely on; the same for every command, never non-zero for success."""

    DONE = 0
    """Done, nothing to do, or placeable."""
    FAILED = 1
    """It was tried and it failed."""
    USAGE = 2
    """A wrong option, argument or file."""
    CANNOT_PLACE = 3
    """No node can take the workload."""
    REFUSED = 4
    """Refused by gate, signature, revocation, an illegal step, or a key spent or mismatched."""
    INDETERMINATE = 5
    """Indeterminate or unproven: run `wlctl reconcile`."""
    BUSY = 6
    """Another operation holds what this one needs."""
    PARTIAL = 7
    """Part of it was done, or reconcile raised a new alert."""
    MOVED = 8
    """The state moved since the plan was made."""
    UNREACHABLE = 9
    """Nothing was done on the node; a recorded wish is said."""
    CHANGES_PENDING = 10
    """Changes are pending (only with `--detailed-exitcode`)."""
    LEDGER = 11
    """The ledger is damaged, rolled back or of another version."""
    INTERRUPTED = 130
    """Interrupted by Ctrl-C; what was settled is said."""


class WlctlError(Exception):
    """A failure a user can act on: what happened, and what to do.

    Args:
        message: One sentence without a full stop, naming the thing that failed. Text that came from
            outside is escaped where it is shown, not here.
        hint: What to run or change next; None where the code's own help says all.
    """

    code: ClassVar[str]
    exit_code: ClassVar[ExitCode]

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(WlctlError):
    """An option, argument or combination of them is not one the command takes."""

    code = "usage"
    exit_code = ExitCode.USAGE


class InvalidFile(WlctlError):
    """A file given to the command cannot be read or does not say what it must; nothing changed."""

    code = "invalid-file"
    exit_code = ExitCode.USAGE


class UnknownName(WlctlError):
    """No node, instance, package or signer has this name; `ls` of its kind lists what there is."""

    code = "unknown-name"
    exit_code = ExitCode.USAGE


class AmbiguousName(WlctlError):
    """A shortened name or id fits more than one thing; the matches are listed: write more of it."""

    code = "ambiguous-name"
    exit_code = ExitCode.USAGE


class NeedsTerminal(WlctlError):
    """A question has to be answered and there is no terminal; pass the flag that is named."""

    code = "needs-terminal"
    exit_code = ExitCode.USAGE
