"""`wlctl signer`: whose signatures admit a package."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli import render, times
from wlctl.cli.command import App
from wlctl.cli.options import session_of
from wlctl.cli.outdated import note_outdated
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
    note_outdated(session, "refuse what this key signed")


@app.command("ls")
def ls(ctx: typer.Context) -> None:
    """List the signers."""
    session = session_of(ctx)
    now_ms = session.runtime.now_ms()
    columns: list[render.Column[Signer]] = [
        render.Column("NAME", "name", lambda signer: signer.name),
        render.Column("FINGERPRINT", "fingerprint", lambda signer: signer.fingerprint),
        render.Column("TYPE", "type", lambda signer: signer.public_key.split(" ")[0], wide=True),
        render.Column("VALID", "valid", lambda one: one.is_valid_at(now_ms), _validity(now_ms)),
        render.Column("", "valid_after", lambda one: _moment(one.valid_after_ms)),
        render.Column("", "valid_before", lambda one: _moment(one.valid_before_ms)),
        render.Column("", "public_key", lambda signer: signer.public_key),
        render.Column(
            "ADDED",
            "added_at",
            lambda signer: rfc3339(signer.added_at_ms),
            lambda signer: times.ago(signer.added_at_ms, now_ms),
        ),
    ]
    found = flow.ls(session.runtime)
    none = "no signer is accepted: `wlctl signer add NAME KEYFILE.pub`"
    render.rows(session, "wlctl.signers/1", columns, found, none=none)


@app.command("rm")
def rm(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="As `wlctl signer ls` has it.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say which copies nobody would vouch for.")
    ] = False,
) -> None:
    """Accept a signer no longer.

    Copies of packages that nobody else vouches for go on running, are named, and are not
    started again. To forbid everything a key has signed, whoever else signed it, revoke the key.
    Enforced nodes have a list of their own: those that accept it still are named.
    """
    session = session_of(ctx)
    done = flow.rm(session.runtime, name, dry_run=dry_run)
    would = "would be " if dry_run else ""
    said = "would be accepted no longer" if dry_run else "is accepted no longer"
    lines = [f"signer {done.signer.name} {said}: {done.signer.fingerprint}"]
    lines += [
        f"  {would}vouched for by nobody: {one.name} on {one.node} ({one.workload} {one.version})"
        for one in done.orphaned
    ]
    value: dict[str, Json] = {
        **_json(done.signer),
        "removed": not dry_run,
        "orphaned": [
            {"instance": one.id, "name": one.name, "node": one.node, "package": one.package_id}
            for one in done.orphaned
        ],
    }
    render.document(session, "wlctl.signer-rm/1", value, lines, name=done.signer.name)
    if not dry_run:
        note_outdated(session, "still accept the signer")


@app.command("import")
def import_(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A list of allowed signers, as ssh-keygen's.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say who would be new.")] = False,
) -> None:
    """Accept the signers of an allowed_signers file: all of them, or nobody.

    One plain name a line: no patterns, no lists of names, no cert-authority. `valid-after` and
    `valid-before` are kept; lines whose `namespaces` do not have `wlctl-package` are passed over.
    """
    session = session_of(ctx)
    done = flow.import_(session.runtime, file, dry_run=dry_run)
    new = "would be accepted" if dry_run else "is accepted"
    lines = [f"signer {one.name} {new}: {one.fingerprint}" for one in done.added]
    lines += [f"signer {one.name} was accepted already: {one.fingerprint}" for one in done.known]
    value: dict[str, Json] = {
        "file": str(file),
        "dry_run": dry_run,
        "added": [_json(one) for one in done.added],
        "known": [_json(one) for one in done.known],
        "passed_over": [one.line for one in done.passed_over],
    }
    for one in done.passed_over:
        session.note(f"line {one.line} ({one.signer.name}) is not for packages; passed over")
    render.document(session, "wlctl.signer-import/1", value, lines, name=str(file))
    if not dry_run:
        note_outdated(session, "refuse what these keys signed")


@app.command("export")
def export(ctx: typer.Context) -> None:
    """Print the signers as an allowed_signers file for `ssh-keygen -Y verify -n wlctl-package`."""
    session = session_of(ctx)
    text = flow.export(session.runtime)
    value: dict[str, Json] = {"allowed_signers": text}
    lines = text.splitlines()
    render.document(session, "wlctl.signer-export/1", value, lines, name=text.rstrip("\n"))


def _moment(at_ms: int | None) -> str | None:
    return None if at_ms is None else rfc3339(at_ms)


def _validity(now_ms: int) -> Callable[[Signer], str]:
    def said(one: Signer) -> str:
        after, before = one.valid_after_ms, one.valid_before_ms
        if after is not None and now_ms < after:
            return f"from {times.local(after)}"
        if before is None:
            return "always"
        return f"{'until' if one.is_valid_at(now_ms) else 'expired'} {times.local(before)}"

    return said


def _json(signer: Signer) -> dict[str, Json]:
    return {
        "name": signer.name,
        "fingerprint": signer.fingerprint,
        "public_key": signer.public_key,
        "added_at": rfc3339(signer.added_at_ms),
        "valid_after": _moment(signer.valid_after_ms),
        "valid_before": _moment(signer.valid_before_ms),
    }
