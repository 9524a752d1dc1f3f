"""`wlctl ledger`: is the ledger in order, is there a copy of it, and how is it had back?"""

from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli import node_words, rebuilt, render
from wlctl.cli.command import App
from wlctl.cli.options import session_of
from wlctl.errors import ExitCode, UsageError
from wlctl.flows import ledger as flow
from wlctl.flows import rebuild as rebuilding
from wlctl.flows import snapshot as fleet
from wlctl.flows.recalling import Target
from wlctl.ledger.backend import Finding
from wlctl.model.event import Json
from wlctl.model.ids import NodeName, is_checked_id
from wlctl.model.node import Tier

app = App("The ledger itself: checked, backed up, brought back, migrated.")


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
    keep: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Remove older backups there but the newest N."),
    ] = None,
) -> None:
    """Copy the ledger as it is at one moment, while others go on writing, and print where.

    The keys of the installation are in it, and the list of what the package store has: guard it as
    you guard the keys. The copy appears whole or not at all, and only its owner can read it.
    """
    session = session_of(ctx)
    made = flow.backup(session.runtime, file, keep=keep)
    value: dict[str, Json] = {
        "file": str(made.file),
        "size_bytes": made.file.stat().st_size,
        "keys": list(made.keys),
        "removed": [str(path) for path in made.removed],
    }
    lines = [str(made.file), *(f"  removed {path}" for path in made.removed)]
    render.document(session, "wlctl.ledger.backup/1", value, lines, name=str(made.file))


@app.command("restore")
def restore(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="What `wlctl ledger backup` made.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Also where there is a ledger; it is kept aside.")
    ] = False,
) -> None:
    """Put a backup in the place of the ledger, and the keys beside it that are missing.

    The backup is checked whole before anything is touched. What happened since it was made is not
    known then, so only stop, unload, cordon and revoke are done until `wlctl ledger rebuild` has
    asked the nodes.

    Exit 2: there is a ledger, or another key, and --replace was not given. Exit 11: the backup is
    damaged, or its chain does not hold; nothing was touched.
    """
    session = session_of(ctx)
    where = session.runtime.home.ledger

    def accept(there: bool) -> None:
        if there:
            session.confirm(f"Put {file} in the place of the ledger {where}?")

    done = flow.put_back(session.runtime, file, replace=replace, accept=accept)
    head, aside = done.restored.head, done.restored.aside
    value: dict[str, Json] = {
        "installation": head.installation,
        "seq": head.seq,
        "epoch": head.epoch,
        "aside": None if aside is None else str(aside),
        "keys": list(done.keys),
        "missing_files": done.missing,
    }
    lines = [f"restored {where} as it was at event {head.seq}"]
    lines += [f"  what was there is kept in {aside}"] if aside is not None else []
    lines += [f"  put back {', '.join(done.keys)}"] if done.keys else []
    if done.missing:
        lines += [
            f"  {done.missing} files of packages are not here; `wlctl package fetch` asks nodes"
        ]
    lines += [
        "what happened since is not known: run `wlctl ledger rebuild` next, it asks the nodes",
        "  until then only stop, unload, cordon and revoke are done",
    ]
    render.document(session, "wlctl.ledger.restore/1", value, lines, name=head.installation)


@app.command("rebuild")
def rebuild(
    ctx: typer.Context,
    where: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME=][USER@]HOST…",
            help="Nodes to ask besides those that are known; `local` for this machine.",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of their sshd; 0 for what ssh would use.")
    ] = 0,
    sudo: Annotated[bool, typer.Option("--sudo", help="Run actions through `sudo -n`.")] = False,
    tier: Annotated[
        str,
        typer.Option(metavar="TIER", help="Of those that the signed list of the fleet lacks."),
    ] = Tier.DISCOVERED.word,
    host_key: Annotated[
        str, typer.Option(metavar="SHA256:…", help="The fingerprint it must show; asks otherwise.")
    ] = "",
    known_hosts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Take only host keys that this file has."),
    ] = None,
) -> None:
    """Ask the nodes what they keep, and let the ledger know it again; nothing on them is changed.

    For a ledger that is gone, was put back from a backup, or of which two copies were used. Where
    it is gone, its keys must be there, and one node that was in the fleet is named: it knows the
    others. Who answers is written down, with what runs there; what stands in the ledger stays.

    When all have answered, or are attested dead, the ledger is believed again, and every copy of
    it that is used elsewhere is found at its first contact. Until then only stop, unload, cordon
    and revoke are done, and this may be repeated.

    Exit 9: a node could not be asked, so it is not over. Exit 7: it is over, and something that
    runs on a node could not be known again; it is named.
    """
    session = session_of(ctx)
    seeds = [_seed(word, port=port, sudo=sudo, tier=node_words.tier(tier)) for word in where or ()]

    ledger = session.runtime.home.ledger
    done = rebuilding.rebuild(
        session.runtime,
        seeds,
        accept_key=lambda host, shown: node_words.accept_key(
            session, host, shown, host_key, known_hosts
        ),
        accept=lambda: session.confirm(f"Rebuild the ledger {ledger} from its nodes?"),
        known_hosts=known_hosts,
    )
    lines = list(rebuilt.lines(done))
    render.document(
        session, "wlctl.ledger.rebuild/1", rebuilt.as_json(done), lines, name=done.installation
    )
    code = rebuilt.exit_code(done)
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


def _seed(word: str, *, port: int, sudo: bool, tier: Tier) -> Target:
    name, _, where = word.rpartition("=")
    if name and not is_checked_id(name):
        raise UsageError(f"{name} cannot be the name of a node", hint="give [NAME=][USER@]HOST")
    address = node_words.address(where, port=port, sudo=sudo)
    return Target(NodeName(name), "", address, tier)


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
