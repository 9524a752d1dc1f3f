"""The last stage before a program: it is given exactly its variables, in every shell."""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wlctl.host import script
from wlctl.package import words

SHELLS = {
    "dash": ("dash",),
    "bash": ("bash",),
    "bash called sh": ("{}/sh",),
    "busybox": ("busybox", "ash"),
}

PARTS = Path(script.__file__).parent / "actions"

LEAN = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}
"""What the root stages have."""

SHOW = ("/usr/bin/env", "-0")


@pytest.fixture(params=SHELLS, scope="module")
def shell(request: pytest.FixtureRequest) -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        Path(directory, "sh").symlink_to("/bin/bash")
        yield [word.format(directory) for word in SHELLS[request.param]]


KEEP = (PARTS / "environ.sh").read_text(
    encoding="ascii"
) + 'for one in "$@"; do keep_variable "$one" || exit 1; done; echo .'


def run(
    shell: Sequence[str], variables: Sequence[tuple[str, bytes]], *command: str, end: int = -1
) -> subprocess.CompletedProcess[bytes]:
    """Write the variables down as `init` does, and have the last stage read them."""
    assignments = [os.fsencode(name) + b"=" + value for name, value in variables]
    keep = [*map(os.fsencode, shell), b"-c", KEEP.encode(), b"keep", *assignments]
    written = subprocess.run(keep, env=LEAN, capture_output=True, check=True).stdout
    stage = [*shell, "-c", script.carried("LAST"), "last", *(command or SHOW)]
    argv = ["sh", "-c", 'exec 3<&0 </dev/null; exec "$@"', "outer", *stage]
    data = written if end < 0 else written[:end]
    return subprocess.run(argv, input=data, env=LEAN, capture_output=True, check=False)


def shown(variables: Sequence[tuple[str, bytes]]) -> set[bytes]:
    return {os.fsencode(name) + b"=" + value for name, value in dict(variables).items()}


def given_to(done: subprocess.CompletedProcess[bytes]) -> set[bytes]:
    assert (done.returncode, done.stderr) == (0, b"")
    return set(done.stdout.split(b"\0")) - {b""}


SHELLS_OWN = """
LD_LIBRARY_PATH PWD OLDPWD RANDOM SRANDOM SECONDS LINENO GROUPS DIRSTACK FUNCNAME HISTCMD
HISTFILE EPOCHSECONDS EPOCHREALTIME EPOCHTIME BASHPID BASH_COMMAND COMP_WORDBREAKS GLOBIGNORE
EXECIGNORE IGNOREEOF OPTARG OPTERR HOSTNAME COLUMNS LINES REPLY MAPFILE COPROC TIMEFORMAT
CHILD_MAX HISTSIZE TERM USER
"""

STAGES_OWN = "one line word words whole newline nl d d_o v_r v_b env text n"

SPECIAL = (*SHELLS_OWN.split(), *STAGES_OWN.split())
"""What means something to a shell, or to the stage and what is around it."""

VALUES = (
    b"",
    b"7",
    b"x y",
    b"(1 2)",
    b"$(touch /tmp/no) `id` \\n %41 '\"",
    b"\n\na\n",
    bytes(range(1, 256)),
)


def test_a_program_is_given_every_variable_that_means_something_to_a_shell(
    shell: list[str],
) -> None:
    for value in VALUES:
        variables = [(name, value) for name in SPECIAL]
        assert given_to(run(shell, variables)) == shown(variables)


def test_such_a_variable_changes_nothing_of_the_others(shell: list[str]) -> None:
    for name in SPECIAL:
        around = [("A", b"a = \n$x"), (name, b"1"), ("Z", b"z\n")]
        assert given_to(run(shell, around)) == shown(around)


def test_what_the_loader_goes_by_reaches_the_program(shell: list[str]) -> None:
    done = run(shell, [("LD_PRELOAD", b"/nonexistent.so")])

    assert done.stdout == b"LD_PRELOAD=/nonexistent.so\0"
    assert b"/nonexistent.so" in done.stderr


@settings(max_examples=15, deadline=None)
@given(
    variables=st.lists(
        st.tuples(
            st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True).filter(
                lambda name: not words.is_kept_by_shells(name) and not name.startswith("LD_")
            ),
            st.binary(max_size=40).map(lambda value: value.replace(b"\0", b"\n")),
        ),
        max_size=6,
    ),
    command=st.lists(st.text("a $'\"\n*=", max_size=5), max_size=3),
)
def test_any_bytes_arrive_as_they_are_the_last_of_a_name_counting(
    shell: list[str], variables: list[tuple[str, bytes]], command: list[str]
) -> None:
    assert given_to(run(shell, variables)) == shown(variables)
    said = run(shell, variables, "printf", "[%s]", *command).stdout
    assert said == "".join(f"[{word}]" for word in command or [""]).encode()


def test_variables_that_are_cut_off_anywhere_start_nothing(shell: list[str]) -> None:
    whole = b"=A=one\n+two\n.\n"
    for end in range(len(whole) - 1):
        done = run(shell, [("A", b"one\ntwo")], end=end)
        assert (done.returncode, done.stdout) == (125, b""), whole[:end]


def test_what_cannot_be_set_is_refused_before_and_nothing_else_needs_to_be(
    shell: list[str],
) -> None:
    """Every name that a shell on this machine knows of itself."""
    names: set[str] = set()
    for argv in SHELLS.values():
        if not argv[0].startswith("{"):
            done = subprocess.run([*argv, "-c", "set"], env={}, capture_output=True, check=True)
            said = [line.partition("=") for line in done.stdout.decode().splitlines()]
            names |= {name for name, equals, _ in said if equals and name.isidentifier()}
    known = subprocess.run(
        ["bash", "-c", "compgen -v"], env={}, capture_output=True, check=True, encoding="ascii"
    )
    names |= set(known.stdout.split())
    variables = [(name, b"7") for name in sorted(names) if not words.is_kept_by_shells(name)]
    assert len(variables) > 20

    assert given_to(run(shell, variables)) == shown(variables)


def test_a_program_that_is_not_there_ends_with_the_status_of_a_shell(shell: list[str]) -> None:
    assert run(shell, [("PATH", b"/nowhere")], "no-such-program").returncode == 127


def test_the_stage_forks_nothing(shell: list[str]) -> None:
    """A copy that may have one process starts all the same."""
    limited = ["setpriv", "--reuid=61100", "prlimit", "--nproc=1", *shell]

    assert given_to(run(limited, [("A", b"a\nb")])) == {b"A=a\nb"}
