"""How a copy of the ledger is kept: of one moment, whole, while others go on writing."""

import re
from pathlib import Path

from wlctl.ledger.backend import Backend
from wlctl.ledger.enclosed import Enclosed
from wlctl.ledger.store import Ledger, failures_said
from wlctl.model.event import rfc3339


def backup(ledger: Ledger, target: Path, enclosed: Enclosed | None = None) -> Path:
    """Copy the ledger to `target`, readable by its owner alone, and return where it is.

    Args:
        enclosed: What goes into the copy beside the ledger: keys, and what the store had.

    Raises:
        LedgerExists: Something is there already.
        InvalidFile: It cannot be made there.
        LedgerDiskFull: There is no room for it.
        LedgerDamaged: The ledger is damaged below its chain; no copy was kept.
    """
    return copy(ledger.backend, target, enclosed)


def copy(backend: Backend, target: Path, enclosed: Enclosed | None = None) -> Path:
    """Do what `backup` says, for a ledger that is not opened yet."""
    with failures_said(backend):
        return backend.copy_to(target, enclosed)


def drop_all_but(newest: int, directory: Path, ledger: Path) -> list[Path]:
    """Remove the older ones of the backups of `ledger` in `directory`, and return which.

    Only files are removed whose names `beside` gives, and the newest by that name are kept.

    Args:
        newest: So many stay; at least one.
    """
    named = re.compile(rf"{re.escape(prefix(ledger))}[^-]+-([0-9]{{8}}T[0-9]{{6}}Z)")
    found = [
        (match[1], path) for path in directory.iterdir() if (match := named.fullmatch(path.name))
    ]
    gone = [path for _, path in sorted(found)[: -max(1, newest)]]
    for path in gone:
        path.unlink(missing_ok=True)
    return gone


def beside(path: Path, revision: str, now_ms: int) -> Path:
    """Return the name of a backup beside the ledger at `path`: by table revision and moment."""
    return path.with_name(f"{prefix(path)}{revision}-{moment(now_ms)}")


def moment(now_ms: int) -> str:
    """Spell a moment as names of files have it: whole seconds, and no colon."""
    return re.sub(r"[-:]|\.[0-9]+", "", rfc3339(now_ms))


def prefix(path: Path) -> str:
    """Return how the names of all backups beside the ledger at `path` begin."""
    return f"{path.name}.backup-"
