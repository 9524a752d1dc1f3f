from pathlib import Path

import pytest

from tests.ledger.made import fill, opened, tamper
from wlctl.ledger.check import Health, check
from wlctl.ledger.migrate import SHIPPED
from wlctl.ledger.store import Ledger

COLUMNS = "(instance_id, to_state, at_ms, reason, seq)"


def found_bad(health: Health) -> set[str]:
    return {finding.what for finding in health.findings if not finding.good}


def test_a_ledger_in_good_order_says_what_was_looked_at(ledger: Ledger) -> None:
    newest = fill(ledger, 3)[-1]

    health = check(ledger)

    assert health.good
    assert health.head is not None
    assert (health.head.seq, health.head.hash) == (newest.seq, newest.hash)
    assert {finding.what: finding.detail for finding in health.findings} == {
        "mode": "0600",
        "journal": "wal",
        "integrity": "ok",
        "foreign_keys": "ok",
        "revision": SHIPPED.head,
        "chain_head": f"{newest.seq} {newest.hash}",
    }


@pytest.mark.parametrize(
    ("statements", "what"),
    [
        pytest.param(
            [
                "PRAGMA foreign_keys = OFF",
                f"INSERT INTO life_events {COLUMNS} VALUES ('i', 'b', 0, '', 9)",
            ],
            "foreign_keys",
            id="a row that refers to nothing",
        ),
        pytest.param(["DELETE FROM chain"], "chain_head", id="no chain"),
        pytest.param(["DELETE FROM alembic_version"], "tables", id="no revision"),
    ],
)
def test_what_is_wrong_with_rows_is_found(
    ledger: Ledger, path: Path, statements: list[str], what: str
) -> None:
    tamper(path, *statements)

    assert found_bad(check(ledger)) == {what}


def test_a_mode_that_lets_others_in_is_found(ledger: Ledger, path: Path) -> None:
    path.chmod(0o640)

    assert found_bad(check(ledger)) == {"mode"}


def test_damaged_pages_are_found_and_not_raised(ledger: Ledger, path: Path) -> None:
    fill(ledger, 200)
    ledger.close()
    whole = bytearray(path.read_bytes())
    spot = whole.index(b'"n":100,')
    page = spot - spot % 4096
    whole[page : page + 4096] = bytes(4096)
    path.write_bytes(whole)

    with opened(path) as damaged:
        assert "integrity" in found_bad(check(damaged))


def test_an_index_that_does_not_match_its_table_is_found(ledger: Ledger, path: Path) -> None:
    tamper(path, "INSERT INTO signers (name, public_key, added_at_ms) VALUES ('alice', 'k', 0)")
    ledger.close()
    whole = path.read_bytes()
    first = whole.index(b"alice")
    path.write_bytes(whole[:first] + b"alicf" + whole[first + 5 :])

    with opened(path) as damaged:
        assert "integrity" in found_bad(check(damaged))
