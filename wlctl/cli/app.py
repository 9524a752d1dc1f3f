"""The command line as a whole: which commands there are, and how failures become exit codes."""

import shutil
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperOption
from typer.exceptions import TyperException

import wlctl
from wlctl.cli.command import CONTEXT, Lazy, LazyGroup, PlainCommand, in_words
from wlctl.cli.escape import visible
from wlctl.cli.options import Session, session_of
from wlctl.cli.streams import Streams
from wlctl.errors import ExitCode, InternalError, Interrupted, OutputFailed, UsageError, WlctlError

SECTIONS = {
    "To begin with": {
        "init": Lazy("wlctl.cli.init", "init", "Make a ledger and keys. Safe to repeat."),
        "doctor": Lazy("wlctl.cli.doctor", "doctor", "Examine what the other commands stand on."),
        "config": Lazy("wlctl.cli.config", "app", "Settings, and who set them."),
        "help": Lazy(
            "wlctl.cli.help", "help_", "What codes, words and commands mean.", PlainCommand
        ),
        "completion": Lazy(
            "wlctl.cli.completion", "completion", "Print completions for a shell.", PlainCommand
        ),
    },
    "What may run": {
        "package": Lazy(
            "wlctl.cli.package", "app", "Packages: described, built, signed, verified."
        ),
        "signer": Lazy("wlctl.cli.signer", "app", "Signers: whose signatures admit a package."),
        "policy": Lazy("wlctl.cli.policy", "app", "The policy: what is permitted, to whom."),
        "approve": Lazy("wlctl.cli.approve", "approve", "Agree to what the policy deferred."),
        "approvals": Lazy("wlctl.cli.approvals", "ls", "List what was deferred, and who approved."),
        "revoke": Lazy("wlctl.cli.revocations", "revoke", "Start a package, key or file no more."),
        "unrevoke": Lazy("wlctl.cli.revocations", "unrevoke", "Take a revocation back."),
        "revocations": Lazy("wlctl.cli.revocations", "ls", "List what is revoked."),
    },
    "Where it may run": {
        "node": Lazy("wlctl.cli.node", "app", "The fleet: the machines that wlctl places on."),
    },
    "Placing": {
        "place": Lazy(
            "wlctl.cli.place", "place", "Decide where a workload goes, and put it there."
        ),
        "decisions": Lazy("wlctl.cli.decisions", "decisions", "List what was decided."),
        "explain": Lazy("wlctl.cli.decisions", "explain", "Say why a decision came out as it did."),
    },
    "What is placed": {
        "ps": Lazy("wlctl.cli.listing", "ps", "List the current copies."),
        "status": Lazy("wlctl.cli.status", "status", "Ask how copies are; say where it differs."),
        "history": Lazy("wlctl.cli.status", "history", "List every step of a copy's life."),
        "logs": Lazy("wlctl.cli.logs", "logs", "Print the end of what a copy wrote."),
        "wait": Lazy("wlctl.cli.until", "wait", "Wait until copies or nodes are in a state."),
        "prove": Lazy("wlctl.cli.proving", "prove", "Ask nodes whether copies are proven gone."),
        "start": Lazy("wlctl.cli.starting", "start", "Start copies that are staged."),
        "restart": Lazy("wlctl.cli.starting", "restart", "Stop copies and start them again."),
        "stop": Lazy("wlctl.cli.ending", "stop", "Stop copies, with proof."),
        "unload": Lazy("wlctl.cli.ending", "unload", "Stop copies and remove them."),
        "move": Lazy("wlctl.cli.moving", "move", "Move a copy to another node."),
    },
    "Keeping it so": {
        "reconcile": Lazy("wlctl.cli.reconcile", "reconcile", "One pass over the fleet, for cron."),
        "alerts": Lazy("wlctl.cli.alerts", "app", "What is wrong and waits for somebody."),
        "audit": Lazy("wlctl.cli.audit", "app", "The chain: what happened, verified."),
        "ledger": Lazy("wlctl.cli.ledger", "app", "The ledger: checked, backed up, migrated."),
    },
}
"""Every command by what it is for: its module, the `App` or function in it, and a line of help."""

COMMANDS = {name: lazy for section in SECTIONS.values() for name, lazy in section.items()}

HELP_COLUMNS = 100
"""Lines longer than this are hard to read, however wide the terminal is."""


class Root(LazyGroup):
    """The whole command line; its commands stand below what they are for."""

    table = COMMANDS

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List them by section, without importing any."""
        width = max(map(len, COMMANDS))
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), visible(lazy.about)) for name, lazy in section.items()]
                )


def main(argv: Sequence[str]) -> int:
    """Run one command and return its exit code; see `errors.ExitCode`."""
    streams = Streams.of_this_process()
    session = Session(argv, streams)
    try:
        code = _run(session)
    finally:
        session.close()
    try:
        streams.finish()
    except OutputFailed as failure:
        streams.failure(failure)
        return code or failure.exit_code
    return code


def root() -> Root:
    """Make the tree of commands."""
    version = TyperOption(
        param_decls=["--version"],
        help="Show the version.",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_show_version,
    )
    return Root(
        name="wlctl",
        params=[version],
        help="Place workloads on the machines you have, over plain SSH, and prove what runs where.",
        epilog="`wlctl help` explains exit codes, error codes, states and constraints.",
        context_settings=CONTEXT,
        rich_markup_mode=None,
    )


def _run(session: Session) -> int:
    """Run the command; here, and nowhere else, does a failure become an exit code."""
    try:
        _check_argv(session.argv)
        command = root()
        width = max(min(shutil.get_terminal_size().columns, HELP_COLUMNS), 24)
        with command.make_context(
            "wlctl", list(session.argv), obj=session, terminal_width=width
        ) as ctx:
            return int(command.invoke(ctx) or ExitCode.DONE)
    except typer.Exit as answer:
        return answer.exit_code
    except WlctlError as failure:
        return _failed(session, failure)
    except TyperException as error:
        return _failed(session, _usage(error))
    except KeyboardInterrupt:
        return _failed(session, Interrupted("interrupted"))
    except Exception as error:  # noqa: BLE001 - the last resort, for bugs; it hides nothing
        bug = InternalError(
            f"this is a bug in wlctl: {type(error).__name__}: {error}",
            hint="run it again with --debug and report what that prints",
        )
        return _failed(session, bug)


def _failed(session: Session, failure: WlctlError) -> int:
    if session.debug:
        import traceback

        session.streams.trace(traceback.format_exc())
    session.streams.failure(failure)
    return failure.exit_code


def _check_argv(argv: Sequence[str]) -> None:
    for position, word in enumerate(argv, 1):
        if any("\ud800" <= character <= "\udfff" for character in word):
            raise UsageError(
                f"argument {position} is not valid text: {word}",
                hint="names, paths and values are given in the encoding of the locale",
            )


def _usage(error: TyperException) -> UsageError:
    """Say a mistake that the parser found the way all others are said."""
    ctx: Any = getattr(error, "ctx", None)
    path = ctx.command_path if ctx is not None else "wlctl"
    near = getattr(error, "possibilities", None)
    hint = f"did you mean {near[0]}?" if near else f"see `{path} --help`"
    said = error.message if near else error.format_message()
    said = said.strip().removesuffix(".")
    return UsageError(in_words(said[:1].lower() + said[1:]), hint=hint)


def _show_version(ctx: typer.Context, _param: TyperOption, wanted: bool) -> None:
    if wanted:
        session_of(ctx).streams.data(f"wlctl {wlctl.__version__}\n")
        ctx.exit()
