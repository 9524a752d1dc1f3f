"""`wlctl help`: what the words mean that output, files and exit codes use."""

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

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
wlctl help COMMAND      what a command does, and its options; as wlctl COMMAND --help"""


def help_(
    ctx: typer.Context,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]...", help="A topic, a code, or a command."),
    ] = None,
) -> None:
    """Explain exit codes, error codes, states and the other words of the output, and commands."""
    session = session_of(ctx)
    if session.given.get("output", Output.TABLE) not in (Output.TABLE, Output.WIDE):
        raise UsageError("help is text for people; it has no other form", hint="leave -o out")
    of_command = _of_command(ctx, words or ())
    if of_command:
        session.streams.data(f"{of_command}\n")
    for line in _answer(" ".join(words or ()), is_known=bool(of_command)):
        session.streams.data(f"{visible(line)}\n")


def _of_command(ctx: typer.Context, words: Sequence[str]) -> str:
    """Give the help of the command of these words; empty where there is none."""
    below: Any = ctx.parent
    for word in words:
        group = below.command
        command = group.get_command(below, word) if hasattr(group, "get_command") else None
        if command is None:
            return ""
        below = typer.Context(
            command, parent=below, info_name=word, terminal_width=ctx.terminal_width
        )
    return str(below.get_help()) if words else ""


def _answer(word: str, *, is_known: bool) -> Iterator[str]:
    if not word:
        yield from INTRODUCTION.splitlines()
        return
    every = topics.every()
    if word == "topics":
        yield from _listed(every)
    elif word == "exit-codes":
        yield from _exit_codes(every)
    else:
        yield from _explained(word, every, is_known=is_known)


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


def _explained(word: str, every: list[Topic], *, is_known: bool) -> Iterator[str]:
    meant = [topic for topic in every if topic.word == word]
    if not meant and not is_known:
        near = get_close_matches(word, [topic.word for topic in every], n=1, cutoff=0.75)
        hint = f"{f'did you mean {near[0]}? ' if near else ''}`wlctl help topics` lists all"
        raise UsageError(f"there is no help on {word}", hint=hint)
    for position, topic in enumerate(meant):
        if position or is_known:
            yield ""
        code = "" if topic.exit_code is None else f", exit code {topic.exit_code.value}"
        yield f"{topic.word} ({topic.kind}{code})"
        yield from (f"  {line}".rstrip() for line in topic.text.splitlines())
