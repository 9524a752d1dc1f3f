"""`wlctl place`: decide where a workload goes, say why, put it there, and wait until it is up."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli import placed, render
from wlctl.cli.options import Session, session_of
from wlctl.cli.patience import patience
from wlctl.cli.placed import Waits
from wlctl.cli.progress import progress
from wlctl.cli.times import duration_s
from wlctl.errors import ExitCode, Interrupted, InvalidFile, UsageError
from wlctl.flows import ending, plan, waiting
from wlctl.flows import place as flow
from wlctl.flows import snapshot as from_snapshot
from wlctl.flows.deciding import Order
from wlctl.flows.waiting import Came, Until
from wlctl.model.ids import NodeName
from wlctl.placement.where import parse

MAX_ENV_BYTES = 1 << 20


def place(
    ctx: typer.Context,
    package: Annotated[
        Path,
        typer.Argument(help="Directory of a built and signed package; NAME@VERSION or id if kept."),
    ],
    args: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- ARGS]", help="Added to its command, if it takes any."),
    ] = None,
    name: Annotated[str, typer.Option(help="What to call the copy; else the workload's.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Decide, explain and record; do nothing else.")
    ] = False,
    pin: Annotated[str, typer.Option(metavar="NODE", help="This node or none.")] = "",
    prefer: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Liked, most liked first; repeat.")
    ] = None,
    avoid: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Taken when nothing else fits; repeat.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="The node must have it: ID, ID[.ATTR]=VALUE, >=, <=, ' in A,B', ' has VALUE'; "
            "label.K is short for node.label.K; repeat.",
        ),
    ] = None,
    count: Annotated[
        int, typer.Option(min=1, max=1000, help="So many copies, NAME.1 to NAME.N.")
    ] = 1,
    allow_emulated: Annotated[
        bool, typer.Option("--allow-emulated", help="Emulated variants may be chosen.")
    ] = False,
    start: Annotated[
        bool, typer.Option("--start/--no-start", help="Start it, or only stage it.")
    ] = True,
    refresh: Annotated[
        bool,
        typer.Option("--refresh/--no-refresh", help="Look again at nodes whose facts ran out."),
    ] = True,
    project: Annotated[
        str, typer.Option(help="Kept with the order; the policy may ask for it.")
    ] = "",
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V", help="Set a variable that the package allows; repeat."),
    ] = None,
    env_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Lines K=V, as if each was given with --env."),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=ENTRY]",
            help="Take the package's secret NAME from that entry of your [secrets]; repeat.",
        ),
    ] = None,
    lease: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Its node ends it when `reconcile` has not renewed it for so long; else its own.",
        ),
    ] = "",
    no_migrate: Annotated[
        bool,
        typer.Option("--no-migrate", help="Never move it by itself, whatever its package says."),
    ] = False,
    max_reschedules: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=1_000_000,
            help="How often it may be moved by itself; else its own.",
        ),
    ] = None,
    key: Annotated[
        str,
        typer.Option(help="Spent by the first order with it: a repeated command places once."),
    ] = "",
    until: Annotated[
        Until,
        typer.Option(
            "--wait", help="Return when it is up and healthy, or (a job) when it has finished."
        ),
    ] = Until.RUNNING,
    detach: Annotated[
        bool, typer.Option("--detach", help="Return when it was started; wait for nothing.")
    ] = False,
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long to wait until it is up, e.g. 90s.")
    ] = "5m",
    rm_on_failure: Annotated[
        bool,
        typer.Option("--rm-on-failure", help="Unload what did not come up, instead of keeping it."),
    ] = False,
    plan_out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --dry-run: keep what was found, for --plan."),
    ] = None,
    plan_file: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="Place only if it comes out as kept; else exit 8."
        ),
    ] = None,
    why: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Show all checks of NODE; repeat.")
    ] = None,
    snapshot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Decide from a saved fleet (`wlctl ledger snapshot`), with --dry-run; the "
            "package may be a workload.toml that was never built.",
        ),
    ] = None,
    html_file: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Also write why as a page that stands alone."),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List every node, however many there are.")
    ] = False,
) -> None:
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
    """
    session = session_of(ctx)
    settings = session.settings
    pinned = pin or settings.place_pin
    if plan_out is not None and not dry_run:
        raise UsageError("--plan-out keeps what a dry run found", hint="add --dry-run")
    order = Order(
        package=package,
        name=name,
        pin=NodeName(pinned) if pinned else None,
        prefer=tuple(NodeName(node) for node in prefer or settings.place_prefer),
        avoid=tuple(NodeName(node) for node in avoid or settings.place_avoid),
        where=tuple(map(parse, where or ())),
        count=count,
        allow_emulated=allow_emulated,
        why=tuple(NodeName(node) for node in why or ()),
        start=start,
        dry_run=dry_run,
        refresh=refresh,
        project=project,
        env=environment(env or (), env_file),
        args=tuple(args or ()),
        secrets=tuple(map(_entry, secret or ())),
        lease_ms=round(duration_s(lease) * 1000) if lease else None,
        migratable=False if no_migrate else None,
        max_reschedules=max_reschedules,
        key=key,
        to_finish=until is Until.FINISHED and not detach,
        plan=None if plan_file is None else plan.read(plan_file),
    )
    timeout_s = duration_s(timeout)
    if snapshot is not None and not dry_run:
        raise UsageError("nothing can be placed on a saved fleet", hint="add --dry-run")
    what = "deciding" if dry_run else "placing"
    with (
        patience(session, "what is under way on the nodes") as go_on,
        progress(session, f"{what} {order.name or package.name}"),
    ):
        report = (
            flow.place(session.runtime, order, go_on=go_on)
            if snapshot is None
            else from_snapshot.decide(order, snapshot)
        )
        waits: Waits = {}
        if start and not detach and not dry_run:
            waits = waiting.wait_for_all(
                session.runtime, report, until=until, timeout_s=timeout_s, go_on=go_on
            )
            if rm_on_failure:
                _remove_failed(session, waits)
        called_off = not go_on()
    if report.is_stale:
        session.note(f"{package}/workload.toml was changed after the build; what was built counts")
    if plan_out is not None and report.plan is not None:
        plan.write(report.plan, plan_out)
    if html_file is not None:
        from wlctl.cli import html  # for those who ask for it

        html.write(html_file, html.of_report(report))
    told = placed.document(report, waits)
    lines = placed.lines(report, waits, why=why or (), everything=everything)
    render.document(session, placed.SCHEMA, told, lines, name=report.name)
    if called_off:
        raise Interrupted("interrupted; how it stands is said above")
    code = placed.exit_code(report, waits)
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


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
