"""Run the migrations on the connection, and in the transaction, of `wlctl.ledger.migrate`."""

from alembic import context

from wlctl.ledger.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    # The caller's transaction holds the ledger's write lock and commits schema, revision and chain
    # event together; Alembic must neither begin nor commit one of its own.
    transactional_ddl=False,
)
context.run_migrations()
