"""Signers: whose signatures admit a package."""

import re
from pathlib import Path

from wlctl import signing
from wlctl.errors import UsageError
from wlctl.flows import gate
from wlctl.flows.runtime import Runtime
from wlctl.ledger import signers
from wlctl.model.package import Signer, fingerprint
from wlctl.model.policy import Action

# Nothing that a list of allowed signers would read as a pattern, a list or an option.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")


def add(rt: Runtime, name: str, key_file: Path) -> tuple[Signer, bool]:
    """Accept the signatures of the public key in a file.

    Returns:
        The signer, and whether this is new.

    Raises:
        UsageError: The name is none.
        InvalidFile, UnsafeKey, UnusableKey, FilesUnreadable: As `signing.load_public_key`.
        GateDenied: Whoever runs this may not change whose signatures count.
        SignerConflict: The name has another key, or the key another name.
    """
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name} cannot be the name of a signer",
            hint="use letters, digits and . _ @ + - after the first, up to 128",
        )
    public_key = signing.load_public_key(key_file)
    with gate.permitted(rt, Action.SIGNER_ADD, name) as tx:
        is_new = signers.add(tx, name, public_key)
        return signers.accepted(tx)[fingerprint(public_key)], is_new


def ls(rt: Runtime) -> list[Signer]:
    """List everyone whose signatures are accepted, ascending by name."""
    with rt.ledger.read() as tx:
        return signers.ls(tx)
