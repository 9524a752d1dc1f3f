"""`wlctl audit`: what happened, and whether the record of it is whole."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli import render, times
from wlctl.cli.command import App
from wlctl.cli.escape import visible_json
from wlctl.cli.options import Output, Session, session_of
from wlctl.cli.progress import Advance, progress
from wlctl.errors import ChainBroken, ExitCode, FalseWitness, UsageError
from wlctl.flows import audit as flow
from wlctl.flows import witnessed as witnessing
from wlctl.flows.audit import Wanted
from wlctl.flows.witnessed import Witnessed
from wlctl.ledger.verify import Broken
from wlctl.model.event import Event, Json
from wlctl.model.ids import is_sha256
from wlctl.model.witness import Standing

app = App("The chain: what happened, in order, and whether the record of it is whole.")

FOLLOWED_TAIL = 10
SHOWN_CHARACTERS = 72


@app.command("log")
def log(
    ctx: typer.Context,
    kind: Annotated[
        str | None, typer.Option(help="Only of this kind, or of a family such as `node.*`.")
    ] = None,
    instance: Annotated[
        str | None, typer.Option(help="Only about this instance: name, id or beginning of an id.")
    ] = None,
    node: Annotated[str | None, typer.Option(help="Only about this node.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only since: 2h, or RFC 3339.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only until: 2h, or RFC 3339.")
    ] = None,
    tail: Annotated[
        int | None, typer.Option(min=0, help="Only so many of the newest; 10 with --follow.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on with what happens from now on.")
    ] = False,
) -> None:
    """List what happened, oldest first.

    The order is that of SEQ. Times are those of the clock of whoever wrote, which may have been set
    back; they inform and decide nothing.
    """
    session = session_of(ctx)
    now_ms = session.runtime.now_ms()
    wanted = Wanted(
        kind=kind,
        instance=instance,
        node=node,
        since_ms=None if since is None else times.moment_ms(since, now_ms=now_ms, of="--since"),
        until_ms=None if until is None else times.moment_ms(until, now_ms=now_ms, of="--until"),
    )
    if follow and tail is None:
        tail = FOLLOWED_TAIL
    events = flow.log(session.runtime, wanted, tail=tail, follow=follow)
    show = render.follow if follow else render.rows
    show(session, "wlctl.audit.log/1", _COLUMNS, events)


@app.command("verify")
def verify(
    ctx: typer.Context,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A checkpoint that was kept elsewhere."),
    ] = None,
    witnesses: Annotated[
        bool, typer.Option("--witnesses", help="Ask every node for the checkpoints it keeps.")
    ] = False,
) -> None:
    """Verify every link of the chain, and every row that an event tells of.

    Whoever owns the ledger's disk can cut or rewrite all of it; --against holds it to a checkpoint
    that they could not change, and --witnesses to all those that nodes were left.

    Exit 11: it does not hold, and the first bad event is named; or a node was told more of the
    chain, or another one: the ledger was rolled back, or forked. Exit 7: a node keeps what was
    never signed here. Exit 9: a node could not be asked.
    """
    session = session_of(ctx)
    with _verifying(session) as advance:
        reached = 0

        def tell(seq: int) -> None:
            nonlocal reached
            advance(seq - reached)
            reached = seq

        found = flow.verify(session.runtime, against=against, progress=tell)
    if isinstance(found, Broken):
        value: dict[str, Json] = {"whole": False, "seq": found.seq, "why": found.why}
        where = f"at event {found.seq}" if found.seq else "in its rows"
        lines = [f"broken {where}: {found.why}"]
        render.document(session, "wlctl.audit.verify/1", value, lines, name=str(found.seq))
        raise ChainBroken(
            f"the chain is broken {where}: {found.why}",
            hint="keep the ledger as it is, and look for a backup or a checkpoint kept elsewhere",
        )
    head = found.head
    value = {"whole": True, "seq": head.seq, "hash": head.hash, "epoch": head.epoch}
    held = f", and has the event of {against}" if against else ""
    lines = [f"whole: {head.seq} events{held}", f"  the newest is {head.hash}"]
    asked = witnessing.ask(session.runtime) if witnesses else []
    if witnesses:
        value["witnesses"] = [_witness_json(one) for one in asked]
        lines += map(_witness_line, asked)
    render.document(session, "wlctl.audit.verify/1", value, lines, name=str(head.seq))
    _raise_worst(asked)


def _witness_json(one: Witnessed) -> dict[str, Json]:
    return {
        "node": one.node,
        "standing": None if one.standing is None else one.standing.value,
        "epoch": None if one.newest is None else one.newest.epoch,
        "seq": None if one.newest is None else one.newest.seq,
        "checked": one.checked,
        "code": "" if one.failure is None else one.failure.code,
        "message": "" if one.failure is None else one.failure.message,
    }


def _witness_line(one: Witnessed) -> str:
    at = f"event {one.newest.seq}" if one.newest else ""
    if one.newest and one.newest.epoch:
        at += f" of epoch {one.newest.epoch}"
    match one.standing:
        case Standing.AGREES:
            checked = render.counted(one.checked, "checkpoint")
            return f"{one.node} agrees: {checked}, the newest of {at}"
        case Standing.NONE:
            return f"{one.node} keeps no checkpoint yet"
        case Standing.SUPERSEDED:
            return f"{one.node} agrees: its newest, of {at}, is from before the ledger was rebuilt"
        case Standing.ROLLED_BACK:
            return f"{one.node} was told more: {at} is not in this ledger, it was rolled back"
        case Standing.FORKED:
            return f"{one.node} was told another {at}: the ledger was forked"
        case None:
            assert one.failure is not None, "there is a reason for what is not known"
            return f"{one.node} could not be asked ({one.failure.code}): {one.failure.message}"


def _raise_worst(asked: Sequence[Witnessed]) -> None:
    """End with what is worst of what the nodes said."""
    said = [(one.standing, one.failure) for one in asked if one.failure is not None]
    for standing, failure in said:
        if standing is not None:
            raise failure
    if any(isinstance(failure, FalseWitness) for _, failure in said):
        raise typer.Exit(ExitCode.PARTIAL)
    if said:
        raise typer.Exit(ExitCode.UNREACHABLE)


@app.command("checkpoint")
def checkpoint(ctx: typer.Context) -> None:
    """Print a signed checkpoint of the chain, to be kept where nobody here can change it."""
    session = session_of(ctx)
    made = flow.checkpoint(session.runtime)
    readable = session.output in (Output.TABLE, Output.WIDE)
    if readable and not session.streams.out_is_unicode:
        raise UsageError(
            "a checkpoint is UTF-8, and stdout is not", hint="set LC_ALL=C.UTF-8, or use -o json"
        )
    head = made.checkpoint
    value: dict[str, Json] = {
        "installation": head.installation,
        "epoch": head.epoch,
        "seq": head.seq,
        "hash": head.hash,
        "note": made.note,
    }
    lines = made.note.splitlines()
    render.document(session, "wlctl.audit.checkpoint/1", value, lines, name=head.hash)


@app.command("export")
def export(
    ctx: typer.Context,
    after: Annotated[int, typer.Option(metavar="SEQ", min=0, help="Only events after SEQ.")] = 0,
) -> None:
    """Print every event as one line of JSON, with all that its hash was made of.

    The hash is the sha256 of the RFC 8785 form of the same object without `hash`.
    """
    session = session_of(ctx)
    ascii_only = not session.streams.out_is_unicode
    for event in flow.export(session.runtime, after_seq=after):
        if session.streams.reader_gone:
            return
        line = json.dumps(_whole(event), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
        session.streams.data(f"{visible_json(line, ascii_only=ascii_only)}\n")


@contextmanager
def _verifying(session: Session) -> Iterator[Advance]:
    total = flow.length(session.runtime) if session.streams.err_is_terminal else None
    with progress(session, "verifying the chain", total) as advance:
        yield advance


def _whole(event: Event) -> dict[str, Json]:
    return {
        "seq": event.seq,
        "at": event.at,
        "kind": event.kind,
        "actor": event.actor,
        "payload": event.payload,
        "prev_hash": event.prev_hash,
        "hash": event.hash,
    }


def _about(event: Event) -> str:
    """Say what an event is about: as people call it, where it has a name."""
    told = event.payload
    keys = ("name", "instance", "node", "signer", "scope")
    return next((str(told[key]) for key in keys if told.get(key)), "-")


def _what(event: Event) -> str:
    """Say in a few words what an event tells besides what it is about, and by whom."""
    told = {key: value for key, value in event.payload.items() if key not in _ELSEWHERE}
    before, after = told.pop("from", None), told.pop("to", None)
    words = [f"{before or 'new'} -> {after}"] if after else []
    keys = [*(key for key in _FIRST if key in told), *(key for key in told if key not in _FIRST)]
    words += [f"{key}={_short(told[key])}" for key in keys if told[key] not in (None, "")]
    if reason := event.payload.get("reason"):
        words.append(f"({_short(reason)})")
    text = " ".join(words)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"


_ELSEWHERE = frozenset(
    {"by", "name", "instance", "signer", "scope", "reason"}  # shown in another place
    | {"public_key", "host_key", "ssh", "checkpoint"}  # too long to be read; in JSON
)


_FIRST = ("phase", "outcome", "action", "ruling", "rule", "node", "dry_run", "generation")
"""What somebody looks for in a line that is cut off at its end."""


def _short(value: Json) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case dict() | list():
            return "…"
        case str() if is_sha256(value):
            return f"{value[:12]}…"
        case _:
            return str(value)


def _by(event: Event, key: str) -> str:
    by = event.payload.get("by")
    return str(by.get(key, "-")) if isinstance(by, dict) else "-"


_COLUMNS: list[render.Column[Event]] = [
    render.Column("SEQ", "seq", lambda event: event.seq),
    render.Column("AT", "at", lambda event: event.at, lambda event: times.local_of(event.at)),
    render.Column("KIND", "kind", lambda event: event.kind),
    render.Column("ABOUT", "about", _about),
    render.Column("WHAT", "payload", lambda event: event.payload, _what),
    render.Column("ACTOR", "actor", lambda event: event.actor, wide=True),
    render.Column("COMMAND", "command", lambda event: _by(event, "command"), wide=True),
    render.Column("MESSAGE", "message", lambda event: _by(event, "message"), wide=True),
    render.Column("", "prev_hash", lambda event: event.prev_hash),
    render.Column("", "hash", lambda event: event.hash),
]
