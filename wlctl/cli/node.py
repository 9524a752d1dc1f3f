"""`wlctl node`: the fleet."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli import node_change, node_show, node_words, render, times
from wlctl.cli.command import App
from wlctl.cli.node_show import gib, node_json
from wlctl.cli.node_words import AskPass
from wlctl.cli.options import Session, session_of
from wlctl.errors import ExitCode, UsageError, WlctlError
from wlctl.flows import measuring, node_list, node_view
from wlctl.flows import nodes as flow
from wlctl.flows.measuring import Measurement
from wlctl.flows.node_list import Added, Wanted
from wlctl.lifecycle.oddity import SKEW_MAX_MS, skew_text
from wlctl.model.event import Json, rfc3339
from wlctl.model.node import Node, Tier

app = App("The fleet: the machines that wlctl places on.")


@app.command("add")
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="What you call it.")] = "",
    where: Annotated[
        str, typer.Argument(help="[USER@]HOST or an ssh alias, or `local` for this machine.")
    ] = "",
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
    ask_pass: AskPass = False,
    file: Annotated[
        Path | None,
        typer.Option(
            "-f",
            "--file",
            metavar="FILE",
            help="Add what FILE lists instead, a line each: NAME [USER@]HOST [KEY=VALUE…]; keys "
            "are tier, port, sudo, host_key and label.K.",
        ),
    ] = None,
) -> None:
    """Look at a machine once and add it to the fleet.

    Trust is bound to the host key that it shows now, not to its address. wlctl logs in with the key
    that `wlctl init` made (its public half belongs into the login's authorized_keys), then with
    what ~/.ssh/config names and the ssh agent has. Whoever has that key has a shell on the node,
    until `wlctl node enforce` has it open less. Every later command comes with keys; --ask-pass is
    for the first look, and says when wlctl's key is not let in yet.
    """
    session = session_of(ctx)
    if file is not None:
        plain = tier == Tier.PAIRED.word and not (sudo or ask_pass)
        if name or where or port or host_key or known_hosts or not plain:
            raise UsageError("a list says all of each machine", hint="give --file alone")
        _add_listed(session, node_words.machine_list(file))
        return
    if not name or not where:
        raise UsageError("a node needs a name and an address", hint="`wlctl node add NAME HOST`")

    def accept(shown: str) -> None:
        if host_key and host_key != shown:
            raise node_words.other_key(where, shown, host_key)
        if not host_key and known_hosts is None:
            question = f"{where} shows the host key {shown}. Is that right?"
            session.confirm(question, flag=f"--host-key {shown}")

    address = node_words.address(where, port=port, sudo=sudo)
    if ask_pass:
        node_words.log_in_by_password(session, address)
    node = flow.add(
        session.runtime,
        name,
        address,
        node_words.tier(tier),
        accept_key=accept,
        known_hosts=known_hosts,
    )
    render.document(session, "wlctl.node/1", node_json(node), _summary(node), name=node.name)
    if ask_pass:
        line = flow.key_not_let_in(session.runtime, node)
        if line:
            session.note(f"{name} does not let wlctl's key in yet: put this line there")
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
    _exit_for([one.failure for one in done])


def _outcome(one: Added) -> str:
    if one.failure is not None:
        return one.failure.code
    return "already" if one.already else "added"


@app.command("ls")
def ls(ctx: typer.Context) -> None:
    """List the fleet as it was seen last."""
    session = session_of(ctx)
    now_ms = session.runtime.now_ms()
    columns: list[render.Column[Node]] = [
        render.Column("NAME", "name", lambda node: node.name),
        render.Column("ADDRESS", "address", lambda node: node_show.where(node.address)),
        render.Column("TIER", "tier", lambda node: node.tier.word),
        render.Column("LIVENESS", "liveness", lambda node: node.liveness.value),
        render.Column(
            "CONTAINMENT", "containment", lambda node: node.facts.containment if node.facts else ""
        ),
        render.Column(
            "CORDONED",
            "cordoned",
            lambda node: node.is_cordoned_at(now_ms),
            lambda node: _cordoned(node, now_ms),
        ),
        render.Column(
            "SEEN",
            "seen_at",
            lambda node: None if node.seen_at_ms is None else rfc3339(node.seen_at_ms),
            lambda node: times.ago(node.seen_at_ms, now_ms),
        ),
        render.Column("ENFORCED", "enforced", lambda node: node.enforced is not None, wide=True),
        render.Column("NODE ID", "node_id", lambda node: node.node_id, wide=True),
    ]
    fleet = flow.ls(session.runtime)
    if not fleet:
        session.note("the fleet is empty: `wlctl node add NAME HOST`")
    render.rows(session, "wlctl.nodes/1", columns, fleet)


def _cordoned(node: Node, now_ms: int) -> str:
    if not node.is_cordoned_at(now_ms):
        return "no"
    until_ms = node.cordoned_until_ms
    return "yes" if until_ms is None else f"for {times.ago(now_ms, until_ms)}"


@app.command("show")
def show(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="A node.")],
) -> None:
    """Explain a node: what it is, what it has, what runs there, and what is odd.

    It is told from the ledger, without contacting the node; -o json has everything.
    """
    session = session_of(ctx)
    report = node_view.report(session.runtime, name)
    render.document(
        session,
        "wlctl.node/1",
        node_show.document(report),
        node_show.lines(report),
        name=report.node.name,
    )


@app.command("probe")
def probe(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAME…", help="Nodes to look at.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Look at every node.")] = False,
    ask_pass: AskPass = False,
) -> None:
    """Look at nodes again, all at once, and record what each shows."""
    session = session_of(ctx)
    if everything == bool(names):
        raise UsageError("name the nodes to look at, or say --all", hint="`wlctl node ls`")
    if ask_pass:
        if not names or len(set(names)) > 1:
            raise UsageError("a password is for one login", hint="name one node with --ask-pass")
        node_words.log_in_by_password(session, flow.get(session.runtime, names[0]).address)
    contacts = flow.probe(session.runtime, None if everything else names)
    columns: list[render.Column[flow.Contact]] = [
        render.Column("NAME", "name", lambda contact: contact.node),
        render.Column("ANSWER", "answer", _answer),
        render.Column(
            "MEMORY FREE",
            "memory_available_bytes",
            lambda contact: contact.facts.memory_available_bytes if contact.facts else None,
            lambda contact: gib(contact.facts.memory_available_bytes) if contact.facts else "-",
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
            "", "clock_skew_ms", lambda one: one.facts.clock_skew_ms if one.facts else None
        ),
        render.Column(
            "FAILURE",
            "failure",
            lambda contact: contact.failure.message if contact.failure else "",
        ),
    ]
    render.rows(session, "wlctl.probes/1", columns, contacts)
    for contact in contacts:
        if contact.facts is not None and abs(contact.facts.clock_skew_ms) > SKEW_MAX_MS:
            session.note(f"{contact.node}: {skew_text(contact.facts)} [clock-skew]")
        if contact.failure is not None and contact.failure.hint:
            session.note(f"{contact.node}: {contact.failure.hint} [{contact.failure.code}]")
    _exit_for([contact.failure for contact in contacts])


@app.command("measure")
def measure(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Nodes to measure.")],
) -> None:
    """Measure processors, memory and disk of nodes, for less than three seconds each.

    The figures are capabilities `perf.cpu.single`, `perf.cpu.all`, `perf.memory` and
    `perf.disk.write`, of provenance measured; their `value` is in MiB a second: what sha256sum
    hashes on one and on all processors, what dd clears, and what it writes and syncs where
    wlctl's state is. They stay until the node is measured again.
    """
    session = session_of(ctx)
    done = measuring.measure(session.runtime, names)
    columns: list[render.Column[Measurement]] = [
        render.Column("NAME", "name", lambda one: one.node),
        *(_figure(title, id_) for title, id_ in FIGURES.items()),
        render.Column("FAILURE", "failure", lambda one: one.failure.message if one.failure else ""),
    ]
    render.rows(session, "wlctl.measurements/1", columns, done)
    _exit_for([one.failure for one in done])


FIGURES = {
    "CPU SINGLE": "perf.cpu.single",
    "CPU ALL": "perf.cpu.all",
    "MEMORY": "perf.memory",
    "DISK WRITE": "perf.disk.write",
}
"""Column of a measurement to the figure that stands in it."""


def _figure(title: str, id_: str) -> render.Column[Measurement]:
    def value(one: Measurement) -> Json:
        return next((f.attrs["value"] for f in one.figures if f.id == id_), None)

    def text(one: Measurement) -> str:
        found = value(one)
        return "-" if found is None else f"{found} MiB/s"

    return render.Column(title, id_, value, text)


for _name, _command in node_change.COMMANDS.items():
    app.command(_name)(_command)


def _exit_for(failures: Sequence[WlctlError | None]) -> None:
    """End with the code of the first failure when all failed, and as partial when some did."""
    failed = [failure for failure in failures if failure is not None]
    if failed:
        code = failed[0].exit_code if len(failed) == len(failures) else ExitCode.PARTIAL
        raise typer.Exit(code)


def _answer(contact: flow.Contact) -> str:
    return contact.failure.code if contact.failure else "alive"


def _summary(node: Node) -> list[str]:
    lines = [f"added {node.name} ({node_show.where(node.address)}), tier {node.tier.word}"]
    if node.facts is not None:
        facts = node.facts
        lines.append(
            f"  {facts.cpu_cores} cores, {gib(facts.memory_available_bytes)} of "
            f"{gib(facts.memory_total_bytes)} memory free, containment {facts.containment}"
        )
    return lines
