"""The main job as an operator types it, over a real sshd: placed, run, stopped, and proven."""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.host.nodes import SshdNode, sshd_nodes

pytestmark = [pytest.mark.root, pytest.mark.sshd]

RUN = """\
#!/bin/sh
trap '' TERM
echo "hello from $WLCTL_NAME, run $WLCTL_GENERATION, on $WLCTL_NODE"
( setsid sh -c 'trap "" TERM HUP; while :; do sleep 1000; done' & )
while :; do sleep 1000; done
"""

WORKLOAD = """\
kind = "service"
name = "stubborn"
version = "1.0.0"
[run]
command = ["./bin/run"]
[[variant]]
name = "any"
files = ["bin/"]
requires = [{ id = "os.linux" }]
[resources]
memory = "32MiB"
[lifecycle]
stop_grace = "200ms"
[restart]
max = 0
"""


@pytest.fixture
def node() -> Iterator[SshdNode]:
    with sshd_nodes(1) as (made,):
        yield made


def ok(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def said(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(ok(done))


@pytest.fixture
def ready(program: Program, node: SshdNode) -> Program:
    """An installation whose only node is `elm`, and the signed package `stubborn`."""
    made = said(program.run("init", "-o", "json"))
    authorized = node.directory / "authorized_keys"
    authorized.write_text(f"{made['ssh_public_key']}\n", encoding="ascii")
    shown = subprocess.run(
        ["ssh-keygen", "-lf", f"{node.host_key_file}.pub"],
        check=True, capture_output=True, encoding="ascii",
    )  # fmt: skip
    fingerprint = shown.stdout.split()[1]
    where = f"root@{node.address.host}"
    port = str(node.address.port)
    ok(program.run("node", "add", "elm", where, "--port", port, "--host-key", fingerprint))
    package = program.directory / "stubborn"
    (package / "bin").mkdir(parents=True)
    (package / "bin" / "run").write_text(RUN, encoding="ascii")
    (package / "bin" / "run").chmod(0o755)
    (package / "workload.toml").write_text(WORKLOAD, encoding="ascii")
    key = program.directory / "me"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    ok(program.run("signer", "add", "me", f"{key}.pub"))
    ok(program.run("package", "build", "stubborn", "--sign", str(key)))
    return program


def test_the_main_job_over_real_ssh(ready: Program, node: SshdNode) -> None:
    page = ready.directory / "why.html"
    explained = ok(ready.run("place", "stubborn", "--dry-run", "--html", str(page)))
    assert "PLACED elm" in page.read_text("utf-8")
    page.unlink()
    assert "PLACED elm" in ok(ready.run("explain", "stubborn", "--html", str(page)))
    assert "PLACED elm" in page.read_text("utf-8")
    nowhere = ready.run("explain", "stubborn", "--html", str(ready.directory / "no" / "why.html"))
    assert (nowhere.returncode, "cannot be written" in nowhere.stderr) == (2, True)
    assert "PLACED elm" in explained
    node.await_quiet()  # a dry run starts nothing

    placed = said(ready.run("place", "stubborn", "-o", "json"))
    assert placed["outcome"] == "placed"
    listed = said(ready.run("ps", "-o", "json"))["items"]
    assert [(one["name"], one["node"], one["actual"]) for one in listed] == [
        ("stubborn", "elm", "running")
    ]

    # From outside: the leader and what it left behind sit in the run's own cgroup, as one uid.
    limit = next(name for name in node.cgroups() if name.endswith("limit/g1"))
    below = node.cgroup / "wlctl" / limit
    inside = [int(pid) for pid in (below / "cgroup.procs").read_text("ascii").split()]
    assert len(inside) >= 3
    assert {uid_of(pid) for pid in inside} == {uid_of(inside[0])}
    assert uid_of(inside[0]) > 1000

    logs = ok(ready.run("logs", "stubborn"))
    assert logs == "hello from stubborn, run 1, on elm\n"

    stopped = said(ready.run("stop", "stubborn", "-o", "json"))
    (ending,) = stopped["endings"]
    (proof,) = ending["proofs"]
    assert ending["outcome"] == "done"
    assert (proof["judgement"], proof["how"], proof["uid_left"]) == ("proven", "killed", 0)
    assert proof["cgroup_inode"] > 0
    node.await_quiet()  # seen from outside, too

    ok(ready.run("unload", "stubborn"))
    assert said(ready.run("ps", "-o", "json"))["items"] == []
    assert [name for name in node.cgroups() if "/" in name] == []
    kinds = [json.loads(line)["kind"] for line in ok(ready.run("audit", "export")).splitlines()]
    assert kinds.count("workload.stop") == 2
    assert kinds.count("workload.unload") == 2
    assert "whole" in ok(ready.run("audit", "verify"))


def test_runs_follow_one_another_and_never_stand_side_by_side(
    ready: Program, node: SshdNode
) -> None:
    ok(ready.run("place", "stubborn"))

    (begun,) = said(ready.run("restart", "stubborn", "-o", "json"))["beginnings"]
    assert (begun["outcome"], begun["generation"], begun["state"]) == ("done", 2, "running")
    assert [proof["judgement"] for proof in begun["proofs"]] == ["proven"]
    assert [one for one in node.cgroups() if "limit/g" in one and "hook" not in one] == [
        next(one for one in node.cgroups() if one.endswith("limit/g2"))
    ]
    assert ok(ready.run("start", "stubborn")) == "stubborn runs on elm already: it is running\n"
    assert ok(ready.run("logs", "stubborn")) == "hello from stubborn, run 2, on elm\n"
    assert ok(ready.run("logs", "stubborn", "--previous")).startswith("hello from stubborn, run 1")
    done = ready.run("logs", "stubborn", "--previous", "--follow", "-o", "jsonl")
    assert said(done)["line"].startswith("hello from stubborn, run 1"), "it ends with the run"
    (line,) = ok(ready.run("ps", "stubborn")).splitlines()[1:]
    assert line.split()[:8] == ["stubborn", "elm", "running", "running", "-", "1.0.0", "-", "1"]

    ok(ready.run("stop", "--all"))
    node.await_quiet()
    begun = ok(ready.run("start", "--workload", "stubborn", "--node", "elm"))
    assert begun.startswith("started stubborn on elm: g3")
    (leader,) = [pid for pid, text in node.commands().items() if text.endswith("./bin/run")][:1]
    assert uid_of(leader) > 1000

    # It ends by itself, and nobody has looked: a start finds that out and begins the next run.
    for pid in [pid for pid, text in node.commands().items() if text.endswith("./bin/run")]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    (begun,) = said(ready.run("start", "stubborn", "-o", "json"))["beginnings"]
    assert (begun["outcome"], begun["generation"]) == ("done", 4)
    assert (begun["proofs"][-1]["how"], begun["proofs"][-1]["exit_status"]) == ("exited", 137)
    ok(ready.run("unload", "stubborn"))
    node.await_quiet()
    assert "whole" in ok(ready.run("audit", "verify"))


def test_how_a_copy_is_and_was_is_asked_and_said(ready: Program, node: SshdNode) -> None:
    ok(ready.run("place", "stubborn"))
    ok(ready.run("restart", "stubborn"))

    (one,) = said(ready.run("status", "stubborn", "-o", "json"))["items"]
    assert (one["state"], one["desired"], one["generation"]) == ("running", "running", 2)
    assert (one["restarts"], one["confined"], one["unsettled"]) == (1, True, False)
    assert (one["seen"]["leader"], one["seen"]["exit_status"]) == ("alive", None)
    assert uid_of(one["seen"]["pid"] and leader_of(node)) == one["seen"]["uid"]
    assert one["differences"] == []
    text = ok(ready.run("status", "--all"))
    assert text.startswith("stubborn on elm: running since ")
    assert "  confined  yes, isolated\n" in text
    assert ", started again 1 time\n" in text

    assert ok(ready.run("wait", "stubborn", "--for", "healthy")) == "stubborn is running\n"
    assert ok(ready.run("wait", "node/elm", "--for", "alive")) == "elm is alive\n"
    late = ready.run("wait", "stubborn", "--for", "stopped", "--timeout", "0s")
    assert (late.returncode, late.stderr) == (
        1,
        "wlctl: stubborn is not stopped in time, it is running [timeout]\n",
    )
    never = ready.run("wait", "--all", "--for", "finished")
    assert (never.returncode, never.stderr) == (
        4,
        "wlctl: stubborn will not be finished: a service does not finish [illegal-step]\n",
    )
    assert ready.run("wait", "stubborn", "node/elm", "--for", "alive").returncode == 2

    alive = ready.run("prove", "stubborn", "-o", "json")
    (proved,) = json.loads(alive.stdout)["items"]
    assert (alive.returncode, proved["judgement"]) == (1, "disproven")
    assert [run["judgement"] for run in proved["runs"]] == ["proven", "disproven"]

    os.kill(leader_of(node), 9)
    text = ok(ready.run("status", "stubborn"))
    assert "! the ledger says running, its node failed: g2 ended by itself with status 137" in text
    steps = said(ready.run("history", "stubborn", "-o", "json"))["items"]
    assert steps[-1]["to"] == "running", "who asks changes nothing"

    ok(ready.run("stop", "stubborn"))
    steps = said(ready.run("history", "stubborn", "-o", "json"))["items"]
    assert [step["to"] for step in steps[-2:]] == ["stopping", "failed"]
    assert steps[-1]["evidence"]["g2"]["how"] == "exited"
    assert "g2 proven, exited, status 137 (signal 9)" in ok(ready.run("history", "stubborn"))

    assert ok(ready.run("prove", "stubborn")).startswith("stubborn on elm is proven gone")

    node.kill()
    done = ready.run("status", "stubborn")
    assert done.returncode == 9
    assert "elm cannot be asked" in done.stdout
    assert "cannot be asked" not in ok(ready.run("status", "stubborn", "--stored"))


def leader_of(node: SshdNode) -> int:
    return min(pid for pid, text in node.commands().items() if text.endswith("./bin/run"))


def test_a_node_whose_key_changed_is_unreachable_and_loud(
    ready: Program, node: SshdNode, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    node.kill()
    node.host_key_file.write_bytes(other.read_bytes())
    node.host_key_file.chmod(0o600)
    node.start()

    done = ready.run("place", "stubborn", "--no-refresh")

    assert done.returncode == 9
    assert "host-key-changed" in done.stdout
    assert said(ready.run("ps", "-o", "json"))["items"] == []


def test_a_node_that_is_down_leaves_nothing_behind_and_exits_9(
    ready: Program, node: SshdNode
) -> None:
    node.kill()

    done = ready.run("place", "stubborn", "--no-refresh")

    assert done.returncode == 9
    assert "nothing was done there" in done.stdout
    assert said(ready.run("ps", "-o", "json"))["items"] == []


def uid_of(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid
