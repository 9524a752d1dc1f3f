"""The revocation list: what its newest event binds, or nothing at all."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ledger.made import AUTHOR, NOW_MS, a_ledger, opened, tamper
from wlctl.errors import UnknownName
from wlctl.ledger import chain, revocations
from wlctl.ledger.schema import LISTS_TOLD
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Broken, Verified, verify
from wlctl.model.policy import Unreadable
from wlctl.model.revocation import Revocation, RevocationKind, Revocations

PACKAGE, KEY, ARTIFACT = RevocationKind
WEB, LIB = "a" * 64, "b" * 64
ANN = "SHA256:ann"


def revoke(ledger: Ledger, kind: RevocationKind, ref: str, reason: str = "leaked") -> bool:
    with ledger.write(NOW_MS, AUTHOR) as tx:
        return revocations.revoke(tx, kind, ref, reason)


def unrevoke(ledger: Ledger, kind: RevocationKind, ref: str) -> None:
    with ledger.write(NOW_MS, AUTHOR) as tx:
        revocations.unrevoke(tx, kind, ref, "by mistake")


def listed(ledger: Ledger) -> Revocations:
    with ledger.read() as tx:
        found = revocations.in_force(tx)
    assert isinstance(found, Revocations)
    return found


def test_nothing_is_revoked_at_first(ledger: Ledger) -> None:
    found = listed(ledger)

    assert (found.entries, found.name.serial) == ((), 0)


def test_what_is_revoked_is_listed_and_chained_with_the_list_it_makes(ledger: Ledger) -> None:
    assert revoke(ledger, PACKAGE, WEB)
    assert revoke(ledger, KEY, ANN)
    assert revoke(ledger, ARTIFACT, LIB)

    found = listed(ledger)
    assert found.refs == {WEB, LIB, ANN}
    assert [(one.kind, one.reason) for one in found.entries] == [
        (kind, "leaked") for kind in RevocationKind
    ]
    with ledger.read() as tx:
        *_, event = chain.events(tx, kind="workload.revoke")
    name = found.name
    assert event.payload["list"] == {"epoch": 0, "serial": 3, "sha256": name.sha256}
    assert (name.epoch, name.serial) == (0, 3)


def test_revoking_again_changes_nothing(ledger: Ledger) -> None:
    revoke(ledger, PACKAGE, WEB)
    before = listed(ledger)

    assert not revoke(ledger, PACKAGE, WEB, "for another reason")

    assert listed(ledger) == before


def test_what_is_taken_back_leaves_the_list_and_its_serial_still_grows(ledger: Ledger) -> None:
    revoke(ledger, PACKAGE, WEB)
    revoke(ledger, KEY, ANN)
    unrevoke(ledger, PACKAGE, WEB)

    assert listed(ledger).refs == {ANN}
    assert listed(ledger).name.serial == 3
    with ledger.write(NOW_MS, AUTHOR) as tx, pytest.raises(UnknownName, match="is not revoked"):
        revocations.unrevoke(tx, PACKAGE, WEB, "again")
    assert revoke(ledger, PACKAGE, WEB)
    assert listed(ledger).name.serial == 4
    assert isinstance(verify(ledger), Verified)


def test_the_list_is_named_by_what_is_on_it_and_not_by_how_it_came_there() -> None:
    one = [Revocation(1, KEY, ANN, "x", 5), Revocation(2, PACKAGE, WEB, "x", 6)]
    other = [Revocation(9, PACKAGE, WEB, "y", 0), Revocation(8, KEY, ANN, "z", 1)]

    assert revocations.digest_of(one) == revocations.digest_of(other)
    assert revocations.digest_of(one) != revocations.digest_of(one[:1])


@pytest.fixture
def told(ledger: Ledger) -> None:
    """Two things revoked and one taken back."""
    revoke(ledger, PACKAGE, WEB)
    revoke(ledger, KEY, ANN)
    revoke(ledger, ARTIFACT, LIB)
    unrevoke(ledger, KEY, ANN)
    ledger.close()


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("DELETE FROM revocations WHERE kind = 'package'", id="an entry is gone"),
        pytest.param("UPDATE revocations SET ref = 'x' WHERE kind = 'package'", id="another ref"),
        pytest.param("UPDATE revocations SET kind = 'key'", id="another kind"),
        pytest.param("UPDATE revocations SET kind = 'all'", id="a kind there is not"),
        pytest.param("UPDATE revocations SET withdrawn_seq = NULL", id="not taken back after all"),
        pytest.param("UPDATE revocations SET withdrawn_seq = 1", id="all taken back"),
        pytest.param(
            "INSERT INTO revocations VALUES (1, 'package', 'c', '', 0, NULL)", id="one too many"
        ),
        pytest.param("DELETE FROM revocations", id="all gone"),
        pytest.param("DELETE FROM revocations WHERE kind = 'artifact'", id="the last one is gone"),
    ],
)
def test_a_list_that_is_not_what_was_told_is_found_out(
    told: None, path: Path, statement: str
) -> None:
    tamper(path, statement)

    with opened(path) as ledger:
        assert isinstance(verify(ledger), Broken)
        with ledger.read() as tx:
            found = revocations.in_force(tx)
    assert isinstance(found, Unreadable)


def test_another_reason_is_found_out_by_verifying_and_changes_nothing_that_is_forbidden(
    told: None, path: Path
) -> None:
    tamper(path, "UPDATE revocations SET reason = 'none'")

    with opened(path) as ledger:
        assert isinstance(verify(ledger), Broken)
        assert listed(ledger).refs == {WEB, LIB}


def test_the_last_event_that_tells_of_a_list_is_found_by_its_index(ledger: Ledger) -> None:
    """A place asks for it: among a million events it must not be searched for."""
    query = f"SELECT seq FROM chain WHERE {LISTS_TOLD} AND kind IN ('x') ORDER BY seq DESC LIMIT 1"
    with ledger.read() as tx:
        plan = tx.conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}").all()

    assert "ix_chain_lists_told" in str(plan)


actions = st.lists(
    st.tuples(st.booleans(), st.sampled_from(RevocationKind), st.sampled_from([WEB, LIB, ANN])),
    max_size=12,
)


@settings(deadline=None, max_examples=25)
@given(actions)
def test_whatever_is_revoked_and_taken_back_the_list_is_what_is_left(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, RevocationKind, str]]
) -> None:
    held: set[tuple[RevocationKind, str]] = set()
    changes = 0
    with a_ledger(tmp_path_factory.mktemp("ledger") / "ledger.db") as ledger:
        for adds, kind, ref in steps:
            if adds:
                assert revoke(ledger, kind, ref) == ((kind, ref) not in held)
                changes += (kind, ref) not in held
                held.add((kind, ref))
            elif (kind, ref) in held:
                unrevoke(ledger, kind, ref)
                changes += 1
                held.remove((kind, ref))
        found = listed(ledger)
        assert {(one.kind, one.ref) for one in found.entries} == held
        assert found.name.serial == changes
        assert isinstance(verify(ledger), Verified)
