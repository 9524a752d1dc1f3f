"""Empty a node: nothing new goes there, and each copy that runs there is moved, or stopped."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from wlctl.errors import Overtaken, WlctlError
from wlctl.flows import ending, fanout, moving, node_changes, starting
from wlctl.flows.ending import End
from wlctl.flows.moving import Moved, Step, Way
from wlctl.flows.runtime import Runtime
from wlctl.flows.start_intents import Begin, Beginning
from wlctl.ledger import instances, nodes, troubles
from wlctl.ledger.troubles import Trouble
from wlctl.lifecycle.machine import LIVE, UNDERWAY
from wlctl.model.alert import AlertKind
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Node
from wlctl.model.workload import Kind

WIDTH = 4
"""Each move waits for a copy to be up; more at once would only crowd the nodes they go to."""


@dataclass(frozen=True, slots=True)
class Emptied:
    """What came of one copy.

    Attributes:
        moved: Where it was moved, or could not be; None where that was not tried.
        is_stopped: It is proven stopped, and `uncordon --resume` starts it.
        why: It still runs there, because; empty where it does not.
    """

    instance: Instance
    moved: Moved | None = None
    is_stopped: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True)
class Drained:
    """What came of a drain; it is done when nothing is `left`."""

    node: Node
    copies: tuple[Emptied, ...]
    dry_run: bool = False

    @property
    def left(self) -> tuple[Emptied, ...]:
        """Those that still run there, or are not proven gone."""
        return tuple(one for one in self.copies if one.why)


def drain(
    rt: Runtime,
    name: str,
    *,
    stop_rest: bool = False,
    dry_run: bool = False,
    deadline_s: float | None = None,
    go_on: Callable[[], bool] = lambda: True,
) -> Drained:
    """Cordon a node and move everything that runs there.

    Args:
        stop_rest: What cannot be moved is stopped, and can be resumed.
        deadline_s: After that nothing more is begun; None for no such time.

    Raises:
        GateDenied: Whoever runs this may not cordon.
        UnknownName: There is no such node.
    """
    until_s = None if deadline_s is None else rt.elapsed_s() + deadline_s

    def is_time() -> bool:
        return go_on() and (until_s is None or rt.elapsed_s() < until_s)

    if dry_run:
        with rt.ledger.read() as tx:
            node = nodes.get(tx, name)
    else:
        node = node_changes.cordon(rt, name, for_ms=None)
    with rt.ledger.read() as tx:
        here = [one for one in instances.current(tx) if one.node == name and _runs(one)]
    work = partial(_empty, rt, stop_rest=stop_rest, dry_run=dry_run, is_time=is_time)
    found = dict(fanout.each(here, work, width=WIDTH, width_max=WIDTH))
    emptied = [found[position] for position in range(len(here))]
    return Drained(node, (*emptied, *_others_there(rt, name, here)), dry_run)


def _others_there(rt: Runtime, name: str, seen_to: Sequence[Instance]) -> Iterator[Emptied]:
    """Say what else may run there: what is being ended or was lost, and what has come meanwhile."""
    with rt.ledger.read() as tx:
        there = [*instances.rescheduled(tx), *instances.current(tx)]
    known = {one.id for one in seen_to}
    for one in there:
        if one.node != name or one.id in known:
            continue
        if one.unsettled or one.state in _MAY_RUN:
            yield Emptied(one, why=f"it is {one.state.value} there, and not proven gone")
        elif _runs(one):
            yield Emptied(one, why=f"it is {one.state.value} there, and is to run")


_MAY_RUN = LIVE | UNDERWAY | {State.STOPPING, State.LOST, State.REVOKED, State.RESCHEDULED}


def _runs(instance: Instance) -> bool:
    """Answer whether a copy runs there, or will when it is due, or when the next pass starts it."""
    is_due = instance.kind is Kind.INTERVAL and instance.state in _BETWEEN_RUNS
    is_to_come = is_due or instance.state in _TO_START
    return instance.desired is Desired.RUNNING and (instance.state in LIVE or is_to_come)


_TO_START = frozenset({State.LOADED, State.STOPPED})
_BETWEEN_RUNS = frozenset({State.FINISHED, State.FAILED})


def _empty(
    rt: Runtime,
    instance: Instance,
    *,
    stop_rest: bool,
    dry_run: bool,
    is_time: Callable[[], bool],
) -> Emptied:
    if not is_time():
        return Emptied(instance, why="there was no time left to begin with it")
    moved: Moved | None = None
    try:
        moved = moving.move(rt, instance, Way(dry_run=dry_run), go_on=is_time)
    except WlctlError as failure:
        why = failure.message
    else:
        why = moved.detail or moved.step.value
    if moved is not None and moved.step in (Step.MOVED, Step.WOULD):
        return Emptied(instance, moved)
    if not stop_rest or (moved is not None and moved.step is Step.NOT_GONE):
        return Emptied(instance, moved, why=why)
    return Emptied(instance, moved, is_stopped=True) if dry_run else _halt(rt, instance, moved)


def _halt(rt: Runtime, instance: Instance, moved: Moved | None) -> Emptied:
    """Stop a copy for the time being, unless somebody wants it ended for good by now."""
    halt = Trouble(AlertKind.DRAINED, f"it was stopped because {instance.node} was drained")
    with rt.ledger.read() as tx:
        now = instances.get(tx, instance.id)
    if now.desired is not Desired.RUNNING:
        is_there = now.unsettled or now.state in _MAY_RUN - {State.RESCHEDULED}
        why = f"it is {now.state.value}, and is to be {now.desired.value}" if is_there else ""
        return Emptied(now, moved, why=why)
    try:
        came = ending.stop_one(rt, now, halt=halt, as_seen=True)
    except WlctlError as failure:
        return Emptied(instance, moved, why=failure.message)
    if came.end in (End.DONE, End.ALREADY):
        return Emptied(came.instance, moved, is_stopped=True)
    return Emptied(came.instance, moved, why=came.detail or came.code or came.end.value)


def resume(rt: Runtime, name: NodeName) -> list[Beginning]:
    """Start what a drain has stopped on a node; what does not start can be resumed again."""
    begun = []
    for instance in halted(rt, name):
        try:
            came = starting.start_one(rt, instance, as_seen=True)
        except Overtaken:
            continue  # somebody has asked for something else meanwhile
        begun.append(came)
        if came.begin in (Begin.DONE, Begin.ALREADY):
            with rt.ledger.write(rt.now_ms(), rt.author) as tx:
                troubles.clear(tx, instance.id)
    return begun


def halted(rt: Runtime, name: NodeName) -> list[Instance]:
    """Find what a drain has stopped on a node, and nobody has asked anything of since."""
    with rt.ledger.read() as tx:
        return [
            one
            for one in instances.of_ids(tx, _stopped_by_drains(troubles.ls(tx)))
            if one.node == name and one.desired is Desired.STOPPED
        ]


def _stopped_by_drains(kept: Mapping[InstanceId, Trouble]) -> list[InstanceId]:
    return [id_ for id_, trouble in kept.items() if trouble.kind is AlertKind.DRAINED]
