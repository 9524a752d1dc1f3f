"""What `stop` takes above a workload's own exit over SSH, and `ps` of many copies: medians, ratios.

`stop` is measured from the call of its flow to its answer, connecting included, against a workload
that ends the moment it is asked. Beside it stands the floor: connecting to the same sshd and
running one action that does nothing. `ps` of 1 000 copies is measured as a program against a bare
typer program that selects the same rows through SQLAlchemy Core and prints them, interleaved; its
processor time is what counts, so that what else the machine does matters less.

Run as root: `python benchmarks/verbs.py [--rounds N] [--only stop|ps]`. Exits 1 when a goal is
missed.
"""

import argparse
import compileall
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from sqlalchemy import insert  # noqa: E402 - the tests' nodes need the path first

from tests.host.nodes import SshdNode, sshd_nodes  # noqa: E402
from wlctl import signing  # noqa: E402
from wlctl.config import Origin, Settings  # noqa: E402
from wlctl.flows import ending, init, packages, place, signers, starting  # noqa: E402
from wlctl.flows.deciding import Order  # noqa: E402
from wlctl.flows.ending import End  # noqa: E402
from wlctl.flows.nodes import add  # noqa: E402
from wlctl.flows.runtime import Runtime, build  # noqa: E402
from wlctl.flows.signing import KeyChoice  # noqa: E402
from wlctl.flows.start_intents import Begin  # noqa: E402
from wlctl.ledger import chain, nodes, schema  # noqa: E402
from wlctl.ledger.store import WriteTx  # noqa: E402
from wlctl.model.ids import NodeName  # noqa: E402
from wlctl.model.node import Address, Liveness, Node, Tier, TransportKind  # noqa: E402

STOP_GOAL_MS = 100.0
PS_GOAL = 1.2
COPIES = 1000

WORKLOAD = """\
kind = "service"
name = "quick"
version = "1.0.0"
[run]
command = ["./bin/run"]
[[variant]]
name = "any"
files = ["bin/"]
[resources]
memory = "32MiB"
"""

BARE = """\
import sys

import typer
from sqlalchemy import create_engine, text

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

QUERY = '''
SELECT instances.name, instances.node, desired, state, health, version, launch,
       instances.generation, since_ms, seen_at_ms
FROM instances LEFT JOIN generations
  ON generations.instance_id = instances.id AND generations.number = instances.generation
WHERE state NOT IN ('unloaded', 'rescheduled') ORDER BY instances.name
'''


@app.command()
def ps(path: str) -> None:
    "List the rows."
    with create_engine(f"sqlite:///{path}").connect() as conn:
        for row in conn.execute(text(QUERY)):
            typer.echo("  ".join(map(str, row)))


if __name__ == "__main__":
    sys.exit(app())
"""


def elapsed_ms(do: Callable[[], object]) -> float:
    """Give the time that something takes."""
    start = time.perf_counter()
    do()
    return (time.perf_counter() - start) * 1000


def processor_ms(argv: list[str]) -> float:
    """Run a program to its end and give the processor time that took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def runtime_at(home: Path) -> Runtime:
    settings = Settings(db=str(home / "ledger.db"), origins={"db": Origin("--db")})
    return build(settings, command="wlctl bench", message="")


def installed(rt: Runtime, home: Path, node: SshdNode) -> Path:
    """Make an installation with one node and one signed package; give the package."""
    made = init.init(rt)
    authorized = node.directory / "authorized_keys"
    authorized.write_text(f"{made.ssh_public_key}\n", encoding="ascii")
    add(rt, "elm", node.address, Tier.PAIRED, accept_key=lambda _fingerprint: None)
    key = home / "signer"
    signing.generate_key(key, comment="bench")
    signers.add(rt, "bench", key.with_name("signer.pub"))
    package = home / "quick"
    (package / "bin").mkdir(parents=True)
    (package / "bin" / "run").write_text("#!/bin/sh\nexec sleep 100000\n", encoding="ascii")
    (package / "bin" / "run").chmod(0o755)
    (package / "workload.toml").write_text(WORKLOAD, encoding="ascii")
    packages.build(package)
    packages.sign(rt, package, KeyChoice(key))
    return package


def stop(rounds: int) -> bool:
    """Measure stops; answer whether the goal was met."""
    with sshd_nodes(1) as (node,), tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        rt = runtime_at(home)
        package = installed(rt, home, node)
        place.place(rt, Order(package=package))
        stops, floors, starts = [], [], []

        def nothing() -> None:
            with rt.connect(node.address) as session:
                session.offer(rt.ledger.installation, ())

        def once() -> None:
            assert ending.stop(rt, "quick").end is End.DONE

        def again() -> None:
            assert starting.start(rt, "quick").begin is Begin.DONE

        for turn in range(rounds + 1):
            floor, took, begun = elapsed_ms(nothing), elapsed_ms(once), elapsed_ms(again)
            if turn:  # the first round only warms the caches
                floors.append(floor)
                stops.append(took)
                starts.append(begun)
        ending.unload(rt, "quick")
        rt.ledger.close()
    floor, took, begun = map(statistics.median, (floors, stops, starts))
    print(
        f"stop   {took:6.1f} ms over SSH (goal {STOP_GOAL_MS:.0f}), best {min(stops):.1f};"
        f" connecting and doing nothing {floor:6.1f} ms; ratio {took / floor:.2f}"
    )
    print(f"start  {begun:6.1f} ms, ratio {begun / floor:.2f}")
    return took <= STOP_GOAL_MS


def fill(tx: WriteTx) -> None:
    """Write down a fleet of one node with many copies, as placing them would have."""
    event = chain.append(tx, "workload.place", {"phase": "bench"})
    common = {"package_id": "p" * 64}
    tx.conn.execute(
        insert(schema.packages).values(
            id="p" * 64, name="web", version="1", manifest="{}", signatures="[]", admitted_at_ms=1
        )
    )
    nodes.add(
        tx,
        Node(
            name=NodeName("elm"),
            address=Address(TransportKind.SSH, host="elm", port=22, user="root"),
            tier=Tier.PAIRED,
            liveness=Liveness.ALIVE,
            cordoned=False,
            node_id="n",
            machine_id="m",
            boot_id="b",
            failed_contacts=0,
            added_at_ms=1,
            seen_at_ms=1,
            facts=None,
        ),
    )
    tx.conn.execute(
        insert(schema.decisions).values(
            id=event.hash, seq=event.seq, at_ms=1, workload="web", name="web", node="elm",
            dry_run=False, sha256="0" * 64,
        )
    )  # fmt: skip
    tx.conn.execute(
        insert(schema.orders).values(id=1, name="web", options="{}", created_at_ms=1, **common)
    )
    copies = [
        {
            "id": f"i{number:015d}",
            "name": f"web.{number}",
            "order_id": 1,
            "node": "elm",
            "decision_id": event.hash,
            "kind": "service",
            "workload": "web",
            "version": "1",
            "variant": "any",
            "desired": "running",
            "state": "running",
            "generation": 1,
            "unsettled": False,
            "health": "healthy",
            "created_at_ms": 1,
            "since_ms": 1,
            "seen_at_ms": 1,
            **common,
        }
        for number in range(COPIES)
    ]
    tx.conn.execute(insert(schema.instances), copies)
    launch = (
        '{"generation": 1, "ports": [["http", 20000]], "unenforced": [], "containment": "isolated"}'
    )
    runs = [
        {
            "instance_id": one["id"],
            "number": 1,
            "role": "current",
            "intended_at_ms": 1,
            "launch": launch,
        }
        for one in copies
    ]
    tx.conn.execute(insert(schema.generations), runs)


def ps(rounds: int) -> bool:
    """Measure `ps`; answer whether the goal was met."""
    wlctl = Path(sys.executable).with_name("wlctl")
    if not wlctl.exists():
        sys.exit(f"{wlctl} is not installed: run `pip install -e .` first")
    compileall.compile_dir(ROOT / "wlctl", quiet=1)  # as an installation does
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        rt = runtime_at(home)
        init.init(rt)
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            fill(tx)
        rt.ledger.close()
        bare = home / "bare.py"
        bare.write_text(BARE, encoding="ascii")
        ledger = str(home / "ledger.db")
        programs = {
            "bare": [sys.executable, str(bare), ledger],
            "wlctl": [str(wlctl), "ps", "--db", ledger],
        }
        times: dict[str, list[float]] = {name: [] for name in programs}
        for turn in range(rounds + 1):
            for name, argv in programs.items():
                took = processor_ms(argv)
                if turn:
                    times[name].append(took)
    bare_ms, ours_ms = statistics.median(times["bare"]), statistics.median(times["wlctl"])
    print(
        f"ps     {COPIES} copies: bare typer and SQLAlchemy {bare_ms:6.1f} ms of processor time,"
        f"   wlctl {ours_ms:6.1f} ms   ratio {ours_ms / bare_ms:.2f} (goal {PS_GOAL})"
    )
    return ours_ms <= PS_GOAL * bare_ms


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", choices=["stop", "ps"])
    asked = parser.parse_args()
    parts = {"stop": stop, "ps": ps}
    met = [part(asked.rounds) for name, part in parts.items() if asked.only in (None, name)]
    return int(not all(met))


if __name__ == "__main__":
    sys.exit(main())
