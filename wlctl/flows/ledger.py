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
    """Copy the ledger, to a name beside it unless a target is given, and return where.

    Raises:
        LedgerExists: Something is there already.
        InvalidFile, LedgerDiskFull: It cannot be written.
        LedgerDamaged: The ledger is damaged below its chain.
    """
    if target is None:
        with rt.ledger.read() as tx:
            revision = revision_of(tx.conn)
        target = backups.beside(rt.home.ledger, revision, rt.now_ms())
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
