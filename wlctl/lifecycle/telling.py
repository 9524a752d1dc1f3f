"""Which alerts the next message of a channel tells of, and whether it may be sent yet."""

from collections.abc import Iterable
from dataclasses import dataclass

from wlctl.model.alert import Channel, KeptAlert

BURST = 5
"""So many messages may follow each other at once."""

PERIOD_MS = 300_000
"""After them, one in so long a time."""

LISTED_MAX = 20
"""A message names so many alerts; of more it says how many."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a channel is to tell now.

    Attributes:
        alerts: What nobody knows is first, then the oldest.
        held_back: How many others were raised since the last message: too many to name, or gone
            again before they could be told of.
        channel: What to keep of the channel once it was told; how it went is still to be said.
    """

    alerts: tuple[KeptAlert, ...]
    held_back: int
    channel: Channel


def next_message(
    channel: Channel, raised: Iterable[KeptAlert], now_ms: int, *, is_new: bool = False
) -> Message | None:
    """Make the next message; None where there is nothing to tell, or it is too soon.

    Args:
        channel: As it was kept.
        raised: Every alert, or at least all that the channel has not told of, and all open ones.
        now_ms: By the clock that `channel` was kept by; where that was set back since, one message
            is let through, so that nothing waits until it is as late again.
        is_new: The channel was never used, so what is gone already is no news.
    """
    news = [one for one in raised if one.id > channel.told_id and one.acked_at_ms is None]
    fresh = [one for one in news if one.closed_at_ms is None]
    full_at_ms = max(now_ms, channel.full_at_ms)
    if full_at_ms > now_ms + BURST * PERIOD_MS:
        full_at_ms = now_ms + (BURST - 1) * PERIOD_MS
    if not fresh or full_at_ms + PERIOD_MS > now_ms + BURST * PERIOD_MS:
        return None
    listed = sorted(fresh, key=lambda one: (not one.alert.is_unproven, one.id))[:LISTED_MAX]
    counted = fresh if is_new else news
    return Message(
        alerts=tuple(listed),
        held_back=len(counted) - len(listed),
        channel=Channel(channel.name, max(one.id for one in news), full_at_ms + PERIOD_MS, now_ms),
    )


def failed(before: Channel, message: Message, outcome: str) -> Channel:
    """Say what to keep of a channel that could not tell: the same is told of again later."""
    now = message.channel
    return Channel(before.name, before.told_id, now.full_at_ms, now.tried_at_ms, outcome)
