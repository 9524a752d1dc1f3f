"""Judges how a ledger stands to the checkpoint that a node keeps of it."""

from wlctl.model.upkeep import ChainPoint
from wlctl.model.witness import Ours, Standing


def judge(ours: Ours, theirs: ChainPoint | None) -> Standing:
    """Answer how the ledger stands to the newest checkpoint that a node keeps.

    Within the ledger's epoch the event must be there, and be the same. What is of an epoch before
    it, and is another event, was given up by the rebuild that asked the node; one that is newer
    than what the node had then was left by somebody else since.

    Args:
        theirs: None where the node keeps none.
    """
    if theirs is None:
        return Standing.NONE
    head = ours.head
    if theirs.epoch > head.epoch:
        return Standing.ROLLED_BACK
    if theirs.sha256 == ours.hash_there:
        return Standing.AGREES
    if theirs.epoch == head.epoch:
        return Standing.ROLLED_BACK if theirs.seq > head.seq else Standing.FORKED
    if ours.known is not None and (theirs.epoch, theirs.seq) <= ours.known:
        return Standing.SUPERSEDED
    return Standing.FORKED


def is_due(
    head: ChainPoint,
    theirs: ChainPoint | None,
    *,
    left_at_ms: int | None,
    now_ms: int,
    every_ms: int,
) -> bool:
    """Answer whether a node is to be left the newest checkpoint.

    Where nothing has happened since the one it keeps, never. Otherwise so often at most: a pass
    that finds nothing to do must not write to every node.

    Args:
        left_at_ms: When it was left one last; None for never.
    """
    if theirs == head:
        return False
    return theirs is None or left_at_ms is None or not 0 <= now_ms - left_at_ms < every_ms
