"""`wlctl doctor`: is everything there that the other commands stand on?"""

import typer

from wlctl.cli import render
from wlctl.cli.options import session_of
from wlctl.errors import ExitCode
from wlctl.flows import doctor as flow
from wlctl.flows.doctor import Finding, Health


def doctor(ctx: typer.Context) -> None:
    """Examine ledger, keys, trust, fleet, passes and alerts; say what to do about what is wrong.

    It contacts no node and changes nothing. Exit 0 unless something is bad; then the code that a
    command which needs it would answer with.
    """
    session = session_of(ctx)
    found = flow.examine(session.runtime)
    columns: list[render.Column[Finding]] = [
        render.Column("WHAT", "what", lambda one: one.about),
        render.Column("IS", "health", lambda one: one.health.value),
        render.Column("FOUND", "found", lambda one: one.text),
        render.Column("TO DO", "hint", lambda one: one.hint),
    ]
    render.rows(session, "wlctl.doctor/1", columns, found)
    bad = [one for one in found if one.health is Health.BAD]
    if bad:
        raise typer.Exit(bad[0].exit_code or ExitCode.FAILED)
