"""Who holds what, by the kernel's word: locks on one file beside the ledger.

A scope is a byte of that file, far out, so nothing but the one empty file is ever there. A lock is
gone when its holder is, however that ended, and leaves nothing to clean. The locks belong to the
open file, not to the process: two ledgers opened by one process exclude each other too.

Source: Linux, fcntl(2), "Open file description locks".
"""

import errno
import fcntl
import hashlib
import os
import struct
import threading
from pathlib import Path

from wlctl.errors import LedgerPermissions
from wlctl.ledger.files import give_to_owner_of


class Locks:
    """The locks that one opened ledger holds."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._path = ledger.with_name(f"{ledger.name}-lock")
        self._fd: int | None = None
        self._held: set[str] = set()
        self._guard = threading.Lock()

    def try_lock(self, scope: str) -> bool:
        """Take the lock of `scope` if nobody has it, not even this ledger; answer whether so."""
        with self._guard:
            if scope in self._held or not self._set(fcntl.F_WRLCK, scope):
                return False
            self._held.add(scope)
            return True

    def unlock(self, scope: str) -> None:
        """Give the lock of `scope` back, if it was not given back with all others."""
        with self._guard:
            if scope in self._held:
                self._held.remove(scope)
                self._set(fcntl.F_UNLCK, scope)

    def close(self) -> None:
        """Give everything back."""
        with self._guard:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None
            self._held.clear()

    def _set(self, kind: int, scope: str) -> bool:
        if self._fd is None:
            self._fd = self._open()
        request = struct.pack("hhqqi4x", kind, os.SEEK_SET, _offset(scope), 1, 0)
        try:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, request)
        except OSError as error:
            if error.errno in {errno.EAGAIN, errno.EACCES}:
                return False
            raise
        return True

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            fd = os.open(self._path, flags, 0o600)
            give_to_owner_of(self._ledger, fd)
        except OSError as error:
            raise LedgerPermissions(
                f"{self._path} cannot be opened: {error.strerror}",
                hint="it and its directory must both be writable by you",
            ) from error
        return fd


def _offset(scope: str) -> int:
    """Return the byte that stands for `scope`: two share one about once in 2**62 pairs."""
    return int.from_bytes(hashlib.sha256(scope.encode()).digest()[:8], "big") >> 2
