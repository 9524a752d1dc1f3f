"""Answers when what failed is tried again: soon, then less and less often."""

BASE_MS = 10_000
MAX_MS = 300_000
MOST_DOUBLINGS = 20
"""More would only overflow: the longest wait is reached long before."""


def backoff_ms(tries: int) -> int:
    """Answer how long to wait after so many tries that failed."""
    return min(MAX_MS, BASE_MS << min(max(tries, 1) - 1, MOST_DOUBLINGS))


def is_waiting(until_ms: int, now_ms: int) -> bool:
    """Answer whether it is too early; a clock that was set back makes no wait longer than any."""
    return now_ms < until_ms <= now_ms + MAX_MS
