"""Follow in the ledger what supervisors began by themselves: each restart once, with its proof."""

from wlctl.flows.intents import walk_to
from wlctl.ledger import generations, instances
from wlctl.ledger.store import WriteTx
from wlctl.lifecycle.machine import LIVE
from wlctl.lifecycle.proof import judge
from wlctl.lifecycle.seen import STAGED, Seen
from wlctl.model.actions import GenerationStatus, InstanceStatus
from wlctl.model.event import Json, rfc3339
from wlctl.model.ids import InstanceId
from wlctl.model.instance import Instance, State


def follow(tx: WriteTx, instance: Instance, found: Seen) -> Instance:
    """Write down the runs that were begun since the ledger was told of one; answer the copy then.

    Of a copy that lives, each is a walk of its own through the history. Of one that is being ended,
    only the runs are kept, so that each of them is proven.
    """
    name = f"g{instance.generation}"
    if instance.unsettled and instance.state in STAGED and found.state in LIVE:
        walk_to(tx, instance, State.RUNNING, f"{name} launched")
        instance = instances.get(tx, instance.id)
    for run in found.begun:
        _record(tx, instance, run)
        if instance.state in LIVE:
            _walk(tx, instance, run)
        instances.change(tx, instance.id, generation=run.number)
        instance = instances.get(tx, instance.id)
    return instance


def keep_proofs(tx: WriteTx, instance: InstanceId, seen: InstanceStatus) -> None:
    """Keep how runs ended that a supervisor has ended itself, judged as every end is.

    Not of the newest while the supervisor is to begin another after it: what is lost next may run
    all the same, and would be taken for gone.
    """
    newest = seen.newest
    going_on = newest.number if newest is not None and seen.is_begun_again(newest) else None
    ended = {
        run.number: run.ended
        for run in seen.generations
        if run.ended is not None and run.number != going_on
    }
    if not ended and not seen.pruned:
        return
    for run in generations.of_instance(tx, instance):
        readings = ended.get(run.number)
        if run.is_gone:
            continue
        if readings is not None:
            generations.judged(tx, instance, judge(readings))
        elif run.number <= seen.pruned:
            generations.read_as_gone(tx, instance, run.number)


def _record(tx: WriteTx, instance: Instance, run: GenerationStatus) -> None:
    generations.found(tx, instance.id, run.number, _began_at_ms(tx, run))
    if run.launch is not None:
        generations.launched(tx, instance.id, run.launch)


def _walk(tx: WriteTx, instance: Instance, run: GenerationStatus) -> None:
    """Take the steps of one restart: it was unhealthy, it was replaced, it ran."""
    assert run.begun is not None, "a run that its supervisor began"
    if instance.state is State.RUNNING:
        instances.advance(tx, instance, (State.UNHEALTHY,), run.begun.why)
        instance = instances.get(tx, instance.id)
    if instance.state is State.UNHEALTHY:
        why = f"g{run.begun.after} proven gone on its node"
        instances.advance(tx, instance, (State.RESTARTING,), why)
        instance = instances.get(tx, instance.id)
    evidence: dict[str, Json] = {
        "generation": run.number,
        "began_at": rfc3339(_began_at_ms(tx, run)),
    }
    reason = f"g{run.number} begun by its supervisor"
    instances.advance(tx, instance, (State.RUNNING,), reason, evidence)


def _began_at_ms(tx: WriteTx, run: GenerationStatus) -> int:
    age_ms = run.begun.age_ms if run.begun is not None else None
    return tx.now_ms - (age_ms or 0)
