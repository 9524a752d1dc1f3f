"""`wlctl node add`: one machine, or all that a file lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli import node_show, node_words, render
from wlctl.cli.command import taking
from wlctl.cli.node_show import gib, node_json
from wlctl.cli.node_words import AskPass
from wlctl.cli.options import Session, session_of
from wlctl.errors import UsageError
from wlctl.flows import node_list
from wlctl.flows import nodes as flow
from wlctl.flows.node_list import Added, Wanted
from wlctl.model.event import Json
from wlctl.model.node import Node, Tier, TransportKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One command line of `node add`, as it was typed."""

    name: Annotated[str, typer.Argument(help="What you call it.")] = ""
    where: Annotated[
        str, typer.Argument(help="[USER@]HOST or an ssh alias, or `local` for this machine.")
    ] = ""
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of its sshd; 0 for what ssh would use.")
    ] = 0
    host_key: Annotated[
        str, typer.Option(metavar="SHA256:…", help="The fingerprint it must show; asks otherwise.")
    ] = ""
    known_hosts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A known_hosts file that has its key, instead of asking."
        ),
    ] = None
    tier: Annotated[
        str, typer.Option(metavar="TIER", help="discovered, paired (runs signed work) or trusted.")
    ] = Tier.PAIRED.word
    sudo: Annotated[bool, typer.Option("--sudo", help="Run actions through `sudo -n`.")] = False
    ask_pass: AskPass = False
    file: Annotated[
        Path | None,
        typer.Option(
            "-f",
            "--file",
            metavar="FILE",
            help="Add what FILE lists instead, a line each: NAME [USER@]HOST [KEY=VALUE…]; keys "
            "are tier, port, sudo, host_key and label.K.",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="With --file: read all of it and say what each line would add; contact nothing, "
            "do nothing.",
        ),
    ] = False

    @property
    def is_plain(self) -> bool:
        """Say nothing of any machine: a list does."""
        return self == Asked(file=self.file, dry_run=self.dry_run)


@taking(Asked)
def add(ctx: typer.Context, asked: Asked) -> None:
    """Look at a machine once and add it to the fleet.

    Trust is bound to the host key that it shows now, not to its address. wlctl logs in with the key
    that `wlctl init` made (its public half belongs into the login's authorized_keys), then with
    what ~/.ssh/config names and the ssh agent has. Whoever has that key has a shell on the node,
    until `wlctl node enforce` has it open less. Every later command comes with keys; --ask-pass is
    for the first look, and says when wlctl's key is not let in yet.
    """
    session = session_of(ctx)
    if asked.file is not None:
        if not asked.is_plain:
            raise UsageError("a list says all of each machine", hint="give --file alone")
        listed = node_words.machine_list(asked.file)
        if asked.dry_run:
            _foresee(session, listed)
        else:
            _add_listed(session, listed)
        return
    if asked.dry_run:
        raise UsageError("only a list has a dry run", hint="give it with --file FILE")
    if not asked.name or not asked.where:
        raise UsageError("a node needs a name and an address", hint="`wlctl node add NAME HOST`")
    address = node_words.address(asked.where, port=asked.port, sudo=asked.sudo)
    if asked.ask_pass:
        node_words.log_in_by_password(session, address)
    node = flow.add(
        session.runtime,
        asked.name,
        address,
        node_words.tier(asked.tier),
        accept_key=lambda shown: node_words.accept_key(
            session, asked.where, shown, asked.host_key, asked.known_hosts
        ),
        known_hosts=asked.known_hosts,
    )
    render.document(session, "wlctl.node/1", node_json(node), _summary(node), name=node.name)
    line = flow.key_not_let_in(session.runtime, node) if asked.ask_pass else None
    if line:
        session.note(f"{node.name} does not let wlctl's key in yet: put this line there")
        session.note(f"  ~/.ssh/authorized_keys: {line}")


def _add_listed(session: Session, listed: Sequence[Wanted]) -> None:
    def accept(wanted: Wanted, shown: str) -> None:
        session.confirm(f"{wanted.name} shows the host key {shown}. Is that right?")

    done = node_list.add_all(session.runtime, listed, accept=accept)
    columns: list[render.Column[Added]] = [
        render.Column("NAME", "name", lambda one: one.wanted.name),
        render.Column("ADDRESS", "address", lambda one: node_show.where(one.wanted.address)),
        render.Column("OUTCOME", "outcome", _outcome),
        render.Column("TIER", "tier", lambda one: one.node.tier.word if one.node else None),
        render.Column("FAILURE", "failure", lambda one: one.failure.message if one.failure else ""),
    ]
    render.rows(session, "wlctl.nodes-added/1", columns, done)
    node_words.exit_for([one.failure for one in done])


def _foresee(session: Session, listed: Sequence[Wanted]) -> None:
    """Say what each line would add, by the ledger alone."""
    columns: list[render.Column[Added]] = [
        render.Column("NAME", "name", lambda one: one.wanted.name),
        render.Column("ADDRESS", "address", lambda one: node_show.where(one.wanted.address)),
        render.Column("OUTCOME", "outcome", _foreseen),
        render.Column("TIER", "tier", lambda one: (one.node or one.wanted).tier.word),
        render.Column("HOST KEY", "host_key", lambda one: one.wanted.fingerprint or None, _key),
        render.Column(
            "LABELS",
            "labels",
            _labels,
            lambda one: ",".join(f"{key}={value}" for key, value in _labels(one).items()) or "-",
        ),
        render.Column("FAILURE", "failure", lambda one: one.failure.message if one.failure else ""),
        render.Column("", "dry_run", lambda _one: True),
    ]
    found = node_list.foresee(session.runtime, listed)
    render.rows(session, "wlctl.nodes-added/1", columns, found)
    node_words.exit_for([one.failure for one in found])


def _foreseen(one: Added) -> str:
    if one.failure is not None:
        return one.failure.code
    return "already" if one.already else "would-add"


def _key(one: Added) -> str:
    if one.wanted.address.transport is TransportKind.LOCAL:
        return "-"
    return one.wanted.fingerprint or "asked for"


def _labels(one: Added) -> dict[str, Json]:
    return {
        claim.id.removeprefix(node_words.LABEL): str(claim.attrs["value"])
        for claim in one.wanted.claims
    }


def _outcome(one: Added) -> str:
    if one.failure is not None:
        return one.failure.code
    return "already" if one.already else "added"


def _summary(node: Node) -> list[str]:
    lines = [f"added {node.name} ({node_show.where(node.address)}), tier {node.tier.word}"]
    if node.facts is not None:
        facts = node.facts
        lines.append(
            f"  {facts.cpu_cores} cores, {gib(facts.memory_available_bytes)} of "
            f"{gib(facts.memory_total_bytes)} memory free, containment {facts.containment}"
        )
    return lines
