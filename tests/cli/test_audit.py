"""The chain as people and scripts see it: read, followed, exported, and found broken."""

import hashlib
import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from tests.cli.program import Program


@pytest.fixture
def made(program: Program) -> Program:
    """An installation in which something happened."""
    keys = "for k in a b; do ssh-keygen -q -t ed25519 -N '' -f $k && wlctl signer add $k $k.pub"
    done = program.sh(f"wlctl init && {keys}; done")
    assert done.returncode == 0, done.stderr
    return program


def ledger_of(program: Program) -> Path:
    return program.directory / "home" / ".local" / "share" / "wlctl" / "ledger.db"


def length_of(program: Program) -> int:
    with closing(sqlite3.connect(ledger_of(program))) as conn:
        (count,) = conn.execute("SELECT count(*) FROM chain").fetchone()
    return int(count)


def tamper(program: Program, *statements: str) -> None:
    with closing(sqlite3.connect(ledger_of(program), isolation_level=None)) as conn:
        for statement in statements:
            conn.execute(statement)


def test_a_broken_chain_is_exit_11_and_names_the_first_bad_event(made: Program) -> None:
    tamper(made, "UPDATE chain SET payload = replace(payload, 'a', 'b') WHERE seq = 3")

    done = made.run("audit", "verify")

    assert done.returncode == 11
    assert done.stdout == "broken at event 3: its hash is not that of what it says\n"
    assert done.stderr.startswith("wlctl: the chain is broken at event 3: its hash is not")
    assert done.stderr.endswith("[chain-broken]\n")
    assert done.stderr.count("\n") == 1


def test_a_broken_chain_is_said_to_programs_too(made: Program) -> None:
    tamper(made, "DELETE FROM chain WHERE seq = 2")

    done = made.run("audit", "verify", "-o", "json")

    assert done.returncode == 11
    assert json.loads(done.stdout) == {
        "schema": "wlctl.audit.verify/1",
        "whole": False,
        "seq": 2,
        "why": "it is missing: the next one is 3",
    }


def test_a_tail_that_was_cut_is_missed_by_a_checkpoint_kept_elsewhere(made: Program) -> None:
    note = made.directory / "checkpoint"
    note.write_text(made.run("audit", "checkpoint").stdout, encoding="utf-8")
    last = length_of(made)
    cut = f"DELETE FROM chain WHERE seq = {last}"
    tamper(made, cut, "DELETE FROM signers WHERE name = 'b'")

    assert made.run("audit", "verify").returncode == 0, "nobody can know without it"
    done = made.run("audit", "verify", "--against", "checkpoint")
    assert done.returncode == 11
    missing = f"it is missing: the checkpoint was made at event {last}"
    assert done.stdout == f"broken at event {last}: {missing}\n"


def test_a_row_that_no_event_tells_of_is_named_without_a_number(made: Program) -> None:
    tamper(made, "INSERT INTO signers (name, public_key, added_at_ms) VALUES ('mallory', 'k', 0)")

    done = made.run("audit", "verify")

    assert done.returncode == 11
    assert done.stdout == "broken in its rows: signers has mallory, and no event tells of it\n"


@pytest.mark.parametrize(
    "payload", [pytest.param("'{'", id="no JSON"), pytest.param("X'ff'", id="no text")]
)
def test_an_event_that_cannot_be_read_is_one_line(made: Program, payload: str) -> None:
    tamper(made, f"UPDATE chain SET payload = {payload} WHERE seq = 3")

    done = made.run("audit", "log")

    assert done.returncode == 11
    assert done.stderr.endswith("[ledger-damaged]\n")
    assert done.stderr.count("\n") == 1
    assert made.run("audit", "verify").stdout.startswith("broken at event 3:")


def test_a_damaged_file_is_found_by_ledger_check(made: Program) -> None:
    path = ledger_of(made)
    content = bytearray(path.read_bytes())
    spot = content.rindex(b"ssh-ed25519")
    page = spot - spot % 4096
    content[page : page + 8] = bytes(8)
    path.write_bytes(content)

    done = made.run("ledger", "check", "-o", "json")

    assert done.returncode == 11
    found = {item["what"]: item["good"] for item in json.loads(done.stdout)["items"]}
    assert found["integrity"] is False


def test_every_exported_line_can_be_hashed_by_anybody(made: Program) -> None:
    lines = [json.loads(line) for line in made.run("audit", "export").stdout.splitlines()]

    assert [line["seq"] for line in lines] == list(range(1, length_of(made) + 1))
    before = "0" * 64
    for line in lines:
        said = line.pop("hash")
        assert hashlib.sha256(rfc8785.dumps(line)).hexdigest() == said
        assert line["prev_hash"] == before
        before = said


@pytest.mark.parametrize("options", ["log -o jsonl", "export"])
def test_a_reader_who_leaves_early_is_no_trouble(made: Program, options: str) -> None:
    first = "SELECT at, kind, actor, payload, hash, hash FROM chain WHERE seq = 1"
    many = "WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 3000)"
    tamper(made, f"INSERT INTO chain {many} SELECT n.i, e.* FROM n, ({first}) AS e")

    done = made.sh(f"{{ wlctl audit {options}; echo $? >&2; }} | head -n 1")

    assert json.loads(done.stdout)["seq"] == 1
    assert done.stderr == "0\n"


@contextmanager
def following(made: Program, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Hold a log open that is followed."""
    process = subprocess.Popen(
        [*made.command, "audit", "log", "-f", *options],
        cwd=made.directory,
        env=made.variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def next_of(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def test_a_followed_log_goes_on_with_what_happens(made: Program) -> None:
    with following(made, "-o", "jsonl", "--tail", "1") as process:
        before = next_of(process)["seq"]
        assert before == length_of(made)

        made.sh("ssh-keygen -q -t ed25519 -N '' -f c && wlctl signer add c c.pub")

        told = next_of(process)
        assert (told["seq"], told["about"]) == (before + 1, "c")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


def test_a_followed_log_shows_its_titles_at_once(made: Program) -> None:
    with following(made, "--tail", "0") as process:
        assert process.stdout is not None
        assert process.stdout.readline().split() == ["SEQ", "AT", "KIND", "ABOUT", "WHAT"]


def test_text_from_outside_cannot_move_the_cursor(made: Program) -> None:
    hostile = "\x1b[2Jgone \u202egnp"
    made.run("signer", "add", "c", "a.pub", "-m", hostile)
    made.sh("ssh-keygen -q -t ed25519 -N '' -f c")
    made.run("signer", "add", "c", "c.pub", environment={"WLCTL_MESSAGE": hostile})

    for options in (["log", "-o", "wide"], ["log", "-o", "jsonl"], ["export"]):
        shown = made.run("audit", *options).stdout
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_the_actor_is_recorded_with_who_used_sudo(made: Program) -> None:
    made.sh("ssh-keygen -q -t ed25519 -N '' -f c")
    made.run("signer", "add", "c", "c.pub", environment={"SUDO_USER": "alice"})

    (event,) = json.loads(made.run("audit", "log", "--tail", "1", "-o", "json").stdout)["items"]

    assert event["actor"].partition("@")[0].endswith(", sudo alice")
    assert event["actor"].endswith(f"@{os.uname().nodename}")
