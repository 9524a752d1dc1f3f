"""What `wlctl place` can be told: its arguments and options, one field each."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from wlctl.flows.waiting import Until


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One command line of `place`, as it was typed."""

    package: Annotated[
        Path,
        typer.Argument(help="Directory of a built and signed package; NAME@VERSION or id if kept."),
    ]
    args: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- ARGS]", help="Added to its command, if it takes any."),
    ] = None
    name: Annotated[str, typer.Option(help="What to call the copy; else the workload's.")] = ""
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Decide, explain and record; do nothing else.")
    ] = False
    pin: Annotated[str, typer.Option(metavar="NODE", help="This node or none.")] = ""
    prefer: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Liked, most liked first; repeat.")
    ] = None
    avoid: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Taken when nothing else fits; repeat.")
    ] = None
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="The node must have it: ID, ID[.ATTR]=VALUE, >=, <=, ' in A,B', ' has VALUE'; "
            "label.K is short for node.label.K; repeat.",
        ),
    ] = None
    count: Annotated[
        int, typer.Option(min=1, max=1000, help="So many copies, NAME.1 to NAME.N.")
    ] = 1
    allow_emulated: Annotated[
        bool, typer.Option("--allow-emulated", help="Emulated variants may be chosen.")
    ] = False
    start: Annotated[
        bool, typer.Option("--start/--no-start", help="Start it, or only stage it.")
    ] = True
    refresh: Annotated[
        bool,
        typer.Option("--refresh/--no-refresh", help="Look again at nodes whose facts ran out."),
    ] = True
    project: Annotated[
        str, typer.Option(help="Kept with the order; the policy may ask for it.")
    ] = ""
    env: Annotated[
        list[str] | None,
        typer.Option(
            metavar="K=V",
            help="Set a variable that the package allows; no secret: it is kept. Repeat.",
        ),
    ] = None
    env_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Lines K=V, as if each was given with --env, and kept as those: for secrets "
            "there is --secret.",
        ),
    ] = None
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=ENTRY]",
            help="Take the package's secret NAME from that entry of your [secrets]; repeat.",
        ),
    ] = None
    lease: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Its node ends it when `reconcile` has not renewed it for so long; else its own.",
        ),
    ] = ""
    no_migrate: Annotated[
        bool,
        typer.Option("--no-migrate", help="Never move it by itself, whatever its package says."),
    ] = False
    max_reschedules: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=1_000_000,
            help="How often it may be moved by itself; else its own.",
        ),
    ] = None
    key: Annotated[
        str,
        typer.Option(help="Spent by the first order with it: a repeated command places once."),
    ] = ""
    until: Annotated[
        Until,
        typer.Option(
            "--wait", help="Return when it is up and healthy, or (a job) when it has finished."
        ),
    ] = Until.RUNNING
    detach: Annotated[
        bool, typer.Option("--detach", help="Return when it was started; wait for nothing.")
    ] = False
    timeout: Annotated[
        str, typer.Option(metavar="TIME", help="How long to wait until it is up, e.g. 90s.")
    ] = "5m"
    rm_on_failure: Annotated[
        bool,
        typer.Option("--rm-on-failure", help="Unload what did not come up, instead of keeping it."),
    ] = False
    plan_out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --dry-run: keep what was found, for --plan."),
    ] = None
    plan_file: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="Place only if it comes out as kept; else exit 8."
        ),
    ] = None
    why: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Show all checks of NODE; repeat.")
    ] = None
    snapshot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Decide from a saved fleet (`wlctl ledger snapshot`), with --dry-run; the "
            "package may be a workload.toml that was never built.",
        ),
    ] = None
    html_file: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Also write why as a page that stands alone."),
    ] = None
    everything: Annotated[
        bool, typer.Option("--all", help="List every node, however many there are.")
    ] = False
