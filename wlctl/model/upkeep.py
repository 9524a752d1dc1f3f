"""What a node is given to keep for its ledgers, and what is taken away there."""

from dataclasses import dataclass

from wlctl.model.ids import InstallationId, InstanceId, NodeName, PackageId
from wlctl.model.node import Address, Tier


@dataclass(frozen=True, slots=True)
class ListName:
    """Which state of an installation's revocation list: a node with another one gets it whole.

    Attributes:
        sha256: Of the list's canonical form.
    """

    epoch: int
    serial: int
    sha256: str


@dataclass(frozen=True, slots=True)
class RevocationList:
    """Everything an installation has revoked.

    Attributes:
        artifacts: sha256 of files.
    """

    installation: InstallationId
    name: ListName
    packages: tuple[PackageId, ...]
    artifacts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChainPoint:
    """One event of the chain, by its place and its hash."""

    epoch: int
    seq: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The chain's head, as a node keeps it.

    Attributes:
        note: The signed form; one text.
    """

    at: ChainPoint
    note: str


@dataclass(frozen=True, slots=True)
class FleetMember:
    """A node of the fleet as the other nodes keep it, so that a lost ledger can be rebuilt.

    Attributes:
        tier: The operator's word for it.
    """

    name: NodeName
    node_id: str
    address: Address
    tier: Tier


@dataclass(frozen=True, slots=True)
class Fleet:
    """Who is in the fleet, signed, so that no node can put another machine into it.

    Attributes:
        note: Signs the digest of the members; empty when none came with it.
    """

    members: tuple[FleetMember, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Witness:
    """What a node keeps of its ledger.

    Attributes:
        checkpoints: The first of each day, then the last 64; in each, oldest first.
        fleet: As of the newest checkpoint that came with one.
    """

    node_id: str
    checkpoints: tuple[Checkpoint, ...]
    fleet: Fleet


@dataclass(frozen=True, slots=True)
class Remembered:
    """One instance as its node keeps the request that placed it.

    Attributes:
        name: That it was placed under, and `node` the name its node had then.
        sheet: sha256 of its launch sheet, which says which variant of its package it is.
        manifest_bytes: Size of its package's manifest in the node's store; 0 where that is gone.
    """

    instance: InstanceId
    name: str
    node: str
    decision: str
    package: PackageId
    sheet: str
    env: tuple[tuple[str, str], ...] = ()
    args: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    manifest_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a node keeps that a ledger which was lost must know again.

    Attributes:
        torn: Instances whose request cannot be read.
        revoked: Kind (package or artifact) and what is never started there again.
    """

    node_id: str
    instances: tuple[Remembered, ...]
    torn: tuple[InstanceId, ...]
    revoked: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Collected:
    """What was taken away.

    Attributes:
        files: Of the store, uploads that were cut short among them.
        logs: Of so many generations.
        held_by: Instances that cannot be read: while there is one, no whole file is taken.
    """

    node_id: str
    files: int
    size_bytes: int
    logs: int
    held_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Supervised:
    """Whose supervisors were started again.

    Attributes:
        started: Those that run and had none; in the order asked.
        failed: Those of them that could not be given one.
    """

    node_id: str
    started: tuple[InstanceId, ...]
    failed: tuple[InstanceId, ...]


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """Let a generation run until a later moment.

    Attributes:
        boot_id: Of the reading that `until_ms` was counted from.
        until_ms: On the uptime of that boot, absolute: a reading of this connection plus the ttl.
    """

    installation: InstallationId
    instance: InstanceId
    generation: int
    boot_id: str
    until_ms: int
