"""`wlctl approve`: agree to what the gate deferred."""

import json
from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli import approvals, render
from wlctl.cli.options import Session, session_of
from wlctl.cli.package import key_choice
from wlctl.errors import UsageError
from wlctl.flows import approvals as known
from wlctl.flows import policy as flow
from wlctl.ledger.approvals import Approval
from wlctl.model.event import Json, rfc3339


def approve(
    ctx: typer.Context,
    approval: Annotated[
        str, typer.Argument(metavar="ID", help="The id that the refusal named, or its beginning.")
    ],
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Sign with this key; its .pub, if ssh-agent has it."),
    ] = None,
    agent: Annotated[
        str, typer.Option(metavar="FINGERPRINT", help="Sign with this key of ssh-agent.")
    ] = "",
    signature: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Take this signature of what --text prints."),
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Print what is to be signed, and nothing else.")
    ] = False,
) -> None:
    """Approve a request that the policy deferred; it can be carried out once, within a day.

    The key is one the policy names as an approver's, and not that of whoever asked. Without an
    option it only shows what was asked. A key that is elsewhere signs with ssh-keygen:

    wlctl approve ID --text >ask; ssh-keygen -Y sign -n wlctl-approval -f KEY.pub ask;
    wlctl approve ID --signature ask.sig
    """
    session = session_of(ctx)
    if sum((key is not None, bool(agent), signature is not None, text)) > 1:
        raise UsageError("give one of --key, --agent, --signature and --text")
    choice = key_choice(session, key, agent, "--key")
    if choice is None and signature is None:
        found = flow.find_deferred(session.runtime, approval)
        if text:
            session.streams.data(found.text)
            return
        lines = _lines(found, _asked(session, found))
        render.document(session, "wlctl.approval/1", _json(found), lines, name=found.id)
        return
    found, approver = flow.approve(
        session.runtime, approval, choice=choice, signature_file=signature
    )
    value: dict[str, Json] = {**_json(found), "approver": approver.principal}
    until = rfc3339(found.expires_at_ms)
    lines = [
        f"{approver.principal} approved {_asked(session, found)}",
        f"  {found.principal} can do it once, until {until}",
    ]
    render.document(session, "wlctl.approval/1", value, lines, name=found.id)


def _asked(session: Session, found: Approval) -> str:
    names = known.called(session.runtime, [found])
    return f"{approvals.asked(found, names)}, asked for by {found.principal}"


def _lines(found: Approval, asked: str) -> list[str]:
    state = "spent" if found.spent_at_ms is not None else found.approver or "nobody yet"
    return [
        asked,
        f"  approved by: {state}",
        f"  until: {rfc3339(found.expires_at_ms)}",
        f"  request: {json.dumps(found.request, ensure_ascii=False, sort_keys=True)}",
    ]


def _json(found: Approval) -> dict[str, Json]:
    return {
        "id": found.id,
        "request": found.request,
        "request_sha256": found.request_sha256,
        "principal": found.principal,
        "expires_at": rfc3339(found.expires_at_ms),
        "approver": found.approver or None,
        "spent": found.spent_at_ms is not None,
    }
