"""A channel is told of each alert once, not too often, and never of less than there was."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.lifecycle.telling import BURST, LISTED_MAX, PERIOD_MS, failed, next_message
from wlctl.model.alert import Alert, AlertKind, Channel, KeptAlert

NOW_MS = 1_700_000_000_000
HOOK = Channel("command")


def kept(id_: int, kind: AlertKind = AlertKind.HELD, **more: int) -> KeptAlert:
    return KeptAlert(id_, Alert(kind, f"web{id_}", "it failed"), NOW_MS, **more)  # type: ignore[arg-type]  # ints


def used(count: int, at_ms: int = NOW_MS) -> Channel:
    """Say how the channel is after so many messages at one moment."""
    channel = HOOK
    for id_ in range(1, count + 1):
        message = next_message(channel, [kept(id_)], at_ms)
        assert message is not None
        channel = message.channel
    return channel


def test_nothing_new_is_no_message() -> None:
    assert next_message(HOOK, [], NOW_MS) is None
    assert next_message(used(1), [kept(1)], NOW_MS) is None


@pytest.mark.parametrize(
    ("one", "is_told"),
    [
        pytest.param(kept(1), True, id="open"),
        pytest.param(kept(1, acked_at_ms=1), False, id="somebody knows already"),
        pytest.param(kept(1, closed_at_ms=1), False, id="gone already"),
    ],
)
def test_only_what_is_open_and_unknown_is_told(one: KeptAlert, is_told: bool) -> None:
    assert (next_message(HOOK, [one], NOW_MS) is not None) is is_told


@pytest.mark.parametrize(
    ("count", "listed", "held_back"),
    [
        pytest.param(LISTED_MAX, LISTED_MAX, 0, id="all that fit"),
        pytest.param(LISTED_MAX + 1, LISTED_MAX, 1, id="one more than fits"),
    ],
)
def test_a_message_says_how_many_it_does_not_name(count: int, listed: int, held_back: int) -> None:
    message = next_message(HOOK, [kept(id_) for id_ in range(1, count + 1)], NOW_MS)

    assert message is not None
    assert (len(message.alerts), message.held_back) == (listed, held_back)
    assert message.channel.told_id == count


def test_what_nobody_knows_is_named_first() -> None:
    raised = [kept(id_) for id_ in range(1, LISTED_MAX + 1)]
    message = next_message(HOOK, [*raised, kept(99, AlertKind.ORPHAN)], NOW_MS)

    assert message is not None
    assert [one.id for one in message.alerts] == [99, *range(1, LISTED_MAX)]


@pytest.mark.parametrize(
    ("is_new", "held_back"),
    [
        pytest.param(False, 1, id="since the last message"),
        pytest.param(True, 0, id="before there was a channel"),
    ],
)
def test_what_was_gone_before_it_could_be_told_is_counted(is_new: bool, held_back: int) -> None:
    raised = [kept(1, closed_at_ms=NOW_MS), kept(2)]
    message = next_message(HOOK, raised, NOW_MS, is_new=is_new)

    assert message is not None
    assert [one.id for one in message.alerts] == [2]
    assert message.held_back == held_back


@pytest.mark.parametrize(
    ("count", "later_ms", "is_told"),
    [
        pytest.param(BURST - 1, 0, True, id="the last of a burst"),
        pytest.param(BURST, 0, False, id="one more than a burst"),
        pytest.param(BURST, PERIOD_MS - 1, False, id="a moment before its period is over"),
        pytest.param(BURST, PERIOD_MS, True, id="when its period is over"),
        pytest.param(BURST, -1, True, id="when the clock was set back meanwhile"),
    ],
)
def test_messages_come_no_oftener_than_they_may(count: int, later_ms: int, is_told: bool) -> None:
    message = next_message(used(count), [kept(99)], NOW_MS + later_ms)

    assert (message is not None) is is_told


def test_a_clock_that_was_set_back_by_years_lets_through_one_message_and_then_one_a_period() -> (
    None
):
    now_ms = NOW_MS - 10**12
    first = next_message(used(BURST), [kept(98)], now_ms)

    assert first is not None
    assert next_message(first.channel, [kept(99)], now_ms + PERIOD_MS - 1) is None
    assert next_message(first.channel, [kept(99)], now_ms + PERIOD_MS) is not None


def test_what_could_not_be_told_is_told_by_a_later_message_and_has_cost_one() -> None:
    message = next_message(HOOK, [kept(1)], NOW_MS)
    assert message is not None

    after = failed(HOOK, message, "exit 1")
    again = next_message(after, [kept(1), kept(2)], NOW_MS + 1)

    assert (after.told_id, after.outcome) == (0, "exit 1")
    assert after.full_at_ms == NOW_MS + PERIOD_MS
    assert again is not None
    assert [one.id for one in again.alerts] == [1, 2]


@pytest.mark.parametrize(
    ("over", "told", "named"),
    [
        pytest.param([kept(1, closed_at_ms=NOW_MS)], [1], (2,), id="what was named and is over"),
        pytest.param([], None, (1, 2), id="nothing that was named is over"),
        pytest.param(None, None, (1, 2), id="nobody wants to know"),
    ],
)
def test_what_was_named_is_told_once_to_be_over(
    over: list[KeptAlert] | None, told: list[int] | None, named: tuple[int, ...]
) -> None:
    first = next_message(HOOK, [kept(1), kept(2)], NOW_MS, over=[])
    assert first is not None
    assert first.channel.named == (1, 2)

    message = next_message(first.channel, [kept(2)], NOW_MS, over=over)

    assert (None if message is None else [one.id for one in message.over]) == told
    assert (first if message is None else message).channel.named == named


@pytest.mark.parametrize(
    ("count", "over_is_told", "new_is_told"),
    [
        pytest.param(BURST - 2, True, True, id="two messages are left"),
        pytest.param(BURST - 1, False, True, id="one message is left"),
        pytest.param(BURST, False, False, id="no message is left"),
    ],
)
def test_what_is_over_leaves_the_last_message_to_what_is_new(
    count: int, over_is_told: bool, new_is_told: bool
) -> None:
    channel, over = replace(used(count), named=(1,)), [kept(1, closed_at_ms=NOW_MS)]

    assert (next_message(channel, [], NOW_MS, over=over) is not None) is over_is_told
    with_news = next_message(channel, [kept(99)], NOW_MS, over=over)
    assert (with_news is not None) is new_is_told
    assert with_news is None or list(with_news.over) == over


def test_of_more_that_is_over_than_a_message_names_a_later_one_tells() -> None:
    ids = range(1, LISTED_MAX + 2)
    channel = replace(HOOK, told_id=len(ids), named=tuple(ids))
    message = next_message(channel, [], NOW_MS, over=[kept(id_, closed_at_ms=1) for id_ in ids])

    assert message is not None
    assert len(message.over) == LISTED_MAX
    assert message.channel.named == (LISTED_MAX + 1,)
    assert failed(channel, message, "exit 1").named == tuple(ids)


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 30), st.integers(-PERIOD_MS, 3 * PERIOD_MS), st.booleans()),
        max_size=12,
    )
)
def test_each_alert_is_named_or_counted_exactly_once(steps: list[tuple[int, int, bool]]) -> None:
    channel, now_ms, raised = HOOK, NOW_MS, list[KeptAlert]()
    named, held_back, sent = list[int](), 0, list[int]()
    for count, passed_ms, works in steps:
        now_ms += passed_ms
        raised += [kept(len(raised) + 1 + step) for step in range(count)]
        message = next_message(channel, raised, now_ms)
        if message is None:
            continue
        sent.append(now_ms)
        if not works:
            channel = failed(channel, message, "exit 1")
            continue
        named += [one.id for one in message.alerts]
        held_back += message.held_back
        channel = message.channel

    assert len(named) == len(set(named))
    assert len(named) + held_back == channel.told_id
    if all(passed_ms >= 0 for _, passed_ms, _ in steps) and sent:
        assert len(sent) <= BURST + (sent[-1] - sent[0]) // PERIOD_MS
