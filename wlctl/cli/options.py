"""What every command takes: the global options, and the session they end in."""

import os
import shlex
import sys
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property, partial
from typing import TYPE_CHECKING

import typer
from typer.core import TyperOption

from wlctl.cli.escape import visible
from wlctl.cli.streams import Streams
from wlctl.errors import Declined, NeedsTerminal, UsageError

if TYPE_CHECKING:
    from wlctl.config import Settings
    from wlctl.flows.runtime import Passwords, Runtime

ELLIPSIS = "…"
CONCEALED = frozenset({"--env", "--arg", "--db", "--secret"})
"""Options whose values are never recorded."""

USE_AN_AGENT = "let ssh-agent keep the key: ssh-add FILE, then --agent FINGERPRINT"
USE_A_KEY = "let wlctl's key in there, and leave out --ask-pass"


class Output(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    NAME = "name"


class Session:
    """One run of the program: what was asked for, where answers go, and what commands share.

    Attributes:
        given: What the command line said, by global option; the innermost one wins.
    """

    def __init__(self, argv: Sequence[str], streams: Streams) -> None:
        self.argv = tuple(argv)
        self.streams = streams
        self.given: dict[str, object] = {}

    @cached_property
    def settings(self) -> "Settings":
        """Every setting with its origin.

        Raises:
            InvalidFile, NoHome, UsageError: As `config.load` has them.
        """
        from wlctl import config

        flags = {key: said for key, said in self.given.items() if key in config.SETTINGS}
        return config.load(flags, os.environ, config.Places.of_this_process())

    @property
    def output(self) -> Output:
        """The format of the answer."""
        return Output(self.settings.output)

    @property
    def color(self) -> bool:
        """Answer whether stdout may be coloured."""
        dumb = os.environ.get("TERM") == "dumb"
        return self.streams.out_is_terminal and not self.settings.no_color and not dumb

    @property
    def debug(self) -> bool:
        """Answer whether tracebacks are wanted; never fails, since failures ask it."""
        try:
            return self._switched_on("debug")
        except UsageError:
            return True

    @property
    def yes(self) -> bool:
        """Answer whether every question is answered with yes.

        Raises:
            UsageError: WLCTL_YES is neither yes nor no.
        """
        return self._switched_on("yes")

    def _switched_on(self, name: str) -> bool:
        said = os.environ.get(f"WLCTL_{name.upper()}", "")
        if name in self.given or not said:
            return name in self.given
        from wlctl.config import values

        try:
            return values.boolean(said)
        except ValueError as error:
            raise UsageError(f"WLCTL_{name.upper()} cannot be {said!r}", hint=str(error)) from None

    @property
    def message(self) -> str:
        """The operator's words to keep in the chain, on one line; or empty."""
        said = self.given.get("message") or os.environ.get("WLCTL_MESSAGE", "")
        return visible(str(said))

    @cached_property
    def command_line(self) -> str:
        """The command as it is recorded: without values of environment, arguments and secrets."""
        return recorded(self.argv)

    @cached_property
    def runtime(self) -> "Runtime":
        """Everything flows need; made when a command first asks for it."""
        from wlctl.flows import runtime

        return runtime.build(self.settings, command=self.command_line, message=self.message)

    def close(self) -> None:
        """Let go of what the command has opened."""
        if "runtime" in vars(self):
            self.runtime.close()

    def confirm(self, question: str, *, flag: str = "--yes") -> None:
        """Go on only with a yes: by flag, by WLCTL_YES, or typed at a terminal.

        Raises:
            Declined: The answer was another one.
            NeedsTerminal: Nobody is there to answer.
        """
        if self.yes:
            return
        if not self._is_attended:
            raise NeedsTerminal(
                f"{question} Nobody is here to answer", hint=f"pass {flag}, or set WLCTL_YES=1"
            )
        if self.streams.ask(f"{question} [y/N]").strip().lower() not in ("y", "yes"):
            raise Declined("not confirmed, so nothing was done")

    def secret(self, question: str, *, hint: str = USE_AN_AGENT) -> str:
        """Let somebody at the terminal type what is not shown.

        Args:
            hint: What else there is to do.

        Raises:
            NeedsTerminal: Nobody is there to type it.
        """
        if not self._is_attended:
            raise NeedsTerminal(f"{question} nobody is here to type it", hint=hint)
        import getpass

        try:
            return getpass.getpass(f"{visible(question)} ", stream=self.streams.err)
        except EOFError:
            raise Declined("nothing was typed, so nothing was done") from None

    def passwords(self) -> "Passwords":
        """Give what asks for the password of a login.

        Raises:
            NeedsTerminal: Nobody is there to type it; that is said before anything is done.
        """
        if not self._is_attended:
            raise NeedsTerminal("--ask-pass: nobody is here to type a password", hint=USE_A_KEY)
        return partial(self.secret, hint=USE_A_KEY)

    @property
    def _is_attended(self) -> bool:
        """Answer whether somebody can be asked."""
        return bool(sys.stdin and sys.stdin.isatty() and self.streams.err_is_terminal)

    def note(self, text: str) -> None:
        """Say one line to whoever watches."""
        self.streams.note(text)

    def check(self) -> None:
        """Meet every mistake in options, environment and files before anything is done."""
        _ = self.settings, self.yes


def session_of(ctx: typer.Context) -> Session:
    """Give the session a command runs in."""
    session = ctx.obj
    assert isinstance(session, Session)
    return session


def recorded(argv: Sequence[str]) -> str:
    """Write a command line down with the values of environment, arguments and secrets replaced."""
    words = ["wlctl"]
    rest = iter(argv)
    for word in rest:
        name, equals, _ = word.partition("=")
        if word == "--":
            words += ["--", *(ELLIPSIS for _ in rest)]
        elif name in CONCEALED and equals:
            words.append(f"{name}={ELLIPSIS}")
        elif name in CONCEALED:
            words += [name, *(ELLIPSIS for _ in [next(rest, None)] if _ is not None)]
        else:
            words.append(shlex.quote(visible(word)))
    return " ".join(words)


def _keep(ctx: typer.Context, param: TyperOption, value: object) -> None:
    """Remember a global option; wherever on the line it stood."""
    if value not in (None, False) and param.name is not None:
        session_of(ctx).given[param.name] = value


def _option(*names: str, about: str, metavar: str | None = None) -> TyperOption:
    return TyperOption(
        param_decls=list(names),
        help=about,
        metavar=metavar,
        is_flag=metavar is None,
        default=None,
        callback=_keep,
        expose_value=False,
    )


GLOBAL_OPTIONS = (
    _option("--db", metavar="URL|PATH", about="The ledger. [WLCTL_DB]"),
    _option(
        "-o",
        "--output",
        metavar="FORMAT",
        about="One of table, wide, json, jsonl, name. [WLCTL_OUTPUT]",
    ),
    _option("-m", "--message", metavar="TEXT", about="Keep TEXT in the chain. [WLCTL_MESSAGE]"),
    _option("--yes", about="Answer every question with yes. [WLCTL_YES]"),
    _option("--no-color", about="No colour. [WLCTL_NO_COLOR, NO_COLOR]"),
    _option("--debug", about="Show a traceback with an error. [WLCTL_DEBUG]"),
)
