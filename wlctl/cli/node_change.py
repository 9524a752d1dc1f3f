"""The commands of `wlctl node` that change what the ledger says of a node."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from wlctl.cli import node_drain, node_enforce, node_set, node_show, node_words, render, times
from wlctl.cli.node_show import node_json
from wlctl.cli.node_words import AskPass, Name
from wlctl.cli.options import session_of
from wlctl.errors import UsageError
from wlctl.flows import node_changes as flow
from wlctl.flows import node_view
from wlctl.model.event import Json, rfc3339
from wlctl.model.instance import Instance
from wlctl.model.node import Tier


def cordon(
    ctx: typer.Context,
    name: Name,
    during: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="End it by itself, e.g. after 30m.")
    ] = "",
) -> None:
    """Let nothing new be placed on a node; what runs there goes on."""
    session = session_of(ctx)
    for_ms = int(times.duration_s(during, of="--for") * 1000) if during else None
    if for_ms == 0:
        raise UsageError("a cordon cannot end before it begins", hint="--for 30m")
    node = flow.cordon(session.runtime, name, for_ms=for_ms)
    until_ms = node.cordoned_until_ms
    document: dict[str, Json] = {
        "name": node.name,
        "cordoned": True,
        "cordoned_until": None if until_ms is None else rfc3339(until_ms),
    }
    until = "" if until_ms is None else f" until {times.local(until_ms)}"
    line = f"{node.name} is cordoned{until}: it takes nothing new"
    render.document(session, "wlctl.cordon/1", document, [line], name=node.name)


def rekey(
    ctx: typer.Context,
    name: Name,
    host_key: Annotated[
        str, typer.Option(metavar="SHA256:…", help="The fingerprint it must show; asks otherwise.")
    ] = "",
    tier: Annotated[
        str, typer.Option(metavar="TIER", help="discovered, paired (runs signed work) or trusted.")
    ] = Tier.DISCOVERED.word,
    ask_pass: AskPass = False,
) -> None:
    """Take the host key and the identity that a node shows now.

    For a machine that was replaced or installed anew. Its tier is discovered unless you say
    otherwise. When it is another machine, what the ledger holds on the old one stays held: the new
    one cannot prove that anything ended there.
    """
    session = session_of(ctx)

    def accept(shown: str, placed: tuple[str, ...]) -> None:
        if host_key and shown != host_key:
            raise node_words.other_key(name, shown, host_key)
        if host_key:
            return
        what = f"{name} shows the host key {shown}" if shown else f"{name} is this machine"
        held = f" What is placed there stays held: {flow.listed(placed)}." if placed else ""
        session.confirm(f"{what}.{held} Is that {name} from now on?")

    before = node_view.report(session.runtime, name).node
    if ask_pass:
        node_words.log_in_by_password(session, before.address)
    done = flow.rekey(session.runtime, name, node_words.tier(tier), accept=accept)
    node = done.node
    what = "another machine" if done.replaced else "the same machine"
    if done.other_key:
        what += ", under another host key"
    lines = [f"{node.name} is {what}; its tier is {node.tier.word}"]
    if before.enforced is not None and node.enforced is None:
        lines.append(f"  it is not enforced: `wlctl node enforce {name} --as LOGIN`")
    if done.left:
        lines.append(
            f"  held on the machine that it was: {flow.listed(done.left)}; "
            f"`wlctl node attest-dead {name} --replaced` releases it"
        )
    document: dict[str, Json] = {
        **node_json(node),
        "replaced": done.replaced,
        "held": list(done.left),
    }
    render.document(session, "wlctl.rekey/1", document, lines, name=node.name)


def attest_dead(
    ctx: typer.Context,
    name: Name,
    replaced: Annotated[
        bool,
        typer.Option("--replaced", help="Of the machine that had the name before `rekey`."),
    ] = False,
) -> None:
    """Vouch that a machine will not come back with what ran there.

    What was meant to run there is lost and may be placed elsewhere; what was to be unloaded is
    gone; nothing there holds anything any more. Nobody proves that: when you are wrong, two copies
    may run. A node that answers is refused. The word ends at the node's next answer.
    """
    from wlctl.flows import attesting

    session = session_of(ctx)

    def accept(held: Sequence[Instance]) -> None:
        names = flow.listed([one.name for one in held])
        which = f"the machine that was {name}" if replaced else name
        holds = f"What it holds is released: {names}." if held else "It holds nothing."
        session.confirm(f"{holds} Will {which} never come back with anything running?")

    done = attesting.attest_dead(session.runtime, name, replaced=replaced, accept=accept)
    which = f"the machine that was {name} before" if replaced else name
    lines = [f"{which} is attested dead"]
    lines += [f"  released {one.name} ({one.id}), {one.state.value}" for one in done.released]
    document: dict[str, Json] = {
        "name": name,
        "replaced": replaced,
        "released": [
            {"instance": one.id, "name": one.name, "state": one.state.value}
            for one in done.released
        ],
    }
    render.document(session, "wlctl.attested-dead/1", document, lines, name=name)


def rm(
    ctx: typer.Context,
    name: Name,
    clean: Annotated[
        bool,
        typer.Option("--clean", help="Take away what wlctl has there first, and say what it was."),
    ] = False,
) -> None:
    """Take a node out of the fleet; it must hold nothing any more.

    With --clean this installation's state goes from the node, and all of wlctl's when no other
    installation is left there. Without it nothing is contacted.
    """
    session = session_of(ctx)
    report = node_view.report(session.runtime, name)
    node = report.node
    first = ""
    if node.enforced is not None:
        command = f"`wlctl node enforce {name} --as LOGIN --remove`"
        first = f" Its doorkeeper stays: {command} takes it away first."
    lost = [one.name for one in report.instances] if node.attested_dead_at_ms is not None else []
    if lost:
        first += f" What was lost with it ends with it: {flow.listed(lost)}."
    session.confirm(f"Remove {name} ({node_show.where(node.address)}) from the fleet?{first}")
    cleaned = flow.remove(session.runtime, name, clean=clean)
    lines = [f"removed {name} from the fleet"]
    document: dict[str, Json] = {
        "name": name,
        "cleaned": cleaned is not None,
        "enforced": node.enforced is not None,
    }
    if cleaned is not None:
        document |= {"removed": list(cleaned.removed), "kept_for": list(cleaned.kept_for)}
        lines += [f"  removed {path}" for path in cleaned.removed]
        lines += [f"  kept what installation {other} has there" for other in cleaned.kept_for]
    if node.enforced is not None:
        lines.append("  left its doorkeeper, and wlctl's key as it is: see docs/guide/enforce.md")
    render.document(session, "wlctl.node-removed/1", document, lines, name=name)


COMMANDS: Mapping[str, Callable[..., None]] = {
    "set": node_set.set_,
    "cordon": cordon,
    "uncordon": node_drain.uncordon,
    "drain": node_drain.drain,
    "rekey": rekey,
    "enforce": node_enforce.enforce,
    "attest-dead": attest_dead,
    "rm": rm,
}
"""In the order in which help lists them."""
