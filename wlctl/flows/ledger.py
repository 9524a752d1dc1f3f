"""Look after the ledger itself: check it, back it up, migrate it."""

from pathlib import Path

from wlctl.flows.runtime import Runtime
from wlctl.ledger import backup as backups
from wlctl.ledger import check as checking
from wlctl.ledger.check import Health
from wlctl.ledger.migrate import Migrated, revision_of
from wlctl.ledger.opening import migrate_ledger


def check(rt: Runtime) -> Health:
    """Look at everything below the chain; changes nothing."""
    return checking.check(rt.ledger)


def backup(rt: Runtime, target: Path | None) -> Path:
    """Copy the ledger, and return where the copy is.

    Args:
        target: A file, or a directory that gets one named by revision and moment; None is the
            directory of the ledger.

    Raises:
        LedgerExists: Something is there already.
        InvalidFile, LedgerDiskFull: It cannot be written.
        LedgerDamaged: The ledger is damaged below its chain.
    """
    if target is None or target.is_dir():
        with rt.ledger.read() as tx:
            name = backups.beside(rt.home.ledger, revision_of(tx.conn), rt.now_ms())
        target = name if target is None else target / name.name
    return backups.backup(rt.ledger, target)


def migrate(rt: Runtime) -> Migrated | None:
    """Bring the ledger to this program's version, after a backup; None where it is already.

    Raises:
        LedgerNewer: A newer program has migrated it.
    """
    return migrate_ledger(
        rt.home.ledger,
        now_ms=rt.now_ms(),
        author=rt.author,
        busy_timeout_s=rt.settings.busy_timeout_s,
    )
