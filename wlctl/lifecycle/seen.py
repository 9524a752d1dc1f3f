"""Judges which state a copy is in by one look at its node; a look proves no end of anything."""

from dataclasses import dataclass, replace

from wlctl.lifecycle.machine import LIVE
from wlctl.model.actions import GenerationStatus, InstanceStatus
from wlctl.model.generation import Liveliness
from wlctl.model.instance import Instance, State
from wlctl.model.workload import Kind

UNHEALTHY = "unhealthy"
"""The supervisor's word for a run that failed as many checks in a row as its package allows."""

STAGED = frozenset({State.LOADED, State.STOPPED, State.FINISHED, State.FAILED, State.LOST})
"""What is in one of these can be started, so a start whose answer was lost may have been carried
out. What is `stopping` may still be reached by a stop that is on its way."""

LEASE = "lease"
"""The supervisor's word for what the dead-man lease has ended."""

SIGNALLED = 128
"""A status above this is a signal, as shells count."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one look says of a copy.

    Attributes:
        state: The ledger's own where the look does not say otherwise.
        reason: Why it is another one; empty where it is not.
        run: Of which the look tells; None where it tells of none that the ledger knows.
        is_alive: Its leader runs, and it was not closed.
        begun: Runs that the ledger does not know of, oldest first: its supervisor began each by
            itself.
    """

    state: State
    reason: str = ""
    run: GenerationStatus | None = None
    is_alive: bool = False
    begun: tuple[GenerationStatus, ...] = ()


def current_of(seen: InstanceStatus) -> GenerationStatus | None:
    """Give what was seen of the run that was launched last."""
    return seen.newest


def begun_since(instance: Instance, seen: InstanceStatus) -> tuple[GenerationStatus, ...]:
    """Give the runs that the copy's supervisor began since the ledger was told of one.

    Its node gives a run a number by itself only then; any other number that the ledger has not
    given says nothing.
    """
    newest = seen.newest
    if newest is None or newest.begun is None or newest.number <= instance.generation:
        return ()
    return tuple(
        one
        for one in seen.generations
        if one.begun is not None and instance.generation < one.number <= newest.number
    )


def is_ended_by_lease(seen: InstanceStatus) -> bool:
    """Answer whether its node says that the newest run was ended because its lease ran out."""
    return seen.restarts is not None and seen.restarts.held == LEASE


def number_of(instance: Instance, seen: InstanceStatus) -> int:
    """Give the number of the copy's newest run, by its node's word where that goes further."""
    begun = begun_since(instance, seen)
    return begun[-1].number if begun else instance.generation


def judge(instance: Instance, seen: InstanceStatus | None, *, twice: bool = False) -> Seen:
    """Answer which state the copy is in.

    Only of a copy that lives by the ledger's word, or of which nobody knew, can a look say more
    than the ledger does; a run that was closed is being ended, and how it ends is for the proof to
    say. One whose leader is gone while others of its cgroup live on has not ended. An exit is
    written a moment after it happens, so one that is missing counts only when it was looked for
    `twice`. What its supervisor is to begin again has not failed until that says so.

    Args:
        seen: None where the node does not list the copy: that says nothing.
    """
    run = None if seen is None else seen.newest
    if seen is None or run is None or run.torn:
        return Seen(instance.state)
    begun = begun_since(instance, seen)
    if run.number != instance.generation and not begun:
        return Seen(instance.state)
    if run.closed and seen.restarts is None:
        return Seen(instance.state, begun=begun)
    is_alive = run.leader is Liveliness.ALIVE and not run.closed
    started = instance.unsettled and is_alive and instance.state in STAGED
    if instance.state not in LIVE and not started:
        return Seen(instance.state, run=run, is_alive=is_alive, begun=begun)
    was = replace(instance, state=State.RUNNING) if begun else instance
    state, reason = _state(was, seen, run, twice=twice)
    is_news = begun or state is not instance.state
    return Seen(state, reason if is_news else "", run, is_alive, begun)


def _state(
    instance: Instance, seen: InstanceStatus, run: GenerationStatus, *, twice: bool
) -> tuple[State, str]:
    name, policy = f"g{run.number}", seen.restarts
    if policy is not None and policy.held == LEASE:
        return State.LOST, policy.why
    if policy is not None and policy.held:
        return State.FAILED, f"{policy.why} ({policy.held})"
    if run.closed:
        return State.RESTARTING, f"its supervisor replaces {name}"
    match run.leader:
        case Liveliness.ALIVE if run.health == UNHEALTHY:
            return State.UNHEALTHY, f"{name} failed {run.misses} health checks in a row"
        case Liveliness.ALIVE:
            return State.RUNNING, f"{name} runs"
        case Liveliness.UNKNOWN:
            return State.LOST, f"its node was started anew after {name} was launched"
        case Liveliness.GONE if run.populated:
            return instance.state, ""
        case Liveliness.GONE if seen.is_begun_again(run):
            status = "" if run.exit_status is None else f" with {status_text(run.exit_status)}"
            return State.UNHEALTHY, f"{name} ended by itself{status}, and is to be begun again"
        case Liveliness.GONE if twice or run.exit_status is not None:
            return ended(instance.kind, run.exit_status, name, oom_kills=run.oom_kills)
        case _:
            return instance.state, ""


def ended(
    kind: Kind, exit_status: int | None, name: str, *, oom_kills: int | None = None
) -> tuple[State, str]:
    """Answer what a run is that ended by itself: a job with success, or a failure.

    A service is to run until it is stopped, so that it ended is a failure whatever its status.

    Args:
        exit_status: As a shell counts; None when nobody knows.
        name: Of the run.
    """
    if exit_status is None:
        return State.FAILED, f"{name} ended, and with which status is not known (exit-unknown)"
    if exit_status == 0 and kind is not Kind.SERVICE:
        return State.FINISHED, f"{name} ended with status 0"
    why = f"{name} ended by itself with {status_text(exit_status)}"
    return State.FAILED, f"{why}, out of memory" if oom_kills else why


def status_text(exit_status: int) -> str:
    """Say an exit status, and the signal that it stands for."""
    signal = f" (signal {exit_status - SIGNALLED})" if exit_status > SIGNALLED else ""
    return f"status {exit_status}{signal}"
