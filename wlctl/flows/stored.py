"""The controller's store: which packages it has, who needs them, and what may go."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wlctl import signing
from wlctl.errors import AmbiguousName, FileMissing, GateDenied, UnknownName
from wlctl.flows import trust
from wlctl.flows.runtime import Runtime
from wlctl.model.ids import NodeName
from wlctl.package import manifest, verify
from wlctl.package.store import Store
from wlctl.package.verify import Statement, Trust, Verified

if TYPE_CHECKING:
    from wlctl.flows.fetching import Fetched
    from wlctl.ledger.packages import StoredPackage, Use

_ID_PREFIX = re.compile(r"[0-9a-f]{4,64}")
_NAME_VERSION = re.compile(r"(?P<name>[^/@]+)@(?P<version>[^/@]+)")


COLLECT_AGE_MS = 3_600_000
"""A file that was put or held within this time may be about to be placed."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A package that was admitted.

    Attributes:
        signers: Names of those who signed it and are accepted now.
        files: How many it has, each hash once.
        missing: How many of them the store lacks.
        size_bytes: Of them all.
        used_by: Current copies that have it, ascending.
        previous_of: Current copies that had it before, ascending.
    """

    package: "StoredPackage"
    signers: tuple[str, ...]
    files: int
    missing: int
    size_bytes: int
    used_by: tuple[str, ...]
    previous_of: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restored:
    """A package whose files are whole in the store again, and what had to be fetched for it."""

    package: "StoredPackage"
    fetched: tuple["Fetched", ...]


@dataclass(frozen=True, slots=True)
class Collected:
    """What was taken out of the store, or would be.

    Attributes:
        files: Hash and size of each.
        forgotten: Packages that were never placed, and of which a file is gone.
        kept: How many packages are needed.
    """

    files: tuple[tuple[str, int], ...]
    forgotten: tuple["StoredPackage", ...]
    kept: int

    @property
    def size_bytes(self) -> int:
        """Of all the files."""
        return sum(size for _, size in self.files)


def is_stored(package: Path) -> bool:
    """Answer whether a package of the store is meant, and not a directory."""
    words = str(package)
    looks_stored = _NAME_VERSION.fullmatch(words) or _ID_PREFIX.fullmatch(words)
    return looks_stored is not None and not package.is_dir()


def ls(rt: Runtime) -> list[Listed]:
    """List the packages that were admitted, ascending by name, and who needs each."""
    from wlctl.ledger import packages

    with rt.ledger.read() as tx:
        found = packages.ls(tx)
        use = packages.use(tx)
    try:
        counts = trust.trust_of(rt)
    except GateDenied:  # what is revoked cannot be read: then nobody vouches for anything
        counts = Trust({}, (), signing.read_signature)
    store = Store(rt.home.store)
    return [_listed(one, use, store, trust.signers_of(one, counts)) for one in found]


def _listed(package: "StoredPackage", use: "Use", store: Store, signers: tuple[str, ...]) -> Listed:
    sizes = _sizes(package)
    return Listed(
        package,
        signers,
        files=len(sizes),
        missing=sum(not store.has(sha256, size) for sha256, size in sizes.items()),
        size_bytes=sum(sizes.values()),
        used_by=use.current.get(package.id, ()),
        previous_of=use.previous.get(package.id, ()),
    )


def _sizes(package: "StoredPackage") -> dict[str, int]:
    files = manifest.read(package.manifest.encode()).files
    return {file.sha256: file.size_bytes for file in files}


def gc(rt: Runtime, *, dry_run: bool = False) -> Collected:
    """Take out of the store what no current copy, and none before it, needs.

    What was put there within the hour stays, needed or not: somebody may be placing it. History
    loses nothing: a package that was ever placed stays listed, without its files.

    Args:
        dry_run: Only say what would go.

    Raises:
        FilesUnreadable: The system does not let files go.
        LedgerRolledBack, LedgerForked: The ledger is doubted: what it does not know may be needed.
    """
    from wlctl.flows.witnesses import require_believed
    from wlctl.ledger import packages

    now_ms = rt.now_ms()
    before_ms = now_ms - COLLECT_AGE_MS
    with rt.ledger.read() as tx:
        require_believed(tx)
        use = packages.use(tx)
        found = packages.ls(tx)
    kept = [one for one in found if one.id in use.current or one.id in use.previous]
    needed = {sha256 for one in kept for sha256 in _sizes(one)}
    store = Store(rt.home.store)
    gone = store.collect(needed, before_ms * 1_000_000, dry_run=dry_run)
    names = {sha256 for sha256, _ in gone}

    def is_stale(one: "StoredPackage", use: "Use") -> bool:
        fresh = one.admitted_at_ms >= before_ms
        lost = any(h in names or not store.has(h, size) for h, size in _sizes(one).items())
        return one.id not in use.placed and not fresh and lost

    if dry_run:
        forgotten = tuple(one for one in found if is_stale(one, use))
        return Collected(gone, forgotten, len(kept))
    with rt.ledger.write(now_ms, rt.author) as tx:
        use = packages.use(tx)  # somebody may have placed one meanwhile
        forgotten = tuple(one for one in packages.ls(tx) if is_stale(one, use))
        packages.forget(tx, [one.id for one in forgotten])
    return Collected(gone, forgotten, len(kept))


def fetch(rt: Runtime, words: str, *, node: str = "") -> Restored:
    """Bring back what the store has lost of a package; see `fetching.fetch`.

    Args:
        words: As `find` takes them.
        node: Whom to ask; empty for those that had it.

    Raises:
        WlctlError: As `find` and `fetching.fetch`.
    """
    from wlctl.flows import fetching

    package = find(rt, words)
    return Restored(package, fetching.fetch(rt, package, only=NodeName(node) if node else None))


def verify_stored(rt: Runtime, words: str, counts: Trust, *, fetches: bool) -> Verified:
    """Judge an admitted package by the signers of now, and its stored files by their hash.

    Args:
        fetches: A file that is not whole in the store is fetched back from a node that holds it.

    Raises:
        FileMissing: A file is not whole, and could not be fetched.
        WlctlError: As `find`, and as `verify.accept`.
    """
    package = find(rt, words)
    verified = verify.accept(statement_of(package), counts)
    store = Store(rt.home.store)
    missing = [file for file in verified.manifest.files if not store.hold(file.sha256)]
    if missing and fetches:
        from wlctl.flows import fetching

        fetching.fetch(rt, package)
    elif missing:
        raise FileMissing(
            f"{missing[0].path} of {package.name} {package.version} is not whole in the store",
            hint=f"fetch it back from a node that has it: wlctl package fetch {package.id[:12]}",
        )
    return verified


def statement_of(package: "StoredPackage") -> Statement:
    """Read an admitted package as what it states, to be judged anew."""
    return Statement(
        manifest.read(package.manifest.encode()),
        tuple((f"#{n}", s.encode()) for n, s in enumerate(package.signatures, 1)),
    )


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
