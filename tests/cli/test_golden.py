"""The user's view: sessions of the real program, as files a person can read in a diff."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.program import Program, replayed


def test_a_session_goes_as_it_is_written(
    session: Path, program: Program, golden: Callable[[Path, str], None]
) -> None:
    golden(session, replayed(program, session.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("line", "written"),
    [
        pytest.param("echo data", "data\n[exit 0]", id="stdout stands as it is"),
        pytest.param("echo trouble >&2", "! trouble\n[exit 0]", id="stderr is marked"),
        pytest.param("exit 3", "[exit 3]", id="the exit code comes last"),
        pytest.param("pwd", "<here>\n[exit 0]", id="the directory has no name"),
        pytest.param("echo 2026-01-31T18:00:00.123Z", "<time>\n[exit 0]", id="times are redacted"),
        pytest.param("wlctl --version | wc -l", "1\n[exit 0]", id="wlctl is the program"),
    ],
)
def test_a_line_is_written_down(line: str, written: str, program: Program) -> None:
    assert replayed(program, f"$ {line}\n") == f"$ {line}\n{written}\n"


def test_comments_stay(program: Program) -> None:
    assert replayed(program, "# why\n$ true\nold\n[exit 9]\n") == "# why\n$ true\n[exit 0]\n"
