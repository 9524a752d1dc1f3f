"""The runbook: a section for every exit code and error code."""

import re
from pathlib import Path

import pytest

from wlctl.cli import topics
from wlctl.errors import ExitCode

RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"
TEXT = RUNBOOK.read_text(encoding="utf-8")
EXIT_CODES, _, ERROR_CODES = TEXT.partition("\n## Error codes\n")
SECTIONS = re.compile(r"^### (.+)\n\n((?:(?!^###? ).*\n)+)", re.MULTILINE)


def test_every_exit_code_has_its_section_in_order() -> None:
    titles = [title for title, _ in SECTIONS.findall(EXIT_CODES)]

    assert [int(title.partition(":")[0]) for title in titles] == sorted(ExitCode)


def test_every_error_code_has_its_section_in_order() -> None:
    titles = [title for title, _ in SECTIONS.findall(ERROR_CODES)]

    assert titles == [error.code for error in topics.coded()]


@pytest.mark.parametrize("error", topics.coded(), ids=lambda error: error.code)
def test_a_section_says_which_exit_code_a_script_sees(error: type) -> None:
    sections = dict(SECTIONS.findall(ERROR_CODES))

    assert sections[error.code].startswith(f"Exit {error.exit_code.value}. ")  # type: ignore[attr-defined]  # of WlctlError
