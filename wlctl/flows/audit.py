"""Read the chain, verify it, and make the checkpoints it can be held to elsewhere."""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from wlctl import signing
from wlctl.errors import InvalidFile, UnknownName, UsageError
from wlctl.flows import witnesses
from wlctl.flows.runtime import Runtime
from wlctl.ledger import chain, instances, nodes
from wlctl.ledger import verify as verifying
from wlctl.ledger.store import ReadTx
from wlctl.ledger.verify import Broken, Verified
from wlctl.model.event import Checkpoint, Event, parse_checkpoint
from wlctl.model.upkeep import ChainPoint

BATCH = 1000
"""Events read at a time: a reader who stops to think keeps no view of the ledger open."""

POLL_S = 0.5
"""How late a followed log may be."""

MAX_NOTE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events are asked for; all that is given must match.

    Attributes:
        kind: A kind, or a family of them such as `node.*`.
        instance: Name, id, or beginning of an id.
        since_ms: The first moment that counts.
        until_ms: The first that no longer does.
    """

    kind: str | None = None
    instance: str | None = None
    node: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SignedCheckpoint:
    """A checkpoint, and the note to keep elsewhere."""

    checkpoint: Checkpoint
    note: str


def log(rt: Runtime, wanted: Wanted, *, tail: int | None, follow: bool) -> Iterator[Event]:
    """Return events, oldest first; with `follow` go on for ever with those that are yet to come.

    Args:
        tail: Begin with so many of the newest; None begins with the oldest.

    Raises:
        UsageError: There is no such kind.
        UnknownName, AmbiguousName: No instance or node is meant, or more than one.
        LedgerDamaged: An event cannot be read.
    """
    with rt.ledger.read() as tx:
        matching = _matching(tx, wanted)
        seq, _ = chain.head(tx)
        if tail is None:
            return _after(rt, matching, 0, follow=follow)
        begun = list(islice(matching(tx, newest_first=True), tail))
    rest = _after(rt, matching, seq, follow=True) if follow else ()
    return itertools.chain(reversed(begun), rest)


def export(rt: Runtime, *, after_seq: int) -> Iterator[Event]:
    """Yield every event after `after_seq`."""
    return _after(rt, chain.events, after_seq, follow=False)


def length(rt: Runtime) -> int:
    """Return how many events there are."""
    with rt.ledger.read() as tx:
        return chain.head(tx)[0]


def verify(
    rt: Runtime, *, against: Path | None, progress: Callable[[int], None]
) -> Verified | Broken:
    """Answer whether the chain holds and the rows agree with it.

    Args:
        against: A checkpoint that was kept elsewhere.
        progress: Called with the number of the event that was reached.

    Raises:
        InvalidFile: The file is no checkpoint, or one of another installation.
        UntrustedSigner, BadSignature: It was not signed by a key of this installation.
    """
    checkpoint = None if against is None else _read_checkpoint(rt, against)
    return verifying.verify(rt.ledger, against=checkpoint, progress=progress)


def checkpoint(rt: Runtime) -> SignedCheckpoint:
    """Sign the newest event.

    Raises:
        FilesUnreadable, UnsafeKey, UnusableKey: The checkpoint key cannot be used.
    """
    with rt.ledger.read() as tx:
        seq, digest = chain.head(tx)
    head = Checkpoint(rt.ledger.installation, rt.ledger.epoch, seq, digest)
    point = ChainPoint(head.epoch, head.seq, head.hash)
    return SignedCheckpoint(head, witnesses.sign_head(rt, point))


def _matching(tx: ReadTx, wanted: Wanted) -> "_Reader":
    if wanted.kind is not None and not chain.is_kind(wanted.kind):
        families = ", ".join(f"{family}.*" for family in chain.FAMILIES)
        raise UsageError(f"there is no kind {wanted.kind}", hint=f"all of a family: {families}")
    instance = None if wanted.instance is None else _instance_id(tx, wanted.instance)
    if wanted.node is not None:
        _check_node(tx, wanted.node)

    def events(tx: ReadTx, *, after_seq: int = 0, newest_first: bool = False) -> Iterator[Event]:
        return chain.events(
            tx,
            kind=wanted.kind,
            instance=instance,
            node=wanted.node,
            since_ms=wanted.since_ms,
            until_ms=wanted.until_ms,
            after_seq=after_seq,
            newest_first=newest_first,
        )

    return events


_Reader = Callable[..., Iterator[Event]]


def _after(rt: Runtime, matching: _Reader, seq: int, *, follow: bool) -> Iterator[Event]:
    while True:
        with rt.ledger.read() as tx:
            head, _ = chain.head(tx)
            batch = list(islice(matching(tx, after_seq=seq), BATCH)) if head > seq else []
        yield from batch
        if len(batch) == BATCH:
            seq = batch[-1].seq
        elif follow:
            seq = head
            time.sleep(POLL_S)
        else:
            return


def _instance_id(tx: ReadTx, word: str) -> str:
    """Find whom a word means, or meant: a log is also about instances that are gone."""
    try:
        return instances.find(tx, word).id
    except UnknownName:
        last = instances.last_of(tx, word)
        if last is None:
            raise
        return last.id


def _check_node(tx: ReadTx, name: str) -> None:
    if next(chain.events(tx, node=name), None) is None:
        nodes.get(tx, name)


def _read_checkpoint(rt: Runtime, path: Path) -> Checkpoint:
    try:
        with path.open("rb") as file:
            note = file.read(MAX_NOTE_BYTES + 1).decode()
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{path} is no checkpoint: it is not UTF-8") from error
    found = parse_checkpoint(signing.verify_note(note, witnesses.verifiers(rt)))
    if found is None:
        raise InvalidFile(f"{path} is signed, and is no checkpoint")
    return found
