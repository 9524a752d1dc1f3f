"""Interval jobs: a pass starts what is due, by the same flow that `start` uses.

A job is on its schedule while it is wanted to run: `place` and `start` run it once at once, `stop`
takes it off. What is due on a node that does not answer waits, and is then run once, however often
it was missed.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from wlctl.errors import Busy, Overtaken, WlctlError
from wlctl.flows import recover, starting
from wlctl.flows.done import Done
from wlctl.flows.runtime import Runtime
from wlctl.flows.start_intents import Begin, Beginning
from wlctl.ledger import generations, instances, packages, schedules, troubles
from wlctl.ledger.schedules import Scheduled
from wlctl.ledger.store import ReadTx
from wlctl.lifecycle.machine import LIVE
from wlctl.lifecycle.schedule import Due, Turn, first_due, is_zone_known, next_due, turn
from wlctl.lifecycle.table import Act
from wlctl.model.alert import Alert, AlertKind
from wlctl.model.ids import NodeName, PackageId
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.package import Schedule
from wlctl.model.workload import Kind
from wlctl.package import manifest

_ENDED = frozenset({State.FINISHED, State.FAILED})
"""A job in one of these can be run again; a failed one, too, since its next run is no retry."""

_GOES_ON = LIVE | {State.STOPPING}


@dataclass(frozen=True, slots=True)
class Ran:
    """What a pass did about interval jobs.

    Attributes:
        done: What was started, left out, or could not be started.
        alerts: What is wrong by now, whether it is new or not.
    """

    done: tuple[Done, ...] = ()
    alerts: tuple[Alert, ...] = ()


@dataclass(frozen=True, slots=True)
class _Job:
    """One interval job as a pass finds it.

    Attributes:
        begun_at_ms: When its newest run was asked for; None before the first.
        is_open: A verb on it is under way, or was left in the middle.
    """

    instance: Instance
    schedule: Schedule
    kept: Scheduled | None
    begun_at_ms: int | None
    is_open: bool


def run_due(rt: Runtime, answered: Collection[NodeName], *, dry_run: bool = False) -> Ran:
    """Start each interval job that is due; where none is, write nothing.

    Args:
        answered: The nodes that were looked at; a job elsewhere waits.
        dry_run: Say what would be done.
    """
    with rt.ledger.read() as tx:
        jobs = _jobs(tx)
    if not dry_run:
        _forget(rt, {job.instance.id for job in jobs})
    done, alerts = [], []
    for job in jobs:
        if not is_zone_known(job.schedule):
            alerts.append(_lost_in_time(job))
        elif job.instance.node in answered and not job.is_open and not job.instance.unsettled:
            found = _see_to(rt, job, dry_run=dry_run)
            if found is not None:
                done.append(found)
    with rt.ledger.read() as tx:
        return Ran(tuple(done), (*alerts, *_alerts(tx)))


def _lost_in_time(job: _Job) -> Alert:
    why = f"this machine does not know the timezone {job.schedule.timezone}: install tzdata"
    return Alert(AlertKind.ACTION_FAILED, job.instance.name, why)


def _jobs(tx: ReadTx) -> list[_Job]:
    scheduled = [
        one for one in instances.of_kind(tx, Kind.INTERVAL) if one.desired is Desired.RUNNING
    ]
    if not scheduled:
        return []
    kept, runs = schedules.ls(tx), generations.newest(tx)
    known: dict[PackageId, Schedule] = {}
    found = []
    for one in scheduled:
        if one.package_id not in known:
            stated = manifest.read(packages.get(tx, one.package_id).manifest.encode())
            assert stated.workload.schedule is not None, "a checked interval job has one"
            known[one.package_id] = stated.workload.schedule
        begun_at_ms = runs[one.id].intended_at_ms if one.id in runs else None
        is_open = recover.is_open(tx, one)
        found.append(_Job(one, known[one.package_id], kept.get(one.id), begun_at_ms, is_open))
    return found


def _forget(rt: Runtime, on_schedule: Collection[str]) -> None:
    with rt.ledger.read() as tx:
        off = [id_ for id_ in schedules.ls(tx) if id_ not in on_schedule]
    if off:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            for id_ in off:
                schedules.clear(tx, id_)


def _see_to(rt: Runtime, job: _Job, *, dry_run: bool) -> Done | None:
    instance, now_ms = job.instance, rt.now_ms()
    if job.begun_at_ms is None or instance.state not in _ENDED | _GOES_ON:
        return None  # its first run, or the one after a reboot, is for others to begin
    kept = job.kept or _first(job.schedule, job.begun_at_ms, now_ms)
    due = Due(kept.due_at_ms, kept.kept_at_ms)
    is_running = instance.state in _GOES_ON
    now = turn(due, now_ms, begun_at_ms=job.begun_at_ms, is_running=is_running)
    if dry_run:
        return _done(instance, "dry_run") if now is Turn.RUN else None
    if now is Turn.RUN:
        return _run(rt, job, kept)
    if now is Turn.SKIP:
        return _skip(rt, job, kept)
    later = next_due(job.schedule, due, now_ms)
    fresh = replace(kept, due_at_ms=later.at_ms, kept_at_ms=later.kept_at_ms)
    if job.begun_at_ms > kept.kept_at_ms:  # somebody has started it since
        fresh = replace(fresh, skipped_at_ms=None, failure="")
    elif not is_running:
        fresh = replace(fresh, skipped_at_ms=None)
    if fresh != job.kept:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            schedules.put(tx, instance.id, fresh)
    return None


def _first(schedule: Schedule, begun_at_ms: int, now_ms: int) -> Scheduled:
    due = first_due(schedule, begun_at_ms)
    return Scheduled(due.at_ms, now_ms)


def _skip(rt: Runtime, job: _Job, kept: Scheduled) -> Done:
    assert kept.due_at_ms is not None, "what is due has a moment"
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        later = next_due(job.schedule, Due(kept.due_at_ms, kept.kept_at_ms), tx.now_ms)
        since_ms = tx.now_ms if kept.skipped_at_ms is None else kept.skipped_at_ms
        schedules.record_skipped(tx, job.instance, kept.due_at_ms)
        fresh = replace(
            kept, due_at_ms=later.at_ms, kept_at_ms=later.kept_at_ms, skipped_at_ms=since_ms
        )
        schedules.put(tx, job.instance.id, fresh)
    return _done(job.instance, "skipped: still running")


def _run(rt: Runtime, job: _Job, kept: Scheduled) -> Done:
    """Start the run that is due; only then is the next one due.

    A process that dies in between leaves a run that was asked for after it was due, and the next
    pass takes it for that. Where the node could not be asked, the same run stays due.
    """
    try:
        came = starting.start_one(rt, job.instance, as_seen=True)
    except (Busy, Overtaken):
        return _done(job.instance, "busy")
    except WlctlError as failure:
        return _begun(rt, job, kept, "failed", failure.message)
    if came.begin is Begin.UNREACHABLE:
        return _done(came.instance, came.begin.value)
    is_well = came.begin in (Begin.DONE, Begin.ALREADY)
    return _begun(rt, job, kept, came.begin.value, "" if is_well else _why(came))


def _why(came: Beginning) -> str:
    return came.detail or came.code or came.begin.value


def _begun(rt: Runtime, job: _Job, kept: Scheduled, came: str, failure: str) -> Done:
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        later = next_due(job.schedule, Due(kept.due_at_ms, kept.kept_at_ms), tx.now_ms)
        fresh = Scheduled(later.at_ms, later.kept_at_ms, failure=failure)
        schedules.put(tx, job.instance.id, fresh)
        if not failure:  # what was wrong with the run before is over with this one
            troubles.clear(tx, job.instance.id)
    done = _done(job.instance, came)
    return replace(done, trouble=failure, kind=AlertKind.ACTION_FAILED) if failure else done


def _done(instance: Instance, came: str) -> Done:
    return Done(instance.name, instance.node, Act.START, came)


def _alerts(tx: ReadTx) -> list[Alert]:
    kept = schedules.ls(tx)
    found = []
    for one in instances.of_ids(tx, kept):
        job = kept[one.id]
        if job.skipped_at_ms is not None:
            why = f"g{one.generation} was still running when the next run was due"
            found.append(Alert(AlertKind.JOB_SKIPPED, one.name, why))
        if job.failure:
            why = f"the run that was due could not be started: {job.failure}"
            found.append(Alert(AlertKind.ACTION_FAILED, one.name, why))
    return found
