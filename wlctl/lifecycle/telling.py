"""What the next message of a channel tells of, new or over, and whether it may be sent yet."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

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
        over: Of what was named before, that whose cause is gone, the oldest first; as many as a
            message names, the others in a later one.
        held_back: How many others were raised since the last message: too many to name, or gone
            again before they could be told of.
        channel: What to keep of the channel once it was told; how it went is still to be said.
    """

    alerts: tuple[KeptAlert, ...]
    over: tuple[KeptAlert, ...]
    held_back: int
    channel: Channel


def next_message(
    channel: Channel,
    raised: Iterable[KeptAlert],
    now_ms: int,
    *,
    is_new: bool = False,
    over: Iterable[KeptAlert] | None = None,
) -> Message | None:
    """Make the next message; None where there is nothing to tell, or it is too soon.

    Args:
        channel: As it was kept.
        raised: Every alert, or at least all that the channel has not told of, and all open ones.
        now_ms: By the clock that `channel` was kept by; where that was set back since, one message
            is let through, so that nothing waits until it is as late again.
        is_new: The channel was never used, so what is gone already is no news.
        over: What of `channel.named` was closed; None where nobody wants to be told of that. It
            takes no message that new trouble could need: the last one of a burst is not for it.
    """
    news = [one for one in raised if one.id > channel.told_id and one.acked_at_ms is None]
    fresh = [one for one in news if one.closed_at_ms is None]
    gone = tuple(over or ())[:LISTED_MAX]
    full_at_ms = max(now_ms, channel.full_at_ms)
    if full_at_ms > now_ms + BURST * PERIOD_MS:
        full_at_ms = now_ms + (BURST - 1) * PERIOD_MS
    left = (now_ms + BURST * PERIOD_MS - full_at_ms) // PERIOD_MS
    if left < (1 if fresh else 2) or not (fresh or gone):
        return None
    listed = sorted(fresh, key=lambda one: (not one.alert.is_unproven, one.id))[:LISTED_MAX]
    counted = [] if not fresh else fresh if is_new else news
    named = {*channel.named, *(one.id for one in listed)} - {one.id for one in gone}
    return Message(
        alerts=tuple(listed),
        over=gone,
        held_back=len(counted) - len(listed),
        channel=replace(
            channel,
            told_id=max(one.id for one in news) if fresh else channel.told_id,
            full_at_ms=full_at_ms + PERIOD_MS,
            tried_at_ms=now_ms,
            outcome="",
            named=() if over is None else tuple(sorted(named)),
        ),
    )


def failed(before: Channel, message: Message, outcome: str) -> Channel:
    """Say what to keep of a channel that could not tell: the same is told of again later."""
    now = message.channel
    return replace(now, told_id=before.told_id, named=before.named, outcome=outcome)
