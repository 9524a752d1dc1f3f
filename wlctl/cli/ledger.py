"""`wlctl ledger`: is the ledger in order, and is there a copy of it?"""

from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli import render
from wlctl.cli.command import App
from wlctl.cli.options import session_of
from wlctl.errors import ExitCode
from wlctl.flows import ledger as flow
from wlctl.flows import snapshot as fleet
from wlctl.ledger.backend import Finding
from wlctl.model.event import Json

app = App("The ledger itself: checked, backed up, migrated.")


@app.command("check")
def check(ctx: typer.Context) -> None:
    """Check the ledger below its chain: file, pages, references, tables. `audit verify` does more.

    Exit 11: something is damaged, or not as it must be.
    """
    session = session_of(ctx)
    health = flow.check(session.runtime)
    columns: list[render.Column[Finding]] = [
        render.Column("WHAT", "what", lambda one: one.what),
        render.Column(
            "IS", "good", lambda one: one.good, lambda one: "good" if one.good else "bad"
        ),
        render.Column("FOUND", "found", lambda one: one.detail),
    ]
    render.rows(session, "wlctl.ledger.check/1", columns, health.findings)
    if not health.good:
        raise typer.Exit(ExitCode.LEDGER)


@app.command("backup")
def backup(
    ctx: typer.Context,
    file: Annotated[
        Path | None, typer.Argument(help="A file or directory; else beside the ledger.")
    ] = None,
) -> None:
    """Copy the ledger as it is at one moment, while others go on writing, and print where.

    The copy appears whole or not at all, and only its owner can read it. Keys are not in it.
    """
    session = session_of(ctx)
    made = flow.backup(session.runtime, file)
    value: dict[str, Json] = {"file": str(made), "size_bytes": made.stat().st_size}
    render.document(session, "wlctl.ledger.backup/1", value, [str(made)], name=str(made))


@app.command("migrate")
def migrate(ctx: typer.Context) -> None:
    """Bring the ledger's tables to this version of wlctl, after a backup.

    Steps that rewrite no row are taken by any command, unasked; only others need this one.
    """
    session = session_of(ctx)
    done = flow.migrate(session.runtime)
    if done is None:
        value: dict[str, Json] = {"migrated": False}
        lines = ["the ledger's tables are of this version already"]
    else:
        value = {
            "migrated": True,
            "before": done.before,
            "after": done.after,
            "backup": str(done.backup),
        }
        lines = [
            f"migrated the ledger's tables from revision {done.before} to {done.after}",
            f"  as it was before, it is kept in {done.backup}",
        ]
    render.document(session, "wlctl.ledger.migrate/1", value, lines)


@app.command("snapshot")
def snapshot(ctx: typer.Context) -> None:
    """Print the fleet as a decision sees it: nodes, instances, weights, the policy; no secrets.

    `wlctl place PACKAGE --dry-run --snapshot FILE` decides from it again, anywhere, without a
    ledger: to replay a decision, to attach it to a report, or to try what a change would do.
    """
    session = session_of(ctx)
    session.streams.data(fleet.take(session.runtime))
