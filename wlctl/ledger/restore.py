"""How a backup takes the place of a ledger: looked at whole first, then at once, or not at all."""

import contextlib
import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

from wlctl.errors import ChainBroken, LedgerBusy, LedgerDamaged, NoLedger, NotALedger
from wlctl.ledger import backup, chain, migrate, site, witnesses
from wlctl.ledger.enclosed import Enclosed, take_out
from wlctl.ledger.files import SIDE_FILES, appearing, scratch
from wlctl.ledger.migrate import SHIPPED, Migrations, revision_of
from wlctl.ledger.opening import check_free, identity_of
from wlctl.ledger.sqlite import Sqlite
from wlctl.ledger.sqlite_errors import primary_code
from wlctl.ledger.store import Ledger, WriteTx, failures_said, reading, writing
from wlctl.ledger.verify import Broken, verify
from wlctl.model.event import Author, Checkpoint
from wlctl.model.witness import Doubt


@dataclass(frozen=True, slots=True)
class Restored:
    """What took the ledger's place.

    Attributes:
        head: The newest event of the backup.
        aside: Where what was there before is kept; None where nothing was.
    """

    head: Checkpoint
    aside: Path | None


def restore(
    source: Path,
    path: Path,
    *,
    now_ms: int,
    author: Author,
    aside: Path | None = None,
    keys: Callable[[Enclosed], None],
    migrations: Migrations = SHIPPED,
) -> Restored:
    """Put the backup `source` in the place of the ledger at `path`, doubted from then on.

    The backup itself is not changed. Its copy is checked below its chain and along it before
    anything else is touched, and appears whole or not at all.

    Args:
        aside: Where to keep the ledger that is there; None refuses where there is one.
        keys: Called with what was enclosed once all was found good; raises to refuse.

    Raises:
        NoLedger, NotALedger, LedgerDamaged, ChainBroken: The backup cannot be used.
        LedgerPermissions: It, or the ledger, is open to others or not to us.
        LedgerNewer: A newer program made it.
        LedgerExists: There is a ledger, and `aside` is None, or is there already.
        LedgerBusy: Another process is restoring, or writes all the time.
        LedgerDiskFull, LedgerOnNetwork: See `create_ledger`.
    """
    if not source.exists():
        raise NoLedger(
            f"there is no backup {source}", hint="name a file that `wlctl ledger backup` made"
        )
    site.check_file(source)
    path = Path(os.path.realpath(path.parent), path.name)
    site.check_directory(path.parent)
    moment = _Moment(now_ms, author, migrations)
    if aside is None or not os.path.lexists(path):
        check_free(path)
        with appearing(path) as new:
            head = _fill(new, source, moment, keys)
        return Restored(head, None)
    with scratch(path) as new:
        head = _fill(new, source, moment, keys)
        _replace(path, new, aside)
    return Restored(head, aside)


@dataclass(frozen=True, slots=True)
class _Moment:
    """When a ledger is restored, by whom, with which program."""

    now_ms: int
    author: Author
    migrations: Migrations


def _fill(new: Path, source: Path, moment: _Moment, keys: Callable[[Enclosed], None]) -> Checkpoint:
    """Make `new` the ledger that the backup is; look at all of it before anybody relies on it."""
    with (
        _said_of(source),
        contextlib.closing(_reader(source)) as origin,
        contextlib.closing(sqlite3.connect(new, isolation_level=None)) as copy,
    ):
        origin.backup(copy)
        (fault,) = copy.execute("PRAGMA quick_check(1)").fetchone()
        if fault != "ok":
            raise LedgerDamaged(f"the backup {source} is damaged: {fault}")
    backend = Sqlite(new)
    try:
        with failures_said(backend):
            backend.recognise()
            with contextlib.closing(backend.connect()) as copy:
                enclosed = take_out(copy)
        with writing(backend) as conn:
            head = _doubt(WriteTx(conn, moment.now_ms, moment.author), source, moment)
        _verify(backend, source)
    finally:
        backend.close()
    keys(enclosed)
    return head


def _doubt(tx: WriteTx, source: Path, moment: _Moment) -> Checkpoint:
    revision = revision_of(tx.conn)
    if migrate.is_pending(revision, moment.migrations):
        migrate.upgrade(tx.conn, moment.migrations)
        told = {"before": revision, "after": moment.migrations.head, "backup": source.name}
        chain.append(tx, "ledger.migrate", told)
    point = witnesses.head(tx)
    witnesses.doubt(tx, Doubt.RESTORED, {"backup": source.name, "backup_seq": point.seq})
    return Checkpoint(witnesses.name_of(tx), point.epoch, point.seq, point.sha256)


def _verify(backend: Sqlite, source: Path) -> None:
    with reading(backend) as conn:
        installation, epoch = identity_of(backend, conn)
    found = verify(Ledger(backend, installation=installation, epoch=epoch))
    if isinstance(found, Broken):
        raise ChainBroken(
            f"the chain of the backup {source} is broken at event {found.seq}: {found.why}",
            hint="take an older backup; what is there was left as it is",
        )


def _reader(source: Path) -> sqlite3.Connection:
    """Open a backup without writing beside it, as long as nobody else has it open."""
    has_journal = any(source.with_name(source.name + suffix).exists() for suffix in SIDE_FILES)
    mode = "mode=rw" if has_journal else "mode=ro&immutable=1"
    return sqlite3.connect(
        f"file:{quote(os.fsencode(source))}?{mode}", uri=True, isolation_level=None
    )


@contextlib.contextmanager
def _said_of(source: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        if primary_code(error) == sqlite3.SQLITE_NOTADB:
            raise NotALedger(f"{source} is not a backup of a ledger") from error
        raise LedgerDamaged(f"the backup {source} cannot be read: {error}") from error


def _replace(path: Path, new: Path, aside: Path) -> None:
    """Keep what is there, then let it be `new`; SQLite sees to it that nobody sees half of it."""
    living = Sqlite(path)
    try:
        with failures_said(living):
            living.recognise()
        backup.copy(living, aside)
    except (LedgerDamaged, NotALedger):
        living.close()
        _move_aside(path, aside)
        new.rename(path)
        return
    try:
        with (
            contextlib.closing(sqlite3.connect(new, isolation_level=None)) as origin,
            contextlib.closing(living.connect()) as there,
        ):
            origin.backup(there, progress=partial(_give_up_when_busy, path))
    finally:
        living.close()


def _give_up_when_busy(path: Path, status: int, _remaining: int, _total: int) -> None:
    """End a copying that the driver would try again for ever."""
    if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise LedgerBusy(f"another process is at work on {path}", hint="stop it, and restore again")


def _move_aside(path: Path, aside: Path) -> None:
    """Move what cannot be opened away, with its journal: it would be replayed into the new one."""
    for suffix in (*SIDE_FILES, ""):
        with contextlib.suppress(FileNotFoundError):
            path.with_name(path.name + suffix).rename(aside.with_name(aside.name + suffix))
