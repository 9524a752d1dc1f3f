"""Which tables and columns the ledger has; `migrations/` makes them, a test holds the two together.

Moments are epoch milliseconds of the controller's clock. Rows that history needs are never deleted.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)
"""Every constraint has a name, so that a migration can change it on every database."""

RowNumber = BigInteger().with_variant(Integer(), "sqlite")
"""A 64-bit key; SQLite makes only a column that is called INTEGER the row's own number."""


# --- the ledger itself and its chain ---

installation = Table(
    "installation",
    metadata,
    Column("id", Text, primary_key=True),
    Column("epoch", BigInteger, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
)
"""One row: the identity that nodes know this ledger by, and how often it was restored."""

chain = Table(
    "chain",
    metadata,
    Column("seq", RowNumber, primary_key=True, autoincrement=False),
    Column("at", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("prev_hash", Text, nullable=False),
    Column("hash", Text, nullable=False),
)
"""Append-only. `payload` is its canonical (RFC 8785) text, as it was hashed."""

operations = Table(
    "operations",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("verb", Text, nullable=False),
    Column("token", Text, nullable=False),
    Column("phase", Text, nullable=False),
    Column("holder_actor", Text, nullable=False),
    Column("holder_command", Text, nullable=False),
    Column("holder_pid", BigInteger, nullable=False),
    Column("started_at_ms", BigInteger, nullable=False),
    Column("held_since_ms", BigInteger, nullable=False),
    Column("closed_at_ms", BigInteger),
    Column("outcome", Text),
    CheckConstraint("number > 0", name="number"),
    CheckConstraint("(closed_at_ms IS NULL) = (outcome IS NULL)", name="outcome"),
)
"""One intent's life each; `scope` is an instance's id, or the name of what only one may do."""

Index(
    "ix_operations_open",
    operations.c.scope,
    unique=True,
    sqlite_where=text("closed_at_ms IS NULL"),
    postgresql_where=text("closed_at_ms IS NULL"),
)
