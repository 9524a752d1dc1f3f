"""`wlctl package`: directories become packages that somebody vouches for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli import render, times
from wlctl.cli.command import App
from wlctl.cli.options import Session, session_of
from wlctl.errors import UsageError
from wlctl.flows import packages as flow
from wlctl.flows import stored
from wlctl.flows.packages import Shown
from wlctl.flows.signing import KeyChoice
from wlctl.flows.stored import Listed
from wlctl.model.event import Json, rfc3339
from wlctl.model.package import Manifest

app = App("Packages: described, built, signed, verified.")

_ID_SHOWN = 12

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The package's directory.")]


@app.command("init")
def init(ctx: typer.Context, directory: Directory) -> None:
    """Write a small package to start from; it builds and runs as it is."""
    session = session_of(ctx)
    written = flow.init(directory)
    paths = [str(directory / path) for path in written]
    render.document(
        session,
        "wlctl.package-init/1",
        {"directory": str(directory), "written": list(paths)},
        [f"wrote {path}" for path in paths],
        name=str(directory),
    )
    session.streams.note(f"next: wlctl package build {directory} --sign KEYFILE")


@app.command("build")
def build(
    ctx: typer.Context,
    directory: Directory,
    sign: Annotated[
        Path | None,
        typer.Option("--sign", metavar="KEYFILE", help="Sign it too, with this key."),
    ] = None,
    agent: Annotated[
        str, typer.Option(metavar="FINGERPRINT", help="Sign it too, with this key of ssh-agent.")
    ] = "",
) -> None:
    """Check a package and write its manifest and launch sheets.

    The same directory gives the same package id on every machine. Signatures of an earlier build
    that no longer fit are removed.
    """
    session = session_of(ctx)
    choice = key_choice(session, sign, agent, "--sign")
    built = flow.build(directory)
    if built.dropped_signatures:
        count = len(built.dropped_signatures)
        session.streams.note(f"removed {render.counted(count, 'signature')} of what it was before")
    value: dict[str, Json] = {**_summary(built.manifest), "changed": built.is_new}
    stated = built.manifest
    lines = [f"built {_title(stated)}{'' if built.is_new else ' (nothing changed)'}"]
    lines += [f"package id {stated.package_id}"]
    if choice is not None:
        signed = flow.sign(session.runtime, directory, choice)
        value |= {"signature": signed.file, "fingerprint": signed.fingerprint}
        lines += [_signed_line(signed)]
        _note_unknown(ctx, signed)
    render.document(session, "wlctl.package-build/1", value, lines, name=stated.package_id)


@app.command("sign")
def sign(
    ctx: typer.Context,
    directory: Directory,
    key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A private key, or the .pub of one in ssh-agent."),
    ] = None,
    agent: Annotated[
        str, typer.Option(metavar="FINGERPRINT", help="A key of ssh-agent, as ssh-add -l names it.")
    ] = "",
) -> None:
    """Put a signature beside a package's manifest, as `ssh-keygen -Y sign` would make it.

    Ed25519, RSA and ECDSA keys sign from a file or from ssh-agent, keys of a hardware token from
    the agent alone. A token has to be touched: a signature made without that does not count.
    """
    session = session_of(ctx)
    choice = key_choice(session, key, agent, "--key")
    if choice is None:
        raise UsageError("nothing to sign with", hint="give --key FILE or --agent FINGERPRINT")
    signed = flow.sign(session.runtime, directory, choice)
    value: dict[str, Json] = {
        **_summary(signed.manifest),
        "signature": signed.file,
        "fingerprint": signed.fingerprint,
        "signer": signed.signer,
    }
    name = signed.manifest.package_id
    render.document(session, "wlctl.package-sign/1", value, [_signed_line(signed)], name=name)
    _note_unknown(ctx, signed)


@app.command("verify")
def verify(ctx: typer.Context, directory: Directory) -> None:
    """Verify a package as `place` would: manifest, signatures, then every file."""
    session = session_of(ctx)
    verified = flow.check(session.runtime, directory)
    names = [signer.name for signer in verified.signers]
    stated = verified.manifest
    lines = [
        f"{_title(stated)} is signed by {', '.join(names)}",
        f"{len(stated.files)} files are as the manifest states, package id {stated.package_id}",
    ]
    value: dict[str, Json] = {**_summary(stated), "signers": list(names)}
    render.document(session, "wlctl.package-verify/1", value, lines, name=stated.package_id)
    if flow.is_stale(directory, stated):
        _note_stale(ctx, directory)


@app.command("show")
def show(ctx: typer.Context, directory: Directory) -> None:
    """Show what a package says of itself, whether or not anybody vouches for it."""
    session = session_of(ctx)
    shown = flow.show(session.runtime, directory)
    value: dict[str, Json] = {
        **_summary(shown.manifest),
        "variants": [
            {"name": variant.name, "execution": variant.execution.value, "files": variant.files}
            for variant in shown.manifest.workload.variants
        ],
        "files": [
            {"path": f.path, "mode": f.mode, "sha256": f.sha256, "size_bytes": f.size_bytes}
            for f in shown.manifest.files
        ],
        "signatures": [
            {"file": name, "fingerprint": r.fingerprint, "fault": r.fault, "signer": signer}
            for name, r, signer in shown.signatures
        ],
        "stale": shown.is_stale,
    }
    name = shown.manifest.package_id
    render.document(session, "wlctl.package/1", value, _shown_lines(shown), name=name)
    if shown.is_stale:
        _note_stale(ctx, directory)


@app.command("ls")
def ls(ctx: typer.Context) -> None:
    """List the packages that were placed or tried, whether the store holds them, and who has them.

    HELD says whether all files are in the store; USED BY names the current copies, and BEFORE those
    whose version before it was. `package gc` keeps the files of both.
    """
    session = session_of(ctx)
    now_ms = session.runtime.now_ms()
    columns: list[render.Column[Listed]] = [
        render.Column("ID", "id", lambda it: it.package.id, lambda it: it.package.id[:_ID_SHOWN]),
        render.Column("NAME", "name", lambda it: it.package.name),
        render.Column("VERSION", "version", lambda it: it.package.version),
        render.Column("SIGNERS", "signers", lambda it: it.signers),
        render.Column("HELD", "missing_files", lambda it: it.missing, _held),
        render.Column("USED BY", "used_by", lambda it: it.used_by),
        render.Column("BEFORE", "previous_of", lambda it: it.previous_of, wide=True),
        render.Column("", "files", lambda it: it.files),
        render.Column("SIZE", "size_bytes", lambda it: it.size_bytes, wide=True),
        render.Column(
            "ADMITTED",
            "admitted_at",
            lambda it: rfc3339(it.package.admitted_at_ms),
            lambda it: times.ago(it.package.admitted_at_ms, now_ms),
        ),
    ]
    listed = stored.ls(session.runtime)
    render.rows(session, "wlctl.packages/1", columns, listed, none="no package was placed or tried")


@app.command("fetch")
def fetch(
    ctx: typer.Context,
    package: Annotated[str, typer.Argument(help="NAME@VERSION, or the beginning of an id.")],
    node: Annotated[
        str, typer.Option(metavar="NODE", help="Ask this node; not those that had the package.")
    ] = "",
) -> None:
    """Bring files that the store has lost back from a node that holds them.

    `place` does so by itself. What a node sends counts only when its sha256 is the one that was
    signed.
    """
    session = session_of(ctx)
    done = stored.fetch(session.runtime, package, node=node)
    value: dict[str, Json] = {
        "package": done.package.id,
        "fetched": [
            {
                "path": one.file.path,
                "sha256": one.file.sha256,
                "size_bytes": one.file.size_bytes,
                "node": one.node,
            }
            for one in done.fetched
        ],
    }
    title = f"{done.package.name} {done.package.version}"
    lines = [f"fetched {one.file.path} from {one.node}" for one in done.fetched]
    lines += [f"{title} is whole in the store{'' if lines else '; nothing to do'}"]
    render.document(session, "wlctl.package-fetch/1", value, lines, name=done.package.id)


@app.command("gc")
def gc(
    ctx: typer.Context,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be removed.")
    ] = False,
) -> None:
    """Remove files from the store that no current copy needs, nor the version it had before.

    Files that came within the hour stay: somebody may be placing them. A package that was ever
    placed stays listed; one that was only tried is forgotten with its files.
    """
    session = session_of(ctx)
    done = stored.gc(session.runtime, dry_run=dry_run)
    would = "would remove" if dry_run else "removed"
    value: dict[str, Json] = {
        "dry_run": dry_run,
        "files": [{"sha256": sha256, "size_bytes": size} for sha256, size in done.files],
        "size_bytes": done.size_bytes,
        "forgotten": [one.id for one in done.forgotten],
        "kept": done.kept,
    }
    removed, kept = render.counted(len(done.files), "file"), render.counted(done.kept, "package")
    lines = [f"{would} {removed}, {done.size_bytes} bytes; {kept} kept"]
    lines += [f"{would} {one.name} {one.version} from the list" for one in done.forgotten]
    render.document(session, "wlctl.package-gc/1", value, lines)


def key_choice(session: Session, file: Path | None, agent: str, option: str) -> KeyChoice | None:
    """Say which key is to sign; None when nobody said anything.

    Raises:
        UsageError: A file and an agent's key were both given.
    """
    if file is not None and agent:
        raise UsageError(f"give one of {option} and --agent")
    if file is None and not agent:
        return None
    return KeyChoice(file, agent, session.secret)


def _held(one: Listed) -> str:
    return f"lacks {one.missing} of {one.files}" if one.missing else "whole"


def _title(stated: Manifest) -> str:
    return f"{stated.workload.name} {stated.workload.version}"


def _summary(stated: Manifest) -> dict[str, Json]:
    return {
        "id": stated.package_id,
        "name": stated.workload.name,
        "version": stated.workload.version,
        "kind": stated.workload.kind.value,
    }


def _signed_line(signed: flow.Signed) -> str:
    by = f"{signed.signer}, " if signed.signer else ""
    return f"signed by {by}{signed.fingerprint}: {signed.file}"


def _note_unknown(ctx: typer.Context, signed: flow.Signed) -> None:
    if signed.signer is None:
        session_of(ctx).streams.note(
            "this key is not accepted here yet: wlctl signer add NAME KEYFILE.pub"
        )


def _note_stale(ctx: typer.Context, directory: Path) -> None:
    session_of(ctx).streams.note(
        f"workload.toml says something else by now: wlctl package build {directory}"
    )


def _shown_lines(shown: Shown) -> Iterator[str]:
    stated = shown.manifest
    yield f"{_title(stated)} ({stated.workload.kind}), package id {stated.package_id}"
    for variant in stated.workload.variants:
        command = " ".join(variant.command or stated.workload.run.command)
        yield f"variant {variant.name} ({variant.execution}): {command}"
    for file in stated.files:
        yield f"file {file.mode} {file.sha256[:_ID_SHOWN]} {file.size_bytes:>10} {file.path}"
    for name, reading, signer in shown.signatures:
        whose = signer or "no accepted signer"
        what = reading.fault or "fits"
        yield f"signature {name}: {reading.fingerprint or '-'} ({whose}): {what}"
    if not shown.signatures:
        yield "not signed"
