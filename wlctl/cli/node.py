"""`wlctl node`: the fleet."""

from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli import render, times
from wlctl.cli.command import App
from wlctl.cli.options import session_of
from wlctl.errors import ExitCode, HostKeyChanged, UsageError
from wlctl.flows import nodes as flow
from wlctl.model.event import Json, rfc3339
from wlctl.model.node import Address, Node, Tier, TransportKind

app = App("The fleet: the machines that wlctl places on.")


@app.command("add")
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="What you call it.")],
    where: Annotated[
        str, typer.Argument(help="[USER@]HOST or an ssh alias, or `local` for this machine.")
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of its sshd; 0 for what ssh would use.")
    ] = 0,
    host_key: Annotated[
        str, typer.Option(metavar="SHA256:…", help="The fingerprint it must show; asks otherwise.")
    ] = "",
    known_hosts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A known_hosts file that has its key, instead of asking."
        ),
    ] = None,
    tier: Annotated[
        str, typer.Option(metavar="TIER", help="discovered, paired (runs signed work) or trusted.")
    ] = Tier.PAIRED.word,
    sudo: Annotated[bool, typer.Option("--sudo", help="Run actions through `sudo -n`.")] = False,
) -> None:
    """Look at a machine once and add it to the fleet.

    Trust is bound to the host key that it shows now, not to its address. wlctl logs in with the key
    that `wlctl init` made (its public half belongs into the login's authorized_keys), then with
    what ~/.ssh/config names and the ssh agent has. Whoever has that key has a shell on the node.
    """
    session = session_of(ctx)

    def accept(shown: str) -> None:
        if host_key and host_key != shown:
            raise HostKeyChanged(
                f"{where} shows the host key {shown}, not {host_key}",
                hint="find out which is right before you trust it",
            )
        if not host_key and known_hosts is None:
            session.confirm(f"{where} shows the host key {shown}. Is that right?")

    node = flow.add(
        session.runtime,
        name,
        _address(where, port=port, sudo=sudo),
        _tier(tier),
        accept_key=accept,
        known_hosts=known_hosts,
    )
    render.document(session, "wlctl.node/1", _json(node), _summary(node), name=node.name)


@app.command("ls")
def ls(ctx: typer.Context) -> None:
    """List the fleet as it was seen last."""
    session = session_of(ctx)
    now_ms = session.runtime.now_ms()
    columns: list[render.Column[Node]] = [
        render.Column("NAME", "name", lambda node: node.name),
        render.Column("ADDRESS", "address", lambda node: _where(node.address)),
        render.Column("TIER", "tier", lambda node: node.tier.word),
        render.Column("LIVENESS", "liveness", lambda node: node.liveness.value),
        render.Column(
            "CONTAINMENT", "containment", lambda node: node.facts.containment if node.facts else ""
        ),
        render.Column(
            "SEEN",
            "seen_at",
            lambda node: None if node.seen_at_ms is None else rfc3339(node.seen_at_ms),
            lambda node: times.ago(node.seen_at_ms, now_ms),
        ),
        render.Column("NODE ID", "node_id", lambda node: node.node_id, wide=True),
    ]
    render.rows(session, "wlctl.nodes/1", columns, flow.ls(session.runtime))


@app.command("probe")
def probe(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Nodes to look at.")],
) -> None:
    """Look at nodes again, all at once, and record what each shows."""
    session = session_of(ctx)
    contacts = flow.probe(session.runtime, names)
    columns: list[render.Column[flow.Contact]] = [
        render.Column("NAME", "name", lambda contact: contact.node),
        render.Column("ANSWER", "answer", _answer),
        render.Column(
            "MEMORY FREE",
            "memory_available_bytes",
            lambda contact: contact.facts.memory_available_bytes if contact.facts else None,
            lambda contact: _gib(contact.facts.memory_available_bytes) if contact.facts else "-",
        ),
        render.Column(
            "CORES", "cpu_cores", lambda contact: contact.facts.cpu_cores if contact.facts else None
        ),
        render.Column(
            "CONTAINMENT",
            "containment",
            lambda contact: contact.facts.containment if contact.facts else "",
        ),
        render.Column(
            "FAILURE",
            "failure",
            lambda contact: contact.failure.message if contact.failure else "",
        ),
    ]
    render.rows(session, "wlctl.probes/1", columns, contacts)
    failed = [contact for contact in contacts if contact.failure]
    if failed:
        raise typer.Exit(ExitCode.PARTIAL if len(failed) < len(contacts) else _code_of(failed[0]))


def _code_of(contact: flow.Contact) -> ExitCode:
    assert contact.failure is not None
    return contact.failure.exit_code


def _answer(contact: flow.Contact) -> str:
    return contact.failure.code if contact.failure else "alive"


def _address(where: str, *, port: int, sudo: bool) -> Address:
    if where == "local":
        return Address(TransportKind.LOCAL, sudo=sudo)
    user, _, host = where.rpartition("@")
    if not host or host.startswith("-") or any(c.isspace() for c in where):
        raise UsageError(f"{where} is not [USER@]HOST", hint="e.g. deploy@10.0.0.5, or local")
    return Address(TransportKind.SSH, host=host, port=port, user=user, sudo=sudo)


def _tier(word: str) -> Tier:
    try:
        return Tier[word.upper()]
    except KeyError:
        words = ", ".join(tier.word for tier in Tier)
        raise UsageError(f"{word} is not a tier", hint=f"one of {words}") from None


def _where(address: Address) -> str:
    if address.transport is TransportKind.LOCAL:
        return "local"
    user = f"{address.user}@" if address.user else ""
    port = "" if address.port in {0, 22} else f":{address.port}"
    return f"{user}{address.host}{port}"


def _json(node: Node) -> dict[str, Json]:
    return {
        "name": node.name,
        "address": _where(node.address),
        "tier": node.tier.word,
        "liveness": node.liveness.value,
        "node_id": node.node_id,
        "containment": node.facts.containment if node.facts else None,
    }


def _summary(node: Node) -> list[str]:
    lines = [f"added {node.name} ({_where(node.address)}), tier {node.tier.word}"]
    if node.facts is not None:
        facts = node.facts
        lines.append(
            f"  {facts.cpu_cores} cores, {_gib(facts.memory_available_bytes)} of "
            f"{_gib(facts.memory_total_bytes)} memory free, containment {facts.containment}"
        )
    return lines


def _gib(count_bytes: int) -> str:
    return f"{count_bytes / 2**30:.1f} GiB"
