"""A ledger that is not as it must be: one line, the documented exit code, and nothing changed."""

import hashlib
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import Program


@pytest.fixture
def made(program: Program) -> Path:
    """The ledger of a fresh installation."""
    done = program.run("init", "-o", "json")
    assert done.returncode == 0, done.stderr
    return program.directory / "home/.local/share/wlctl/ledger.db"


def truncated(ledger: Path) -> None:
    ledger.write_bytes(ledger.read_bytes()[:5000])


def flipped(ledger: Path) -> None:
    content = bytearray(ledger.read_bytes())
    content[100:4000] = bytes(byte ^ 0xFF for byte in content[100:4000])
    ledger.write_bytes(content)


def text(ledger: Path) -> None:
    ledger.write_text("not a ledger\n" * 1000)
    ledger.chmod(0o600)


def newer(ledger: Path) -> None:
    with sqlite3.connect(ledger) as conn:
        conn.execute("UPDATE alembic_version SET version_num = '9999'")
    conn.close()


def a_directory(ledger: Path) -> None:
    ledger.unlink()
    ledger.mkdir()


def gone(ledger: Path) -> None:
    ledger.unlink()


def open_to_others(ledger: Path) -> None:
    ledger.chmod(0o644)


def with_a_key_open_to_others(ledger: Path) -> None:
    (ledger.parent / "keys" / "checkpoint_ed25519").chmod(0o644)


@pytest.mark.parametrize(
    ("spoil", "command", "answer"),
    [
        pytest.param(gone, ("ps",), (2, "no-ledger"), id="none"),
        pytest.param(a_directory, ("ps",), (2, "not-a-ledger"), id="a directory"),
        pytest.param(text, ("ps",), (2, "not-a-ledger"), id="a text"),
        pytest.param(truncated, ("ps",), (11, "ledger-damaged"), id="cut short"),
        pytest.param(flipped, ("ps",), (11, "ledger-damaged"), id="bytes flipped"),
        pytest.param(newer, ("ps",), (11, "ledger-newer"), id="of a newer version"),
        pytest.param(
            newer, ("ledger", "migrate"), (11, "ledger-newer"), id="and not migrated back"
        ),
        pytest.param(open_to_others, ("ps",), (2, "ledger-permissions"), id="open to others"),
        pytest.param(
            with_a_key_open_to_others,
            ("audit", "checkpoint"),
            (2, "unsafe-key"),
            id="a key open too",
        ),
    ],
)
def test_each_is_one_line_and_its_exit_code_and_the_file_stays(
    program: Program,
    made: Path,
    spoil: Callable[[Path], None],
    command: tuple[str, ...],
    answer: tuple[int, str],
) -> None:
    spoil(made)
    before = content(made)

    done = program.run(*command)

    (line,) = done.stderr.splitlines()
    words = line.rpartition(" ")
    assert (done.returncode, words[2]) == (answer[0], f"[{answer[1]}]")
    assert line.startswith("wlctl: ")
    assert done.stdout == ""
    assert content(made) == before


def test_a_directory_that_others_can_write_is_said_by_doctor(program: Program, made: Path) -> None:
    assert "others can write" not in program.run("doctor").stdout
    made.parent.chmod(0o775)

    done = program.run("doctor")

    assert f"others can write {made.parent}" in done.stdout
    assert f"`chmod go-w {made.parent}`" in done.stdout
    assert "\npolicy " in done.stdout, "all else is examined, too"


def test_a_key_that_is_gone_is_said_with_where_it_can_be_had_back(
    program: Program, made: Path
) -> None:
    (made.parent / "keys/ssh_ed25519").unlink()

    done = program.run("doctor")

    (line,) = (line for line in done.stdout.splitlines() if line.startswith("keys "))
    assert "there is no file" in line
    assert line.endswith("`wlctl help recover-ledger`")
    assert done.returncode == 2


def test_only_init_makes_a_ledger_and_only_where_its_directory_is(program: Program) -> None:
    named = program.directory / "missing" / "ledger.db"

    done = program.run("init", "--db", str(named))

    assert done.returncode == 2
    assert done.stderr.endswith("[no-ledger]\n")
    assert not named.parent.exists()


def test_init_again_changes_nothing(program: Program, made: Path) -> None:
    before = content(made)
    keys = {path: path.read_bytes() for path in (made.parent / "keys").iterdir()}

    done = program.run("init")

    assert done.returncode == 0
    assert "nothing to do" in done.stdout
    assert content(made) == before
    assert {path: path.read_bytes() for path in (made.parent / "keys").iterdir()} == keys


def test_doctor_names_what_is_bad_and_answers_with_its_code(program: Program, made: Path) -> None:
    assert program.run("doctor").returncode == 0
    truncated(made)

    done = program.run("doctor")

    assert done.returncode == 11
    assert done.stdout.splitlines()[1].split()[:2] == ["ledger", "bad"]


def test_the_chain_says_who_asked_and_never_what_was_secret(program: Program, made: Path) -> None:
    key = program.directory / "me"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    done = program.run(
        "-m", "because I can", "signer", "add", "me", f"{key}.pub", "--db", str(made)
    )
    assert done.returncode == 0, done.stderr

    exported = program.run("audit", "export").stdout

    assert '"message":"because I can"' in exported
    assert "--db …" in exported
    assert key.read_text().splitlines()[1] not in exported


def content(ledger: Path) -> str:
    if not ledger.is_file():
        return "none" if not ledger.exists() else "directory"
    return hashlib.sha256(ledger.read_bytes()).hexdigest()
