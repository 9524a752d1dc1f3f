"""Placed copies: who they are, what they hold, and every step of their lives."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Row, distinct, func, insert, select, update

from wlctl.errors import NAMES_COMPARED, AmbiguousName, UnknownName
from wlctl.ledger import chain
from wlctl.ledger.schema import chain as events
from wlctl.ledger.schema import instances, life_events, orders, reservations
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.event import Json
from wlctl.model.ids import DecisionId, InstanceId, NodeName, PackageId
from wlctl.model.instance import CLOSED, Desired, Instance, State
from wlctl.model.kind import Kind

if TYPE_CHECKING:
    from wlctl.model.fleet import Claim, Hold
    from wlctl.model.workload import WorkloadSpec


@dataclass(frozen=True, slots=True)
class Step:
    """One row of an instance's history.

    Attributes:
        seq: Of the event that says the same.
        evidence: What was read that says so; None where nothing had to be.
    """

    origin: State | None
    state: State
    at_ms: int
    reason: str
    seq: int
    evidence: Mapping[str, Any] | None = None


def open_order(
    tx: WriteTx, *, name: str, package_id: PackageId, options: Mapping[str, Json]
) -> int:
    """Keep the request with all its options, for every later move; return its number."""
    row = insert(orders).values(
        name=name,
        package_id=package_id,
        options=chain.canonical(options).decode(),
        created_at_ms=tx.now_ms,
    )
    key = tx.conn.execute(row).inserted_primary_key
    assert key is not None
    return int(key[0])


def reserve(
    tx: WriteTx,
    *,
    instance_id: InstanceId,
    name: str,
    order: int,
    decision: DecisionId,
    node: NodeName,
    variant: str,
    package_id: PackageId,
    spec: "WorkloadSpec",
    claims: "Sequence[Claim]",
    desired: Desired,
    replaces: InstanceId | None = None,
) -> None:
    """Write down a copy that is about to be placed and what it will hold; nothing was sent yet.

    Args:
        replaces: The copy whose place it is taking: that one has the name until `take_place`.
    """
    tx.conn.execute(
        insert(instances).values(
            id=instance_id,
            name=name,
            order_id=order,
            decision_id=decision,
            node=node,
            kind=spec.kind.value,
            workload=spec.name,
            version=spec.version,
            package_id=package_id,
            variant=variant,
            desired=desired.value,
            state=State.REQUESTED.value,
            generation=0,
            unsettled=False,
            health="",
            created_at_ms=tx.now_ms,
            since_ms=tx.now_ms,
            replaces=replaces,
        )
    )
    tx.conn.execute(
        insert(reservations).values(
            instance_id=instance_id,
            node=node,
            cpu_milli=round(spec.resources.cpu_cores * 1000),
            memory_bytes=spec.resources.memory_bytes,
            accel_memory_bytes=spec.resources.accel_memory_bytes,
            disk_bytes=spec.resources.disk_bytes,
            ports=json.dumps([port for _, port in spec.ports if port]),
            labels=json.dumps(spec.policy.labels),
            excludes=json.dumps(spec.policy.excludes),
            claims=json.dumps(claims),
            reserved_at_ms=tx.now_ms,
        )
    )
    _record_step(tx, instance_id, origin=None, state=State.REQUESTED, reason="ordered")


def options_of(tx: ReadTx, instance_id: InstanceId) -> Mapping[str, Json]:
    """Return the options of the order that an instance was placed for."""
    query = select(orders.c.options).join(instances, instances.c.order_id == orders.c.id)
    text = tx.conn.execute(query.where(instances.c.id == instance_id)).scalar_one()
    found: Mapping[str, Json] = json.loads(text)
    return found


def advance(
    tx: WriteTx,
    instance: Instance,
    way: Iterable[State],
    reason: str,
    evidence: Mapping[str, Json] | None = None,
) -> None:
    """Walk an instance along `way`, one history row and one event a step.

    Args:
        way: From `lifecycle.machine.walk`, so every step of it is legal.
        evidence: Kept in the event of the last step.
    """
    steps = tuple(way)
    origin = instance.state
    for position, state in enumerate(steps, 1):
        kept = evidence if position == len(steps) else None
        _record_step(tx, instance.id, origin=origin, state=state, reason=reason, evidence=kept)
        origin = state
    if steps:
        change(tx, instance.id, state=origin.value, since_ms=tx.now_ms)


def release(tx: WriteTx, instance_id: InstanceId) -> None:
    """Give back what the instance held; only ever called with a proof in hand."""
    still_held = reservations.c.released_at_ms.is_(None)
    tx.conn.execute(
        update(reservations)
        .where(reservations.c.instance_id == instance_id, still_held)
        .values(released_at_ms=tx.now_ms)
    )


def is_holding(tx: ReadTx, instance_id: InstanceId) -> bool:
    """Answer whether the instance holds anything: nothing was proven or vouched for."""
    still_held = reservations.c.released_at_ms.is_(None)
    query = select(reservations.c.instance_id).where(reservations.c.instance_id == instance_id)
    return tx.conn.execute(query.where(still_held)).first() is not None


def holding_though_stopped(tx: ReadTx) -> frozenset[InstanceId]:
    """Return the stopped instances that hold what a start took which did not come about."""
    query = (
        select(instances.c.id)
        .join(reservations, reservations.c.instance_id == instances.c.id)
        .where(instances.c.state == State.STOPPED.value, reservations.c.released_at_ms.is_(None))
    )
    return frozenset(InstanceId(row.id) for row in tx.conn.execute(query))


def hold_again(tx: WriteTx, instance_id: InstanceId, claims: "Sequence[Claim]") -> None:
    """Let the instance hold anew what it held before, with other capabilities where it must."""
    tx.conn.execute(
        update(reservations)
        .where(reservations.c.instance_id == instance_id)
        .values(reserved_at_ms=tx.now_ms, released_at_ms=None, claims=json.dumps(claims))
    )


def hold_as_before(tx: WriteTx, instance_id: InstanceId) -> None:
    """Let the instance hold again what it held, whoever has it by now: it was there all along."""
    given_back = reservations.c.released_at_ms.is_not(None)
    tx.conn.execute(
        update(reservations)
        .where(reservations.c.instance_id == instance_id, given_back)
        .values(reserved_at_ms=tx.now_ms, released_at_ms=None)
    )


def change(tx: WriteTx, instance_id: InstanceId, **columns: object) -> None:
    """Set columns of one instance."""
    tx.conn.execute(update(instances).where(instances.c.id == instance_id).values(**columns))


def get(tx: ReadTx, instance_id: InstanceId) -> Instance:
    """Return the instance with exactly this id."""
    return _instance(tx.conn.execute(_QUERY.where(instances.c.id == instance_id)).one())


def current(tx: ReadTx) -> list[Instance]:
    """Return the instances that are neither unloaded nor rescheduled, ascending by name."""
    rows = tx.conn.execute(_QUERY.where(_CURRENT).order_by(instances.c.name)).all()
    return [_instance(row) for row in rows]


def current_on(tx: ReadTx, nodes: Iterable[NodeName]) -> list[Instance]:
    """Return the current instances on some nodes, ascending by name."""
    query = _QUERY.where(_CURRENT, instances.c.node.in_(sorted(nodes))).order_by(instances.c.name)
    return [_instance(row) for row in tx.conn.execute(query)]


def standing_in(tx: ReadTx) -> list[Instance]:
    """Return the current ones without a name: they stand in for another, or gave it away."""
    query = _QUERY.where(_CURRENT, instances.c.replaces.is_not(None)).order_by(instances.c.id)
    return [_instance(row) for row in tx.conn.execute(query)]


def rescheduled(tx: ReadTx) -> list[Instance]:
    """Return those whose place was taken and whose end is not proven yet, ascending by id."""
    query = _QUERY.where(instances.c.state == State.RESCHEDULED.value).order_by(instances.c.id)
    return [_instance(row) for row in tx.conn.execute(query)]


def of_ids(tx: ReadTx, ids: Iterable[InstanceId]) -> list[Instance]:
    """Return those of `ids` that the ledger knows, closed ones too, ascending by id."""
    query = _QUERY.where(instances.c.id.in_(sorted(ids))).order_by(instances.c.id)
    return [_instance(row) for row in tx.conn.execute(query)]


def of_kind(tx: ReadTx, kind: Kind) -> list[Instance]:
    """Return the current instances of a kind of workload, ascending by name."""
    query = _QUERY.where(_CURRENT, instances.c.kind == kind.value)
    return [_instance(row) for row in tx.conn.execute(query.order_by(instances.c.name))]


def holder_of(tx: ReadTx, name: str) -> Instance | None:
    """Return the current instance that has this name; one that is taking its place has not yet."""
    named = (instances.c.name == name) & _CURRENT & instances.c.replaces.is_(None)
    row = tx.conn.execute(_QUERY.where(named)).one_or_none()
    return None if row is None else _instance(row)


def order_of(tx: ReadTx, instance_id: InstanceId) -> int:
    """Return the number of the order that an instance was placed for."""
    query = select(instances.c.order_id).where(instances.c.id == instance_id)
    return int(tx.conn.execute(query).scalar_one())


def others_of_order(tx: ReadTx, instance_id: InstanceId) -> list[Instance]:
    """Return the other current instances of its order, oldest first."""
    same = instances.c.order_id == order_of(tx, instance_id)
    query = _QUERY.where(same, instances.c.id != instance_id, _CURRENT)
    rows = tx.conn.execute(query.order_by(instances.c.created_at_ms, instances.c.id))
    return [_instance(row) for row in rows]


def of_shared_orders(tx: ReadTx) -> frozenset[InstanceId]:
    """Return the current instances of every order that has more than one of them."""
    shared = (
        select(instances.c.order_id)
        .where(_CURRENT)
        .group_by(instances.c.order_id)
        .having(func.count() > 1)
    )
    rows = tx.conn.execute(select(instances.c.id).where(_CURRENT, instances.c.order_id.in_(shared)))
    return frozenset(InstanceId(row.id) for row in rows)


def ordered_leases(tx: ReadTx) -> dict[InstanceId, int]:
    """Return the lease of each current instance whose order gave one, in milliseconds."""
    query = (
        select(instances.c.id, orders.c.options)
        .join(orders, orders.c.id == instances.c.order_id)
        .where(_CURRENT, orders.c.options.not_like('%"lease_ms":null%'))
    )
    found = ((row.id, json.loads(row.options).get("lease_ms")) for row in tx.conn.execute(query))
    return {InstanceId(id_): int(lease_ms) for id_, lease_ms in found if lease_ms is not None}


def moves_of_order(tx: ReadTx, order: int) -> int:
    """Count how often a copy of an order took the place of one that was lost."""
    query = (
        select(func.count(distinct(life_events.c.instance_id)))
        .join(instances, instances.c.id == life_events.c.instance_id)
        .where(instances.c.order_id == order)
        .where(life_events.c.to_state == State.RESCHEDULED.value)
    )
    return int(tx.conn.execute(query).scalar_one())


def find(tx: ReadTx, word: str) -> Instance:
    """Return what `word` means: a current instance's name, or a unique beginning of an id.

    Raises:
        AmbiguousName: More than one id begins so.
        UnknownName: Nothing is meant by it; an instance that was unloaded has given its name back.
    """
    named = holder_of(tx, word)
    if named is not None:
        return named
    like = instances.c.id.startswith(word, autoescape=True)
    query = _QUERY.where(like).order_by(instances.c.id).limit(5)
    rows = tx.conn.execute(query).all() if word else ()  # an empty word begins every id
    if len(rows) == 1:
        return _instance(rows[0])
    if rows:
        listed = ", ".join(row.id for row in rows)
        raise AmbiguousName(f"{word} fits {listed}", hint="write more of the id")
    names = select(instances.c.name).where(_CURRENT).limit(NAMES_COMPARED)
    known = tx.conn.execute(names.order_by(instances.c.name)).scalars()
    said, hint = f"there is no instance {word}", "`wlctl ps` lists the current ones"
    raise UnknownName.among(known, word, said, hint=hint)


def last_of(tx: ReadTx, name: str) -> Instance | None:
    """Return the instance that had this name last, whether it is current or not."""
    query = _QUERY.where(instances.c.name == name).order_by(instances.c.created_at_ms.desc())
    row = tx.conn.execute(query.limit(1)).one_or_none()
    return None if row is None else _instance(row)


def labels(tx: ReadTx) -> dict[InstanceId, frozenset[str]]:
    """Return the co-residency labels of each current instance."""
    query = (
        select(reservations.c.instance_id, reservations.c.labels)
        .join(instances, instances.c.id == reservations.c.instance_id)
        .where(_CURRENT)
    )
    rows = tx.conn.execute(query)
    return {InstanceId(row.instance_id): frozenset(json.loads(row.labels)) for row in rows}


def holds(tx: ReadTx) -> "tuple[Hold, ...]":
    """Return everything that is held anywhere, ascending by instance id."""
    query = (
        select(
            reservations,
            instances.c.id,
            instances.c.name,
            instances.c.kind,
            instances.c.workload,
        )
        .join(reservations, reservations.c.instance_id == instances.c.id)
        .where(reservations.c.released_at_ms.is_(None))
        .order_by(instances.c.id)
    )
    return tuple(_hold(row) for row in tx.conn.execute(query))


def history(tx: ReadTx, instance_id: InstanceId) -> Sequence[Step]:
    """Return every step of an instance, oldest first."""
    query = _STEPS.where(life_events.c.instance_id == instance_id)
    return [_step(row) for row in tx.conn.execute(query.order_by(life_events.c.id))]


def last_step(tx: ReadTx, instance_id: InstanceId) -> Step:
    """Return the newest step of an instance: how it came into its state."""
    query = _STEPS.where(life_events.c.instance_id == instance_id)
    return _step(tx.conn.execute(query.order_by(life_events.c.id.desc()).limit(1)).one())


def _step(row: Row[Any]) -> Step:
    return Step(
        origin=None if row.from_state is None else State(row.from_state),
        state=State(row.to_state),
        at_ms=row.at_ms,
        reason=row.reason,
        seq=row.seq,
        evidence=json.loads(row.payload).get("evidence"),
    )


_STEPS = select(life_events, events.c.payload).join(events, events.c.seq == life_events.c.seq)
_QUERY = select(instances)
_CURRENT = instances.c.state.not_in([state.value for state in sorted(CLOSED)])


def _record_step(
    tx: WriteTx,
    instance_id: InstanceId,
    *,
    origin: State | None,
    state: State,
    reason: str,
    evidence: Mapping[str, Json] | None = None,
) -> None:
    payload: dict[str, Json] = {
        "instance": instance_id,
        "from": None if origin is None else origin.value,
        "to": state.value,
        "reason": reason,
    }
    if evidence:
        payload["evidence"] = evidence
    event = chain.append(tx, "workload.lifecycle", payload)
    tx.conn.execute(
        insert(life_events).values(
            instance_id=instance_id,
            from_state=payload["from"],
            to_state=state.value,
            at_ms=tx.now_ms,
            reason=reason,
            seq=event.seq,
        )
    )


def _instance(row: Row[Any]) -> Instance:
    return Instance(
        id=InstanceId(row.id),
        name=row.name,
        kind=Kind(row.kind),
        workload=row.workload,
        version=row.version,
        package_id=PackageId(row.package_id),
        variant=row.variant,
        node=NodeName(row.node),
        desired=Desired(row.desired),
        state=State(row.state),
        generation=row.generation,
        unsettled=row.unsettled,
        health=row.health,
        created_at_ms=row.created_at_ms,
        since_ms=row.since_ms,
        seen_at_ms=row.seen_at_ms,
        replaces=None if row.replaces is None else InstanceId(row.replaces),
    )


def _hold(row: Row[Any]) -> "Hold":
    from wlctl.model.fleet import Claim, Hold  # only decisions have use for them

    return Hold(
        node=NodeName(row.node),
        instance=InstanceId(row.id),
        name=row.name,
        kind=Kind(row.kind),
        workload=row.workload,
        labels=tuple(json.loads(row.labels)),
        excludes=tuple(json.loads(row.excludes)),
        ports=tuple(json.loads(row.ports)),
        claims=tuple(Claim(*claim) for claim in json.loads(row.claims)),
        memory_bytes=row.memory_bytes,
        accel_memory_bytes=row.accel_memory_bytes,
        cpu_cores=row.cpu_milli / 1000,
        disk_bytes=row.disk_bytes,
    )
