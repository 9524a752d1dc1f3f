"""A pass of `reconcile` over a large fleet where nothing is to be done: time and memory.

The nodes are those of the simulation: they answer at once, in memory, so that what is measured is
ours alone. The floor beside it is the looks alone: one status from each node, judged by nobody.

Run: `python benchmarks/passes.py [--nodes N] [--copies N]`. Exits 1 when a goal is missed.
"""

import argparse
import itertools
import resource
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from sqlalchemy import text  # noqa: E402 - the tests' world needs the path first

from tests.flows.conftest import write_package  # noqa: E402
from tests.flows.setting import Setting  # noqa: E402
from tests.world import World  # noqa: E402
from wlctl import signing  # noqa: E402
from wlctl.flows import init, looking, packages, signers  # noqa: E402
from wlctl.flows import nodes as fleet  # noqa: E402
from wlctl.flows.reconcile import reconcile  # noqa: E402
from wlctl.flows.signing import KeyChoice  # noqa: E402
from wlctl.model.ids import InstanceId  # noqa: E402

GOAL_S = 10.0
GOAL_MB = 500.0

FIRST = "n00000"


def installed(directory: Path) -> Setting:
    """Make an installation with one node and one copy on it."""
    home = directory / "home"
    home.mkdir()
    made = Setting(home, World(), itertools.count(time.time_ns() // 1_000_000, 1))
    made.package = directory / "web"
    write_package(made.package)
    with made.runtime() as rt:
        init.init(rt)
        key = directory / "signer"
        signing.generate_key(key, comment="bench")
        signers.add(rt, "bench", key.with_name("signer.pub"))
        packages.build(made.package)
        packages.sign(rt, made.package, KeyChoice(key))
    made.add_node(FIRST)
    made.place()
    return made


COPIED = {
    "nodes": ("name", "node_id"),
    "orders": ("id",),
    "instances": ("id", "name", "node", "order_id"),
    "reservations": ("instance_id", "node"),
    "generations": ("instance_id",),
}
"""The rows of the one node and copy, and the columns in which the others differ."""


def multiply(made: Setting, count: int, copies: int) -> None:
    """Write down the rest of the fleet, each node and copy like the first, and have it there."""
    first = made.world.nodes[FIRST]
    (iid,) = first.alive
    with made.runtime() as rt, rt.ledger.write(rt.now_ms(), rt.author) as tx:
        rows = {
            table: dict(tx.conn.execute(text(f"SELECT * FROM {table}")).mappings().one())
            for table in COPIED
        }
        for table, row in rows.items():
            marks = ", ".join(f":{column}" for column in row)
            many = list(_rows(table, row, count, copies))
            tx.conn.execute(text(f"INSERT INTO {table} VALUES ({marks})"), many)
    for number in range(1, count):
        node = replace(first, node_id=f"a{number:031x}")
        ours = [_iid(number, copy) for copy in range(copies)]
        node.alive = dict.fromkeys(ours, 1)
        node.launched = dict.fromkeys(ours, 1)
        node.boots = dict.fromkeys(ours, first.boots[iid])
        node.number = dict.fromkeys(ours, 1)
        node.wanted = dict.fromkeys(ours, "running")
        node.staged = set(ours)
        node.runs = {(one, 1): first.boots[iid] for one in ours}
        node.placed = {}
        made.world.nodes[f"n{number:05d}"] = node


def _iid(node: int, copy: int) -> InstanceId:
    return InstanceId(f"i{node:07d}{copy:08d}")


def _rows(table: str, row: dict[str, object], count: int, copies: int) -> list[dict[str, object]]:
    if table == "nodes":
        return [
            {**row, "name": f"n{n:05d}", "host": f"n{n:05d}", "node_id": f"a{n:031x}"}
            for n in range(1, count)
        ]
    made = []
    for n, copy in itertools.product(range(1, count), range(copies)):
        number = n * copies + copy + 1
        own: dict[str, object] = {
            "id": number if table == "orders" else _iid(n, copy),
            "name": f"web.{number}",
            "node": f"n{n:05d}",
            "order_id": number,
            "instance_id": _iid(n, copy),
        }
        made.append(row | {column: own[column] for column in COPIED[table]})
    return made


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--copies", type=int, default=20)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        made = installed(Path(directory))
        multiply(made, asked.nodes, asked.copies)
        with made.runtime() as rt:
            reconcile(rt)  # facts are got, and what is new is written down
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        with made.runtime() as rt:
            known = fleet.ls(rt)
            began_s = time.perf_counter()
            for node in known:
                with rt.connect(node.address) as session:
                    looking.look(rt, session, node)  # type: ignore[arg-type] # a session's twin
            floor_s = time.perf_counter() - began_s
        with made.runtime() as rt:
            began_s = time.perf_counter()
            found = reconcile(rt)
            took_s = time.perf_counter() - began_s
        assert found.is_quiet, found
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{asked.nodes} nodes x {asked.copies} copies, nothing to do: {took_s:6.2f} s"
        f" (goal {GOAL_S:.0f}); the looks alone {floor_s:6.2f} s, ratio {took_s / floor_s:.2f};"
        f" {peak:.0f} MB at most (goal {GOAL_MB:.0f}), {before:.0f} of it the world and its making"
    )
    return int(took_s > GOAL_S or peak > GOAL_MB)


if __name__ == "__main__":
    sys.exit(main())
