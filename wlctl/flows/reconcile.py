"""One pass over the fleet: finish what was cut, carry out what is wanted, say what is wrong.

It looks at every node once, then brings each copy nearer to what was asked for by the same flows
that verbs use, under the same turns, with the same proofs. Where all is as it should be it changes
nothing, and it never waits long for somebody who is at work on a copy.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from wlctl.errors import Busy, Indeterminate, Overtaken, WlctlError
from wlctl.flows import ending, fanout, looking, recover, staged, starting
from wlctl.flows import nodes as fleet
from wlctl.flows.intents import lease_until_ms, walk_to
from wlctl.flows.looking import Look
from wlctl.flows.mirror import changes, mirror
from wlctl.flows.runtime import Runtime
from wlctl.flows.start_intents import Begin, Beginning
from wlctl.ledger import generations, instances, nodes
from wlctl.ledger.generations import Generation
from wlctl.ledger.store import ReadTx
from wlctl.lifecycle import seen as judging
from wlctl.lifecycle.machine import LIVE
from wlctl.lifecycle.table import Act, Case, Listing, decide
from wlctl.model.ids import NodeName
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Liveness, Node
from wlctl.model.upkeep import LeaseRequest
from wlctl.model.workload import Kind

if TYPE_CHECKING:
    from wlctl.host.node import NodeSession

SCOPE = "reconcile"
"""Only one pass at a time goes over a ledger."""


@dataclass(frozen=True, slots=True)
class Done:
    """What was done about one copy, or was found and could not be.

    Attributes:
        act: What the table says; None where an interrupted command was finished.
        came: In one word; `dry_run` where nothing was done.
        trouble: What is still not as it should be; empty when it is.
        is_unproven: Nobody knows whether something of it runs.
    """

    name: str
    node: NodeName
    act: Act | None
    came: str
    trouble: str = ""
    is_unproven: bool = False


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass found and did.

    Attributes:
        is_other: Another process is at it; nothing was done here.
        asked: How many nodes were looked at.
        silent: Node to why it could not be looked at.
        done: Only what was not as it should be.
    """

    is_other: bool = False
    asked: int = 0
    silent: Mapping[NodeName, WlctlError] = field(default_factory=lambda: MappingProxyType({}))
    done: tuple[Done, ...] = ()

    @property
    def is_quiet(self) -> bool:
        """Nothing was done, and nothing is wrong."""
        return not self.done and not self.silent


def reconcile(rt: Runtime, only: Sequence[str] = (), *, dry_run: bool = False) -> Pass:
    """Go over the fleet once.

    Args:
        only: Names of nodes; none for all.
        dry_run: Look, and say what would be done.

    Raises:
        UnknownName: There is no node of that name.
    """
    with rt.ledger.read() as tx:
        wanted = [nodes.get(tx, name) for name in only] or nodes.ls(tx)
    with _alone(rt) as mine:
        if not mine:
            return Pass(is_other=True)
        if not dry_run and not only:
            fleet.refresh(rt)
        looks, silent = _look_at_all(rt, wanted, dry_run=dry_run)
        if not dry_run:
            _record(rt, looks, silent)
        done: list[Done] = []
        for node in wanted:
            if node.name in looks:
                done += _reconcile_node(rt, node, looks[node.name], dry_run=dry_run)
        return Pass(asked=len(wanted), silent=MappingProxyType(silent), done=tuple(done))


@contextmanager
def _alone(rt: Runtime) -> Iterator[bool]:
    """Take the pass's own lock; it writes nothing, so that a pass with nothing to do does not."""
    mine = rt.ledger.locks.try_lock(SCOPE)
    try:
        yield mine
    finally:
        if mine:
            rt.ledger.locks.unlock(SCOPE)


def _look_at_all(
    rt: Runtime, wanted: Sequence[Node], *, dry_run: bool
) -> tuple[dict[NodeName, Look], dict[NodeName, WlctlError]]:
    looks: dict[NodeName, Look] = {}
    silent: dict[NodeName, WlctlError] = {}
    for position, found in fanout.each(wanted, partial(_look_at, rt, dry_run=dry_run)):
        name = wanted[position].name
        if isinstance(found, Look):
            looks[name] = found
        else:
            silent[name] = found
    return looks, silent


def _look_at(rt: Runtime, node: Node, *, dry_run: bool) -> Look | WlctlError:
    """Look at a node; what runs there and has lost its supervisor is given another."""
    try:
        with rt.connect(node.address) as session:
            found = looking.look(rt, session, node)
            if not dry_run:
                _renew(rt, session, node, found)
            bare = [one.instance for one in found.status.instances if one.unsupervised]
            if bare and not dry_run:
                session.supervise(rt.ledger.installation, bare)
            return found
    except WlctlError as failure:
        return failure


def _renew(rt: Runtime, session: "NodeSession", node: Node, look: Look) -> None:
    """Let what has a lease run on for its whole time from this very reading.

    A renewal that is refused, or whose answer is lost, changes nothing here: the node ends the copy
    when its time is over, and the next look says so.
    """
    with rt.ledger.read() as tx:
        here = [one for one in instances.current(tx) if one.node == node.name]
        leased = [(one, staged.lease_of(tx, one)) for one in here if one.state in LIVE]
    for instance, lease_ms in leased:
        if lease_ms is None or look.of(instance.id) is None:
            continue
        until_ms = lease_until_ms(lease_ms, look.status.uptime_ms)
        request = LeaseRequest(
            rt.ledger.installation,
            instance.id,
            instance.generation,
            look.status.boot_id,
            until_ms,
        )
        with suppress(Indeterminate):
            session.renew_lease(request)


def _record(
    rt: Runtime, looks: Mapping[NodeName, Look], silent: Mapping[NodeName, WlctlError]
) -> None:
    """Keep which nodes answered, and when; of one that is as it was, that is no event."""
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        for name, look in looks.items():
            nodes.record_look(tx, name, look.status.boot_id, tx.now_ms)
        for name, failure in silent.items():
            nodes.record_silence(tx, name, failure.code)


def _reconcile_node(rt: Runtime, node: Node, look: Look, *, dry_run: bool) -> Iterator[Done]:
    with rt.ledger.read() as tx:
        here = _copies_of(tx, node, look)
        left = {one.id for one in here if recover.is_open(tx, one)}
    for instance in here:
        if instance.id in left:
            yield _finish(rt, instance, dry_run=dry_run)
            continue
        found = _bring(rt, node, instance, look, dry_run=dry_run)
        if found is not None:
            yield found


def _copies_of(tx: ReadTx, node: Node, look: Look) -> list[Instance]:
    """List what the ledger has there, and what the node lists that the ledger closed."""
    listed = {one.instance for one in look.status.instances}
    ours = [one for one in instances.current(tx) if one.node == node.name]
    known = {one.id for one in ours}
    closed = instances.of_ids(tx, listed - known)
    return ours + [one for one in closed if one.node == node.name]


def _finish(rt: Runtime, instance: Instance, *, dry_run: bool) -> Done:
    """Finish what a dead process or a lost answer left open; who lives is left alone."""
    if dry_run:
        return Done(instance.name, instance.node, None, "dry_run", "something of it is open")
    try:
        now = recover.recover(rt, instance.id)
    except (Busy, Overtaken):
        return Done(instance.name, instance.node, None, "busy")
    except WlctlError as failure:
        return Done(instance.name, instance.node, None, "failed", failure.message)
    if now.unsettled:
        trouble = "its node cannot say yet whether it runs"
        return Done(now.name, now.node, None, "unsettled", trouble, is_unproven=True)
    return Done(now.name, now.node, None, now.state.value)


def _bring(
    rt: Runtime, node: Node, instance: Instance, look: Look, *, dry_run: bool
) -> Done | None:
    """Bring one copy nearer to what is wanted of it; None where it is so already."""
    instance, was = _mirrored(rt, instance, look, dry_run=dry_run)
    with rt.ledger.read() as tx:
        runs = generations.of_instance(tx, instance.id)
    act = decide(_case(instance, look, runs[-1] if runs else None))
    if act is Act.NOTHING:
        return (
            None if was is instance.state else Done(instance.name, node.name, act, instance.state)
        )
    if dry_run:
        return Done(instance.name, node.name, act, "dry_run")
    try:
        return _act(rt, node, instance, act)
    except (Busy, Overtaken):
        return Done(instance.name, node.name, act, "busy")
    except WlctlError as failure:
        return Done(instance.name, node.name, act, "failed", failure.message)


def _mirrored(
    rt: Runtime, instance: Instance, look: Look, *, dry_run: bool
) -> tuple[Instance, State]:
    """Keep what the look tells of a copy; answer it as it is then, and what it was."""
    status = look.of(instance.id)
    found = judging.judge(instance, status, twice=look.twice)
    if dry_run or status is None or not changes(instance, found):
        return instance, instance.state
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        now = instances.get(tx, instance.id)
        if now.state is not instance.state or now.generation != instance.generation:
            return now, now.state  # somebody was at work on it since the look
        return mirror(tx, now, status, twice=look.twice), instance.state


def _case(instance: Instance, look: Look, newest: Generation | None) -> Case:
    status = look.of(instance.id)
    if status is not None:
        listing = Listing.LISTED
    elif instance.id in look.status.departed:
        listing = Listing.DEPARTED
    else:
        listing = Listing.MISSING
    launch = newest.launch if newest is not None else None
    boot_id = str(launch["boot_id"]) if launch else look.status.boot_id
    return Case(
        state=instance.state,
        desired=instance.desired,
        node=Liveness.ALIVE,
        listing=listing,
        same_boot=boot_id == look.status.boot_id,
        runs_once=instance.kind is not Kind.SERVICE,
    )


def _act(rt: Runtime, node: Node, instance: Instance, act: Act) -> Done:
    match act:
        case Act.STOP if instance.desired is Desired.STOPPED:
            return _ended(act, ending.stop_one(rt, instance))
        case Act.STOP | Act.DEPART | Act.END_REVOKED | Act.END_LOST:
            return _ended(act, ending.unload_one(rt, instance))
        case Act.END_ORPHAN if instance.state is State.RESCHEDULED:
            return _ended(act, ending.unload_one(rt, instance))
        case Act.START:
            return _started(act, starting.start_one(rt, instance))
        case Act.START_AGAIN:
            _lose(rt, instance)
            return _started(act, starting.start_one(rt, instance))
        case Act.FAIL:
            return _fail(rt, instance, act)
        case Act.ADOPT:
            return _adopt(rt, instance, act)
        case Act.END_ORPHAN:
            why = f"{node.name} lists {instance.id}, which the ledger has as {instance.state.value}"
            return Done(instance.name, node.name, act, "held", why, is_unproven=True)
        case Act.PROVE_MISSING:
            why = f"{node.name} has lost what it knew of it: nothing is proven, all is held"
            return Done(instance.name, node.name, act, "held", why, is_unproven=True)
        case _:
            return Done(instance.name, node.name, act, "held", "nothing is done about it yet")


def _lose(rt: Runtime, instance: Instance) -> None:
    """Write down that a reboot ended it, unless somebody was at work on it since."""
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        now = instances.get(tx, instance.id)
        if now.state is instance.state and now.state is not State.LOST:
            walk_to(tx, now, State.LOST, "its node was started anew")


def _fail(rt: Runtime, instance: Instance, act: Act) -> Done:
    """Hold a job that may have run: how it ended is not known, and it is not run again."""
    why = "its node was started anew while it may have run (exit-unknown)"
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        now = instances.get(tx, instance.id)
        if now.state is instance.state:
            walk_to(tx, now, State.FAILED, why)
    return Done(instance.name, instance.node, act, State.FAILED.value, why)


def _adopt(rt: Runtime, instance: Instance, act: Act) -> Done:
    """Take back what was lost and runs; how it is, the next look says."""
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        now = instances.get(tx, instance.id)
        if now.state is State.LOST:
            walk_to(tx, now, State.RUNNING, "its node answers again, and has it")
            instances.hold_as_before(tx, now.id)
    return Done(instance.name, instance.node, act, State.RUNNING.value)


def _ended(act: Act, came: ending.Ending) -> Done:
    well = came.end in (ending.End.DONE, ending.End.ALREADY)
    return Done(
        came.instance.name,
        came.instance.node,
        act,
        came.end.value,
        "" if well else came.detail or came.code or came.end.value,
        is_unproven=came.end in (ending.End.UNPROVEN, ending.End.INDETERMINATE),
    )


def _started(act: Act, came: Beginning) -> Done:
    well = came.begin in (Begin.DONE, Begin.ALREADY)
    return Done(
        came.instance.name,
        came.instance.node,
        act,
        came.begin.value,
        "" if well else came.detail or came.code or came.begin.value,
        is_unproven=came.begin in (Begin.UNPROVEN, Begin.INDETERMINATE),
    )
