"""`wlctl reconcile`: one pass over the fleet, as cron runs it; or one after the other."""

import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Annotated

import typer

from wlctl.cli import render
from wlctl.cli.options import Output, Session, session_of
from wlctl.errors import ExitCode
from wlctl.flows.reconcile import Done, Pass
from wlctl.flows.reconcile import reconcile as go_over
from wlctl.lifecycle.table import Act
from wlctl.model.alert import KeptAlert
from wlctl.model.event import Json

SCHEMA = "wlctl.reconcile/1"

DRY_RUN = "dry_run"
"""What came of a copy about which something would be done."""


def reconcile(
    ctx: typer.Context,
    node: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Only this node; repeat.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Look, say what would be done, and do nothing.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only when something was done or is wrong.")
    ] = False,
    watch: Annotated[
        int | None,
        typer.Option(min=1, metavar="SECONDS", help="Stay, and do it again so often."),
    ] = None,
) -> None:
    """Look at every node once, finish what was interrupted, and carry out what was asked for.

    What a killed command or a lost answer left open is settled; a stop or unload that could not be
    proven, or whose node was away, is asked for again; what shall run and does not is started, also
    after its node was started anew; how copies are is written into their history. A pass right
    after one does nothing. Run it from cron every minute: `wlctl help cron`.

    A node that is silent for long, while others answer, is dead: what was meant to run there is
    placed anew, so many copies a pass as max_moves_per_pass says. Without a lease such a copy may
    still run on a node that is only cut off, until that is back: at least once. With one (--lease)
    the new copy waits until the old one is gone for certain.

    Every node is left a checkpoint of the chain now and then, and the ledger is held to the one it
    keeps: an old or copied ledger does nothing here (exit 11, `wlctl help recover-ledger`).

    What is wrong is an alert, raised once, and closed when it is over: `wlctl alerts`. Exit 5: this
    pass raised one about something unsettled or unproven. Exit 7: it raised others only. Exit 0:
    whatever is still wrong was raised before.
    """
    session = session_of(ctx)
    stopped = threading.Event()
    if watch is not None:
        _stop_on_signals(stopped)
    while True:
        found = go_over(session.runtime, node or (), dry_run=dry_run)
        _show(session, found, quiet=quiet, dry_run=dry_run)
        if watch is None or stopped.wait(watch):
            break
    code = ExitCode.DONE if watch is not None else _exit_code(found)
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


def _stop_on_signals(stopped: threading.Event) -> None:
    """End after the pass under way, with nothing left in the middle."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        stopped.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)


def _exit_code(found: Pass) -> ExitCode:
    if any(one.alert.is_unproven for one in found.raised):
        return ExitCode.INDETERMINATE
    return ExitCode.PARTIAL if found.raised else ExitCode.DONE


def _show(session: Session, found: Pass, *, quiet: bool, dry_run: bool) -> None:
    if quiet and found.is_quiet:
        return
    if session.output is Output.TABLE and not quiet and found.is_quiet:
        session.streams.data(f"{_summary(found, dry_run=dry_run)}\n", now=True)
        return
    told: dict[str, Json] = {
        "dry_run": dry_run,
        "another_pass": found.is_other,
        "nodes": found.asked,
        "silent": {name: failure.code for name, failure in found.silent.items()},
        "isolated": found.isolated,
        "done": [_json(one) for one in found.done],
        "raised": [_alert(one) for one in found.raised],
        "closed": [_alert(one) for one in found.closed],
        "open_alerts": found.open,
    }
    render.document(session, SCHEMA, told, list(lines(found, dry_run=dry_run)))


def _json(one: Done) -> dict[str, Json]:
    return {
        "name": one.name,
        "node": one.node,
        "act": one.act.value if one.act else "finish",
        "came": one.came,
        "trouble": one.trouble,
        "unproven": one.is_unproven,
    }


def _alert(kept: KeptAlert) -> dict[str, Json]:
    one = kept.alert
    return {"kind": one.kind.value, "subject": one.subject, "reason": one.reason}


def lines(found: Pass, *, dry_run: bool) -> Iterator[str]:
    """Say what a pass found and did, or would do."""
    yield from _lines(found)
    yield _summary(found, dry_run=dry_run)


def _lines(found: Pass) -> Iterator[str]:
    for name, failure in found.silent.items():
        yield f"{name} cannot be looked at ({failure.code}): {failure.message}"
    for one in found.done:
        what = one.act.value if one.act is not None and one.act is not Act.NOTHING else "finish"
        if one.act is Act.NOTHING:
            what = "seen"
        if one.came == DRY_RUN:
            yield f"would {what.replace('_', ' ')} {one.name} on {one.node}"
            continue
        trouble = f": {one.trouble}" if one.trouble else ""
        came = f"{what}, {one.came}".replace("_", " ")
        yield f"{one.name} on {one.node}: {came}{trouble}"
    if found.isolated:
        yield "this machine seems to be cut off: no node is judged by its silence"
    for kept in found.raised:
        subject = f" {kept.alert.subject}" if kept.alert.subject else ""
        yield f"alert {kept.id}, {kept.alert.kind.value}{subject}: {kept.alert.reason}"
    for kept in found.closed:
        subject = f" {kept.alert.subject}" if kept.alert.subject else ""
        yield f"alert {kept.id}, {kept.alert.kind.value}{subject}: over"


def _summary(found: Pass, *, dry_run: bool) -> str:
    if found.is_other:
        return "another reconcile is at work on this ledger: nothing to do here"
    silent = f", {len(found.silent)} silent" if found.silent else ""
    if found.open:
        silent += f"; alerts open: {found.open}"
    wrong = sum(bool(one.trouble) for one in found.done)
    would = "would be " if dry_run else ""
    did = (
        f"{len(found.done) - wrong} {would}brought nearer, {wrong} not as they should be"
        if found.done
        else "nothing to do"
    )
    return f"{render.counted(found.asked, 'node')}{silent}; {did}"
