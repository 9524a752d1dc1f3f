"""Whether the rows say what the chain says: one check a concern, fed with events as they go by.

A new table that is told of by events adds its check to `CHECKS`.
"""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Table, select

from wlctl.ledger.schema import (
    alerts,
    approvals,
    decisions,
    installation,
    instances,
    life_events,
    node_capabilities,
    nodes,
    policies,
    revocations,
    signers,
)
from wlctl.ledger.store import ReadTx, stream


class Fact(NamedTuple):
    """One verified event, as much of it as a check needs; made a million times, so a tuple."""

    seq: int
    kind: str
    hash: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row and the event at `seq` do not say the same.

    Attributes:
        seq: 0 where no event tells of the row at all.
    """

    seq: int
    why: str


Tell = Callable[[Mapping[str, Any]], dict[str, object]]
"""What an event's payload says that columns of a row must be."""


class Check(Protocol):
    """Compares one concern's rows with its events.

    Attributes:
        kinds: The events it wants to see.
    """

    kinds: frozenset[str]

    def see(self, event: Fact) -> str | None:
        """Take one event, in order; say what its rows have otherwise."""
        ...

    def end(self) -> Iterator[Disagreement]:
        """After the last event: say what the rows have and no event said."""
        ...


class Histories:
    """Each lifecycle event has its row in the history, and the last one is the instance's state."""

    kinds = frozenset({"workload.lifecycle"})

    def __init__(self, tx: ReadTx) -> None:
        self._tx = tx
        step = (life_events.c[name] for name in ("instance_id", "from_state", "to_state", "reason"))
        self._rows = stream(tx, select(life_events.c.seq, *step).order_by(life_events.c.seq))
        self._last: dict[str, tuple[int, str]] = {}

    def see(self, event: Fact) -> str | None:
        """See `Check.see`."""
        told = event.payload
        seq, instance, origin, state, reason = next(self._rows, _NO_STEP)
        if seq != event.seq:
            return "the history has no row of it, or one too many before it"
        if (
            instance != told["instance"]
            or state != told["to"]
            or origin != told["from"]
            or reason != told["reason"]
        ):
            return "the history tells of another step"
        self._last[instance] = (seq, state)
        return None

    def end(self) -> Iterator[Disagreement]:
        """See `Check.end`."""
        untold = set()
        for seq, instance, *_ in self._rows:
            untold.add(instance)
            yield Disagreement(seq, "the history has a step that no event tells of")
        for instance, state in stream(self._tx, select(instances.c.id, instances.c.state)):
            seq, told = self._last.get(instance, (0, None))
            if state != told and instance not in untold:
                why = f"instance {instance} is {state} and was last told to be {told}"
                yield Disagreement(seq, why)


_NO_STEP = (0, "", None, "", "")


class Decisions:
    """Each decision has its event, and its document is the one that the event binds."""

    kinds = frozenset({"workload.place", "workload.refuse"})

    def __init__(self, tx: ReadTx) -> None:
        names = ("seq", "id", "sha256", "document")
        query = select(*(decisions.c[name] for name in names)).order_by(decisions.c.seq)
        self._rows = stream(tx, query)

    def see(self, event: Fact) -> str | None:
        """See `Check.see`."""
        if event.payload.get("phase") != "decision":
            return None
        seq, name, digest, document = next(self._rows, _NO_DECISION)
        if seq != event.seq:
            return "the decision is not kept, or one too many before it"
        if name != event.hash:
            return "the decision is kept under another id than the event's hash"
        told = event.payload["document"]
        if digest != told or (document is not None and _sha256(document) != told):
            return "the decision's document is another than the one that was made"
        return None

    def end(self) -> Iterator[Disagreement]:
        """See `Check.end`."""
        for seq, *_ in self._rows:
            yield Disagreement(seq, "a decision is kept that no event tells of")


_NO_DECISION = (0, "", "", None)


class Replay:
    """What events told last of a thing, column by column, is what its row has.

    Args:
        key: The column that names the thing.
        told: Event kind to a function from its payload to the thing's columns, `key` among them.
        ended: Event kind to the same; after it there is no row.
    """

    def __init__(
        self,
        tx: ReadTx,
        table: Table,
        key: str,
        told: Mapping[str, Tell],
        ended: Mapping[str, Tell] = MappingProxyType({}),
    ) -> None:
        self.kinds = frozenset((*told, *ended))
        self._tx = tx
        self._table = table
        self._key = key
        self._tell = told
        self._ended = ended
        self._said: dict[object, dict[str, tuple[object, int]]] = {}

    def see(self, event: Fact) -> str | None:
        """See `Check.see`."""
        if event.kind in self._ended:
            self._said.pop(self._ended[event.kind](event.payload)[self._key], None)
            return None
        columns = self._tell[event.kind](event.payload)
        said = self._said.setdefault(columns[self._key], {})
        said.update({column: (value, event.seq) for column, value in columns.items()})
        return None

    def end(self) -> Iterator[Disagreement]:
        """See `Check.end`."""
        table = self._table.name
        for row in stream(self._tx, select(self._table)):
            has = dict(zip(self._table.c.keys(), row, strict=True))
            name = has[self._key]
            said = self._said.pop(name, None)
            if said is None:
                yield Disagreement(0, f"{table} has {name}, and no event tells of it")
                continue
            for column, (value, seq) in said.items():
                if has[column] != value:
                    yield Disagreement(seq, f"{table} has another {column} of {name} than it tells")
        for name, said in self._said.items():
            seq = max(seq for _, seq in said.values())
            yield Disagreement(seq, f"{table} does not have {name}, of which it tells")


def _identity(tx: ReadTx) -> Check:
    def made(told: Mapping[str, Any]) -> dict[str, object]:
        return {"id": told["installation"], "doubt": None}

    def doubted(told: Mapping[str, Any]) -> dict[str, object]:
        return {"id": told["installation"], "doubt": told["doubt"]}

    def restored(told: Mapping[str, Any]) -> dict[str, object]:
        return {"id": told["installation"], "doubt": None, "epoch": told["epoch"]}

    tells = {"ledger.init": made, "ledger.doubt": doubted, "ledger.restored": restored}
    return Replay(tx, installation, "id", tells)


def _signers(tx: ReadTx) -> Check:
    def added(told: Mapping[str, Any]) -> dict[str, object]:
        times = {one: told.get(one) for one in ("valid_after_ms", "valid_before_ms")}
        return {"name": told["signer"], "public_key": told["public_key"], **times}

    def removed(told: Mapping[str, Any]) -> dict[str, object]:
        return {"name": told["signer"]}

    return Replay(tx, signers, "name", {"signer.add": added}, {"signer.rm": removed})


class Revocations:
    """Each revocation, and each that was taken back, is kept as its event says."""

    kinds = frozenset({"workload.revoke", "workload.unrevoke"})

    def __init__(self, tx: ReadTx) -> None:
        self._tx = tx
        self._told: dict[int, tuple[object, ...]] = {}

    def see(self, event: Fact) -> str | None:
        """See `Check.see`."""
        told = event.payload
        if event.kind == "workload.revoke":
            self._told[event.seq] = (told["kind"], told["ref"], told["reason"], None)
            return None
        before = self._told.get(told["seq"])
        if before is None:
            return "a revocation was taken back that was never told"
        self._told[told["seq"]] = (*before[:3], event.seq)
        return None

    def end(self) -> Iterator[Disagreement]:
        """See `Check.end`."""
        columns = (revocations.c[name] for name in ("kind", "ref", "reason", "withdrawn_seq"))
        for seq, *has in stream(self._tx, select(revocations.c.seq, *columns)):
            said = self._told.pop(seq, None)
            if said is None:
                yield Disagreement(seq, "a revocation is kept that no event tells of")
            elif said != tuple(has):
                yield Disagreement(seq, "a revocation is kept otherwise than it was told")
        for seq in self._told:
            yield Disagreement(seq, "a revocation was told and is not kept")


def _nodes(tx: ReadTx) -> Check:
    def added(told: Mapping[str, Any]) -> dict[str, object]:
        same = ("transport", "host", "port", "host_key", "node_id", "tier")
        columns: dict[str, object] = {column: told[column] for column in same}
        columns |= {"liveness": "alive", "removed": False}
        columns |= {"cordoned": False, "cordoned_until_ms": None}
        columns |= {"enforced": told["enforced"], "enforcement_sha256": None, "settles": "auto"}
        return {"name": told["node"], "login": told["user"], **columns}

    def lived(told: Mapping[str, Any]) -> dict[str, object]:
        return {"name": told["node"], "liveness": told["to"]}

    def changed(told: Mapping[str, Any]) -> dict[str, object]:
        same = ("host_key", "node_id", "tier", "enforced", "enforcement_sha256", "host", "port")
        columns = {one: told[one] for one in same if one in told}
        if "containment" in told:
            columns |= {"settles": told["containment"]}
        if "user" in told:
            columns |= {"login": told["user"], "sudo": told["sudo"]}
        return {"name": told["node"], **columns}

    def cordoned(told: Mapping[str, Any]) -> dict[str, object]:
        return {"name": told["node"], "cordoned": True, "cordoned_until_ms": told["until_ms"]}

    def uncordoned(told: Mapping[str, Any]) -> dict[str, object]:
        return {"name": told["node"], "cordoned": False, "cordoned_until_ms": None}

    def removed(told: Mapping[str, Any]) -> dict[str, object]:
        return {"name": told["node"], "removed": True}

    tells: dict[str, Tell] = {
        "node.add": added,
        "node.liveness": lived,
        "node.set": changed,
        "node.rekey": changed,
        "node.enforce": changed,
        "node.cordon": cordoned,
        "node.uncordon": uncordoned,
        "node.rm": removed,
    }
    return Replay(tx, nodes, "name", tells)


class Sayings:
    """What is claimed and was measured of each node is what was told last."""

    kinds = frozenset({"node.set", "node.measure", "node.rekey", "node.rm"})

    def __init__(self, tx: ReadTx) -> None:
        self._tx = tx
        self._said: dict[tuple[str, str, str], tuple[int, object]] = {}

    def see(self, event: Fact) -> str | None:
        """See `Check.see`."""
        told = event.payload
        node = told["node"]
        match event.kind:
            case "node.set":
                for id_ in told.get("withdrawn", ()):
                    self._said.pop((node, "claimed", id_), None)
                for id_, attrs in told.get("claims", {}).items():
                    self._said[node, "claimed", id_] = event.seq, attrs
            case "node.measure":
                self._drop(node, "measured")
                for id_, attrs in told["figures"].items():
                    self._said[node, "measured", id_] = event.seq, attrs
            case "node.rekey":
                if told["before"]["node_id"] != told["node_id"]:
                    self._drop(node, "measured")
            case _:
                self._drop(node, "measured")
                self._drop(node, "claimed")
        return None

    def _drop(self, node: str, provenance: str) -> None:
        gone = [key for key in self._said if key[:2] == (node, provenance)]
        for key in gone:
            del self._said[key]

    def end(self) -> Iterator[Disagreement]:
        """See `Check.end`."""
        columns = (node_capabilities.c[name] for name in ("node", "provenance", "id", "attrs"))
        for node, provenance, id_, attrs in stream(self._tx, select(*columns)):
            seq, told = self._said.pop((node, provenance, id_), (0, None))
            if told is None:
                yield Disagreement(seq, f"{id_} of {node} was never {provenance}")
            elif json.loads(attrs) != told:
                yield Disagreement(seq, f"{id_} of {node} was {provenance} otherwise")
        for (node, provenance, id_), (seq, _) in self._said.items():
            yield Disagreement(seq, f"{id_} of {node} was {provenance} and is not kept")


class Policies:
    """Each policy that was applied is kept, and its text is the one that its event binds."""

    kinds = frozenset({"policy.apply"})

    def __init__(self, tx: ReadTx) -> None:
        rows = stream(tx, select(policies.c.seq, policies.c.text).order_by(policies.c.seq))
        self._rows = iter(rows)

    def see(self, event: Fact) -> str | None:
        """See `Check.see`."""
        seq, text = next(self._rows, (0, ""))
        if seq != event.seq:
            return "the policy is not kept, or one too many before it"
        if hashlib.sha256(text.encode()).hexdigest() != event.payload["sha256"]:
            return "the policy is kept with another text"
        return None

    def end(self) -> Iterator[Disagreement]:
        """See `Check.end`."""
        for seq, _ in self._rows:
            yield Disagreement(seq, "a policy is kept that no event tells of")


def _approvals(tx: ReadTx) -> Check:
    def deferred(told: Mapping[str, Any]) -> dict[str, object]:
        same = ("request_sha256", "principal", "expires_at_ms")
        fresh = {"approver": None, "signature": None, "spent_at_ms": None}
        return {"id": told["approval"], **{one: told[one] for one in same}, **fresh}

    def approved(told: Mapping[str, Any]) -> dict[str, object]:
        return {"id": told["approval"], **{one: told[one] for one in ("approver", "signature")}}

    def spent(told: Mapping[str, Any]) -> dict[str, object]:
        return {"id": told["approval"], "spent_at_ms": told["spent_at_ms"]}

    tells = {"policy.defer": deferred, "policy.approve": approved, "policy.spend": spent}
    return Replay(tx, approvals, "id", tells)


def _alerts(tx: ReadTx) -> Check:
    def raised(told: Mapping[str, Any]) -> dict[str, object]:
        said = {one: told[one] for one in ("kind", "subject", "reason")}
        fresh = {"acked_at_ms": None, "acked_by": None, "closed_at_ms": None}
        return {"id": told["alert"], **said, **fresh}

    def acked(told: Mapping[str, Any]) -> dict[str, object]:
        return {"id": told["alert"], **{one: told[one] for one in ("acked_at_ms", "acked_by")}}

    def closed(told: Mapping[str, Any]) -> dict[str, object]:
        return {"id": told["alert"], "closed_at_ms": told["closed_at_ms"]}

    tells = {"alert.raise": raised, "alert.ack": acked, "alert.close": closed}
    return Replay(tx, alerts, "id", tells)


CHECKS: tuple[Callable[[ReadTx], Check], ...] = (
    _identity,
    _signers,
    Revocations,
    Policies,
    _approvals,
    _alerts,
    _nodes,
    Sayings,
    Decisions,
    Histories,
)
"""Every check there is; each is made anew for one verification."""


def _sha256(packed: bytes) -> str | None:
    try:
        return hashlib.sha256(zlib.decompress(packed)).hexdigest()
    except zlib.error:
        return None
