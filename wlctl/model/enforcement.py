"""What an administrator puts on a node so that it verifies for itself what it is sent."""

from dataclasses import dataclass
from hashlib import sha256

from wlctl.model.ids import InstallationId


@dataclass(frozen=True, slots=True)
class Enforcement:
    """What is put there: the doorkeeper, and what it and the actions go by.

    Attributes:
        doorkeeper: The program that wlctl's key starts, and the only one.
        actions: A line each: sha256 of an action's text, and its name.
        signers: Whose signatures count, as `ssh-keygen` reads them.
        revoked: Public keys, a line each, whose signatures never count.
        projects: Those whose work is taken, ascending; none for all.
    """

    doorkeeper: str
    actions: str
    signers: str
    revoked: str
    projects: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Tell it apart from what another version, or other signers, would put there."""
        parts = (self.doorkeeper, self.actions, self.signers, self.revoked, *self.projects)
        return sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Keyholder:
    """Whose key it is that is to open nothing else.

    Attributes:
        login: Whose authorized_keys let it in.
        sudo: The doorkeeper is started through `sudo -n`.
        public_key: `TYPE BASE64`.
    """

    installation: InstallationId
    login: str
    sudo: bool
    public_key: str


@dataclass(frozen=True, slots=True)
class KeyLines:
    """What became of the key's line, by the node's own word.

    Attributes:
        line: As it should be.
        shut: Files in which the key opens only the doorkeeper.
        open: Files in which it opens more.
        files: What was put there, or replaced.
    """

    line: str
    shut: tuple[str, ...]
    open: tuple[str, ...]
    files: tuple[str, ...]
