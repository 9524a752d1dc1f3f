"""`wlctl policy test` as an operator and a script see it, with a real node behind it."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.cli.program import Program
from tests.host.nodes import SshdNode, sshd_nodes

pytestmark = [pytest.mark.root, pytest.mark.sshd]


@pytest.fixture
def node() -> Iterator[SshdNode]:
    with sshd_nodes(1) as (made,):
        yield made


def ok(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def ready(program: Program, node: SshdNode) -> Program:
    """An installation whose only node is `elm`, and the signed package `hello`."""
    made = json.loads(ok(program.run("init", "-o", "json")))
    authorized = node.directory / "authorized_keys"
    authorized.write_text(f"{made['ssh_public_key']}\n", encoding="ascii")
    where, port = f"root@{node.address.host}", str(node.address.port)
    ok(program.run("node", "add", "elm", where, "--port", port, "--yes"))
    ok(program.sh("ssh-keygen -q -t ed25519 -N '' -f key"))
    ok(program.run("signer", "add", "me", "key.pub"))
    ok(program.run("package", "init", "hello"))
    ok(program.run("package", "build", "hello", "--sign", "key"))
    return program


def test_a_trial_shows_verdict_rule_and_effect_to_people_and_programs(ready: Program) -> None:
    allowed = ready.run("policy", "test", "hello", "--node", "elm", "--principal", "alice")
    denied = ready.run("policy", "test", "hello", "--node", "elm", "--emulated", "-o", "json")
    waived = ready.run(
        *("policy", "test", "hello", "--node", "elm", "--action", "stop", "--policy", "none.toml")
    )

    assert ok(allowed).splitlines() == [
        "place hello on elm (paired) as alice: allowed by signed-work",
        "  risk      0.10",
        "  security  0.60",
        "  privacy   0.20",
        "  novelty   0.00",
        "  fairness  0.03",
        "  magnitude 0.29",
    ]
    assert denied.returncode == 4
    told = json.loads(denied.stdout)
    assert told["schema"] == "wlctl.policy.test/1"
    assert told["verdict"] == {
        "ruling": "denied",
        "rule": "no-permit",
        "reason": "signed-work: nothing emulated",
    }
    assert list(told["effect"]) == [
        *("risk", "security", "privacy", "novelty", "fairness", "magnitude"),
    ]
    assert told["effect"]["risk"] == 0.2
    assert told["request"]["work"]["emulated"] is True
    assert waived.returncode == 2
    assert "none.toml cannot be read" in waived.stderr


def test_a_denied_placement_says_the_rule_and_a_denied_stop_leaves_the_copy(
    ready: Program,
) -> None:
    policy = ready.directory / "policy.toml"
    shown = ok(ready.run("policy", "show"))
    freeze = '[[deny]]\nid = "freeze"\nactions = ["place", "stop"]\nreason = "until Monday"\n'
    ok(ready.run("place", "hello"))
    policy.write_text(shown + freeze, encoding="utf-8")
    ok(ready.run("policy", "apply", "policy.toml"))

    placed = ready.run("place", "hello", "--name", "second", "--no-refresh")
    stopped = ready.run("stop", "hello")
    tried = ready.run("policy", "test", "hello", "--node", "elm", "--action", "unload")
    unloaded = ready.run("unload", "hello")

    assert placed.returncode == 3
    assert "gate denied by freeze" in placed.stdout
    assert "until Monday" in placed.stdout
    assert stopped.returncode == 4
    assert "hello on elm was left as it is (gate-denied)" in stopped.stdout
    assert ok(tried).startswith("unload hello on elm (paired) as root: allowed by signed-work")
    assert "unloaded hello" in ok(unloaded)
    assert ok(ready.run("audit", "verify"))
