"""A backup takes the ledger's place whole, doubted, and only when good; or nothing happens."""

import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ledger.made import AUTHOR, NOW_MS, fill, opened
from wlctl.errors import (
    ChainBroken,
    LedgerBusy,
    LedgerDamaged,
    LedgerExists,
    LedgerPermissions,
    NoLedger,
    NotALedger,
    WlctlError,
)
from wlctl.ledger.backup import backup, beside, drop_all_but
from wlctl.ledger.enclosed import Enclosed
from wlctl.ledger.files import scratch
from wlctl.ledger.restore import Restored, restore
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Verified, verify
from wlctl.ledger.witnesses import doubt_of
from wlctl.model.witness import Doubt

SECRET = b"-----BEGIN OPENSSH PRIVATE KEY-----\nmarkmarkmark\n"
KEPT = Enclosed({"ssh_ed25519": SECRET}, {"ab" * 32: 7})


@pytest.fixture
def saved(ledger: Ledger, tmp_path: Path) -> Path:
    """A backup of ten events, with a key in it."""
    fill(ledger, 10)
    return backup(ledger, tmp_path / "saved.db", KEPT)


def put_back(
    source: Path,
    path: Path,
    *,
    aside: Path | None = None,
    keys: Callable[[Enclosed], None] = lambda _found: None,
) -> Restored:
    return restore(source, path, now_ms=NOW_MS, author=AUTHOR, aside=aside, keys=keys)


def files(directory: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if not path.name.endswith(("-wal", "-shm", "-lock"))
    }


def test_what_was_backed_up_is_there_again_doubted_and_whole(saved: Path, tmp_path: Path) -> None:
    found: list[Enclosed] = []
    target = tmp_path / "again.db"

    made = put_back(saved, target, keys=found.append)

    assert found == [KEPT]
    assert made.aside is None
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with opened(target) as ledger:
        assert isinstance(verify(ledger), Verified)
        with ledger.read() as tx:
            assert doubt_of(tx) is Doubt.RESTORED
    assert SECRET not in target.read_bytes()
    assert SECRET in saved.read_bytes()


def test_a_backup_is_not_changed_by_being_restored_and_may_be_read_only(
    saved: Path, tmp_path: Path
) -> None:
    before = saved.read_bytes()
    saved.chmod(0o400)

    put_back(saved, tmp_path / "again.db")

    assert saved.read_bytes() == before
    assert not list(saved.parent.glob("saved.db-*"))


def test_a_ledger_in_use_stays_unless_told_and_is_kept_aside_then(
    ledger: Ledger, path: Path, saved: Path
) -> None:
    fill(ledger, 5)
    aside = path.with_name("aside.db")
    with pytest.raises(LedgerExists):
        put_back(saved, path)

    with ledger.read() as tx:
        assert doubt_of(tx) is None
    put_back(saved, path, aside=aside)

    with ledger.read() as tx:
        assert doubt_of(tx) is Doubt.RESTORED, "who has it open sees it at once"
    with opened(aside) as kept:
        found = verify(kept)
        assert isinstance(found, Verified)
        assert found.head.seq > 15
    assert isinstance(verify(ledger), Verified)


def test_a_damaged_ledger_is_moved_aside_with_its_journal(path: Path, saved: Path) -> None:
    path.write_bytes(b"\x00garbage" * 1000)
    path.with_name(f"{path.name}-wal").write_bytes(b"old journal")
    aside = path.with_name("aside.db")

    put_back(saved, path, aside=aside)

    with opened(path) as ledger:
        assert isinstance(verify(ledger), Verified)
    assert aside.read_bytes().startswith(b"\x00garbage")
    assert aside.with_name("aside.db-wal").read_bytes() == b"old journal"


def cut(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes()[:-8192])


def overwritten(saved: Path) -> None:
    content = bytearray(saved.read_bytes())
    content[4096 * 3 : 4096 * 4] = b"\x55" * 4096
    saved.write_bytes(content)


def rewritten(saved: Path) -> None:
    conn = sqlite3.connect(saved)
    conn.execute("UPDATE chain SET actor = 'somebody else' WHERE seq = 4")
    conn.commit()
    conn.close()


def of_another(saved: Path) -> None:
    saved.unlink()
    conn = sqlite3.connect(saved)
    conn.execute("CREATE TABLE x (y)")
    conn.close()


BAD: dict[str, tuple[Callable[[Path], object], type[WlctlError]]] = {
    "cut short": (cut, LedgerDamaged),
    "written over": (overwritten, LedgerDamaged),
    "with a changed event": (rewritten, ChainBroken),
    "another database": (of_another, NotALedger),
    "no database": (lambda saved: saved.write_bytes(b"a text of some length" * 99), NotALedger),
    "empty": (lambda saved: saved.write_bytes(b""), NotALedger),
    "not there": (lambda saved: saved.unlink(), NoLedger),
    "open to others": (lambda saved: saved.chmod(0o644), LedgerPermissions),
}


@pytest.mark.parametrize("how", BAD)
@pytest.mark.parametrize("over", [False, True], ids=["where nothing is", "over a ledger"])
def test_a_bad_backup_changes_nothing(
    ledger: Ledger, path: Path, saved: Path, how: str, over: bool
) -> None:
    ledger.close()
    spoil, error = BAD[how]
    spoil(saved)
    if saved.exists() and how != "open to others":
        saved.chmod(0o600)
    target = path if over else path.with_name("new.db")
    before = files(path.parent)

    with pytest.raises(error):
        put_back(saved, target, aside=path.with_name("aside.db") if over else None)

    assert files(path.parent) == before


def test_a_backup_that_is_not_there_is_called_one(tmp_path: Path) -> None:
    with pytest.raises(NoLedger, match="there is no backup") as raised:
        put_back(tmp_path / "no.db", tmp_path / "new.db")

    assert "init" not in str(raised.value.hint)


def test_who_refuses_the_keys_refuses_it_all(ledger: Ledger, path: Path, saved: Path) -> None:
    ledger.close()
    before = files(path.parent)

    def refuse(_found: Enclosed) -> None:
        raise LedgerExists("another key")

    with pytest.raises(LedgerExists, match="another key"):
        put_back(saved, path, aside=path.with_name("aside.db"), keys=refuse)

    assert files(path.parent) == before


def test_of_two_that_restore_at_once_the_second_is_told(path: Path, saved: Path) -> None:
    with scratch(path), pytest.raises(LedgerBusy):
        put_back(saved, path, aside=path.with_name("aside.db"))


def test_the_newest_backups_are_kept_and_nothing_else_is_removed(
    ledger: Ledger, path: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    made = [kept / beside(path, "0001", NOW_MS + day * 86_400_000).name for day in range(5)]
    for file in made:
        backup(ledger, file)
    others = ["notes.txt", f"{path.name}.backup-mine", f"{made[0].name}.partial", "x-0001-y"]
    for name in others:
        (kept / name).write_text("precious")

    gone = drop_all_but(2, kept, path)

    assert gone == made[:3]
    assert {file.name for file in kept.iterdir()} == {*others, *(file.name for file in made[3:])}
