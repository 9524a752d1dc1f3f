"""What differs from one database to the next; everything else is SQLAlchemy Core."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sqlalchemy import ColumnElement, Connection, Engine

from wlctl.errors import WlctlError
from wlctl.ledger.enclosed import Enclosed
from wlctl.ledger.locks import Locks


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        what: In snake_case, the same in every version.
        detail: What was found, good or not.
    """

    what: str
    good: bool
    detail: str


class Backend(Protocol):
    """How one kind of database is spoken to.

    Attributes:
        where: Where the ledger is, for people to read.
        reads: Hands out connections that can write nothing.
        writes: Hands out those that can; both are in no transaction until one is begun here.
        errors: What the driver and SQLAlchemy raise; `failure` says what each means.
        locks: Tells whether the process behind an operation lives.
    """

    where: str
    reads: Engine
    writes: Engine
    errors: tuple[type[Exception], ...]
    locks: Locks

    def begin_read(self, conn: Connection) -> None:
        """Begin a transaction, on one of `reads`, that sees one state of the ledger."""
        ...

    def begin_write(self, conn: Connection) -> None:
        """Begin a transaction, on one of `writes`, that has the only right to write.

        It waits for that right if need be.

        Raises:
            LedgerBusy: Another one had it all the time.
        """
        ...

    def failure(self, error: Exception) -> WlctlError | None:
        """Translate one of `errors` to what a user can act on; None when it is a bug of ours."""
        ...

    def examine(self) -> Iterator[Finding]:
        """Look for damage below the tables, and for settings that a ledger must not have."""
        ...

    def copy_to(self, target: Path, enclosed: Enclosed | None = None) -> Path:
        """Copy one consistent state of the ledger to a new file while others go on writing.

        The copy appears whole or not at all, readable by its owner alone.

        Args:
            enclosed: What goes into the copy beside the ledger.

        Raises:
            LedgerExists: Something is there already.
            InvalidFile: It cannot be made there.
            LedgerDiskFull: There is no room for it.
            LedgerDamaged: What would be copied is damaged.
        """
        ...

    def close(self) -> None:
        """Close every connection and give every lock back."""
        ...

    def octets(self, column: ColumnElement[str]) -> ColumnElement[bytes]:
        """Select a text column as the bytes it is stored as, whatever they are; none if NULL."""
        ...
