import multiprocessing
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, inspect
from sqlalchemy.engine import Inspector

from tests.ledger.made import AUTHOR, INSTALLATION, NOW_MS, fill, opened, past_the_program, tamper
from wlctl.errors import ExitCode, LedgerDamaged, LedgerDiskFull, LedgerNewer, LedgerOutdated
from wlctl.ledger import chain, migrate
from wlctl.ledger.migrate import SHIPPED, Migrated, Migrations
from wlctl.ledger.opening import create_ledger, migrate_ledger, open_ledger
from wlctl.ledger.schema import metadata
from wlctl.ledger.verify import Verified, verify

ADDITIVE = """
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
additive = True


def upgrade() -> None:
    op.create_table("added", sa.Column("id", sa.Text, primary_key=True))
"""

REWRITING = """
from alembic import op

revision = "0003"
down_revision = "0002"
additive = False


def upgrade() -> None:
    op.execute("UPDATE installation SET created_at_ms = created_at_ms + 1")
"""

FAILING = """
from alembic import op

revision = "0002"
down_revision = "0001"
additive = True


def upgrade() -> None:
    op.execute("CREATE TABLE half (id)")
    op.execute("INSERT INTO nowhere VALUES (1)")
"""


@pytest.fixture
def steps(tmp_path: Path) -> Callable[..., Migrations]:
    """Make the migrations of a later program: what this one ships, and these steps."""

    def make(*texts: str) -> Migrations:
        scripts = tmp_path / "migrations"
        shutil.rmtree(scripts, ignore_errors=True)
        shutil.copytree(SHIPPED.scripts, scripts)
        for number, text in enumerate(texts, 2):
            (scripts / "versions" / f"{number:04}_later.py").write_text(text)
        return Migrations(scripts, head=f"{1 + len(texts):04}")

    return make


@contextmanager
def opened_by(path: Path, migrations: Migrations) -> Iterator[Any]:
    ledger = open_ledger(path, now_ms=NOW_MS, author=AUTHOR, migrations=migrations)
    try:
        yield ledger
    finally:
        ledger.close()


def migrated_by(path: Path, migrations: Migrations) -> Migrated | None:
    return migrate_ledger(path, now_ms=NOW_MS, author=AUTHOR, migrations=migrations)


def revision_of(path: Path) -> str:
    with past_the_program(path) as conn:
        (revision,) = conn.execute("SELECT version_num FROM alembic_version").fetchone()
    return str(revision)


def backups_of(path: Path) -> list[Path]:
    return sorted(path.parent.glob("ledger.db.backup-*"))


class TestTheShippedOnes:
    def test_end_where_the_program_thinks_they_do(self) -> None:
        from alembic.script import ScriptDirectory

        assert ScriptDirectory(str(SHIPPED.scripts)).get_heads() == [SHIPPED.head]

    def test_count_up_and_say_whether_they_rewrite_rows(self) -> None:
        revisions = [step.revision for step in migrate.steps_from("base", SHIPPED)]

        assert revisions == [f"{number:04}" for number in range(1, len(revisions) + 1)]
        assert all(isinstance(s.additive, bool) for s in migrate.steps_from("base", SHIPPED))

    def test_make_the_tables_that_the_program_works_with(
        self, new_ledger: Path, tmp_path: Path
    ) -> None:
        wanted = create_engine(f"sqlite:///{tmp_path / 'wanted.db'}")
        metadata.create_all(wanted)
        made = create_engine(f"sqlite:///{new_ledger}")
        try:
            assert described(inspect(made)) == described(inspect(wanted))
        finally:
            made.dispose()
            wanted.dispose()


def described(database: Inspector) -> dict[str, Any]:
    """Describe every table with all that a migration can forget."""
    return {
        table: {
            "columns": {
                column["name"]: (
                    str(column["type"]),
                    column["nullable"],
                    column["default"],
                )
                for column in database.get_columns(table)
            },
            "primary key": database.get_pk_constraint(table),
            "foreign keys": in_order(database.get_foreign_keys(table)),
            "unique": in_order(database.get_unique_constraints(table)),
            "checks": in_order(database.get_check_constraints(table)),
            "indexes": in_order(database.get_indexes(table)),
        }
        for table in database.get_table_names()
        if table != "alembic_version"
    }


def in_order(things: Any) -> list[str]:
    return sorted(str(plain(thing)) for thing in things)


def plain(thing: Any) -> Any:
    """Write down what was found; a condition is the text of its SQL."""
    if isinstance(thing, dict):
        return {key: plain(value) for key, value in sorted(thing.items())}
    return thing if isinstance(thing, list) else str(thing)


class TestAnOlderLedger:
    def test_is_upgraded_unasked_when_no_row_is_rewritten(
        self, ledger: Any, path: Path, steps: Callable[..., Migrations]
    ) -> None:
        fill(ledger, 3)
        ledger.close()

        with opened_by(path, steps(ADDITIVE)) as upgraded:
            with upgraded.read() as tx:
                (event,) = chain.events(tx, kind="ledger.migrate")
            assert isinstance(verify(upgraded), Verified)

        assert revision_of(path) == "0002"
        (backup,) = backups_of(path)
        assert backup.name == "ledger.db.backup-0001-20231114T221320Z"
        assert event.seq == 5
        assert event.payload == {
            "before": "0001",
            "after": "0002",
            "backup": backup.name,
            "by": {"command": AUTHOR.command, "message": AUTHOR.message},
        }

    def test_is_kept_as_it_was_before(
        self, ledger: Any, path: Path, steps: Callable[..., Migrations]
    ) -> None:
        fill(ledger, 3)
        with opened_by(path, steps(ADDITIVE)):
            pass

        (backup,) = backups_of(path)
        assert stat.S_IMODE(backup.stat().st_mode) == 0o600
        assert revision_of(backup) == "0001"
        with opened(backup) as before:
            found = verify(before)
        assert isinstance(found, Verified)
        assert found.head.seq == 4

    def test_is_not_touched_when_rows_would_be_rewritten(
        self, ledger: Any, path: Path, steps: Callable[..., Migrations]
    ) -> None:
        with pytest.raises(LedgerOutdated, match=r"0001.*needs 0003") as failure:
            open_ledger(path, now_ms=NOW_MS, author=AUTHOR, migrations=steps(ADDITIVE, REWRITING))

        assert failure.value.exit_code is ExitCode.LEDGER
        assert revision_of(path) == "0001"
        assert not backups_of(path)

    def test_is_rewritten_when_somebody_asks(
        self, ledger: Any, path: Path, steps: Callable[..., Migrations]
    ) -> None:
        done = migrated_by(path, steps(ADDITIVE, REWRITING))

        assert done == Migrated("0001", "0003", backups_of(path)[0])
        assert revision_of(path) == "0003"
        with past_the_program(path) as conn:
            made = conn.execute("SELECT created_at_ms FROM installation").fetchone()
        assert made == (NOW_MS + 1,)

    def test_stays_as_it_was_when_a_step_fails(
        self, ledger: Any, path: Path, steps: Callable[..., Migrations]
    ) -> None:
        with pytest.raises(Exception, match="no such table: nowhere"):
            migrated_by(path, steps(FAILING))

        assert revision_of(path) == "0001"
        assert not backups_of(path)
        with past_the_program(path) as conn, pytest.raises(sqlite3.OperationalError):
            conn.execute("SELECT * FROM half")
        with opened(path) as intact:
            assert isinstance(verify(intact), Verified)

    def test_is_not_upgraded_when_it_cannot_be_kept(
        self,
        ledger: Any,
        path: Path,
        steps: Callable[..., Migrations],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def no_room(*_: object) -> None:
            raise LedgerDiskFull("no room")

        monkeypatch.setattr("wlctl.ledger.sqlite.Sqlite.copy_to", no_room)
        with pytest.raises(LedgerDiskFull):
            migrated_by(path, steps(ADDITIVE))

        assert revision_of(path) == "0001"

    def test_loses_what_a_killed_migration_left_of_its_backup(
        self, ledger: Any, path: Path, steps: Callable[..., Migrations]
    ) -> None:
        left = path.with_name("ledger.db.backup-0001-20200101T000000Z.partial")
        left.write_bytes(b"half")
        journal = left.with_name(f"{left.name}-wal")
        journal.write_bytes(b"its journal")
        others = path.with_name("another.db.backup-0001.partial")
        others.write_bytes(b"not ours")

        migrated_by(path, steps(ADDITIVE))

        assert not left.exists()
        assert not journal.exists()
        assert others.exists()

    def test_is_still_the_same_for_the_older_program_that_has_it_open(
        self, ledger: Any, path: Path, steps: Callable[..., Migrations]
    ) -> None:
        migrated_by(path, steps(ADDITIVE))

        fill(ledger, 1)
        assert isinstance(verify(ledger), Verified)


def test_a_ledger_of_this_version_needs_nothing(ledger: Any, path: Path) -> None:
    assert migrated_by(path, SHIPPED) is None
    assert not backups_of(path)


class TestANewerLedger:
    @pytest.fixture
    def newer(self, ledger: Any, path: Path) -> Path:
        tamper(path, "UPDATE alembic_version SET version_num = '0999'")
        ledger.close()
        return path

    @pytest.mark.parametrize("do", [open_ledger, migrate_ledger], ids=["opened", "migrated"])
    def test_is_refused_with_both_versions_named(
        self, newer: Path, do: Callable[..., object]
    ) -> None:
        before = newer.read_bytes()
        with pytest.raises(LedgerNewer) as failure:
            do(newer, now_ms=NOW_MS, author=AUTHOR)

        assert "0999" in failure.value.message
        assert SHIPPED.head in failure.value.message
        assert failure.value.exit_code is ExitCode.LEDGER
        assert newer.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("DELETE FROM alembic_version", id="none"),
        pytest.param("INSERT INTO alembic_version VALUES ('0002')", id="two"),
        pytest.param("UPDATE alembic_version SET version_num = 'new'", id="no number"),
        pytest.param("UPDATE alembic_version SET version_num = '1'", id="too few digits"),
        pytest.param("DROP TABLE alembic_version", id="no table for it"),
    ],
)
def test_a_ledger_that_does_not_say_its_revision_is_damaged(
    ledger: Any, path: Path, statement: str
) -> None:
    ledger.close()
    tamper(path, statement)

    with pytest.raises(LedgerDamaged):
        open_ledger(path, now_ms=NOW_MS, author=AUTHOR)


def open_and_close(path: Path, migrations: Migrations) -> int:
    """Be one of the processes that come at the same moment after an update of the program."""
    with opened_by(path, migrations) as ledger:
        return len(fill(ledger, 1))


def test_of_two_that_migrate_at_once_one_waits(
    ledger: Any, path: Path, steps: Callable[..., Migrations]
) -> None:
    fill(ledger, 50)
    ledger.close()
    later = steps(ADDITIVE)
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert pool.starmap(open_and_close, [(path, later)] * 4) == [1, 1, 1, 1]

    assert len(backups_of(path)) == 1
    with opened_by(path, later) as migrated:
        with migrated.read() as tx:
            assert len(list(chain.events(tx, kind="ledger.migrate"))) == 1
        assert isinstance(verify(migrated), Verified)


def test_a_new_ledger_is_made_with_every_step(
    tmp_path: Path, steps: Callable[..., Migrations]
) -> None:
    path = tmp_path / "another.db"
    create_ledger(
        path,
        installation=INSTALLATION,
        now_ms=NOW_MS,
        author=AUTHOR,
        migrations=steps(ADDITIVE, REWRITING),
    ).close()

    assert revision_of(path) == "0003"
    assert not backups_of(path)
