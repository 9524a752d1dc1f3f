"""A node without a cgroup, as an operator meets it: refused, then settled for, and told."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.program import Program
from tests.host.nodes import SshdNode, sshd_nodes
from wlctl.host.ssh import fingerprint

pytestmark = [pytest.mark.root, pytest.mark.sshd]


WORKLOAD = """\
kind = "service"
name = "web"
version = "1"
[run]
command = ["/bin/sleep", "1000"]
[resources]
memory = "64MiB"
[[variant]]
name = "any"
execution = "native"
requires = [{ id = "os.linux" }]
"""


@pytest.fixture
def node() -> Iterator[SshdNode]:
    """A machine where no cgroup v2 is mounted."""
    with sshd_nodes(1, mount_cgroup=False) as (node,):
        yield node


@pytest.fixture
def site(program: Program, node: SshdNode) -> Program:
    """An installation whose only node is that machine, and a workload."""
    key = says(program, "init")["ssh_public_key"]
    (node.directory / "authorized_keys").write_text(f"{key}\n", encoding="ascii")
    where, port = f"root@{node.address.host}", str(node.address.port)
    shown = fingerprint(node.address.host_key)
    says(program, "node", "add", "elm", where, "--port", port, "--host-key", shown)
    (program.directory / "web").mkdir()
    (program.directory / "web/workload.toml").write_text(WORKLOAD, encoding="ascii")
    done = program.sh(
        "ssh-keygen -q -t ed25519 -N '' -f me && wlctl signer add me me.pub && "
        "wlctl package build web --sign me"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return program


def says(program: Program, *args: str, code: int = 0) -> Any:
    done = program.run(*args, "-o", "json", "--yes")
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def lines(program: Program, *args: str, code: int = 0) -> str:
    done = program.run(*args)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_what_it_gives_up_is_said_wherever_one_looks(site: Program) -> None:
    assert "no_cgroup" in lines(site, "place", "web", code=3)
    assert [one["code"] for one in says(site, "node", "show", "elm")["odd"]] == ["no-cgroup"]

    lines(site, "node", "set", "elm", "--containment", "isolated", code=2)

    shown = lines(site, "node", "set", "elm", "--containment", "leader-only")

    assert "set to leader-only: workloads run there without a cgroup" in shown
    told = says(site, "node", "show", "elm")
    assert (told["containment"], told["containment_set"]) == ("leader-only", "leader-only")
    assert [one["code"] for one in told["odd"]] == ["leader-only"]
    assert "[leader_only]" in lines(site, "place", "web", "--dry-run")
    wanted = lines(site, "place", "web", "--where", "node.containment=isolated", code=3)
    assert "node.containment" in wanted, "an order can ask for more"
    assert "no_lease" in lines(site, "place", "web", "--lease", "10m", code=3)
    placed = lines(site, "place", "web")
    assert "elm has no cgroup for it: it is not confined (leader-only)" in placed
    assert "cannot hold it to its limits of memory" in placed
    assert "running (leader-only)" in lines(site, "ps")
    (listed,) = says(site, "ps")["items"]
    assert (listed["containment"], listed["confined"]) == ("leader-only", False)
    assert "no, leader-only" in lines(site, "status", "web")
    assert "confined no (leader-only)" in lines(site, "prove", "web", code=1)

    lines(site, "stop", "web")

    assert "confined no (leader-only)" in lines(site, "prove", "web", "--stored")
    (run,) = says(site, "prove", "web")["items"][0]["runs"]
    assert (run["judgement"], run["confined"]) == ("proven", False)
    says(site, "unload", "web")
    says(site, "node", "rm", "elm", "--clean")
    says(site, "audit", "verify")
