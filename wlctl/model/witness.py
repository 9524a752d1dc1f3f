"""What a node that keeps our checkpoints says of the ledger, and why a ledger may be doubted."""

from dataclasses import dataclass
from enum import StrEnum

from wlctl.model.upkeep import ChainPoint


class Standing(StrEnum):
    """How a ledger stands to the newest checkpoint that a node keeps of it."""

    AGREES = "agrees"
    """The chain has that very event in that very place."""
    NONE = "none"
    """The node keeps no checkpoint yet."""
    SUPERSEDED = "superseded"
    """It is of a chain that a rebuild has ended; the next contact leaves a newer one."""
    ROLLED_BACK = "rolled_back"
    """The node was told more of the chain than this ledger has: it is an old copy."""
    FORKED = "forked"
    """The node was told another event in that place: one of two copies in use, or an old one that
    went on."""


class Doubt(StrEnum):
    """Why nothing but an ending is done with a ledger until it was rebuilt."""

    RESTORED = "restored"
    """A backup took its place, and what happened since the backup is not known."""
    ROLLED_BACK = "rolled_back"
    """See `Standing.ROLLED_BACK`."""
    FORKED = "forked"
    """See `Standing.FORKED`."""


DOUBTFUL = {Standing.ROLLED_BACK: Doubt.ROLLED_BACK, Standing.FORKED: Doubt.FORKED}
"""What a standing makes of a ledger."""


@dataclass(frozen=True, slots=True)
class Ours:
    """What the ledger has, as far as one checkpoint of one node asks.

    Attributes:
        head: The newest event.
        hash_there: Of the event that has the checkpoint's number; empty where there is none.
        known: Epoch and number of the newest checkpoint that this node was left, or was found to
            keep by a rebuild; None for neither.
    """

    head: ChainPoint
    hash_there: str
    known: tuple[int, int] | None
