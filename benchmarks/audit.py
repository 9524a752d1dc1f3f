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
from contextlib import closing
from pathlib import Path

from sqlalchemy import insert

from wlctl.ledger import chain, decisions, instances, nodes
from wlctl.ledger.opening import create_ledger
from wlctl.ledger.schema import packages
from wlctl.ledger.store import Ledger, WriteTx
from wlctl.ledger.verify import Verified, verify
from wlctl.model.event import Author
from wlctl.model.ids import InstallationId, InstanceId, NodeName, PackageId
from wlctl.model.instance import Desired, State
from wlctl.model.node import Address, Liveness, Node, Tier, TransportKind
from wlctl.model.workload import Kind, WorkloadSpec

NOW_MS = 1_700_000_000_000
AUTHOR = Author("root@bench", "wlctl reconcile --quiet")
LIFE = (
    State.PLACED,
    State.FETCHING,
    State.VERIFIED,
    State.LOADED,
    State.RUNNING,
    State.STOPPING,
    State.STOPPED,
)
DOCUMENT = b"{}" * 1000
PACKAGE = PackageId("c" * 64)
ELM = Node(
    name=NodeName("elm"),
    address=Address(TransportKind.SSH, "elm.example", host_key="ssh-ed25519 AAAA"),
    tier=Tier.PAIRED,
    liveness=Liveness.ALIVE,
    cordoned=False,
    node_id="a" * 32,
    machine_id="b" * 32,
    boot_id="boot",
    failed_contacts=0,
    added_at_ms=NOW_MS,
    seen_at_ms=NOW_MS,
    facts=None,
)


def fill(ledger: Ledger, count: int) -> None:
    """Write about `count` events as a fleet does: decisions, lives, and what the gate said."""
    with ledger.write(NOW_MS, AUTHOR) as tx:
        nodes.add(tx, ELM)
        package = {
            "id": PACKAGE,
            "name": "web",
            "version": "1",
            "manifest": "{}",
            "signatures": "[]",
            "admitted_at_ms": NOW_MS,
        }
        tx.conn.execute(insert(packages).values(package))
        written = chain.head(tx)[0]
    while written < count:
        with ledger.write(NOW_MS, AUTHOR) as tx:
            for number in range(100):
                live(tx, written + number)
            written = chain.head(tx)[0]


def live(tx: WriteTx, number: int) -> None:
    """Write one instance's decision and life; ten events."""
    iid = InstanceId(f"i{number:015}")
    decision = decisions.record(
        tx,
        DOCUMENT,
        name=iid,
        workload="web",
        package_id=PACKAGE,
        node=ELM.name,
        instance_id=iid,
        counts={"eligible": 1},
        dry_run=False,
    )
    instances.reserve(
        tx,
        instance_id=iid,
        name=iid,
        order=instances.open_order(tx, name=iid, package_id=PACKAGE, options={}),
        decision=decision,
        node=ELM.name,
        variant="default",
        package_id=PACKAGE,
        spec=WorkloadSpec(Kind.SERVICE, "web"),
        claims=(),
        desired=Desired.STOPPED,
    )
    instances.advance(tx, instances.get(tx, iid), LIFE, "asked")
    chain.append(tx, "workload.gate", {"instance": iid, "verb": "stop", "verdict": "permit"})


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
        begun, worked = time.perf_counter(), time.process_time()
        found = verify(ledger)
        spent, worked = time.perf_counter() - begun, time.process_time() - worked
        assert isinstance(found, Verified), found
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        ledger.close()
        least = floor(path)
    print(
        f"verified at {count / spent:.0f} events/s (goal 100000) = {spent / least:.1f} x the floor "
        f"of the same run ({count / least:.0f} events/s); {count / worked:.0f} a second of "
        f"processor time; {grown >> 10} MiB more memory"
    )
    return 0 if count / spent >= 100_000 else 1


if __name__ == "__main__":
    sys.exit(main())
