"""How commands are declared: each takes the global options, and is loaded only when it runs."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, fields
from difflib import get_close_matches
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature
from typing import Any, NamedTuple, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException

from wlctl.cli.escape import visible
from wlctl.cli.options import GLOBAL_OPTIONS, session_of
from wlctl.errors import UsageError

SENTENCE_MAX = 200
"""More than any first sentence of a help has."""

MAY_BE_EMPTY = frozenset({"args", "message"})
"""What is passed on or kept as it is."""

CONTEXT = {"help_option_names": ["-h", "--help"]}


def _show_help(ctx: typer.Context, _param: TyperOption, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        session_of(ctx).streams.data(f"{ctx.get_help()}\n")
        ctx.exit()


_HELP = TyperOption(
    param_decls=["-h", "--help"],
    help="Show this text.",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_help,
)


class Command(TyperCommand):
    """A command that takes the global options and meets their mistakes before it does anything."""

    checks_settings = True

    def __init__(self, *args: Any, **rest: Any) -> None:
        super().__init__(*args, **rest)
        for param in self.params:
            # typer 0.27 makes `--TIER` of an option `tier` whose metavar is TIER.
            param.opts = [opt.lower() if opt.startswith("--") else opt for opt in param.opts]
            if param.metavar is None:
                param.metavar = _metavar(param)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Write `NAME` for an argument and `[NAME]` for one that may be left out."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece[1:-1] if piece.startswith("{") else piece for piece in pieces]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse, and let every mistake say which command it was made in."""
        with _placed_in(ctx):
            self._require_words(ctx, args)
            return super().parse_args(ctx, args)

    def _require_words(self, ctx: Any, args: list[str]) -> None:
        """Refuse a name or value that is empty, as a shell variable is that nobody has set.

        It is no beginning of every id, no working directory and no option left out.
        """
        if ctx.resilient_parsing or not any(word == "" or word.endswith("=") for word in args):
            return
        given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
        for param in self.get_params(ctx):
            said = given.get(param.name)
            words = said if isinstance(said, list | tuple) else (said,)
            if param.name not in MAY_BE_EMPTY and "" in words:
                is_option = param.param_type_name == "option"
                name = param.opts[-1] if is_option else param.metavar.strip("[]…")
                raise UsageError(
                    f"{name} is given an empty word", hint="is a shell variable not set?"
                )

    def get_params(self, ctx: Any) -> list[Any]:
        """Add the global options to the command's own."""
        return [*self.params, _HELP, *GLOBAL_OPTIONS]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List the command's own options first and apart, and show how it is typed."""
        _format_own(self.params, ctx, formatter)
        _format_examples(ctx, formatter)
        _format_options("Options of every command", GLOBAL_OPTIONS, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Say where the exit codes are that the help does not name."""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("Exit codes are those of every command: `wlctl help exit-codes`.")

    def invoke(self, ctx: Any) -> Any:
        """Check what was asked for, then run."""
        if self.checks_settings:
            session_of(ctx).check()
        return super().invoke(ctx)


class PlainCommand(Command):
    """A command that works whatever the configuration says: it reads none."""

    checks_settings = False


class Group(TyperGroup):
    """A group whose members all take the global options, and so does the group itself."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Add the global options."""
        return [*self.params, _HELP, *GLOBAL_OPTIONS]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List the commands before the options."""
        self.format_commands(ctx, formatter)
        _format_own(self.params, ctx, formatter)
        _format_options("Options of every command", GLOBAL_OPTIONS, ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List each command with the whole first sentence of its help."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, visible(command.get_short_help_str(limit=SENTENCE_MAX)))
                    for name in self.list_commands(ctx)
                    if (command := self.get_command(ctx, name)) is not None and not command.hidden
                ]
            )

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Answer a group without a command with its help, and the exit code of a usage error."""
        with _placed_in(ctx):
            rest = super().parse_args(ctx, args)
        if not ctx._protected_args and not ctx.resilient_parsing:  # noqa: SLF001 - no public name
            session_of(ctx).streams.aside(ctx.get_help())
            ctx.exit(UsageError.exit_code)
        return rest

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Find the command, or name the nearest one."""
        command = self.get_command(ctx, args[0])
        if command is not None:
            return args[0], command, args[1:]
        near = get_close_matches(args[0], self.list_commands(ctx), n=1)
        path = ctx.command_path
        raise UsageError(
            f"there is no command {path} {args[0]}",
            hint=f"did you mean `{path} {near[0]}`?" if near else f"see `{path} --help`",
        )


def _format_own(own: Sequence[Any], ctx: Any, formatter: Any) -> None:
    arguments = [param for param in own if param.param_type_name == "argument"]
    options = [*(param for param in own if param.param_type_name == "option"), _HELP]
    _format_options("Arguments", arguments, ctx, formatter)
    _format_options("Options", options, ctx, formatter)


def _format_options(title: str, params: Iterable[Any], ctx: Any, formatter: Any) -> None:
    records = [record for param in params if (record := param.get_help_record(ctx)) is not None]
    if records:
        with formatter.section(title):
            # An argument that may be left out shows brackets; the others need no remark.
            formatter.write_dl(
                [(name, in_words(about.replace("  [required]", ""))) for name, about in records]
            )


def _format_examples(ctx: Any, formatter: Any) -> None:
    from wlctl.cli.examples import EXAMPLES  # for those who ask for help

    lines = EXAMPLES.get(ctx.command_path.partition(" ")[2], ())
    if lines:
        with formatter.section("Examples"):
            for line in lines:
                for piece in _continued(line, formatter.width - formatter.current_indent):
                    formatter.write(f"{'':{formatter.current_indent}}{piece}\n")


_WORD = re.compile(r"(?:'[^']*'|\S)+")


def _continued(line: str, width: int) -> Iterator[str]:
    """Break a command line as a shell takes it: between words, and with a backslash at the end."""
    pieces = [""]
    for word in _WORD.findall(line):
        longer = f"{pieces[-1]} {word}" if pieces[-1] else word
        if pieces[-1] and len(longer) > width - len(" \\"):
            pieces[-1] += " \\"
            pieces.append(f"  {word}")
        else:
            pieces[-1] = longer
    yield from pieces


_RANGE = re.compile(r"(\S+?)<=x<=(\S+?)(?=[];. ]|$)")
_FROM = re.compile(r"x>=(\S+?)(?=[];. ]|$)")


def in_words(text: str) -> str:
    """Say in words what the parser says of numbers."""
    said = _FROM.sub(r"at least \1", _RANGE.sub(r"\1 to \2", text))
    said = said.replace("is not in the range at least", "is not at least")
    return re.sub(r"is not a valid (?:int|integer)(?: range)?", "is not a whole number", said)


_METAVARS = {"int": "N", "int range": "N", "float": "N", "float range": "N", "str": "TEXT"}


def _metavar(param: Any) -> str:
    """Name an argument after itself, and the value of an option after its type."""
    if param.param_type_name == "argument":
        return f"{param.name}".upper() + ("..." if param.nargs != 1 else "")
    if choices := getattr(param.type, "choices", ()):
        return "|".join(str(getattr(choice, "value", choice)) for choice in choices)
    kind: str = param.type.name
    return _METAVARS.get(kind, kind.upper())


@contextmanager
def _placed_in(ctx: Any) -> Iterator[None]:
    try:
        yield
    except TyperException as error:
        error.ctx = getattr(error, "ctx", None) or ctx  # type: ignore[attr-defined]  # of most kinds
        raise


class ListingGroup(Group):
    """A group that lists when no member is named: `wlctl alerts` is `wlctl alerts ls`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put `ls` before options that stand alone."""
        named = {*self.list_commands(ctx), "-h", "--help"}
        if not named.intersection(args) and all(word.startswith("-") for word in args[:1]):
            args = ["ls", *args]
        return super().parse_args(ctx, args)


class App(typer.Typer):
    """A command group: decorate its commands with `@app.command("name")`."""

    def __init__(self, about: str, *, cls: type[Group] = Group) -> None:
        super().__init__(
            cls=cls,
            help=about,
            add_completion=False,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
            context_settings=CONTEXT,
        )
        self.callback()(_nothing)

    def command(self, name: str | None = None, **rest: Any) -> Callable[[Any], Any]:
        """Declare a command; its docstring is its help."""
        return super().command(name, **{"cls": Command, "context_settings": CONTEXT, **rest})


def _nothing() -> None:
    """Stand for the group itself, which does nothing."""


Options = TypeVar("Options")


def taking(
    options: type[Options],
) -> Callable[[Callable[[typer.Context, Options], None]], Callable[..., None]]:
    """Give a command the fields of a dataclass as its arguments and options, and pass it one.

    A field is declared as a parameter is: `pin: Annotated[str, typer.Option(…)] = ""`.
    """

    def decorate(command: Callable[[typer.Context, Options], None]) -> Callable[..., None]:
        @wraps(command)
        def called(ctx: typer.Context, **given: Any) -> None:
            command(ctx, options(**given))

        hints = get_type_hints(options, include_extras=True)
        first = Parameter("ctx", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        params = [
            Parameter(
                one.name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if one.default is MISSING else one.default,
                annotation=hints[one.name],
            )
            for one in fields(options)  # type: ignore[arg-type]  # what it is given is a dataclass
        ]
        called.__signature__ = Signature([first, *params])  # type: ignore[attr-defined]  # read by typer
        return called

    return decorate


class Lazy(NamedTuple):
    """Where a command is, and all that `wlctl --help` needs to know of it.

    Attributes:
        attribute: An `App` or a function of that module.
        about: One line.
    """

    module: str
    attribute: str
    about: str
    cls: type[Command] = Command


class LazyGroup(Group):
    """A group whose commands are a table; a module is imported only when its command runs."""

    table: Mapping[str, Lazy] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """List them in the order of the table."""
        return list(self.table)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import the command, or answer None."""
        lazy = self.table.get(cmd_name)
        return None if lazy is None else _loaded(cmd_name, lazy)


def _loaded(name: str, lazy: Lazy) -> Any:
    found = getattr(import_module(lazy.module), lazy.attribute)
    if isinstance(found, typer.Typer):
        app = found
    else:
        app = typer.Typer(
            add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
        )
        app.command(name, cls=lazy.cls, context_settings=CONTEXT)(found)
    command = typer.main.get_command(app)
    command.name = name
    return command
