"""Whose signatures count now, and what is revoked: read from the ledger for who verifies.

The ledger is imported where it is used: signing a package needs none.
"""

from typing import TYPE_CHECKING

from wlctl import signing
from wlctl.errors import GateDenied, NoLedger
from wlctl.flows.runtime import Runtime
from wlctl.gate.judge import REVOCATIONS_UNREADABLE
from wlctl.model.package import Signer
from wlctl.model.policy import Unreadable
from wlctl.package.verify import Trust

if TYPE_CHECKING:
    from wlctl.ledger.packages import StoredPackage
    from wlctl.ledger.store import ReadTx


def trust_of(rt: Runtime) -> Trust:
    """Read whose signatures count now, and what is revoked.

    Raises:
        GateDenied: What is revoked cannot be read, so nothing is vouched for.
    """
    now_ms = rt.now_ms()
    with rt.ledger.read() as tx:
        return trust_in(tx, now_ms)


def trust_in(tx: "ReadTx", now_ms: int) -> Trust:
    """Read the same by one view of the ledger; raises as `trust_of`."""
    from wlctl.flows import gate
    from wlctl.ledger import signers

    known = signers.accepted(tx)
    revoked = gate.revoked_of(tx)
    if isinstance(revoked, Unreadable):
        raise GateDenied(
            f"nothing but teardown is permitted ({REVOCATIONS_UNREADABLE}: {revoked.why})",
            hint="`wlctl audit verify` says what was changed; put a backup of the ledger in place",
        )
    accepted = {key: one for key, one in known.items() if one.is_valid_at(now_ms)}
    lapsed = {key: one for key, one in known.items() if key not in accepted}
    return Trust(accepted, revoked, signing.read_signature, lapsed)


def accepted_if_any(rt: Runtime) -> dict[str, Signer]:
    """Tell who is accepted, for names to show; nobody is where there is no ledger."""
    from wlctl.ledger import signers

    try:
        with rt.ledger.read() as tx:
            return signers.accepted(tx)
    except NoLedger:
        return {}


def signers_of(package: "StoredPackage", trust: Trust) -> tuple[str, ...]:
    """Name those who signed an admitted package and count now, ascending."""
    text = package.manifest.encode()
    readings = [trust.check(signature.encode(), text) for signature in package.signatures]
    return tuple(
        sorted(
            trust.accepted[reading.fingerprint].name
            for reading in readings
            if reading.fault is None
            and reading.fingerprint in trust.accepted
            and reading.fingerprint not in trust.revoked
        )
    )
