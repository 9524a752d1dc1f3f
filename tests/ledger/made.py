"""Ledgers to test with, and a way past the program to their tables."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from wlctl.ledger import chain
from wlctl.ledger.opening import create_ledger, open_ledger
from wlctl.ledger.store import Ledger
from wlctl.model.event import Author, Event
from wlctl.model.ids import InstallationId

NOW_MS = 1_700_000_000_000
AUTHOR = Author("root@elm", "wlctl stop web", "for a test")
INSTALLATION = InstallationId("wabcdefghijklmno")


@contextmanager
def a_ledger(path: Path) -> Iterator[Ledger]:
    """Make a ledger at `path`; its chain has one event."""
    ledger = create_ledger(path, installation=INSTALLATION, now_ms=NOW_MS, author=AUTHOR)
    try:
        yield ledger
    finally:
        ledger.close()


@contextmanager
def opened(path: Path, *, busy_timeout_s: float = 30.0) -> Iterator[Ledger]:
    """Open the ledger at `path`."""
    ledger = open_ledger(path, now_ms=NOW_MS, author=AUTHOR, busy_timeout_s=busy_timeout_s)
    try:
        yield ledger
    finally:
        ledger.close()


def fill(ledger: Ledger, count: int) -> list[Event]:
    """Append `count` events about two instances and two nodes, a second apart."""
    kinds = ("workload.start", "workload.stop", "node.drain")
    added = []
    for number in range(count):
        with ledger.write(NOW_MS + number * 1000, AUTHOR) as tx:
            payload = {
                "instance": f"i{number % 2}",
                "node": ("elm", "ash")[number % 2],
                "n": number,
            }
            added.append(chain.append(tx, kinds[number % 3], payload))
    return added


@contextmanager
def past_the_program(path: Path) -> Iterator[sqlite3.Connection]:
    """Hold a connection as somebody has it who opens the file with another program."""
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        yield conn


def tamper(path: Path, *statements: str) -> None:
    """Change a ledger's tables behind its back."""
    with past_the_program(path) as conn:
        for statement in statements:
            conn.execute(statement)
