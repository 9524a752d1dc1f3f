"""Answers when a lease that was sent to a node has run out for certain, whatever the node does.

It is counted from the moment at which the reading was received that it was counted from over there,
on this machine's boot-time clock: that is after the node took the reading. The two clocks may
differ in their rate, and the node needs time to end what runs.
"""

from wlctl.model.boottime import BootTime

KILL_BOUND_MS = 10_000
"""How long a node may take to end everything of a copy whose lease has run out."""

MARGIN_MS = 5_000
RATE_MARGIN = 100
"""Of a hundred parts of the time, the clocks of two machines may be apart by one."""


def bound_ms(ttl_ms: int) -> int:
    """Answer how long after the reading a copy with such a lease may run at most."""
    return ttl_ms + KILL_BOUND_MS + MARGIN_MS + -(-ttl_ms // RATE_MARGIN)


def left_ms(ttl_ms: int, read_at: BootTime, now: BootTime) -> int | None:
    """Answer how long its copy may still run; 0 when it cannot.

    None where this machine was started anew since: nobody knows how long that took, so it has to be
    counted anew.
    """
    elapsed = now.since(read_at)
    return None if elapsed is None else max(0, bound_ms(ttl_ms) - elapsed + 1)
