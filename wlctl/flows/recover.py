"""Take over what a dead process left in the middle, or a lost answer left open, and finish it.

What was to be placed is settled: taken as it is where the node has it, called off where not. What
was to be started or ended goes forward. Whoever runs this needs no turn: it waits for the one at
work, if that one lives, and finds nothing to do then.
"""

from contextlib import suppress
from dataclasses import replace

from wlctl.errors import Overtaken
from wlctl.flows import deciding, ending, settling, starting
from wlctl.flows.runtime import Runtime
from wlctl.flows.settling import Lost
from wlctl.ledger import attempts, instances, nodes, operations, packages
from wlctl.ledger.attempts import Attempt, Outcome
from wlctl.ledger.operations import Turn
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.actions import PlaceRequest
from wlctl.model.ids import InstanceId
from wlctl.model.instance import CLOSED, Desired, Instance, State
from wlctl.package import manifest

PLACING = frozenset({"place", "settle"})
ENDING = frozenset(verb.value for verb in ending.Verb)


def is_open(tx: ReadTx, instance: Instance) -> bool:
    """Answer whether something of the copy is under way, or was left so."""
    return is_unfinished(instance) or operations.holder_of(tx, instance.id) is not None


def is_unfinished(instance: Instance) -> bool:
    """Answer whether what was asked for last is not done, as far as anybody knows."""
    to_go = instance.desired is Desired.UNLOADED and instance.state not in CLOSED
    half_restarted = instance.desired is Desired.RUNNING and instance.state is State.STOPPING
    return instance.unsettled or to_go or half_restarted


def recover(rt: Runtime, instance_id: InstanceId, *, patience_s: float | None = None) -> Instance:
    """Finish what is open of a copy, as far as its node can be asked; return it as it is then.

    Args:
        patience_s: How long whoever is at work on it is waited for; None for the busy timeout.

    Raises:
        Busy: A living process is at work on it, and was all that time.
    """
    timeout_s = rt.settings.busy_timeout_s if patience_s is None else patience_s
    with operations.turn(rt.ledger, instance_id, timeout_s=timeout_s) as turn:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            verb = _verb_left(tx, instance_id)
            # Who asked for its end does not want it adopted, whatever became of its placement.
            is_to_end = operations.was_begun(tx, instance_id, ENDING)
            is_placing = (verb in PLACING or not verb) and not is_to_end
            lost = _lose(rt, tx, turn) if is_placing else None
        if lost is not None:
            settling.settle(rt, lost, turn)
    with rt.ledger.read() as tx:
        instance = instances.get(tx, instance_id)
    if (verb and verb not in PLACING) or (is_unfinished(instance) and lost is None):
        _forward(rt, instance)
    with rt.ledger.read() as tx:
        return instances.get(tx, instance_id)


def _forward(rt: Runtime, instance: Instance) -> None:
    """Carry out what is wanted of a copy that is on its node, as far as that can be asked.

    Who has asked for something else since sees to it.
    """
    with suppress(Overtaken):
        if instance.state is State.RESCHEDULED:  # whatever was wanted of it, another one does it
            ending.unload_again(rt, instance)
        elif instance.desired is Desired.RUNNING:
            starting.start_one(rt, instance, as_seen=True)
        elif instance.desired is Desired.STOPPED:
            ending.stop_one(rt, instance, as_seen=True)
        else:
            ending.unload_one(rt, instance, as_seen=True)


def _verb_left(tx: ReadTx, instance_id: InstanceId) -> str:
    """Name what a dead process was doing; empty where nothing is left open."""
    holder = operations.holder_of(tx, instance_id)
    return "" if holder is None else holder.operation.verb


def _lose(rt: Runtime, tx: WriteTx, turn: Turn) -> Lost | None:
    """Close what a dead process left open of a placement; return what is to be settled, if it is.

    The operation that follows has a higher number, so whatever of the old one is still under way
    is refused by the node from then on.
    """
    left = operations.take_over(tx, turn, token=rt.new_token())
    instance = instances.get(tx, InstanceId(turn.scope))
    if instance.state in CLOSED:
        if left is not None:
            operations.close(tx, left, "abandoned")
        return None
    attempt = _open_attempt(tx, instance.id)
    if attempt is not None and attempt.outcome is None:
        attempt = replace(
            attempt,
            outcome=Outcome.INDETERMINATE,
            code="abandoned",
            detail="its process ended before the answer came",
        )
        attempts.end(tx, attempt)
        instances.change(tx, instance.id, unsettled=True)
        settling.chain_outcome(tx, attempt, None)
    if left is not None:
        operations.close(tx, left, "abandoned")
    if attempt is None or not instances.get(tx, instance.id).unsettled:
        return None
    again = _request_again(rt, tx, instance, attempt)
    return Lost(attempt, nodes.get(tx, instance.node), instance.created_at_ms, again)


def _open_attempt(tx: ReadTx, instance_id: InstanceId) -> Attempt | None:
    """Find the attempt at this copy of which nobody knows what came; each copy has one attempt."""
    return next((one for one in attempts.of_instance(tx, instance_id) if one.is_open), None)


def _request_again(rt: Runtime, tx: ReadTx, instance: Instance, attempt: Attempt) -> PlaceRequest:
    """Say the placement again as it was sent: the first operation of its copy, on its first run.

    To a node that did it, the number alone says which one is meant: it answers what it did.
    """
    stated = manifest.read(packages.get(tx, instance.package_id).manifest.encode())
    variant = next(one for one in stated.workload.variants if one.name == instance.variant)
    options = deciding.options_read(instances.options_of(tx, instance.id))
    return PlaceRequest(
        installation=rt.ledger.installation,
        instance=instance.id,
        name=instance.name,
        node=instance.node,
        decision=attempt.claim,
        number=1,
        generation=max(1, instance.generation),
        fence=0,
        package=instance.package_id,
        sheet=manifest.sheet_of(stated, variant).sha256,
        deadline_ms=0,
        env=options.env,
        args=options.args,
        start=options.start,
    )
