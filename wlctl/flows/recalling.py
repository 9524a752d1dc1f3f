"""Ask nodes what they keep of a ledger that was lost; it changes nothing, and believes little.

Whoever answers must show the host key and the identity that are known of it. Who else is in the
fleet counts only with the installation's own signature, and a package only with its own hash.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from wlctl.errors import ForeignNode, NodeUnfit, WlctlError
from wlctl.flows import fanout
from wlctl.flows.runtime import Runtime
from wlctl.flows.witnesses import is_signed, parse_signed_fleet, verifiers
from wlctl.model.actions import NodeFacts, NodeStatus, Refused
from wlctl.model.facts import Facts
from wlctl.model.ids import NodeName, PackageId
from wlctl.model.node import Address, Tier
from wlctl.model.upkeep import ChainPoint, FleetMember, Recalled, Remembered, Witness
from wlctl.package.manifest import MAX_MANIFEST_BYTES

if TYPE_CHECKING:
    from wlctl.host.node import NodeSession

Answer = TypeVar("Answer", Witness, NodeStatus, Recalled, NodeFacts)


@dataclass(frozen=True, slots=True)
class Target:
    """A machine that may keep something.

    Attributes:
        name: Empty for one that somebody only knows the address of.
        node_id: Likewise.
    """

    name: NodeName
    node_id: str
    address: Address
    tier: Tier


@dataclass(frozen=True, slots=True)
class Told:
    """What one node told.

    Attributes:
        points: Of the checkpoints that this installation has signed, oldest first.
        fleet: Who is in the fleet, where the signature holds; with the event it was written at.
        manifests: Package to its manifest, of those that nobody had yet.
    """

    target: Target
    facts: Facts
    status: NodeStatus
    recalled: Recalled
    points: tuple[ChainPoint, ...]
    fleet: tuple[FleetMember, ...]
    fleet_at: tuple[int, int]
    manifests: Mapping[PackageId, bytes]


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking the whole fleet.

    Attributes:
        failures: Of those that could not be asked, and by which name or address they are known.
    """

    told: tuple[Told, ...]
    failures: tuple[tuple[Target, WlctlError], ...]


def ask_all(
    rt: Runtime, known: Sequence[Target], have: Collection[str], *, gone: Collection[str] = ()
) -> Asked:
    """Ask every machine that is known, and all that the newest signed fleet names besides.

    Args:
        have: Packages whose manifests are not asked for.
        gone: Identities of machines that are not asked: removed, or attested dead.
    """
    told: list[Told] = []
    failures: list[tuple[Target, WlctlError]] = []
    asked = set(gone)
    left = list(known)
    while left:
        asked |= {one.node_id for one in left}
        for position, found in fanout.each(left, partial(_ask, rt, have)):
            if isinstance(found, Told):
                told.append(found)
                asked.add(found.facts.node_id)
            else:
                failures.append((left[position], found))
        left = [one for one in _newest_fleet(told) if one.node_id not in asked]
    first = {one.facts.node_id: one for one in reversed(told)}
    return Asked(tuple(sorted(first.values(), key=lambda one: one.target.name)), tuple(failures))


def _newest_fleet(told: Sequence[Told]) -> list[Target]:
    newest = max((one for one in told if one.fleet), key=lambda one: one.fleet_at, default=None)
    members = () if newest is None else newest.fleet
    return [Target(one.name, one.node_id, one.address, one.tier) for one in members]


def named(told: Sequence[Told]) -> Mapping[str, FleetMember]:
    """Give what the newest signed fleet says of each machine, by its identity."""
    newest = max((one for one in told if one.fleet), key=lambda one: one.fleet_at, default=None)
    return {} if newest is None else {member.node_id: member for member in newest.fleet}


def _ask(rt: Runtime, have: Collection[str], target: Target) -> Told | WlctlError:
    try:
        with rt.connect(target.address) as session:
            return _told(rt, session, target, have)
    except WlctlError as failure:
        return failure


def _told(rt: Runtime, session: "NodeSession", target: Target, have: Collection[str]) -> Told:
    installation = rt.ledger.installation
    kept = _answered(target, session.witness(installation))
    status = _answered(target, session.status(installation))
    recalled = _answered(target, session.recall(installation))
    asked_at_ms = rt.now_ms()
    seen = _answered(target, session.facts(installation))
    facts = seen.as_facts(
        seq=1,
        probed_at_ms=rt.now_ms(),
        asked_at_ms=asked_at_ms,
        ttl_ms=int(rt.settings.facts_ttl_s * 1000),
    )
    if len({kept.node_id, status.node_id, recalled.node_id, facts.node_id}) != 1:
        raise ForeignNode(f"{_who(target)} answers under several identities")
    known = verifiers(rt)
    fleet = parse_signed_fleet(installation, kept.fleet, known)
    return Told(
        target=target,
        facts=facts,
        status=status,
        recalled=recalled,
        points=tuple(one.at for one in kept.checkpoints if is_signed(rt, one, known)),
        fleet=() if fleet is None else kept.fleet.members,
        fleet_at=fleet or (0, 0),
        manifests=dict(_manifests(session, recalled.instances, have)),
    )


def _answered(target: Target, answer: Answer | Refused) -> Answer:
    if isinstance(answer, Refused):
        raise NodeUnfit(
            f"{_who(target)} refuses to be asked: {answer.detail} ({answer.code.value})"
        )
    if target.node_id and answer.node_id != target.node_id:
        raise ForeignNode(
            f"{_who(target)} answers as another node ({answer.node_id[:8]}, "
            f"was {target.node_id[:8]}): nothing it lists is believed",
            hint="bring the node back; or vouch that it runs nothing any more: "
            f"`wlctl node attest-dead {target.name}`",
        )
    return answer


def _manifests(
    session: "NodeSession", instances: Sequence[Remembered], have: Collection[str]
) -> Iterator[tuple[PackageId, bytes]]:
    """Fetch the manifests that nobody has yet; what has another hash is none."""
    sizes = {one.package: one.manifest_bytes for one in instances if one.package not in have}
    for package, size_bytes in sorted(sizes.items()):
        if not 0 < size_bytes <= MAX_MANIFEST_BYTES:
            continue
        data = session.fetch(package, offset=0, size_bytes=size_bytes)
        if isinstance(data, bytes) and hashlib.sha256(data).hexdigest() == package:
            yield package, data


def _who(target: Target) -> str:
    return target.name or target.address.host or "this machine"
