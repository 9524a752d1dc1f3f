"""Which key signs: one in a file, or one that an ssh-agent keeps."""

from dataclasses import dataclass
from pathlib import Path

from wlctl import signing
from wlctl.signing import Passphrase, SigningKey


@dataclass(frozen=True, slots=True)
class KeyChoice:
    """What somebody says of the key to sign with.

    Attributes:
        file: A private key; or a public one, whose private half an agent keeps.
        agent: Without a file: the fingerprint of an agent's key, or its beginning.
        passphrase: Asks for that of a file; None where nobody can be asked.
    """

    file: Path | None = None
    agent: str = ""
    passphrase: Passphrase | None = None


def signing_key(choice: KeyChoice) -> SigningKey:
    """Find the key.

    Raises:
        InvalidFile, UnsafeKey, UnusableKey, FilesUnreadable: As `signing.load_private_key`.
        AgentFailed, AmbiguousName: As `signing.agent_key`.
    """
    if choice.file is None:
        return signing.agent_key(choice.agent)
    if signing.holds_public_key(choice.file):
        return signing.agent_key(signing.fingerprint(signing.load_public_key(choice.file)))
    return signing.load_private_key(choice.file, choice.passphrase)
