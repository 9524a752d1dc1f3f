"""Make the package out of its directory: find the files, then write sheets and manifest."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from wlctl.errors import FilesUnreadable, InvalidFile
from wlctl.model.package import Manifest, PackageFile, PackageVariant, Workload
from wlctl.package import manifest, own, tree, words, workload
from wlctl.package.fault import Fault, quoted

_MAX_DESCRIPTION_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Built:
    """What a build came to.

    Attributes:
        is_new: The statement is another one than before, so its id is, too.
        dropped_signatures: Of the statement before, which no longer fit; ascending.
    """

    manifest: Manifest
    is_new: bool
    dropped_signatures: tuple[str, ...]


def describe(directory: Path) -> Workload:
    """Read `workload.toml` of a package directory.

    Raises:
        InvalidFile: There is none, or it does not say what it must.
        FilesUnreadable: The system does not give it.
    """
    with tree.opened(directory) as root:
        return _describe(directory, root)


def build(directory: Path) -> Built:
    """Write the launch sheets and the manifest of a package directory; touch nothing else in it.

    The same description and files give the same package id, whatever the machine, the order of the
    directory and the umask. Two builds of one directory wait for each other.

    Raises:
        InvalidFile: Description and files do not make a package; nothing was written.
        FilesUnreadable: The system does not give or take a file.
    """
    with own.locked(directory) as root, _told(directory):
        described = _describe(directory, root)
        found = [_files_of(root, index, it) for index, it in enumerate(described.variants)]
        variants = tuple(
            replace(variant, files=paths)
            for variant, paths in zip(described.variants, found, strict=True)
        )
        paths = sorted({path for each in found for path in each})
        composed = manifest.compose(
            replace(described, variants=variants), [_measured(root, path) for path in paths]
        )
        left = own.write(root, composed)
    return Built(composed.manifest, left is not None, left.signatures if left else ())


def is_stale(directory: Path, stated: Manifest) -> bool:
    """Answer whether `workload.toml` says something else than the manifest does by now.

    A directory without one has nothing that could have changed; one that cannot be read any more
    has.

    Raises:
        InvalidFile: There is no such directory.
        FilesUnreadable: The system does not give the file.
    """
    with tree.opened(directory) as root:
        if tree.mode_of(root, workload.FILE_NAME) is None:
            return False
        try:
            described = _describe(directory, root)
        except InvalidFile:
            return True
        return _without_files(described) != _without_files(stated.workload)


def add_signature(directory: Path, fingerprint: str, armored: str) -> str:
    """Put a signature beside the manifest, in place of an earlier one by the same key.

    Args:
        directory: Of a built package.
        fingerprint: `SHA256:…` of the key that made it.
        armored: As `ssh-keygen -Y sign` writes it.

    Returns:
        The signature's path in the package.

    Raises:
        InvalidFile: `signatures` is no directory of the package.
        FilesUnreadable: The system does not take the file.
    """
    name = fingerprint.removeprefix("SHA256:").translate(str.maketrans("/+", "_-"))
    with (
        own.locked(directory) as root,
        _told(directory),
        own.opened_directory(root, manifest.SIGNATURES) as signatures,
    ):
        own.replace(signatures, f"{name}{manifest.SIGNATURE_SUFFIX}", armored.encode())
    return f"{manifest.SIGNATURES}/{name}{manifest.SIGNATURE_SUFFIX}"


def _without_files(described: Workload) -> Workload:
    variants = tuple(replace(variant, files=()) for variant in described.variants)
    return replace(described, variants=variants)


def _describe(directory: Path, root: int) -> Workload:
    name = workload.FILE_NAME
    try:
        with tree.opened_file(root, name) as file:
            data = tree.read_bounded(file, _MAX_DESCRIPTION_BYTES)
    except FileNotFoundError as error:
        raise InvalidFile(
            f"{directory} has no {name}", hint=f"make one with `wlctl package init {directory}`"
        ) from error
    except tree.NotPlain as error:
        raise InvalidFile(f"{directory}: {error.what}") from error
    if data is None:
        raise InvalidFile(f"{directory / name} has more than {_MAX_DESCRIPTION_BYTES} bytes")
    try:
        described = workload.parse(data.decode("utf-8"), str(directory / name))
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{directory / name} is not UTF-8: byte {error.start}") from error
    _check_timezone(directory / name, described)
    return described


def _check_timezone(source: Path, described: Workload) -> None:
    if described.schedule is None:
        return
    try:
        ZoneInfo(described.schedule.timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        zone = quoted(described.schedule.timezone)
        raise InvalidFile(
            f"{source}: schedule.timezone: {zone} is not a timezone known here"
        ) from error


def _files_of(root: int, index: int, variant: PackageVariant) -> tuple[str, ...]:
    """Find the files a variant names, each directory with all that is below it; ascending."""
    found: set[str] = set()
    for position, entry in enumerate(variant.files):
        where = f"variant[{index}].files[{position}]"
        path = words.plain_path(entry)
        assert path is not None, "the description was checked"
        try:
            found.update(_files_at(root, where, path))
        except tree.NotPlain as error:
            what = f"{error.what}; a package carries plain files only"
            raise Fault(where, what) from error
    return tuple(sorted(found))


def _files_at(root: int, where: str, path: str) -> list[str]:
    if path != "." and manifest.is_own(path):
        raise Fault(where, f"{quoted(path)} is wlctl's own; it is not part of what runs")
    mode = tree.mode_of(root, path)
    if mode is None:
        raise Fault(where, f"{quoted(path)} is not there")
    if not stat.S_ISDIR(mode):
        return [_plain(path, mode)]
    listed = [
        _plain(below, mode)
        for below, mode in tree.listing(root, path)
        if path != "." or not manifest.is_own(below)
    ]
    if not listed:
        raise Fault(where, f"no file is in {quoted(path)}")
    return listed


def _plain(path: str, mode: int) -> str:
    if (what := tree.not_plain(mode, path)) is not None:
        raise tree.NotPlain(what)
    if words.plain_path(path) != path:
        raise tree.NotPlain(f"the name {quoted(path)} has characters that cannot be seen")
    return path


def _measured(root: int, path: str) -> PackageFile:
    digest = hashlib.sha256()
    size_bytes = 0
    with tree.opened_file(root, path) as file:
        before = os.fstat(file)
        if before.st_size > manifest.MAX_FILE_BYTES:
            what = f"{before.st_size} bytes; at most {manifest.MAX_FILE_BYTES}"
            raise Fault(f"files {quoted(path)}", what)
        for chunk in tree.chunks(file):
            digest.update(chunk)
            size_bytes += len(chunk)
        after = os.fstat(file)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise FilesUnreadable(f"{quoted(path)} changed while it was read", hint="build again")
    # The owner's bit alone: the others depend on the umask of whoever copied the file.
    mode = manifest.EXECUTABLE if before.st_mode & stat.S_IXUSR else manifest.PLAIN
    return PackageFile(path, mode, digest.hexdigest(), size_bytes)


@contextmanager
def _told(directory: Path) -> Iterator[None]:
    """Say what went wrong in words that name the package."""
    try:
        yield
    except Fault as fault:
        raise InvalidFile(f"{directory / workload.FILE_NAME}: {fault}") from fault
    except tree.NotPlain as error:
        raise InvalidFile(f"{directory}: {error.what}") from error
    except OSError as error:
        raise tree.unreadable(str(directory / (error.filename or "")), error) from error
