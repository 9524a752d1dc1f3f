"""Fetch files that the controller's store has lost back from nodes that hold them, by their hash.

No node is believed: what it sends is stored only when its sha256 is the one that was signed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wlctl.errors import FileMissing, ForeignNode, Unreachable
from wlctl.flows.nodes import check_identity
from wlctl.flows.runtime import Runtime
from wlctl.host.node import NodeSession
from wlctl.host.upkeep import FETCH_BYTES
from wlctl.ledger import nodes, packages
from wlctl.ledger.packages import StoredPackage
from wlctl.model.actions import Refused
from wlctl.model.ids import NodeName
from wlctl.model.node import Node
from wlctl.model.package import PackageFile
from wlctl.package import manifest
from wlctl.package.store import ContentDiffers, Store

MAX_NODES = 16
"""So many are asked, those that had the package last first."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """One file that came back, and from where."""

    file: PackageFile
    node: NodeName


class _Cannot(Exception):
    """Why a node did not give a file, in words."""


def missing_of(store: Store, package: StoredPackage) -> tuple[PackageFile, ...]:
    """List the files of a package that are not whole in the store, each once; reads all of them."""
    listed = manifest.read(package.manifest.encode()).files
    unique = {file.sha256: file for file in listed}
    return tuple(file for sha256, file in unique.items() if not store.hold(sha256))


def fetch(
    rt: Runtime, package: StoredPackage, *, only: NodeName | None = None
) -> tuple[Fetched, ...]:
    """Bring back what the store lacks of a package; nothing where it lacks nothing.

    Args:
        only: Ask this node and no other, whatever the ledger says of it.

    Raises:
        FileMissing: No node that was asked gave one of them; what came is kept.
        UnknownName: `only` is no node.
        FilesUnreadable: The store cannot be written.
    """
    store = Store(rt.home.store)
    missing = {file.sha256: file for file in missing_of(store, package)}
    if not missing:
        return ()
    found: list[Fetched] = []
    tried: list[str] = []
    for node in _holders(rt, package, only):
        if not missing:
            break
        try:
            for file in _from(rt, node, store, tuple(missing.values())):
                found.append(Fetched(file, node.name))
                del missing[file.sha256]
        except (_Cannot, Unreachable, ForeignNode) as failure:
            tried.append(f"{node.name}: {failure}")
    if missing:
        asked = "; ".join(tried) or "no node that had it is there"
        raise FileMissing(
            f"{len(missing)} file(s) of {package.name} {package.version} are in no store ({asked})",
            hint="place the package from its directory once more",
        )
    return tuple(found)


def _holders(rt: Runtime, package: StoredPackage, only: NodeName | None) -> list[Node]:
    """Find the nodes that had this package, or another with a file of it, the latest first."""
    with rt.ledger.read() as tx:
        if only is not None:
            return [nodes.get(tx, only)]
        hashes = {file.sha256 for file in manifest.read(package.manifest.encode()).files}
        related = [
            one.id
            for one in packages.ls(tx)
            if one.id != package.id and any(sha256 in one.manifest for sha256 in hashes)
        ]
        names = packages.nodes_of(tx, [package.id])
        names += [name for name in packages.nodes_of(tx, related) if name not in names]
        there = {node.name: node for node in nodes.ls(tx)}
    return [there[name] for name in names if name in there][:MAX_NODES]


def _from(
    rt: Runtime, node: Node, store: Store, wanted: Sequence[PackageFile]
) -> Iterator[PackageFile]:
    """Yield each file that a node gave and that is now in the store.

    Raises:
        _Cannot: It refused, or sent something else.
        Unreachable, ForeignNode: It cannot be asked.
    """
    with rt.connect(node.address) as session:
        offered = session.offer(rt.ledger.installation, tuple(file.sha256 for file in wanted))
        if isinstance(offered, Refused):
            raise _Cannot(offered.detail)
        check_identity(node, offered.node_id)
        held = [file for file in wanted if file.sha256 not in offered.missing]
        if not held:
            raise _Cannot("it has none of them")
        for file in held:
            try:
                store.put(file.sha256, _parts(session, file))
            except ContentDiffers:
                raise _Cannot(f"what it sent as {file.sha256[:12]} is something else") from None
            yield file


def _parts(session: NodeSession, file: PackageFile) -> Iterator[bytes]:
    """Ask for a file part by part; never more than the manifest says that there is."""
    for offset in range(0, file.size_bytes, FETCH_BYTES):
        part = session.fetch(file.sha256, offset=offset, size_bytes=file.size_bytes)
        if isinstance(part, Refused):
            raise _Cannot(part.detail)
        yield part
