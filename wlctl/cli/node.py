"""`wlctl node`: the fleet."""

from collections.abc import Sequence
from typing import Annotated

import typer

from wlctl.cli import node_add, node_change, node_show, node_words, render, times
from wlctl.cli.command import App
from wlctl.cli.node_show import gib
from wlctl.cli.node_words import AskPass
from wlctl.cli.options import Output, Session, session_of
from wlctl.cli.targets import DryRun
from wlctl.errors import UsageError
from wlctl.flows import measuring, node_view
from wlctl.flows import nodes as flow
from wlctl.flows.measuring import Measurement
from wlctl.lifecycle.oddity import SKEW_MAX_MS, skew_text
from wlctl.model.event import Json, rfc3339
from wlctl.model.node import Node

app = App("The fleet: the machines that wlctl places on.")

app.command("add")(node_add.add)


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
    node_words.exit_for([contact.failure for contact in contacts])


@app.command("measure")
def measure(
    ctx: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME…", help="Nodes to measure.")],
    dry_run: DryRun = False,
) -> None:
    """Measure processors, memory and disk of nodes, for less than three seconds each.

    The figures are capabilities `perf.cpu.single`, `perf.cpu.all`, `perf.memory` and
    `perf.disk.write`, of provenance measured; their `value` is in MiB a second: what sha256sum
    hashes on one and on all processors, what dd clears, and what it writes and syncs where
    wlctl's state is. They stay until the node is measured again.
    """
    session = session_of(ctx)
    if dry_run:
        _show_measured(session, measuring.meant(session.runtime, names))
        return
    done = measuring.measure(session.runtime, names)
    columns: list[render.Column[Measurement]] = [
        render.Column("NAME", "name", lambda one: one.node),
        *(_figure(title, id_) for title, id_ in FIGURES.items()),
        render.Column("FAILURE", "failure", lambda one: one.failure.message if one.failure else ""),
    ]
    render.rows(session, "wlctl.measurements/1", columns, done)
    node_words.exit_for([one.failure for one in done])


def _show_measured(session: Session, chosen: Sequence[Node]) -> None:
    """Print which nodes would be measured."""
    if session.output is Output.NAME:
        for one in chosen:
            render.document(session, "", {}, (), name=one.name)
        return
    told: list[Json] = [{"name": one.name, "liveness": one.liveness.value} for one in chosen]
    value: dict[str, Json] = {"verb": "measure", "dry_run": True, "nodes": told}
    lines = [f"would measure {one.name}: it is {one.liveness.value}" for one in chosen]
    render.document(session, "wlctl.node-targets/1", value, lines)


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


def _answer(contact: flow.Contact) -> str:
    return contact.failure.code if contact.failure else "alive"
