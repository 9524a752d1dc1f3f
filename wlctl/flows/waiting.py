"""Wait for a placed copy to be up, or to finish, by looking at its node again and again."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from wlctl.errors import ForeignNode, Unreachable, WlctlError
from wlctl.flows import fanout, logs
from wlctl.flows.mirror import current_of, mirror
from wlctl.flows.nodes import check_identity
from wlctl.flows.place import Report
from wlctl.flows.runtime import Runtime
from wlctl.ledger import instances, nodes
from wlctl.lifecycle.seen import status_text
from wlctl.model.actions import GenerationStatus, InstanceStatus, Refused
from wlctl.model.ids import InstanceId
from wlctl.model.instance import Instance, State
from wlctl.model.node import Node
from wlctl.model.workload import Kind

UP_AFTER_S = 0.5
"""A copy without a health check is up when it has lived so long: what fails at once fails here."""

POLL_S = 0.1
POLL_MAX_S = 2.0

LOG_LINES = 20
"""So much of its output is shown of a copy that failed."""


class Until(StrEnum):
    """What is waited for."""

    RUNNING = "running"
    """It runs and, where it has a health check, was healthy once; a job has begun."""
    FINISHED = "finished"
    """It ended by itself, with success."""


class Came(StrEnum):
    """What came of the waiting."""

    UP = "up"
    FINISHED = "finished"
    FAILED = "failed"
    LATE = "late"
    """Not in time; it is kept."""
    CALLED_OFF = "called_off"
    """Whoever waited did not want to any longer; it is kept."""


@dataclass(frozen=True, slots=True)
class Awaited:
    """What was waited for and came, or did not.

    Attributes:
        instance: As it is now.
        exit_status: As a shell counts; None while it runs, or where nobody knows.
        detail: In words, of what failed or was late.
        log: The end of its output, where it failed: text from outside.
    """

    came: Came
    instance: Instance
    exit_status: int | None = None
    detail: str = ""
    log: tuple[str, ...] = ()


def wait_for_all(
    rt: Runtime,
    report: Report,
    *,
    until: Until,
    timeout_s: float,
    go_on: Callable[[], bool],
) -> dict[str, Awaited]:
    """Wait for every copy that was just placed and started, by name."""
    started = [
        copy.instance
        for copy in report.copies
        if copy.is_placed and copy.launched is not None and copy.instance is not None
    ]

    def one(instance: Instance) -> Awaited:
        return wait(
            rt,
            instance.id,
            until=until,
            has_health=report.has_health,
            timeout_s=timeout_s,
            go_on=go_on,
        )

    if len(started) == 1:
        return {started[0].name: one(started[0])}
    return {started[n].name: came for n, came in fanout.each(started, one)}


def wait(
    rt: Runtime,
    instance_id: InstanceId,
    *,
    until: Until,
    has_health: bool,
    timeout_s: float,
    go_on: Callable[[], bool],
) -> Awaited:
    """Look at a copy's node until it is up, has ended, or the time has passed.

    What is seen is kept in its history. A node that does not answer is asked again.
    """
    with rt.ledger.read() as tx:
        instance = instances.get(tx, instance_id)
        node = nodes.get(tx, instance.node)
    began_s = run_began_s = rt.elapsed_s()
    pause_s, detail = POLL_S, ""
    number = instance.generation
    while True:
        seen, failure = _look(rt, node, instance_id)
        detail = failure or detail
        if seen is not None:
            with rt.ledger.write(rt.now_ms(), rt.author) as tx:
                instance = mirror(tx, instances.get(tx, instance_id), seen, at_ms=tx.now_ms)
            if instance.generation != number:  # its supervisor has begun another run
                number, run_began_s = instance.generation, rt.elapsed_s()
            lived_s = rt.elapsed_s() - run_began_s
            run = current_of(seen)
            came = _came(instance, run, until, has_health=has_health, lived_s=lived_s)
            detail = _said(run)
            if came is not None:
                return _answer(rt, came, instance, run)
        left_s = timeout_s - (rt.elapsed_s() - began_s)
        if not go_on():
            return Awaited(Came.CALLED_OFF, instance, detail=detail)
        if left_s <= 0:
            log = _log(rt, instance)
            return Awaited(Came.LATE, instance, detail=detail, log=log)
        rt.sleep(min(pause_s, left_s))
        pause_s = min(POLL_MAX_S, pause_s * 1.5)


def _look(rt: Runtime, node: Node, instance_id: InstanceId) -> tuple[InstanceStatus | None, str]:
    """Look once: what was seen of the copy, or why nothing was."""
    try:
        with rt.connect(node.address) as session:
            status = session.status(rt.ledger.installation)
            if isinstance(status, Refused):
                return None, f"{node.name} refuses to be looked at: {status.detail}"
            check_identity(node, status.node_id)
    except (Unreachable, ForeignNode) as failure:
        return None, failure.message
    found = next((one for one in status.instances if one.instance == instance_id), None)
    return found, "" if found else f"{node.name} does not list it"


def _came(
    instance: Instance,
    run: GenerationStatus | None,
    until: Until,
    *,
    has_health: bool,
    lived_s: float,
) -> Came | None:
    """Say what one look means for who waits; None to look again."""
    match instance.state:
        case State.FINISHED:
            return Came.FINISHED
        case State.RUNNING:
            pass
        case State.UNHEALTHY | State.RESTARTING:
            return None  # its supervisor may bring it up yet
        case _:
            return Came.FAILED
    if until is Until.FINISHED or run is None:
        return None
    if instance.kind is not Kind.SERVICE:
        return Came.UP
    if has_health:
        return Came.UP if run.health == "healthy" else None
    return Came.UP if lived_s >= UP_AFTER_S else None


def _said(run: GenerationStatus | None) -> str:
    if run is None:
        return "its node has no run of it"
    if run.health == "unhealthy":
        return f"{run.misses} health checks in a row have failed"
    return f"its health is {run.health}" if run.health else "it runs"


def _answer(rt: Runtime, came: Came, instance: Instance, run: GenerationStatus | None) -> Awaited:
    status = None if run is None else run.exit_status
    if came is not Came.FAILED:
        return Awaited(came, instance, exit_status=status)
    why = f"it is {instance.state.value}"
    if run is not None and run.oom_kills:
        why = "it ran out of memory"
    elif status is not None:
        why = f"it ended with {status_text(status)}"
    return Awaited(came, instance, exit_status=status, detail=why, log=_log(rt, instance))


def _log(rt: Runtime, instance: Instance) -> tuple[str, ...]:
    """Fetch the end of its output, as far as it can be had: it is shown beside what matters."""
    try:
        return tuple(logs.logs(rt, instance.id, lines=LOG_LINES).text.splitlines())
    except WlctlError as failure:
        return (f"(its output cannot be had: {failure.message})",)
