"""What wlctl itself keeps in a package directory: written whole or not at all, and nothing else."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from wlctl.errors import InvalidFile
from wlctl.package import manifest, sheet, tree
from wlctl.package.fault import quoted

SIGNATURE_START = b"-----BEGIN SSH SIGNATURE-----"


@dataclass(frozen=True, slots=True)
class Left:
    """What an earlier build left and the new one has no use for; names in their directories."""

    sheets: tuple[str, ...]
    signatures: tuple[str, ...]


@contextmanager
def locked(directory: Path) -> Iterator[int]:
    """Hold a package directory open as the only one who writes in it.

    Raises:
        InvalidFile: There is no such directory.
        FilesUnreadable: It may not be read.
    """
    with tree.opened(directory) as root:
        fcntl.flock(root, fcntl.LOCK_EX)
        yield root


def write(root: int, composed: manifest.Composed) -> Left | None:
    """Write sheets and manifest; None when the manifest was there already.

    The manifest comes last, so that a build cut short never passes for a whole one. Signatures of
    another manifest are removed, and so are sheets of variants that are gone.

    Raises:
        InvalidFile: Something there is not wlctl's own; nothing was written.
        OSError: The system does not take a file.
    """
    text = composed.manifest.text.encode()
    is_new = _existing(root, manifest.FILE_NAME, manifest.MAX_MANIFEST_BYTES) != text
    wanted = {Path(path).name: sheet_text for path, sheet_text in composed.sheets.items()}
    left = _left(root, keep_sheets=frozenset(wanted), keep_signatures=not is_new)
    with opened_directory(root, sheet.DIRECTORY) as sheets:
        for name in left.sheets:
            os.unlink(name, dir_fd=sheets)
        for name, sheet_text in wanted.items():
            replace(sheets, name, sheet_text.encode())
    if left.signatures:
        with opened_directory(root, manifest.SIGNATURES) as signatures:
            for name in left.signatures:
                os.unlink(name, dir_fd=signatures)
    replace(root, manifest.FILE_NAME, text)
    return left if is_new else None


def replace(directory: int, name: str, data: bytes) -> None:
    """Let `name` hold `data`, wholly or not at all, also after a power cut.

    Raises:
        OSError: The system does not take the file.
    """
    if _existing(directory, name, len(data)) == data:
        return
    temporary = f"{manifest.TEMPORARY_PREFIX}new"
    with suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=directory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(temporary, flags, 0o666, dir_fd=directory)
    try:
        with os.fdopen(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        os.unlink(temporary, dir_fd=directory)
        raise
    os.fsync(directory)


@contextmanager
def opened_directory(root: int, name: str) -> Iterator[int]:
    """Hold a directory of wlctl's own open; it is made if need be.

    Raises:
        InvalidFile: Something else has that name.
        OSError: The system does not make it.
    """
    with suppress(FileExistsError):
        os.mkdir(name, 0o777, dir_fd=root)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        opened = os.open(name, flags, dir_fd=root)
    except NotADirectoryError as error:
        raise InvalidFile(
            f"{name} is not a directory of the package",
            hint="move it away: wlctl keeps its own files under that name",
        ) from error
    try:
        yield opened
    finally:
        os.close(opened)


def _left(root: int, *, keep_sheets: frozenset[str], keep_signatures: bool) -> Left:
    sheets = [name for name in _names(root, sheet.DIRECTORY) if name not in keep_sheets]
    signatures = [
        name
        for name in _names(root, manifest.SIGNATURES)
        if name.endswith(manifest.SIGNATURE_SUFFIX) and not keep_signatures
    ]
    _check_own(root, sheet.DIRECTORY, sheets, sheet.FIRST_LINE.encode())
    _check_own(root, manifest.SIGNATURES, signatures, SIGNATURE_START)
    return Left(tuple(sheets), tuple(signatures))


def _names(root: int, name: str) -> list[str]:
    if tree.mode_of(root, name) is None:
        return []
    with opened_directory(root, name) as inner, os.scandir(inner) as entries:
        return sorted(entry.name for entry in entries)


def _check_own(root: int, noun: str, names: list[str], start: bytes) -> None:
    """Make sure that nobody else's file is removed: each begins as wlctl's own begin."""
    for name in names:
        if name.startswith(manifest.TEMPORARY_PREFIX):
            continue  # left by a build that was killed
        try:
            with tree.opened_file(root, f"{noun}/{name}") as file:
                is_own = os.read(file, len(start)) == start
        except tree.NotPlain:
            is_own = False
        if not is_own:
            raise InvalidFile(
                f"{noun}/{quoted(name)} is not wlctl's own",
                hint=f"move it away: {noun} belongs to `package build`",
            )


def _existing(directory: int, name: str, most_bytes: int) -> bytes | None:
    try:
        with tree.opened_file(directory, name) as file:
            return tree.read_bounded(file, most_bytes)
    except (FileNotFoundError, tree.NotPlain):
        return None
