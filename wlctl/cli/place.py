"""`wlctl place`: decide where a workload goes, say why, put it there, and wait until it is up."""

from collections.abc import Callable, Iterable
from pathlib import Path

import typer

from wlctl.cli import placed, render
from wlctl.cli.command import taking
from wlctl.cli.options import Session, session_of
from wlctl.cli.patience import patience
from wlctl.cli.place_options import Asked
from wlctl.cli.placed import Waits
from wlctl.cli.progress import progress
from wlctl.cli.times import duration_s
from wlctl.config import Settings
from wlctl.errors import ExitCode, Interrupted, InvalidFile, UnknownName, UsageError
from wlctl.flows import ending, nodes, plan, waiting
from wlctl.flows import place as flow
from wlctl.flows import snapshot as from_snapshot
from wlctl.flows.deciding import Order
from wlctl.flows.place import Report
from wlctl.flows.waiting import Came, Until
from wlctl.model.ids import NodeName
from wlctl.placement.where import parse

MAX_ENV_BYTES = 1 << 20


@taking(Asked)
def place(ctx: typer.Context, asked: Asked) -> None:
    """Choose a node for a workload, say why, start it there, and wait until it is up.

    Every node is judged by every constraint, and the decision is kept with all its reasons before
    anything is sent; --dry-run is the same without the sending. Where a node refuses or cannot be
    reached, the next best one is tried. An answer that got lost is asked for again; only if that
    cannot be had, nobody knows (exit 5), and the same command or `wlctl unload` settles it.

    It is up when it is healthy once, or, without a health check, has run for half a second. What
    does not come up in time is kept for you to look at (exit 1). A name that runs the same already
    is nothing to do. Ctrl-C finishes the step under way; twice leaves at once.

    The policy in force is asked for every node (`wlctl policy show`): a node it denies is rejected
    with the rule that decided, and so is one that would need an approver first.

    Exit 3: no node can take it. Exit 4: it may not be placed, or its name or key is taken. Exit 7:
    some of --count are up, some are not. Exit 8: it does not come out as in --plan. Exit 9: no
    candidate could be reached.
    """
    session = session_of(ctx)
    _check(asked)
    order = _order(asked, session.settings)
    _note_strangers(session, asked)
    timeout_s = duration_s(asked.timeout, of="--timeout")
    what = "deciding" if asked.dry_run else "placing"
    with (
        patience(session, "what is under way on the nodes") as go_on,
        progress(session, f"{what} {order.name or asked.package.name}"),
    ):
        report = (
            flow.place(session.runtime, order, go_on=go_on)
            if asked.snapshot is None
            else from_snapshot.decide(order, asked.snapshot)
        )
        waits = _wait(session, report, asked, timeout_s, go_on)
        called_off = not go_on()
    _keep(session, report, asked)
    why, everything = asked.why or (), asked.everything
    lines = placed.lines(report, waits, why=why, everything=everything)
    told = placed.document(report, waits)
    render.document(session, placed.SCHEMA, told, lines, name=report.name)
    if called_off:
        raise Interrupted("interrupted; how it stands is said above")
    code = placed.exit_code(report, waits)
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


def _check(asked: Asked) -> None:
    """Refuse options that say nothing together."""
    if asked.plan_out is not None and not asked.dry_run:
        raise UsageError("--plan-out keeps what a dry run found", hint="add --dry-run")
    if asked.snapshot is not None and not asked.dry_run:
        raise UsageError("nothing can be placed on a saved fleet", hint="add --dry-run")


def _note_strangers(session: Session, asked: Asked) -> None:
    """Say which nodes that are to be preferred or avoided are none: nothing else would."""
    if asked.snapshot is not None:
        return
    for option, names in (("--prefer", asked.prefer), ("--avoid", asked.avoid)):
        for name in names or ():
            try:
                nodes.get(session.runtime, name)
            except UnknownName as failure:
                session.note(
                    f"{failure.message} ({option}), so that changes nothing: {failure.hint}"
                )


def _order(asked: Asked, settings: Settings) -> Order:
    pinned = asked.pin or settings.place_pin
    return Order(
        package=asked.package,
        name=asked.name,
        pin=NodeName(pinned) if pinned else None,
        prefer=tuple(NodeName(node) for node in asked.prefer or settings.place_prefer),
        avoid=tuple(NodeName(node) for node in asked.avoid or settings.place_avoid),
        where=tuple(map(parse, asked.where or ())),
        count=asked.count,
        allow_emulated=asked.allow_emulated,
        why=tuple(NodeName(node) for node in asked.why or ()),
        start=asked.start,
        dry_run=asked.dry_run,
        refresh=asked.refresh,
        project=asked.project,
        env=environment(asked.env or (), asked.env_file),
        args=tuple(asked.args or ()),
        secrets=tuple(map(_entry, asked.secret or ())),
        lease_ms=round(duration_s(asked.lease, of="--lease") * 1000) if asked.lease else None,
        migratable=False if asked.no_migrate else None,
        max_reschedules=asked.max_reschedules,
        key=asked.key,
        to_finish=asked.until is Until.FINISHED and not asked.detach,
        plan=None if asked.plan_file is None else plan.read(asked.plan_file),
    )


def _wait(
    session: Session, report: Report, asked: Asked, timeout_s: float, go_on: Callable[[], bool]
) -> Waits:
    """Wait for what was placed, as far as somebody wants that; unload what did not come up."""
    if asked.dry_run or asked.detach or not asked.start:
        return {}
    waits = waiting.wait_for_all(
        session.runtime, report, until=asked.until, timeout_s=timeout_s, go_on=go_on
    )
    if asked.rm_on_failure:
        _remove_failed(session, waits)
    return waits


def _keep(session: Session, report: Report, asked: Asked) -> None:
    """Write the files that were asked for, and say what is odd about the package."""
    if report.is_stale:
        description = f"{asked.package}/workload.toml"
        session.note(f"{description} was changed after the build; what was built counts")
    if report.document is None and (asked.why or asked.html_file):
        session.note(f"nothing had to be decided: `wlctl explain {report.name}` has what was")
    if asked.plan_out is not None and report.plan is not None:
        plan.write(report.plan, asked.plan_out)
    if asked.html_file is not None:
        from wlctl.cli import html  # for those who ask for it

        html.write(asked.html_file, html.of_report(report))


def _remove_failed(session: Session, waits: Waits) -> None:
    for name, awaited in waits.items():
        if awaited.came in (Came.FAILED, Came.LATE):
            ended = ending.unload(session.runtime, awaited.instance.id)
            session.note(f"{name} did not come up; unload: {ended.end.value}")


def _entry(word: str) -> tuple[str, str]:
    name, equals, entry = word.partition("=")
    if not name or (equals and not entry):
        raise UsageError("--secret takes NAME or NAME=ENTRY")
    return name, entry or name


def environment(given: Iterable[str], file: Path | None) -> tuple[tuple[str, str], ...]:
    """Put variables together; what is said last counts, the command line after the file.

    Raises:
        UsageError: One has no `=`.
        InvalidFile: The file cannot be read, or a line of it is none.
    """
    found: dict[str, str] = {}
    if file is not None:
        for number, line in enumerate(_read(file).splitlines(), 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            name, equals, value = line.partition("=")
            if not equals or not name.strip():
                raise InvalidFile(f"{file} line {number} is not K=V")
            found[name.strip()] = value
    for word in given:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UsageError("--env takes K=V", hint="what comes before the first = is its name")
        found[name] = value
    return tuple(found.items())


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_ENV_BYTES + 1)
        if len(data) > MAX_ENV_BYTES:
            raise InvalidFile(f"{file} is larger than {MAX_ENV_BYTES} bytes")
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{file} is not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise InvalidFile(f"{file} cannot be read: {error.strerror}") from error
