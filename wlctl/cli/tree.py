"""The tree of commands as values: what may stand where on a command line."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer

from wlctl.cli.options import Output

FILES = re.compile(r"FILE|PATH|DIR|PACKAGE")
"""A metavar with one of these words stands for something on this machine's disk."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a command.

    Attributes:
        names: As typed, e.g. `-o` and `--output`.
        valued: A value follows.
        choices: What the value may be, where that is a closed list.
        files: The value is a path.
    """

    names: tuple[str, ...]
    about: str
    valued: bool
    choices: tuple[str, ...]
    files: bool


@dataclass(frozen=True, slots=True)
class Place:
    """What may stand after some words of a command line.

    Attributes:
        words: The commands typed so far, without `wlctl`.
        commands: Name and one line of help.
        choices: What an argument may be, where that is a closed list.
        files: An argument is a path.
    """

    words: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]
    choices: tuple[str, ...]
    files: bool


def places() -> list[Place]:
    """Walk the whole tree of commands, parents first; this imports every command."""
    from wlctl.cli.app import root

    command = root()
    return list(_places(command, typer.Context(command, info_name="wlctl"), ()))


def _places(command: Any, ctx: typer.Context, words: tuple[str, ...]) -> Iterator[Place]:
    """Walk the tree of commands, parents first."""
    names = command.list_commands(ctx) if hasattr(command, "list_commands") else []
    members = [(name, command.get_command(ctx, name)) for name in names]
    members = [(name, member) for name, member in members if not member.hidden]
    params = [param for param in command.get_params(ctx) if not getattr(param, "hidden", False)]
    arguments = [param for param in params if param.param_type_name == "argument"]
    yield Place(
        words,
        tuple((name, member.get_short_help_str(limit=100)) for name, member in members),
        tuple(_option(param) for param in params if param.param_type_name == "option"),
        tuple(choice for param in arguments for choice in _choices(param)),
        any(_is_files(param) for param in arguments),
    )
    for name, member in members:
        below = typer.Context(member, parent=ctx, info_name=name)
        yield from _places(member, below, (*words, name))


def _option(param: Any) -> Option:
    return Option(
        names=(*param.opts, *param.secondary_opts),
        about=re.sub(r"\s*\[WLCTL_.*\]", "", param.help or "").removesuffix("."),
        valued=not param.is_flag and not param.count,
        choices=_choices(param),
        files=_is_files(param),
    )


def _choices(param: Any) -> tuple[str, ...]:
    if param.name == "output":
        return tuple(Output)
    choices = getattr(param.type, "choices", ())
    return tuple(str(getattr(choice, "value", choice)) for choice in choices)


def _is_files(param: Any) -> bool:
    return param.type.name in ("path", "filename") or bool(FILES.search(param.metavar or ""))
