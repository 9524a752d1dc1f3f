"""Decides whether a lost copy may be placed anew now: what forbids it, and what it waits for."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from wlctl.lifecycle.backoff import is_waiting


class Block(StrEnum):
    """Why a lost copy is held where it was; an operator decides."""

    OTHER_COPY = "other_copy"
    """There is another copy of the same order, or one of which nobody knows."""
    FAILED = "failed"
    """It had failed before it was lost, and is held for an operator wherever it is."""
    JOB = "job"
    """It is a job that may have run, and is not run again by itself."""
    REVOKED = "revoked"
    """Its package, a signer or a file of it is revoked."""
    PACKAGE = "package"
    """The package is not there whole, or nobody who is accepted vouches for it any more."""
    MOVED_ENOUGH = "moved_enough"
    """It was moved as often as it may be."""
    NOT_MIGRATABLE = "not_migratable"
    """Its package or its order says that it is not moved by itself."""
    PINNED = "pinned"
    """It was ordered for one node."""
    ATTACHED = "attached"
    """It needs a sensor, device or feed that is attached to its node."""
    KEEPS_DATA = "keeps_data"
    """Its data is on its node."""


@dataclass(frozen=True, slots=True)
class Copy:
    """What is known of a lost copy.

    Attributes:
        moves: How often a copy of its order took the place of a lost one.
        had_failed: It was not meant to be begun again when it was lost.
        may_have_run: It is a job, and a run of it was launched.
        has_open_copy: Its order has another copy that is not closed, or is unsettled.
        is_revoked: A revocation names it.
        package_fault: Why its package cannot be placed; empty when it can.
        lease_left_ms: How long it may still run by its lease; 0 where it cannot, or has none.
        retry_at_ms: Not before, because it failed lately; None where it did not.
    """

    moves: int
    max_moves: int
    migratable: bool = True
    pin: str = ""
    is_attached: bool = False
    keeps_data: bool = False
    had_failed: bool = False
    may_have_run: bool = False
    has_open_copy: bool = False
    is_revoked: bool = False
    package_fault: str = ""
    lease_left_ms: int = 0
    retry_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Go:
    """It may be placed now."""


@dataclass(frozen=True, slots=True)
class Held:
    """It may not, and time alone does not change that.

    Attributes:
        why: In words.
    """

    block: Block
    why: str


@dataclass(frozen=True, slots=True)
class LeaseWait:
    """It may still run by its lease.

    Attributes:
        until_ms: Then it cannot any more, by this side's wall clock.
    """

    until_ms: int


@dataclass(frozen=True, slots=True)
class Backoff:
    """It was tried lately, and is tried again then."""

    until_ms: int


Answer = Go | Held | LeaseWait | Backoff


def decide(copy: Copy, now_ms: int) -> Answer:
    """Answer whether a lost copy may be placed anew; what forbids it counts before what delays."""
    held = _held(copy)
    if held is not None:
        return held
    if copy.lease_left_ms > 0:
        return LeaseWait(now_ms + copy.lease_left_ms)
    if copy.retry_at_ms is not None and is_waiting(copy.retry_at_ms, now_ms):
        return Backoff(copy.retry_at_ms)
    return Go()


def _held(copy: Copy) -> Held | None:
    return next((Held(block, why) for holds, block, why in _blocks(copy) if holds), None)


def _blocks(copy: Copy) -> Iterator[tuple[bool, Block, str]]:
    """Give all that may forbid it, what counts most first: whether it does, and why in words."""
    moved = f"it was moved {copy.moves} times, and {copy.max_moves} is its limit"
    failed = "it had failed before its node lost it: an operator decides"
    ran = "it is a job that may have run: it is not run again by itself"
    yield copy.has_open_copy, Block.OTHER_COPY, "another copy of it is not settled"
    yield copy.had_failed, Block.FAILED, failed
    yield copy.may_have_run, Block.JOB, ran
    yield copy.is_revoked, Block.REVOKED, "it is revoked"
    yield copy.package_fault != "", Block.PACKAGE, copy.package_fault
    yield copy.moves >= copy.max_moves, Block.MOVED_ENOUGH, moved
    not_migratable = "it is not moved by itself: migratable is false"
    yield not copy.migratable, Block.NOT_MIGRATABLE, not_migratable
    yield copy.pin != "", Block.PINNED, f"it was ordered for {copy.pin} alone"
    yield copy.is_attached, Block.ATTACHED, "what it needs is attached to its node"
    yield copy.keeps_data, Block.KEEPS_DATA, "its data is on its node"
