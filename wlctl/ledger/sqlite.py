"""How SQLite is spoken to: pragmas, who may write when, and what its errors mean."""

import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import ColumnElement, Connection, Engine, LargeBinary, cast, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from wlctl.errors import (
    LedgerBusy,
    LedgerDamaged,
    LedgerDiskFull,
    LedgerExists,
    LedgerPermissions,
    LedgerUnwritten,
    NotALedger,
    WlctlError,
)
from wlctl.ledger.locks import Locks

APPLICATION_ID = int.from_bytes(b"wlct", "big")
"""Stands in the file's header, where file(1) and `recognise` find it."""

OUR_TABLES = frozenset({"alembic_version", "chain", "installation"})
"""What every ledger has, of whatever revision."""

RESTORE = "keep the file for evidence and put a backup in its place"

BUSY_TIMEOUT_S = 30.0
"""How long a process waits for the others before it gives up."""

JOURNAL_PAGES = 250
"""The journal is folded into the file about this often. To sync a growing file costs twice what it
costs to sync one that is written over, and it grows up to here."""

POLL_S = 0.002
"""Between two tries for the write lock. SQLite's own wait grows to 100 ms a step, so that who has
waited longest asks most seldom: 630 ms worst with eight writers, against 100 ms this way; and a
wait inside SQLite cannot be interrupted by Ctrl-C. A queue (flock) is fairer still, 25 ms, but then
each writer finds its processor's caches cold: half as many transactions a second."""


class Sqlite:
    """One ledger file."""

    errors: tuple[type[Exception], ...] = (DBAPIError, sqlite3.Error)

    def __init__(self, path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> None:
        self.path = path
        self.locks = Locks(path.with_name(f"{path.name}-lock"))
        self._busy_timeout_s = busy_timeout_s
        self.engine: Engine = create_engine(
            "sqlite://",
            creator=self.connect,
            poolclass=QueuePool,
            pool_reset_on_return=None,  # every transaction is ended where it was begun
        )

    def connect(self) -> sqlite3.Connection:
        """Open the file, which must exist, with the pragmas every connection needs.

        The driver's own transaction handling is switched off: its BEGIN comes late and deferred,
        and a read that later writes fails at once, however long the busy timeout is.
        """
        conn = sqlite3.connect(
            f"file:{quote(os.fsencode(self.path))}?mode=rw",
            uri=True,
            timeout=self._busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,  # the pool gives a connection to one thread at a time
        )
        try:
            conn.execute(
                "PRAGMA synchronous = FULL"
            )  # a commit that was answered survives a power cut
            conn.execute("PRAGMA foreign_keys = ON")
            conn.execute(f"PRAGMA wal_autocheckpoint = {JOURNAL_PAGES}")
        except BaseException:
            conn.close()
            raise
        return conn

    def mark(self) -> None:
        """Make the empty file at `path` known as a ledger of ours, with a journal beside it."""
        with contextlib.closing(self.connect()) as conn:
            conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            conn.execute("PRAGMA journal_mode = WAL")

    def recognise(self) -> None:
        """Make sure that the file is a ledger of ours before anything is written to it.

        Raises:
            NotALedger: It is something else.
            LedgerDamaged: It was one.
        """
        try:
            with contextlib.closing(self.connect()) as conn:
                self._recognise(conn)
        except sqlite3.DatabaseError as error:
            if _primary(error) != sqlite3.SQLITE_NOTADB or self._looks_ours():
                raise
            raise NotALedger(
                f"{self.path} is not a ledger", hint="name the ledger file with --db"
            ) from error

    def _recognise(self, conn: sqlite3.Connection) -> None:
        (application,) = conn.execute("PRAGMA application_id").fetchone()
        marked = application == APPLICATION_ID
        built = {row[0] for row in conn.execute("SELECT name FROM sqlite_master")} >= OUR_TABLES
        if marked != built:
            missing = "its tables are missing" if marked else "its header is not that of a ledger"
            raise LedgerDamaged(f"the ledger {self.path} is damaged: {missing}", hint=RESTORE)
        if not marked:
            raise NotALedger(
                f"{self.path} is a database of another program",
                hint="name the ledger file with --db",
            )
        conn.execute("PRAGMA journal_mode = WAL")  # as it is, unless somebody changed it by hand

    def _looks_ours(self) -> bool:
        """Answer whether a file that SQLite does not know has what is left of a ledger's header.

        Reading the file is safe only because SQLite refused it: closing any descriptor of a file
        drops the locks that this process has on it.

        Source: SQLite, "Database File Format", 1.3 The Database Header.
        """
        with self.path.open("rb") as file:
            header = file.read(100)
        return (
            header[68:72] == APPLICATION_ID.to_bytes(4, "big") or header[:15] == b"SQLite format 3"
        )

    def copy_to(self, target: Path) -> Path:
        """See `Backend.copy_to`; the copy appears whole or not at all, readable by its owner."""
        if os.path.lexists(target):
            raise LedgerExists(f"{target} is already there", hint="name another file")
        partial = target.with_name(f"{target.name}.partial")
        with _kept_alone(partial):
            try:
                with (
                    contextlib.closing(self.connect()) as source,
                    contextlib.closing(Sqlite(partial).connect()) as copy,
                ):
                    source.backup(copy)  # at once: in portions it starts over at every write
                partial.rename(target)
            finally:
                partial.unlink(missing_ok=True)
        sync_directory(target.parent)
        return target

    def close(self) -> None:
        """See `Backend.close`."""
        self.engine.dispose()
        self.locks.close()

    def begin_read(self, conn: Connection) -> None:
        """See `Backend.begin_read`; the view is taken at the first statement."""
        driver = _driver(conn)
        driver.execute("PRAGMA query_only = 1")
        driver.execute("BEGIN DEFERRED")

    def begin_write(self, conn: Connection) -> None:
        """See `Backend.begin_write`."""
        driver = _driver(conn)
        driver.execute("PRAGMA query_only = 0")
        driver.execute("PRAGMA busy_timeout = 0")
        try:
            self._take_lock(driver)
        finally:
            driver.execute(f"PRAGMA busy_timeout = {round(self._busy_timeout_s * 1000)}")

    def _take_lock(self, driver: sqlite3.Connection) -> None:
        deadline = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                driver.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if _primary(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
            else:
                return
            time.sleep(POLL_S)

    def octets(self, column: ColumnElement[str]) -> ColumnElement[bytes]:
        """See `Backend.octets`."""
        return cast(column, LargeBinary)

    def failure(self, error: Exception) -> WlctlError | None:
        """See `Backend.failure`."""
        origin = error.orig if isinstance(error, DBAPIError) else error
        if not isinstance(origin, sqlite3.Error):
            return None
        match _primary(origin):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return LedgerBusy(
                    f"another wlctl has held the ledger for {self._busy_timeout_s:g} s",
                    hint="run the same command again; it is safe to repeat",
                )
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return LedgerDamaged(f"the ledger {self.path} is damaged: {origin}", hint=RESTORE)
            case sqlite3.SQLITE_FULL:
                return self._disk_full()
            case sqlite3.SQLITE_IOERR:
                return LedgerUnwritten(
                    f"the ledger {self.path} could not be read or written: {origin}",
                    hint="check the disk, then run `wlctl ledger check`",
                )
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
                return LedgerPermissions(
                    f"the ledger {self.path} cannot be written: {origin}",
                    hint="the file and its directory must both be writable by you",
                )
            case _:
                return None

    def _disk_full(self) -> WlctlError:
        return LedgerDiskFull(
            f"no room left on the disk of the ledger {self.path}; nothing of this was recorded",
            hint="make room and run the same command again",
        )


def _driver(conn: Connection) -> sqlite3.Connection:
    """Return the driver's own connection: BEGIN is not for SQLAlchemy to speak here."""
    driver: object = conn.connection.dbapi_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def _primary(error: sqlite3.Error) -> int | None:
    """Return SQLite's primary result code; the driver's own errors have none."""
    code = getattr(error, "sqlite_errorcode", None)
    return code & 0xFF if isinstance(code, int) else None


@contextlib.contextmanager
def _kept_alone(partial: Path) -> Iterator[None]:
    """Make `partial` empty, also when a killed process left it, and let nobody else in."""
    flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(partial, flags, 0o600)
    try:
        if not _is_mine(fd, partial):
            raise LedgerBusy(
                f"another process is making {partial.stem}", hint="try again in a moment"
            )
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


def sync_directory(directory: Path) -> None:
    """Make a new name in `directory` survive a power cut."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
