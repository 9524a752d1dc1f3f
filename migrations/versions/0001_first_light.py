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
    _packages_and_signers()
    _the_policy()
    _the_fleet()
    _decisions_and_orders()
    _instances()
    _passes()


def _the_ledger_itself() -> None:
    op.create_table(
        "installation",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("doubt", sa.Text),
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
    op.create_index(
        "ix_chain_lists_told",
        "chain",
        ["seq"],
        sqlite_where=sa.text("kind IN ('policy.apply', 'workload.revoke', 'workload.unrevoke')"),
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
    )


def _packages_and_signers() -> None:
    op.create_table(
        "signers",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("public_key", sa.Text, nullable=False),
        sa.Column("added_at_ms", sa.BigInteger, nullable=False),
        sa.Column("valid_after_ms", sa.BigInteger),
        sa.Column("valid_before_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("name", name="pk_signers"),
        sa.UniqueConstraint("public_key", name="uq_signers_public_key"),
    )
    op.create_table(
        "packages",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("manifest", sa.Text, nullable=False),
        sa.Column("signatures", sa.Text, nullable=False),
        sa.Column("admitted_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_packages"),
    )
    op.create_table(
        "revocations",
        sa.Column("seq", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("ref", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("revoked_at_ms", sa.BigInteger, nullable=False),
        sa.Column("withdrawn_seq", sa.BigInteger),
        sa.PrimaryKeyConstraint("seq", name="pk_revocations"),
        sa.ForeignKeyConstraint(["seq"], ["chain.seq"], name="fk_revocations_seq_chain"),
        sa.ForeignKeyConstraint(
            ["withdrawn_seq"], ["chain.seq"], name="fk_revocations_withdrawn_seq_chain"
        ),
    )
    op.create_index(
        "ix_revocations_current",
        "revocations",
        ["kind", "ref"],
        unique=True,
        sqlite_where=sa.text("withdrawn_seq IS NULL"),
    )


def _the_policy() -> None:
    op.create_table(
        "policies",
        sa.Column("seq", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("applied_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_policies"),
        sa.ForeignKeyConstraint(["seq"], ["chain.seq"], name="fk_policies_seq_chain"),
    )
    op.create_table(
        "approvals",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("request_sha256", sa.Text, nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("principal", sa.Text, nullable=False),
        sa.Column("deferred_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
        sa.Column("approver", sa.Text),
        sa.Column("signature", sa.Text),
        sa.Column("approved_at_ms", sa.BigInteger),
        sa.Column("spent_at_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_approvals"),
        sa.CheckConstraint(
            "(signature IS NULL) = (approver IS NULL)", name=op.f("ck_approvals_approver")
        ),
    )
    op.create_index("ix_approvals_request_sha256", "approvals", ["request_sha256"])


def _the_fleet() -> None:
    op.create_table(
        "nodes",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("transport", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("port", sa.BigInteger, nullable=False),
        sa.Column("login", sa.Text, nullable=False),
        sa.Column("host_key", sa.Text, nullable=False),
        sa.Column("sudo", sa.Boolean, nullable=False),
        sa.Column("tier", sa.Text, nullable=False),
        sa.Column("liveness", sa.Text, nullable=False),
        sa.Column("cordoned", sa.Boolean, nullable=False),
        sa.Column("cordoned_until_ms", sa.BigInteger),
        sa.Column("node_id", sa.Text, nullable=False),
        sa.Column("machine_id", sa.Text, nullable=False),
        sa.Column("boot_id", sa.Text, nullable=False),
        sa.Column("failed_contacts", sa.BigInteger, nullable=False),
        sa.Column("failure", sa.Text, nullable=False),
        sa.Column("added_at_ms", sa.BigInteger, nullable=False),
        sa.Column("seen_at_ms", sa.BigInteger),
        sa.Column("silent_ms", sa.BigInteger, nullable=False),
        sa.Column("rekeyed_at_ms", sa.BigInteger),
        sa.Column("settles", sa.Text, nullable=False),
        sa.Column("attested_dead_at_ms", sa.BigInteger),
        sa.Column("attested_boot_id", sa.Text),
        sa.Column("enforced", sa.Boolean, nullable=False),
        sa.Column("enforced_at_ms", sa.BigInteger),
        sa.Column("enforcement_sha256", sa.Text),
        sa.Column("projects", sa.Text, nullable=False),
        sa.Column("removed", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_nodes"),
    )
    op.create_index(
        "ix_nodes_current_node_id",
        "nodes",
        ["node_id"],
        unique=True,
        sqlite_where=sa.text("NOT removed"),
    )
    op.create_table(
        "facts",
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("probed_at_ms", sa.BigInteger, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("node", name="pk_facts"),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name="fk_facts_node_nodes"),
    )
    op.create_table(
        "witnesses",
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("node_id", sa.Text, nullable=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("fleet_sha256", sa.Text, nullable=False),
        sa.Column("left_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("node", name="pk_witnesses"),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name="fk_witnesses_node_nodes"),
    )
    op.create_table(
        "node_capabilities",
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("provenance", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("attrs", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("node", "provenance", "id", name="pk_node_capabilities"),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name="fk_node_capabilities_node_nodes"),
    )


def _decisions_and_orders() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("workload", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("node", sa.Text),
        sa.Column("dry_run", sa.Boolean, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
        sa.Column("document", sa.LargeBinary),
        sa.PrimaryKeyConstraint("id", name="pk_decisions"),
        sa.ForeignKeyConstraint(["seq"], ["chain.seq"], name="fk_decisions_seq_chain"),
        sa.UniqueConstraint("seq", name="uq_decisions_seq"),
    )
    op.create_table(
        "orders",
        sa.Column("id", ROW_NUMBER, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("package_id", sa.Text, nullable=False),
        sa.Column("options", sa.Text, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_orders"),
        sa.ForeignKeyConstraint(
            ["package_id"], ["packages.id"], name="fk_orders_package_id_packages"
        ),
    )


def _instances() -> None:
    op.create_table(
        "instances",
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("order_id", sa.BigInteger, nullable=False),
        sa.Column("decision_id", sa.Text, nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("workload", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("package_id", sa.Text, nullable=False),
        sa.Column("variant", sa.Text, nullable=False),
        sa.Column("desired", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("generation", sa.BigInteger, nullable=False),
        sa.Column("unsettled", sa.Boolean, nullable=False),
        sa.Column("health", sa.Text, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("since_ms", sa.BigInteger, nullable=False),
        sa.Column("seen_at_ms", sa.BigInteger),
        sa.Column("replaces", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_instances"),
        sa.ForeignKeyConstraint(["order_id"], ["orders.id"], name="fk_instances_order_id_orders"),
        sa.ForeignKeyConstraint(
            ["decision_id"], ["decisions.id"], name="fk_instances_decision_id_decisions"
        ),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name="fk_instances_node_nodes"),
        sa.ForeignKeyConstraint(
            ["package_id"], ["packages.id"], name="fk_instances_package_id_packages"
        ),
        sa.ForeignKeyConstraint(
            ["replaces"], ["instances.id"], name="fk_instances_replaces_instances"
        ),
    )
    op.create_index(
        "ix_instances_current_name",
        "instances",
        ["name"],
        unique=True,
        sqlite_where=sa.text("state NOT IN ('unloaded', 'rescheduled') AND replaces IS NULL"),
    )
    op.create_table(
        "attempts",
        sa.Column("decision_id", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("instance_id", sa.Text, nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("claim", sa.Text, nullable=False),
        sa.Column("started_at_ms", sa.BigInteger, nullable=False),
        sa.Column("outcome", sa.Text),
        sa.Column("code", sa.Text),
        sa.Column("detail", sa.Text),
        sa.Column("ended_at_ms", sa.BigInteger),
        sa.Column("settled", sa.Text),
        sa.PrimaryKeyConstraint("decision_id", "number", name="pk_attempts"),
        sa.ForeignKeyConstraint(
            ["decision_id"], ["decisions.id"], name="fk_attempts_decision_id_decisions"
        ),
        sa.ForeignKeyConstraint(
            ["instance_id"], ["instances.id"], name="fk_attempts_instance_id_instances"
        ),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name="fk_attempts_node_nodes"),
    )
    op.create_table(
        "dedup",
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("request_sha256", sa.Text, nullable=False),
        sa.Column("decision_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("spent_at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_dedup"),
        sa.ForeignKeyConstraint(
            ["decision_id"], ["decisions.id"], name="fk_dedup_decision_id_decisions"
        ),
    )
    op.create_table(
        "reservations",
        sa.Column("instance_id", sa.Text, nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("cpu_milli", sa.BigInteger, nullable=False),
        sa.Column("memory_bytes", sa.BigInteger, nullable=False),
        sa.Column("accel_memory_bytes", sa.BigInteger, nullable=False),
        sa.Column("disk_bytes", sa.BigInteger, nullable=False),
        sa.Column("ports", sa.Text, nullable=False),
        sa.Column("labels", sa.Text, nullable=False),
        sa.Column("excludes", sa.Text, nullable=False),
        sa.Column("claims", sa.Text, nullable=False),
        sa.Column("reserved_at_ms", sa.BigInteger, nullable=False),
        sa.Column("released_at_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("instance_id", name="pk_reservations"),
        sa.ForeignKeyConstraint(
            ["instance_id"], ["instances.id"], name="fk_reservations_instance_id_instances"
        ),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name="fk_reservations_node_nodes"),
    )
    op.create_table(
        "generations",
        sa.Column("instance_id", sa.Text, nullable=False),
        sa.Column("number", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("intended_at_ms", sa.BigInteger, nullable=False),
        sa.Column("launch", sa.Text),
        sa.Column("proof", sa.Text),
        sa.Column("evidence", sa.Text),
        sa.Column("proven_at_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("instance_id", "number", name="pk_generations"),
        sa.ForeignKeyConstraint(
            ["instance_id"], ["instances.id"], name="fk_generations_instance_id_instances"
        ),
    )
    op.create_table(
        "life_events",
        sa.Column("id", ROW_NUMBER, nullable=False),
        sa.Column("instance_id", sa.Text, nullable=False),
        sa.Column("from_state", sa.Text),
        sa.Column("to_state", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_life_events"),
        sa.ForeignKeyConstraint(
            ["instance_id"], ["instances.id"], name="fk_life_events_instance_id_instances"
        ),
        sa.ForeignKeyConstraint(["seq"], ["chain.seq"], name="fk_life_events_seq_chain"),
        sa.UniqueConstraint("seq", name="uq_life_events_seq"),
    )
    op.create_index("ix_life_events_instance_id", "life_events", ["instance_id"])


def _passes() -> None:
    op.create_table(
        "passes",
        sa.Column("number", ROW_NUMBER, nullable=False),
        sa.Column("began_at_ms", sa.BigInteger, nullable=False),
        sa.Column("boot_id", sa.Text, nullable=False),
        sa.Column("boot_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_passes"),
    )
    op.create_table(
        "leases",
        sa.Column("instance_id", sa.Text, nullable=False),
        sa.Column("ttl_ms", sa.BigInteger, nullable=False),
        sa.Column("boot_id", sa.Text, nullable=False),
        sa.Column("boot_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("instance_id", name="pk_leases"),
        sa.ForeignKeyConstraint(
            ["instance_id"], ["instances.id"], name="fk_leases_instance_id_instances"
        ),
    )
    op.create_table(
        "troubles",
        sa.Column("instance_id", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("tries", sa.BigInteger, nullable=False),
        sa.Column("until_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("instance_id", name="pk_troubles"),
        sa.ForeignKeyConstraint(
            ["instance_id"], ["instances.id"], name="fk_troubles_instance_id_instances"
        ),
    )
    op.create_table(
        "schedules",
        sa.Column("instance_id", sa.Text, nullable=False),
        sa.Column("due_at_ms", sa.BigInteger),
        sa.Column("kept_at_ms", sa.BigInteger, nullable=False),
        sa.Column("skipped_at_ms", sa.BigInteger),
        sa.Column("failure", sa.Text),
        sa.PrimaryKeyConstraint("instance_id", name="pk_schedules"),
        sa.ForeignKeyConstraint(
            ["instance_id"], ["instances.id"], name="fk_schedules_instance_id_instances"
        ),
    )
    op.create_table(
        "collections",
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("node", name="pk_collections"),
        sa.ForeignKeyConstraint(["node"], ["nodes.name"], name="fk_collections_node_nodes"),
    )
    op.create_table(
        "alerts",
        sa.Column("id", sa.BigInteger, autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("raised_at_ms", sa.BigInteger, nullable=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("acked_at_ms", sa.BigInteger),
        sa.Column("acked_by", sa.Text),
        sa.Column("closed_at_ms", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
        sa.ForeignKeyConstraint(["seq"], ["chain.seq"], name="fk_alerts_seq_chain"),
        sa.CheckConstraint(
            "(acked_at_ms IS NULL) = (acked_by IS NULL)", name=op.f("ck_alerts_acked")
        ),
    )
    op.create_index(
        "ix_alerts_open",
        "alerts",
        ["kind", "subject", "reason"],
        unique=True,
        sqlite_where=sa.text("closed_at_ms IS NULL"),
    )
    op.create_table(
        "alert_channels",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("told_id", sa.BigInteger, nullable=False),
        sa.Column("full_at_ms", sa.BigInteger, nullable=False),
        sa.Column("tried_at_ms", sa.BigInteger),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("named", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_alert_channels"),
    )
