"""Which tables and columns the ledger has; `migrations/` makes them, a test holds the two together.

Moments are epoch milliseconds of the controller's clock. Rows that history needs are never deleted.
The condition of an index is named for SQLite alone: to name it for a second database, too, would
cost every command the import of that database's dialect.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
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
    Column("doubt", Text),
)
"""One row: the identity that nodes know this ledger by, how often it was restored, and why nothing
but endings is done with it until it was rebuilt; NULL for no reason.
"""

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

LISTS_TOLD = "kind IN ('policy.apply', 'workload.revoke', 'workload.unrevoke')"
"""The events whose last one binds a list that is in force; few among all, so they have an index."""

Index("ix_chain_lists_told", chain.c.seq, sqlite_where=text(LISTS_TOLD))

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
)


# --- packages and who may sign them ---

signers = Table(
    "signers",
    metadata,
    Column("name", Text, primary_key=True),
    Column("public_key", Text, nullable=False, unique=True),
    Column("added_at_ms", BigInteger, nullable=False),
    Column("valid_after_ms", BigInteger),
    Column("valid_before_ms", BigInteger),
)
"""Each key whose signature admits a package, `TYPE BASE64`, under its one name, and since when and
until when; NULL for always.
"""

packages = Table(
    "packages",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("manifest", Text, nullable=False),
    Column("signatures", Text, nullable=False),
    Column("admitted_at_ms", BigInteger, nullable=False),
)
"""Each package that was verified and stored: its statement, and its accepted signatures as JSON."""

revocations = Table(
    "revocations",
    metadata,
    Column("seq", BigInteger, ForeignKey("chain.seq"), primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("ref", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("revoked_at_ms", BigInteger, nullable=False),
    Column("withdrawn_seq", BigInteger, ForeignKey("chain.seq")),
)
"""Each package, key and file that was ever revoked, by the event that said so, and the event that
took it back.
"""

Index(
    "ix_revocations_current",
    revocations.c.kind,
    revocations.c.ref,
    unique=True,
    sqlite_where=text("withdrawn_seq IS NULL"),
)


# --- the policy, and what was approved under it ---

policies = Table(
    "policies",
    metadata,
    Column("seq", BigInteger, ForeignKey("chain.seq"), primary_key=True, autoincrement=False),
    Column("sha256", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("applied_at_ms", BigInteger, nullable=False),
)
"""Each policy that was ever in force, as its file said it; the newest one is."""

approvals = Table(
    "approvals",
    metadata,
    Column("id", Text, primary_key=True),
    Column("request_sha256", Text, nullable=False, index=True),
    Column("request", Text, nullable=False),
    Column("principal", Text, nullable=False),
    Column("deferred_at_ms", BigInteger, nullable=False),
    Column("expires_at_ms", BigInteger, nullable=False),
    Column("approver", Text),
    Column("signature", Text),
    Column("approved_at_ms", BigInteger),
    Column("spent_at_ms", BigInteger),
    CheckConstraint("(signature IS NULL) = (approver IS NULL)", name="approver"),
)
"""Each request that the gate deferred, in full as JSON; with a signature, approved; good once."""


# --- the fleet ---

nodes = Table(
    "nodes",
    metadata,
    Column("name", Text, primary_key=True),
    Column("transport", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("port", BigInteger, nullable=False),
    Column("login", Text, nullable=False),
    Column("host_key", Text, nullable=False),
    Column("sudo", Boolean, nullable=False),
    Column("tier", Text, nullable=False),
    Column("liveness", Text, nullable=False),
    Column("cordoned", Boolean, nullable=False),
    Column("cordoned_until_ms", BigInteger),
    Column("node_id", Text, nullable=False),
    Column("machine_id", Text, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("failed_contacts", BigInteger, nullable=False),
    Column("failure", Text, nullable=False),
    Column("added_at_ms", BigInteger, nullable=False),
    Column("seen_at_ms", BigInteger),
    Column("silent_ms", BigInteger, nullable=False),
    Column("rekeyed_at_ms", BigInteger),
    Column("settles", Text, nullable=False),
    Column("attested_dead_at_ms", BigInteger),
    Column("attested_boot_id", Text),
    Column("enforced", Boolean, nullable=False),
    Column("enforced_at_ms", BigInteger),
    Column("enforcement_sha256", Text),
    Column("projects", Text, nullable=False),
    Column("removed", Boolean, nullable=False),
)
"""Each machine of the fleet, by the operator's name for it; what was removed stays for history."""

Index(
    "ix_nodes_current_node_id",
    nodes.c.node_id,
    unique=True,
    sqlite_where=text("NOT removed"),
)

facts = Table(
    "facts",
    metadata,
    Column("node", Text, ForeignKey("nodes.name"), primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("probed_at_ms", BigInteger, nullable=False),
    Column("document", Text, nullable=False),
)
"""What the last probe of each node saw, as JSON."""

witnesses = Table(
    "witnesses",
    metadata,
    Column("node", Text, ForeignKey("nodes.name"), primary_key=True),
    Column("node_id", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
    Column("fleet_sha256", Text, nullable=False),
    Column("left_at_ms", BigInteger, nullable=False),
)
"""Which checkpoint each node was left last, with which fleet, and when; no event tells of it."""

node_capabilities = Table(
    "node_capabilities",
    metadata,
    Column("node", Text, ForeignKey("nodes.name"), primary_key=True),
    Column("provenance", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("attrs", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
)
"""What an operator says of a node and what was measured on it: no probe changes either."""


# --- decisions and what came of them ---

decisions = Table(
    "decisions",
    metadata,
    Column("id", Text, primary_key=True),
    Column("seq", BigInteger, ForeignKey("chain.seq"), nullable=False, unique=True),
    Column("at_ms", BigInteger, nullable=False),
    Column("workload", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("node", Text),
    Column("dry_run", Boolean, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("document", LargeBinary),
)
"""Each decision: its id is the hash of its event, which binds the sha256 of its document.

The document is zlib-compressed canonical JSON; NULL once it was pruned.
"""

orders = Table(
    "orders",
    metadata,
    Column("id", RowNumber, primary_key=True),
    Column("name", Text, nullable=False),
    Column("package_id", Text, ForeignKey("packages.id"), nullable=False),
    Column("options", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
)
"""Each request to place, with all its options as JSON, kept for moves."""

instances = Table(
    "instances",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("order_id", BigInteger, ForeignKey("orders.id"), nullable=False),
    Column("decision_id", Text, ForeignKey("decisions.id"), nullable=False),
    Column("node", Text, ForeignKey("nodes.name"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("workload", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("package_id", Text, ForeignKey("packages.id"), nullable=False),
    Column("variant", Text, nullable=False),
    Column("desired", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("unsettled", Boolean, nullable=False),
    Column("health", Text, nullable=False),
    Column("created_at_ms", BigInteger, nullable=False),
    Column("since_ms", BigInteger, nullable=False),
    Column("seen_at_ms", BigInteger),
    Column("replaces", Text, ForeignKey("instances.id")),
)
"""Each placed copy; never deleted, its id never reused.

`replaces` is the copy whose place this one is taking, which has the name until that is done.
"""

Index(
    "ix_instances_current_name",
    instances.c.name,
    unique=True,
    sqlite_where=text("state NOT IN ('unloaded', 'rescheduled') AND replaces IS NULL"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("decision_id", Text, ForeignKey("decisions.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("instance_id", Text, ForeignKey("instances.id"), nullable=False),
    Column("node", Text, ForeignKey("nodes.name"), nullable=False),
    Column("claim", Text, nullable=False),
    Column("started_at_ms", BigInteger, nullable=False),
    Column("outcome", Text),
    Column("code", Text),
    Column("detail", Text),
    Column("ended_at_ms", BigInteger),
    Column("settled", Text),
)
"""Each candidate tried, committed before its first byte was sent; no outcome yet is unsettled.

`settled` is what the node said later of one whose answer was lost.
"""

dedup = Table(
    "dedup",
    metadata,
    Column("key", Text, primary_key=True),
    Column("request_sha256", Text, nullable=False),
    Column("decision_id", Text, ForeignKey("decisions.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("spent_at_ms", BigInteger, nullable=False),
)
"""Each key that was given with an order, and what it was spent on."""

reservations = Table(
    "reservations",
    metadata,
    Column("instance_id", Text, ForeignKey("instances.id"), primary_key=True),
    Column("node", Text, ForeignKey("nodes.name"), nullable=False),
    Column("cpu_milli", BigInteger, nullable=False),
    Column("memory_bytes", BigInteger, nullable=False),
    Column("accel_memory_bytes", BigInteger, nullable=False),
    Column("disk_bytes", BigInteger, nullable=False),
    Column("ports", Text, nullable=False),
    Column("labels", Text, nullable=False),
    Column("excludes", Text, nullable=False),
    Column("claims", Text, nullable=False),
    Column("reserved_at_ms", BigInteger, nullable=False),
    Column("released_at_ms", BigInteger),
)
"""What each instance holds of its node until its end is proven; `ports` to `claims` are JSON."""

generations = Table(
    "generations",
    metadata,
    Column("instance_id", Text, ForeignKey("instances.id"), primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("role", Text, nullable=False),
    Column("intended_at_ms", BigInteger, nullable=False),
    Column("launch", Text),
    Column("proof", Text),
    Column("evidence", Text),
    Column("proven_at_ms", BigInteger),
)
"""Each run of an instance: numbered in the intent; its launch record and its evidence are JSON."""

life_events = Table(
    "life_events",
    metadata,
    Column("id", RowNumber, primary_key=True),
    Column("instance_id", Text, ForeignKey("instances.id"), nullable=False, index=True),
    Column("from_state", Text),
    Column("to_state", Text, nullable=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("seq", BigInteger, ForeignKey("chain.seq"), nullable=False, unique=True),
)
"""The history: each step of each instance, with the event that says the same."""


# --- what passes of reconcile keep ---

passes = Table(
    "passes",
    metadata,
    Column("number", RowNumber, primary_key=True),
    Column("began_at_ms", BigInteger, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("boot_ms", BigInteger, nullable=False),
)
"""The newest passes over the whole fleet, by the boot-time clock of the machine that ran them."""

leases = Table(
    "leases",
    metadata,
    Column("instance_id", Text, ForeignKey("instances.id"), primary_key=True),
    Column("ttl_ms", BigInteger, nullable=False),
    Column("boot_id", Text, nullable=False),
    Column("boot_ms", BigInteger, nullable=False),
)
"""When the reading was received that the last lease sent to each instance is counted from, by this
machine's boot-time clock; written before it is sent.
"""

troubles = Table(
    "troubles",
    metadata,
    Column("instance_id", Text, ForeignKey("instances.id"), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("tries", BigInteger, nullable=False),
    Column("until_ms", BigInteger, nullable=False),
)
"""What is not as it should be about an instance, how often it was tried, and when it is again."""

schedules = Table(
    "schedules",
    metadata,
    Column("instance_id", Text, ForeignKey("instances.id"), primary_key=True),
    Column("due_at_ms", BigInteger),
    Column("kept_at_ms", BigInteger, nullable=False),
    Column("skipped_at_ms", BigInteger),
    Column("failure", Text),
)
"""When each interval job is due next (NULL for never), when that was worked out, since when its run
that still goes on has made others be left out, and why its last one could not be started.
"""

collections = Table(
    "collections",
    metadata,
    Column("node", Text, ForeignKey("nodes.name"), primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
)
"""When each node was last asked to take away what nothing there may still run."""


# --- troubles, and who was told of them ---

alerts = Table(
    "alerts",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("raised_at_ms", BigInteger, nullable=False),
    Column("seq", BigInteger, ForeignKey("chain.seq"), nullable=False),
    Column("acked_at_ms", BigInteger),
    Column("acked_by", Text),
    Column("closed_at_ms", BigInteger),
    CheckConstraint("(acked_at_ms IS NULL) = (acked_by IS NULL)", name="acked"),
)
"""Each trouble that was ever raised, by the event that said so, and what became of it."""

Index(
    "ix_alerts_open",
    alerts.c.kind,
    alerts.c.subject,
    alerts.c.reason,
    unique=True,
    sqlite_where=text("closed_at_ms IS NULL"),
)

alert_channels = Table(
    "alert_channels",
    metadata,
    Column("name", Text, primary_key=True),
    Column("told_id", BigInteger, nullable=False),
    Column("full_at_ms", BigInteger, nullable=False),
    Column("tried_at_ms", BigInteger),
    Column("outcome", Text, nullable=False),
    Column("named", Text, nullable=False),
)
"""How far each way to tell people has come, and how its last use went; `named` is JSON."""
