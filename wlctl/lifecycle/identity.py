"""Judges whether what answered is the node that was added, by what it says of itself."""

from enum import StrEnum

from wlctl.model.node import Node

CLOCK_MARGIN_MS = 5_000
"""So far may the controller's clock be set, and an answer be late, without anybody being blamed."""


class Stranger(StrEnum):
    """Why what answered is not the node that was added."""

    REPLACED = "replaced"
    """Another state directory, on another machine."""
    EMPTIED = "emptied"
    """Another state directory on the same machine: the old one is gone or not mounted."""
    TWIN = "twin"
    """The same state directory under another boot that was under way at the last reading."""


def judge_identity(
    node: Node, *, node_id: str, machine_id: str, boot_id: str, uptime_ms: int, now_ms: int
) -> Stranger | None:
    """Answer None when it is the node, started anew or not.

    Another boot is believed when it began after the last reading, give or take the margin. Where
    the controller's clock has been set back behind that reading nothing can be told from it, and
    nobody is blamed.

    Args:
        uptime_ms: Of the boot that answers.
        now_ms: The controller's clock when it answered.
    """
    if node_id != node.node_id:
        same_machine = machine_id != "" and machine_id == node.machine_id
        return Stranger.EMPTIED if same_machine else Stranger.REPLACED
    if boot_id == node.boot_id or node.seen_at_ms is None or now_ms < node.seen_at_ms:
        return None
    began_at_ms = now_ms - uptime_ms
    return Stranger.TWIN if began_at_ms + CLOCK_MARGIN_MS < node.seen_at_ms else None
