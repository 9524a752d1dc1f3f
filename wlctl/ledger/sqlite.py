"""How SQLite is spoken to: pragmas, who may write when, and what its errors mean."""

import sqlite3
import time
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import ColumnElement, Connection, Engine, LargeBinary, cast, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from wlctl.errors import (
    LedgerBusy,
    LedgerDamaged,
    LedgerDiskFull,
    LedgerPermissions,
    LedgerUnwritten,
    WlctlError,
)
from wlctl.ledger.locks import Locks

BUSY_TIMEOUT_S = 30.0
"""How long a process waits for the others before it gives up."""

POLL_S = 0.001
"""Between two tries for the write lock. SQLite's own wait grows to 100 ms a step, so that who has
waited longest asks most seldom: 630 ms worst with eight writers, against 100 ms this way; and a
wait inside SQLite cannot be interrupted by Ctrl-C."""


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
            f"file:{quote(str(self.path))}?mode=rw",
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
        except BaseException:
            conn.close()
            raise
        return conn

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
                return LedgerDamaged(
                    f"the ledger {self.path} is damaged: {origin}",
                    hint="keep the file for evidence and put a backup in its place",
                )
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
