"""What a settings file may be: whose it is, how large, and TOML."""

import os
import stat
from pathlib import Path

from wlctl.errors import InvalidFile

FILE_MAX_BYTES = 1 << 20


def read_project(path: Path | None) -> dict[str, object]:
    """Read the file of the working directory, if nobody else can have written it.

    Raises:
        InvalidFile: Somebody else can, or it is no settings file.
    """
    if path is None or not os.access(path.parent, os.X_OK):
        return {}
    return read(path, guarded=True)


def read(path: Path | None, *, guarded: bool = False) -> dict[str, object]:
    """Read a TOML file; a missing one is empty, and one that others can write is refused.

    Settings name commands that are run, and where secrets are got.

    Args:
        path: None for a file that there is no place for.
        guarded: It must belong to us or to root: anybody may have put it there.

    Raises:
        InvalidFile: It cannot be read, or is no settings file.
    """
    if path is None:
        return {}
    try:
        # Without O_NONBLOCK a FIFO of that name would hold every command up.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise InvalidFile(f"{path} is not a regular file", hint="move it away")
            if guarded:
                _check_owner(path, status)
            _check_mode(path, status)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                content = file.read(FILE_MAX_BYTES + 1)
        finally:
            os.close(descriptor)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read", hint=error.strerror) from None
    if len(content) > FILE_MAX_BYTES:
        raise InvalidFile(f"{path} is larger than {FILE_MAX_BYTES} bytes", hint="shorten it")
    return _parsed(path, content)


def _parsed(path: Path, content: bytes) -> dict[str, object]:
    import tomllib

    try:
        return tomllib.loads(content.decode())
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{path} is not UTF-8 at byte {error.start}", hint="save it so") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidFile(f"{path} is not TOML: {error}", hint="mend that line") from None


def _check_owner(path: Path, status: os.stat_result) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise InvalidFile(
            f"{path} here belongs to another user, so it is not read",
            hint="run wlctl in another directory, or own the file",
        )


def _check_mode(path: Path, status: os.stat_result) -> None:
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise InvalidFile(
            f"{path} can be written by others, so it is not read",
            hint=f"chmod go-w {path}",
        )
