"""How a copy of the ledger is kept: of one moment, whole, while others go on writing."""

import re
from pathlib import Path

from wlctl.ledger.backend import Backend
from wlctl.ledger.store import Ledger, failures_said
from wlctl.model.event import rfc3339


def backup(ledger: Ledger, target: Path) -> Path:
    """Copy the ledger to `target`, readable by its owner alone, and return where it is.

    Raises:
        LedgerExists: Something is there already.
        InvalidFile: It cannot be made there.
        LedgerDiskFull: There is no room for it.
        LedgerDamaged: The ledger is damaged below its chain; no copy was kept.
    """
    return copy(ledger.backend, target)


def copy(backend: Backend, target: Path) -> Path:
    """Do what `backup` says, for a ledger that is not opened yet."""
    with failures_said(backend):
        return backend.copy_to(target)


def beside(path: Path, revision: str, now_ms: int) -> Path:
    """Return the name of a backup beside the ledger at `path`: by table revision and moment."""
    moment = re.sub(r"[-:]|\.[0-9]+", "", rfc3339(now_ms))
    return path.with_name(f"{prefix(path)}{revision}-{moment}")


def prefix(path: Path) -> str:
    """Return how the names of all backups beside the ledger at `path` begin."""
    return f"{path.name}.backup-"
