"""Whether the chain is whole: every link, every number, and every row that an event tells of."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from sqlalchemy import select

from wlctl.errors import InvalidFile, LedgerDamaged
from wlctl.ledger import chain
from wlctl.ledger.agreement import CHECKS, Check, Fact
from wlctl.ledger.backend import Backend
from wlctl.ledger.schema import chain as table
from wlctl.ledger.store import Ledger, ReadTx, stream
from wlctl.model.event import Checkpoint

BATCH = 2000
"""Events between two calls of `progress`."""

_DECODER = json.JSONDecoder()
_AT = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")


@dataclass(frozen=True, slots=True)
class Verified:
    """Everything holds.

    Attributes:
        head: The newest event, as a checkpoint names it.
    """

    head: Checkpoint


@dataclass(frozen=True, slots=True)
class Broken:
    """The chain, or a row, is not what was recorded.

    Attributes:
        seq: The first event that is wrong, missing, or not agreed with.
    """

    seq: int
    why: str


def ignore(_seq: int) -> None:
    """Take no notice of progress."""


def verify(
    ledger: Ledger,
    *,
    against: Checkpoint | None = None,
    progress: Callable[[int], None] = ignore,
) -> Verified | Broken:
    """Answer whether the chain holds and the rows agree with it, as of one moment.

    `against` is a checkpoint that was kept elsewhere: its event must be in the chain, unchanged.
    `progress` is called every few thousand events with the number of the last one.

    Raises:
        InvalidFile: The checkpoint is of another installation.
    """
    if against is not None and against.installation != ledger.installation:
        raise InvalidFile(
            f"the checkpoint is of installation {against.installation}, "
            f"and this ledger is {ledger.installation}"
        )
    try:
        return _walk(ledger, _Walk(against, batch=BATCH), progress)
    except LedgerDamaged:
        pass  # somewhere in a batch; singly they tell which event is the first that is not there
    walk = _Walk(against, batch=1)
    try:
        return _walk(ledger, walk, ignore)
    except LedgerDamaged as damage:
        return Broken(walk.seq + 1, damage.message)


def _walk(ledger: Ledger, walk: "_Walk", progress: Callable[[int], None]) -> Verified | Broken:
    with ledger.read() as tx:
        broken = walk.through(tx, ledger.backend, progress)
    head = Checkpoint(ledger.installation, ledger.epoch, walk.seq, walk.hash.decode())
    return broken or Verified(head)


class _Walk:
    """One pass over the chain, oldest event first; everything is compared as the bytes stored.

    Attributes:
        seq: Of the last event that was right, and `hash` is its hash.
    """

    def __init__(self, against: Checkpoint | None, *, batch: int) -> None:
        self.seq = 0
        self.hash = chain.GENESIS.encode()
        self._against = against
        self._batch = batch
        self._checks: list[Check] = []
        self._wanted: dict[bytes, list[Check]] = {}
        self._actors: dict[bytes, bytes] = {}

    def through(
        self, tx: ReadTx, backend: Backend, progress: Callable[[int], None]
    ) -> Broken | None:
        """Go through the chain, and then the rows it left; stop at the first that is wrong."""
        self._checks = [check(tx) for check in CHECKS]
        columns = (table.c.at, table.c.kind, table.c.actor, table.c.payload)
        octets = map(backend.octets, (*columns, table.c.prev_hash, table.c.hash))
        events = stream(tx, select(table.c.seq, *octets).order_by(table.c.seq))
        while batch := list(islice(events, self._batch)):
            why = self._take(batch)
            if why is not None:
                return Broken(self.seq + 1, why)
            progress(self.seq)
        return self._cut() or self._disagreed()

    def _take(self, rows: Sequence[tuple[Any, ...]]) -> str | None:
        """Take the next events; say what is wrong with the one after the last that is right.

        One loop over local names and no call that can be spared: a million events go through it.
        """
        kinds, actors, sha256, is_time = self._wanted, self._actors, hashlib.sha256, _AT.fullmatch
        seq, before = self.seq, self.hash
        held_to = None if self._against is None else self._against.seq
        for number, at, kind, actor, payload, prev_hash, digest in rows:
            wanted, encoded = kinds.get(kind), actors.get(actor)
            if wanted is None or encoded is None:  # the first of its kind, or of its actor
                wanted, encoded = self._learn(kind, actor)
            seq += 1
            said = sha256(
                chain.HASHED % (encoded, at, kind, payload, prev_hash, number)
            ).hexdigest()
            if number != seq:
                return f"it is missing: the next one is {number}"
            if prev_hash != before:
                return "it does not name the hash of the event before it"
            if said.encode() != digest or not is_time(at):
                return "its hash is not that of what it says"
            if seq == held_to and self._is_another(said):
                return "the checkpoint names another event in its place"
            why = _compared(wanted, seq, kind, said, payload) if wanted else None
            if why is not None:
                return why
            self.seq, self.hash = seq, digest
            before = digest
        return None

    def _learn(self, kind: bytes, actor: bytes) -> tuple[list[Check], bytes]:
        """Take in a kind and an actor; what cannot be in any event gets no hash right."""
        try:
            name, who = kind.decode(), actor.decode()
        except UnicodeDecodeError:
            return [], b""
        if not chain.KINDS.fullmatch(name):
            return [], b""
        self._wanted[kind] = [check for check in self._checks if name in check.kinds]
        self._actors[actor] = chain.canonical(who)
        return self._wanted[kind], self._actors[actor]

    def _is_another(self, digest: str) -> bool:
        return self._against is not None and self._against.hash != digest

    def _cut(self) -> Broken | None:
        if self.seq == 0:
            return Broken(1, "it is missing: every chain begins with the making of its ledger")
        if self._against is None or self._against.seq <= self.seq:
            return None
        return Broken(
            self.seq + 1, f"it is missing: the checkpoint was made at event {self._against.seq}"
        )

    def _disagreed(self) -> Broken | None:
        found = (disagreement for check in self._checks for disagreement in check.end())
        first = min(found, key=lambda disagreement: disagreement.seq, default=None)
        return None if first is None else Broken(first.seq, first.why)


def _compared(
    wanted: list[Check], seq: int, kind: bytes, digest: str, payload: bytes
) -> str | None:
    """Show an event to the checks that want it; say what the first of them finds."""
    try:
        text = payload.decode()
        told, end = _DECODER.raw_decode(text)
        if end != len(text):
            return "its payload goes on after its end"
        event = Fact(seq, kind.decode(), digest, told)
        for check in wanted:
            why = check.see(event)
            if why is not None:
                return why
    # The hash holds, so whoever owns the file has put another payload under all of the hashes.
    except (ValueError, KeyError, TypeError, AttributeError):
        return "its payload is not what this kind of event tells"
    return None
