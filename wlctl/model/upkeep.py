"""What a node is given to keep for its ledgers, and what is taken away there."""

from dataclasses import dataclass

from wlctl.model.ids import InstallationId, InstanceId, PackageId


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
    """How another node of the fleet is reached, kept so that a lost ledger can be rebuilt.

    Attributes:
        host_key: Type and base64, as in known_hosts.
    """

    name: str
    node_id: str
    user: str
    host: str
    port: int
    host_key: str


@dataclass(frozen=True, slots=True)
class Witness:
    """What a node keeps of its ledger.

    Attributes:
        checkpoints: The first of each day, then the last 64; in each, oldest first.
        fleet: As of the newest checkpoint that came with one.
    """

    node_id: str
    checkpoints: tuple[Checkpoint, ...]
    fleet: tuple[FleetMember, ...]


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
