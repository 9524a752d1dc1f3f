"""A fleet as an operator keeps it, over real sshd: listed, measured, replaced, removed."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.host.bench import wait_until
from tests.host.nodes import SshdNode, sshd_nodes

pytestmark = [pytest.mark.root, pytest.mark.sshd]

KINDS = {"ash": ("dash", "root"), "elm": ("bash", "sudo"), "oak": ("busybox", "plain")}


@pytest.fixture
def machines() -> Iterator[dict[str, SshdNode]]:
    """One machine of each shell and login."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(sshd_nodes(1, shell=shell, login=login))[0]
            for name, (shell, login) in KINDS.items()
        }


def fingerprint(node: SshdNode) -> str:
    shown = subprocess.run(
        ["ssh-keygen", "-lf", f"{node.host_key_file}.pub"],
        check=True, capture_output=True, encoding="ascii",
    )  # fmt: skip
    return shown.stdout.split()[1]


@pytest.fixture
def fleet(program: Program, machines: dict[str, SshdNode]) -> Program:
    """An installation that has added them all from a list."""
    made = said(program, "init")
    lines = []
    for name, node in machines.items():
        key = f"{made['ssh_public_key']}\n"
        (node.directory / "authorized_keys").write_text(key, encoding="ascii")
        lines.append(
            f"{name} {node.address.user}@{node.address.host} port={node.address.port} "
            f"host_key={fingerprint(node)} sudo={'yes' if node.address.sudo else 'no'}"
        )
    (program.directory / "machines").write_text("\n".join(lines), encoding="ascii")
    added = said(program, "node", "add", "-f", "machines")["items"]
    assert {one["name"]: one["outcome"] for one in added} == dict.fromkeys(KINDS, "added")
    return program


def said(program: Program, *args: str, code: int = 0) -> Any:
    done = program.run(*args, "-o", "json", "--yes")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_fleet_is_looked_at_measured_and_told_of(fleet: Program) -> None:
    probed = said(fleet, "node", "probe", "--all")["items"]
    assert [one["answer"] for one in probed] == ["alive"] * 3
    measured = said(fleet, "node", "measure", *KINDS)["items"]
    assert all(one["perf.cpu.single"] > 0 for one in measured)
    said(fleet, "node", "set", "oak", "--label", "env=lab")
    said(fleet, "node", "probe", "oak")

    shown = said(fleet, "node", "show", "oak")

    assert shown["facts"]["seq"] == 3
    ids = {one["id"] for one in shown["said"]}
    assert {"node.label.env", "perf.cpu.all", "perf.disk.write"} <= ids
    assert {"os.linux", "store.state", "runtime.python"} <= {
        one["id"] for one in shown["facts"]["capabilities"]
    }
    assert "clock-skew" not in {one["code"] for one in shown["odd"]}


def test_each_machine_of_a_list_fails_alone(fleet: Program, machines: dict[str, SshdNode]) -> None:
    machines["elm"].kill()
    said(fleet, "node", "rm", "ash")
    said(fleet, "node", "rm", "elm")

    again = said(fleet, "node", "add", "--file", "machines", code=7)["items"]

    outcomes = {one["name"]: one["outcome"] for one in again}
    assert outcomes == {"ash": "added", "elm": "connect-failed", "oak": "already"}


def test_two_machines_under_one_key_are_told_apart(
    fleet: Program, machines: dict[str, SshdNode]
) -> None:
    node = machines["ash"]
    node.reboot(same_uptime=True)
    (twin,) = said(fleet, "node", "probe", "ash", code=9)["items"]
    assert twin["answer"] == "two-machines"
    assert said(fleet, "node", "show", "ash")["odd"][0]["code"] == "two-machines"

    node.reboot()
    (again,) = said(fleet, "node", "probe", "ash")["items"]
    assert again["answer"] == "alive"


def test_a_machine_that_was_replaced_is_taken_in_by_rekey_alone(
    fleet: Program, machines: dict[str, SshdNode], tmp_path: Path
) -> None:
    node = machines["ash"]
    before = said(fleet, "node", "show", "ash")
    node.kill()
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    for suffix in ("", ".pub"):
        Path(f"{node.host_key_file}{suffix}").write_bytes(Path(f"{key}{suffix}").read_bytes())
    (node.state / "node_id").unlink()
    node.start()
    (changed,) = said(fleet, "node", "probe", "ash", code=9)["items"]
    assert changed["answer"] == "host-key-changed"
    done = fleet.run("node", "rekey", "ash", "--host-key", f"SHA256:{'a' * 43}")
    assert (done.returncode, "host-key-changed" in done.stderr) == (9, True)

    rekeyed = said(fleet, "node", "rekey", "ash", "--host-key", fingerprint(node))

    assert (rekeyed["replaced"], rekeyed["tier"]) == (True, "discovered")
    after = said(fleet, "node", "show", "ash")
    assert after["node_id"] != before["node_id"]
    assert after["host_key_fingerprint"] == fingerprint(node)
    assert after["liveness"] == "alive"
    assert "whole" in fleet.run("audit", "verify").stdout


def test_an_emptied_state_directory_is_said_until_it_comes_back(
    fleet: Program, machines: dict[str, SshdNode]
) -> None:
    state = machines["oak"].state
    moved = state.rename(state.with_name("moved"))
    (emptied,) = said(fleet, "node", "probe", "oak", code=9)["items"]
    assert emptied["answer"] == "foreign-node"
    assert "was emptied" in emptied["failure"]
    subprocess.run(["rm", "-rf", state], check=True)
    moved.rename(state)

    (again,) = said(fleet, "node", "probe", "oak")["items"]

    assert again["answer"] == "alive"


@pytest.mark.parametrize("name", KINDS)
def test_a_removed_node_is_left_clean(
    fleet: Program, machines: dict[str, SshdNode], name: str
) -> None:
    node = machines[name]

    removed = said(fleet, "node", "rm", name, "--clean")

    assert len(removed["removed"]) == 3, "its directory, the cgroup and the state directory"
    assert not node.state.exists()
    assert not (node.cgroup / "wlctl").exists()
    wait_until(lambda: not node.commands(), "nothing of it runs on")


def test_a_node_is_reached_elsewhere_only_when_it_is_the_node_that_answers(
    fleet: Program, machines: dict[str, SshdNode]
) -> None:
    ash, elm = machines["ash"].address, machines["elm"].address
    stranger = fleet.run("node", "set", "ash", "--address", elm.host, "--port", str(elm.port))
    assert (stranger.returncode, "host-key-changed" in stranger.stderr) == (9, True)
    before = said(fleet, "node", "show", "ash")
    spelled = str(int(ip_address(ash.host)))  # the same address, otherwise

    shown = said(
        fleet, "node", "set", "ash", "--address", f"{ash.user}@{spelled}", "--port", str(ash.port)
    )

    assert (shown["host"], before["host"]) == (spelled, ash.host)
    assert shown["host_key"] == before["host_key"]
    assert said(fleet, "node", "probe", "ash")["items"][0]["answer"] == "alive"
    assert "whole" in fleet.run("audit", "verify").stdout


def test_a_node_that_is_gone_is_attested_dead_until_it_answers(
    fleet: Program, machines: dict[str, SshdNode]
) -> None:
    alive = fleet.run("node", "attest-dead", "ash", "--yes")
    assert (alive.returncode, "illegal-step" in alive.stderr) == (4, True)
    machines["ash"].kill()
    asked = fleet.run("node", "attest-dead", "ash")
    assert (asked.returncode, "pass --yes" in asked.stderr) == (2, True)

    assert said(fleet, "node", "attest-dead", "ash")["released"] == []

    shown = said(fleet, "node", "show", "ash")
    assert (shown["liveness"], shown["odd"][0]["code"]) == ("dead", "attested-dead")
    machines["ash"].start()
    said(fleet, "node", "probe", "ash")
    assert said(fleet, "node", "show", "ash")["liveness"] == "alive"
