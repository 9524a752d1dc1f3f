"""Alerts: raised once, closed by themselves, quiet once somebody knows."""

from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ledger.made import AUTHOR, INSTALLATION, NOW_MS, opened, tamper
from wlctl.errors import UnknownName
from wlctl.ledger import alerts, chain
from wlctl.ledger.alerts import Settled
from wlctl.ledger.opening import create_ledger
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Broken, Verified, verify
from wlctl.model.alert import REASON_MAX, Alert, AlertKind, Channel, KeptAlert

DEAD = Alert(AlertKind.NODE_DEAD, "elm", "no answer")
HELD = Alert(AlertKind.HELD, "web", "it failed 3 times")


def settle(
    ledger: Ledger, *found: Alert, unjudged: Collection[str] = (), at_ms: int = NOW_MS
) -> Settled:
    with ledger.write(at_ms, AUTHOR) as tx:
        return alerts.settle(tx, found, unjudged=lambda one: one.subject in unjudged)


def standing(ledger: Ledger) -> set[Alert]:
    with ledger.read() as tx:
        return {one.alert for one in alerts.ls(tx)}


def everything(ledger: Ledger) -> list[KeptAlert]:
    with ledger.read() as tx:
        return alerts.ls(tx, everything=True)


def events(ledger: Ledger) -> list[str]:
    with ledger.read() as tx:
        return [event.kind for event in chain.events(tx, kind="alert.*")]


def ack(ledger: Ledger, id_: int, at_ms: int = NOW_MS) -> KeptAlert | None:
    with ledger.write(at_ms, AUTHOR) as tx:
        return alerts.ack(tx, id_)


def test_what_is_found_is_raised_once_and_closed_when_it_is_found_no_more(ledger: Ledger) -> None:
    first = settle(ledger, DEAD)
    again = settle(ledger, DEAD)
    other = settle(ledger, HELD, at_ms=NOW_MS + 5)
    none = settle(ledger)

    assert first.raised == (KeptAlert(1, DEAD, NOW_MS),)
    assert again == Settled()
    assert [one.alert for one in other.raised] == [HELD]
    assert other.closed == (KeptAlert(1, DEAD, NOW_MS, closed_at_ms=NOW_MS + 5),)
    assert [one.alert for one in none.closed] == [HELD]
    assert events(ledger) == ["alert.raise", "alert.raise", "alert.close", "alert.close"]


def test_a_trouble_that_comes_back_is_a_new_alert(ledger: Ledger) -> None:
    settle(ledger, DEAD)
    settle(ledger)
    settle(ledger, DEAD)

    assert [(one.id, one.closed_at_ms is None) for one in everything(ledger)] == [
        (1, False),
        (2, True),
    ]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(Alert(AlertKind.HELD, "elm", "no answer"), id="of another kind"),
        pytest.param(Alert(AlertKind.NODE_DEAD, "ash", "no answer"), id="about something else"),
        pytest.param(Alert(AlertKind.NODE_DEAD, "elm", "no route"), id="for another reason"),
    ],
)
def test_an_alert_that_differs_in_anything_is_another(ledger: Ledger, other: Alert) -> None:
    settle(ledger, DEAD)

    assert [one.alert for one in settle(ledger, DEAD, other).raised] == [other]


def test_what_could_not_be_judged_stays_open(ledger: Ledger) -> None:
    settle(ledger, DEAD, HELD)

    assert settle(ledger, unjudged=["web"]).closed[0].alert == DEAD
    assert standing(ledger) == {HELD}


def test_an_acknowledged_alert_is_not_raised_again_until_its_cause_has_gone(
    ledger: Ledger,
) -> None:
    settle(ledger, DEAD)
    known = ack(ledger, 1, NOW_MS + 1)

    assert known is not None
    assert (known.acked_at_ms, known.acked_by) == (NOW_MS + 1, AUTHOR.actor)
    assert ack(ledger, 1) is None
    assert settle(ledger, DEAD) == Settled()
    assert [one.id for one in settle(ledger).closed] == [1]
    assert [one.id for one in settle(ledger, DEAD).raised] == [2]
    assert everything(ledger)[1].acked_at_ms is None


@pytest.mark.parametrize("id_", [pytest.param(1, id="closed"), pytest.param(7, id="never raised")])
def test_only_what_is_open_can_be_acknowledged(ledger: Ledger, id_: int) -> None:
    settle(ledger, DEAD)
    settle(ledger)
    before = events(ledger)

    with pytest.raises(UnknownName):
        ack(ledger, id_)

    assert events(ledger) == before


def test_outside_a_pass_an_alert_is_added_and_none_is_closed(ledger: Ledger) -> None:
    settle(ledger, DEAD)
    with ledger.write(NOW_MS, AUTHOR) as tx:
        assert [one.alert for one in alerts.add(tx, [DEAD, HELD])] == [HELD]

    assert standing(ledger) == {DEAD, HELD}


UNPROVEN = frozenset(
    {"state-lost", "two-machines", "returned", "orphan"}
    | {"unproven", "unsettled", "rollback", "fork"}
)


@pytest.mark.parametrize("kind", AlertKind)
def test_a_pass_knows_whether_something_new_is_unproven(ledger: Ledger, kind: AlertKind) -> None:
    assert settle(ledger, HELD, Alert(kind, "x", "y")).is_unproven is (kind in UNPROVEN)
    assert settle(ledger, HELD, Alert(kind, "x", "y")).is_unproven is False


def test_words_from_outside_are_made_fit_to_be_kept(ledger: Ledger) -> None:
    odd = Alert(AlertKind.HELD, "a\0b", "\ud800" + "x" * REASON_MAX)

    settle(ledger, odd)

    assert standing(ledger) == {odd}
    assert odd.subject == "a\ufffdb"
    assert odd.reason == "\ufffd" + "x" * (REASON_MAX - 2) + "…"
    assert settle(ledger, odd) == Settled()


def test_a_channel_is_remembered_without_an_event(ledger: Ledger) -> None:
    first = Channel("command", 3, NOW_MS, NOW_MS, "told")
    second = Channel("command", 4, NOW_MS + 1, NOW_MS + 1, "exit 1")
    for now in (first, second):
        with ledger.write(NOW_MS, AUTHOR) as tx:
            alerts.record_channel(tx, now)

    with ledger.read() as tx:
        assert alerts.channels(tx) == {"command": second}
    assert events(ledger) == []


ALERTS = st.builds(
    Alert,
    st.sampled_from([AlertKind.HELD, AlertKind.ORPHAN]),
    st.sampled_from(["web", "elm", ""]),
    st.sampled_from(["one", "two"]) | st.text(max_size=5),
)


@settings(max_examples=40, deadline=None)
@given(
    passes=st.lists(
        st.tuples(
            st.frozensets(ALERTS, max_size=6), st.frozensets(st.sampled_from(["web", "elm"]))
        ),
        max_size=5,
    ),
    acked=st.sets(st.integers(1, 12)),
)
def test_after_each_pass_what_is_open_is_what_was_found_or_could_not_be_judged(
    passes: list[tuple[frozenset[Alert], frozenset[str]]],
    acked: set[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("alerts") / "ledger.db"
    ledger = create_ledger(path, installation=INSTALLATION, now_ms=NOW_MS, author=AUTHOR)
    for found, unjudged in passes:
        before = standing(ledger)
        settle(ledger, *found, unjudged=unjudged)
        expected = found | {one for one in before if one.subject in unjudged}
        assert standing(ledger) == expected

        for one in everything(ledger):
            if one.id in acked and one.closed_at_ms is None:
                ack(ledger, one.id)
        told, rows = events(ledger), everything(ledger)
        assert settle(ledger, *found, unjudged=unjudged) == Settled()
        assert (events(ledger), everything(ledger)) == (told, rows)
    assert isinstance(verify(ledger), Verified)
    ledger.close()


@pytest.mark.parametrize(
    ("statement", "event"),
    [
        pytest.param("UPDATE alerts SET reason = 'x' WHERE id = 1", 2, id="another reason"),
        pytest.param("UPDATE alerts SET closed_at_ms = 1 WHERE id = 2", 3, id="closed by nobody"),
        pytest.param("UPDATE alerts SET closed_at_ms = NULL", 5, id="open again"),
        pytest.param(
            "UPDATE alerts SET acked_by = 'mallory' WHERE id = 1", 4, id="known to somebody else"
        ),
        pytest.param("DELETE FROM alerts WHERE id = 2", 3, id="one that is gone"),
        pytest.param(
            "INSERT INTO alerts (id, kind, subject, reason, raised_at_ms, seq)"
            " VALUES (9, 'held', '', '', 0, 1)",
            0,
            id="one from nowhere",
        ),
    ],
)
def test_the_table_is_held_to_the_chain(
    ledger: Ledger, path: Path, statement: str, event: int
) -> None:
    settle(ledger, DEAD, HELD)  # in the order of their kinds: HELD is 1, DEAD is 2
    ack(ledger, 1)
    settle(ledger, DEAD)
    ledger.close()
    tamper(path, statement)

    with opened(path) as again:
        found = verify(again)

    assert isinstance(found, Broken)
    assert found.seq == event
