"""What a start or restart is to do, written down before anything is sent, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from wlctl.errors import IllegalStep, Overtaken, WlctlError
from wlctl.flows import gate, operating, rivals, staged
from wlctl.flows.operating import NOTHING_MORE
from wlctl.flows.runtime import Runtime
from wlctl.flows.staged import Staged
from wlctl.ledger import chain, generations, instances, operations, sayings, troubles
from wlctl.ledger.operations import Operation, Turn
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.lifecycle.machine import LIVE, UNDERWAY, IllegalTransition, step
from wlctl.lifecycle.seen import STAGED
from wlctl.model.actions import Launched
from wlctl.model.event import Json
from wlctl.model.fleet import view_of
from wlctl.model.generation import Proof
from wlctl.model.ids import InstanceId
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Node
from wlctl.model.policy import Action
from wlctl.placement.again import Taken, fits_again

STARTABLE = STAGED | LIVE | {State.STOPPING}


class Verb(StrEnum):
    """How a run is begun."""

    START = "start"
    """Where one runs already, nothing is done."""
    RESTART = "restart"
    """What runs is stopped before."""


class Begin(StrEnum):
    """How far it got."""

    DONE = "done"
    """A run was launched; or one lives that was, and of which nobody had told."""
    ALREADY = "already"
    """It runs; nothing was asked of the node but how it is."""
    NO_ROOM = "no_room"
    """Others have taken what it needs; nothing was done."""
    UNPROVEN = "unproven"
    """An earlier run is not proven gone, so none was started."""
    UNREACHABLE = "unreachable"
    """Nothing was started; the wish is recorded."""
    INDETERMINATE = "indeterminate"
    """It was sent and no whole answer came: the copy is unsettled."""
    REFUSED = "refused"
    """The node said no, and left nothing of it."""
    DENIED = "denied"
    """The policy does not allow it; nothing was done."""
    ILLEGAL = "illegal"
    """The copy is in no state from which it could be started; nothing was done."""
    FAILED = "failed"
    """Something of this side was not there; nothing was started."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What `start` or `restart` did.

    Attributes:
        launched: What the node said of the run; None where none was launched by it.
        proofs: Of the runs that were ended before, oldest first.
        code: Of a failure or refusal; empty when it is done.
        detail: In words; text from outside.
    """

    verb: Verb
    begin: Begin
    instance: Instance
    launched: Launched | None = None
    proofs: tuple[Proof, ...] = ()
    code: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Wish:
    """What was committed before anything is sent.

    Attributes:
        kind: Of the events that tell of this step of it.
        node: As it was last seen before.
        clears: Runs of it are not proven gone yet.
        fence: The chain's newest number at the intent: it grows with every run of a name.
    """

    verb: Verb
    kind: str
    instance: Instance
    node: Node
    operation: Operation
    staged: Staged
    grace_ms: int
    clears: bool
    fence: int = 0
    proofs: tuple[Proof, ...] = ()


def intend(
    rt: Runtime,
    verb: Verb,
    turn: Turn,
    node: Node,
    grace_ms: int | None,
    *,
    seen: Instance | None = None,
) -> Wish | Beginning:
    """Record the wish before anything is sent; what a dead process left is taken over first.

    Args:
        seen: As a pass has seen it; None where somebody asks for it now.

    Raises:
        Overtaken: Something else was asked of it since it was `seen`.
    """
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        token = rt.new_token()
        operating.take_over(tx, turn, token)
        instance = instances.get(tx, InstanceId(turn.scope))
        operating.require_unasked(seen, instance)
        _require_halted(tx, seen, instance)
        if instance.state not in STARTABLE:
            return _illegal(verb, instance)
        rival = rivals.of(tx, instance)
        if rival is not None:
            return _beside(verb, instance, rival)
        made_from = staged.read(tx, instance, tx.now_ms)
        denial = _denied(rt, tx, verb, instance=instance, node=node, made_from=made_from)
        if denial is not None:
            code, detail = denial.code, denial.message
            return Beginning(verb, Begin.DENIED, instance, code=code, detail=detail)
        taken = _reserve(tx, instance, node, made_from)
        if taken:
            return Beginning(verb, Begin.NO_ROOM, instance, detail="; ".join(taken))
        operation = operations.begin(tx, turn, verb.value, token=token)
        instances.change(tx, instance.id, desired=Desired.RUNNING.value)
        left = [run.number for run in generations.of_instance(tx, instance.id) if not run.is_gone]
        wish = Wish(
            verb=verb,
            kind="workload.start" if verb is Verb.START else "workload.stop",
            instance=instance,
            node=node,
            operation=operation,
            staged=made_from,
            grace_ms=made_from.grace_ms if grace_ms is None else grace_ms,
            clears=bool(left),
        )
        if not left:
            return number_next(tx, wish)
        told: dict[str, Json] = {"verb": verb.value, "left": list(left)}
        operating.request(tx, wish.kind, instance, operation, told)
        legal = not isinstance(step(instance.state, State.STOPPING), IllegalTransition)
        if verb is Verb.RESTART and legal:
            instances.advance(tx, instance, (State.STOPPING,), "restart asked for")
        return replace(wish, instance=instances.get(tx, instance.id))


def _require_halted(tx: ReadTx, seen: Instance | None, now: Instance) -> None:
    """Make sure that what is to be stopped, and is started again, was stopped for the time being.

    Raises:
        Overtaken: Somebody has stopped it since it was `seen`, and means it.
    """
    if seen is None or now.desired is not Desired.STOPPED:
        return
    kept = troubles.find(tx, now.id)
    if kept is None or not kept.is_halt:
        raise Overtaken(
            f"somebody has stopped {now.name} meanwhile", hint=f"`wlctl start {now.name}` starts it"
        )


def _illegal(verb: Verb, instance: Instance) -> Beginning:
    if instance.state in UNDERWAY:
        why = "its placement is not settled"
    else:
        why = f"it is {instance.state.value}"
    return Beginning(verb, Begin.ILLEGAL, instance, code=IllegalStep.code, detail=why)


def _beside(verb: Verb, instance: Instance, rival: Instance) -> Beginning:
    why = f"{rival.id} on {rival.node} is {rival.state.value}, and there is to be one: "
    why += "`wlctl reconcile` ends one of them"
    return Beginning(verb, Begin.ILLEGAL, instance, code=IllegalStep.code, detail=why)


def _denied(
    rt: Runtime, tx: WriteTx, verb: Verb, *, instance: Instance, node: Node, made_from: Staged
) -> WlctlError | None:
    """Ask for all that the verb will do, before any of it."""
    if made_from.fault is not None:
        return made_from.fault
    if verb is Verb.RESTART:
        denial = gate.verb(rt, tx, Action.STOP, instance=instance, node=node)
        if denial is not None:
            return denial
    return gate.verb(rt, tx, Action.START, instance=instance, node=node, work=made_from.work)


def _reserve(tx: WriteTx, instance: Instance, node: Node, made_from: Staged) -> tuple[str, ...]:
    """Hold anew what a stop gave back; say what others have taken of it, if they have."""
    holds = instances.holds(tx)
    if any(hold.instance == instance.id for hold in holds):
        return ()
    said = tuple(one.capability for one in sayings.of_node(tx, node.name))
    found = fits_again(
        made_from.spec,
        instance.variant,
        view_of(node, None, said),
        holds,
        instance=instance.id,
        now_ms=tx.now_ms,
    )
    if isinstance(found, Taken):
        return found.reasons
    instances.hold_again(tx, instance.id, found.claims)
    return ()


def number_next(tx: WriteTx, wish: Wish) -> Wish:
    """Give the next run its number; nothing of an earlier one is left."""
    instance = wish.instance
    number = instance.generation + 1
    generations.intend(tx, instance.id, number)
    instances.change(tx, instance.id, generation=number)
    operating.request(tx, "workload.start", instance, wish.operation, {"generation": number})
    return replace(
        wish,
        kind="workload.start",
        instance=instances.get(tx, instance.id),
        clears=False,
        fence=chain.head(tx)[0],
    )


def finish(
    tx: WriteTx,
    wish: Wish,
    begin: Begin,
    *,
    code: str = "",
    evidence: list[dict[str, Json]] | None = None,
    more: Mapping[str, Json] = NOTHING_MORE,
) -> Instance:
    """Chain the outcome, close the operation, and return the copy as it is now."""
    return operating.outcome(
        tx,
        wish.kind,
        wish.instance,
        wish.operation,
        begin.value,
        code=code,
        evidence=evidence or (),
        more={"verb": wish.verb.value, **more},
    )
