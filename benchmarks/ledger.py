"""How many chained transactions a second eight processes get through, and the worst wait.

The floor is the driver alone doing the same writes: sqlite3, no SQLAlchemy, SQLite's own waiting.
"""

import argparse
import hashlib
import multiprocessing
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path

from wlctl.ledger import chain
from wlctl.ledger.opening import create_ledger, open_ledger
from wlctl.ledger.verify import Verified, verify
from wlctl.model.event import Author
from wlctl.model.ids import InstallationId

NOW_MS = 1_700_000_000_000
AUTHOR = Author("root@bench", "wlctl stop web", "a benchmark")
PAYLOAD = {
    "instance": "iabcdefghijklmno",
    "node": "elm",
    "from": "running",
    "to": "stopped",
    "reason": "asked",
}

Worker = Callable[[Path, int, Barrier], list[float]]
"""Does that many transactions once everybody is ready; returns how long each took, in seconds."""


def through_wlctl(path: Path, count: int, ready: Barrier) -> list[float]:
    ledger = open_ledger(path, now_ms=NOW_MS, author=AUTHOR)
    ready.wait()
    spent = []
    for _ in range(count):
        begun = time.perf_counter()
        with ledger.write(NOW_MS, AUTHOR) as tx:
            chain.append(tx, "workload.stop", PAYLOAD)
        spent.append(time.perf_counter() - begun)
    ledger.close()
    return spent


def through_the_driver(path: Path, count: int, ready: Barrier) -> list[float]:
    conn = sqlite3.connect(path, timeout=30, isolation_level=None)
    conn.execute("PRAGMA synchronous = FULL")
    content = str(PAYLOAD)
    ready.wait()
    spent = []
    for _ in range(count):
        begun = time.perf_counter()
        conn.execute("BEGIN IMMEDIATE")
        last = "SELECT seq, hash FROM chain ORDER BY seq DESC LIMIT 1"
        seq, before = conn.execute(last).fetchone() or (0, chain.GENESIS)
        digest = hashlib.sha256(f"{before}{content}{seq + 1}".encode()).hexdigest()
        row = (seq + 1, "now", "kind", AUTHOR.actor, content, before, digest)
        conn.execute("INSERT INTO chain VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        conn.execute("COMMIT")
        spent.append(time.perf_counter() - begun)
    conn.close()
    return spent


@dataclass(frozen=True, slots=True)
class Result:
    """One run.

    Attributes:
        spent: Seconds of each transaction, ascending.
    """

    rate: float
    spent: list[float]

    def line(self, name: str) -> str:
        """Say it in one line."""
        at = [self.spent[round(share * (len(self.spent) - 1))] * 1000 for share in (0.5, 0.99, 1)]
        return (
            f"{name:22}{self.rate:8.0f} tx/s   median {at[0]:6.2f} ms   p99 {at[1]:6.1f} ms   "
            f"worst {at[2]:6.0f} ms"
        )


def run(worker: Worker, path: Path, processes: int, count: int) -> Result:
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(processes) as pool:
        ready = manager.Barrier(processes + 1)
        handed = [pool.apply_async(worker, (path, count, ready)) for _ in range(processes)]
        ready.wait()
        begun = time.perf_counter()
        spent = sorted(second for each in handed for second in each.get())
        return Result(processes * count / (time.perf_counter() - begun), spent)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--processes", type=int, default=8)
    options.add_argument("--transactions", type=int, default=200)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--directory", type=Path, help="where the ledger is made; a real disk")
    chosen = options.parse_args()
    total = chosen.processes * chosen.transactions
    rates, floors, worst = [], [], 0.0
    for _ in range(chosen.rounds):
        with tempfile.TemporaryDirectory(dir=chosen.directory) as directory:
            path = Path(directory, "ledger.db")
            ledger = create_ledger(
                path, installation=InstallationId("bench"), now_ms=NOW_MS, author=AUTHOR
            )
            ours = run(through_wlctl, path, chosen.processes, chosen.transactions)
            verdict = verify(ledger)
            assert isinstance(verdict, Verified), verdict
            assert verdict.head.seq == total + 1, "an event for each transaction, and the first"
            ledger.close()
            floor = run(through_the_driver, path, chosen.processes, chosen.transactions)
        print(ours.line("wlctl"))
        print(floor.line("sqlite3 alone (floor)"))
        rates.append(ours.rate)
        floors.append(floor.rate)
        worst = max(worst, ours.spent[-1])
    rate, floor_rate = sorted(rates)[len(rates) // 2], sorted(floors)[len(floors) // 2]
    print(
        f"\n{chosen.processes} processes x {chosen.transactions} chained transactions, median of "
        f"{chosen.rounds}: {rate:.0f} tx/s = {rate / floor_rate:.2f} x the floor of the same run "
        f"(goal 2000), worst wait {worst * 1000:.0f} ms (goal 1000); chain whole, no busy error"
    )
    return 0 if rate >= 2000 and worst < 1 else 1


if __name__ == "__main__":
    sys.exit(main())
