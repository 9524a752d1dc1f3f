"""The controller's store: which packages it has, and whether each is still whole."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wlctl import signing
from wlctl.errors import AmbiguousName, FileMissing, GateDenied, UnknownName
from wlctl.flows import trust
from wlctl.flows.runtime import Runtime
from wlctl.package import manifest, verify
from wlctl.package.store import Store
from wlctl.package.verify import Statement, Trust, Verified

if TYPE_CHECKING:
    from wlctl.ledger.packages import StoredPackage

_ID_PREFIX = re.compile(r"[0-9a-f]{4,64}")
_NAME_VERSION = re.compile(r"(?P<name>[^/@]+)@(?P<version>[^/@]+)")


@dataclass(frozen=True, slots=True)
class Listed:
    """A package of the store.

    Attributes:
        signers: Names of those who signed it and are accepted now.
    """

    package: "StoredPackage"
    signers: tuple[str, ...]


def is_stored(package: Path) -> bool:
    """Answer whether a package of the store is meant, and not a directory."""
    words = str(package)
    looks_stored = _NAME_VERSION.fullmatch(words) or _ID_PREFIX.fullmatch(words)
    return looks_stored is not None and not package.is_dir()


def ls(rt: Runtime) -> list[Listed]:
    """List the packages that were admitted, ascending by name."""
    from wlctl.ledger import packages

    with rt.ledger.read() as tx:
        stored = packages.ls(tx)
    try:
        counts = trust.trust_of(rt)
    except GateDenied:  # what is revoked cannot be read: then nobody vouches for anything
        counts = Trust({}, (), signing.read_signature)
    return [Listed(package, trust.signers_of(package, counts)) for package in stored]


def verify_stored(rt: Runtime, words: str, counts: Trust, store: Store) -> Verified:
    """Judge an admitted package by the signers of now, and its stored files by their hash."""
    package = find(rt, words)
    statement = Statement(
        manifest.read(package.manifest.encode()),
        tuple((f"#{n}", s.encode()) for n, s in enumerate(package.signatures, 1)),
    )
    verified = verify.accept(statement, counts)
    for file in verified.manifest.files:
        if not store.verify(file.sha256):
            raise FileMissing(
                f"{file.path} of {package.name} {package.version} is not whole in the store",
                hint="place the package from its directory once more",
            )
    return verified


def find(rt: Runtime, words: str) -> "StoredPackage":
    """Find an admitted package by NAME@VERSION or the beginning of its id.

    Raises:
        UnknownName: None is called so.
        AmbiguousName: Several are.
    """
    from wlctl.ledger import packages

    named = _NAME_VERSION.fullmatch(words)
    with rt.ledger.read() as tx:
        found = (
            packages.of_version(tx, named["name"], named["version"])
            if named
            else packages.beginning_with(tx, words)
        )
    if not found:
        raise UnknownName(
            f"{words} is no directory and no package in the store",
            hint="`wlctl package ls` lists the store",
        )
    if len(found) > 1:
        ids = ", ".join(package.id[:12] for package in found)
        raise AmbiguousName(
            f"{words} fits {len(found)} packages: {ids}", hint="give more of the id"
        )
    return found[0]
