"""`wlctl alerts`: what is wrong and waits for somebody, and who knows of it."""

from typing import Annotated

import typer

from wlctl.cli import render, times
from wlctl.cli.command import App, ListingGroup
from wlctl.cli.options import session_of
from wlctl.cli.targets import DryRun
from wlctl.errors import UsageError
from wlctl.flows import alerting as flow
from wlctl.model.alert import KeptAlert
from wlctl.model.event import Json, rfc3339

app = App("What is wrong and waits for somebody.", cls=ListingGroup)


@app.command("ls")
def ls(
    ctx: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Also those whose cause is gone.")
    ] = False,
) -> None:
    """List what is open, the oldest first; `wlctl alerts` alone does the same.

    `reconcile` raises an alert once for each trouble, and closes it when it finds the trouble gone.
    """
    session = session_of(ctx)
    now_ms = session.runtime.now_ms()
    columns: list[render.Column[KeptAlert]] = [
        render.Column("ID", "id", lambda one: one.id),
        render.Column("KIND", "kind", lambda one: one.alert.kind.value),
        render.Column("SUBJECT", "subject", lambda one: one.alert.subject),
        render.Column("STATE", "state", _state),
        render.Column(
            "RAISED",
            "raised_at",
            lambda one: rfc3339(one.raised_at_ms),
            lambda one: times.ago(one.raised_at_ms, now_ms),
        ),
        render.Column("BY", "acked_by", lambda one: one.acked_by or None, wide=True),
        render.Column("REASON", "reason", lambda one: one.alert.reason),
        render.Column("", "unproven", lambda one: one.alert.is_unproven),
        render.Column("", "acked_at", lambda one: _moment(one.acked_at_ms)),
        render.Column("", "closed_at", lambda one: _moment(one.closed_at_ms)),
    ]
    found = flow.ls(session.runtime, everything=everything)
    none = "there was never an alert" if everything else "no alert is open"
    render.rows(session, "wlctl.alerts/1", columns, found, none=none)
    for channel in flow.failing(session.runtime):
        since = times.ago(channel.tried_at_ms, now_ms)
        session.note(f"alerts.{channel.name} could not be told, {since} ago: {channel.outcome}")


@app.command("ack")
def ack(
    ctx: typer.Context,
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="[ID]...", help="As `wlctl alerts` lists them.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that are open.")] = False,
    dry_run: DryRun = False,
) -> None:
    """Say that somebody knows: nobody is told again while the trouble lasts.

    The alert stays open until `reconcile` finds the trouble gone. Who acknowledged it, and the
    words of -m, are kept in the chain.
    """
    if bool(ids) == everything:
        raise UsageError("name alerts, or give --all", hint="`wlctl alerts` lists what is open")
    session = session_of(ctx)
    found = flow.ack(session.runtime, None if everything else ids, dry_run=dry_run)
    listed: list[Json] = [one.id for one in found]
    said = "would be acknowledged" if dry_run else "is acknowledged"
    lines = [
        f"{one.id} {said}: {one.alert.kind.value} {one.alert.subject}".rstrip() for one in found
    ]
    value: dict[str, Json] = {"dry_run": dry_run, "acked": listed}
    render.document(session, "wlctl.alert-ack/1", value, lines or ["nothing was left to know of"])


def _state(one: KeptAlert) -> Json:
    if one.closed_at_ms is not None:
        return "closed"
    return "open" if one.acked_at_ms is None else "acked"


def _moment(at_ms: int | None) -> Json:
    return None if at_ms is None else rfc3339(at_ms)
