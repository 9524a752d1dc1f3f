"""What only a machine with controllers can show: limits that hold, and a clock that is off."""

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.program import Program
from tests.host.bench import INSTALLATION, Bench, Work, script, wait_until
from tests.host.vm import MachineNode, machine
from wlctl.host.transport import Deadlines
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import GenerationStatus, NodeFacts, PlaceRequest
from wlctl.model.generation import Proven

pytestmark = [pytest.mark.root, pytest.mark.sshd, pytest.mark.timeout(900)]

MIB = 1 << 20

SLOW = Deadlines(banner_s=60.0, auth_s=60.0, silence_s=120.0, action_s=180.0, operation_s=600.0)
"""For a machine that is emulated, and may be waited for while others are busy."""


@pytest.fixture(scope="module")
def booted() -> Iterator[MachineNode]:
    with machine() as node:
        yield node


@pytest.fixture(scope="module")
def connected(booted: MachineNode) -> Iterator[Bench]:
    bench = Bench(booted, SLOW)
    yield bench
    bench.session.close()


@pytest.fixture
def on_machine(connected: Bench) -> Iterator[Bench]:
    yield connected
    connected.clear()
    assert connected.left_over() == []


def sh(bench: Bench, command: str) -> str:
    assert isinstance(bench.node, MachineNode)
    return bench.node.sh(command)


def test_every_controller_that_a_limit_needs_is_found(on_machine: Bench) -> None:
    found = on_machine.session.facts(INSTALLATION)

    assert isinstance(found, NodeFacts)
    (cgroup,) = [one for one in found.capabilities if one.id == "node.cgroup"]
    assert cgroup.attrs["way"] == "systemd"
    assert {"cpu", "io", "memory", "pids"} <= set(cgroup.attrs["controllers"])  # type: ignore[arg-type]  # a tuple of words


def test_limits_are_set_as_asked_and_processor_time_is_held_to_within_a_fifth(
    on_machine: Bench,
) -> None:
    asked = (f"memory_bytes {64 * MIB}", "cpu_milli 300", "pids 32")
    done = on_machine.place(on_machine.request(script("while :; do :; done", more=asked)))

    # both by one shell there, next to each other, on the machine's own clock
    look = f"read -r _ used <{done.cgroup}/cpu.stat; read -r up _ </proc/uptime; echo $used $up"
    limit = done.cgroup.rpartition("/")[0]
    files = " ".join(
        f"{limit}/{name}" for name in ("memory.max", "memory.high", "cpu.max", "pids.max")
    )
    *limits, began, ended = sh(on_machine, f"cat {files}; {look}; sleep 6; {look}").splitlines()

    assert done.unenforced == ()
    assert limits == [str(64 * MIB), str(60 * MIB), "30000 100000", "32"]
    (used_us, up_s), (then_us, then_s) = (map(float, line.split()) for line in (began, ended))
    assert (then_us - used_us) / 1000 / (then_s - up_s) == pytest.approx(300, rel=0.2)


GREEDY = "dd if=/dev/zero of=/dev/null bs=256M count=1"


def test_a_process_killed_for_want_of_memory_is_counted_whatever_its_leader_does(
    on_machine: Bench,
) -> None:
    request = on_machine.run(script(f"{GREEDY}; exit 7", more=(f"memory_bytes {32 * MIB}",)))
    wait_until(lambda: generation(on_machine, request).exit_status is not None, "its end")
    assert generation(on_machine, request).oom_kills == 1

    (readings,) = on_machine.stop(request).readings

    assert isinstance(judge(readings), Proven)
    assert (readings.how, readings.exit_status, readings.oom_kills) == ("exited", 7, 1)
    (again,) = on_machine.stop(request, 3).readings
    assert again.oom_kills == 1, "the count went with the cgroup, and was kept"


def generation(bench: Bench, request: PlaceRequest) -> GenerationStatus:
    seen = bench.status(request)
    assert seen is not None
    return seen.generations[-1]


def test_a_fork_bomb_stays_below_its_limit_and_is_proven_gone(on_machine: Bench) -> None:
    bomb = b"$SIG{TERM} = 'IGNORE'; while (1) { fork // select(undef, undef, undef, 0.05) }"
    work = Work(("perl", "run"), files={"run": bomb}, more=("pids 48", "cpu_milli 500"))
    request = on_machine.request(work)
    done = on_machine.place(request)
    denied = f"cat {done.cgroup}/pids.events"
    wait_until(lambda: int(sh(on_machine, denied).split()[1]) > 0, "a fork to be denied")
    assert int(sh(on_machine, f"cat {done.cgroup}/pids.current")) <= 48

    (readings,) = on_machine.stop(request).readings

    assert isinstance(judge(readings), Proven)
    assert readings.how == "killed"
    assert "perl" not in sh(on_machine, "cat /proc/[0-9]*/comm")


WORKLOAD = """\
kind = "job"
name = "greedy"
version = "1.0.0"
[run]
command = ["./bin/run"]
[[variant]]
name = "any"
files = ["bin/"]
requires = [{ id = "os.linux" }]
[resources]
memory = "32MiB"
"""


def run(program: Program, *args: str) -> "subprocess.CompletedProcess[str]":
    return program.run(*args, timeout_s=300)


def ok(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def said(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(ok(done))


@pytest.fixture
def operated(program: Program, booted: MachineNode) -> Program:
    """An installation whose only node is the machine, and the signed package `greedy`."""
    made = said(program.run("init", "-o", "json"))
    booted.sh(f"echo '{made['ssh_public_key']}' >>/root/.ssh/authorized_keys")
    where = f"root@{booted.address.host}"
    port = str(booted.address.port)
    shown = booted.sh("ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub").split()[1]
    ok(run(program, "node", "add", "vm", where, "--port", port, "--host-key", shown))
    command = program.directory / "greedy/bin/run"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\nexec {GREEDY}\n", encoding="ascii")
    command.chmod(0o755)
    (program.directory / "greedy/workload.toml").write_text(WORKLOAD, encoding="ascii")
    key = program.directory / "me"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    ok(program.run("signer", "add", "me", f"{key}.pub"))
    ok(program.run("package", "build", "greedy", "--sign", str(key)))
    return program


def test_an_operator_is_told_of_controllers_a_wrong_clock_and_want_of_memory(
    operated: Program, booted: MachineNode
) -> None:
    shown = ok(run(operated, "node", "show", "vm"))
    (cgroup,) = [line for line in shown.splitlines() if line.strip().startswith("cgroup")]
    assert all(name in cgroup for name in ("cpu", "io", "memory", "pids"))
    assert "limits are not enforced" not in shown

    placed = run(operated, "place", "greedy", "--wait", "finished", "--timeout", "2m")
    assert (placed.returncode, "it ran out of memory" in placed.stdout) == (1, True)
    ended = ok(run(operated, "unload", "greedy"))
    assert "g1 proven" in ended
    assert "exited, exit status 137, out of memory" in ended

    booted.set_clock(ahead_s=3600)
    run(operated, "node", "probe", "vm")
    late = ok(run(operated, "node", "show", "vm"))
    booted.set_clock()
    said_s = re.search(r"its clock is (\d+)\.\d s ahead", late)
    assert said_s, late
    assert int(said_s[1]) == pytest.approx(3600, abs=60)
