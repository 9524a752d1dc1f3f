"""A node: a machine reached over SSH (or this one), and how far it is trusted."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from wlctl.model.facts import Facts
from wlctl.model.ids import NodeName


class Tier(IntEnum):
    """The operator's word on a node, never the node's own; a higher tier includes the lower."""

    DISCOVERED = 0
    """May be probed, and nothing else."""
    PAIRED = 1
    """Runs signed work."""
    TRUSTED = 2
    """May receive secrets."""

    @property
    def word(self) -> str:
        """The word used in files and output."""
        return self.name.lower()


class Liveness(StrEnum):
    """What contact with the node says of it."""

    UNKNOWN = "unknown"
    """Never contacted."""
    ALIVE = "alive"
    """The last contact showed the recorded host key and identity."""
    SUSPECT = "suspect"
    """The last contact failed."""
    DEAD = "dead"
    """Contact failed often enough, over long enough."""


class Settles(StrEnum):
    """For how little an operator settles when something is started on a node."""

    AUTO = "auto"
    """For the best that the node can do, and nothing is started where that is no cgroup."""
    LEADER_ONLY = "leader-only"
    """Where the node has no cgroup to give, for what runs in none."""


class TransportKind(StrEnum):
    """How the node is reached."""

    SSH = "ssh"
    """Over SSH."""
    LOCAL = "local"
    """This machine, by the same actions and without SSH."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a node is.

    Attributes:
        host: Name, address or ssh alias; empty for the local transport.
        port: Of its sshd, or 0 for what ssh would use.
        user: Login, or empty for what ssh would use.
        host_key: The public host key it must show, `TYPE BASE64`; empty for the local transport.
        sudo: Run actions through `sudo -n`.
        enforced: wlctl's key opens no shell there; its actions are asked of the doorkeeper.
    """

    transport: TransportKind
    host: str = ""
    port: int = 22
    user: str = ""
    host_key: str = ""
    sudo: bool = False
    enforced: bool = False


@dataclass(frozen=True, slots=True)
class Enforced:
    """What was put on a node so that it verifies for itself what it is sent.

    Attributes:
        at_ms: When that was; None when it was found to be there, and not put there by this ledger.
        sha256: Of all that was put there; empty likewise.
        projects: Those whose work it takes, ascending; none for all.
    """

    at_ms: int | None = None
    sha256: str = ""
    projects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """One node as the ledger has it.

    Attributes:
        node_id: Identity found in its state directory at `node add`; another one is another node.
        failed_contacts: Consecutive, since the last contact.
        facts: Of the last probe; None before the first.
        cordoned: Takes nothing new; what runs there goes on.
        cordoned_until_ms: When that ends by itself; None for never.
        failure: Code of what the last contact failed with; empty when it did not.
        settles: The operator's word on what is started there without a cgroup; never the node's.
        enforced: What it goes by when wlctl's key opens only the doorkeeper there; else None.
        rekeyed_at_ms: When another machine took the name; what was placed before is not on it.
        silent_ms: How long passes have asked it, without a gap between them, and got no answer.
        attested_dead_at_ms: When an operator vouched that it runs nothing any more; None again from
            its next answer on.
        attested_boot_id: The boot that was vouched for then; it should never answer again.
    """

    name: NodeName
    address: Address
    tier: Tier
    liveness: Liveness
    cordoned: bool
    node_id: str
    machine_id: str
    boot_id: str
    failed_contacts: int
    added_at_ms: int
    seen_at_ms: int | None
    facts: Facts | None
    cordoned_until_ms: int | None = None
    rekeyed_at_ms: int | None = None
    attested_dead_at_ms: int | None = None
    attested_boot_id: str | None = None
    failure: str = ""
    silent_ms: int = 0
    enforced: Enforced | None = None
    settles: Settles = Settles.AUTO

    @property
    def is_leader_only(self) -> bool:
        """What is started there runs without a cgroup, by its operator's word."""
        has_none = self.facts is not None and self.facts.containment == Settles.LEADER_ONLY.value
        return has_none and self.settles is Settles.LEADER_ONLY

    def was_another_at(self, at_ms: int) -> bool:
        """Answer whether another machine had the name then: of that one nothing is known here."""
        return self.rekeyed_at_ms is not None and at_ms <= self.rekeyed_at_ms

    def is_cordoned_at(self, now_ms: int) -> bool:
        """Answer whether it takes nothing new: until, and not at, the end that was set."""
        until_ms = self.cordoned_until_ms
        return self.cordoned and (until_ms is None or now_ms < until_ms)
