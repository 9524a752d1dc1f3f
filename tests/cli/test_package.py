"""`wlctl package` and `wlctl signer`: what scripts read, and what reaches the terminal."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from wlctl import signing


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `ready` made the first time, to be copied: making it takes a while."""
    return tmp_path_factory.mktemp("ready")


@pytest.fixture
def ready(program: Program, kept: Path) -> Program:
    """An installation, the key `key` accepted as `me`, and the signed package `hello`."""
    if any(kept.iterdir()):
        shutil.copytree(kept, program.directory, dirs_exist_ok=True)
        return program
    ok(program.run("init"))
    signing.generate_key(program.directory / "key", comment="me")
    ok(program.run("signer", "add", "me", "key.pub"))
    ok(program.run("package", "init", "hello"))
    ok(program.run("package", "build", "hello", "--sign", "key"))
    shutil.copytree(program.directory, kept, dirs_exist_ok=True)
    return program


def ok(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(done: subprocess.CompletedProcess[str]) -> Any:
    return json.loads(ok(done))


def test_each_command_answers_in_json_under_its_schema(ready: Program) -> None:
    answers = {
        ("package", "init", "more"): "wlctl.package-init/1",
        ("package", "build", "hello"): "wlctl.package-build/1",
        ("package", "sign", "hello", "--key", "key"): "wlctl.package-sign/1",
        ("package", "verify", "hello"): "wlctl.package-verify/1",
        ("package", "show", "hello"): "wlctl.package/1",
        ("package", "ls"): "wlctl.packages/1",
        ("package", "gc", "--dry-run"): "wlctl.package-gc/1",
        ("package", "gc"): "wlctl.package-gc/1",
        ("signer", "add", "me", "key.pub"): "wlctl.signer/1",
        ("signer", "ls"): "wlctl.signers/1",
        ("signer", "export"): "wlctl.signer-export/1",
        ("revoke", "key", "me", "--reason", "x", "--no-enforce"): "wlctl.revocation/1",
        ("revocations",): "wlctl.revocations/1",
        ("unrevoke", "key", "me", "--reason", "x"): "wlctl.unrevocation/1",
        ("approvals",): "wlctl.approvals/1",
        ("signer", "import", "allowed"): "wlctl.signer-import/1",
        ("signer", "rm", "me"): "wlctl.signer-rm/1",
    }

    (ready.directory / "allowed").write_text(ok(ready.run("signer", "export")))
    found = {words: said(ready.run(*words, "-o", "json"))["schema"] for words in answers}

    assert found == answers


def test_a_build_alone_tells_a_script_the_id(ready: Program) -> None:
    built = said(ready.run("package", "build", "hello", "-o", "json"))

    assert ok(ready.run("package", "build", "hello", "-o", "name")) == f"{built['id']}\n"
    assert not built["changed"]


def test_verifying_tells_a_script_who_signed(ready: Program) -> None:
    verified = said(ready.run("package", "verify", "hello", "-o", "json"))

    assert verified["signers"] == ["me"]
    assert (verified["name"], verified["version"], verified["kind"]) == (
        "hello",
        "0.1.0",
        "service",
    )


def test_the_answer_is_alone_on_stdout(ready: Program) -> None:
    """What a person should know besides goes to stderr."""
    (ready.directory / "hello" / "bin" / "run").write_text("#!/bin/sh\n")

    done = ready.run("package", "build", "hello", "-o", "json")

    assert json.loads(done.stdout)["changed"]
    assert "removed 1 signature of what it was before" in done.stderr


def test_verifying_needs_a_ledger_and_says_so(program: Program) -> None:
    ok(program.run("package", "init", "hello"))
    ok(program.run("package", "build", "hello"))

    done = program.run("package", "verify", "hello")

    assert done.returncode == 2
    assert "wlctl init" in done.stderr
    assert not list(program.directory.rglob("ledger.db"))


def test_nothing_in_a_package_reaches_the_terminal_as_it_is(ready: Program) -> None:
    hostile = "\x1b[2Jbad\u202ename\n"
    (ready.directory / "hello" / "signatures" / f"{hostile}.sig").write_text("x")

    for words in (("show", "hello"), ("verify", "hello")):
        done = ready.run("package", *words)
        assert not set("\x1b\u202e") & set(done.stdout + done.stderr)
        assert "[2J" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "exit_code", "code"),
    [
        pytest.param(["package", "sign", "hello"], 2, "usage", id="no key to sign with"),
        pytest.param(["package", "sign", "hello", "--key", ""], 2, "", id="an empty path"),
        pytest.param(["package", "build"], 2, "usage", id="no directory"),
        pytest.param(["package", "show", "key"], 2, "invalid-file", id="a file for a directory"),
        pytest.param(["package", "show", "home"], 2, "manifest-invalid", id="no package"),
        pytest.param(["signer", "add", "me", "hello"], 2, "unusable-key", id="no file"),
        pytest.param(["signer", "add", "you", "key"], 2, "unusable-key", id="a private key"),
        pytest.param(["signer", "add", "you", "key.pub"], 4, "signer-conflict", id="a key in use"),
        pytest.param(["package", "fetch", "x@1"], 2, "unknown-name", id="nothing to fetch"),
        pytest.param(["signer", "rm", "you"], 2, "unknown-name", id="nobody to remove"),
        pytest.param(["signer", "import", "key"], 2, "invalid-file", id="no list of signers"),
        pytest.param(["revoke", "key", "me", "--reason", "x"], 2, "usage", id="not enforced"),
        pytest.param(["revoke", "all", "x", "--reason", "x"], 2, "usage", id="no kind"),
        pytest.param(["unrevoke", "key", "me", "--reason", "x"], 2, "unknown-name", id="as it was"),
        pytest.param(["init", "--signer", "key"], 2, "unusable-key", id="a private key to accept"),
        pytest.param(["package", "build", "/proc/1"], 2, "invalid-file", id="a strange place"),
    ],
)
def test_a_mistake_is_one_line_and_its_exit_code(
    words: list[str], exit_code: int, code: str, ready: Program
) -> None:
    done = ready.run(*words)

    assert done.returncode == exit_code
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"[{code}" in done.stderr
