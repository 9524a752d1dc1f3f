"""`wlctl init`: everything an installation needs, once."""

from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli import render
from wlctl.cli.options import session_of
from wlctl.flows import init as flow
from wlctl.model.event import Json


def init(
    ctx: typer.Context,
    signer: Annotated[
        Path | None,
        typer.Option(metavar="KEYFILE", help="Accept what this public key signs, as yours."),
    ] = None,
) -> None:
    """Make the ledger and the keys of an installation. Safe to repeat.

    Everything lies in one directory, readable by you alone: the ledger, an SSH key that works
    without an agent (for cron), and another key that signs checkpoints of the chain. Only this
    command makes a ledger; all others fail where there is none.
    """
    session = session_of(ctx)
    done = flow.init(session.runtime, signer)
    value: dict[str, Json] = {
        "installation": done.installation,
        "ledger": str(done.ledger),
        "made": [str(path) for path in done.made],
        "ssh_public_key": done.ssh_public_key,
        "checkpoint_verifier": done.checkpoint_verifier,
        "signer": done.signer.name if done.signer else None,
    }
    lines = [f"made {path}" for path in done.made] or [f"{done.ledger} is there; nothing to do"]
    lines += [
        "on each node, add this line to the authorized_keys of the login wlctl shall use:",
        f"  {done.ssh_public_key}",
        "keep this key elsewhere: it verifies checkpoints (`wlctl audit checkpoint`):",
        f"  {done.checkpoint_verifier}",
    ]
    if done.signer is not None:
        lines += [f"signer {done.signer.name} is accepted: {done.signer.fingerprint}"]
    render.document(session, "wlctl.init/1", value, lines, name=done.installation)
