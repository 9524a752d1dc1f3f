"""Bring one copy nearer to what is wanted of it, by the same flows that verbs use.

Under the same turns and with the same proofs; what fails is kept as the copy's trouble, and is
tried again less and less often.
"""

from dataclasses import dataclass, replace

from wlctl.errors import Busy, Overtaken, WlctlError
from wlctl.flows import ending, missing, recover, replacing, starting
from wlctl.flows.ending import End, Ending
from wlctl.flows.intents import walk_to
from wlctl.flows.looking import Look
from wlctl.flows.mirror import changes, mirror
from wlctl.flows.runtime import Runtime
from wlctl.flows.start_intents import Begin, Beginning
from wlctl.ledger import generations, instances, operations, troubles
from wlctl.ledger.store import ReadTx
from wlctl.ledger.troubles import Trouble
from wlctl.lifecycle import seen as judging
from wlctl.lifecycle.backoff import backoff_ms, is_waiting
from wlctl.lifecycle.machine import LIVE, UNDERWAY
from wlctl.lifecycle.table import Act, Case, Listing, decide
from wlctl.model.alert import AlertKind
from wlctl.model.ids import NodeName
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Liveness, Node
from wlctl.model.workload import Kind


@dataclass(frozen=True, slots=True)
class Done:
    """What was done about one copy, or was found and could not be.

    Attributes:
        act: What the table says; None where an interrupted command was finished. To place a copy
            anew is left to the pass, which does only so many at a time.
        came: In one word; `dry_run` where nothing was done.
        trouble: What is still not as it should be; empty when it is.
        kind: Of the trouble.
    """

    name: str
    node: NodeName
    act: Act | None
    came: str
    trouble: str = ""
    kind: AlertKind | None = None

    @property
    def is_unproven(self) -> bool:
        """Nobody knows whether something of it runs."""
        return self.kind is not None and self.kind.is_unproven


def bring(
    rt: Runtime, node: Node, instance: Instance, look: Look, *, dry_run: bool = False
) -> Done | None:
    """Bring one copy nearer to what is wanted of it; None where nothing was to do or is wrong.

    Args:
        instance: As it was before the look, or at some moment of this pass; it is read again.
        look: At its node.
    """
    before = instance
    with rt.ledger.read() as tx:
        instance = instances.get(tx, before.id)
        listing = _listing(instance, look)
        is_left = _is_left(tx, instance, listing)
        kept = troubles.find(tx, instance.id)
    if listing is Listing.MISSING and not is_left and instance.state is not before.state:
        return None  # it came there, or was ended, after the look
    # that no other node would have it delays nothing on its own
    is_own = kept is not None and kept.kind not in replacing.OF_MOVES
    is_early = kept is not None and is_own and _is_early(kept, rt.now_ms())
    if is_left:
        if is_early:
            return None
        return _keep(rt, instance, finish(rt, instance, dry_run=dry_run), dry_run=dry_run)
    instance, was = _mirrored(rt, instance, look, dry_run=dry_run)
    with rt.ledger.read() as tx:
        act = decide(case_of(tx, instance, look))
    if act is Act.REPLACE:
        return Done(instance.name, node.name, act, State.LOST.value)
    if act is Act.NOTHING:
        return _at_rest(rt, instance, was, kept, dry_run=dry_run)
    if is_early:
        return None
    if dry_run:
        return Done(instance.name, node.name, act, "dry_run")
    try:
        done = _act(rt, node, instance, act, look)
    except (Busy, Overtaken):
        return Done(instance.name, node.name, act, "busy")
    except WlctlError as failure:
        done = _failed(instance, act, failure)
    return _keep(rt, instance, done, dry_run=dry_run)


def _is_left(tx: ReadTx, instance: Instance, listing: Listing) -> bool:
    """Answer whether something is to be finished before the table is asked.

    Of what the node has lost nothing can be finished there: it is for the table to prove it gone.
    """
    if instance.unsettled or operations.holder_of(tx, instance.id) is not None:
        return True
    return recover.is_unfinished(instance) and listing is Listing.LISTED


def _is_early(kept: Trouble, now_ms: int) -> bool:
    return kept.tries > 0 and is_waiting(kept.until_ms, now_ms)


def finish(rt: Runtime, instance: Instance, *, dry_run: bool) -> Done:
    """Finish what a dead process or a lost answer left open; who lives is left alone."""
    if dry_run:
        return Done(instance.name, instance.node, None, "dry_run")
    try:
        now = recover.recover(rt, instance.id)
    except (Busy, Overtaken):
        return Done(instance.name, instance.node, None, "busy")
    except WlctlError as failure:
        return _failed(instance, None, failure)
    if now.unsettled:
        why = "its node cannot say yet whether it runs"
        return Done(now.name, now.node, None, "unsettled", why, AlertKind.UNSETTLED)
    if recover.is_unfinished(now):
        why = f"it is {now.state.value} and is to be {now.desired.value}"
        return Done(now.name, now.node, None, now.state.value, why, AlertKind.UNPROVEN)
    return Done(now.name, now.node, None, now.state.value)


def _failed(instance: Instance, act: Act | None, failure: WlctlError) -> Done:
    kind = AlertKind.ACTION_FAILED
    return Done(instance.name, instance.node, act, "failed", failure.message, kind)


def _keep(rt: Runtime, instance: Instance, done: Done, *, dry_run: bool) -> Done:
    """Keep what is wrong with a copy by now, or that nothing is any more."""
    if dry_run or done.came in ("busy", "dry_run"):
        return done
    with rt.ledger.read() as tx:
        kept = troubles.find(tx, instance.id)
    if kept is None and done.kind is None:
        return done
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        kept = troubles.find(tx, instance.id)
        is_halted = kept is not None and _is_halted(kept, instances.get(tx, instance.id))
        if done.kind is None and not is_halted:
            troubles.clear(tx, instance.id)
            return done
        tries = 0 if done.kind is None else (kept.tries if kept is not None else 0) + 1
        until_ms = tx.now_ms + backoff_ms(tries) if tries else 0
        if kept is not None and is_halted:  # that it is to be started again is not forgotten
            troubles.put(tx, instance.id, replace(kept, tries=tries, until_ms=until_ms))
        elif done.kind is not None:
            troubles.put(tx, instance.id, Trouble(done.kind, done.trouble, tries, until_ms))
    return done


def _is_halted(kept: Trouble, instance: Instance) -> bool:
    return kept.is_halt and instance.desired is Desired.STOPPED


def _at_rest(
    rt: Runtime, instance: Instance, was: State, kept: Trouble | None, *, dry_run: bool
) -> Done | None:
    """Answer for a copy of which nothing is to be done: it is well, or waits for an operator."""
    done = None
    if was is not instance.state:
        done = Done(instance.name, instance.node, Act.NOTHING, instance.state.value)
    if dry_run or (kept is not None and _is_halted(kept, instance)):
        return done
    held = _held(rt, instance)
    if held != kept:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            if held is None:
                troubles.clear(tx, instance.id)
            else:
                troubles.put(tx, instance.id, held)
    if done is not None and held is not None:
        return replace(done, trouble=held.why, kind=held.kind)
    return done


def _held(rt: Runtime, instance: Instance) -> Trouble | None:
    """Say why a copy that is meant to run does not, where only an operator changes that."""
    if instance.state is not State.FAILED or instance.desired is not Desired.RUNNING:
        return None
    with rt.ledger.read() as tx:
        last = instances.last_step(tx, instance.id)
    if instance.kind is Kind.INTERVAL:
        return Trouble(AlertKind.HELD, f"{last.reason}: it runs again when it is due")
    return Trouble(AlertKind.HELD, _waits(instance, last.reason))


def _waits(instance: Instance, reason: str) -> str:
    return f"{reason}: it waits for `wlctl start {instance.name}`"


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
        if not _is_as_read(tx, instance):
            return now, now.state
        return mirror(tx, now, status, at_ms=look.at_ms, twice=look.twice), instance.state


def _is_as_read(tx: ReadTx, instance: Instance) -> bool:
    """Answer whether nobody was at work on a copy since it was read, nor is now."""
    now = instances.get(tx, instance.id)
    same = (now.state, now.desired, now.generation) == (
        instance.state,
        instance.desired,
        instance.generation,
    )
    return same and operations.holder_of(tx, instance.id) is None


def _listing(instance: Instance, look: Look) -> Listing:
    if look.of(instance.id) is not None:
        return Listing.LISTED
    return Listing.DEPARTED if instance.id in look.status.departed else Listing.MISSING


def case_of(tx: ReadTx, instance: Instance, look: Look) -> Case:
    """Put a copy and what was seen of it into the words of the table."""
    status = look.of(instance.id)
    runs = generations.of_instance(tx, instance.id)
    others = instances.others_of_order(tx, instance.id)
    launch = next((run.launch for run in reversed(runs) if run.launch), None)
    boot_id = str(launch["boot_id"]) if launch else look.status.boot_id
    return Case(
        state=instance.state,
        desired=instance.desired,
        node=Liveness.ALIVE,
        listing=_listing(instance, look),
        same_boot=boot_id == look.status.boot_id,
        has_other=any(map(_lives, others)),
        has_open=any(map(_may_live, others)),
        is_gone=all(run.is_gone for run in runs),
        is_ended=status is not None and judging.is_ended_by_lease(status),
        runs_once=instance.kind is not Kind.SERVICE,
    )


def _lives(other: Instance) -> bool:
    is_wanted = other.desired is Desired.RUNNING
    return other.state in LIVE and is_wanted and not other.unsettled


def _may_live(other: Instance) -> bool:
    return other.unsettled or other.state in UNDERWAY


def _act(rt: Runtime, node: Node, instance: Instance, act: Act, look: Look) -> Done:
    match act:
        case Act.STOP | Act.END_REVOKED | Act.END_LOST | Act.END_ORPHAN:
            return _end(rt, instance, act)
        case Act.DEPART:
            return _gone(rt, instance, act, missing.depart(rt, node, instance))
        case Act.START:
            return _started(act, starting.start_one(rt, instance, as_seen=True))
        case Act.START_AGAIN:
            _lose(rt, instance)
            came = _started(act, starting.start_one(rt, instance, as_seen=True))
            kind = AlertKind.REBOOT_NOT_STARTED
            return replace(came, kind=kind) if came.kind is AlertKind.ACTION_FAILED else came
        case Act.FAIL:
            return _fail(rt, instance, act)
        case Act.ADOPT:
            return _adopt(rt, instance, act, look)
        case Act.PROVE_MISSING:
            return _prove_missing(rt, node, instance, look)
        case Act.NOTHING | Act.LOSE | Act.REPLACE:
            raise AssertionError(f"{act.value} is nothing to do on a node that answers")


def _end(rt: Runtime, instance: Instance, act: Act) -> Done:
    if act is Act.STOP and instance.desired is Desired.STOPPED:
        return _ended(act, ending.stop_one(rt, instance, as_seen=True))
    if act is Act.END_ORPHAN:
        return _ended(act, ending.unload_again(rt, instance), AlertKind.ORPHAN)
    if act is Act.END_LOST:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            _require_as_read(tx, instance)
            replacing.give_way(tx, instance)
            instance = instances.get(tx, instance.id)
        return _ended(act, ending.unload_one(rt, instance, as_seen=True), AlertKind.ORPHAN)
    return _ended(act, ending.unload_one(rt, instance, as_seen=True))


def _require_as_read(tx: ReadTx, instance: Instance) -> None:
    """Make sure that what was decided about a copy still holds.

    Raises:
        Overtaken: Somebody was at work on it since, or is now.
    """
    if not _is_as_read(tx, instance):
        raise Overtaken(f"somebody else is at work on {instance.name}")


def _lose(rt: Runtime, instance: Instance) -> None:
    """Write down that it is lost."""
    if instance.state is not State.LOST:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            _require_as_read(tx, instance)
            walk_to(tx, instance, State.LOST, "its node was started anew")


def _fail(rt: Runtime, instance: Instance, act: Act) -> Done:
    """Hold a job that may have run: how it ended is not known, and it is not run again."""
    why = "it may have run when it was lost, and how that ended is not known (exit-unknown)"
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        _require_as_read(tx, instance)
        walk_to(tx, instance, State.FAILED, why)
    failed = Done(instance.name, instance.node, act, State.FAILED.value)
    return replace(failed, trouble=_waits(instance, why), kind=AlertKind.HELD)


def _adopt(rt: Runtime, instance: Instance, act: Act, look: Look) -> Done:
    """Take back what was lost and was not proven gone, as its node shows it."""
    status = look.of(instance.id)
    assert status is not None, "what its node lists"
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        _require_as_read(tx, instance)
        others = instances.others_of_order(tx, instance.id)
        if any(_lives(one) or _may_live(one) for one in others):
            raise Overtaken(f"{instance.name} has another copy by now")
        walk_to(tx, instance, State.RUNNING, "its node answers again, and has it")
        instances.hold_as_before(tx, instance.id)
        now = instances.get(tx, instance.id)
        now = mirror(tx, now, status, at_ms=look.at_ms, twice=look.twice)
    return Done(instance.name, instance.node, act, now.state.value)


def _prove_missing(rt: Runtime, node: Node, instance: Instance, look: Look) -> Done:
    why = missing.close(rt, node, instance, look)
    lost = f"{node.name} has lost what it knew of it, and {why}" if why else ""
    return _gone(rt, instance, Act.PROVE_MISSING, lost)


def _gone(rt: Runtime, instance: Instance, act: Act, why: str) -> Done:
    if why:
        return Done(instance.name, instance.node, act, "held", why, AlertKind.STATE_LOST)
    with rt.ledger.read() as tx:
        now = instances.get(tx, instance.id)
    return Done(now.name, now.node, act, now.state.value)


def _ended(act: Act, came: Ending, kind: AlertKind = AlertKind.ACTION_FAILED) -> Done:
    done = Done(came.instance.name, came.instance.node, act, came.end.value)
    if came.end in (End.DONE, End.ALREADY):
        return done
    unproven = came.end in (End.UNPROVEN, End.INDETERMINATE)
    if unproven and kind is not AlertKind.ORPHAN:
        kind = AlertKind.UNPROVEN
    return replace(done, trouble=came.detail or came.code or came.end.value, kind=kind)


def _started(act: Act, came: Beginning) -> Done:
    done = Done(came.instance.name, came.instance.node, act, came.begin.value)
    if came.begin in (Begin.DONE, Begin.ALREADY):
        return done
    kinds = {Begin.UNPROVEN: AlertKind.UNPROVEN, Begin.INDETERMINATE: AlertKind.UNSETTLED}
    kind = kinds.get(came.begin, AlertKind.ACTION_FAILED)
    if came.code == "secret-unavailable":
        kind = AlertKind.SECRET_UNAVAILABLE
    return replace(done, trouble=came.detail or came.code or came.begin.value, kind=kind)
