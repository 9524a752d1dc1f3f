"""Packages: made, signed, verified, and admitted to the controller's store.

The ledger is imported where it is used: making a package needs none.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from wlctl import signing
from wlctl.errors import (
    InvalidFile,
)
from wlctl.flows import stored, trust
from wlctl.flows.runtime import Runtime
from wlctl.flows.signing import KeyChoice, signing_key
from wlctl.model.ids import PackageId
from wlctl.model.package import (
    Manifest,
    PackageFile,
    SignatureReading,
    Workload,
    is_fingerprint,
)
from wlctl.model.workload import WorkloadSpec
from wlctl.package import build as building
from wlctl.package import manifest, starter, verify
from wlctl.package.build import Built
from wlctl.package.store import Store
from wlctl.package.verify import Verified

if TYPE_CHECKING:
    from wlctl.ledger.store import WriteTx

_ID_PREFIX = re.compile(r"[0-9a-f]{4,64}")
_NAME_VERSION = re.compile(r"(?P<name>[^/@]+)@(?P<version>[^/@]+)")


@dataclass(frozen=True, slots=True)
class AdmittedVariant:
    """What a node needs to run one variant.

    Attributes:
        sheet: sha256 of the launch sheet.
        files: Everything to be brought to the node, the launch sheet first.
    """

    name: str
    sheet: str
    files: tuple[PackageFile, ...]


@dataclass(frozen=True, slots=True)
class Admitted:
    """A package that an accepted signer signed, with every file of it in the store.

    Attributes:
        spec: What decisions need to know.
        signers: Names of those whose signatures were accepted, ascending; never empty.
        signatures: Theirs, in the same order.
        is_stale: The directory's `workload.toml` says something else by now.
    """

    spec: WorkloadSpec
    manifest: Manifest
    signers: tuple[str, ...]
    signatures: tuple[str, ...]
    variants: tuple[AdmittedVariant, ...]
    store: Store
    is_stale: bool

    @property
    def package_id(self) -> PackageId:
        """sha256 of the statement."""
        return self.manifest.package_id

    @property
    def workload(self) -> Workload:
        """Everything its author said of it."""
        return self.manifest.workload

    def variant(self, name: str) -> AdmittedVariant:
        """Give the variant of that name, one of the spec's."""
        return next(variant for variant in self.variants if variant.name == name)


@dataclass(frozen=True, slots=True)
class Signed:
    """A signature that was put beside a manifest.

    Attributes:
        file: Its path in the package.
        signer: The name under which the key is accepted here; None when it is not.
    """

    manifest: Manifest
    file: str
    fingerprint: str
    signer: str | None


@dataclass(frozen=True, slots=True)
class Shown:
    """What a package directory says of itself.

    Attributes:
        signatures: File name, what it says, and the name its key has here, or None.
        is_stale: `workload.toml` says something else by now.
    """

    manifest: Manifest
    signatures: tuple[tuple[str, SignatureReading, str | None], ...]
    is_stale: bool


def init(directory: Path) -> tuple[str, ...]:
    """Write a package that builds and runs, and says what can be changed; see `starter.write`."""
    return starter.write(directory)


def build(directory: Path) -> Built:
    """Build a package directory; see `package.build`."""
    return building.build(directory)


def sign(rt: Runtime, directory: Path, choice: KeyChoice) -> Signed:
    """Sign a built package whose files are what its manifest states.

    Raises:
        InvalidFile: There is no such package or key, or `workload.toml` was changed since.
        UnsafeKey, UnusableKey, AgentFailed, AmbiguousName: As `signing.signing_key`.
        ManifestInvalid, UnknownKind, FileMissing, FileTampered, FilesUnreadable: As
            `verify.check_files`.
    """
    key = signing_key(choice)
    statement = verify.check_files(directory)
    stated = statement.manifest
    if building.is_stale(directory, stated):
        raise InvalidFile(
            f"{directory / 'workload.toml'} was changed after the build",
            hint=f"build it again: wlctl package build {directory}",
        )
    armored = signing.sign(stated.text.encode(), key)
    file = building.add_signature(directory, key.fingerprint, armored)
    signer = trust.accepted_if_any(rt).get(key.fingerprint)
    return Signed(stated, file, key.fingerprint, signer.name if signer else None)


def check(rt: Runtime, directory: Path) -> Verified:
    """Verify a package as `place` would, and keep nothing of it.

    Raises:
        WlctlError: As `verify.verify`.
    """
    return verify.verify(directory, trust.trust_of(rt))


def inspect(rt: Runtime, package: Path) -> Verified:
    """Verify a package as `admit` takes it, in a directory or the store, and keep nothing of it.

    Whether it is revoked itself is left to the gate, which is asked next and gives the verdict.

    Raises:
        WlctlError: As `admit`.
    """
    counts = trust.trust_of(rt)
    counts = replace(counts, revoked=frozenset(filter(is_fingerprint, counts.revoked)))
    if stored.is_stored(package):
        return stored.verify_stored(rt, str(package), counts, fetches=False)
    return verify.verify(package, counts)


def is_stale(directory: Path, stated: Manifest) -> bool:
    """Answer whether `workload.toml` says something else than the manifest does by now."""
    return building.is_stale(directory, stated)


def show(rt: Runtime, directory: Path) -> Shown:
    """Read what a package says of itself, whether or not anybody vouches for it.

    Raises:
        InvalidFile, ManifestInvalid, UnknownKind, FilesUnreadable: As `verify.read`.
    """
    statement = verify.read(directory)
    accepted = trust.accepted_if_any(rt)
    text = statement.manifest.text.encode()
    signatures: list[tuple[str, SignatureReading, str | None]] = []
    for name, data in statement.signatures:
        reading = signing.read_signature(data or b"", text)
        signer = accepted.get(reading.fingerprint)
        signatures.append((name, reading, signer.name if signer else None))
    is_stale = building.is_stale(directory, statement.manifest)
    return Shown(statement.manifest, tuple(signatures), is_stale)


def admit(rt: Runtime, package: Path) -> Admitted:
    """Verify a package and copy it into the controller's store; record nothing yet.

    Args:
        rt: Whose ledger says which signers are accepted.
        package: A directory; or `NAME@VERSION` or the beginning of an id, for one that was admitted
            before.

    Raises:
        WlctlError: As `verify.verify`.
        UnknownName: No admitted package is called so.
        AmbiguousName: Several are.
    """
    counts = trust.trust_of(rt)
    store = Store(rt.home.store)
    if stored.is_stored(package):
        verified = stored.verify_stored(rt, str(package), counts, fetches=True)
        return _admitted(verified, store, is_stale=False)
    verified = verify.verify(package, counts, store)
    return _admitted(verified, store, is_stale=is_stale(package, verified.manifest))


def admit_stored(rt: Runtime, package: PackageId) -> Admitted:
    """Verify exactly this package of the store, whatever is on any disk by now.

    Raises:
        WlctlError: As `admit`.
    """
    verified = stored.verify_stored(rt, package, trust.trust_of(rt), fetches=True)
    return _admitted(verified, Store(rt.home.store), is_stale=False)


def record(tx: "WriteTx", admitted: Admitted) -> None:
    """Remember an admitted package, in the transaction that decides about it."""
    from wlctl.ledger import packages

    packages.put(tx, admitted.manifest, admitted.signatures)


def _admitted(verified: Verified, store: Store, *, is_stale: bool) -> Admitted:
    stated = verified.manifest
    fingerprints = [signer.fingerprint for signer in verified.signers]
    variants: list[AdmittedVariant] = []
    for variant in stated.workload.variants:
        sheet = manifest.sheet_of(stated, variant)
        files = (sheet, *manifest.files_of(stated, variant))
        variants.append(AdmittedVariant(variant.name, sheet.sha256, files))
    return Admitted(
        spec=manifest.spec_of(stated, fingerprints),
        manifest=stated,
        signers=tuple(signer.name for signer in verified.signers),
        signatures=verified.signatures,
        variants=tuple(variants),
        store=store,
        is_stale=is_stale,
    )
