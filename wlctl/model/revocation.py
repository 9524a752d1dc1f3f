"""What was revoked: a package, a key or a file that is not to be started any more."""

from dataclasses import dataclass
from enum import StrEnum

from wlctl.model.upkeep import ListName


class RevocationKind(StrEnum):
    """What sort of thing was revoked."""

    PACKAGE = "package"
    """One package, by its id."""
    KEY = "key"
    """Whatever only this key vouches for, by its fingerprint."""
    ARTIFACT = "artifact"
    """Every package with this very file in it, by its sha256."""


@dataclass(frozen=True, slots=True)
class Revocation:
    """One entry of the list.

    Attributes:
        seq: Of the event that revoked it.
        ref: sha256 of a package's statement or of a file; `SHA256:…` of a key.
    """

    seq: int
    kind: RevocationKind
    ref: str
    reason: str
    revoked_at_ms: int


@dataclass(frozen=True, slots=True)
class Revocations:
    """Everything that is revoked.

    Attributes:
        name: Which state of the list this is.
        entries: In the order of their events.
    """

    name: ListName
    entries: tuple[Revocation, ...] = ()

    @property
    def refs(self) -> frozenset[str]:
        """Whatever an entry names."""
        return frozenset(entry.ref for entry in self.entries)
