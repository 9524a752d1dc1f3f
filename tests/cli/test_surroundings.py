"""Odd surroundings: no home, a narrow terminal, a directory that is gone or that others fill."""

import fcntl
import json
import os
import pty
import pwd
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.cli.program import Program

ODD = str(Path(__file__).with_name("odd.py"))


def db_of(program: Program, **environment: str | None) -> str:
    done = program.run("config", "show", "-o", "json", environment=environment)
    items = {item["key"]: item for item in json.loads(done.stdout)["items"]}
    value = items["db"]["value"]
    assert isinstance(value, str)
    return value


def test_without_home_as_in_cron_the_ledger_is_the_one_of_the_passwd_entry(
    program: Program,
) -> None:
    home = pwd.getpwuid(os.getuid()).pw_dir

    assert db_of(program, HOME=None) == f"{home}/.local/share/wlctl/ledger.db"


@pytest.mark.parametrize("home", ["", "home/ann"], ids=["empty", "relative"])
def test_a_home_that_is_no_place_is_one_line_and_no_new_ledger(home: str, program: Program) -> None:
    done = program.run("ps", environment={"HOME": home})

    assert done.stderr == (
        "wlctl: no ledger was named and there is no home directory to look for one in: "
        "give --db or WLCTL_DB, or set HOME (and XDG_DATA_HOME) to an absolute path [no-home]\n"
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert program.files() == {"home"}


def test_a_home_that_does_not_exist_is_no_trouble_where_nothing_is_needed_of_it(
    program: Program,
) -> None:
    assert db_of(program, HOME="/nonexistent") == "/nonexistent/.local/share/wlctl/ledger.db"
    assert program.run("help", "exit-codes", environment={"HOME": "/nonexistent"}).returncode == 0


def test_a_home_that_does_not_exist_gets_no_ledger(program: Program, tmp_path: Path) -> None:
    home = tmp_path / "never-made"

    done = program.run("ps", environment={"HOME": str(home)})

    assert done.returncode == 2
    assert done.stderr.endswith("[no-ledger]\n")
    assert len(done.stderr.splitlines()) == 1
    assert not home.exists()


def test_a_working_directory_that_is_gone_is_no_trouble(program: Program) -> None:
    done = program.sh("mkdir gone && cd gone && rmdir ../gone && wlctl config show -o name")

    assert done.stdout.startswith("db\n")
    assert "wlctl:" not in done.stderr
    assert done.returncode == 0


def test_a_project_file_that_others_can_write_is_refused_and_says_how_to_mend_it(
    program: Program,
) -> None:
    done = program.sh("echo 'output = \"json\"' > wlctl.toml && chmod 666 wlctl.toml; wlctl ps")

    assert done.stderr == (
        "wlctl: wlctl.toml can be written by others, so it is not read: "
        "chmod go-w wlctl.toml [invalid-file]\n"
    )
    assert done.returncode == 2


def test_settings_that_others_can_write_are_refused_since_they_name_commands(
    program: Program,
) -> None:
    config = program.directory / "home/.config/wlctl/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[alerts]\ncommand = ["/tmp/theirs"]\n')
    config.chmod(0o664)

    done = program.run("config", "show")

    said = f"wlctl: {config} can be written by others, so it is not read: chmod go-w {config}"
    assert (done.returncode, done.stderr) == (2, f"{said} [invalid-file]\n")
    config.chmod(0o644)
    assert program.run("config", "show").returncode == 0


def test_a_node_that_is_none_is_said_where_it_is_to_be_preferred_or_avoided(
    program: Program,
) -> None:
    program.run("init")

    done = program.run("place", "nowhere", "--avoid", "elm", "--prefer", "oak")

    assert [line.partition(":")[2].partition(",")[0] for line in done.stderr.splitlines()[:2]] == [
        " there is no node oak (--prefer)",
        " there is no node elm (--avoid)",
    ]
    assert done.stderr.endswith("[invalid-file]\n"), "and all else is looked at as ever"


@pytest.mark.parametrize(
    ("words", "which"),
    [
        pytest.param(("stop", ""), "NAME", id="no beginning of every id"),
        pytest.param(("unload", "web", ""), "NAME", id="nor among names"),
        pytest.param(("place", ""), "PACKAGE", id="no working directory"),
        pytest.param(("place", "web", "--pin", ""), "--pin", id="no option left out"),
        pytest.param(("stop", "-l", "batch", "--node="), "--node", id="nor one of several"),
        pytest.param(("explain", ""), "DECISION|NAME", id="no newest decision"),
    ],
)
def test_a_shell_variable_that_is_not_set_is_taken_for_nothing(
    words: tuple[str, ...], which: str, program: Program
) -> None:
    program.run("init")

    done = program.run(*words)

    said = f"wlctl: {which} is given an empty word: is a shell variable not set? [usage]\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_what_is_passed_on_may_be_empty(program: Program) -> None:
    program.run("init")

    done = program.run("place", "nowhere", "-m", "", "--", "")

    assert done.stderr.endswith("[invalid-file]\n"), "it is only nowhere that is wrong"


def at_a_terminal(program: Program, argv: list[str], columns: int) -> tuple[int, str]:
    """Run a program with all its streams at a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        argv,
        cwd=program.directory,
        env={**program.variables(), "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # how Linux says that the other side is closed
            break
        if not more:
            break
        said += more
    os.close(ours)
    return process.wait(20), said.decode().replace("\r\n", "\n")


def test_a_table_stays_readable_at_40_columns(program: Program) -> None:
    db = "/srv/ledger.db"
    argv = [sys.executable, "-m", "wlctl", "config", "show", "--db", db, "--no-color"]

    code, said = at_a_terminal(program, argv, 40)

    assert code == 0
    assert said.startswith(f"db\n  VALUE   {db}\n  ORIGIN  --db\noutput\n  VALUE   table\n")
    assert max(map(len, said.splitlines())) <= 40


@pytest.mark.parametrize("path", [[], ["place"], ["node", "add"]], ids=["", "place", "node add"])
def test_help_fits_into_40_columns(path: list[str], program: Program) -> None:
    code, said = at_a_terminal(program, [sys.executable, "-m", "wlctl", *path, "--help"], 40)

    assert code == 0
    assert max(map(len, said.splitlines())) <= 40


def test_a_wide_terminal_gets_the_table(program: Program) -> None:
    argv = [sys.executable, "-m", "wlctl", "config", "show", "--db", "/l", "--no-color"]

    said = at_a_terminal(program, argv, 120)[1]

    assert said.split("\n")[0].split() == ["KEY", "VALUE", "ORIGIN"]


def test_progress_is_shown_on_a_terminal_and_gone_at_the_end(program: Program) -> None:
    code, said = at_a_terminal(program, [sys.executable, ODD, "work"], 80)

    assert code == 0
    assert r"probing \x1b[31m[bold]" in said
    assert "3/3" in said
    assert said.endswith("done\n")


def test_progress_is_silent_without_a_terminal(program: Program) -> None:
    done = subprocess.run(
        [sys.executable, ODD, "work"],
        cwd=program.directory,
        env=program.variables(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert (done.stdout, done.stderr) == ("done\n", "")
