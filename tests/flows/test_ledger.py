import shutil
from pathlib import Path

import pytest

from tests.flows.setting import Killed, Setting
from wlctl.errors import Declined, LedgerExists, NoLedger
from wlctl.flows import ledger as flow
from wlctl.ledger.check import Health
from wlctl.ledger.files import write_private
from wlctl.ledger.verify import Verified

KEYS = ("checkpoint_ed25519", "checkpoint_ed25519.pub", "ssh_ed25519", "ssh_ed25519.pub")


def test_a_ledger_in_use_is_in_good_order(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place(name="web")

    with setting.runtime() as rt:
        health = flow.check(rt)

    assert isinstance(health, Health)
    assert health.good, health


@pytest.mark.parametrize(
    ("target", "where"),
    [
        pytest.param(None, "home", id="beside the ledger"),
        pytest.param("kept", "kept", id="in a directory"),
        pytest.param("kept/copy.db", "kept", id="in a file"),
    ],
)
def test_a_backup_goes(setting: Setting, tmp_path: Path, target: str | None, where: str) -> None:
    (tmp_path / "kept").mkdir()
    with setting.runtime() as rt:
        made = flow.backup(rt, None if target is None else tmp_path / target).file

    assert made.parent == tmp_path / where
    assert made.name.startswith("copy.db" if target == "kept/copy.db" else "ledger.db.backup-0001-")
    assert made.is_file()


def test_a_backup_holds_the_keys_and_what_the_store_has_and_nothing_else(
    setting: Setting, tmp_path: Path
) -> None:
    setting.add_node("elm")
    setting.place(name="web")
    (setting.home / "keys" / "notes").write_text("not a key")
    with setting.runtime() as rt:
        made = flow.backup(rt, tmp_path / "copy.db")

    content = made.file.read_bytes()

    assert made.keys == KEYS
    assert (setting.home / "keys" / "ssh_ed25519").read_bytes() in content
    assert b"not a key" not in content


def test_a_restore_brings_missing_keys_back_and_says_which_files_are_not_there(
    setting: Setting, tmp_path: Path
) -> None:
    setting.add_node("elm")
    setting.place(name="web")
    backup = backed_up(setting, tmp_path)
    keys = {path.name: path.read_bytes() for path in (setting.home / "keys").iterdir()}
    shutil.rmtree(setting.home)
    setting.home.mkdir()

    done = put_back(setting, backup, replace=False)

    assert done.keys == KEYS
    assert done.missing == 2
    assert {path.name: path.read_bytes() for path in (setting.home / "keys").iterdir()} == keys
    modes = {path.name: path.stat().st_mode & 0o777 for path in (setting.home / "keys").iterdir()}
    assert {name for name, mode in modes.items() if mode == 0o600} == {
        "checkpoint_ed25519",
        "ssh_ed25519",
    }
    assert isinstance(setting.verified(), Verified)


def test_other_keys_are_never_written_over_without_being_told(
    setting: Setting, tmp_path: Path
) -> None:
    backup = backed_up(setting, tmp_path)
    key = setting.home / "keys" / "ssh_ed25519"
    mine = key.read_bytes()
    key.write_bytes(b"another")
    (setting.home / "ledger.db").unlink()

    with pytest.raises(LedgerExists, match="ssh_ed25519 is another key"):
        put_back(setting, backup, replace=False)
    assert key.read_bytes() == b"another"
    assert not (setting.home / "ledger.db").exists()

    put_back(setting, backup, replace=True)
    assert key.read_bytes() == mine
    (aside,) = key.parent.glob("ssh_ed25519.replaced-*")
    assert aside.read_bytes() == b"another"


@pytest.mark.parametrize("before", range(1, 6))
def test_killed_between_any_two_files_a_restore_is_finished_by_the_next(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    backup = backed_up(setting, tmp_path)
    shutil.rmtree(setting.home / "keys")
    left = before

    def killed(path: Path, content: bytes, mode: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise Killed
        write_private(path, content, mode)

    with monkeypatch.context() as patch:
        patch.setattr(flow, "write_private", killed)
        if before <= len(KEYS):
            with pytest.raises(Killed):
                put_back(setting, backup, replace=True)
        else:
            put_back(setting, backup, replace=True)
    assert isinstance(setting.verified(), Verified), "the ledger that was there, or the restored"

    put_back(setting, backup, replace=True)
    assert {path.name for path in (setting.home / "keys").iterdir()} == set(KEYS)
    assert isinstance(setting.verified(), Verified)


def test_a_restore_that_is_declined_touches_nothing(setting: Setting, tmp_path: Path) -> None:
    backup = backed_up(setting, tmp_path)

    def decline(_there: bool) -> None:
        raise Declined("no")

    with setting.runtime() as rt, pytest.raises(Declined):
        flow.put_back(rt, backup, replace=True, accept=decline)

    assert not list(setting.home.glob("*.replaced-*"))


def backed_up(setting: Setting, directory: Path) -> Path:
    with setting.runtime() as rt:
        return flow.backup(rt, directory / "backup.db").file


def put_back(setting: Setting, backup: Path, *, replace: bool) -> flow.PutBack:
    with setting.runtime() as rt:
        return flow.put_back(rt, backup, replace=replace, accept=lambda _there: None)


def test_a_backup_goes_over_nothing(setting: Setting, tmp_path: Path) -> None:
    with setting.runtime() as rt:
        flow.backup(rt, tmp_path / "copy.db")
        with pytest.raises(LedgerExists):
            flow.backup(rt, tmp_path / "copy.db")


def test_a_ledger_of_this_version_needs_no_migration(setting: Setting) -> None:
    with setting.runtime() as rt:
        assert flow.migrate(rt) is None


def test_nothing_is_migrated_where_nothing_is(tmp_path: Path, setting: Setting) -> None:
    elsewhere = Setting(tmp_path / "elsewhere", setting.world, setting.clock)
    with elsewhere.runtime() as rt, pytest.raises(NoLedger):
        flow.migrate(rt)
