"""Reads ssh's own files, and only those that nobody but their user or root can have written."""

import os
import stat
from pathlib import Path

from wlctl.errors import UnsafeSshConfig

MAX_BYTES = 4 << 20
"""Longer files are not ssh's: known_hosts of ten thousand machines has a tenth of that."""

_OTHERS_WRITE = 0o022


def read_lines(path: Path, uid: int) -> tuple[str, ...]:
    """Return the lines of `path`; none when there is no such file.

    What was looked at is what is read: the file is opened once. Files that did not change are read
    once for all nodes.

    Args:
        uid: Whose files count besides root's.

    Raises:
        UnsafeSshConfig: Others own or can write it, or it is no regular file of sensible size.

    Source: OpenSSH, ssh_config(5), "Bad owner or permissions".
    """
    try:
        found = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        raise UnsafeSshConfig(f"{path} cannot be read: {error.strerror}") from error
    try:
        about = os.fstat(found)
        _check(path, about, uid)
        version = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
        if version not in _read:
            with os.fdopen(os.dup(found), "rb") as file:
                _read[version] = tuple(file.read(MAX_BYTES).decode("utf-8").split("\n"))
        return _read[version]
    except (UnicodeDecodeError, OSError) as error:
        raise UnsafeSshConfig(f"{path} cannot be read as text: {error}") from error
    finally:
        os.close(found)


_read: dict[tuple[int, ...], tuple[str, ...]] = {}
"""By device, inode, size and times: what a command reads for its first node holds for all."""


def _check(path: Path, about: os.stat_result, uid: int) -> None:
    if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_BYTES:
        raise UnsafeSshConfig(f"{path} is no regular file of at most {MAX_BYTES} bytes")
    if about.st_uid not in {0, uid}:
        raise UnsafeSshConfig(
            f"{path} belongs to another user (uid {about.st_uid})",
            hint=f"look at what it says, then `chown` it to you: {path}",
        )
    if about.st_mode & _OTHERS_WRITE:
        raise UnsafeSshConfig(
            f"{path} can be written by others (mode {about.st_mode & 0o777:04o})",
            hint=f"look at what it says, then: chmod go-w {path}",
        )
