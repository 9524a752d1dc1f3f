"""Look after the ledger itself: check it, back it up, put a backup in its place, migrate it."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wlctl.errors import LedgerExists, LedgerUnwritten
from wlctl.flows.runtime import Runtime
from wlctl.ledger import backup as backups
from wlctl.ledger import check as checking
from wlctl.ledger import restore
from wlctl.ledger.check import Health
from wlctl.ledger.enclosed import Enclosed
from wlctl.ledger.files import write_private
from wlctl.ledger.migrate import Migrated, revision_of
from wlctl.ledger.opening import migrate_ledger
from wlctl.ledger.restore import Restored
from wlctl.model.ids import is_sha256

PUBLIC_MODE, PRIVATE_MODE = 0o644, 0o600


@dataclass(frozen=True, slots=True)
class Kept:
    """What a backup holds, and which older ones it took the place of.

    Attributes:
        keys: Names of the installation's keys in it.
        removed: Backups beside it that are gone now, oldest first.
    """

    file: Path
    keys: tuple[str, ...]
    removed: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class PutBack:
    """What came of putting a backup in the ledger's place.

    Attributes:
        keys: Names of those that were missing and are there again.
        missing: Files that the store had when the backup was made, and has not now.
    """

    restored: Restored
    keys: tuple[str, ...]
    missing: int


def check(rt: Runtime) -> Health:
    """Look at everything below the chain; changes nothing."""
    return checking.check(rt.ledger)


def backup(rt: Runtime, target: Path | None, *, keep: int | None = None) -> Kept:
    """Copy the ledger, the keys, and the list of what the store has, and return where it is.

    Args:
        target: A file, or a directory that gets one named by revision and moment; None is the
            directory of the ledger.
        keep: So many of the backups in that directory stay, this one among them; None for all.

    Raises:
        LedgerExists: Something is there already.
        InvalidFile, LedgerDiskFull: It cannot be written.
        LedgerDamaged: The ledger is damaged below its chain.
    """
    if target is None or target.is_dir():
        with rt.ledger.read() as tx:
            name = backups.beside(rt.home.ledger, revision_of(tx.conn), rt.now_ms())
        target = name if target is None else target / name.name
    enclosed = Enclosed(_keys(rt), _stored(rt))
    made = backups.backup(rt.ledger, target, enclosed)
    removed = [] if keep is None else backups.drop_all_but(keep, made.parent, rt.home.ledger)
    return Kept(made, tuple(sorted(enclosed.keys)), tuple(removed))


def _keys(rt: Runtime) -> Mapping[str, bytes]:
    try:
        found = sorted(path for path in rt.home.keys.iterdir() if path.is_file())
        return {path.name: path.read_bytes() for path in found if _is_key(path.name)}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise LedgerUnwritten(f"{error.filename}: {error.strerror}") from error


def _is_key(name: str) -> bool:
    return name in _NAMES


_NAMES = frozenset(
    f"{key}{suffix}" for key in ("ssh_ed25519", "checkpoint_ed25519") for suffix in ("", ".pub")
)
"""Nothing else is put into a backup, and nothing else is believed to come out of one."""


def _stored(rt: Runtime) -> Mapping[str, int]:
    try:
        return {
            entry.name: entry.stat().st_size
            for entry in os.scandir(rt.home.store)
            if is_sha256(entry.name)
        }
    except FileNotFoundError:
        return {}


def put_back(
    rt: Runtime, source: Path, *, replace: bool, accept: Callable[[bool], None]
) -> PutBack:
    """Put a backup in the place of the ledger, and the keys that are missing beside it.

    The ledger is doubted from then on, until it was rebuilt from its nodes: what happened since
    the backup was made is not known.

    Args:
        replace: Also where there is a ledger, or other keys; these are kept aside.
        accept: Called with whether there is a ledger; raises to refuse.

    Raises:
        LedgerExists: There is a ledger, or there are other keys, and `replace` is not given.
        ChainBroken, LedgerDamaged, NotALedger, NoLedger: The backup cannot be used.
        LedgerBusy: Another process is at work on the ledger.
    """
    home, now_ms = rt.home, rt.now_ms()
    there = os.path.lexists(home.ledger)
    if there and not replace:
        raise LedgerExists(
            f"{home.ledger} is a ledger in use",
            hint="give --replace to put the backup in its place; it is kept aside",
        )
    accept(there)
    moment = backups.moment(now_ms)
    aside = home.ledger.with_name(f"{home.ledger.name}.replaced-{moment}") if there else None
    found = Enclosed()
    written: tuple[str, ...] = ()

    def keys(enclosed: Enclosed) -> None:
        nonlocal found, written
        found = enclosed
        written = _put_keys(rt, enclosed.keys, moment if replace else None)

    made = restore.restore(
        source, home.ledger, now_ms=now_ms, author=rt.author, aside=aside, keys=keys
    )
    now = _stored(rt)
    missing = sum(now.get(sha256) != size for sha256, size in found.store.items())
    return PutBack(made, written, missing)


def _put_keys(rt: Runtime, keys: Mapping[str, bytes], moment: str | None) -> tuple[str, ...]:
    """Write the keys that are not there; the one without the other is never changed.

    Args:
        moment: Names what is kept aside of other keys; None refuses where there are any.
    """
    directory = rt.home.keys
    wanted = {name: content for name, content in sorted(keys.items()) if _is_key(name)}
    others = [name for name in wanted if _differs(directory / name, wanted[name])]
    if others and moment is None:
        raise LedgerExists(
            f"{directory / others[0]} is another key than the backup's",
            hint="give --replace to take the backup's; what is there is kept aside",
        )
    missing = [name for name in wanted if name in others or not (directory / name).exists()]
    if missing:
        directory.mkdir(mode=0o700, exist_ok=True)
    for name in others:
        (directory / name).rename(directory / f"{name}.replaced-{moment}")
    for name in missing:
        mode = PUBLIC_MODE if name.endswith(".pub") else PRIVATE_MODE
        write_private(directory / name, wanted[name], mode)
    return tuple(missing)


def _differs(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() != content
    except FileNotFoundError:
        return False


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
