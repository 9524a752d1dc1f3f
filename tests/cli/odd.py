"""The program with a few more commands, each ending in one of the ways a command can end."""

import os
import signal
import sys
import time

import typer

from wlctl.cli import app, render
from wlctl.cli.command import Lazy
from wlctl.cli.options import session_of
from wlctl.cli.progress import progress
from wlctl.errors import ExitCode, Indeterminate, UnknownName
from wlctl.model.event import Json


def fail(ctx: typer.Context, name: str = "elm") -> None:
    """Fail in a way that is expected."""
    raise UnknownName(f"no node is named {name}", hint="see `wlctl node ls`")


def bare() -> None:
    """Fail without a hint."""
    raise Indeterminate("the connection ended")


def bug() -> None:
    """Fail in a way that nobody expected."""
    raise ValueError("seven\nof nine")


def answer() -> ExitCode:
    """Answer with an exit code."""
    return ExitCode.CANNOT_PLACE


def leave() -> None:
    """Answer the way typer has it."""
    raise typer.Exit(ExitCode.MOVED)


def interrupt() -> None:
    """Be interrupted, as by Ctrl-C."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(30)


def much(ctx: typer.Context, code: int = 0, lines: int = 200_000) -> None:
    """Print more than any pipe holds, then end with a code."""
    rows = (str(number) for number in range(lines))
    columns = [render.Column[str]("N", "n", str)]
    render.rows(session_of(ctx), "wlctl.much/1", columns, rows)
    raise typer.Exit(code)


def ask(ctx: typer.Context) -> None:
    """Ask, then act."""
    session = session_of(ctx)
    session.confirm("Remove elm?")
    render.document(session, "wlctl.ask/1", {}, ["removed"])


def say(ctx: typer.Context, word: str) -> None:
    """Say a word on both streams."""
    session = session_of(ctx)
    session.note(word)
    render.document(session, "wlctl.say/1", {"word": word}, [word])


def work(ctx: typer.Context) -> None:
    """Work for a while."""
    with progress(session_of(ctx), "probing \x1b[31m[bold]", total=3) as advance:
        for _ in range(3):
            advance(1)
    render.document(session_of(ctx), "wlctl.work/1", {}, ["done"])


def session(ctx: typer.Context) -> None:
    """Show what the session knows."""
    found = session_of(ctx)
    value: dict[str, Json] = {
        "db": found.settings.db,
        "yes": found.yes,
        "debug": found.debug,
        "message": found.message,
        "command_line": found.command_line,
        "origin": str(found.settings.origins["output"]),
    }
    render.document(found, "wlctl.session/1", value, [])


ODD = (fail, bare, bug, answer, leave, interrupt, much, ask, say, work, session)

if __name__ == "__main__":
    for function in ODD:
        name = function.__name__
        app.COMMANDS[name] = Lazy("__main__", name, f"{function.__doc__}")
    sys.exit(app.main(sys.argv[1:]))
