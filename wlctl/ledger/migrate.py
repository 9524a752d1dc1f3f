"""Which revision of the tables a ledger has, and the way from there to this program's."""

from pathlib import Path

from sqlalchemy import Connection

HEAD = "0001"
"""The newest revision in `migrations/`; a test compares. Reading it from there would cost every
command the import of Alembic."""


def scripts() -> Path:
    """Return the directory of the migrations: in the package when installed, else beside it."""
    package = Path(__file__).parent.parent
    installed = package / "migrations"
    return installed if installed.is_dir() else package.parent / "migrations"


def upgrade(conn: Connection) -> None:
    """Bring the tables to `HEAD` inside the caller's write transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": conn})
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    command.upgrade(config, "head")
