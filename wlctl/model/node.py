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
        user: Login, or empty for what ssh would use.
        host_key: The public host key it must show, `TYPE BASE64`; empty for the local transport.
        sudo: Run actions through `sudo -n`.
    """

    transport: TransportKind
    host: str = ""
    port: int = 22
    user: str = ""
    host_key: str = ""
    sudo: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """One node as the ledger has it.

    Attributes:
        node_id: Identity found in its state directory at `node add`; another one is another node.
        failed_contacts: Consecutive, since the last contact.
        facts: Of the last probe; None before the first.
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
