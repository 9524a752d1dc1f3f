"""How a ledger is opened, brought up to this program's version, and, once, made."""

import os
import time
from pathlib import Path

from sqlalchemy import Connection, insert

from wlctl.errors import LedgerBusy, LedgerDamaged, LedgerExists
from wlctl.ledger import chain, migrate, site
from wlctl.ledger.backend import Backend
from wlctl.ledger.files import SIDE_FILES, appearing, drop_unfinished
from wlctl.ledger.migrate import SHIPPED, Migrated, Migrations
from wlctl.ledger.schema import installation as installation_table
from wlctl.ledger.sqlite import BUSY_TIMEOUT_S, Sqlite
from wlctl.ledger.sqlite_errors import RESTORE
from wlctl.ledger.store import Ledger, WriteTx, failures_said, reading, writing
from wlctl.model.event import Author
from wlctl.model.ids import InstallationId, is_checked_id

POLL_S = 0.02


def open_ledger(
    path: Path,
    *,
    now_ms: int,
    author: Author,
    busy_timeout_s: float = BUSY_TIMEOUT_S,
    migrations: Migrations = SHIPPED,
) -> Ledger:
    """Open the ledger at `path`; never make one.

    A ledger of an older version is upgraded first, after a backup, when that rewrites no row; such
    an upgrade is recorded with `now_ms` and `author`.

    Raises:
        NoLedger: Nothing is there.
        NotALedger: Something else is there.
        LedgerPermissions: It is open to others, or not to us.
        LedgerOnNetwork: It lies where SQLite's locks do not hold.
        LedgerDamaged: It cannot be read.
        LedgerNewer: A newer program has migrated it.
        LedgerOutdated: It needs a migration that has to be asked for.
    """
    backend = _checked(path, busy_timeout_s)
    try:
        with reading(backend) as conn:
            pending = migrate.is_pending(migrate.revision_of(conn), migrations)
        if pending:
            _migrate(backend, migrations, now_ms=now_ms, author=author, unasked=True)
        return _opened(backend)
    except BaseException:
        backend.close()
        raise


def migrate_ledger(
    path: Path,
    *,
    now_ms: int,
    author: Author,
    busy_timeout_s: float = BUSY_TIMEOUT_S,
    migrations: Migrations = SHIPPED,
) -> Migrated | None:
    """Bring the ledger at `path` to this program's version, whatever that takes, after a backup.

    Returns None when it is there already. Raises what `open_ledger` does, but LedgerOutdated.
    """
    backend = _checked(path, busy_timeout_s)
    try:
        return _migrate(backend, migrations, now_ms=now_ms, author=author, unasked=False)
    finally:
        backend.close()


def create_ledger(
    path: Path,
    *,
    installation: InstallationId,
    now_ms: int,
    author: Author,
    doubted: bool = False,
    busy_timeout_s: float = BUSY_TIMEOUT_S,
    migrations: Migrations = SHIPPED,
) -> Ledger:
    """Make the ledger at `path`, where nothing may be yet, readable by its owner alone.

    It appears there whole or not at all. Of two that make it at once, the second finds it made.

    Args:
        doubted: It takes the place of one that is gone, and knows nothing of what that one knew.

    Raises:
        LedgerExists: Something is there already, be it the journal of a ledger that is gone.
        NoLedger: Its directory is not there.
        InvalidFile: Its directory cannot be written.
        LedgerDiskFull: There is no room for it.
        LedgerOnNetwork: It would lie where SQLite's locks do not hold.
    """
    path = Path(os.path.realpath(path.parent), path.name)
    site.check_directory(path.parent)
    deadline = time.monotonic() + busy_timeout_s
    while True:
        try:
            check_free(path)
            with appearing(path) as new:
                _make(new, installation, now_ms, author, migrations, doubted=doubted)
        except LedgerBusy:  # another one makes it
            if time.monotonic() >= deadline:
                raise
            time.sleep(POLL_S)
        else:
            break
    return open_ledger(
        path,
        now_ms=now_ms,
        author=author,
        busy_timeout_s=busy_timeout_s,
        migrations=migrations,
    )


def _make(
    path: Path,
    installation: InstallationId,
    now_ms: int,
    author: Author,
    migrations: Migrations,
    *,
    doubted: bool,
) -> None:
    backend = Sqlite(path)
    try:
        with failures_said(backend):
            backend.mark()
        with writing(backend) as conn:
            migrate.upgrade(conn, migrations)
            row = {"id": installation, "epoch": 0, "created_at_ms": now_ms}
            conn.execute(insert(installation_table).values(row))
            made: dict[str, str] = {"installation": installation, "revision": migrations.head}
            tx = WriteTx(conn, now_ms, author)
            chain.append(tx, "ledger.init", made)
            if doubted:
                from wlctl.ledger import witnesses  # seldom, and much that opening does not need
                from wlctl.model.witness import Doubt

                witnesses.doubt(tx, Doubt.RESTORED, {"backup": None})
    finally:
        backend.close()


def _checked(path: Path, busy_timeout_s: float) -> Sqlite:
    # What stands beside the ledger stands beside the file itself, not beside a link to it.
    path = Path(os.path.realpath(path))
    site.check_file(path)
    backend = Sqlite(path, busy_timeout_s=busy_timeout_s)
    try:
        with failures_said(backend):
            backend.recognise()
    except BaseException:
        backend.close()
        raise
    return backend


def _migrate(
    backend: Sqlite, migrations: Migrations, *, now_ms: int, author: Author, unasked: bool
) -> Migrated | None:
    def save(revision: str) -> Path:
        from wlctl.ledger import backup  # seldom

        drop_unfinished(backend.path.parent, backup.prefix(backend.path))
        return backup.copy(backend, backup.beside(backend.path, revision, now_ms))

    with writing(backend) as conn:
        tx = WriteTx(conn, now_ms, author)
        return migrate.run(tx, migrations, save=save, unasked=unasked)


def _opened(backend: Backend) -> Ledger:
    with reading(backend) as conn:
        installation, epoch = identity_of(backend, conn)
    return Ledger(backend, installation=installation, epoch=epoch)


def identity_of(backend: Backend, conn: Connection) -> tuple[InstallationId, int]:
    """Read which installation a ledger is of, and how often it was restored.

    Raises:
        LedgerDamaged: It does not say.
    """
    rows = conn.exec_driver_sql("SELECT id, epoch FROM installation").all()
    if len(rows) != 1 or not is_checked_id(str(rows[0].id)):
        raise LedgerDamaged(
            f"the ledger {backend.where} is damaged: it does not name its installation",
            hint=RESTORE,
        )
    return InstallationId(rows[0].id), rows[0].epoch


def check_free(path: Path) -> None:
    """Make sure that neither a ledger nor the journal of one that is gone lies at `path`."""
    if os.path.lexists(path):
        raise LedgerExists(f"{path} is already there", hint="`wlctl ledger check` looks at it")
    for suffix in SIDE_FILES:
        journal = path.with_name(path.name + suffix)
        if os.path.lexists(journal):  # SQLite would replay it into the new ledger
            raise LedgerExists(
                f"{journal} of an earlier ledger is still there",
                hint="if that ledger is gone for good, move the file away",
            )
