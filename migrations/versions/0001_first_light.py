"""Make the ledger of the first release."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
additive = True
"""No row is rewritten: it may be run unasked, after a backup."""

ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _the_ledger_itself()


def _the_ledger_itself() -> None:
    op.create_table(
        "installation",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_installation"),
    )
    op.create_table(
        "chain",
        sa.Column("seq", ROW_NUMBER, autoincrement=False, nullable=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("prev_hash", sa.Text, nullable=False),
        sa.Column("hash", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_chain"),
    )
    op.create_table(
        "operations",
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("verb", sa.Text, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("holder_actor", sa.Text, nullable=False),
        sa.Column("holder_command", sa.Text, nullable=False),
        sa.Column("holder_pid", sa.BigInteger, nullable=False),
        sa.Column("started_at_ms", sa.BigInteger, nullable=False),
        sa.Column("held_since_ms", sa.BigInteger, nullable=False),
        sa.Column("closed_at_ms", sa.BigInteger),
        sa.Column("outcome", sa.Text),
        sa.PrimaryKeyConstraint("scope", "number", name="pk_operations"),
        sa.CheckConstraint("number > 0", name=op.f("ck_operations_number")),
        sa.CheckConstraint(
            "(closed_at_ms IS NULL) = (outcome IS NULL)", name=op.f("ck_operations_outcome")
        ),
    )
    op.create_index(
        "ix_operations_open",
        "operations",
        ["scope"],
        unique=True,
        sqlite_where=sa.text("closed_at_ms IS NULL"),
        postgresql_where=sa.text("closed_at_ms IS NULL"),
    )
