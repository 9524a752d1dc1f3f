"""How SQLite is spoken to: pragmas, who may write when, and what kind of file it has before it."""

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    LargeBinary,
    cast,
    create_engine,
    func,
    literal_column,
)
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from wlctl.errors import LedgerDamaged, LedgerDiskFull, NotALedger, WlctlError
from wlctl.ledger.backend import Finding
from wlctl.ledger.enclosed import Enclosed, enclose
from wlctl.ledger.files import appearing, give_to_owner_of
from wlctl.ledger.locks import Locks
from wlctl.ledger.sqlite_errors import RESTORE, failure_of, primary_code

APPLICATION_ID = int.from_bytes(b"wlct", "big")
"""Stands in the file's header, where file(1) and `recognise` find it."""

OUR_TABLES = frozenset({"alembic_version", "chain", "installation"})
"""What every ledger has, of whatever revision."""

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
        self.where = str(path)
        self.locks = Locks(path)
        self._busy_timeout_s = busy_timeout_s
        self.reads = _engine(self._connect_to_read)
        self.writes = _engine(self._connect_to_write)

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
            conn.execute("PRAGMA synchronous = FULL")  # what was answered survives a power cut
            conn.execute("PRAGMA foreign_keys = ON")
            conn.execute(f"PRAGMA wal_autocheckpoint = {JOURNAL_PAGES}")
        except BaseException:
            conn.close()
            raise
        return conn

    def _connect_to_read(self) -> sqlite3.Connection:
        conn = self.connect()
        conn.execute("PRAGMA query_only = 1")
        return conn

    def _connect_to_write(self) -> sqlite3.Connection:
        conn = self.connect()
        conn.execute("PRAGMA busy_timeout = 0")  # the waiting is done here; see POLL_S
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
            if primary_code(error) != sqlite3.SQLITE_NOTADB or self._looks_ours():
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
        ours = APPLICATION_ID.to_bytes(4, "big")
        return header[68:72] == ours or header.startswith(b"SQLite format 3")

    def begin_read(self, conn: Connection) -> None:
        """See `Backend.begin_read`; the view is taken at the first statement."""
        _driver(conn).execute("BEGIN DEFERRED")

    def begin_write(self, conn: Connection) -> None:
        """See `Backend.begin_write`."""
        driver = _driver(conn)
        deadline = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                driver.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
            else:
                return
            time.sleep(POLL_S)

    def octets(self, column: ColumnElement[str]) -> ColumnElement[bytes]:
        """See `Backend.octets`."""
        return cast(func.coalesce(column, literal_column("''")), LargeBinary)

    def failure(self, error: Exception) -> WlctlError | None:
        """See `Backend.failure`."""
        return failure_of(error, self.path, self._busy_timeout_s)

    def copy_to(self, target: Path, enclosed: Enclosed | None = None) -> Path:
        """See `Backend.copy_to`."""
        with appearing(target) as partial, contextlib.closing(self.connect()) as source:
            with contextlib.closing(Sqlite(partial).connect()) as copy:
                copy.execute("PRAGMA journal_mode = OFF")  # an unfinished copy is thrown away
                try:
                    source.backup(copy)  # at once: in portions it starts over at every write
                except sqlite3.OperationalError as error:
                    if primary_code(error) != sqlite3.SQLITE_FULL:
                        raise
                    raise LedgerDiskFull(f"no room for a copy in {target.parent}") from error
                if enclosed is not None:
                    enclose(copy, enclosed)
                if target.parent == self.path.parent:
                    give_to_owner_of(self.path, partial)
                (fault,) = copy.execute("PRAGMA quick_check(1)").fetchone()
            if fault != "ok":
                raise LedgerDamaged(f"the ledger {self.path} is damaged: {fault}", hint=RESTORE)
        return target

    def examine(self) -> Iterator[Finding]:
        """See `Backend.examine`."""
        mode = stat.S_IMODE(self.path.stat().st_mode)
        yield Finding("mode", good=not mode & 0o077, detail=f"{mode:04o}")
        with contextlib.closing(self.connect()) as conn:
            (journal,) = conn.execute("PRAGMA journal_mode").fetchone()
            yield Finding("journal", good=journal == "wal", detail=journal)
            for what, pragma in (
                ("integrity", "PRAGMA integrity_check(20)"),
                ("foreign_keys", "PRAGMA foreign_key_check"),
            ):
                faults = [" ".join(map(str, row)) for row in conn.execute(pragma).fetchmany(20)]
                good = faults in ([], ["ok"])
                yield Finding(what, good=good, detail="ok" if good else "; ".join(faults))

    def close(self) -> None:
        """See `Backend.close`."""
        self.reads.dispose()
        self.writes.dispose()
        self.locks.close()


def _engine(connect: Callable[[], sqlite3.Connection]) -> Engine:
    return create_engine(
        URL.create("sqlite"),  # to parse one costs six milliseconds
        creator=connect,
        poolclass=QueuePool,
        pool_size=0,  # as many as there are threads: none of them waits for another
        pool_reset_on_return=None,  # every transaction is ended where it was begun
    )


def _driver(conn: Connection) -> sqlite3.Connection:
    """Return the driver's own connection: BEGIN is not for SQLAlchemy to speak here."""
    driver: object = conn.connection.dbapi_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver
