"""Signing as a person does it: with an agent, with a passphrase; and what waits for an approver."""

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.cli.program import Program
from wlctl.ledger import approvals
from wlctl.ledger.opening import open_ledger
from wlctl.model.event import Author, Json


def ok(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def built(program: Program) -> Program:
    """A package `hello`, an RSA key `key` under the passphrase `secret`, and no ledger."""
    ok(program.sh("ssh-keygen -q -t rsa -b 2048 -N secret -f key"))
    ok(program.run("package", "init", "hello"))
    ok(program.run("package", "build", "hello"))
    return program


@contextmanager
def agent_with(program: Program, key: str) -> Iterator[dict[str, str | None]]:
    """Run a real agent that keeps the key; give the environment to reach it."""
    with TemporaryDirectory() as directory:
        way = f"{directory}/agent"
        running = subprocess.Popen(["ssh-agent", "-D", "-a", way], stdout=subprocess.PIPE)
        try:
            assert running.stdout is not None
            running.stdout.readline()
            ask = Path(directory) / "ask"
            ask.write_text("#!/bin/sh\necho secret\n")
            ask.chmod(0o700)
            environment: dict[str, str | None] = {
                "SSH_AUTH_SOCK": way,
                "SSH_ASKPASS": str(ask),
                "SSH_ASKPASS_REQUIRE": "force",
            }
            added = subprocess.run(
                ["ssh-add", "-q", key],
                env=program.variables(environment),
                cwd=program.directory,
                check=False,
            )
            assert added.returncode == 0
            yield environment
        finally:
            running.terminate()
            running.communicate()


def test_a_key_in_an_agent_signs_by_fingerprint_and_by_its_public_half(built: Program) -> None:
    fingerprint = ok(built.sh("ssh-keygen -l -f key.pub")).split()[1]
    with agent_with(built, "key") as environment:
        for words in (
            ("sign", "hello", "--agent", fingerprint),
            ("sign", "hello", "--agent", fingerprint[:16]),
            ("sign", "hello", "--key", "key.pub"),
            ("build", "hello", "--agent", fingerprint),
            ("build", "hello", "--sign", "key.pub"),
        ):
            done = built.run("package", *words, "-o", "json", environment=environment)
            assert json.loads(ok(done))["fingerprint"] == fingerprint
        missing = built.run(
            "package", "sign", "hello", "--agent", "SHA256:none", environment=environment
        )
    assert missing.returncode == 2
    assert "ssh-agent has no key SHA256:none" in missing.stderr
    ok(built.run("init", "--signer", "key.pub"))
    ok(built.run("package", "verify", "hello"))


@pytest.mark.parametrize(
    ("words", "exit_code", "said"),
    [
        pytest.param(["--agent", "SHA256:abc"], 1, "[agent-failed]", id="no agent"),
        pytest.param(["--key", "key.pub"], 1, "[agent-failed]", id="a public key and no agent"),
        pytest.param(["--key", "key"], 2, "[needs-terminal]", id="a passphrase, and nobody there"),
        pytest.param(["--key", "key", "--agent", "x"], 2, "give one of", id="two keys"),
        pytest.param([], 2, "nothing to sign with", id="none"),
    ],
)
def test_what_cannot_sign_says_so_in_one_line(
    built: Program, words: list[str], exit_code: int, said: str
) -> None:
    done = built.run("package", "sign", "hello", *words, environment={"SSH_AUTH_SOCK": None})

    assert (done.returncode, done.stdout) == (exit_code, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (built.directory / "hello/signatures").exists()


@pytest.mark.parametrize(
    ("typed", "exit_code"),
    [
        pytest.param("secret\n", 0, id="the passphrase"),
        pytest.param("Secret\n", 2, id="another one"),
        pytest.param("\x04", 1, id="the end of input"),
    ],
)
def test_a_passphrase_is_asked_for_at_a_terminal_and_not_shown(
    built: Program, typed: str, exit_code: int
) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*built.command, "package", "sign", "hello", "--key", "key"],
        cwd=built.directory,
        env=built.variables(),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        start_new_session=True,  # no terminal of the tests' own is asked instead
    )
    with process:
        os.close(theirs)
        shown = b""
        while b"passphrase of key:" not in shown:
            shown += os.read(ours, 100)
        os.write(ours, typed.encode())
        assert process.stdout is not None
        process.stdout.read()
        process.wait(60)
        shown += os.read(ours, 1000)
    os.close(ours)

    assert process.returncode == exit_code
    assert b"ecret" not in shown


def test_an_approver_signs_with_a_key_that_an_agent_keeps(built: Program) -> None:
    made = json.loads(ok(built.run("init", "-o", "json")))
    public = (built.directory / "key.pub").read_text().strip()
    policy = ok(built.run("policy", "show"))
    policy += '[effect]\nceiling = 0.1\nhuman_approval = true\n[[approver]]\nprincipal = "bob"\n'
    (built.directory / "policy.toml").write_text(f'{policy}key = "{public}"\n')
    ok(built.run("policy", "apply", "policy.toml"))
    ledger = open_ledger(Path(made["ledger"]), now_ms=0, author=Author("me@here"))
    asked: dict[str, Json] = {"principal": "ann", "action": "start", "about": "web", "node": "elm"}
    with ledger.write(4_000_000_000_000, Author("me@here")) as tx:
        approvals.defer(tx, "a" * 32, ledger.installation, asked)
    ledger.close()

    without = built.run("approve", "aaaa", "--key", "key.pub", environment={"SSH_AUTH_SOCK": None})
    both = built.run("approve", "aaaa", "--key", "key", "--agent", "SHA256:x")
    with agent_with(built, "key") as environment:
        fingerprint = ok(built.sh("ssh-keygen -l -f key.pub")).split()[1]
        done = built.run("approve", "aaaa", "--agent", fingerprint, environment=environment)

    assert (without.returncode, both.returncode) == (1, 2)
    assert "bob approved start web on elm" in ok(done)


def test_what_waits_for_an_approver_is_listed_and_what_is_over_when_asked(
    program: Program,
) -> None:
    made = json.loads(ok(program.run("init", "-o", "json")))
    ledger = open_ledger(Path(made["ledger"]), now_ms=0, author=Author("me@here"))
    now_ms = 4_000_000_000_000
    asked: dict[str, Json] = {"principal": "ann", "action": "start", "about": "web", "node": "elm"}
    with ledger.write(now_ms, Author("me@here")) as tx:
        first = approvals.defer(tx, "a" * 32, ledger.installation, asked)
        approvals.approve(tx, first, approver="bob", signature="signed")
        approvals.defer(tx, "b" * 32, ledger.installation, {**asked, "about": "db\x1b[2J"})
        spent = approvals.defer(tx, "c" * 32, ledger.installation, {**asked, "about": "mq"})
        approvals.spend(tx, spent)
    with ledger.write(1000, Author("me@here")) as tx:
        approvals.defer(tx, "d" * 32, ledger.installation, {**asked, "about": "old"})
    ledger.close()

    def states(*words: str) -> dict[str, Any]:
        found = json.loads(ok(program.run("approvals", *words, "-o", "json")))
        assert found["schema"] == "wlctl.approvals/1"
        return {item["id"][0]: item["state"] for item in found["items"]}

    assert states() == {"a": "approved", "b": "open"}
    everything = {"a": "approved", "b": "open", "c": "spent", "d": "expired"}
    assert states("--all") == everything
    shown = ok(program.run("approvals"))
    assert "start web on elm" in shown
    assert "\x1b" not in shown
