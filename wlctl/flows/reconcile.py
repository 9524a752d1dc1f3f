"""One pass over the fleet: finish what was cut, carry out what is wanted, say what is wrong.

It looks at every node once, then brings each copy nearer to what was asked for by the same flows
that verbs use, under the same turns, with the same proofs. Where all is as it should be it changes
nothing, and it never waits long for somebody who is at work on a copy.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from wlctl.errors import Indeterminate, Unreachable, WlctlError
from wlctl.flows import (
    alerting,
    cut_off,
    fanout,
    leasing,
    liveness,
    looking,
    losing,
    rivals,
    strangers,
    succession,
    upkeep,
)
from wlctl.flows import known as everything
from wlctl.flows.bringing import bring
from wlctl.flows.done import Done
from wlctl.flows.known import Known
from wlctl.flows.liveness import Contacts
from wlctl.flows.looking import Look
from wlctl.flows.runtime import Runtime
from wlctl.flows.witnesses import Watch, require_believed
from wlctl.ledger import alerts, generations, instances, nodes, passes, troubles
from wlctl.lifecycle import pace
from wlctl.lifecycle.table import Act
from wlctl.model.actions import Refused
from wlctl.model.alert import Alert, AlertKind, KeptAlert
from wlctl.model.facts import Facts
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.instance import CLOSED, Instance
from wlctl.model.node import Node
from wlctl.model.policy import Action

if TYPE_CHECKING:
    from wlctl.host.node import NodeSession

__all__ = ["Done", "Pass", "reconcile"]

SCOPE = "reconcile"
"""Only one pass at a time goes over a ledger."""

STUCK_GAPS = 15
"""A pass that began so many usual gaps ago and is still at it is stuck."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass found and did.

    Attributes:
        is_other: Another process is at it; nothing was done here.
        asked: How many nodes were looked at.
        silent: Node to why it could not be looked at.
        done: Only what was not as it should be.
        isolated: This machine is cut off, so no node was judged by its silence.
        raised: Alerts that are new with this pass.
        closed: Alerts whose cause is gone.
        open: Alerts that are open after it.
    """

    is_other: bool = False
    asked: int = 0
    silent: Mapping[NodeName, WlctlError] = field(default_factory=lambda: MappingProxyType({}))
    done: tuple[Done, ...] = ()
    isolated: bool = False
    raised: tuple[KeptAlert, ...] = ()
    closed: tuple[KeptAlert, ...] = ()
    open: int = 0

    @property
    def is_quiet(self) -> bool:
        """Nothing changed, and nothing was done."""
        return not (self.done or self.raised or self.closed)


def reconcile(rt: Runtime, only: Sequence[str] = (), *, dry_run: bool = False) -> Pass:
    """Go over the fleet once.

    Args:
        only: Names of nodes; none for all. Of some alone, none is declared dead, and nothing is
            placed anew.
        dry_run: Look, and say what would be done.

    Raises:
        UnknownName: There is no node of that name.
        LedgerRolledBack, LedgerForked: The ledger is doubted, or is found to be: nothing is done by
            what it says.
    """
    with rt.ledger.read() as tx:
        if not dry_run:
            require_believed(tx, Action.START)
        wanted = [nodes.get(tx, name) for name in only] or nodes.ls(tx)
    with _alone(rt) as mine:
        return _go_over(rt, wanted, not only, dry_run=dry_run) if mine else _other(rt)


@contextmanager
def _alone(rt: Runtime) -> Iterator[bool]:
    """Take the pass's own lock; it writes nothing, so that a pass with nothing to do does not."""
    mine = rt.ledger.locks.try_lock(SCOPE)
    try:
        yield mine
    finally:
        if mine:
            rt.ledger.locks.unlock(SCOPE)


def _other(rt: Runtime) -> Pass:
    """Leave it to the pass under way, unless that one seems to hang."""
    setting_ms = round(1000 * rt.settings.reconcile_interval_s)
    with rt.ledger.read() as tx:
        known = passes.newest(tx)
    since_ms = rt.boot_time().since(known[-1]) if known else None
    if since_ms is None or since_ms <= STUCK_GAPS * pace.usual_gap_ms(known, setting_ms):
        return Pass(is_other=True)
    reason = "a pass that began long ago still holds the lock"
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        raised = alerts.add(tx, [Alert(AlertKind.PASS_STUCK, "", reason)])
    alerting.deliver(rt)
    return Pass(is_other=True, raised=raised)


def _go_over(rt: Runtime, wanted: Sequence[Node], whole: bool, *, dry_run: bool) -> Pass:
    began_at = rt.boot_time()
    with rt.ledger.read() as tx:
        known = everything.read(tx)
    contacts = _look_at_all(rt, wanted, known, dry_run=dry_run)
    if dry_run:
        standings = liveness.as_known(wanted, contacts)
    else:
        standings = liveness.record(rt, wanted, contacts, began_at, whole=whole)
    done = [] if dry_run else [*map(_took, succession.take_places(rt)), *cut_off.let_go(rt)]
    for node in wanted:
        if node.name in contacts.looks:
            done += _on_node(rt, node, contacts.looks[node.name], known, dry_run=dry_run)
    if whole:
        done = _after_loss(rt, standings.dead, done, dry_run=dry_run)
    timely = upkeep.see_to(rt, frozenset(contacts.looks), dry_run=dry_run)
    done += timely.done
    silent = MappingProxyType(dict(contacts.failures))
    found = Pass(asked=len(wanted), silent=silent, done=tuple(done), isolated=standings.isolated)
    if dry_run:
        return found
    told = (*standings.alerts, *timely.alerts, *strangers.alerts_of(rt, known, contacts.looks))
    return _with_alerts(rt, found, frozenset(node.name for node in wanted), told)


def _look_at_all(rt: Runtime, wanted: Sequence[Node], known: Known, *, dry_run: bool) -> Contacts:
    looks: dict[NodeName, Look] = {}
    facts: dict[NodeName, Facts] = {}
    failures: dict[NodeName, WlctlError] = {}
    _ = rt.ledger, rt.home  # opened here once, not by many threads at once
    look_at = partial(_look_at, rt, Watch(rt), known, dry_run=dry_run)
    for position, found in fanout.each(wanted, look_at):
        name = wanted[position].name
        if isinstance(found, WlctlError):
            failures[name] = found
            continue
        looks[name], fresh = found
        if fresh is not None:
            facts[name] = fresh
    return Contacts(looks, facts, failures)


def _look_at(
    rt: Runtime, watch: Watch, known: Known, node: Node, *, dry_run: bool
) -> tuple[Look, Facts | None] | WlctlError:
    """Look at a node, and see to it, leases first.

    One that has told how it is has answered, whatever fails after that: an action that hangs there,
    as where a disk does, makes nothing that runs there lost.
    """
    found: Look | None = None
    try:
        with rt.connect(node.address) as session:
            look = looking.look(rt, session, node)
            read_at = rt.boot_time()
            if dry_run:
                return look, None
            watch.check(session, node, look.status.checkpoint)
            found = look
            leasing.renew(rt, session, look, known.leases_on(node.name), read_at)
            return look, _see_to(rt, session, watch, node, look)
    except (Unreachable, Indeterminate) as failure:
        return failure if found is None else (found, None)
    except liveness.OF_NODE as failure:  # what fails on this side ends the pass, and is no node's
        return failure


def _see_to(
    rt: Runtime, session: "NodeSession", watch: Watch, node: Node, look: Look
) -> Facts | None:
    """Leave a checkpoint, give supervisors to what lost them, and ask for facts that ran out."""
    watch.keep(session, node, look.status.checkpoint)
    bare = [one.instance for one in look.status.instances if one.unsupervised]
    if bare:
        session.supervise(rt.ledger.installation, bare)
    now_ms = rt.now_ms()
    if node.facts is not None and now_ms < node.facts.expires_at_ms:
        return None
    told = session.facts(rt.ledger.installation)
    if isinstance(told, Refused):
        return None
    return told.as_facts(
        seq=0,
        probed_at_ms=rt.now_ms(),
        asked_at_ms=now_ms,
        ttl_ms=round(1000 * rt.settings.facts_ttl_s),
    )


def _on_node(rt: Runtime, node: Node, look: Look, known: Known, *, dry_run: bool) -> Iterator[Done]:
    for instance in _copies_of(rt, node, look, known):
        if everything.is_well(known, instance, look):
            continue
        found = bring(rt, node, instance, look, dry_run=dry_run)
        if found is not None:
            yield found


def _copies_of(rt: Runtime, node: Node, look: Look, known: Known) -> list[Instance]:
    """List what the ledger has there, and what it closed and the node has after all: that first."""
    here = known.here.get(node.name, ())
    strange = {one.instance for one in look.status.instances} - {one.id for one in here}
    if not strange:
        return list(here)
    with rt.ledger.read() as tx:
        closed = [one for one in instances.of_ids(tx, strange) if one.state in CLOSED]
    return [*(one for one in closed if one.node == node.name), *here]


def _after_loss(
    rt: Runtime, dead: frozenset[NodeName], done: list[Done], *, dry_run: bool
) -> list[Done]:
    """Do what is to be done about what was lost, with its node or on one that has forgotten it."""
    lost = losing.lose(rt, dead, dry_run=dry_run)
    again = [one for one in done if one.act is Act.REPLACE or _cannot_start(one)]
    homeless = [id_ for one in again if (id_ := _homeless(rt, one)) is not None]
    moved = losing.place_anew(rt, [*losing.lost_on(rt, dead), *homeless], dry_run=dry_run)
    kept = [one for one in done if one.act is not Act.REPLACE]
    return [*kept, *lost, *moved]


def _took(new: Instance) -> Done:
    return Done(new.name, new.node, Act.REPLACE, new.state.value)


def _cannot_start(done: Done) -> bool:
    return done.kind is AlertKind.REBOOT_NOT_STARTED


def _homeless(rt: Runtime, done: Done) -> InstanceId | None:
    """Find the lost copy that its own node will not have again, if nothing of it is left there."""
    with rt.ledger.read() as tx:
        one = instances.holder_of(tx, done.name)
        if one is None:
            return None
        is_gone = all(run.is_gone for run in generations.of_instance(tx, one.id))
        if not (is_gone or rivals.is_replaced_and_attested(tx, one)):
            return None
    return one.id


def _with_alerts(
    rt: Runtime, found: Pass, names: frozenset[NodeName], told: Sequence[Alert]
) -> Pass:
    """Raise what is new, close what is over, and tell of it.

    Args:
        names: Of the nodes that were asked: of others nothing is known, and all stays as it is.
        told: Of nodes and of the whole fleet; the troubles of copies are kept by whom they concern.
    """
    with rt.ledger.read() as tx:
        gone = troubles.of_gone(tx)
    if gone:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            for id_ in troubles.of_gone(tx):
                troubles.clear(tx, id_)
    with rt.ledger.read() as tx:
        fleet = nodes.names(tx)
        kept = troubles.ls(tx)
        of_copies = [
            Alert(kept[one.id].kind, one.name, kept[one.id].why)
            for one in instances.of_ids(tx, kept)
        ]

    def is_unjudged(alert: Alert) -> bool:
        if alert.kind is AlertKind.ORPHAN and alert.subject in fleet:
            return alert.subject not in names or alert.subject in found.silent
        return not names >= fleet and alert.kind in liveness.OF_NODES and alert.subject not in names

    settled = alerting.settle(rt, [*of_copies, *told], is_unjudged)
    with rt.ledger.read() as tx:
        still_open = len(alerts.ls(tx))
    return replace(found, raised=settled.raised, closed=settled.closed, open=still_open)
