"""`wlctl place` on three real nodes: what is tried next, what is waited for, and what is kept."""

import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program, program_in
from tests.host.nodes import SshdNode, sshd_nodes

pytestmark = [pytest.mark.root, pytest.mark.sshd]

NAMES = ("elm", "oak", "yew")
SLEEP = "exec sleep 1000"


@dataclass(frozen=True)
class Fleet:
    """Three nodes, and the program that has them."""

    program: Program
    nodes: dict[str, SshdNode]

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self.program.run(*args)

    def said(self, *args: str, code: int = 0) -> Any:
        done = self.run(*args, "-o", "json")
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def package(self, name: str, script: str, more: str = "", *, kind: str = "service") -> str:
        """Write, build and sign a package that is one shell script."""
        directory = self.program.directory / name
        (directory / "bin").mkdir(parents=True)
        run = directory / "bin" / "run"
        run.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
        run.chmod(0o755)
        (directory / "workload.toml").write_text(
            f'kind = "{kind}"\nname = "{name}"\nversion = "1.0.0"\n'
            '[run]\ncommand = ["./bin/run"]\n[[variant]]\nname = "any"\nfiles = ["bin/"]\n'
            f'[lifecycle]\nstop_grace = "200ms"\n{more}',
            encoding="ascii",
        )
        key = str(self.program.directory / "me")
        done = self.run("package", "build", name, "--sign", key)
        assert done.returncode == 0, done.stderr
        return name

    def empty(self) -> None:
        """End everything; nothing may be left on any node."""
        names = [one["name"] for one in self.said("ps")["items"]]
        for name in names:
            assert self.run("unload", "--now", name).returncode == 0
        for name, node in self.nodes.items():
            node.await_quiet()
            assert node.instances() == [], name


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    program = program_in(tmp_path_factory.mktemp("fleet"))
    with sshd_nodes(len(NAMES)) as nodes:
        fleet = Fleet(program, dict(zip(NAMES, nodes, strict=True)))
        key = fleet.said("init")["ssh_public_key"]
        for name, node in fleet.nodes.items():
            authorized = node.directory / "authorized_keys"
            authorized.write_text(f"{key}\n", encoding="ascii")
            known = program.directory / f"known-{name}"
            known.write_text(
                f"[{node.address.host}]:{node.address.port} {node.address.host_key}\n",
                encoding="ascii",
            )
            fleet.said(
                *("node", "add", name, f"root@{node.address.host}"),
                *("--port", str(node.address.port), "--known-hosts", str(known)),
            )
        me = program.directory / "me"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", me], check=True)
        fleet.said("signer", "add", "me", f"{me}.pub")
        yield fleet


@pytest.fixture
def fleet(made: Fleet) -> Iterator[Fleet]:
    """The same three nodes for every test, which leaves them as it found them."""
    yield made
    made.empty()


@contextmanager
def dead(node: SshdNode) -> Iterator[None]:
    """Have a node away for a while."""
    node.kill()
    try:
        yield
    finally:
        node.start()


def attempts(told: Any) -> list[tuple[str, str, str]]:
    return [(one["node"], one["outcome"], one["code"]) for one in told["attempts"]]


def test_a_node_that_cannot_be_reached_is_gone_past(fleet: Fleet) -> None:
    package = fleet.package("past-dead", SLEEP)
    with dead(fleet.nodes["elm"]):
        told = fleet.said("place", package, "--prefer", "elm", "--no-refresh")

    assert attempts(told)[0][:2] == ("elm", "unreachable")
    assert told["node"] in ("oak", "yew")
    assert fleet.said("node", "probe", "elm")


def test_a_node_whose_copy_of_a_file_was_changed_refuses_and_the_next_one_runs_it(
    fleet: Fleet,
) -> None:
    package = fleet.package("past-tampered", SLEEP)
    fleet.said("place", package, "--pin", "elm")
    fleet.said("unload", package)
    run = (fleet.program.directory / package / "bin/run").read_bytes()
    stored = [p for p in (fleet.nodes["elm"].state / "store").iterdir() if p.read_bytes() == run]
    assert len(stored) == 1
    stored[0].chmod(0o644)
    stored[0].write_bytes(run.replace(b"sleep", b"SLEEP"))

    told = fleet.said("place", package, "--prefer", "elm")

    assert attempts(told)[0] == ("elm", "refused", "verify")
    assert told["node"] != "elm"
    assert fleet.nodes["elm"].instances() == []
    assert not stored[0].exists(), "what was changed is thrown away"


def test_a_pinned_order_that_is_refused_tries_no_other_node(fleet: Fleet) -> None:
    package = fleet.package("pinned", SLEEP)
    with dead(fleet.nodes["yew"]):
        told = fleet.said("place", package, "--pin", "yew", "--no-refresh", code=9)

    assert [one[:2] for one in attempts(told)] == [("yew", "unreachable")]
    assert fleet.said("node", "probe", "yew")


def test_a_node_without_room_for_a_file_refuses_and_holds_nothing(fleet: Fleet) -> None:
    with sshd_nodes(1, state_options="size=300k,nr_inodes=400") as (small,):
        key = (fleet.nodes["elm"].directory / "authorized_keys").read_bytes()
        (small.directory / "authorized_keys").write_bytes(key)
        known = fleet.program.directory / "known-small"
        known.write_text(f"[{small.address.host}]:{small.address.port} {small.address.host_key}\n")
        fleet.said(
            *("node", "add", "small", f"root@{small.address.host}"),
            *("--port", str(small.address.port), "--known-hosts", str(known)),
        )
        package = fleet.package("past-full", f"{SLEEP}\n" + "#" * 1_000_000)

        told = fleet.said("place", package, "--prefer", "small")

        assert attempts(told)[0][:2] == ("small", "refused")
        assert told["node"] in NAMES
        assert small.instances() == []
        small.await_quiet()
        fleet.said("node", "rm", "small", "--yes")


HEALTH = """
[health]
exec = "bin/check"
interval = "200ms"
timeout = "1s"
misses = 3
"""


def test_of_three_copies_one_that_is_not_well_is_kept_and_said(fleet: Fleet) -> None:
    package = healthy_package(fleet, "three")
    (fleet.nodes["yew"].directory / "varlib/ailing").touch()
    try:
        told = fleet.said("place", package, "--count", "3", "--timeout", "3s", code=7)
    finally:
        (fleet.nodes["yew"].directory / "varlib/ailing").unlink()

    came = {copy["node"]: copy["waited"]["came"] for copy in told["copies"]}
    assert came == {"elm": "up", "oak": "up", "yew": "late"}
    assert all(len(node.commands()) > 0 for node in fleet.nodes.values()), "it is kept"


def test_what_did_not_come_up_is_removed_where_that_was_asked_for(fleet: Fleet) -> None:
    package = healthy_package(fleet, "removed")
    mark = fleet.nodes["yew"].directory / "varlib/ailing"
    mark.touch()
    try:
        fleet.said(
            *("place", package, "--pin", "yew", "--timeout", "1s", "--rm-on-failure"), code=1
        )
    finally:
        mark.unlink()

    assert fleet.said("ps")["items"] == []
    fleet.nodes["yew"].await_quiet()


def healthy_package(fleet: Fleet, name: str) -> str:
    """Write a package that is well on every node but one where a mark lies."""
    directory = fleet.program.directory / name
    package = fleet.package(name, f"echo begun; {SLEEP}")
    check = directory / "bin" / "check"
    check.write_text("#!/bin/sh\n[ ! -e /var/lib/ailing ]\n", encoding="ascii")
    check.chmod(0o755)
    description = directory / "workload.toml"
    description.write_text(description.read_text(encoding="ascii") + HEALTH, encoding="ascii")
    key = str(fleet.program.directory / "me")
    done = fleet.run("package", "build", name, "--sign", key)
    assert done.returncode == 0, done.stderr
    return package


def test_a_service_that_ends_at_once_is_said_with_the_end_of_its_output(fleet: Fleet) -> None:
    package = fleet.package("short", "echo what went wrong; exit 3", "[restart]\nmax = 0\n")

    done = fleet.run("place", package)

    assert done.returncode == 1
    assert "it ended with status 3; it is kept" in done.stdout
    assert "| what went wrong" in done.stdout
    (one,) = fleet.said("ps")["items"]
    assert one["actual"] == "failed"


@pytest.mark.parametrize(
    ("script", "code", "came", "status"),
    [
        pytest.param("sleep 0.3; echo 42", 0, "finished", 0, id="that succeeds"),
        pytest.param("sleep 0.3; exit 9", 1, "failed", 9, id="that fails"),
        pytest.param("kill -9 $$", 1, "failed", 137, id="that is killed"),
    ],
)
def test_a_job_is_waited_for_to_its_end(
    fleet: Fleet, script: str, code: int, came: str, status: int
) -> None:
    package = fleet.package(f"job-{status}", script, kind="job")

    told = fleet.said("place", package, "--wait", "finished", "--timeout", "60s", code=code)

    (copy,) = told["copies"]
    assert (copy["waited"]["came"], copy["waited"]["exit_status"]) == (came, status)
    assert copy["state"] == ("finished" if code == 0 else "failed")


def test_a_service_that_ends_is_begun_again_on_its_node_and_that_is_told(fleet: Fleet) -> None:
    script = '[ "$WLCTL_GENERATION" -gt 1 ] && exec sleep 1000; sleep 1.5; exit 3'
    package = fleet.package("again", script, '[restart]\nmax = 2\nwindow = "1h"\n')
    assert fleet.run("place", package).returncode == 0

    ends_at_s = time.monotonic() + 60
    while fleet.said("ps")["items"][0]["generation"] == 1:
        assert time.monotonic() < ends_at_s, "nobody began it again"
        fleet.run("reconcile", "--quiet")

    (one,) = fleet.said("ps")["items"]
    assert (one["actual"], one["restarts"], one["restarts_lately"]) == ("running", 1, 1)
    assert "1 (1 lately)" in fleet.run("ps").stdout
    (asked,) = fleet.said("status", "again")["items"]
    assert asked["supervised_restarts"] == {
        "within_window": 1,
        "max": 2,
        "window_ms": 3_600_000,
        "held": "",
        "why": "",
    }
    assert "restarts  1 of 2 within 1h, by its supervisor" in fleet.run("status", "again").stdout
    history = fleet.run("history", "again").stdout
    assert "status 3" in history, "however much of the restart a pass came to see"
    assert "g2 begun by its supervisor" in history
    assert fleet.run("audit", "verify").returncode == 0


def test_detached_it_returns_with_the_start(fleet: Fleet) -> None:
    package = fleet.package("detached", "exit 3")

    told = fleet.said("place", package, "--detach")

    assert told["copies"][0]["waited"] is None
    assert told["outcome"] == "placed"


def begun(fleet: Fleet, *args: str) -> "subprocess.Popen[str]":
    """Start the program, and come back when it is at work on a node."""
    child = subprocess.Popen(
        [*fleet.program.command, *args],
        cwd=fleet.program.directory,
        env=fleet.program.variables(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    end_s = time.monotonic() + 30
    while not any(node.instances() for node in fleet.nodes.values()):
        assert time.monotonic() < end_s
        assert child.poll() is None, child.communicate()
        time.sleep(0.01)
    return child


def test_ctrl_c_once_finishes_the_step_and_says_how_it_stands(fleet: Fleet) -> None:
    package = healthy_package(fleet, "once")
    marks = [node.directory / "varlib/ailing" for node in fleet.nodes.values()]
    for mark in marks:
        mark.touch()
    try:
        child = begun(fleet, "place", package)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    finally:
        for mark in marks:
            mark.unlink()

    assert child.returncode == 130
    assert "Ctrl-C again leaves at once" in err
    assert "interrupted; how it stands is said above" in err
    assert "placed once on" in out or "was not placed" in out
    (one,) = fleet.said("ps")["items"] or [{"name": "once", "actual": "none"}]
    assert one["actual"] in ("running", "unhealthy", "none"), "nothing is left in the middle"
    assert "whole" in fleet.run("audit", "verify").stdout


def test_ctrl_c_twice_leaves_at_once_and_the_next_command_finishes_it(fleet: Fleet) -> None:
    package = fleet.package("twice", SLEEP)
    child = begun(fleet, "place", package)
    child.send_signal(signal.SIGINT)
    time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode in (0, 130)

    fleet.said("place", package)

    running = [node for node in fleet.nodes.values() if node.commands()]
    assert len(running) == 1
    (one,) = fleet.said("ps")["items"]
    assert (one["name"], one["actual"]) == ("twice", "running")


def test_reconcile_starts_again_what_a_reboot_ended_and_then_has_nothing_to_do(
    fleet: Fleet,
) -> None:
    package = fleet.package("rebooted", SLEEP)
    fleet.said("place", package, "--pin", "elm")
    fleet.nodes["elm"].reboot()

    first = fleet.said("reconcile")
    second = fleet.said("reconcile")

    assert [(one["name"], one["act"]) for one in first["done"]] == [("rebooted", "start_again")]
    assert second["done"] == []
    (one,) = fleet.said("ps")["items"]
    assert (one["actual"], one["node"]) == ("running", "elm")
    assert len(fleet.nodes["elm"].commands()) > 0
    assert fleet.run("reconcile", "--quiet").stdout == ""


def test_reconcile_carries_out_a_stop_whose_node_was_away(fleet: Fleet) -> None:
    package = fleet.package("away", SLEEP)
    fleet.said("place", package, "--pin", "yew")
    node = fleet.nodes["yew"]
    (node.directory / "authorized_keys").rename(node.directory / "kept_keys")
    try:
        fleet.said("stop", package, code=9)
        silent = fleet.said("reconcile", code=7)
    finally:
        (node.directory / "kept_keys").rename(node.directory / "authorized_keys")

    assert list(silent["silent"]) == ["yew"]
    done = fleet.said("reconcile")["done"]
    assert [(one["act"], one["came"]) for one in done] == [("stop", "done")]
    node.await_quiet()


def test_reconcile_renews_a_lease_on_its_node(fleet: Fleet) -> None:
    package = fleet.package("leased", SLEEP)
    fleet.said("place", package, "--pin", "oak", "--lease", "3m")
    run = Path(f"/proc/{fleet.nodes['oak'].pids()[0]}/root/run/wlctl")
    (lease,) = run.glob("*/lease")
    before = lease.read_text(encoding="ascii").split()

    fleet.said("reconcile")

    after = lease.read_text(encoding="ascii").split()
    assert len(after) == len(before)
    assert max(map(int, filter(str.isdigit, after))) > max(map(int, filter(str.isdigit, before)))


def test_what_is_ordered_about_moves_is_a_part_of_the_order(fleet: Fleet) -> None:
    package = fleet.package("rooted", SLEEP)
    bare = ("place", package, "--pin", "oak")
    fleet.said(*bare, "--no-migrate", "--max-reschedules", "2")

    fleet.said(*bare, "--no-migrate", "--max-reschedules", "2")
    for other in (("--no-migrate",), ("--max-reschedules", "2"), ()):
        done = fleet.run(*bare, *other)
        assert (done.returncode, "placed with other options" in done.stderr) == (4, True)


BINDS = """exec python3 -c '
import os, pathlib, socket, time
run = pathlib.Path(os.environ["WLCTL_RUN_DIR"])
(run / "port.n").write_text(os.environ["PORT"])
(run / "port.n").rename(run / "port")
while os.environ["WLCTL_GENERATION"] == "1" and not (run / "go").exists():
    time.sleep(0.02)
bound = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
time.sleep(1000)'"""

LISTENS = '[ports]\nhttp = "auto"\n[health]\ntcp = "127.0.0.1:$PORT"\ninterval = "1s"\n'


def test_a_port_that_is_lost_before_it_is_bound_costs_one_more_run(fleet: Fleet) -> None:
    package = fleet.package("binds", BINDS, LISTENS)
    run = Path(f"/proc/{fleet.nodes['oak'].insider()}/root/run/wlctl")
    lost: list[int] = []
    placed = threading.Event()

    def take() -> None:
        while not (found := list(run.glob("*/g1/port"))):
            if placed.wait(0.02):
                return
        lost.append(int(found[0].read_text("ascii")))
        with socket.create_server(("127.0.0.1", lost[0])):
            found[0].with_name("go").touch()
            placed.wait(60)

    stranger = threading.Thread(target=take)
    stranger.start()
    try:
        fleet.said("place", package, "--pin", "oak")
    finally:
        placed.set()
        stranger.join()

    (listed,) = fleet.said("ps")["items"]
    assert (listed["actual"], listed["health"], listed["restarts"]) == ("running", "healthy", 1)
    assert lost
    assert listed["ports"] != {"http": lost[0]}


def test_a_node_where_a_fixed_port_is_taken_is_gone_past(fleet: Fleet) -> None:
    package = fleet.package("fixed", SLEEP, "[ports]\nhttp = 20555\n")
    table = fleet.nodes["elm"].state / "ports"
    before = table.read_text("ascii") if table.exists() else "end\n"
    table.write_text(f"20555 another i-another http\n{before}", encoding="ascii")
    try:
        told = fleet.said("place", package, "--prefer", "elm", "--prefer", "oak")
    finally:
        table.write_text(before, encoding="ascii")

    assert attempts(told) == [("elm", "refused", "port"), ("oak", "placed", "")]
