"""Bring one copy nearer to what is wanted of it, by the same flows that verbs use.

Under the same turns and with the same proofs; what fails is kept as the copy's trouble, and is
tried again less and less often.
"""

from dataclasses import replace

from wlctl.errors import Busy, Overtaken, WlctlError
from wlctl.flows import acting, recover, replacing, rivals
from wlctl.flows.done import Done
from wlctl.flows.looking import Look
from wlctl.flows.mirror import changes, mirror
from wlctl.flows.runtime import Runtime
from wlctl.ledger import generations, instances, operations, troubles
from wlctl.ledger.store import ReadTx
from wlctl.ledger.troubles import Trouble
from wlctl.lifecycle import restart
from wlctl.lifecycle import seen as judging
from wlctl.lifecycle.backoff import backoff_ms, is_waiting
from wlctl.lifecycle.table import Act, Case, Listing, decide
from wlctl.model.alert import AlertKind
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Liveness, Node
from wlctl.model.workload import Kind

PATIENCE_S = 1.0
"""So long a pass waits for who is at work on a copy: what leases need is at the next one, and one
command that was paused may be at work on many."""


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
        done = acting.carry_out(rt, node, instance, act, look)
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
        now = recover.recover(rt, instance.id, patience_s=PATIENCE_S)
    except (Busy, Overtaken):
        return Done(instance.name, instance.node, None, "busy")
    except WlctlError as failure:
        return _failed(instance, None, failure)
    if now.unsettled:
        why = "its node cannot say yet whether it runs"
        with rt.ledger.read() as tx:
            if rivals.is_replaced(tx, now):
                vouch = f"`wlctl node attest-dead {now.node} --replaced`"
                why = f"another machine has the name {now.node} by now: {vouch} settles it"
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
    if restart.is_stuck(instance, rt.now_ms()):
        why = "its supervisor has not begun it again for long: what is left of its last run does "
        why += f"not end, or its node cannot write; `wlctl restart {instance.name}` says which"
        return Trouble(AlertKind.HELD, why)
    if instance.state is not State.FAILED or instance.desired is not Desired.RUNNING:
        return None
    with rt.ledger.read() as tx:
        last = instances.last_step(tx, instance.id)
    return Trouble(AlertKind.HELD, acting.waits(instance, last.reason))


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
        if not acting.is_as_read(tx, instance):
            return now, now.state
        return mirror(tx, now, status, at_ms=look.at_ms, twice=look.twice), instance.state


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
        has_other=any(map(acting.lives, others)),
        has_open=any(map(acting.may_live, others)),
        is_gone=all(run.is_gone for run in runs) or rivals.is_replaced_and_attested(tx, instance),
        is_ended=status is not None and judging.is_ended_by_lease(status),
        runs_once=instance.kind is not Kind.SERVICE,
        is_holding=instances.is_holding(tx, instance.id),
    )
