"""Answers how often passes run, and how much of the time between two of them counts as watched."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from wlctl.model.boottime import BootTime

GAPS = 10
"""With fewer there is no median to go by, and the setting says how often passes run."""

MOST_GAPS = 3
"""Between passes that are further apart than so many usual gaps nobody watched: cron was off, the
machine slept, or it was started anew.
"""


def usual_gap_ms(passes: Sequence[BootTime], setting_ms: int) -> int:
    """Answer the median time between the newest passes.

    Args:
        passes: When they began, oldest first.
        setting_ms: What counts until there are ten gaps.
    """
    gaps = [gap for earlier, later in pairwise(passes) if (gap := later.since(earlier)) is not None]
    return round(median(gaps[-GAPS:])) if len(gaps) >= GAPS else setting_ms


def watched_ms(passes: Sequence[BootTime], now: BootTime, setting_ms: int) -> int:
    """Answer how much of the time since the last pass counts; 0 where nobody watched."""
    gap = now.since(passes[-1]) if passes else None
    most = MOST_GAPS * max(setting_ms, usual_gap_ms(passes, setting_ms))
    return gap if gap is not None and gap <= most else 0
