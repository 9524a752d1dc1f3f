"""What a backup holds beside the ledger: the installation's keys, and what its store had.

It lies in two tables of its own, which are taken out again before the file is a ledger in use.
"""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field

FILES, STORE = "backup_files", "backup_store"


@dataclass(frozen=True, slots=True)
class Enclosed:
    """What goes into a backup, or came out of one.

    Attributes:
        keys: Names below the directory of the keys, to what the files hold.
        store: sha256 of each file of the package store, to its size in bytes.
    """

    keys: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    store: Mapping[str, int] = field(default_factory=dict)


def enclose(conn: sqlite3.Connection, enclosed: Enclosed) -> None:
    """Put it into a copy of a ledger that nobody else has open."""
    drop(conn)
    conn.execute("BEGIN")
    conn.execute(f"CREATE TABLE {FILES} (name TEXT PRIMARY KEY, content BLOB NOT NULL)")
    conn.execute(f"CREATE TABLE {STORE} (sha256 TEXT PRIMARY KEY, size_bytes INTEGER NOT NULL)")
    keys = f"INSERT INTO {FILES} VALUES (?, ?)"  # noqa: S608 - a constant
    conn.executemany(keys, sorted(enclosed.keys.items()))
    store = f"INSERT INTO {STORE} VALUES (?, ?)"  # noqa: S608 - a constant
    conn.executemany(store, sorted(enclosed.store.items()))
    conn.execute("COMMIT")


def take_out(conn: sqlite3.Connection) -> Enclosed:
    """Take out of a copy what was enclosed; nothing of it is left in the file."""
    there = {row[0] for row in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if FILES not in there or STORE not in there:
        drop(conn)
        return Enclosed()
    found = Enclosed(
        dict(conn.execute(f"SELECT name, content FROM {FILES}")),  # noqa: S608 - a constant
        dict(conn.execute(f"SELECT sha256, size_bytes FROM {STORE}")),  # noqa: S608 - likewise
    )
    drop(conn)
    return found


def drop(conn: sqlite3.Connection) -> None:
    """Remove both tables, and write over what they held: there were private keys in it."""
    conn.execute("PRAGMA secure_delete = ON")
    for table in (FILES, STORE):
        conn.execute(f"DROP TABLE IF EXISTS {table}")
