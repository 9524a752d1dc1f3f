"""How many events a second `audit verify` gets through, with the rows that they tell of.

The floor is the driver alone reading the same rows and hashing as many bytes, comparing nothing.
"""

import argparse
import hashlib
import resource
import sqlite3
import sys
import tempfile
import time
import zlib
from contextlib import closing
from pathlib import Path

from sqlalchemy import insert

from wlctl.ledger import chain
from wlctl.ledger.opening import create_ledger
from wlctl.ledger.schema import decisions, instances, life_events, nodes, orders, packages
from wlctl.ledger.store import Ledger, WriteTx
from wlctl.ledger.verify import Verified, verify
from wlctl.model.event import Author, Json
from wlctl.model.ids import InstallationId

NOW_MS = 1_700_000_000_000
AUTHOR = Author("root@bench", "wlctl reconcile --quiet")
STATES = ("requested", "placed", "fetching", "verified", "loaded", "running", "stopping", "stopped")
DOCUMENT = zlib.compress(b"{}" * 1000)
DOCUMENT_SHA256 = hashlib.sha256(b"{}" * 1000).hexdigest()


def fill(ledger: Ledger, count: int) -> None:
    """Write `count` events as a fleet would: mostly lives, one decision each, a gate verdict."""
    with ledger.write(NOW_MS, AUTHOR) as tx:
        node = {
            "name": "elm", "transport": "ssh", "host": "elm", "port": 22, "login": "root",
            "host_key": "k", "sudo": False, "tier": "paired", "liveness": "alive",
            "cordoned": False, "node_id": "a", "machine_id": "b", "boot_id": "c",
            "failed_contacts": 0, "added_at_ms": NOW_MS,
        }  # fmt: skip
        tx.conn.execute(insert(nodes).values(node))
        told: dict[str, Json] = {
            "node": "elm", "transport": "ssh", "host": "elm", "port": 22, "user": "root",
            "host_key": "k", "node_id": "a", "tier": "paired",
        }  # fmt: skip
        chain.append(tx, "node.add", told)
        package = {
            "id": "p", "name": "web", "version": "1", "manifest": "{}", "signatures": "[]",
            "admitted_at_ms": NOW_MS,
        }  # fmt: skip
        tx.conn.execute(insert(packages).values(package))
    written = 2
    while written < count:
        with ledger.write(NOW_MS, AUTHOR) as tx:
            for _ in range(200):
                written += live(tx, written)


def live(tx: WriteTx, number: int) -> int:
    """Write one instance's decision and life; ten events."""
    name = f"i{number:015}"
    decided: dict[str, Json] = {
        "phase": "decision", "document": DOCUMENT_SHA256, "workload": "web", "package": "p",
        "name": "web", "node": "elm", "counts": {"eligible": 1}, "dry_run": False,
        "instance": name,
    }  # fmt: skip
    event = chain.append(tx, "workload.place", decided)
    decision = {
        "id": event.hash, "seq": event.seq, "at_ms": NOW_MS, "workload": "web", "name": "web",
        "node": "elm", "dry_run": False, "sha256": DOCUMENT_SHA256, "document": DOCUMENT,
    }  # fmt: skip
    tx.conn.execute(insert(decisions).values(decision))
    tx.conn.execute(
        insert(orders).values(
            id=number, name="web", package_id="p", options="{}", created_at_ms=NOW_MS
        )
    )
    instance = {
        "id": name, "name": name, "order_id": number, "decision_id": event.hash, "node": "elm",
        "kind": "service", "workload": "web", "version": "1", "package_id": "p",
        "variant": "default", "desired": "stopped", "state": STATES[-1], "generation": 1,
        "unsettled": False, "created_at_ms": NOW_MS, "since_ms": NOW_MS,
    }  # fmt: skip
    tx.conn.execute(insert(instances).values(instance))
    before = None
    rows = []
    for state in STATES:
        step = {"instance": name, "from": before, "to": state, "reason": "asked"}
        event = chain.append(tx, "workload.lifecycle", step)
        row = {
            "instance_id": name, "from_state": before, "to_state": state, "at_ms": NOW_MS,
            "reason": "asked", "seq": event.seq,
        }  # fmt: skip
        rows.append(row)
        before = state
    tx.conn.execute(insert(life_events), rows)
    chain.append(tx, "workload.gate", {"instance": name, "verb": "stop", "verdict": "permit"})
    return len(STATES) + 2


def floor(path: Path) -> float:
    begun = time.perf_counter()
    with closing(sqlite3.connect(path)) as conn:
        for row in conn.execute("SELECT * FROM chain ORDER BY seq"):
            hashlib.sha256(row[4].encode()).hexdigest()
    return time.perf_counter() - begun


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--events", type=int, default=1_000_000)
    options.add_argument("--directory", type=Path, help="where the ledger is made")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.directory) as directory:
        path = Path(directory, "ledger.db")
        ledger = create_ledger(
            path, installation=InstallationId("bench"), now_ms=NOW_MS, author=AUTHOR
        )
        begun = time.perf_counter()
        fill(ledger, chosen.events)
        with ledger.read() as tx:
            count = chain.head(tx)[0]
        size = path.stat().st_size
        print(f"{count} events written in {time.perf_counter() - begun:.0f} s, {size >> 20} MiB")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begun = time.perf_counter()
        found = verify(ledger)
        spent = time.perf_counter() - begun
        assert isinstance(found, Verified), found
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        ledger.close()
        least = floor(path)
    print(
        f"verified at {count / spent:.0f} events/s (goal 100000) = {spent / least:.1f} x the floor "
        f"of the same run ({count / least:.0f} events/s), {grown >> 10} MiB more memory"
    )
    return 0 if count / spent >= 100_000 else 1


if __name__ == "__main__":
    sys.exit(main())
