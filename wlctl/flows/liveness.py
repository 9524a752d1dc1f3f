"""Which nodes are alive, suspect or dead after a pass, and which answer and cannot be used."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from wlctl.errors import (
    AuthTimeout,
    BannerTimeout,
    ConnectFailed,
    ConnectionLost,
    ConnectTimeout,
    FalseWitness,
    ForeignNode,
    Indeterminate,
    NodeUnfit,
    SilenceTimeout,
    TwoMachines,
    Unreachable,
    WlctlError,
)
from wlctl.flows.looking import Look
from wlctl.flows.runtime import Runtime
from wlctl.ledger import nodes, passes
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.lifecycle import liveness as judging
from wlctl.lifecycle import pace
from wlctl.lifecycle.liveness import Judged, Standing
from wlctl.lifecycle.oddity import SKEW_MAX_MS
from wlctl.model.alert import Alert, AlertKind
from wlctl.model.boottime import BootTime
from wlctl.model.facts import Facts
from wlctl.model.ids import NodeName
from wlctl.model.node import Liveness, Node

SILENT = (
    AuthTimeout,
    BannerTimeout,
    ConnectFailed,
    ConnectTimeout,
    ConnectionLost,
    SilenceTimeout,
)
"""What may mean that a machine is gone. One that refuses us, or answers as another, is there: what
runs on it may run on, so nothing of it is ever taken for lost."""

OF_NODE = (Unreachable, Indeterminate, ForeignNode, TwoMachines, NodeUnfit, FalseWitness)
"""What can be wrong with a node; whatever else fails while one is looked at is wrong here."""

OF_NODES = frozenset(
    {
        AlertKind.CLOCK_SKEW,
        AlertKind.CONTROLLER_ISOLATED,
        AlertKind.NODE_DEAD,
        AlertKind.NODE_REFUSES,
        AlertKind.RETURNED,
        AlertKind.TWO_MACHINES,
    }
)
"""What is raised here, and closed by the next pass that asks the node, or all of them."""


@dataclass(frozen=True, slots=True)
class Contacts:
    """What one pass found of the nodes that it asked.

    Attributes:
        looks: Of those that answered.
        facts: Of those whose facts had run out, and that gave new ones.
        failures: Why the others could not be looked at.
    """

    looks: Mapping[NodeName, Look] = field(default_factory=dict)
    facts: Mapping[NodeName, Facts] = field(default_factory=dict)
    failures: Mapping[NodeName, WlctlError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standings:
    """How the fleet stands after a pass.

    Attributes:
        dead: What ran there counts as lost.
        isolated: It is this machine that is cut off: nobody is judged by silence.
    """

    dead: frozenset[NodeName]
    isolated: bool
    alerts: tuple[Alert, ...]


def record(
    rt: Runtime, asked: Sequence[Node], contacts: Contacts, began_at: BootTime, *, whole: bool
) -> Standings:
    """Keep what a pass found of nodes; of one that is as it was, that is no event.

    What others have learned of a node since the pass began stands: that it was taken out, is
    another machine by now, or has answered.

    Args:
        asked: As they were before the pass.
        whole: Every node was asked: only then is one declared dead.
    """
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        before = {node.name: node.seen_at_ms for node in asked}
        asked = nodes.by_now(tx, asked)
        answered = _answered(asked, contacts, before)
        judged = judging.judge(
            {one.name: _standing(one, tx.now_ms) for one in asked if one.name in answered},
            answered,
            since_last_pass_ms=_watched_ms(rt, tx, began_at) if whole else None,
            dead_after_ms=round(1000 * rt.settings.dead_after_s),
        )
        for node in asked:
            why = contacts.failures.get(node.name)
            if why is not None:
                _record_failure(tx, node, why, judged)
        _record_answers(tx, asked, contacts)
        if whole:
            passes.began(tx, began_at)
        dead = nodes.names(tx, Liveness.DEAD) & {node.name for node in asked}
    return Standings(dead, judged.isolated, tuple(_alerts(asked, contacts, dead, judged.isolated)))


def _answered(
    asked: Sequence[Node], contacts: Contacts, before: Mapping[NodeName, int | None]
) -> dict[NodeName, bool]:
    """Say who answered, and who was silent; one that refuses us is neither.

    Args:
        before: When each was heard of last as the pass began: who was heard of since has answered,
            somebody else.
    """
    found = {}
    for node in asked:
        if node.name in contacts.looks:
            found[node.name] = True
        elif isinstance(contacts.failures[node.name], SILENT):
            found[node.name] = node.seen_at_ms != before[node.name]
    return found


def _watched_ms(rt: Runtime, tx: ReadTx, began_at: BootTime) -> int:
    setting_ms = round(1000 * rt.settings.reconcile_interval_s)
    return pace.watched_ms(passes.newest(tx), began_at, setting_ms)


def _record_failure(tx: WriteTx, node: Node, why: WlctlError, judged: Judged) -> None:
    """Keep that a node could not be looked at, and what its silence makes of it."""
    if not isinstance(why, SILENT):
        nodes.record_silence(tx, node.name, why.code)
        return
    now = judged.nodes[node.name]
    if not judged.isolated and now.failures:
        nodes.record_standing(
            tx,
            node.name,
            now.liveness,
            failures=now.failures,
            silent_ms=now.silent_ms,
            why=why.code,
        )


def _record_answers(tx: WriteTx, asked: Sequence[Node], contacts: Contacts) -> None:
    """Keep when each answered, and under which boot: the pass may have waited for others since."""
    seen = {}
    for node in asked:
        facts, look = contacts.facts.get(node.name), contacts.looks.get(node.name)
        if facts is not None:
            nodes.record_contact(tx, node.name, facts)
        elif look is not None:
            seen[node.name] = look.status.boot_id, look.at_ms
    nodes.record_looks(tx, seen)


def as_known(asked: Sequence[Node], contacts: Contacts) -> Standings:
    """Say how the fleet stands by what is known: a look that keeps nothing declares nobody dead."""
    dead = (one.name for one in asked if one.liveness is Liveness.DEAD)
    silent = frozenset(name for name in dead if name in contacts.failures)
    return Standings(silent, isolated=False, alerts=())


def _standing(node: Node, now_ms: int) -> Standing:
    until_ms = node.cordoned_until_ms
    is_window = node.cordoned and until_ms is not None and now_ms < until_ms
    return Standing(node.liveness, node.failed_contacts, node.silent_ms, is_window)


def _alerts(
    asked: Sequence[Node], contacts: Contacts, dead: frozenset[NodeName], isolated: bool
) -> Iterator[Alert]:
    if isolated:
        reason = "so many nodes fell silent at once that nothing is said of them"
        yield Alert(AlertKind.CONTROLLER_ISOLATED, "", reason)
    for node in asked:
        failure = contacts.failures.get(node.name)
        if failure is not None:
            yield from _of_failure(node, failure, is_dead=node.name in dead)
            continue
        if contacts.looks[node.name].status.boot_id == node.attested_boot_id:
            reason = "it was attested dead, and answers with the boot that was under way then"
            yield Alert(AlertKind.RETURNED, node.name, reason)
        facts = contacts.facts.get(node.name, node.facts)
        if facts is not None and abs(facts.clock_skew_ms) > SKEW_MAX_MS:
            reason = "its clock is far from this machine's"
            yield Alert(AlertKind.CLOCK_SKEW, node.name, reason)


def _of_failure(node: Node, failure: WlctlError, *, is_dead: bool) -> Iterator[Alert]:
    if isinstance(failure, ForeignNode | TwoMachines):
        yield Alert(AlertKind.TWO_MACHINES, node.name, failure.message)
    elif not isinstance(failure, SILENT):
        yield Alert(AlertKind.NODE_REFUSES, node.name, failure.message)
    elif is_dead and node.attested_dead_at_ms is None:
        reason = "it has not answered for so long that what ran there counts as lost"
        yield Alert(AlertKind.NODE_DEAD, node.name, reason)
