"""Revoke packages, keys and files, and take that back: in this ledger, and for what it starts.

Nothing that runs is stopped here, and no node is told.
"""

import re
from dataclasses import dataclass, replace

from wlctl.errors import GateDenied, UnknownName, UsageError
from wlctl.flows import gate, stored, trust
from wlctl.flows.runtime import Runtime
from wlctl.gate.judge import REVOCATIONS_UNREADABLE
from wlctl.ledger import instances, packages, revocations, signers
from wlctl.ledger.packages import StoredPackage
from wlctl.ledger.store import ReadTx
from wlctl.model.ids import is_sha256
from wlctl.model.instance import Instance
from wlctl.model.policy import Action, Unreadable
from wlctl.model.revocation import Revocation, RevocationKind
from wlctl.package import manifest

_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


@dataclass(frozen=True, slots=True)
class Revoking:
    """What was revoked, or would be.

    Attributes:
        is_new: It was not revoked before.
        hits: Current copies that will not be started again, ascending by name.
    """

    kind: RevocationKind
    ref: str
    is_new: bool
    hits: tuple[Instance, ...]


def revoke(
    rt: Runtime, kind: RevocationKind, word: str, reason: str, *, dry_run: bool = False
) -> Revoking:
    """Start nothing any more that a package, key or file is in; what is revoked stays so.

    Args:
        word: Of a package its id, the beginning of one that is stored, or NAME@VERSION; of a key
            its fingerprint or the name of its signer; of a file its sha256.
        reason: For whoever meets the revocation.
        dry_run: Only say what it would hit.

    Raises:
        UsageError, UnknownName, AmbiguousName: The word names nothing that could be revoked.
        GateDenied: Whoever runs this may not; or what is revoked cannot be read.
    """
    if not reason.strip():
        raise UsageError("a revocation has a reason", hint="give --reason TEXT")
    ref = _ref(rt, kind, word)
    if dry_run:
        now_ms = rt.now_ms()
        with rt.ledger.read() as tx:
            known = any((one.kind, one.ref) == (kind, ref) for one in _listed(tx))
            return Revoking(kind, ref, not known, _hits(tx, kind, ref, now_ms))
    with gate.permitted(rt, Action.REVOKE, f"{kind.value} {ref}") as tx:
        hits = _hits(tx, kind, ref, tx.now_ms)
        return Revoking(kind, ref, revocations.revoke(tx, kind, ref, reason), hits)


def unrevoke(rt: Runtime, kind: RevocationKind, word: str, reason: str) -> str:
    """Take a revocation back; return what it named.

    Raises:
        UsageError, UnknownName, AmbiguousName: The word names nothing that is revoked.
        GateDenied: Whoever runs this may not; or what is revoked cannot be read.
    """
    if not reason.strip():
        raise UsageError("what is taken back has a reason, too", hint="give --reason TEXT")
    ref = _ref(rt, kind, word)
    with gate.permitted(rt, Action.UNREVOKE, f"{kind.value} {ref}") as tx:
        revocations.unrevoke(tx, kind, ref, reason)
    return ref


def ls(rt: Runtime) -> tuple[Revocation, ...]:
    """List what is revoked, the newest last.

    Raises:
        GateDenied: It cannot be read.
    """
    with rt.ledger.read() as tx:
        return _listed(tx)


def _listed(tx: ReadTx) -> tuple[Revocation, ...]:
    found = revocations.in_force(tx)
    if isinstance(found, Unreadable):
        raise GateDenied(
            f"nothing but teardown is permitted ({REVOCATIONS_UNREADABLE}: {found.why})",
            hint="`wlctl audit verify` says what was changed",
        )
    return found.entries


def _ref(rt: Runtime, kind: RevocationKind, word: str) -> str:
    match kind:
        case RevocationKind.PACKAGE:
            return word if is_sha256(word) else stored.find(rt, word).id
        case RevocationKind.KEY:
            return word if _FINGERPRINT.fullmatch(word) else _fingerprint_of(rt, word)
        case RevocationKind.ARTIFACT:
            if is_sha256(word):
                return word
            raise UsageError(
                f"{word} is not the sha256 of a file", hint="`wlctl package show DIR` has them"
            )


def _fingerprint_of(rt: Runtime, name: str) -> str:
    with rt.ledger.read() as tx:
        try:
            return signers.get(tx, name).fingerprint
        except UnknownName as failure:
            raise UnknownName(
                f"{name} is no fingerprint, and there is no such signer", hint=failure.hint
            ) from failure


def _hits(tx: ReadTx, kind: RevocationKind, ref: str, now_ms: int) -> tuple[Instance, ...]:
    """Find the current copies that cannot be started again once this is revoked."""
    counts = trust.trust_in(tx, now_ms)
    after = replace(counts, revoked={*counts.revoked, ref})

    def is_hit(package: StoredPackage) -> bool:
        if kind is RevocationKind.KEY:
            return bool(trust.signers_of(package, counts)) and not trust.signers_of(package, after)
        if kind is RevocationKind.PACKAGE:
            return package.id == ref
        return any(file.sha256 == ref for file in manifest.read(package.manifest.encode()).files)

    found = instances.current(tx)
    judged = {id_: is_hit(packages.get(tx, id_)) for id_ in {one.package_id for one in found}}
    return tuple(sorted((one for one in found if judged[one.package_id]), key=lambda one: one.name))
