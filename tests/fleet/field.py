"""Two real nodes and an installation: what the fleet tests act on, and what they see from outside.

Of `elm` every byte goes through a proxy that can cut; `oak` is reached directly. What runs is
counted by the processes that are there, never by what anybody says.
"""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.fleet.proxy import Cut, Proxy, proxy
from tests.host.nodes import SshdNode, sshd_nodes
from wlctl import signing
from wlctl.config import Origin, Settings
from wlctl.flows import ending, init, nodes, packages, signers, starting
from wlctl.flows.deciding import Order
from wlctl.flows.ending import Ending
from wlctl.flows.place import Report, place
from wlctl.flows.runtime import Runtime, build
from wlctl.flows.signing import KeyChoice
from wlctl.flows.start_intents import Beginning
from wlctl.ledger import chain, instances, operations
from wlctl.ledger.verify import Verified, verify
from wlctl.model.event import Event
from wlctl.model.fleet import Hold
from wlctl.model.ids import NodeName
from wlctl.model.instance import Instance
from wlctl.model.node import Liveness, Tier

ELM, OAK = NodeName("elm"), NodeName("oak")

WORK = "sleep 86413"
"""The one process of a copy, as the kernel lists it; nothing else on this machine is called so."""

WAIT_S = 60.0

PACKAGE = """\
kind = "service"
name = "{name}"
version = "1.0.0"
[run]
command = ["./bin/run"]
env_allow = ["SECRET_WORD"]
[[variant]]
name = "any"
files = ["bin/"]
[resources]
memory = "{memory}"
[lifecycle]
stop_grace = "2s"
"""


@dataclass
class Fleet:
    """One installation, and its two nodes.

    Attributes:
        home: Where the ledger is.
        cuts: Where to cut so that something is lost, as it was measured.
    """

    elm: SshdNode
    oak: SshdNode
    proxy: Proxy
    home: Path
    package: Path
    cuts: dict[str, Cut] = field(default_factory=dict)

    @property
    def nodes(self) -> dict[NodeName, SshdNode]:
        return {ELM: self.elm, OAK: self.oak}

    @contextlib.contextmanager
    def runtime(self, *, busy_timeout_s: float = 30.0) -> Iterator[Runtime]:
        """Run the program once; its locks are gone at the end, however it ended."""
        rt = build(settings(self.home, busy_timeout_s), command="wlctl test", message="")
        try:
            yield rt
        finally:
            if "ledger" in vars(rt):
                rt.ledger.close()

    def ready(self) -> None:
        """Let everything through, and have the fleet known to be alive."""
        self.proxy.plan()
        with self.runtime() as rt:
            gone = [node.name for node in nodes.ls(rt) if node.liveness is not Liveness.ALIVE]
            assert all(contact.failure is None for contact in nodes.probe(rt, gone) if gone)

    def place(self, **options: object) -> Report:
        """Place the package, rather on `elm`."""
        given = {"package": self.package, "prefer": (ELM,), **options}
        with self.runtime() as rt:
            return place(rt, Order(**given))  # type: ignore[arg-type]  # fields of Order

    def stop(self, word: str = "web") -> Ending:
        with self.runtime() as rt:
            return ending.stop(rt, word)

    def unload(self, word: str = "web") -> Ending:
        with self.runtime() as rt:
            return ending.unload(rt, word)

    def start(self, word: str = "web") -> Beginning:
        with self.runtime() as rt:
            return starting.start(rt, word)

    def instance(self, name: str = "web") -> Instance | None:
        with self.runtime() as rt, rt.ledger.read() as tx:
            return instances.holder_of(tx, name)

    def holds(self) -> tuple[Hold, ...]:
        with self.runtime() as rt, rt.ledger.read() as tx:
            return instances.holds(tx)

    def events(self, kind: str) -> list[Event]:
        with self.runtime() as rt, rt.ledger.read() as tx:
            return list(chain.events(tx, kind=kind))

    def head(self) -> tuple[int, str]:
        """Give number and hash of the chain's newest event."""
        with self.runtime() as rt, rt.ledger.read() as tx:
            return chain.head(tx)

    def copies(self) -> list[NodeName]:
        """Name the node of each process that is a copy, once nothing is under way on any."""
        self.await_quiet()
        return self.running()

    def running(self) -> list[NodeName]:
        """Name the node of each process that is a copy, at this very moment."""
        return [
            name
            for name, node in self.nodes.items()
            for command in node.commands().values()
            if command == WORK
        ]

    def await_quiet(self) -> None:
        """Wait until every action has come to its end, heard or not, and so has every launch."""
        wait_until(lambda: not any(map(_acting, self.nodes.values())), "the actions to end")

    def forget_files(self) -> None:
        """Take the package's files from the stores of the nodes, so that they are brought again."""
        for node in self.nodes.values():
            for file in (node.state / "store").glob("*"):
                file.unlink()

    def assert_agreement(self) -> None:
        """Ledger, nodes and chain say the same, and nothing is left in the middle."""
        with self.runtime() as rt:
            with rt.ledger.read() as tx:
                assert [one.operation.verb for one in operations.holders(tx)] == []
                held = sorted(hold.node for hold in instances.holds(tx))
                assert not any(one.unsettled for one in instances.current(tx))
            assert isinstance(verify(rt.ledger), Verified)
        assert sorted(self.copies()) == held, "a process without a hold is an orphan"

    def assert_empty(self) -> None:
        """Nothing of any copy is anywhere: no process, cgroup, directory, uid, port or mark."""
        self.assert_agreement()
        assert self.holds() == ()
        for name, node in self.nodes.items():
            wait_until(lambda node=node: not node.commands(), f"processes of {name} to end")  # type: ignore[misc]
            assert node.instances() == [], name
            assert [below for below in node.cgroups() if below != "."] == [], name
            assert _leftovers(node) == [], name


def _acting(node: SshdNode) -> bool:
    """Answer whether something is under way: an action, or a run that begins or ends."""
    commands = node.commands()
    if any("sh -s " in command or not command for command in commands.values()):
        return True
    watched, working = set(), set()
    for below in node.cgroups():
        run = re.fullmatch(r"(.+)/(ctl|limit)/(g\d+)", below)
        if run is None:
            continue
        text = (node.cgroup / "wlctl" / below / "cgroup.procs").read_text("ascii")
        said = [commands.get(int(pid)) for pid in text.split()]
        if run[2] == "ctl":
            watched |= {(run[1], run[3])} if said else set()
        elif said == [WORK]:
            working.add((run[1], run[3]))
        elif said:
            return True
    return watched != working


def _leftovers(node: SshdNode) -> list[str]:
    """Name what an action that was cut may leave: parts of files, marks, lines of tables, links."""
    state = node.state
    found = [str(path) for path in state.glob("store/.*")]
    found += [str(path) for path in state.glob("*/decisions/*.*")]
    found += [str(path) for path in state.glob("**/*.n")]
    for table in ("uids", "ports"):
        if (state / table).exists():
            lines = (state / table).read_text("ascii").split("\n")
            found += [f"{table}: {line}" for line in lines if line not in ("", "end")]
    sshd = next(pid for pid in node.pids() if Path(f"/proc/{pid}/comm").read_text() == "sshd\n")
    run = Path(f"/proc/{sshd}/root/run/wlctl")
    found += [str(path) for path in (*run.glob("*"), *run.glob("by-name/*"))]
    return [path for path in found if not path.endswith("/by-name")]  # it stays, and is empty


def wait_until(true: Callable[[], bool], what: str) -> None:
    ends_at_s = time.monotonic() + WAIT_S
    while not _holds(true):
        assert time.monotonic() < ends_at_s, f"waited in vain for {what}"
        time.sleep(0.01)


def _holds(true: Callable[[], bool]) -> bool:
    """Answer `true`, and no while what is looked at goes away under the eyes."""
    try:
        return true()
    except FileNotFoundError:
        return False


def settings(home: Path, busy_timeout_s: float = 30.0) -> Settings:
    return Settings(
        db=str(home / "ledger.db"),
        busy_timeout_s=busy_timeout_s,
        connect_timeout_s=10.0,
        origins={"db": Origin("--db")},
    )


def write_package(directory: Path, *, name: str = "web", memory: str = "64MiB") -> None:
    """Write a package whose only process is `WORK`."""
    (directory / "bin").mkdir(parents=True)
    run = directory / "bin" / "run"
    run.write_text(f"#!/bin/sh\nexec {WORK}\n", encoding="ascii")
    run.chmod(0o755)
    text = PACKAGE.format(name=name, memory=memory)
    (directory / "workload.toml").write_text(text, encoding="ascii")


def make_package(rt: Runtime, directory: Path, **fields: str) -> None:
    """Write a package, build it, and sign it with the key beside the home."""
    write_package(directory, **fields)
    packages.build(directory)
    packages.sign(rt, directory, KeyChoice(rt.home.directory / "signer"))


@contextlib.contextmanager
def fleet_in(directory: Path, home: Path) -> Iterator[Fleet]:
    """Make nodes, an installation in `home`, and the signed package `web` in `directory`."""
    with (
        sshd_nodes(2) as (elm, oak),
        proxy(elm.address.host, elm.address.port) as before_elm,
    ):
        fleet = Fleet(elm, oak, before_elm, home, directory / "web")
        with fleet.runtime() as rt:
            init.init(rt)
            rt.home.ssh_key.write_bytes(elm.client_key.read_bytes())
            key = home / "signer"
            signing.generate_key(key, comment="signer")
            signers.add(rt, "me", key.with_name("signer.pub"))
            make_package(rt, fleet.package)
            through = replace(elm.address, host=before_elm.host, port=before_elm.port)
            for name, address in ((ELM, through), (OAK, oak.address)):
                nodes.add(rt, name, address, Tier.PAIRED, accept_key=lambda _: None)
        yield fleet


def program(fleet: Fleet, *args: str, **environment: str) -> "subprocess.Popen[str]":
    """Start the real program on the fleet's ledger."""
    return subprocess.Popen(
        [sys.executable, "-m", "wlctl", *args],
        cwd=fleet.package.parent,
        env={**variables(fleet), **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def variables(fleet: Fleet) -> Mapping[str, str]:
    """Give the environment that the program runs in."""
    home = fleet.package.parent / "person"
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "WLCTL_DB": str(fleet.home / "ledger.db"),
    }
