"""Which copies a command is about, and doing one thing to all of them, each failing alone."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from wlctl.errors import Interrupted, UnknownName, UsageError, WlctlError
from wlctl.flows import fanout
from wlctl.flows.runtime import Runtime
from wlctl.ledger import instances
from wlctl.ledger.store import ReadTx
from wlctl.model.ids import NodeName
from wlctl.model.instance import Instance

T = TypeVar("T")

LANES = 4
"""So many verbs at once on one node: sshd turns away more than ten that are logging in."""


@dataclass(frozen=True, slots=True)
class Targets:
    """What was asked for: copies by name, or those that have all of some properties.

    Attributes:
        words: Names, ids, or beginnings of ids.
        labels: Co-residency labels; a copy must carry all of them.
        everything: All current copies.
    """

    words: tuple[str, ...] = ()
    workload: str = ""
    node: str = ""
    labels: tuple[str, ...] = ()
    everything: bool = False

    @property
    def is_filter(self) -> bool:
        """They are chosen by what they are, so it may be none, one or many."""
        return bool(self.everything or self.workload or self.node or self.labels)


@dataclass(frozen=True, slots=True)
class Failed:
    """A verb that could not be carried out on one copy."""

    instance: Instance
    failure: WlctlError


@dataclass(frozen=True, slots=True)
class Done(Generic[T]):
    """What a verb did to one copy."""

    instance: Instance
    result: T


def find(rt: Runtime, wanted: Targets, *, gone: bool = False) -> tuple[Instance, ...]:
    """Return the copies that are meant: in the order of the words, or ascending by name.

    Args:
        gone: A word may also be the last name of a copy that was unloaded.

    Raises:
        AmbiguousName: A word fits more than one; they are listed.
        UnknownName: A word means none, or the fleet has no such node.
        UsageError: Nothing was asked for, or copies both by name and by what they are.
    """
    if wanted.words and wanted.is_filter:
        raise UsageError(
            "copies are chosen by name or by what they are, not both",
            hint="leave out the names, or --workload, --node, -l and --all",
        )
    if not wanted.words and not wanted.is_filter:
        raise UsageError(
            "no copy is named", hint="give names, or --workload, --node, -l LABEL, or --all"
        )
    with rt.ledger.read() as tx:
        if wanted.words:
            found = {one.id: one for one in (_of_word(tx, w, gone=gone) for w in wanted.words)}
            return tuple(found.values())
        if wanted.node:
            from wlctl.ledger import nodes  # `ps` of everything has no use for them

            nodes.get(tx, wanted.node)
        return tuple(_filtered(tx, wanted))


def _of_word(tx: ReadTx, word: str, *, gone: bool) -> Instance:
    try:
        return instances.find(tx, word)
    except UnknownName:
        last = instances.last_of(tx, word) if gone else None
        if last is None:
            raise
        return last


def _filtered(tx: ReadTx, wanted: Targets) -> Iterable[Instance]:
    carried = instances.labels(tx) if wanted.labels else {}
    for one in instances.current(tx):
        if wanted.workload and one.workload != wanted.workload:
            continue
        if wanted.node and one.node != wanted.node:
            continue
        if set(wanted.labels) <= carried.get(one.id, frozenset()) or not wanted.labels:
            yield one


def each(
    rt: Runtime,
    chosen: Sequence[Instance],
    act: Callable[[Instance], T],
    *,
    go_on: Callable[[], bool] = lambda: True,
) -> list[Done[T] | Failed]:
    """Do `act` to every copy of `chosen`, on many nodes at once; the answers are in their order.

    One copy alone is dealt with in this very thread, where Ctrl-C reaches it.

    Args:
        go_on: Answers False once no further copy may be begun; those under way are finished, and
            the others fail as interrupted.
    """
    _ = rt.ledger, rt.home  # opened here once, not by many threads at once
    if len(chosen) == 1:
        return [_one(chosen[0], act)]
    found: dict[int, Done[T] | Failed] = {}
    lanes = _lanes(chosen)

    def run(lane: Sequence[int]) -> None:
        for position in lane:
            instance = chosen[position]
            found[position] = _one(instance, act) if go_on() else _called_off(instance)

    for _ in fanout.each(lanes, run):
        pass  # each lane puts its answers where they belong
    return [found[position] for position in range(len(chosen))]


def _one(instance: Instance, act: Callable[[Instance], T]) -> Done[T] | Failed:
    try:
        return Done(instance, act(instance))
    except WlctlError as failure:
        return Failed(instance, failure)


def _called_off(instance: Instance) -> Failed:
    return Failed(instance, Interrupted(f"{instance.name} was not begun with"))


def _lanes(chosen: Sequence[Instance]) -> list[list[int]]:
    """Put the positions of a node's copies into a few rows, each worked through in its order."""
    by_node: dict[NodeName, list[int]] = {}
    for position, instance in enumerate(chosen):
        by_node.setdefault(instance.node, []).append(position)
    return [
        positions[lane::LANES]
        for positions in by_node.values()
        for lane in range(LANES)
        if positions[lane::LANES]
    ]
