"""Every golden session is a test."""

import re
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


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
