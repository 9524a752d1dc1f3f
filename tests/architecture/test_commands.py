"""Every command is explained, takes the global options, and is loaded only when it runs."""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.cli.program import Program
from wlctl.cli import tree
from wlctl.cli.app import COMMANDS, root
from wlctl.cli.options import GLOBAL_OPTIONS
from wlctl.cli.tree import Place

PLACES = tree.places()
ROOT = Path(__file__).parents[2]
HEAVY = {
    *("sqlalchemy", "alembic", "paramiko", "cryptography", "rich", "pydantic", "rfc8785"),
    *("sqlite3", "email", "http", "asyncio", "ssl", "platformdirs", "tomllib"),
}


def named(place: Place) -> str:
    return " ".join(["wlctl", *place.words])


def command_at(place: Place) -> Any:
    command: Any = root()
    for word in place.words:
        command = command.get_command(typer.Context(command), word)
    return command


each_place = pytest.mark.parametrize("place", PLACES, ids=named)


@each_place
def test_a_command_has_help_that_is_a_sentence(place: Place) -> None:
    text = command_at(place).help

    assert text
    assert text.partition("\n")[0].rstrip().endswith((".", ",", ":")) or "\n" in text


@each_place
def test_every_option_and_argument_has_help(place: Place) -> None:
    unexplained = [param.name for param in command_at(place).params if not param.help]

    assert unexplained == []


@each_place
def test_no_option_hides_a_global_one(place: Place) -> None:
    taken = {name for option in GLOBAL_OPTIONS for name in option.opts} | {"-h", "--help"}
    own = {name for param in command_at(place).params for name in param.opts if "-" in name}

    assert not own & taken


def test_every_option_is_in_the_guide() -> None:
    texts = [path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md")]
    told = {word for text in texts for word in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", text)}
    untold = {
        f"{named(place)} {'/'.join(option.names)}"
        for place in PLACES
        for option in place.options
        if not told & set(option.names)
    }

    assert untold == set()


TWO_WAYS = {"-f"}
"""What other tools call so, too: `logs -f` and `add -f FILE`."""


def test_an_option_takes_a_value_everywhere_or_nowhere() -> None:
    """Whoever reads a line tells values from arguments by it."""
    ways: dict[str, set[bool]] = defaultdict(set)
    for place in PLACES:
        for option in place.options:
            for name in option.names:
                ways[name].add(option.valued)

    assert {name for name, ways_taken in ways.items() if len(ways_taken) > 1} == TWO_WAYS


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_listed_with_one_short_line(name: str) -> None:
    about = COMMANDS[name].about

    assert about.endswith(".")
    assert len(about) <= 60


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_nothing_heavy_is_loaded_for(option: str, program: Program) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "wlctl", option],
        cwd=program.directory,
        env=program.variables(),
        capture_output=True,
        text=True,
        check=True,
    )

    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    commands = {lazy.module for lazy in COMMANDS.values()}
    assert "typer" in loaded
    assert not {name.partition(".")[0] for name in loaded} & HEAVY
    assert not loaded & commands
    assert "wlctl.config" not in loaded
