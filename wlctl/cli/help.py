"""`wlctl help`: what the words mean that output, files and exit codes use."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Annotated

import typer

from wlctl.cli import topics
from wlctl.cli.escape import visible
from wlctl.cli.options import Output, session_of
from wlctl.cli.topics import Topic
from wlctl.errors import UsageError

INTRODUCTION = """\
wlctl help exit-codes   what each exit code means
wlctl help topics       every word that has an explanation
wlctl help WORD         an error code, state, constraint or another word of the output
wlctl COMMAND --help    the options of a command"""


def help_(
    ctx: typer.Context,
    word: Annotated[
        str, typer.Argument(metavar="[WORD]", help="A topic or code.", show_default=False)
    ] = "",
) -> None:
    """Explain exit codes, error codes, states and the other words of the output."""
    session = session_of(ctx)
    if session.given.get("output", Output.TABLE) not in (Output.TABLE, Output.WIDE):
        raise UsageError("help is text for people; it has no other form", hint="leave -o out")
    for line in _answer(word):
        session.streams.data(f"{visible(line)}\n")


def _answer(word: str) -> Iterator[str]:
    if not word:
        yield from INTRODUCTION.splitlines()
        return
    every = topics.every()
    if word == "topics":
        yield from _listed(every)
    elif word == "exit-codes":
        yield from _exit_codes(every)
    else:
        yield from _explained(word, every)


def _exit_codes(every: Iterable[Topic]) -> Iterator[str]:
    for topic in every:
        if topic.kind == "exit code":
            yield f"{topic.word:>3}  {topic.text}"


def _listed(every: list[Topic]) -> Iterator[str]:
    kinds = dict.fromkeys(topic.kind for topic in every)
    for kind in kinds:
        yield f"{kind}:"
        for topic in every:
            if topic.kind == kind:
                yield f"  {topic.word:<24}{topic.text.partition(chr(10))[0]}".rstrip()


def _explained(word: str, every: list[Topic]) -> Iterator[str]:
    meant = [topic for topic in every if topic.word == word]
    if not meant:
        near = get_close_matches(word, [topic.word for topic in every], n=1)
        hint = f"did you mean {near[0]}?" if near else "`wlctl help topics` lists all"
        raise UsageError(f"there is no help on {word}", hint=hint)
    for position, topic in enumerate(meant):
        if position:
            yield ""
        code = "" if topic.exit_code is None else f", exit code {topic.exit_code.value}"
        yield f"{topic.word} ({topic.kind}{code})"
        yield from (f"  {line}".rstrip() for line in topic.text.splitlines())
