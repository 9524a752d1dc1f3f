"""The action texts as texts: shellcheck, and the parts of them that can be asked alone."""

import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wlctl.host import script

SHELLS = [("dash",), ("bash",), ("busybox", "ash")]

PARTS = Path(script.__file__).parent / "actions"

ALL = (*script.ACTIONS, *script.ADMINISTRATIVE)

NOT_ASKED = (
    "SC2329",  # a shared part has functions that one of its actions does not call
    "SC2317",  # and code that one does not reach
    "SC2034",  # and variables that one does not read
    "SC2015",  # `A && B || refuse`: that either of them failed is what is meant
    "SC2016",  # programs that travel as constants stand in single quotes
)


def _shellcheck() -> str:
    beside = Path(__import__("sys").executable).parent / "shellcheck"
    return str(beside) if beside.exists() else shutil.which("shellcheck") or "shellcheck"


@pytest.mark.parametrize("action", ALL)
def test_shellcheck_finds_nothing_in(action: str, tmp_path: Path) -> None:
    whole = tmp_path / f"{action}.sh"
    whole.write_text(_unfolded(action), encoding="ascii")

    _check(whole)


def _unfolded(action: str) -> str:
    """An action as what it does: what it carries is left out, but for what of it it runs itself."""
    text = script.text(action).decode("ascii")
    text = re.sub(r"^(SUP|AGAIN|KIT)='(?:[^']|'\\'')*'$", r"\1=-", text, flags=re.MULTILINE)
    before, runs, after = text.partition('\neval "$KIT"\n')
    return f"{before}\n{script.kit()}\n{after}" if runs else text


@pytest.mark.parametrize("program", sorted(script.CARRIED))
def test_shellcheck_finds_nothing_in_what_stays_on_the_node(program: str, tmp_path: Path) -> None:
    whole = tmp_path / "program.sh"
    whole.write_text(script.carried(program), encoding="ascii")

    _check(whole)


def test_shellcheck_finds_nothing_in_what_a_supervisor_begins_a_run_by(tmp_path: Path) -> None:
    whole = tmp_path / "restart.sh"
    whole.write_text(script.restart(), encoding="ascii")

    _check(whole)


def test_shellcheck_finds_nothing_in_the_doorkeeper(tmp_path: Path) -> None:
    whole = tmp_path / "doorkeeper.sh"
    whole.write_text(script.doorkeeper(), encoding="ascii")

    _check(whole)


def test_every_part_travels_with_some_action() -> None:
    travelling = b"".join(script.text(action) for action in ALL)
    travelling += "".join(script.carried(name) for name in script.CARRIED).encode()
    travelling += (script.doorkeeper() + script.restart()).encode()

    for part in PARTS.glob("*.sh"):
        assert part.read_bytes().rstrip(b"\n") in travelling, part.name


def _check(path: Path) -> None:
    argv = [_shellcheck(), "-s", "sh", "-e", ",".join(NOT_ASKED), str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("shell", SHELLS, ids=lambda argv: argv[0])
@pytest.mark.parametrize("action", ALL)
def test_every_shell_can_parse(action: str, shell: tuple[str, ...]) -> None:
    done = subprocess.run(
        [*shell, "-n"], input=script.text(action), capture_output=True, check=False
    )

    assert (done.returncode, done.stderr) == (0, b"")


def _asks(shell: tuple[str, ...], text: str, data: bytes) -> bytes:
    """Run one function of the codec over lines, and return what it prints."""
    codec = (PARTS / "codec.sh").read_text("ascii")
    program = f"LC_ALL=C\nset -fu\n{codec}\n{text}"
    done = subprocess.run([*shell, "-c", program], input=data, capture_output=True, check=True)
    return done.stdout


words = st.lists(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12),
    min_size=1,
    max_size=20,
)


@pytest.mark.parametrize("shell", SHELLS, ids=lambda argv: argv[0])
@settings(max_examples=15, deadline=None)
@given(texts=words)
def test_what_python_encodes_every_shell_decodes(shell: tuple[str, ...], texts: list[str]) -> None:
    lines = "".join(f"{quote(text, safe='/:=,@+')}\n" for text in texts).encode()

    got = _asks(shell, 'while IFS= read -r l; do dec "$l" && printf \'%s\\0\' "$d"; done', lines)

    assert got.decode().split("\0")[:-1] == texts


@pytest.mark.parametrize("shell", SHELLS, ids=lambda argv: argv[0])
@settings(max_examples=15, deadline=None)
@given(texts=words)
def test_what_a_shell_encodes_python_decodes(shell: tuple[str, ...], texts: list[str]) -> None:
    rows = [text.replace("\n", "\r") for text in texts]  # a line of input is one text

    got = _asks(
        shell, 'while IFS= read -r l; do enc "$l"; echo "$e"; done', "\n".join([*rows, ""]).encode()
    )

    lines = got.decode("ascii").split("\n")[:-1]
    assert [unquote_to_bytes(line).decode() for line in lines] == rows


@pytest.mark.parametrize("shell", SHELLS, ids=lambda argv: argv[0])
@pytest.mark.parametrize("text", ["%", "%4", "%zz", "%00", "a%", "%%41", "%4%41", "%-1"])
def test_an_escape_that_is_none_is_not_decoded(shell: tuple[str, ...], text: str) -> None:
    got = _asks(shell, 'IFS= read -r l; dec "$l" && echo yes || echo no', f"{text}\n".encode())

    assert got == b"no\n"


@pytest.mark.parametrize("shell", SHELLS, ids=lambda argv: argv[0])
@settings(max_examples=10, deadline=None)
@given(numbers=st.sets(st.integers(1, 10**15 - 1).filter(lambda number: number != 99), max_size=12))
def test_the_runs_of_an_instance_are_listed_ascending_and_nothing_else_is(
    shell: tuple[str, ...], numbers: set[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("an instance")
    for name in (*(f"g{number}" for number in numbers), "g0", "g07", "g", "g1x", "gx1", "data"):
        (directory / name).mkdir()
    (directory / "g99").touch()
    process = (PARTS / "process.sh").read_text("ascii")

    got = _asks(shell, f"nl='\n'\n{process}\ngenerations '{directory}'; echo \"$gens\"", b"")

    assert got.decode("ascii").split() == [str(number) for number in sorted(numbers)]


@pytest.mark.root
@pytest.mark.parametrize("shell", SHELLS, ids=lambda argv: argv[0])
@pytest.mark.parametrize("most", [10_000_000, 20], ids=["at once", "in parts"])
def test_the_processes_of_a_uid_are_counted_however_many_others_there_are(
    shell: tuple[str, ...], most: int
) -> None:
    """A program takes words for 70 000 processes; `grep` is made to take fewer."""
    parts = "".join((PARTS / f"{part}.sh").read_text("ascii") for part in ("process", "end"))
    few = f'grep() {{ [ "$#" -le {most} ] && command grep "$@"; }}'
    program = f"nl='\n'\ninstallation=i iid=i gen=1\n{parts}\n{few}\nuid_left 54321; echo $left"
    with subprocess.Popen(["setpriv", "--reuid=54321", "--clear-groups", "sleep", "100"]) as other:
        try:
            status = Path(f"/proc/{other.pid}/status")
            while "\nUid:\t54321\t" not in status.read_text("ascii"):
                assert other.poll() is None
            assert _asks(shell, program, b"") == b"1\n"
        finally:
            other.kill()
