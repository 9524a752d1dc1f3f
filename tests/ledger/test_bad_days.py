"""Disks that fill up or cannot be written, and those of other machines."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.ledger.made import AUTHOR, NOW_MS, a_ledger, fill, opened
from wlctl.errors import (
    ExitCode,
    InvalidFile,
    LedgerDiskFull,
    LedgerOnNetwork,
    LedgerPermissions,
    WlctlError,
)
from wlctl.ledger import chain, operations, site
from wlctl.ledger.backup import backup
from wlctl.ledger.check import check
from wlctl.ledger.opening import open_ledger
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Verified, verify

pytestmark = pytest.mark.root


@contextmanager
def mounted(*command: str) -> Iterator[Path]:
    """Hold something mounted on an empty directory that everybody may enter."""
    directory = Path(tempfile.mkdtemp(prefix="wlctl-mount-"))
    directory.chmod(0o755)
    try:
        call: list[str | Path] = [*command, directory]
        subprocess.run(call, check=True, capture_output=True, timeout=20)
        try:
            yield directory
        finally:
            subprocess.run(["umount", "-l", directory], check=True, timeout=20)
    finally:
        directory.rmdir()


@pytest.fixture
def disk() -> Iterator[Path]:
    """A disk of one megabyte."""
    with mounted("mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs") as directory:
        yield directory


@pytest.fixture
def ledger_on(disk: Path) -> Iterator[Ledger]:
    """A ledger on it."""
    with a_ledger(disk / "ledger.db") as ledger:
        yield ledger


def use_up(disk: Path) -> Path:
    """Leave no byte of room."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    return ballast


def fill_until_it_fails(ledger: Ledger) -> WlctlError:
    with pytest.raises(WlctlError) as raised:
        fill(ledger, 10_000)
    return raised.value


class TestAFullDisk:
    def test_is_named_and_leaves_everything_that_was_answered(
        self, disk: Path, ledger_on: Ledger
    ) -> None:
        before = len(fill(ledger_on, 20)) + 1

        failure = fill_until_it_fails(ledger_on)

        assert isinstance(failure, LedgerDiskFull)
        assert failure.exit_code is ExitCode.FAILED
        assert str(disk) in failure.message
        found = verify(ledger_on)
        assert isinstance(found, Verified)
        assert found.head.seq > before
        assert check(ledger_on).good

    def test_in_the_middle_of_a_transaction_leaves_nothing_half_done(
        self, disk: Path, ledger_on: Ledger
    ) -> None:
        with pytest.raises(LedgerDiskFull), ledger_on.write(NOW_MS, AUTHOR) as tx:
            chain.append(tx, "node.add", {"node": "elm"})
            use_up(disk)
            chain.append(tx, "node.add", {"node": "ash", "much": "x" * 200_000})

        with ledger_on.read() as view:
            assert [event.kind for event in chain.events(view)] == ["ledger.init"]

    def test_is_over_when_there_is_room_again(self, disk: Path, ledger_on: Ledger) -> None:
        ballast = use_up(disk)
        fill_until_it_fails(ledger_on)
        ballast.unlink()

        fill(ledger_on, 5)

        assert isinstance(verify(ledger_on), Verified)

    def test_lets_the_ledger_be_opened_and_read(self, disk: Path, ledger_on: Ledger) -> None:
        fill(ledger_on, 20)
        use_up(disk)
        with opened(disk / "ledger.db") as again:
            assert isinstance(verify(again), Verified)

    def test_has_no_room_for_the_journal_of_a_ledger_that_nobody_has_open(
        self, disk: Path, ledger_on: Ledger
    ) -> None:
        ledger_on.close()
        use_up(disk)

        with pytest.raises(LedgerDiskFull):
            open_ledger(disk / "ledger.db", now_ms=NOW_MS, author=AUTHOR)

    def test_takes_no_new_ledger(self, disk: Path) -> None:
        use_up(disk)

        with pytest.raises(LedgerDiskFull), a_ledger(disk / "ledger.db"):
            pass
        assert [file.name for file in disk.iterdir()] == ["ballast"]

    def test_takes_no_backup(self, disk: Path, ledger: Ledger) -> None:
        fill(ledger, 20)
        use_up(disk)

        with pytest.raises(LedgerDiskFull, match="no room for a copy"):
            backup(ledger, disk / "copy.db")
        assert [file.name for file in disk.iterdir()] == ["ballast"]


@contextmanager
def nobody() -> Iterator[None]:
    """Be a plain user for a while."""
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


class TestWithoutThePermission:
    def test_a_ledger_of_somebody_else_cannot_be_opened(
        self, disk: Path, ledger_on: Ledger
    ) -> None:
        with nobody(), pytest.raises(LedgerPermissions) as raised:
            open_ledger(disk / "ledger.db", now_ms=NOW_MS, author=AUTHOR)
        assert raised.value.exit_code is ExitCode.USAGE

    def test_a_directory_that_is_closed_is_named(self, disk: Path, ledger_on: Ledger) -> None:
        disk.chmod(0o700)

        with nobody(), pytest.raises(LedgerPermissions, match="cannot be reached"):
            open_ledger(disk / "ledger.db", now_ms=NOW_MS, author=AUTHOR)

    def test_a_directory_that_cannot_be_written_has_no_room_for_the_journal(
        self, disk: Path, ledger_on: Ledger
    ) -> None:
        ledger_on.close()
        shutil.chown(disk / "ledger.db", 65534)

        with nobody(), pytest.raises(LedgerPermissions) as raised:
            open_ledger(disk / "ledger.db", now_ms=NOW_MS, author=AUTHOR)
        assert raised.value.hint == "the file and its directory must both be writable by you"

    def test_no_ledger_is_made_in_a_directory_that_cannot_be_written(self, disk: Path) -> None:
        with nobody(), pytest.raises(InvalidFile), a_ledger(disk / "ledger.db"):
            pass
        assert not list(disk.iterdir())

    def test_no_backup_is_made_there_either(self, disk: Path, ledger: Ledger, path: Path) -> None:
        with a_ledger(Path("/dev/shm") / f"wlctl-{os.getpid()}.db") as readable:
            source = Path(readable.backend.where)
            shutil.chown(source, 65534)
        try:
            with nobody(), opened(source) as mine, pytest.raises(InvalidFile):
                backup(mine, disk / "copy.db")
        finally:
            for file in source.parent.glob(f"{source.name}*"):
                file.unlink()
        assert not list(disk.iterdir())


def test_a_ledger_that_root_worked_on_is_still_its_owners(disk: Path, ledger_on: Ledger) -> None:
    """Whoever typed `sudo` once goes on without it."""
    path = disk / "ledger.db"
    ledger_on.close()
    os.chown(disk, 65534, 65534)
    os.chown(path, 65534, 65534)

    with opened(path) as by_root, operations.turn(by_root, "web"):
        fill(by_root, 1)
        backup(by_root, disk / "ledger.db.backup-1")
        with by_root.read():
            assert {file.stat().st_uid for file in disk.iterdir()} == {65534}

    with nobody(), opened(path) as by_owner, operations.turn(by_owner, "web"):
        fill(by_owner, 1)
        backup(by_owner, disk / "ledger.db.backup-2")


def test_a_lock_that_belongs_to_another_is_named(disk: Path, ledger_on: Ledger) -> None:
    ledger_on.close()
    os.chown(disk, 65534, 65534)
    os.chown(disk / "ledger.db", 65534, 65534)
    (disk / "ledger.db-lock").touch(mode=0o600)

    with (
        nobody(),
        opened(disk / "ledger.db") as ledger,
        pytest.raises(LedgerPermissions, match=r"ledger\.db-lock"),
        operations.turn(ledger, "web"),
    ):
        pass


def test_a_disk_that_is_read_only_is_named(disk: Path, ledger_on: Ledger) -> None:
    fill(ledger_on, 3)
    ledger_on.close()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True, timeout=20)

    with pytest.raises(LedgerPermissions) as raised:
        open_ledger(disk / "ledger.db", now_ms=NOW_MS, author=AUTHOR)
    assert raised.value.exit_code is ExitCode.USAGE
    with pytest.raises(InvalidFile), a_ledger(disk / "another.db"):
        pass


def keygen(path: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(command, check=True, timeout=20)


@contextmanager
def sshd(directory: Path) -> Iterator[int]:
    """Hold an SSH server on loopback that lets `directory / "id"` in; its port."""
    Path("/run/sshd").mkdir(exist_ok=True)
    keygen(directory / "host")
    keygen(directory / "id")
    port = 20_000 + os.getpid() % 10_000
    (directory / "conf").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {directory / 'host'}\n"
        f"AuthorizedKeysFile {directory / 'id.pub'}\nPidFile none\nStrictModes no\n"
        "UsePAM no\nPermitRootLogin prohibit-password\nSubsystem sftp internal-sftp\n"
    )
    server = subprocess.Popen(
        ["/usr/sbin/sshd", "-D", "-e", "-f", directory / "conf"], stderr=subprocess.PIPE
    )
    assert server.stderr is not None
    try:
        assert b"listening" in server.stderr.readline()
        yield port
    finally:
        server.terminate()
        server.wait(10)
        server.stderr.close()


@pytest.mark.sshd
def test_the_disk_of_another_machine_takes_no_ledger(tmp_path: Path, new_ledger: Path) -> None:
    remote = tmp_path / "remote"
    remote.mkdir()
    shutil.copy(new_ledger, remote / "ledger.db")
    known = f"StrictHostKeyChecking=no,UserKnownHostsFile={tmp_path / 'known'}"
    with sshd(tmp_path) as port:
        options = f"port={port},IdentityFile={tmp_path / 'id'},{known}"
        with mounted("sshfs", f"root@127.0.0.1:{remote}", "-o", options) as disk:
            assert site.file_system_of(disk) == "fuse.sshfs"
            with pytest.raises(LedgerOnNetwork, match=r"fuse\.sshfs") as raised:
                open_ledger(disk / "ledger.db", now_ms=NOW_MS, author=AUTHOR)
            with pytest.raises(LedgerOnNetwork), a_ledger(disk / "new.db"):
                pass
            link = tmp_path / "link.db"
            link.symlink_to(disk / "ledger.db")
            with pytest.raises(LedgerOnNetwork):
                open_ledger(link, now_ms=NOW_MS, author=AUTHOR)
        time.sleep(0.1)

    assert raised.value.exit_code is ExitCode.USAGE
    assert [file.name for file in remote.iterdir()] == ["ledger.db"]
