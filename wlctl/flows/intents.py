"""Write down that a copy is about to be placed on a node, before anything is sent there."""

from collections.abc import Callable
from dataclasses import dataclass, field

from wlctl.flows import deciding, witnesses
from wlctl.flows.deciding import Order
from wlctl.flows.packages import Admitted
from wlctl.flows.runtime import Runtime
from wlctl.ledger import attempts, chain, generations, instances, nodes, operations
from wlctl.ledger.attempts import Attempt
from wlctl.ledger.operations import Operation, Turn
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.lifecycle.machine import IllegalTransition, walk
from wlctl.model import actions
from wlctl.model.ids import DecisionId, InstanceId
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Node
from wlctl.model.placement import Candidate, PlaceRequest, Tiering
from wlctl.model.policy import Action, Work

REQUEST_VALID_MS = 60_000
"""How long a node may take to begin with a request; one that is read later does nothing."""


def always(_tx: ReadTx) -> bool:
    """Answer for what takes nobody's place."""
    return True


@dataclass(frozen=True, slots=True)
class Wanted:
    """One copy that is to be placed, on whichever node will have it.

    Attributes:
        claim: What nodes know this copy's placement by: each does what has a claim once.
        name: Of this copy.
        order_row: Number of the order in the ledger.
        request: What was decided about; of it, this is one copy.
        replaces: The copy whose place it takes.
        is_wanted: Asked before each further node is tried: whether nothing else was asked of the
            copy whose place it takes, and that one is as it was.
        secrets: Values, which are kept nowhere else and never shown.
    """

    decision: DecisionId
    claim: DecisionId
    name: str
    order: Order
    order_row: int
    admitted: Admitted
    request: PlaceRequest
    replaces: InstanceId | None = None
    is_wanted: Callable[[ReadTx], bool] = always
    secrets: actions.Secrets = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Intent:
    """What was committed before anything is sent.

    Attributes:
        fence: The chain's newest number then: it grows with every run of a name, on any node.
        emulated: What the gate is asked about once more, when the variant runs emulated; else None.
    """

    wanted: Wanted
    attempt: Attempt
    instance: Instance
    node: Node
    operation: Operation
    fence: int
    emulated: Work | None


def claim_of(decision: DecisionId, position: int, count: int) -> DecisionId:
    """Name the claim of one copy of a decision; a decision about one copy is its own."""
    return decision if count == 1 else DecisionId(f"{decision}.{position}")


def intend(rt: Runtime, tx: WriteTx, wanted: Wanted, candidate: Candidate, turn: Turn) -> Intent:
    """Reserve what the copy will hold on the candidate, and record the attempt.

    Args:
        turn: Of a new instance id: each attempt has its own.

    Raises:
        LedgerRolledBack, LedgerForked: The ledger is doubted.
    """
    witnesses.require_believed(tx, Action.PLACE)
    order, admitted = wanted.order, wanted.admitted
    instance_id = InstanceId(turn.scope)
    instances.reserve(
        tx,
        instance_id=instance_id,
        name=wanted.name,
        order=wanted.order_row,
        decision=wanted.decision,
        node=candidate.node,
        variant=candidate.variant,
        package_id=admitted.package_id,
        spec=admitted.spec,
        claims=candidate.assigned,
        desired=Desired.RUNNING if order.start else Desired.STOPPED,
        replaces=wanted.replaces,
    )
    operation = operations.begin(tx, turn, "place", token=rt.new_token())
    number = attempts.next_number(tx, wanted.decision)
    attempt = Attempt(
        wanted.decision, number, instance_id, candidate.node, wanted.claim, outcome=None
    )
    attempts.begin(tx, attempt)
    walk_to(tx, instances.get(tx, instance_id), State.PLACED, f"decided: {candidate.node}")
    if order.start:
        generations.intend(tx, instance_id, 1)
        instances.change(tx, instance_id, generation=1)
    emulated = candidate.tier is Tiering.EMULATED
    return Intent(
        wanted=wanted,
        attempt=attempt,
        instance=instances.get(tx, instance_id),
        node=nodes.get(tx, candidate.node),
        operation=operation,
        fence=chain.head(tx)[0],
        emulated=(
            deciding.work_for(order, admitted, wanted.request, emulated=True) if emulated else None
        ),
    )


def lease_until_ms(lease_ms: int | None, uptime_ms: int) -> int:
    """Say until when a run may go on without a renewal, on its node's uptime; 0 for ever."""
    return uptime_ms + lease_ms if lease_ms else 0


def request_for(rt: Runtime, intent: Intent, *, uptime_ms: int) -> actions.PlaceRequest:
    """Put an intent into the words of its node.

    Args:
        uptime_ms: Of the node, read on this connection: deadline and lease are counted from it.
    """
    own_lease_ms = intent.wanted.admitted.workload.lifecycle.lease_ms
    instance, order = intent.instance, intent.wanted.order
    return actions.PlaceRequest(
        installation=rt.ledger.installation,
        instance=instance.id,
        name=instance.name,
        node=intent.node.name,
        decision=intent.wanted.claim,
        number=intent.operation.number,
        generation=max(1, instance.generation),
        fence=intent.fence,
        package=intent.wanted.admitted.package_id,
        sheet=intent.wanted.admitted.variant(instance.variant).sheet,
        deadline_ms=uptime_ms + REQUEST_VALID_MS,
        lease_until_ms=lease_until_ms(order.lease_ms or own_lease_ms, uptime_ms),
        env=order.env,
        args=order.args,
        start=order.start,
        secrets=intent.wanted.secrets,
        signatures=intent.wanted.admitted.signatures,
        project=order.project,
        settles=intent.node.settles,
        restart=intent.wanted.admitted.workload.restart,
    )


def check_ours(rt: Runtime, operation: Operation) -> None:
    """Make sure, before a step on a node, that it is still for us to do.

    Raises:
        Overtaken: This process slept, and another one has taken over: it sends nothing more.
    """
    with rt.ledger.read() as tx:
        operations.check(tx, operation)


def walk_to(tx: WriteTx, instance: Instance, goal: State, reason: str) -> None:
    """Walk an instance to `goal`; only ever called where the table has a way."""
    way = walk(instance.state, goal)
    assert not isinstance(way, IllegalTransition), way
    instances.advance(tx, instance, way, reason)
