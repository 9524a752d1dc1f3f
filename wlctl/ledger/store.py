"""How the ledger is opened and in which transactions it is read and written."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, insert, select

from wlctl.errors import LedgerExists, NoLedger
from wlctl.ledger import migrate
from wlctl.ledger.backend import Backend
from wlctl.ledger.schema import installation as installation_table
from wlctl.ledger.sqlite import Sqlite
from wlctl.model.event import Author
from wlctl.model.ids import InstallationId


@dataclass(frozen=True, slots=True)
class ReadTx:
    """A consistent view: nothing another process commits shows up half-way through."""

    conn: Connection


@dataclass(frozen=True, slots=True)
class WriteTx(ReadTx):
    """The right to write, at one moment, in one name.

    Attributes:
        now_ms: Stamps every row and event of this transaction.
        author: Stands behind every event of this transaction.
    """

    now_ms: int
    author: Author


class Ledger:
    """Everything one installation remembers.

    A write transaction has the only right to write from its first moment, so what it reads stays
    true until it commits: read, decide and record inside one, and there is nothing to retry. Never
    wait for the network inside one.
    """

    def __init__(self, backend: Backend, *, installation: InstallationId, epoch: int) -> None:
        self._backend = backend
        self._writing = threading.local()
        self.locks = backend.locks
        self.installation = installation
        self.epoch = epoch

    @contextmanager
    def read(self) -> Iterator[ReadTx]:
        """Open a view of the ledger; it can write nothing."""
        with _transaction(self._backend, self._backend.begin_read) as conn:
            yield ReadTx(conn)

    @contextmanager
    def write(self, now_ms: int, author: Author) -> Iterator[WriteTx]:
        """Open the write transaction; it commits at the end, or leaves no trace.

        Raises:
            LedgerBusy: Another process kept the right to write for the whole busy timeout.
            LedgerDiskFull: There was no room; nothing was recorded.
        """
        assert not getattr(self._writing, "now", False), "a write inside a write waits for itself"
        self._writing.now = True
        try:
            with _transaction(self._backend, self._backend.begin_write) as conn:
                yield WriteTx(conn, now_ms, author)
        finally:
            self._writing.now = False

    def close(self) -> None:
        """Close every connection; the last process to do so folds the journal into the file."""
        self._backend.engine.dispose()
        self.locks.close()


@contextmanager
def _transaction(backend: Backend, begin: Callable[[Connection], None]) -> Iterator[Connection]:
    """Commit at the end, or leave no trace, and say failures in words a user can act on."""
    try:
        with backend.engine.connect() as conn, conn.begin():
            begin(conn)
            yield conn
    except backend.errors as error:
        failure = backend.failure(error)
        if failure is None:
            raise
        raise failure from error


def open_ledger(path: Path, *, now_ms: int, author: Author) -> Ledger:
    """Open the ledger at `path`; never make one.

    A ledger of an older version is upgraded first, after a backup, when that rewrites no row; such
    an upgrade is recorded with `now_ms` and `author`.

    Raises:
        NoLedger: Nothing is there.
    """
    if not path.exists():
        raise NoLedger(f"there is no ledger at {path}", hint="make one with `wlctl init`")
    return _opened(Sqlite(path))


def create_ledger(
    path: Path, *, installation: InstallationId, now_ms: int, author: Author
) -> Ledger:
    """Make the ledger at `path`, where nothing may be yet, readable by its owner alone.

    Raises:
        LedgerExists: Something is there already.
    """
    try:
        path.touch(mode=0o600, exist_ok=False)
    except FileExistsError as error:
        raise LedgerExists(f"{path} is already there") from error
    backend = Sqlite(path)
    conn = backend.connect()
    conn.execute("PRAGMA journal_mode = WAL")
    conn.close()
    with _transaction(backend, backend.begin_write) as tx:
        migrate.upgrade(tx)
        tx.execute(
            insert(installation_table).values(id=installation, epoch=0, created_at_ms=now_ms)
        )
    return _opened(backend)


def _opened(backend: Backend) -> Ledger:
    with _transaction(backend, backend.begin_read) as conn:
        row = conn.execute(select(installation_table.c.id, installation_table.c.epoch)).one()
    return Ledger(backend, installation=InstallationId(row.id), epoch=row.epoch)
