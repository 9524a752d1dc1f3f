import fcntl
import multiprocessing
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ledger.made import AUTHOR, INSTALLATION, NOW_MS, a_ledger, fill, opened, tamper
from wlctl.errors import (
    ExitCode,
    LedgerBusy,
    LedgerDamaged,
    LedgerExists,
    LedgerPermissions,
    NoLedger,
    NotALedger,
    WlctlError,
)
from wlctl.ledger import chain
from wlctl.ledger.opening import create_ledger, open_ledger
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Verified, verify
from wlctl.model.ids import InstallationId


def files_below(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Describe all that is there, so that a change can be seen."""
    return {
        str(file.relative_to(directory)): (file.lstat().st_mode, file.read_bytes())
        for file in sorted(directory.rglob("*"))
        if file.is_file()
    }


def head_seq(ledger: Ledger) -> int:
    with ledger.read() as tx:
        return chain.head(tx)[0]


def a_text(path: Path) -> None:
    path.write_text("not a ledger at all\n" * 300)


def a_database_of_another_program(path: Path) -> None:
    tamper(path, "CREATE TABLE t (x)", "PRAGMA journal_mode = WAL")


NOT_LEDGERS = [
    pytest.param(lambda path: None, NoLedger, id="nothing"),
    pytest.param(lambda path: path.parent.rmdir(), NoLedger, id="nor its directory"),
    pytest.param(lambda path: path.symlink_to("gone"), NoLedger, id="a link to nothing"),
    pytest.param(lambda path: path.symlink_to(path.name), LedgerPermissions, id="a link to itself"),
    pytest.param(Path.mkdir, NotALedger, id="a directory"),
    pytest.param(os.mkfifo, NotALedger, id="a pipe"),
    pytest.param(lambda path: os.mknod(path, stat.S_IFSOCK | 0o600), NotALedger, id="a socket"),
    pytest.param(Path.touch, NotALedger, id="an empty file"),
    pytest.param(lambda path: path.write_bytes(b"x"), NotALedger, id="one byte"),
    pytest.param(a_text, NotALedger, id="a text"),
    pytest.param(a_database_of_another_program, NotALedger, id="another program's database"),
]


@pytest.mark.parametrize(("make", "failure"), NOT_LEDGERS)
def test_what_is_no_ledger_is_refused_and_left_as_it_is(
    tmp_path: Path,
    make: Callable[[Path], object],
    failure: type[WlctlError],
) -> None:
    path = tmp_path / "directory" / "ledger.db"
    path.parent.mkdir()
    make(path)
    if path.is_file():
        path.chmod(0o600)
    before = files_below(tmp_path)

    with pytest.raises(failure) as raised:
        open_ledger(path, now_ms=NOW_MS, author=AUTHOR)

    assert raised.value.exit_code is ExitCode.USAGE
    assert os.path.realpath(path) in raised.value.message
    assert "\n" not in raised.value.message
    assert files_below(tmp_path) == before


def test_an_empty_file_is_said_to_be_empty(path: Path) -> None:
    path.touch(mode=0o600)

    with pytest.raises(NotALedger, match="is empty"):
        open_ledger(path, now_ms=NOW_MS, author=AUTHOR)


def test_a_path_through_a_file_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(NoLedger):
        open_ledger(tmp_path / "file" / "ledger.db", now_ms=NOW_MS, author=AUTHOR)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o622, 0o601])
def test_a_ledger_that_is_open_to_others_is_refused(ledger: Ledger, path: Path, mode: int) -> None:
    path.chmod(mode)

    with pytest.raises(LedgerPermissions, match=f"mode {mode:04o}") as raised:
        open_ledger(path, now_ms=NOW_MS, author=AUTHOR)
    assert raised.value.exit_code is ExitCode.USAGE
    hint = f"name your ledger with --db; if this is it, run `chmod 600 {path}`"
    assert raised.value.hint == hint


class TestADamagedLedger:
    """Damage is told with exit code 11, never as a traceback, and nothing is repaired unasked."""

    @pytest.fixture
    def whole(self, ledger: Ledger, path: Path) -> bytes:
        fill(ledger, 200)
        ledger.close()
        return path.read_bytes()

    @pytest.mark.parametrize(
        "kept",
        [
            pytest.param(lambda whole: whole[: len(whole) // 2], id="half of it"),
            pytest.param(lambda whole: whole[:-4096], id="all but a page"),
            pytest.param(lambda whole: whole[:4096], id="one page"),
            pytest.param(lambda whole: whole[:100], id="its header"),
            pytest.param(lambda whole: whole[:50], id="half its header"),
            pytest.param(lambda whole: b"x" + whole[1:], id="another first byte"),
            pytest.param(lambda whole: whole[:70] + b"x" + whole[71:], id="another mark"),
            pytest.param(lambda whole: whole[:100] + bytes(4000) + whole[4100:], id="no tables"),
        ],
    )
    def test_is_named_when_it_is_opened(
        self, whole: bytes, path: Path, kept: Callable[[bytes], bytes]
    ) -> None:
        damaged = kept(whole)
        path.write_bytes(damaged)

        with pytest.raises(LedgerDamaged) as raised:
            open_ledger(path, now_ms=NOW_MS, author=AUTHOR)

        assert raised.value.exit_code is ExitCode.LEDGER
        assert str(path) in raised.value.message
        assert raised.value.hint
        assert path.read_bytes() == damaged

    @pytest.mark.parametrize("row", ["DELETE FROM installation", "UPDATE installation SET id = ''"])
    def test_has_lost_its_identity(self, whole: bytes, path: Path, row: str) -> None:
        tamper(path, row)

        with pytest.raises(LedgerDamaged):
            open_ledger(path, now_ms=NOW_MS, author=AUTHOR)

    def test_never_shows_as_anything_else_wherever_a_byte_flips(
        self, whole: bytes, path: Path
    ) -> None:
        """One byte flipped anywhere is found, or changes nothing that is read."""
        codes = set()
        for spot in range(0, len(whole), 1511):
            path.write_bytes(whole[:spot] + bytes([whole[spot] ^ 0x40]) + whole[spot + 1 :])
            try:
                with opened(path) as ledger:
                    verify(ledger)
                    fill(ledger, 1)
            except WlctlError as failure:
                codes.add(failure.exit_code)
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)

        assert codes <= {ExitCode.LEDGER, ExitCode.USAGE}


def test_a_ledger_is_found_through_a_link_with_all_that_belongs_to_it(
    ledger: Ledger, path: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = elsewhere / "link.db"
    link.symlink_to(path)

    with opened(link) as linked:
        assert linked.locks.try_lock("scope")
        assert not ledger.locks.try_lock("scope"), "both use the lock beside the file itself"
        fill(linked, 1)
    assert [file.name for file in elsewhere.iterdir()] == ["link.db"]


@pytest.mark.parametrize("name", ["ledger db?mode=ro#x%20", "löger.db", os.fsdecode(b"\xff.db")])
def test_a_ledger_may_have_any_name(tmp_path: Path, name: str) -> None:
    with a_ledger(tmp_path / name) as ledger:
        fill(ledger, 1)

    assert {file.name for file in tmp_path.iterdir()} <= {name, f"{name}-lock"}


def test_a_relative_path_is_followed_from_where_the_program_was_started(
    ledger: Ledger, path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(path.parent)
    with opened(Path(path.name)) as another:
        before = head_seq(ledger)
        monkeypatch.chdir("/")
        fill(another, 1)

    assert head_seq(ledger) > before


def test_a_ledger_somebody_took_out_of_wal_is_put_back(ledger: Ledger, path: Path) -> None:
    ledger.close()
    tamper(path, "PRAGMA journal_mode = DELETE")

    with opened(path) as again, again.read() as tx:
        assert tx.conn.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"


class TestMakingOne:
    def test_gives_it_its_identity_and_first_event(self, path: Path) -> None:
        with a_ledger(path) as ledger:
            assert ledger.installation == INSTALLATION
            assert ledger.epoch == 0
            with ledger.read() as tx:
                (event,) = chain.events(tx)
            assert isinstance(verify(ledger), Verified)
        assert (event.seq, event.kind) == (1, "ledger.init")
        assert event.payload["installation"] == INSTALLATION
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    @pytest.mark.parametrize(
        "there",
        [
            pytest.param(Path.touch, id="an empty file"),
            pytest.param(Path.mkdir, id="a directory"),
            pytest.param(lambda path: path.symlink_to("nowhere"), id="a link to nothing"),
            pytest.param(
                lambda path: path.with_name("ledger.db-wal").write_bytes(b"x"),
                id="the journal of a ledger that is gone",
            ),
        ],
    )
    def test_writes_over_nothing(self, path: Path, there: Callable[[Path], object]) -> None:
        there(path)
        before = sorted(path.parent.iterdir())

        with pytest.raises(LedgerExists) as raised, a_ledger(path):
            pass

        assert raised.value.exit_code is ExitCode.USAGE
        assert sorted(path.parent.iterdir()) == before

    def test_needs_its_directory(self, tmp_path: Path) -> None:
        with (
            pytest.raises(NoLedger, match="there is no directory"),
            a_ledger(tmp_path / "no" / "l"),
        ):
            pass

        assert not list(tmp_path.iterdir())

    def test_leaves_nothing_behind_when_it_fails(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr("wlctl.ledger.migrate.upgrade", fail)
        with pytest.raises(ZeroDivisionError), a_ledger(path):
            pass

        assert not list(path.parent.iterdir())

    def test_starts_over_what_a_killed_process_left(self, path: Path) -> None:
        path.with_name("ledger.db.partial").write_bytes(b"half a ledger")
        path.with_name("ledger.db.partial-wal").write_bytes(b"and its journal")

        with a_ledger(path) as ledger:
            assert isinstance(verify(ledger), Verified)
        assert {file.name for file in path.parent.iterdir()} <= {"ledger.db", "ledger.db-lock"}

    def test_waits_for_another_that_makes_one_there_and_no_longer_than_told(
        self, path: Path
    ) -> None:
        left = path.with_name("ledger.db.partial")
        fd = os.open(left, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            with pytest.raises(LedgerBusy):
                create_ledger(
                    path,
                    installation=INSTALLATION,
                    now_ms=NOW_MS,
                    author=AUTHOR,
                    busy_timeout_s=0.05,
                )
        finally:
            os.close(fd)
        assert list(path.parent.iterdir()) == [left]

    def test_of_many_at_once_makes_one(self, path: Path) -> None:
        with multiprocessing.get_context("spawn").Pool(4) as pool:
            made = pool.starmap(make_or_not, [(path, f"w{number}") for number in range(4)])

        assert sorted(made)[:3] == ["", "", ""]
        with opened(path) as ledger:
            assert ledger.installation == max(made)
            assert isinstance(verify(ledger), Verified)


def make_or_not(path: Path, installation: str) -> str:
    """Be one of the processes that make a ledger at the same moment; answer with whose it is."""
    try:
        create_ledger(
            path, installation=InstallationId(installation), now_ms=NOW_MS, author=AUTHOR
        ).close()
    except LedgerExists:
        return ""
    return installation


def test_a_copy_of_a_closed_ledger_is_a_ledger(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    fill(ledger, 5)
    ledger.close()
    shutil.copy(path, tmp_path / "copy.db")

    with opened(tmp_path / "copy.db") as copy:
        assert isinstance(verify(copy), Verified)
