"""Make a ledger know again what its nodes keep, and believe it from then on.

For a ledger that is gone, that was put back from a backup, or of which two copies were used. The
nodes are asked, and nothing on them is changed; each may be asked again, and what is known already
stays. Only when every node has answered, or is attested dead, a new epoch begins.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from wlctl import signing
from wlctl.errors import DoorRefused, NoLedger, ShellFailed, UsageError, WlctlError
from wlctl.flows import fanout, gate, init, succession
from wlctl.flows import nodes as fleet
from wlctl.flows.recalled import Found, Recall, depart, recall
from wlctl.flows.recalling import Asked, Target, Told, ask_all, named
from wlctl.flows.runtime import Runtime
from wlctl.flows.witnesses import OF_WITNESSES, Watch, is_signed_by
from wlctl.ledger import (
    alerts,
    instances,
    leases,
    nodes,
    operations,
    packages,
    revocations,
    witnesses,
)
from wlctl.ledger.opening import create_ledger
from wlctl.ledger.store import WriteTx
from wlctl.model.actions import Refused
from wlctl.model.event import Json
from wlctl.model.facts import Facts
from wlctl.model.ids import InstallationId, NodeName, is_checked_id
from wlctl.model.instance import Instance
from wlctl.model.node import Address, Enforced, Liveness, Node, Tier
from wlctl.model.policy import Action
from wlctl.model.revocation import RevocationKind
from wlctl.model.upkeep import Checkpoint, FleetMember
from wlctl.model.witness import Doubt

REASON = "a node keeps it as revoked"

SCOPE = "rebuild"
"""Only one at a time."""

SHORT = 6


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What there is after a rebuild.

    Attributes:
        epoch: That began; None where it is not over.
        made: The ledger was gone, and this made another.
        nodes: That answered, ascending by name.
        copies: One for each that a node keeps.
        departed: So many were unloaded since, by their nodes' word.
        revoked: So many revocations the ledger had not.
        failures: Node, or address, and why it could not be asked.
        missing: Current copies of which the node that should have them knows nothing.
    """

    installation: InstallationId
    epoch: int | None
    made: bool
    nodes: tuple[NodeName, ...]
    copies: tuple[Recall, ...]
    departed: int
    revoked: int
    failures: tuple[tuple[str, WlctlError], ...]
    missing: tuple[Instance, ...]


def rebuild(
    rt: Runtime,
    seeds: Sequence[Target],
    *,
    accept_key: Callable[[str, str], None],
    accept: Callable[[], None],
    known_hosts: Path | None = None,
) -> Rebuilt:
    """Ask every node that is known, and write down what the ledger lacks.

    Args:
        seeds: Machines to ask besides; where there is no ledger, at least one that was in the
            fleet: the others are found through it.
        accept_key: Called with a seed's address and the fingerprint it shows; raises to refuse.
        accept: Called before anything is asked or written; raises to refuse.

    Raises:
        GateDenied, GateDeferred: Whoever runs this may not.
        NoLedger: There is no ledger, and no key or no node to make it again with.
        Unreachable: There is no ledger, and the seeds do not answer.
        Busy: Another rebuild is under way.
    """
    accept()
    made = not os.path.lexists(rt.home.ledger)
    if made:
        _check_makeable(rt, seeds)
    here = [_with_key(rt, seed, accept_key, known_hosts) for seed in seeds]
    if made:
        _make(rt, here)
    init.complete(rt)  # also where what made it was killed before this
    with operations.turn(rt.ledger, SCOPE, timeout_s=rt.settings.busy_timeout_s):
        return _rebuild(rt, here, made=made)


def _rebuild(rt: Runtime, seeds: Sequence[Target], *, made: bool) -> Rebuilt:
    with gate.permitted(rt, Action.LEDGER_REBUILD) as tx:
        witnesses.doubt(tx, Doubt.RESTORED, {"backup": None})
        all_known = nodes.ls(tx)
        gone = {one.node_id for one in all_known if one.attested_dead_at_ms is not None}
        known = [
            Target(one.name, one.node_id, one.address, one.tier)
            for one in all_known
            if one.node_id not in gone
        ]
        gone |= nodes.removed_ids(tx)
        have = {one.id for one in packages.ls(tx)}
    asked = ask_all(rt, [*known, *seeds], have, gone=gone)
    names = _write_nodes(rt, asked)
    revoked = _write_revocations(rt, asked.told)
    departed = sum(_depart(rt, one, names[one.facts.node_id]) for one in asked.told)
    copies = _write_copies(rt, asked.told, names)
    succession.take_places(rt)
    failures = [(one.name or one.address.host, why) for one, why in asked.failures]
    epoch = None if failures else _believe(rt, asked, copies)
    return Rebuilt(
        installation=rt.ledger.installation,
        epoch=epoch,
        made=made,
        nodes=tuple(sorted(names.values())),
        copies=tuple(copies),
        departed=departed,
        revoked=revoked,
        failures=tuple(failures),
        missing=_missing(rt, asked.told, names),
    )


def _with_key(
    rt: Runtime,
    seed: Target,
    accept_key: Callable[[str, str], None],
    known_hosts: Path | None,
) -> Target:
    where = seed.address.host
    address = fleet.with_host_key(
        rt, seed.address, lambda shown: accept_key(where, shown), known_hosts
    )
    found = Target(seed.name, seed.node_id, address, seed.tier)
    try:
        _installations(rt, found)
    except (DoorRefused, ShellFailed):  # a doorkeeper stands there, and asks to be spoken to as one
        return replace(found, address=replace(address, enforced=True))
    except WlctlError:
        return found  # it is asked again, with all others, and its failure told
    return found


def _make(rt: Runtime, seeds: Sequence[Target]) -> None:
    """Make the ledger of the installation whose checkpoints the seeds keep, doubted from birth."""
    create_ledger(
        rt.home.ledger,
        installation=_installation_of(rt, seeds),
        now_ms=rt.now_ms(),
        author=rt.author,
        doubted=True,
    ).close()


def _check_makeable(rt: Runtime, seeds: Sequence[Target]) -> None:
    home = rt.home
    if not (home.ssh_key.exists() and home.checkpoint_key.exists()):
        raise NoLedger(
            f"there is no ledger {home.ledger}, and its keys are not in {home.keys}",
            hint="`wlctl ledger restore FILE` brings both back from a backup",
        )
    if not seeds:
        raise NoLedger(
            f"there is no ledger {home.ledger}, so no node is known",
            hint="name one that was in the fleet: `wlctl ledger rebuild [USER@]HOST`",
        )


def _installation_of(rt: Runtime, seeds: Sequence[Target]) -> InstallationId:
    """Find whose checkpoints the seeds keep that our key has signed."""
    found: set[InstallationId] = set()
    failure: WlctlError | None = None
    for seed in seeds:
        try:
            kept = _installations(rt, seed)
        except WlctlError as why:
            failure = why
            continue
        for name, checkpoint in kept.items():
            verifier = signing.note_verifier(rt.home.checkpoint_key, name=f"wlctl/{name}")
            if is_signed_by(name, checkpoint, {verifier}):
                found.add(name)
    if len(found) == 1:
        return found.pop()
    if failure is not None and not found:
        raise failure
    if found:
        raise UsageError(f"these keys have signed for {', '.join(sorted(found))}: which is it?")
    raise NoLedger(
        f"none of these nodes keeps a checkpoint that {rt.home.checkpoint_key} has signed",
        hint="name a node that was in the fleet, and bring back the keys of its installation",
    )


def _installations(rt: Runtime, seed: Target) -> Mapping[InstallationId, Checkpoint]:
    with rt.connect(seed.address) as session:
        kept = session.installations()
    return {} if isinstance(kept, Refused) else kept


def _write_nodes(rt: Runtime, asked: Asked) -> dict[str, NodeName]:
    """Write down who answered, and who did not and is in the fleet; give each identity its name."""
    members = named(asked.told)
    names: dict[str, NodeName] = {}
    for told in asked.told:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            names[told.facts.node_id] = _write_node(tx, told, members)
    for target, failure in asked.failures:
        if target.node_id:
            with rt.ledger.write(rt.now_ms(), rt.author) as tx:
                _write_silent(tx, target, failure)
    return names


def _write_node(tx: WriteTx, told: Told, members: Mapping[str, FleetMember]) -> NodeName:
    node_id = told.facts.node_id
    known = next((one for one in nodes.ls(tx) if one.node_id == node_id), None)
    if known is not None:
        nodes.record_contact(tx, known.name, told.facts)
        return known.name
    member = members.get(node_id)
    said = told.target if member is None else member
    name = _free_name(tx, said.name or _name_there(told), node_id)
    nodes.add(tx, _node(name, told.target.address, said.tier, node_id, told.facts))
    return name


def _name_there(told: Told) -> str:
    """Give the name that the node was known by when something was placed there last."""
    names = [one.node for one in told.recalled.instances if is_checked_id(one.node)]
    return names[-1] if names else f"node-{told.facts.node_id[:SHORT]}"


def _free_name(tx: WriteTx, name: str, node_id: str) -> NodeName:
    taken = any(one.name == name for one in nodes.ls(tx))
    return NodeName(f"{name[:100]}-{node_id[:SHORT]}" if taken else name)


def _node(name: NodeName, address: Address, tier: Tier, node_id: str, facts: Facts | None) -> Node:
    return Node(
        name=name,
        address=address,
        tier=tier,
        liveness=Liveness.ALIVE,
        cordoned=False,
        node_id=node_id,
        machine_id="" if facts is None else facts.machine_id,
        boot_id="" if facts is None else facts.boot_id,
        failed_contacts=0,
        added_at_ms=0,
        seen_at_ms=None if facts is None else facts.probed_at_ms,
        facts=facts,
        enforced=Enforced() if address.enforced else None,
    )


def _write_silent(tx: WriteTx, target: Target, failure: WlctlError) -> None:
    """Write down who is in the fleet and did not answer, to be asked again or attested dead."""
    known = next((one for one in nodes.ls(tx) if one.node_id == target.node_id), None)
    name = target.name if known is None else known.name
    if known is None:
        name = _free_name(tx, name, target.node_id)
        nodes.add(tx, _node(name, target.address, target.tier, target.node_id, None))
    nodes.record_silence(tx, name, failure.code)


def _write_revocations(rt: Runtime, told: Sequence[Told]) -> int:
    """Revoke whatever any node keeps as revoked; say how much of it was new."""
    kinds = {kind.value: kind for kind in RevocationKind}
    kept = sorted({one for each in told for one in each.recalled.revoked if one[0] in kinds})
    if not kept:
        return 0
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        return sum(revocations.revoke(tx, kinds[kind], ref, REASON) for kind, ref in kept)


def _depart(rt: Runtime, told: Told, node: NodeName) -> int:
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        return depart(tx, told, node)


def _write_copies(rt: Runtime, told: Sequence[Told], names: Mapping[str, NodeName]) -> list[Recall]:
    """Write down every copy, those that live first: where two have one name, they have it."""
    manifests = {package: text for one in told for package, text in one.manifests.items()}
    copies = []
    for found in sorted(_found(told, names), key=_order):
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            copies.append(recall(tx, found, manifests, names.values()))
    return copies


def _found(told: Sequence[Told], names: Mapping[str, NodeName]) -> Iterator[Found]:
    for one in told:
        asked = {each.instance: each for each in one.recalled.instances}
        for status in one.status.instances:
            name = names[one.facts.node_id]
            yield Found(name, one, status, asked.get(status.instance))


def _order(found: Found) -> tuple[bool, str, str]:
    return not found.is_alive, found.node, found.status.instance


def _believe(rt: Runtime, asked: Asked, copies: Sequence[Recall]) -> int:
    """Begin a new epoch, later than any that a node was told of, and leave it everywhere."""
    seen = [point.epoch for told in asked.told for point in told.points]
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        epoch = 1 + max([witnesses.epoch_of(tx), *seen])
        new = sum(copy.is_new for copy in copies)
        said: dict[str, Json] = {"nodes": len(asked.told), "copies": len(copies), "new": new}
        witnesses.restored(tx, epoch, said)
        leases.forget(tx)  # each is counted anew, from when that is asked
        alerts.settle(tx, (), unjudged=lambda one: one.kind not in OF_WITNESSES)
        kept = {told.facts.node_id: told.points[-1] for told in asked.told if told.points}
        for node in nodes.ls(tx):
            if node.node_id in kept:
                witnesses.left(tx, node, kept[node.node_id], "")
    rt.ledger.epoch = epoch
    with rt.ledger.read() as tx:
        known = [one for one in nodes.ls(tx) if one.liveness is Liveness.ALIVE]
    for _ in fanout.each(known, partial(_leave, rt)):
        pass
    return epoch


def _leave(rt: Runtime, node: Node) -> None:
    """Tell a node of the new epoch; whom it misses, the next contact tells."""
    with suppress(WlctlError), rt.connect(node.address) as session:
        Watch(rt).leave(session, node)


def _missing(
    rt: Runtime, told: Sequence[Told], names: Mapping[str, NodeName]
) -> tuple[Instance, ...]:
    there = {one.instance for each in told for one in each.status.instances}
    with rt.ledger.read() as tx:
        return tuple(
            one
            for one in instances.current(tx)
            if one.node in names.values() and one.id not in there
        )
