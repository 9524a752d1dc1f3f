"""The real program, and the golden sessions held to it."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests.cli.program import Program

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A program with an empty home, a working directory of its own, and no terminal."""
    directory = tmp_path / "work"
    home = directory / "home"
    home.mkdir(parents=True)
    commands = tmp_path / "bin"
    commands.mkdir()
    shim = commands / "wlctl"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m wlctl "$@"\n')
    shim.chmod(0o755)
    environment = {
        "PATH": f"{commands}:{os.environ.get('PATH', os.defpath)}",
        "HOME": str(home),
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    return Program(directory, environment)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of every golden session; `# needs root` on its first line marks it so."""
    if "session" not in metafunc.fixturenames:
        return
    cases = []
    for path in sorted(GOLDEN.glob("*.txt")):
        needs = re.match(r"# needs (.*)", path.read_text(encoding="utf-8"))
        marks = [getattr(pytest.mark, name) for name in needs[1].split()] if needs else []
        cases.append(pytest.param(path, id=path.stem, marks=marks))
    metafunc.parametrize("session", cases)
