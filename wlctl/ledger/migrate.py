"""Which revision of the tables a ledger has, and the way from there to this program's."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from wlctl import __version__
from wlctl.errors import LedgerDamaged, LedgerNewer, LedgerOutdated
from wlctl.ledger import chain
from wlctl.ledger.store import WriteTx

_REVISION = re.compile(r"[0-9]{4}")


@dataclass(frozen=True, slots=True)
class Migrations:
    """The steps that a program knows.

    Attributes:
        scripts: The directory Alembic runs them from.
        head: The newest revision; revisions are four digits and count up.
    """

    scripts: Path
    head: str


def _shipped_scripts() -> Path:
    """Return where the migrations are: in the package when installed, beside it in the sources."""
    package = Path(__file__).parent.parent
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


SHIPPED = Migrations(_shipped_scripts(), head="0001")
"""This program's. The head stands here, held true by a test, because reading it from the scripts
would cost every command the import of Alembic."""


@dataclass(frozen=True, slots=True)
class Step:
    """One migration to be run; an additive one rewrites no row."""

    revision: str
    additive: bool


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migration did.

    Attributes:
        backup: Where the ledger as it was before is kept.
    """

    before: str
    after: str
    backup: Path


def revision_of(conn: Connection) -> str:
    """Return the revision of the ledger's tables.

    Raises:
        LedgerDamaged: It does not say.
    """
    found = conn.exec_driver_sql("SELECT version_num FROM alembic_version").scalars().all()
    if len(found) != 1 or not _REVISION.fullmatch(str(found[0])):
        raise LedgerDamaged(
            f"the ledger is damaged: it does not say which revision its tables have: {found}"
        )
    return str(found[0])


def is_pending(revision: str, migrations: Migrations) -> bool:
    """Answer whether a ledger of `revision` is older than the program.

    Raises:
        LedgerNewer: It is newer.
    """
    if revision > migrations.head:
        raise LedgerNewer(
            f"the ledger has revision {revision} of the tables, and this wlctl ({__version__}) "
            f"knows them up to {migrations.head}",
            hint="use the newer wlctl that migrated it, or update this one",
        )
    return revision < migrations.head


def run(
    tx: WriteTx,
    migrations: Migrations,
    *,
    save: Callable[[str], Path],
    unasked: bool,
) -> Migrated | None:
    """Bring an older ledger to the program's revision; None when it is there already.

    `tx` holds the only right to write, so of two that migrate at once the second finds it done,
    and what `save` keeps under the old revision is exactly what is migrated.

    Raises:
        LedgerOutdated: It would rewrite rows and nobody asked for that.
        LedgerNewer: See `is_pending`.
    """
    before = revision_of(tx.conn)
    if not is_pending(before, migrations):
        return None
    if unasked and not all(step.additive for step in steps_from(before, migrations)):
        raise LedgerOutdated(
            f"the ledger has revision {before} of the tables and needs {migrations.head}",
            hint="run `wlctl ledger migrate`; it makes a backup first",
        )
    kept = save(before)
    try:
        upgrade(tx.conn, migrations)
        chain.append(
            tx,
            "ledger.migrate",
            {"before": before, "after": migrations.head, "backup": kept.name},
        )
    except BaseException:
        kept.unlink(missing_ok=True)  # nothing happened, so nothing has to be kept
        raise
    return Migrated(before, migrations.head, kept)


def upgrade(conn: Connection, migrations: Migrations) -> None:
    """Run every step that is missing, inside the caller's write transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": conn})
    config.set_main_option("script_location", str(migrations.scripts).replace("%", "%%"))
    command.upgrade(config, migrations.head)


def steps_from(revision: str, migrations: Migrations) -> tuple[Step, ...]:
    """Return the steps from `revision` to the program's, oldest first."""
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory(str(migrations.scripts))
    newest_first = scripts.iterate_revisions(migrations.head, revision)
    steps = [Step(step.revision, additive=step.module.additive) for step in newest_first]
    return tuple(reversed(steps))
