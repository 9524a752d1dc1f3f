"""What all tests share: golden files, the real program, and how Hypothesis goes about it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.cli.program import Program, program_in

settings.register_profile("wlctl", deadline=None, print_blob=True)  # the machine may be busy
settings.register_profile("gate", settings.get_profile("wlctl"), derandomize=True)
settings.register_profile("explore", settings.get_profile("wlctl"), max_examples=2000)
settings.load_profile("wlctl")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write what the golden files should say; read the diff before you commit it",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Hold a text to its golden file, or with --update-golden the file to the text."""

    def hold(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return hold


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A program with an empty home, a working directory of its own, and no terminal."""
    return program_in(tmp_path)
