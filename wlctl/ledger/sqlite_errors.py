"""What SQLite's errors mean to a user."""

import os
import sqlite3
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from wlctl.errors import (
    LedgerBusy,
    LedgerDamaged,
    LedgerDiskFull,
    LedgerPermissions,
    LedgerUnwritten,
    WlctlError,
)

NO_TEXT = "Could not decode to UTF-8"
"""What the driver says, without a code, of a text that is none.

Source: CPython, Modules/_sqlite/cursor.c, `_pysqlite_fetch_one_row`.
"""

NOT_THERE = ("no such table", "no such column")
"""How SQLite begins to say that the tables are not those of their revision.

That was compared when the ledger was opened, so a name was changed in the file itself.
"""

RESTORE = "keep the file for evidence and put a backup in its place"


def primary_code(error: sqlite3.Error) -> int | None:
    """Return SQLite's primary result code; the driver's own errors have none.

    Source: SQLite, "Result and Error Codes"; the other bits say more, e.g. which call failed.
    """
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


def failure_of(error: Exception, path: Path, busy_timeout_s: float) -> WlctlError | None:
    """Translate an error about the ledger at `path`; None when it is a bug of ours."""
    origin = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(origin, sqlite3.Error):
        return None
    match primary_code(origin):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return LedgerBusy(
                f"another wlctl has held the ledger for {busy_timeout_s:g} s",
                hint="run the same command again; it is safe to repeat",
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return LedgerDamaged(f"the ledger {path} is damaged: {origin}", hint=RESTORE)
        case sqlite3.SQLITE_FULL:
            return _disk_full(path)
        case sqlite3.SQLITE_IOERR if _is_full(path):
            return _disk_full(path)
        case sqlite3.SQLITE_IOERR:
            return LedgerUnwritten(
                f"the ledger {path} could not be read or written: {origin}",
                hint="check the disk, then run `wlctl ledger check`",
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return LedgerPermissions(
                f"the ledger {path} cannot be written: {origin}",
                hint="the file and its directory must both be writable by you",
            )
        case sqlite3.SQLITE_ERROR if str(origin).startswith(NOT_THERE):
            return LedgerDamaged(f"the ledger {path} is damaged: {origin}", hint=RESTORE)
        case None if str(origin).startswith(NO_TEXT):
            return LedgerDamaged(f"the ledger {path} is damaged: {origin}", hint=RESTORE)
        case _:
            return None


ROOM_BYTES = 64 * 1024
"""SQLite's shared memory takes half of this when the first process opens a ledger."""


def _is_full(path: Path) -> bool:
    """Answer whether an I/O error may be want of room, which SQLite says only of its own writes."""
    try:
        disk = os.statvfs(path.parent)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < ROOM_BYTES


def _disk_full(path: Path) -> LedgerDiskFull:
    return LedgerDiskFull(
        f"no room left on the disk of the ledger {path}; nothing of this was recorded",
        hint="make room and run the same command again",
    )
