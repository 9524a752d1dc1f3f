"""How a command ends: one line on stderr, the documented exit code, and only data on stdout."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.program import Program

ODD = str(Path(__file__).with_name("odd.py"))


@pytest.fixture
def odd(program: Program) -> Program:
    """The program with the commands of `odd.py`."""
    return Program(program.directory, program.environment, (sys.executable, ODD))


@pytest.mark.parametrize(
    ("args", "code", "line"),
    [
        pytest.param(
            ["fail"],
            2,
            "wlctl: no node is named elm: see `wlctl node ls` [unknown-name]",
            id="what happened, what to do, and the code",
        ),
        pytest.param(
            ["bare"], 5, "wlctl: the connection ended [indeterminate]", id="no hint, no colon"
        ),
        pytest.param(
            ["fail", "--name", "a\x1b[2J\nb"],
            2,
            r"wlctl: no node is named a\x1b[2J\nb: see `wlctl node ls` [unknown-name]",
            id="a hostile name stays one harmless line",
        ),
        pytest.param(
            ["bug"],
            1,
            r"wlctl: this is a bug in wlctl: ValueError: seven\nof nine: "
            "run it again with --debug and report what that prints [internal-error]",
            id="a bug says that it is one",
        ),
        pytest.param(["answer"], 3, "", id="an answer has its code and no line"),
        pytest.param(["leave"], 8, "", id="however it is given"),
        pytest.param(["interrupt"], 130, "wlctl: interrupted [interrupted]", id="Ctrl-C"),
        pytest.param(
            ["placee"],
            2,
            "wlctl: there is no command wlctl placee: did you mean `wlctl place`? [usage]",
            id="a command misspelt",
        ),
        pytest.param(
            ["config", "showw"],
            2,
            "wlctl: there is no command wlctl config showw: did you mean `wlctl config show`? "
            "[usage]",
            id="in a group",
        ),
        pytest.param(
            ["\x1b[31m"],
            2,
            r"wlctl: there is no command wlctl \x1b[31m: see `wlctl --help` [usage]",
            id="a command like nothing",
        ),
        pytest.param(
            ["fail", "--nmae"],
            2,
            "wlctl: no such option: --nmae: did you mean --name? [usage]",
            id="an option misspelt",
        ),
        pytest.param(
            ["--versoin"],
            2,
            "wlctl: no such option: --versoin: did you mean --version? [usage]",
            id="of the program itself",
        ),
        pytest.param(
            ["much", "--lines", "many"],
            2,
            "wlctl: invalid value for '--lines': 'many' is not a whole number: "
            "see `wlctl much --help` [usage]",
            id="a value of the wrong kind",
        ),
        pytest.param(
            ["say"],
            2,
            "wlctl: missing argument 'WORD': see `wlctl say --help` [usage]",
            id="an argument missing",
        ),
        pytest.param(
            ["bare", "more"],
            2,
            "wlctl: got unexpected extra argument(s) (more): see `wlctl bare --help` [usage]",
            id="an argument too many",
        ),
        pytest.param(
            ["fail", "--name"],
            2,
            "wlctl: option '--name' requires an argument: see `wlctl fail --help` [usage]",
            id="a value missing",
        ),
        pytest.param(
            ["-o", "yaml", "bug"],
            2,
            "wlctl: --output cannot be 'yaml': say one of table, wide, json, jsonl, name [usage]",
            id="a format nobody knows, met before anything is done",
        ),
        pytest.param(
            ["ask"],
            2,
            "wlctl: Remove elm? Nobody is here to answer: pass --yes, or set WLCTL_YES=1 "
            "[needs-terminal]",
            id="a question and no terminal",
        ),
    ],
)
def test_a_command_ends_with(args: list[str], code: int, line: str, odd: Program) -> None:
    done = odd.run(*args)

    assert done.stdout == ""
    assert done.stderr.splitlines() == ([line] if line else [])
    assert done.returncode == code


@pytest.mark.parametrize(
    ("args", "listed"),
    [
        pytest.param([], "What may run:", id="wlctl"),
        pytest.param(["config"], "Commands:", id="a group"),
    ],
)
def test_nothing_asked_for_is_a_usage_error_with_the_help_on_stderr(
    args: list[str], listed: str, program: Program
) -> None:
    done = program.run(*args)

    assert done.stdout == ""
    assert listed in done.stderr
    assert done.returncode == 2


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("path", [[], ["config"], ["config", "show"]], ids=["", "group", "command"])
def test_help_that_was_asked_for_is_data(path: list[str], flag: str, program: Program) -> None:
    done = program.run(*path, flag)

    assert done.stdout.startswith(" ".join(["Usage: wlctl", *path]))
    assert "Options of every command:" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_help_works_whatever_the_configuration_says(program: Program) -> None:
    (program.directory / "wlctl.toml").write_text("nonsense")

    assert program.run("config", "show").returncode == 2
    assert program.run("config", "show", "--help").returncode == 0
    assert program.run("help", "invalid-file").returncode == 0
    assert program.run("--version").returncode == 0


@pytest.mark.parametrize("how", [["--debug"], []], ids=["the flag", "the variable"])
def test_a_traceback_is_shown_only_when_it_is_asked_for(how: list[str], odd: Program) -> None:
    asked = odd.run(*how, "fail", environment={} if how else {"WLCTL_DEBUG": "1"})

    assert "Traceback" not in odd.run("fail").stderr
    assert "Traceback" in asked.stderr
    assert asked.stderr.splitlines()[-1] == odd.run("fail").stderr.splitlines()[0]
    assert (asked.returncode, asked.stdout) == (2, "")


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["-o", "json", "session"], id="before the command"),
        pytest.param(["session", "-o", "json"], id="after it"),
        pytest.param(["session", "--output=json"], id="in one word"),
        pytest.param(["-o", "table", "session", "-o", "json"], id="twice: the last one counts"),
    ],
)
def test_a_global_option_may_stand(args: list[str], odd: Program) -> None:
    done = odd.run(*args)

    assert json.loads(done.stdout)["origin"] == "--output"


def test_a_global_option_may_stand_between_group_and_command(program: Program) -> None:
    assert program.run("config", "-o", "name", "show").stdout.startswith("db\n")


def test_every_global_option_has_a_twin(odd: Program) -> None:
    by_flag = odd.run(
        "session", "-o", "json", "--db", "/l", "--yes", "--debug", "-m", "why", "--no-color"
    )
    by_twin = odd.run(
        "session",
        environment={
            "WLCTL_OUTPUT": "json",
            "WLCTL_DB": "/l",
            "WLCTL_YES": "1",
            "WLCTL_DEBUG": "1",
            "WLCTL_MESSAGE": "why",
            "WLCTL_NO_COLOR": "1",
        },
    )

    said = json.loads(by_flag.stdout)
    assert (said["db"], said["yes"], said["debug"], said["message"]) == ("/l", True, True, "why")
    twin = json.loads(by_twin.stdout)
    assert {**twin, "command_line": "", "origin": ""} == {**said, "command_line": "", "origin": ""}


def test_a_flag_is_nearer_than_its_twin(odd: Program) -> None:
    twins = {"WLCTL_YES": "0", "WLCTL_DEBUG": "0", "WLCTL_MESSAGE": "no"}

    done = odd.run("session", "-o", "json", "--yes", "--debug", "-m", "why", environment=twins)

    said = json.loads(done.stdout)
    assert (said["yes"], said["debug"], said["message"]) == (True, True, "why")


def test_a_yes_that_is_neither_yes_nor_no_is_refused_before_anything_is_done(odd: Program) -> None:
    done = odd.run("bug", environment={"WLCTL_YES": "perhaps"})

    assert (
        done.stderr == "wlctl: WLCTL_YES cannot be 'perhaps': say 1 or 0, true or false [usage]\n"
    )
    assert done.returncode == 2


def test_an_argument_that_is_no_text_is_refused(program: Program) -> None:
    done = program.run("config", "show", "--db", "\udcff")

    assert done.returncode == 2
    assert done.stderr.startswith(r"wlctl: argument 4 is not valid text: \udcff")


@pytest.mark.parametrize("code", [0, 5])
def test_a_reader_who_leaves_early_changes_nothing_but_the_output(code: int, odd: Program) -> None:
    process = subprocess.Popen(
        [sys.executable, ODD, "much", "-o", "jsonl", "--code", str(code)],
        cwd=odd.directory,
        env=odd.variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b'"n": "0"' in process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()

    assert (process.returncode, said) == (code, b"")


def test_help_to_a_reader_who_is_gone_is_no_failure(program: Program) -> None:
    done = program.sh("(sleep 0.2; wlctl --help; echo $? >&2) | true")

    assert done.stderr == "0\n"


@pytest.mark.parametrize(
    ("args", "code"),
    [
        pytest.param("much --lines 3", 1, id="what was buffered"),
        pytest.param("much -o jsonl", 1, id="more than is buffered"),
        pytest.param("much --lines 3 --code 5", 5, id="the command's own trouble comes first"),
        pytest.param("--help", 1, id="help"),
        pytest.param("--version", 1, id="the version"),
    ],
)
def test_a_full_disk_behind_stdout_is_one_line_and_a_failure(
    args: str, code: int, odd: Program
) -> None:
    done = odd.sh(f"{sys.executable} {ODD} {args} > /dev/full")

    assert done.stderr == (
        "wlctl: the answer could not be written: No space left on device: what the command did is "
        "done; send stdout elsewhere and ask again [output-failed]\n"
    )
    assert done.returncode == code


def test_a_closed_stdout_is_as_good_as_one_that_nobody_reads(odd: Program) -> None:
    done = odd.sh(f"{sys.executable} {ODD} much >&-")

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("trouble", ["2>/dev/full", "2>&-"])
def test_a_stderr_that_takes_nothing_does_not_change_the_exit_code(
    trouble: str, odd: Program
) -> None:
    assert odd.sh(f"{sys.executable} {ODD} fail {trouble}").returncode == 2


def test_all_three_closed_is_no_trouble_either(odd: Program) -> None:
    assert odd.sh(f"{sys.executable} {ODD} say x <&- >&- 2>&-").returncode == 0


@pytest.mark.parametrize(
    ("locale", "said"),
    [
        pytest.param({"LC_ALL": "C.UTF-8"}, "Zoë \\u202e", id="UTF-8"),
        pytest.param({"LC_ALL": "C"}, "Zoë \\u202e", id="C, which Python reads as UTF-8"),
        pytest.param({"PYTHONIOENCODING": "ascii"}, "Zo\\xeb \\u202e", id="ASCII"),
        pytest.param({"PYTHONIOENCODING": "latin-1"}, "Zo\\xeb \\u202e", id="Latin-1"),
    ],
)
def test_a_locale_without_the_character_gets_it_escaped(
    locale: dict[str, str], said: str, odd: Program
) -> None:
    arguments = ["say", "Zoë \u202e"]
    done = subprocess.run(
        [sys.executable, ODD, *arguments],
        env={**odd.variables(), **locale},
        cwd=odd.directory,
        capture_output=True,
        check=False,
    )

    encoding = "latin-1" if locale.get("PYTHONIOENCODING") == "latin-1" else "utf-8"
    shown = said.replace("\\xeb", "ë") if encoding == "latin-1" else said
    assert done.stdout.decode(encoding) == f"{shown}\n"
    assert done.stderr.decode(encoding) == f"wlctl: {shown}\n"
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("typed", "code", "stdout"),
    [
        pytest.param("y\n", 0, "removed\n", id="yes"),
        pytest.param("YES\n", 0, "removed\n", id="yes in capitals"),
        pytest.param("n\n", 1, "", id="no"),
        pytest.param("\n", 1, "", id="nothing"),
        pytest.param("\x04", 1, "", id="the end of input"),
    ],
)
def test_a_question_at_a_terminal_is_answered_by(
    typed: str, code: int, stdout: str, odd: Program
) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, ODD, "ask"],
        cwd=odd.directory,
        env=odd.variables(),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    with process:
        os.close(theirs)
        assert os.read(ours, 100) == b"Remove elm? [y/N] "
        os.write(ours, typed.encode())
        assert process.stdout is not None
        said = process.stdout.read()
    os.close(ours)

    assert (process.returncode, said) == (code, stdout)


@pytest.mark.parametrize("how", [["--yes"], []], ids=["the flag", "the variable"])
def test_a_question_is_not_asked_when_it_is_answered_beforehand(
    how: list[str], odd: Program
) -> None:
    done = odd.run("ask", *how, environment={} if how else {"WLCTL_YES": "1"})

    assert (done.returncode, done.stdout, done.stderr) == (0, "removed\n", "")


def test_the_parent_sees_an_interrupted_import_as_interrupted_too(program: Program) -> None:
    """Ctrl-C may come before anything of ours runs."""
    code = (
        "import sys, os, signal\n"
        "class Early:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'wlctl.cli.app': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Early())\n"
        "import wlctl.__main__ as m\n"
        "sys.exit(m.main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=program.variables(),
        cwd=program.directory,
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, b"")
