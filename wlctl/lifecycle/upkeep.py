"""What has been kept long enough: finished jobs, what was taken away on nodes, old documents."""

from wlctl.model.instance import Instance, State
from wlctl.model.workload import Kind

MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS

DOCUMENT_KEEP_MS = 7 * DAY_MS
"""Documents of dry runs; the chain keeps the hash of each for ever."""

KEY_KEEP_MS = 30 * DAY_MS
"""Keys that were given with orders."""


def is_past_keep(instance: Instance, keep_ms: int, now_ms: int) -> bool:
    """Answer whether a job that finished is unloaded now.

    A job that failed waits for an operator, and an interval job for its next run.
    """
    if instance.kind is not Kind.JOB or instance.state is not State.FINISHED:
        return False
    return not instance.unsettled and now_ms - instance.since_ms >= keep_ms


def is_collection_due(
    now_ms: int,
    *,
    age_ms: int,
    since_ms: int,
    left_at_ms: int | None,
    collected_at_ms: int | None,
) -> bool:
    """Answer whether a node is asked now to take away what nothing there may still run.

    That is: when something was given up so long ago that its files may go, and once a day for logs;
    never twice within `age_ms`. A moment that is still to come, since the clock was set back,
    counts for nothing.

    Args:
        age_ms: So young files are never taken away.
        since_ms: When the node was first used.
        left_at_ms: When something was last given up there, at least `age_ms` ago.
        collected_at_ms: When it was last asked; None for never.
    """
    if collected_at_ms is not None and collected_at_ms > now_ms:
        return True
    last_ms = since_ms if collected_at_ms is None else collected_at_ms
    if collected_at_ms is not None and now_ms - collected_at_ms < age_ms:
        return False
    is_left = left_at_ms is not None and left_at_ms + age_ms > last_ms
    return is_left or now_ms - last_ms >= DAY_MS
