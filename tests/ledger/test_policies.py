"""Policies and approvals as the ledger keeps them: bound by events, and seen to be changed."""

from pathlib import Path

import pytest

from tests.ledger.made import AUTHOR, NOW_MS, opened, tamper
from wlctl.errors import AmbiguousName, UnknownName
from wlctl.ledger import approvals, chain, policies
from wlctl.ledger.approvals import VALID_MS, Approval
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Broken, Verified, verify
from wlctl.model.event import Json
from wlctl.model.policy import Unreadable

HERE = "installation"
REQUEST: dict[str, Json] = {"action": "start", "principal": "alice"}


def apply(ledger: Ledger, text: str, *, now_ms: int = NOW_MS) -> None:
    with ledger.write(now_ms, AUTHOR) as tx:
        policies.apply(tx, text)


def in_force(path: Path) -> policies.StoredPolicy | Unreadable:
    with opened(path) as ledger, ledger.read() as tx:
        return policies.in_force(tx)


def deferred(ledger: Ledger, id_: str = "a1", *, now_ms: int = NOW_MS) -> Approval:
    with ledger.write(now_ms, AUTHOR) as tx:
        return approvals.defer(tx, id_, HERE, REQUEST)


def test_a_new_ledger_has_no_policy(ledger: Ledger) -> None:
    with ledger.read() as tx:
        assert isinstance(policies.in_force(tx), Unreadable)
        assert not policies.was_ever_applied(tx)


def test_the_policy_applied_last_is_in_force(ledger: Ledger) -> None:
    apply(ledger, "one")
    apply(ledger, "two é", now_ms=NOW_MS + 1)

    with ledger.read() as tx:
        found = policies.in_force(tx)
        events = list(chain.events(tx, kind="policy.apply"))
        assert policies.was_ever_applied(tx)

    digest = policies.digest_of("two é")
    assert found == policies.StoredPolicy(events[-1].seq, digest, "two é", NOW_MS + 1)
    assert [event.payload["sha256"] for event in events] == [policies.digest_of("one"), digest]


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("UPDATE policies SET text = 'other'", id="another text"),
        pytest.param("UPDATE policies SET text = 'x', sha256 = 'y'", id="another text and hash"),
        pytest.param("UPDATE policies SET seq = 1", id="another event"),
        pytest.param("DELETE FROM policies", id="none"),
    ],
)
def test_a_policy_that_was_changed_is_neither_in_force_nor_agreed(
    ledger: Ledger, path: Path, statement: str
) -> None:
    apply(ledger, "one")
    ledger.close()
    assert not isinstance(in_force(path), Unreadable)

    tamper(path, statement)

    assert isinstance(in_force(path), Unreadable)
    with opened(path) as again:
        assert isinstance(verify(again), Broken)


def test_a_lost_policy_is_seen_when_an_older_one_is_left(ledger: Ledger, path: Path) -> None:
    apply(ledger, "one")
    apply(ledger, "two")
    ledger.close()
    with opened(path) as again:
        assert isinstance(verify(again), Verified)

    tamper(path, "DELETE FROM policies WHERE text = 'two'")

    assert isinstance(in_force(path), Unreadable), "the one before it is not in force again"
    with opened(path) as again:
        assert isinstance(verify(again), Broken)


def test_a_policy_from_nowhere_is_seen(ledger: Ledger, path: Path) -> None:
    apply(ledger, "one")
    ledger.close()

    tamper(path, "INSERT INTO policies SELECT 99, sha256, text, 0 FROM policies")

    assert isinstance(in_force(path), Unreadable)
    with opened(path) as again:
        assert isinstance(verify(again), Broken)


def test_an_approval_lives_from_deferred_to_spent(ledger: Ledger) -> None:
    first = deferred(ledger)
    with ledger.write(NOW_MS, AUTHOR) as tx:
        approvals.approve(tx, first, approver="carol", signature="sig")
        approved = approvals.find(tx, HERE, "a1")
        approvals.spend(tx, approved)
        spent = approvals.find(tx, HERE, "a1")
        assert approvals.find_open(tx, HERE, first.request_sha256, NOW_MS) is None
    second = deferred(ledger, "b2")

    assert (first.approver, first.spent_at_ms) == ("", None)
    assert (approved.approver, approved.signature, approved.spent_at_ms) == ("carol", "sig", None)
    assert spent.spent_at_ms == NOW_MS
    assert second.id == "b2"
    assert second.request_sha256 == first.request_sha256
    assert isinstance(verify(ledger), Verified)


def test_a_request_that_waits_is_not_deferred_twice_until_it_runs_out(ledger: Ledger) -> None:
    first = deferred(ledger)

    assert deferred(ledger, "b2", now_ms=NOW_MS + VALID_MS - 1) == first
    assert deferred(ledger, "b2", now_ms=NOW_MS + VALID_MS).id == "b2"


def test_what_is_signed_names_ledger_id_request_and_expiry(ledger: Ledger) -> None:
    first = deferred(ledger)

    assert first.text.splitlines() == [
        "wlctl-approval/1",
        HERE,
        "a1",
        approvals.digest_of(REQUEST),
        "2023-11-15T22:13:20.000Z",
    ]


def test_an_approval_is_found_by_the_beginning_of_its_id(ledger: Ledger) -> None:
    deferred(ledger, "abc1")
    deferred(ledger, "abd2", now_ms=NOW_MS + VALID_MS)

    with ledger.read() as tx:
        assert approvals.find(tx, HERE, "abc").id == "abc1"
        with pytest.raises(AmbiguousName):
            approvals.find(tx, HERE, "ab")
        with pytest.raises(UnknownName):
            approvals.find(tx, HERE, "%")


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("UPDATE approvals SET spent_at_ms = NULL", id="to be used again"),
        pytest.param("UPDATE approvals SET approver = 'dave'", id="another approver"),
        pytest.param("UPDATE approvals SET expires_at_ms = 0", id="another expiry"),
        pytest.param("UPDATE approvals SET principal = 'eve'", id="another who asked"),
        pytest.param("DELETE FROM approvals", id="gone"),
    ],
)
def test_an_approval_that_was_changed_is_seen(ledger: Ledger, path: Path, statement: str) -> None:
    first = deferred(ledger)
    with ledger.write(NOW_MS, AUTHOR) as tx:
        approvals.approve(tx, first, approver="carol", signature="sig")
        approvals.spend(tx, first)
    ledger.close()

    tamper(path, statement)

    with opened(path) as again:
        assert isinstance(verify(again), Broken)
