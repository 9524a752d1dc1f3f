"""A package's directory, walked so that no link and no special file leads anywhere else."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wlctl.errors import FilesUnreadable, InvalidFile
from wlctl.package.fault import quoted

CHUNK_BYTES = 1024 * 1024
MAX_DEPTH = 64

# O_NONBLOCK: opening a FIFO must not wait for its other end before it is seen to be one.
_FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NotPlain(Exception):
    """Something on the path is a link or special; `what` says so in words."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


@contextmanager
def opened(directory: Path) -> Iterator[int]:
    """Hold the package's directory open; the path itself may be a link.

    Raises:
        InvalidFile: There is no such directory.
        FilesUnreadable: It may not be read.
    """
    try:
        root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        hint = f"make one with `wlctl package init {directory}`"
        if isinstance(error, NotADirectoryError):
            hint = f"give the directory that has the workload.toml, e.g. {directory.parent}"
        raise InvalidFile(f"{directory} is not a package directory", hint=hint) from error
    except OSError as error:
        raise unreadable(str(directory), error) from error
    try:
        yield root
    finally:
        os.close(root)


@contextmanager
def opened_file(root: int, path: str) -> Iterator[int]:
    """Hold a regular file of the package open for reading.

    Args:
        root: The package's directory.
        path: Plain, as `words.plain_path` gives it.

    Raises:
        FileNotFoundError: Nothing is there.
        NotPlain: A link leads there, or it is no regular file.
        OSError: The system has another reason.
    """
    *parents, name = path.split("/")
    with _opened_below(root, parents) as directory:
        file = _opened_at(directory, name, _FILE_FLAGS, path)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise NotPlain(f"{quoted(path)} is {_noun(status.st_mode)}")
        yield file
    finally:
        os.close(file)


@contextmanager
def _opened_below(root: int, parts: list[str]) -> Iterator[int]:
    current = os.dup(root)
    try:
        for depth, part in enumerate(parts, 1):
            path = "/".join(parts[:depth])
            below = _opened_at(current, part, _DIRECTORY_FLAGS, path)
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _opened_at(directory: int, name: str, flags: int, path: str) -> int:
    try:
        return os.open(name, flags, dir_fd=directory)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            raise NotPlain(f"{quoted(path)} is {_noun(status.st_mode)}") from error
        if error.errno == errno.ENXIO:  # a socket cannot be opened
            raise NotPlain(f"{quoted(path)} is a socket or a device") from error
        error.filename = path  # its last segment alone would not say which
        raise


def listing(root: int, path: str) -> list[tuple[str, int]]:
    """List everything that is not a directory below a directory of the package.

    Args:
        root: The package's directory.
        path: Plain; `.` for the package itself.

    Returns:
        Path in the package and mode of each, ascending.

    Raises:
        NotPlain: A name is not UTF-8, the directory is none, or it is nested too deeply.
        OSError: The system has another reason.
    """
    parts = [] if path == "." else path.split("/")
    if len(parts) > MAX_DEPTH:
        raise NotPlain(f"{quoted(path)} is nested deeper than {MAX_DEPTH} directories")
    found: list[tuple[str, int]] = []
    with _opened_below(root, parts) as directory:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            below = "/".join((*parts, name))
            if any("\ud800" <= character <= "\udfff" for character in name):
                raise NotPlain(f"the name {quoted(below)} is not UTF-8")
            mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
            found += listing(root, below) if stat.S_ISDIR(mode) else [(below, mode)]
    return sorted(found)


def mode_of(root: int, path: str) -> int | None:
    """Tell what stands at a plain path, by its file mode; None where nothing does.

    Raises:
        NotPlain: A link leads there.
        OSError: The system has another reason.
    """
    if path == ".":
        return os.fstat(root).st_mode
    *parents, name = path.split("/")
    try:
        with _opened_below(root, parents) as directory:
            return os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def read_bounded(file: int, most_bytes: int) -> bytes | None:
    """Read a whole open file; None when it has more than `most_bytes`."""
    found = bytearray()
    while chunk := os.read(file, min(CHUNK_BYTES, most_bytes + 1 - len(found))):
        found += chunk
        if len(found) > most_bytes:
            return None
    return bytes(found)


def chunks(file: int) -> Iterator[bytes]:
    """Read an open file to its end, piece by piece."""
    while chunk := os.read(file, CHUNK_BYTES):
        yield chunk


def unreadable(path: str, error: OSError) -> FilesUnreadable:
    """Say in one line why the system gave no file."""
    return FilesUnreadable(f"{quoted(path, 200)}: {error.strerror or error}")


def not_plain(mode: int, path: str) -> str | None:
    """Say what is at `path` when it is no regular file; None when it is one."""
    return None if stat.S_ISREG(mode) else f"{quoted(path)} is {_noun(mode)}"


def _noun(mode: int) -> str:
    for test, noun in (
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISCHR, "a device"),
    ):
        if test(mode):
            return noun
    return "a file" if stat.S_ISREG(mode) else "no regular file"
