"""What differs from one database to the next; everything else is SQLAlchemy Core."""

from pathlib import Path
from typing import Protocol

from sqlalchemy import ColumnElement, Connection, Engine

from wlctl.errors import WlctlError
from wlctl.ledger.locks import Locks


class Backend(Protocol):
    """How one kind of database is spoken to.

    Attributes:
        engine: Hands out connections that are in no transaction until one is begun here.
        errors: What the driver and SQLAlchemy raise; `failure` says what each means.
        locks: Tells whether the process behind an operation lives.
    """

    engine: Engine
    errors: tuple[type[Exception], ...]
    locks: Locks

    def begin_read(self, conn: Connection) -> None:
        """Begin a transaction that sees one state of the ledger and can write nothing."""
        ...

    def begin_write(self, conn: Connection) -> None:
        """Begin a transaction that holds the only right to write, waiting for it if need be.

        Raises:
            LedgerBusy: Another one had it all the time.
        """
        ...

    def failure(self, error: Exception) -> WlctlError | None:
        """Translate one of `errors` to what a user can act on; None when it is a bug of ours."""
        ...

    def copy_to(self, target: Path) -> Path:
        """Copy one consistent state of the ledger to a new file while others go on writing.

        Raises:
            LedgerExists: Something is there already.
        """
        ...

    def close(self) -> None:
        """Close every connection and give every lock back."""
        ...

    def octets(self, column: ColumnElement[str]) -> ColumnElement[bytes]:
        """Select a text column as the bytes it is stored as, whatever they are."""
        ...
