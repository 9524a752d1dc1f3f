"""What was decided, and why: read from the stored documents, never worked out again."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from wlctl.errors import UnknownName, UsageError
from wlctl.flows.runtime import Runtime
from wlctl.ledger import decisions, instances, troubles
from wlctl.ledger.decisions import Stored
from wlctl.ledger.store import ReadTx
from wlctl.ledger.troubles import Trouble
from wlctl.placement.shapes import Document


@dataclass(frozen=True, slots=True)
class Explained:
    """One decision with all its reasons."""

    stored: Stored
    document: Document


def ls(
    rt: Runtime, *, workload: str = "", node: str = "", since_ms: int | None = None
) -> list[Stored]:
    """Return the decisions that have all of these properties, oldest first, without documents."""
    with rt.ledger.read() as tx:
        return decisions.ls(tx, workload=workload, node=node, since_ms=since_ms)


def explain(
    rt: Runtime, word: str, *, last: bool = False, everything: bool = False
) -> list[Explained]:
    """Return the newest decision that is meant, or all of them, newest first.

    Args:
        word: What was decided about, a copy, or the beginning of a decision's id.
        last: The decision that was made last, whatever it was about; without a word.
        everything: All decisions about the word.

    Raises:
        AmbiguousName: The word fits the ids of more than one decision.
        UnknownName: There is none, or its document was pruned.
        UsageError: Neither a word nor `last`, or both.
    """
    if last == bool(word) or (last and everything):
        raise UsageError(
            "which decision?", hint="give its id, a name, or --last; --all needs a name"
        )
    with rt.ledger.read() as tx:
        found = _meant(tx, word, last=last)
    kept = [one for one in found if one.document is not None]
    if not kept:
        raise UnknownName(
            f"the reasons of decision {found[0].id[:12]} are not kept any more",
            hint="the chain keeps their hash; `wlctl decisions` lists what was decided",
        )
    return [_read(one) for one in (kept if everything else kept[:1])]


def trouble_of(rt: Runtime, name: str) -> Trouble | None:
    """Say what is wrong with the copy of that name now, as the last pass found it."""
    with rt.ledger.read() as tx:
        holder = instances.holder_of(tx, name)
        return None if holder is None else troubles.find(tx, holder.id)


def _meant(tx: ReadTx, word: str, *, last: bool) -> Sequence[Stored]:
    if not last:
        return decisions.about(tx, word) or [decisions.find(tx, word)]
    newest = decisions.newest(tx)
    if newest is None:
        raise UnknownName("nothing was decided so far", hint="`wlctl place` decides")
    return [newest]


def _read(stored: Stored) -> Explained:
    assert stored.document is not None, "what was pruned was left out"
    return Explained(stored, cast("Document", json.loads(stored.document)))
