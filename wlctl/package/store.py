"""The controller's store: verified files by their sha256, so that a build directory may go."""

import fcntl
import hashlib
import os
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from wlctl.errors import FileMissing
from wlctl.model.ids import is_sha256
from wlctl.package import tree

_TEMPORARY = "tmp"


class ContentDiffers(Exception):
    """What was to be stored is not what its hash says; nothing was stored."""


class Store:
    """A directory of files that are named by what is in them, and so never change.

    Args:
        root: Made when the first file is put.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def path_of(self, sha256: str) -> Path:
        """Spell where the file lies, if it does."""
        assert is_sha256(sha256), "nothing else becomes part of a path"
        return self._root / sha256

    def verify(self, sha256: str) -> bool:
        """Answer whether the file is there and still what its name says; reads all of it."""
        try:
            with self.path_of(sha256).open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest() == sha256
        except FileNotFoundError:
            return False
        except OSError as error:
            raise tree.unreadable(str(self.path_of(sha256)), error) from error

    def has(self, sha256: str, size_bytes: int) -> bool:
        """Answer whether a file of that name and size is there; its bytes are not looked at."""
        try:
            return self.path_of(sha256).stat().st_size == size_bytes
        except OSError:
            return False

    def hold(self, sha256: str) -> bool:
        """Answer as `verify`, and keep the file from being collected for a while if it is there."""
        try:
            with self._lock(fcntl.LOCK_SH):
                is_there = self.verify(sha256)
                if is_there:
                    os.utime(self.path_of(sha256))
                return is_there
        except FileNotFoundError:
            return False  # there is no store yet
        except OSError as error:
            raise tree.unreadable(str(error.filename or self._root), error) from error

    def collect(
        self, needed: Container[str], before_ns: int, *, dry_run: bool = False
    ) -> tuple[tuple[str, int], ...]:
        """Remove files that nobody needs; return their hashes and sizes, ascending.

        What was put or held at or after `before_ns` stays: it may be about
        to be placed by somebody who has recorded nothing yet.

        Args:
            needed: Hashes to keep, whatever their age.
            before_ns: In epoch nanoseconds of this machine's clock, as files have it.
            dry_run: Only say which.

        Raises:
            FilesUnreadable: The system does not let them go.
        """
        try:
            with self._lock(fcntl.LOCK_EX):
                return tuple(self._collected(needed, before_ns, dry_run=dry_run))
        except FileNotFoundError:
            return ()  # there is no store yet
        except OSError as error:
            raise tree.unreadable(str(error.filename or self._root), error) from error

    def _collected(
        self, needed: Container[str], before_ns: int, *, dry_run: bool
    ) -> Iterator[tuple[str, int]]:
        for path in sorted(self._root.iterdir()):
            if not is_sha256(path.name) or path.name in needed:
                continue
            status = path.stat(follow_symlinks=False)
            if status.st_mtime_ns < before_ns:
                if not dry_run:
                    path.unlink()
                yield path.name, status.st_size

    @contextmanager
    def _lock(self, how: int) -> Iterator[None]:
        """Keep who collects and who relies on a file apart."""
        file = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(file, how)
            yield
        finally:
            os.close(file)

    def open(self, sha256: str) -> BinaryIO:
        """Open a file for reading; whoever receives the bytes checks their hash.

        Raises:
            FileMissing: It is not in the store.
            FilesUnreadable: The system does not give it.
        """
        path = self.path_of(sha256)
        try:
            return path.open("rb")
        except FileNotFoundError as error:
            raise FileMissing(
                f"{path} is not in the store",
                hint="a node may have it: wlctl package fetch NAME@VERSION",
            ) from error
        except OSError as error:
            raise tree.unreadable(str(path), error) from error

    def put(self, sha256: str, chunks: Iterable[bytes]) -> None:
        """Store a file, synced, before its name can be seen; one that is there already stays, held.

        The chunks are read to their end in any case, and a stored file that has rotted is replaced.

        Raises:
            ContentDiffers: The chunks have another hash.
            FilesUnreadable: The system does not take the file.
        """
        try:
            self._put(sha256, chunks)
        except OSError as error:
            raise tree.unreadable(str(error.filename or self._root), error) from error

    def _put(self, sha256: str, chunks: Iterable[bytes]) -> None:
        temporary = self._root / _TEMPORARY
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.mkdir(mode=0o700, exist_ok=True)
        _sweep(temporary)
        digest = hashlib.sha256()
        with _locked_file(temporary / sha256) as file:
            is_there = self.hold(sha256)
            for chunk in chunks:
                digest.update(chunk)
                if not is_there:
                    _write_all(file, chunk)
            if digest.hexdigest() != sha256:
                raise ContentDiffers
            if not is_there:
                os.fchmod(file, 0o444)
                os.fsync(file)
                (temporary / sha256).rename(self.path_of(sha256))
                _sync_directory(self._root)


@contextmanager
def _locked_file(path: Path) -> Iterator[int]:
    """Hold an empty file that no other process writes; it is gone afterwards unless renamed."""
    file = _lock(path)
    try:
        os.ftruncate(file, 0)
        yield file
    finally:
        if _is_at(path, file):
            path.unlink()
        os.close(file)


def _lock(path: Path) -> int:
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        if _is_at(path, file):
            return file
        # Its last holder has renamed or removed it: what was locked is no longer the temporary.
        os.close(file)


def _sweep(temporary: Path) -> None:
    """Remove what processes that were killed have left: whatever nobody holds a lock on."""
    for path in temporary.iterdir():
        with suppress(FileNotFoundError):
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(path, file):
                    path.unlink()
            except BlockingIOError:
                continue  # somebody is at work on it
            finally:
                os.close(file)


def _is_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(file))
    except FileNotFoundError:
        return False


def _write_all(file: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(file, view) :]


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
