"""How a file beside the ledger comes into being: whole or not at all, and its owner's alone."""

import contextlib
import errno
import fcntl
import glob
import os
from collections.abc import Iterator
from pathlib import Path

from wlctl.errors import InvalidFile, LedgerBusy, LedgerDiskFull, LedgerExists

PARTIAL = ".partial"
SIDE_FILES = ("-journal", "-wal", "-shm")
"""What SQLite puts beside a file while somebody has it open."""


@contextlib.contextmanager
def appearing(target: Path) -> Iterator[Path]:
    """Hand out an empty file to fill, which at the end becomes `target`, or vanishes.

    Raises:
        LedgerExists: Something is there already.
        LedgerBusy: Another process is making the same file.
        LedgerDiskFull: There is no room for it.
        InvalidFile: It cannot be made there.
    """
    if os.path.lexists(target):
        raise LedgerExists(f"{target} is already there", hint="name another file")
    partial = target.with_name(f"{target.name}{PARTIAL}")
    try:
        with _kept_alone(partial):
            try:
                yield partial
                partial.rename(target)
            finally:
                _remove(partial)
        sync_directory(target.parent)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise LedgerDiskFull(f"no room for {target}", hint="make room") from error
        raise InvalidFile(f"{target} cannot be written: {error.strerror}") from error


@contextlib.contextmanager
def scratch(beside: Path) -> Iterator[Path]:
    """Hand out an empty file beside another one, its owner's alone, that is gone at the end.

    Raises:
        LedgerBusy: Another process has it.
    """
    file = beside.with_name(f"{beside.name}.scratch{PARTIAL}")
    with _kept_alone(file):
        try:
            yield file
        finally:
            _remove(file)


def drop_unfinished(directory: Path, prefix: str) -> None:
    """Remove what killed processes left in `directory` of files whose name begins so."""
    for partial in directory.glob(f"{glob.escape(prefix)}*{PARTIAL}"):
        with contextlib.suppress(LedgerBusy), _kept_alone(partial):
            _remove(partial)


def give_to_owner_of(ledger: Path, file: Path | int) -> None:
    """Give what root makes beside a ledger to its owner, as SQLite does with what it makes there.

    Or a user who once typed `sudo` could not go on with a ledger of their own.
    """
    if os.geteuid() == 0:
        owner = ledger.stat()
        os.chown(file, owner.st_uid, owner.st_gid)


def write_private(path: Path, content: bytes, mode: int) -> None:
    """Make a file that is not there, whole or not at all.

    Raises:
        LedgerExists, LedgerDiskFull, InvalidFile: See `appearing`.
    """
    with appearing(path) as partial:
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(mode)


def sync_directory(directory: Path) -> None:
    """Make a new name in `directory` survive a power cut."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def _kept_alone(partial: Path) -> Iterator[None]:
    """Make `partial` empty, also when a killed process left it, and let nobody else in.

    SQLite itself drops the journal of an empty file, so none can be replayed into the new one.
    The lock is given back last: closing a file drops what SQLite has locked of it.
    """
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(partial, flags, 0o600)
    try:
        if not _is_mine(fd, partial):
            name = partial.name.removesuffix(PARTIAL)
            raise LedgerBusy(f"another process is making {name}", hint="try again in a moment")
        os.fchmod(fd, 0o600)
        os.ftruncate(fd, 0)
        yield
    finally:
        os.close(fd)


def _is_mine(fd: int, partial: Path) -> bool:
    """Lock the file; False if another has it, or it got its final name while we came."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(fd), partial.stat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _remove(partial: Path) -> None:
    for suffix in ("", *SIDE_FILES):
        partial.with_name(partial.name + suffix).unlink(missing_ok=True)
