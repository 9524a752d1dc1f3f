import os
import stat
import threading
from pathlib import Path

import pytest

from tests.ledger.made import NOW_MS, fill, opened
from wlctl.errors import ExitCode, InvalidFile, LedgerBusy, LedgerDamaged, LedgerExists
from wlctl.ledger import backup as backups
from wlctl.ledger.backup import backup
from wlctl.ledger.check import check
from wlctl.ledger.files import appearing
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Verified, verify


def test_a_backup_is_a_whole_ledger_of_its_own(ledger: Ledger, tmp_path: Path) -> None:
    newest = fill(ledger, 20)[-1]

    target = backup(ledger, tmp_path / "copy.db")

    with opened(target) as copy:
        found = verify(copy)
        assert check(copy).good
        assert copy.installation == ledger.installation
    assert isinstance(found, Verified)
    assert found.head.hash == newest.hash


def test_a_backup_is_its_owners_alone_whatever_the_umask(ledger: Ledger, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        target = backup(ledger, tmp_path / "copy.db")
    finally:
        os.umask(before)

    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("copy")] == ["copy.db"]


def test_a_backup_is_of_one_moment_while_others_write(ledger: Ledger, path: Path) -> None:
    done = threading.Event()

    def write_on() -> None:
        with opened(path) as another:
            while not done.is_set():
                fill(another, 2)

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        copies = [backup(ledger, path.with_name(f"copy{number}.db")) for number in range(5)]
    finally:
        done.set()
        writer.join()

    heads = []
    for copy in copies:
        with opened(copy) as opened_copy:
            found = verify(opened_copy)
            assert isinstance(found, Verified)
            heads.append(found.head.seq)
    assert heads == sorted(heads)
    assert isinstance(verify(ledger), Verified)


def test_a_backup_is_written_over_nothing(ledger: Ledger, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("precious")

    with pytest.raises(LedgerExists) as raised:
        backup(ledger, target)

    assert raised.value.exit_code is ExitCode.USAGE
    assert target.read_text() == "precious"


def test_what_a_killed_backup_left_is_written_over(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "copy.db.partial").write_bytes(b"half of it")
    (tmp_path / "copy.db.partial-wal").write_bytes(b"half of it")

    with opened(backup(ledger, tmp_path / "copy.db")) as copy:
        assert isinstance(verify(copy), Verified)
    assert not list(tmp_path.glob("*partial*"))


def test_of_two_that_make_the_same_backup_the_second_is_told(
    ledger: Ledger, tmp_path: Path
) -> None:
    target = tmp_path / "copy.db"
    with appearing(target) as partial:
        partial.write_bytes(b"the first")
        with pytest.raises(LedgerBusy, match=r"making copy\.db"):
            backup(ledger, target)

    assert target.read_bytes() == b"the first"


@pytest.mark.parametrize("name", ["no/such/directory.db", "x" * 250])
def test_a_place_that_takes_no_file_is_named(ledger: Ledger, tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidFile, match="cannot be written") as raised:
        backup(ledger, tmp_path / name)

    assert raised.value.exit_code is ExitCode.USAGE


def test_a_damaged_ledger_makes_no_backup(ledger: Ledger, path: Path) -> None:
    fill(ledger, 200)
    ledger.close()
    whole = bytearray(path.read_bytes())
    page = 4096 * 5
    whole[page : page + 4096] = b"\x55" * 4096
    path.write_bytes(whole)

    with opened(path) as damaged, pytest.raises(LedgerDamaged):
        backup(damaged, path.with_name("copy.db"))
    assert not list(path.parent.glob("copy*"))


def test_a_backup_beside_the_ledger_is_named_by_revision_and_moment() -> None:
    name = backups.beside(Path("/x/ledger.db"), "0001", NOW_MS).name

    assert name == "ledger.db.backup-0001-20231114T221320Z"
