"""Real nodes whose links are cut: what moves and when, and with a lease never two at a time.

Each copy writes its node's boot-time clock all the time; all nodes are on one kernel, so what two
of them wrote can be compared.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fleet.network import Network, network
from tests.fleet.sample import FULL, SEED, TIMEOUT_S, within
from tests.host.nodes import SshdNode, sshd_nodes
from wlctl import signing
from wlctl.config import Origin, Settings
from wlctl.flows import ending, init, nodes, packages, signers
from wlctl.flows.deciding import Order
from wlctl.flows.ending import End
from wlctl.flows.place import place
from wlctl.flows.reconcile import Pass, reconcile
from wlctl.flows.runtime import Runtime, build
from wlctl.flows.signing import KeyChoice
from wlctl.ledger import instances
from wlctl.ledger.verify import Verified, verify
from wlctl.model.ids import NodeName
from wlctl.model.instance import Instance, State
from wlctl.model.node import Liveness, Tier

pytestmark = pytest.mark.timeout(TIMEOUT_S)

NAMES = tuple(map(NodeName, ("elm", "oak", "yew")))

PASS_S = 1.0
LEASE_MS = 8_000
DEAD_AFTER_S = 2.0

BEAT = """\
#!/bin/sh
while read -r up _ </proc/uptime; do
	echo "$up"
	sleep 0.05
done
"""

PACKAGE = """\
kind = "service"
name = "beat"
version = "1.0.0"
[run]
command = ["./bin/run"]
[[variant]]
name = "any"
files = ["bin/"]
[resources]
memory = "16MiB"
[lifecycle]
stop_grace = "1s"
"""


@dataclass
class Field:
    """Three nodes, each behind a link, and an installation."""

    net: Network
    machines: dict[NodeName, SshdNode]
    home: Path
    package: Path

    @contextlib.contextmanager
    def runtime(self) -> Iterator[Runtime]:
        settings = Settings(
            db=str(self.home / "ledger.db"),
            connect_timeout_s=0.5,
            reconcile_interval_s=PASS_S,
            dead_after_s=DEAD_AFTER_S,
            origins={"db": Origin("--db")},
        )
        rt = build(settings, command="wlctl test", message="")
        try:
            yield rt
        finally:
            if "ledger" in vars(rt):
                rt.ledger.close()

    def go_over(self) -> Pass:
        with self.runtime() as rt:
            return reconcile(rt)

    def passes(self, seconds: float) -> None:
        """Run passes as cron does, about one a second."""
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            self.go_over()
            time.sleep(PASS_S / 2)

    def passes_until(self, true: Callable[[], bool]) -> None:
        """Run passes until something is so."""
        until_s = time.monotonic() + 60
        while not true():
            found = self.go_over()
            assert time.monotonic() < until_s, found
            time.sleep(PASS_S / 2)

    def await_new(self, old: Instance, *, timeout_s: float) -> Instance:
        """Run passes until another copy has the name."""
        until_s = time.monotonic() + timeout_s
        while (now := self.instance()).id == old.id or now.state is not State.RUNNING:
            assert time.monotonic() < until_s, f"it is {now.state.value} on {now.node}"
            self.go_over()
            time.sleep(PASS_S / 2)
        return now

    def place(self, **options: object) -> Instance:
        with self.runtime() as rt:
            given = {"package": self.package, "name": "web", **options}
            assert place(rt, Order(**given)).copies[0].is_placed  # type: ignore[arg-type] # fields
        return self.instance()

    def instance(self, name: str = "web") -> Instance:
        with self.runtime() as rt, rt.ledger.read() as tx:
            found = instances.holder_of(tx, name)
        assert found is not None
        return found

    def liveness(self, name: NodeName) -> Liveness:
        with self.runtime() as rt:
            return next(node.liveness for node in nodes.ls(rt) if node.name == name)

    def beats(self, instance: Instance) -> list[float]:
        """Read what a copy wrote on its node: moments, ascending."""
        written = []
        for file in self.machines[instance.node].state.glob(f"*/instances/{instance.id}/g*/out"):
            written += [float(line) for line in file.read_text("ascii").split()[:-1]]
        assert written, f"{instance.id} never wrote anything"
        return sorted(written)

    def runs(self, instance: Instance) -> bool:
        """Look whether the processes of a copy are there, whatever anybody says; never two do."""
        return any("bin/run" in text for text in self.machines[instance.node].commands().values())

    def cut(self, name: NodeName) -> None:
        self.net.cut(NAMES.index(name))

    def heal(self, name: NodeName) -> None:
        self.net.heal(NAMES.index(name))

    def await_whole(self) -> None:
        """Let all links be up, and run passes until nothing is left to do."""
        for name in NAMES:
            self.heal(name)
        until_s = time.monotonic() + 60
        while True:
            found = self.go_over()
            if found.is_quiet and not found.silent and not found.open:
                return
            assert time.monotonic() < until_s, found
            time.sleep(PASS_S / 2)

    def unload(self, name: str = "web") -> None:
        with self.runtime() as rt:
            assert ending.unload(rt, name).end is End.DONE

    def assert_empty(self) -> None:
        with self.runtime() as rt, rt.ledger.read() as tx:
            assert instances.holds(tx) == ()
        with self.runtime() as rt:
            assert isinstance(verify(rt.ledger), Verified)
        for machine in self.machines.values():
            assert machine.instances() == []


Story = Callable[[Field], None]


def in_field(directory: Path, story: Story) -> None:
    """Tell a story in a field of its own, inside the controller's network."""
    home = directory / "home"
    home.mkdir(mode=0o700)
    package = directory / "beat"
    (package / "bin").mkdir(parents=True)
    (package / "bin" / "run").write_text(BEAT, encoding="ascii")
    (package / "bin" / "run").chmod(0o755)
    (package / "workload.toml").write_text(PACKAGE, encoding="ascii")

    def inside() -> None:
        with sshd_nodes(len(NAMES), links=net.links) as machines:
            field = Field(net, dict(zip(NAMES, machines, strict=True)), home, package)
            with field.runtime() as rt:
                init.init(rt)
                rt.home.ssh_key.write_bytes(machines[0].client_key.read_bytes())
                signing.generate_key(home / "signer", comment="signer")
                signers.add(rt, "me", home / "signer.pub")
                packages.build(package)
                packages.sign(rt, package, KeyChoice(home / "signer"))
                for name, machine in field.machines.items():
                    nodes.add(rt, name, machine.address, Tier.PAIRED, accept_key=lambda _: None)
            story(field)
            field.assert_empty()

    with network(len(NAMES)) as net:
        net.inside(inside)


def test_a_link_that_is_down_for_a_short_time_moves_nothing_and_for_a_long_time_it_does(
    tmp_path: Path,
) -> None:
    def story(field: Field) -> None:
        old = field.place(prefer=(NAMES[0],))
        field.passes(2)
        field.cut(old.node)
        field.go_over()
        field.go_over()
        assert field.liveness(old.node) is Liveness.SUSPECT
        field.heal(old.node)
        field.passes(2)
        assert field.instance().id == old.id
        assert field.liveness(old.node) is Liveness.ALIVE

        field.cut(old.node)
        new = field.await_new(old, timeout_s=30)

        assert new.node != old.node
        assert field.runs(old), "it is only cut off: at least once, without a lease"
        field.heal(old.node)
        field.await_whole()
        assert not field.runs(old)
        assert field.instance().id == new.id
        field.unload()

    in_field(tmp_path, story)


def test_when_all_links_are_down_nothing_is_dead_and_nothing_moves(tmp_path: Path) -> None:
    def story(field: Field) -> None:
        old = field.place(prefer=(NAMES[0],))
        field.passes(2)
        for name in NAMES:
            field.cut(name)

        field.passes(3 * DEAD_AFTER_S)

        assert {field.liveness(name) for name in NAMES} == {Liveness.ALIVE}
        assert field.runs(old)
        field.await_whole()
        assert field.instance().id == old.id
        field.unload()

    in_field(tmp_path, story)


def test_with_a_lease_the_old_copy_is_over_before_the_new_one_begins(tmp_path: Path) -> None:
    moments_ms = within(3_000, 2, salt="partitions")[: None if FULL else 1]

    def story(field: Field) -> None:
        for number, moment_ms in enumerate(moments_ms):
            old = field.place(prefer=(NAMES[number % 3],), lease_ms=LEASE_MS)
            field.passes(moment_ms / 1000)
            field.cut(old.node)
            if number == 0:
                _kill_a_pass(field, after_s=moment_ms / 3000)

            new = field.await_new(old, timeout_s=90)

            ended_s, began_s = field.beats(old)[-1], field.beats(new)[0]
            said = f"seed {SEED}, cut after {moment_ms} ms: {ended_s} and {began_s} of its uptime"
            assert ended_s < began_s, said
            assert not field.runs(old), said
            field.await_whole()
            field.unload()

    in_field(tmp_path, story)


def variables_of(home: Path) -> Mapping[str, str]:
    """Give the environment that the program runs in."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "WLCTL_DB": str(home / "ledger.db"),
        "WLCTL_CONNECT_TIMEOUT_S": "0.5",
        "WLCTL_RECONCILE_INTERVAL_S": str(PASS_S),
        "WLCTL_DEAD_AFTER_S": str(DEAD_AFTER_S),
    }


def _kill_a_pass(field: Field, *, after_s: float) -> None:
    """Let the program itself run passes in the controller's network, and end it by force."""
    child = subprocess.Popen(
        [sys.executable, "-m", "wlctl", "reconcile", "--watch", "1"],
        env=variables_of(field.home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(1 + after_s)
    child.send_signal(signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
