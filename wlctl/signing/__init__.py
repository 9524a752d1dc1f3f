"""The only place with cryptography: SSH keys, SSHSIG signatures, and signed notes.

The library itself is imported where it is used, so that a command that signs nothing never pays.
"""

from wlctl.model.package import fingerprint
from wlctl.signing.agent import AgentKey, agent_key, agent_keys
from wlctl.signing.allowed import (
    Allowed,
    allowed_signers,
    load_allowed_signers,
    parse_allowed_signers,
)
from wlctl.signing.keys import (
    Passphrase,
    PrivateKey,
    generate_key,
    holds_public_key,
    load_private_key,
    load_public_key,
    public_key,
)
from wlctl.signing.note import note_verifier, sign_note, verify_note
from wlctl.signing.public import parse_public_key
from wlctl.signing.sshsig import PACKAGE_NAMESPACE, SigningKey, read_signature, sign

__all__ = [
    "PACKAGE_NAMESPACE",
    "AgentKey",
    "Allowed",
    "Passphrase",
    "PrivateKey",
    "SigningKey",
    "agent_key",
    "agent_keys",
    "allowed_signers",
    "fingerprint",
    "generate_key",
    "holds_public_key",
    "load_allowed_signers",
    "load_private_key",
    "load_public_key",
    "note_verifier",
    "parse_allowed_signers",
    "parse_public_key",
    "public_key",
    "read_signature",
    "sign",
    "sign_note",
    "verify_note",
]
