"""`wlctl node set`: what an operator says of a node, or where it is reached."""

from dataclasses import dataclass
from typing import Annotated

import typer

from wlctl.cli import node_show, node_words, render
from wlctl.cli.command import taking
from wlctl.cli.node_words import AskPass, Name
from wlctl.cli.options import Session, session_of
from wlctl.errors import UsageError
from wlctl.flows import node_changes as flow
from wlctl.flows import node_view
from wlctl.flows.node_changes import Words
from wlctl.model.node import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One command line of `node set`, as it was typed."""

    name: Name
    tier: Annotated[
        str, typer.Option(metavar="TIER", help="discovered, paired (runs signed work) or trusted.")
    ] = ""
    capability: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID[,ATTR=VALUE…]",
            help="It has this, e.g. sensor.cam.front,resolution=1080; with `,exclusive` for one "
            "instance at a time; repeat.",
        ),
    ] = None
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE", help="A node label, for --where label.KEY=VALUE; repeat."
        ),
    ] = None
    remove_capability: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="It no longer has this; repeat.")
    ] = None
    remove_label: Annotated[
        list[str] | None, typer.Option(metavar="LABEL", help="It no longer has the label; repeat.")
    ] = None
    containment: Annotated[
        str,
        typer.Option(
            metavar="auto|leader-only",
            help="leader-only: start workloads there even where it has no cgroup to give them.",
        ),
    ] = ""
    address: Annotated[
        str,
        typer.Option(
            metavar="[USER@]HOST", help="Reach it there from now on, if it answers there."
        ),
    ] = ""
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of its sshd there; 0 for what ssh would use.")
    ] = 0
    sudo: Annotated[
        bool | None,
        typer.Option("--sudo/--no-sudo", help="Run actions there through `sudo -n`, or no longer."),
    ] = None
    ask_pass: AskPass = False


@taking(Asked)
def set_(ctx: typer.Context, asked: Asked) -> None:
    """Say what a node is and has, beside what its probes see, or where it is.

    A tier is your word, never the node's, and so is it that workloads may run there without a
    cgroup: such a run is not confined, gets no lease and no secret, and may not be proven gone
    before the next boot. Capabilities and labels are of provenance claimed, and stay through every
    probe until they are removed. Another address is taken only when the node answers there with its
    recorded host key and identity.
    """
    session = session_of(ctx)
    words = _words(asked)
    if asked.address:
        if words != Words():
            raise UsageError("an address is tried first, so it is set alone", hint="two commands")
        node = _move_address(session, asked)
    elif asked.port or asked.sudo is not None or asked.ask_pass:
        raise UsageError(
            "a port, sudo and a password go with an address", hint="give --address too"
        )
    elif words == Words():
        raise UsageError("there is nothing to say", hint="`wlctl node set --help`")
    else:
        node = flow.say(session.runtime, asked.name, words)
    report = node_view.report(session.runtime, node.name)
    lines = node_show.lines(report)
    render.document(session, "wlctl.node/1", node_show.document(report), lines, name=node.name)


def _words(asked: Asked) -> Words:
    claims = [
        *map(node_words.claim, asked.capability or ()),
        *map(node_words.node_label, asked.label or ()),
    ]
    ids = [one.id for one in claims]
    for id_ in ids:
        if ids.count(id_) > 1:
            raise UsageError(f"{id_} is given twice", hint="one of each")
    labels = map(flow.label_id, asked.remove_label or ())
    return Words(
        tier=node_words.tier(asked.tier) if asked.tier else None,
        settles=node_words.settles(asked.containment) if asked.containment else None,
        claims=tuple(claims),
        withdrawn=tuple(dict.fromkeys([*(asked.remove_capability or ()), *labels])),
    )


def _move_address(session: Session, asked: Asked) -> Node:
    where = node_words.address(asked.address, port=asked.port, sudo=False)
    if asked.ask_pass:
        node_words.log_in_by_password(session, where)
    node, changed = flow.move_address(session.runtime, asked.name, where, sudo=asked.sudo)
    name = asked.name
    session.note(f"{name} answered there" if changed else f"{name} is reached there already")
    return node
