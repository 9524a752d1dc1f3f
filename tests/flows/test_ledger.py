from pathlib import Path

import pytest

from tests.flows.setting import Setting
from wlctl.errors import LedgerExists, NoLedger
from wlctl.flows import ledger as flow
from wlctl.ledger.check import Health


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
        made = flow.backup(rt, None if target is None else tmp_path / target)

    assert made.parent == tmp_path / where
    assert made.name.startswith("copy.db" if target == "kept/copy.db" else "ledger.db.backup-0001-")
    assert made.is_file()


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
