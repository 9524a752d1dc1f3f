"""What `--help` shows as an example, its command takes."""

import shlex
from typing import Any

import pytest
import typer

from wlctl.cli import tree
from wlctl.cli.app import root
from wlctl.cli.examples import EXAMPLES
from wlctl.cli.options import Session
from wlctl.cli.streams import Streams

COMMANDS = {" ".join(place.words) for place in tree.places() if not place.commands}


def test_every_command_has_an_example_and_nothing_else_has() -> None:
    assert set(EXAMPLES) == COMMANDS


@pytest.mark.parametrize(
    ("words", "line"),
    [pytest.param(words, line, id=line) for words, lines in EXAMPLES.items() for line in lines],
)
def test_an_example_is_taken_by_its_command(words: str, line: str) -> None:
    argv = shlex.split(line.partition(" > ")[0])[1:]
    session = Session(argv, Streams.of_this_process())
    command: Any = root()
    ctx: Any = typer.Context(command, info_name="wlctl", obj=session)
    for word in words.split():
        command = command.get_command(ctx, word)
        ctx = typer.Context(command, parent=ctx, info_name=word, obj=session)
        argv = argv[1:] if argv[:1] == [word] else argv  # `wlctl alerts` is `wlctl alerts ls`

    command.make_context(words, argv, obj=session)
