"""The runbook: a section for every exit code and error code, and no command that is not there."""

import re
from pathlib import Path

import pytest

from wlctl.cli import topics, tree
from wlctl.errors import ExitCode

RUNBOOK = Path(__file__).parents[2] / "docs" / "runbook.md"
TEXT = RUNBOOK.read_text(encoding="utf-8")
EXIT_CODES, _, ERROR_CODES = TEXT.partition("\n## Error codes\n")
SECTIONS = re.compile(r"^### (.+)\n\n((?:(?!^###? ).*\n)+)", re.MULTILINE)
COMMANDS = {place.words for place in tree.places()}


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


def commands_named(text: str) -> list[str]:
    return re.findall(r"`wlctl ([a-z][^`]*)`", text)


@pytest.mark.parametrize("line", sorted(set(commands_named(TEXT))))
def test_a_command_that_is_named_is_there(line: str) -> None:
    words: tuple[str, ...] = ()
    for word in line.split():
        if (*words, word) not in COMMANDS:
            break
        words = (*words, word)

    place = next(place for place in tree.places() if place.words == words)
    assert words, f"there is no `wlctl {line}`"
    assert not place.commands, f"`wlctl {line}` stops at a group"
    flags = {name for option in place.options for name in option.names}
    assert set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", line)) <= flags
