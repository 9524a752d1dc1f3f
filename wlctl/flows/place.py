"""Place a workload: decide and record in one transaction, then act, then record the outcome.

One candidate is tried. Whatever happens to the answer, the ledger says it: a copy of which nobody
knows whether it runs is `unsettled`, keeps what it holds, and is ended by `stop` or `unload`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

from wlctl.errors import (
    ForeignNode,
    GateDenied,
    Indeterminate,
    Interrupted,
    NameTaken,
    Unreachable,
    UsageError,
    WlctlError,
)
from wlctl.flows import gate, packages
from wlctl.flows import nodes as fleet
from wlctl.flows.packages import Admitted
from wlctl.flows.runtime import Runtime
from wlctl.gate.work import work_of
from wlctl.ledger import (
    attempts,
    chain,
    decisions,
    generations,
    instances,
    nodes,
    operations,
    sayings,
)
from wlctl.ledger.attempts import Attempt, Outcome
from wlctl.ledger.operations import Operation, Turn
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.lifecycle.machine import IllegalTransition, walk
from wlctl.model import actions
from wlctl.model.actions import Launched, Placed, Refused
from wlctl.model.event import Json
from wlctl.model.fleet import ClusterState, NodeView, Ruling, view_of
from wlctl.model.ids import DecisionId, InstanceId, NodeName, is_checked_id
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Node
from wlctl.model.placement import Decision, PlaceRequest, Tiering, Weights
from wlctl.model.policy import Work
from wlctl.model.workload import WorkloadSpec
from wlctl.placement import engine
from wlctl.placement.document import document, encode
from wlctl.placement.shapes import Document
from wlctl.placement.where import Where, known_of, resolve

REQUEST_VALID_MS = 60_000
"""How long a node may take to begin with a request; one that is read later does nothing."""


@dataclass(frozen=True, slots=True)
class Order:
    """What the operator asks for, with all its options.

    Attributes:
        package: Directory of a built and signed package.
        name: What to call the copy; empty for the workload's name.
        dry_run: Decide and record the decision, and do nothing else.
        count: How many copies; more than one only in a dry run, for now.
        refresh: Look again at nodes whose facts have run out.
        project: Kept with the order, and matched by permits; empty for none.
    """

    package: Path
    count: int = 1
    name: str = ""
    pin: NodeName | None = None
    prefer: tuple[NodeName, ...] = ()
    avoid: tuple[NodeName, ...] = ()
    where: tuple[Where, ...] = ()
    allow_emulated: bool = False
    why: tuple[NodeName, ...] = ()
    start: bool = True
    dry_run: bool = False
    refresh: bool = True
    project: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What `place` did.

    Attributes:
        decision: None where nothing had to be decided: the copy was there already.
        document: The decision in full, as it is stored.
        attempt: None for a dry run and where nothing fits.
        instance: The copy, current or not; None for a dry run and where nothing fits.
        launched: What the node said of the run it started.
        placeable: Some node fits.
    """

    name: str
    dry_run: bool
    decision: DecisionId | None
    document: Document | None
    attempt: Attempt | None = None
    instance: Instance | None = None
    launched: Launched | None = None
    placeable: bool = True


def place(rt: Runtime, order: Order) -> Report:
    """Decide where `order` goes and, unless it is a dry run, put it there.

    Raises:
        NameTaken: Another workload, or another version, has the name.
        WlctlError: The package is not what its signer signed, and all that `packages.admit` raises.
    """
    admitted = packages.admit(rt, order.package)
    name = order.name or admitted.spec.name
    if not is_checked_id(name):
        raise UsageError(
            f"{name} cannot be the name of an instance",
            hint="use lower-case letters, digits, and . _ - after the first",
        )
    if order.count > 1 and not order.dry_run:
        raise UsageError(
            "more than one copy can only be decided, not placed, in this version",
            hint="add --dry-run, or place one after the other with --name",
        )
    if order.refresh:
        fleet.refresh(rt)  # slow: SSH to every stale node, so no lock is held
    if order.dry_run:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            decision = _decide(rt, tx, order, admitted)
            return _recorded(tx, order, admitted, name=name, decision=decision)
    instance_id = rt.new_instance_id()
    with operations.turn(rt.ledger, instance_id, timeout_s=rt.settings.busy_timeout_s) as turn:
        intent = _intend(rt, order, admitted, name, turn)
        if isinstance(intent, Report):
            return intent
        return _act(rt, intent)


@dataclass(frozen=True, slots=True)
class _Intent:
    """What was committed before anything is sent.

    Attributes:
        fence: The chain's newest number then: it grows with every run of a name, on any node.
        emulated: What the gate is asked about once more, when the variant runs emulated; else None.
    """

    report: Report
    attempt: Attempt
    instance: Instance
    node: Node
    operation: Operation
    admitted: Admitted
    start: bool
    fence: int
    emulated: Work | None


def _intend(
    rt: Runtime, order: Order, admitted: Admitted, name: str, turn: Turn
) -> _Intent | Report:
    """Decide, and write down all that is about to be done, in one transaction."""
    instance_id = InstanceId(turn.scope)
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        holder = instances.holder_of(tx, name)
        if holder is not None:
            return _already(order, admitted, holder)
        decision = _decide(rt, tx, order, admitted)
        report = _recorded(
            tx, order, admitted, name=name, decision=decision, instance_id=instance_id
        )
        if report.decision is None or not report.placeable:
            return report
        chosen = decision.placements[0]
        instances.reserve(
            tx,
            instance_id=instance_id,
            name=name,
            order=instances.open_order(
                tx, name=name, package_id=admitted.package_id, options=_options(order)
            ),
            decision=report.decision,
            node=chosen.node,
            variant=chosen.variant,
            package_id=admitted.package_id,
            spec=admitted.spec,
            claims=chosen.assigned,
            desired=Desired.RUNNING if order.start else Desired.STOPPED,
        )
        operation = operations.begin(tx, turn, "place", token=rt.new_token())
        attempt = Attempt(report.decision, 1, instance_id, chosen.node, None)
        attempts.begin(tx, attempt)
        _step(tx, instances.get(tx, instance_id), State.PLACED, f"decided: {chosen.node}")
        if order.start:
            generations.intend(tx, instance_id, 1)
            instances.change(tx, instance_id, generation=1)
        instance = instances.get(tx, instance_id)
        node = nodes.get(tx, chosen.node)
        fence, _ = chain.head(tx)
    return _Intent(
        report=report,
        attempt=attempt,
        instance=instance,
        node=node,
        operation=operation,
        admitted=admitted,
        start=order.start,
        fence=fence,
        emulated=(
            _work(order, admitted, decision.request, emulated=True)
            if chosen.tier is Tiering.EMULATED
            else None
        ),
    )


def _act(rt: Runtime, intent: _Intent) -> Report:
    """Send what was intended, and write down what came of it."""
    denied = _denied_emulated(rt, intent)
    if denied is not None:
        return _finish(rt, intent, denied)
    try:
        answer = _dispatch(rt, intent)
    except Indeterminate as failure:
        return _finish(rt, intent, _ended(intent.attempt, Outcome.INDETERMINATE, failure))
    except (Unreachable, ForeignNode) as failure:
        return _finish(rt, intent, _ended(intent.attempt, Outcome.UNREACHABLE, failure))
    except (
        WlctlError
    ) as failure:  # of this side, before the mutation: a file is gone from the store
        _finish(rt, intent, _ended(intent.attempt, Outcome.UNREACHABLE, failure))
        raise
    except KeyboardInterrupt:
        stopped = Interrupted(
            f"interrupted while {intent.instance.name} was placed on {intent.node.name}",
            hint=f"it may run there: `wlctl unload {intent.instance.name}` settles it",
        )
        _finish(rt, intent, _ended(intent.attempt, Outcome.INDETERMINATE, stopped))
        raise stopped from None
    if isinstance(answer, Refused):
        refused = replace(
            intent.attempt, outcome=Outcome.REFUSED, code=answer.code.value, detail=answer.detail
        )
        return _finish(rt, intent, refused)
    placed = replace(intent.attempt, outcome=Outcome.PLACED)
    return _finish(rt, intent, placed, answer)


def _denied_emulated(rt: Runtime, intent: _Intent) -> Attempt | None:
    """Ask the gate again for what would run emulated; a denial is what becomes of the attempt."""
    if intent.emulated is None:
        return None
    with rt.ledger.read() as tx:
        verdict = gate.placing(rt, tx, intent.emulated)(intent.node)
    if verdict.ruling is Ruling.ALLOWED:
        return None
    why = f"{verdict.rule}: {verdict.reason}"
    return replace(intent.attempt, outcome=Outcome.GATE_DENIED, code=GateDenied.code, detail=why)


def _dispatch(rt: Runtime, intent: _Intent) -> Placed | Launched | Refused:
    """Bring the files that the node lacks, then place; all over one connection."""
    chosen = intent.admitted.variant(intent.instance.variant)
    with rt.connect(intent.node.address) as session:
        sizes = {file.sha256: file.size_bytes for file in chosen.files}
        offered = session.offer(tuple(sizes))
        if isinstance(offered, Refused):
            return offered
        fleet.check_identity(intent.node, offered.node_id)
        for sha256 in offered.missing:
            with intent.admitted.store.open(sha256) as file:
                taken = session.receive(sha256, sizes[sha256], file)
            if isinstance(taken, Refused):
                return taken
        return session.place(
            actions.PlaceRequest(
                installation=rt.ledger.installation,
                instance=intent.instance.id,
                name=intent.instance.name,
                node=intent.node.name,
                decision=intent.attempt.decision,
                number=intent.operation.number,
                generation=max(1, intent.instance.generation),
                fence=intent.fence,
                package=intent.admitted.package_id,
                sheet=chosen.sheet,
                deadline_ms=offered.uptime_ms + REQUEST_VALID_MS,
                start=intent.start,
            )
        )


def _ended(attempt: Attempt, outcome: Outcome, failure: WlctlError) -> Attempt:
    return replace(attempt, outcome=outcome, code=failure.code, detail=failure.message)


def _finish(
    rt: Runtime,
    intent: _Intent,
    attempt: Attempt,
    answer: Placed | Launched | None = None,
) -> Report:
    """Write down what came of the attempt.

    Raises:
        Overtaken: Another process took the operation over meanwhile, and has settled it.
    """
    assert attempt.outcome is not None
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        operations.check(tx, intent.operation)
        attempts.end(tx, attempt)
        instance = instances.get(tx, intent.instance.id)
        match attempt.outcome:
            case Outcome.PLACED:
                _record_placed(tx, instance, answer)
            case Outcome.REFUSED | Outcome.UNREACHABLE | Outcome.GATE_DENIED:
                # Nothing of it is on the node, by the node's own word or because nothing was sent.
                _step(tx, instance, State.FAILED, f"{attempt.outcome.value}: {attempt.code}")
                _step(tx, instances.get(tx, instance.id), State.UNLOADED, "nothing was left")
                instances.change(tx, instance.id, desired=Desired.UNLOADED.value)
                instances.release(tx, instance.id)
            case Outcome.INDETERMINATE:
                instances.change(tx, instance.id, unsettled=True)
        _chain_outcome(tx, attempt, answer)
        operations.close(tx, intent.operation, attempt.outcome.value)
        instance = instances.get(tx, instance.id)
    launched = answer if isinstance(answer, Launched) else None
    return replace(intent.report, attempt=attempt, instance=instance, launched=launched)


def _record_placed(tx: WriteTx, instance: Instance, answer: Placed | Launched | None) -> None:
    reached = (State.FETCHING, State.VERIFIED, State.LOADED)
    instances.advance(tx, instance, reached, "staged on the node")
    if isinstance(answer, Launched):
        generations.launched(tx, instance.id, answer)
        _step(tx, instances.get(tx, instance.id), State.RUNNING, f"g{answer.generation} launched")
    instances.change(tx, instance.id, seen_at_ms=tx.now_ms)


def _chain_outcome(tx: WriteTx, attempt: Attempt, answer: Placed | Launched | None) -> None:
    placed = attempt.outcome is Outcome.PLACED
    payload: dict[str, Json] = {
        "decision": attempt.decision,
        "attempt": attempt.number,
        "instance": attempt.instance,
        "node": attempt.node,
        "outcome": attempt.outcome.value if attempt.outcome else "",
    }
    if placed:
        payload["phase"] = "placed"
    else:
        payload |= {"kind": "dispatch", "code": attempt.code}
    if isinstance(answer, Launched):
        payload |= {
            "generation": answer.generation,
            "containment": answer.containment.value,
            "cgroup_inode": answer.cgroup_inode,
            "boot_id": answer.boot_id,
            "unenforced": list(answer.unenforced),
        }
    chain.append(tx, "workload.place" if placed else "workload.refuse", payload)


def _already(order: Order, admitted: Admitted, holder: Instance) -> Report:
    """Answer a repeated order: the same package under the same name is nothing to do.

    Raises:
        NameTaken: The name is in use by something else.
    """
    if holder.package_id == admitted.package_id and not holder.unsettled:
        return Report(holder.name, order.dry_run, None, None, instance=holder)
    if holder.unsettled:
        raise NameTaken(
            f"nobody knows whether {holder.name} runs on {holder.node}: its answer was lost",
            hint=f"`wlctl unload {holder.name}` makes sure that it does not, and frees the name",
        )
    raise NameTaken(
        f"{holder.name} is in use by {holder.workload} {holder.version} on {holder.node}",
        hint=f"`wlctl unload {holder.name}` first, or give another --name",
    )


def _decide(rt: Runtime, tx: WriteTx, order: Order, admitted: Admitted) -> Decision:
    # What a condition means depends on what the fleet has, and the gate judges conditions.
    request = request_of(order, admitted.spec, fleet_of(tx, tx.now_ms)[0] if order.where else ())
    verdict_of = gate.placing(rt, tx, _work(order, admitted, request))
    views, cluster = fleet_of(tx, tx.now_ms, verdict_of)
    return engine.decide(request, views, cluster, weights_of(rt), tx.now_ms)


def _work(
    order: Order, admitted: Admitted, request: PlaceRequest, *, emulated: bool = False
) -> Work:
    return work_of(admitted.spec, where=request.where, project=order.project, emulated=emulated)


def fleet_of(
    tx: ReadTx, now_ms: int, verdict_of: gate.NodeGate | None = None
) -> tuple[list[NodeView], ClusterState]:
    """Read all that a decision takes of the fleet.

    Args:
        verdict_of: The gate for what is placed; without it every node is denied.
    """
    said = sayings.of_fleet(tx)
    views = [
        view_of(
            replace(node, cordoned=node.is_cordoned_at(now_ms)),
            verdict_of(node) if verdict_of else None,
            said.get(node.name, ()),
        )
        for node in nodes.ls(tx)
    ]
    return views, ClusterState(holds=instances.holds(tx))


def weights_of(rt: Runtime) -> Weights:
    """Take the weights from the settings, each of which has the name of its field."""
    return Weights(
        **{one.name: getattr(rt.settings, f"weights_{one.name}") for one in fields(Weights)}
    )


def request_of(order: Order, spec: WorkloadSpec, views: Sequence[NodeView]) -> PlaceRequest:
    """Put what was ordered into the words of a decision about this fleet."""
    known = known_of(view.capabilities for view in views) if order.where else {}
    return PlaceRequest(
        workload=spec,
        count=order.count,
        where=tuple(resolve(where, known) for where in order.where),
        allow_emulated=order.allow_emulated,
        pin=order.pin,
        prefer=order.prefer,
        avoid=order.avoid,
        why=order.why,
    )


def _recorded(
    tx: WriteTx,
    order: Order,
    admitted: Admitted,
    *,
    name: str,
    decision: Decision,
    instance_id: InstanceId | None = None,
) -> Report:
    packages.record(tx, admitted)
    chosen = decision.placements[0] if decision.placements else None
    told = document(decision)
    found = decisions.record(
        tx,
        encode(told),
        name=name,
        workload=admitted.spec.name,
        package_id=admitted.package_id,
        node=None if chosen is None else chosen.node,
        instance_id=None if chosen is None else instance_id,
        counts=_counts(decision),
        dry_run=order.dry_run,
    )
    return Report(name, order.dry_run, found, told, placeable=chosen is not None)


def _counts(decision: Decision) -> dict[str, int]:
    counts = {"eligible": len(decision.ranked), "rejected": len(decision.rejected)}
    for rejections in decision.rejected.values():
        for constraint in {rejection.constraint for rejection in rejections}:
            counts[constraint.value] = counts.get(constraint.value, 0) + 1
    return counts


def _options(order: Order) -> dict[str, Json]:
    return {
        "pin": order.pin,
        "prefer": list(order.prefer),
        "avoid": list(order.avoid),
        "where": [asdict(where) for where in order.where],
        "allow_emulated": order.allow_emulated,
        "start": order.start,
        "project": order.project,
    }


def _step(tx: WriteTx, instance: Instance, goal: State, reason: str) -> None:
    """Walk an instance to `goal`; only ever called where the table has a way."""
    way = walk(instance.state, goal)
    assert not isinstance(way, IllegalTransition), way
    instances.advance(tx, instance, way, reason)
