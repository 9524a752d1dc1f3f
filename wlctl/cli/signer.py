"""`wlctl signer`: whose signatures admit a package."""

from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli import render, times
from wlctl.cli.command import App
from wlctl.cli.options import session_of
from wlctl.flows import signers as flow
from wlctl.model.event import Json, rfc3339
from wlctl.model.package import Signer

app = App("Signers: whose signatures admit a package.")


@app.command("add")
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="What you call the signer.")],
    key: Annotated[Path, typer.Argument(metavar="KEYFILE", help="The public key: a .pub file.")],
) -> None:
    """Accept what this key signs from now on. One key has one name, and one name one key."""
    session = session_of(ctx)
    signer, is_new = flow.add(session.runtime, name, key)
    said = "is accepted" if is_new else "was accepted already"
    value: dict[str, Json] = {**_json(signer), "added": is_new}
    lines = [f"signer {signer.name} {said}: {signer.fingerprint}"]
    render.document(session, "wlctl.signer/1", value, lines, name=signer.name)


@app.command("ls")
def ls(ctx: typer.Context) -> None:
    """List the signers."""
    session = session_of(ctx)
    now_ms = session.runtime.now_ms()
    columns: list[render.Column[Signer]] = [
        render.Column("NAME", "name", lambda signer: signer.name),
        render.Column("FINGERPRINT", "fingerprint", lambda signer: signer.fingerprint),
        render.Column("TYPE", "type", lambda signer: signer.public_key.split(" ")[0], wide=True),
        render.Column("", "public_key", lambda signer: signer.public_key),
        render.Column(
            "ADDED",
            "added_at",
            lambda signer: rfc3339(signer.added_at_ms),
            lambda signer: times.ago(signer.added_at_ms, now_ms),
        ),
    ]
    render.rows(session, "wlctl.signers/1", columns, flow.ls(session.runtime))


def _json(signer: Signer) -> dict[str, Json]:
    return {
        "name": signer.name,
        "fingerprint": signer.fingerprint,
        "public_key": signer.public_key,
        "added_at": rfc3339(signer.added_at_ms),
    }
