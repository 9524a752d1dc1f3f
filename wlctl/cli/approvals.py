"""`wlctl approvals`: what the gate deferred, and what became of it."""

from collections.abc import Mapping
from typing import Annotated

import typer

from wlctl.cli import render, times
from wlctl.cli.options import session_of
from wlctl.flows import approvals as flow
from wlctl.ledger.approvals import Approval, Standing
from wlctl.model.event import Json, rfc3339

Row = tuple[Approval, Standing]

_ID_SHOWN = 12


def ls(
    ctx: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what was carried out, and what nobody did in time.")
    ] = False,
) -> None:
    """List what the policy deferred and can still be approved or carried out, the newest first."""
    session = session_of(ctx)
    now_ms = session.runtime.now_ms()
    found = flow.ls(session.runtime, everything=everything)
    names = flow.called(session.runtime, [one for one, _ in found])
    columns: list[render.Column[Row]] = [
        render.Column("ID", "id", lambda row: row[0].id, lambda row: row[0].id[:_ID_SHOWN]),
        render.Column("STATE", "state", lambda row: row[1].value),
        render.Column(
            "ASKED", "request", lambda row: row[0].request, lambda row: asked(row[0], names)
        ),
        render.Column("BY", "principal", lambda row: row[0].principal),
        render.Column("APPROVER", "approver", lambda row: row[0].approver or None),
        render.Column(
            "DEFERRED",
            "deferred_at",
            lambda row: rfc3339(row[0].deferred_at_ms),
            lambda row: times.ago(row[0].deferred_at_ms, now_ms),
        ),
        render.Column(
            "EXPIRES",
            "expires_at",
            lambda row: rfc3339(row[0].expires_at_ms),
            lambda row: times.ago(row[0].expires_at_ms, now_ms),
        ),
        render.Column("", "spent_at", lambda row: _moment(row[0].spent_at_ms)),
        render.Column("", "request_sha256", lambda row: row[0].request_sha256),
    ]
    render.rows(session, "wlctl.approvals/1", columns, found, none="nothing waits for an approver")


def asked(one: Approval, names: Mapping[str, str]) -> str:
    """Say what was deferred, by the names of copies."""
    request = one.request
    action, about, node = (str(request.get(key) or "") for key in ("action", "about", "node"))
    on = f" on {node}" if node else ""
    return f"{action} {names.get(about, about)}{on}".strip()


def _moment(at_ms: int | None) -> Json:
    return None if at_ms is None else rfc3339(at_ms)
