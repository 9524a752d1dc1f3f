"""`wlctl revoke`, `unrevoke` and `revocations`: what is started no more."""

from typing import Annotated

import typer

from wlctl.cli import render, times
from wlctl.cli.options import session_of
from wlctl.cli.outdated import note_outdated
from wlctl.errors import UsageError
from wlctl.flows import revocations as flow
from wlctl.model.event import Json, rfc3339
from wlctl.model.revocation import Revocation, RevocationKind

Kind = Annotated[RevocationKind, typer.Argument(help="What sort of thing it is.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; kept in the chain.")]


def revoke(
    ctx: typer.Context,
    kind: Kind,
    what: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="Package: its id or NAME@VERSION. Key: SHA256:… or a signer's name."
        ),
    ],
    reason: Reason,
    no_enforce: Annotated[
        bool, typer.Option("--no-enforce", help="Leave alone what runs; needed in this version.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say which copies it would hit.")
    ] = False,
) -> None:
    """Start nothing any more that a package, a key or a file (`artifact`, by its sha256) is in.

    From then on `verify`, `place` and the gate refuse it. A key counts only for packages that no
    other accepted signer vouches for. This version does NOT stop what runs and does NOT tell the
    nodes: whoever reaches a node in another way can start it there. So --no-enforce has to be
    given; the copies that are hit are named, to be stopped with `wlctl stop`.
    """
    if not (no_enforce or dry_run):
        raise UsageError(
            "this version does not stop what runs when it is revoked",
            hint="add --no-enforce to revoke it for what is started from now on, or --dry-run",
        )
    session = session_of(ctx)
    done = flow.revoke(session.runtime, kind, what, reason, dry_run=dry_run)
    new = "would be revoked" if dry_run else "is revoked"
    lines = [f"{kind.value} {done.ref} {new if done.is_new else 'was revoked already'}"]
    lines += [
        f"  not started again: {one.name} on {one.node} ({one.workload} {one.version})"
        for one in done.hits
    ]
    value: dict[str, Json] = {
        "kind": kind.value,
        "ref": done.ref,
        "reason": reason,
        "revoked": done.is_new and not dry_run,
        "hits": [
            {"instance": one.id, "name": one.name, "node": one.node, "package": one.package_id}
            for one in done.hits
        ],
    }
    render.document(session, "wlctl.revocation/1", value, lines, name=done.ref)
    if done.hits and not dry_run:
        names = " ".join(one.name for one in done.hits)
        session.note(f"what runs goes on: wlctl stop {names}")
    if kind is RevocationKind.KEY and not dry_run:
        note_outdated(session, "still accept the key")


def unrevoke(
    ctx: typer.Context,
    kind: Kind,
    what: Annotated[str, typer.Argument(metavar="ID", help="As it was revoked.")],
    reason: Reason,
) -> None:
    """Take a revocation back, in this ledger: what it named can be started again."""
    session = session_of(ctx)
    ref = flow.unrevoke(session.runtime, kind, what, reason)
    value: dict[str, Json] = {"kind": kind.value, "ref": ref, "reason": reason}
    lines = [f"{kind.value} {ref} is revoked no longer"]
    render.document(session, "wlctl.unrevocation/1", value, lines, name=ref)


def ls(ctx: typer.Context) -> None:
    """List what is revoked, and why; the newest last."""
    session = session_of(ctx)
    now_ms = session.runtime.now_ms()
    columns: list[render.Column[Revocation]] = [
        render.Column("REF", "ref", lambda one: one.ref),
        render.Column("KIND", "kind", lambda one: one.kind.value),
        render.Column(
            "REVOKED",
            "revoked_at",
            lambda one: rfc3339(one.revoked_at_ms),
            lambda one: times.ago(one.revoked_at_ms, now_ms),
        ),
        render.Column("REASON", "reason", lambda one: one.reason),
    ]
    found = flow.ls(session.runtime)
    render.rows(session, "wlctl.revocations/1", columns, found, none="nothing is revoked")
