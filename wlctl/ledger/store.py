"""In which transactions the ledger is read and written; the only way to its tables."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection, Select

from wlctl.ledger.backend import Backend
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

    Attributes:
        installation: The identity that nodes know it by.
        epoch: How often it was restored.
        locks: Which operations have a living process; see `operations`.
    """

    def __init__(self, backend: Backend, *, installation: InstallationId, epoch: int) -> None:
        self.backend = backend
        self.installation = installation
        self.epoch = epoch
        self.locks = backend.locks
        self._writing = threading.local()

    @contextmanager
    def read(self) -> Iterator[ReadTx]:
        """Open a view of the ledger; it can write nothing."""
        with reading(self.backend) as conn:
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
            with writing(self.backend) as conn:
                yield WriteTx(conn, now_ms, author)
        finally:
            self._writing.now = False

    def close(self) -> None:
        """Close every connection; the last process to do so folds the journal into the file."""
        self.backend.close()


def stream(tx: ReadTx, query: Select[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query without parameters one by one, as the driver has them.

    For what goes through a whole table: through SQLAlchemy that takes half as long again.
    """
    cursor = tx.conn.connection.cursor()
    cursor.execute(str(query.compile(dialect=tx.conn.dialect)))
    yield from cast("Iterator[tuple[Any, ...]]", cursor)  # drivers' cursors are iterators


@contextmanager
def reading(backend: Backend) -> Iterator[Connection]:
    """See one state to the end."""
    with failures_said(backend), backend.reads.connect() as conn, conn.begin():
        backend.begin_read(conn)
        yield conn


@contextmanager
def writing(backend: Backend) -> Iterator[Connection]:
    """Commit at the end, or leave no trace."""
    with failures_said(backend), backend.writes.connect() as conn, conn.begin():
        backend.begin_write(conn)
        yield conn


@contextmanager
def failures_said(backend: Backend) -> Iterator[None]:
    """Raise what the database raises as the failure it means to a user; bugs stay as they are."""
    try:
        yield
    except backend.errors as error:
        failure = backend.failure(error)
        if failure is None:
            raise
        raise failure from error
