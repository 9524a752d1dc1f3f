"""`wlctl decisions` and `wlctl explain`: what was decided, and why, from what was stored."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, cast

import typer

from wlctl.cli import placed, render, times
from wlctl.cli.listing import trouble_json, trouble_line
from wlctl.cli.options import Output, session_of
from wlctl.flows import decisions as flow
from wlctl.flows.decisions import Explained
from wlctl.ledger.decisions import Stored
from wlctl.model.event import Json, rfc3339

SHORT = 12
"""So much of an id is shown to people; it may be typed so."""


def decisions(
    ctx: typer.Context,
    workload: Annotated[
        str, typer.Option(metavar="WORKLOAD", help="Only about this workload.")
    ] = "",
    node: Annotated[str, typer.Option(metavar="NODE", help="Only those that chose it.")] = "",
    since: Annotated[str, typer.Option(metavar="TIME", help="Only since: 2h, or RFC 3339.")] = "",
) -> None:
    """List what was decided, oldest first, dry runs and what fitted nowhere included."""
    session = session_of(ctx)
    now_ms = session.runtime.now_ms()
    since_ms = times.moment_ms(since, now_ms=now_ms, of="--since") if since else None
    found = flow.ls(session.runtime, workload=workload, node=node, since_ms=since_ms)
    columns: list[render.Column[Stored]] = [
        render.Column("DECISION", "decision", lambda one: one.id, lambda one: one.id[:SHORT]),
        render.Column(
            "AT", "at", lambda one: rfc3339(one.at_ms), lambda one: times.local(one.at_ms)
        ),
        render.Column("NAME", "name", lambda one: one.name),
        render.Column("WORKLOAD", "workload", lambda one: one.workload),
        render.Column("NODE", "node", lambda one: one.node),
        render.Column("DRY RUN", "dry_run", lambda one: one.dry_run),
        render.Column("SEQ", "seq", lambda one: one.seq, wide=True),
        render.Column("", "document", lambda one: one.sha256),
    ]
    render.rows(session, "wlctl.decisions/1", columns, found, none="nothing like that was decided")


def explain(
    ctx: typer.Context,
    decision: Annotated[
        str,
        typer.Argument(
            metavar="[DECISION|NAME]", help="An id or its beginning, or what was decided about."
        ),
    ] = "",
    last: Annotated[bool, typer.Option("--last", help="The decision that was made last.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="All decisions about a name, newest first.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="List every node, however many there are.")
    ] = False,
    why: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Show all checks of NODE; repeat.")
    ] = None,
    html_file: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Also write it as a page that stands alone."),
    ] = None,
) -> None:
    """Say why a decision came out as it did: of a name, the newest decision about it.

    The text is made of what was stored when it was decided, as the dry run's was; the fleet may
    look otherwise by now. What is wrong with a copy of that name, and for how long, is said below.
    """
    session = session_of(ctx)
    found = flow.explain(session.runtime, decision, last=last, everything=everything)
    if html_file is not None:
        from wlctl.cli import html  # for those who ask for it

        html.write(html_file, html.of_stored(found))
    lines = []
    for one in found:
        lines += list(placed.explained(one.document, why=why or (), everything=full))
        lines.append(f"decision {one.stored.id}")
    trouble = flow.trouble_of(session.runtime, decision) if decision else None
    if trouble is not None:
        lines.append(f"{decision} now: {trouble_line(trouble, session.runtime.now_ms())}")
    told: list[Json] = [_json(one) for one in found]
    if session.output is Output.JSONL:
        for value in told:
            assert isinstance(value, Mapping)
            render.document(session, "wlctl.explain/1", value, ())
        return
    document: dict[str, Json] = {"decisions": told, "trouble": trouble_json(trouble)}
    render.document(session, "wlctl.explain/1", document, lines, name=found[0].stored.id)


def _json(one: Explained) -> dict[str, Json]:
    stored = one.stored
    return {
        "decision": stored.id,
        "at": rfc3339(stored.at_ms),
        "name": stored.name,
        "workload": stored.workload,
        "node": stored.node,
        "dry_run": stored.dry_run,
        "seq": stored.seq,
        "document": cast("Mapping[str, Json]", one.document),
    }
