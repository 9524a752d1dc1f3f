"""Which packages were verified and stored: their statements, and who signed them.

A row says nothing that its own id and signatures do not prove, so it has no event; the decision
that placed the package names the id.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, delete, func, insert, select, update

from wlctl.ledger.schema import instances, orders, packages
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.ids import NodeName, PackageId
from wlctl.model.instance import CLOSED
from wlctl.model.package import Manifest


@dataclass(frozen=True, slots=True)
class StoredPackage:
    """A package as it was admitted.

    Attributes:
        manifest: The statement's text, whose sha256 is the id.
        signatures: Armored; of every signer who was accepted at the newest admission.
    """

    id: PackageId
    name: str
    version: str
    manifest: str
    signatures: tuple[str, ...]
    admitted_at_ms: int


def put(tx: WriteTx, manifest: Manifest, signatures: Sequence[str]) -> None:
    """Remember an admitted package; one that is known keeps its moment and gets the signatures."""
    known = tx.conn.execute(
        select(packages.c.signatures).where(packages.c.id == manifest.package_id)
    ).scalar_one_or_none()
    text = json.dumps(list(signatures))
    if known is None:
        tx.conn.execute(
            insert(packages).values(
                id=manifest.package_id,
                name=manifest.workload.name,
                version=manifest.workload.version,
                manifest=manifest.text,
                signatures=text,
                admitted_at_ms=tx.now_ms,
            )
        )
    elif known != text:
        tx.conn.execute(
            update(packages).where(packages.c.id == manifest.package_id).values(signatures=text)
        )


def get(tx: ReadTx, package_id: PackageId) -> StoredPackage:
    """Return the admitted package with exactly this id."""
    return _of(tx.conn.execute(select(packages).where(packages.c.id == package_id)).one())


def ls(tx: ReadTx) -> list[StoredPackage]:
    """Return all packages, ascending by name, then by admission."""
    order = (packages.c.name, packages.c.admitted_at_ms, packages.c.id)
    return [_of(row) for row in tx.conn.execute(select(packages).order_by(*order))]


def of_version(tx: ReadTx, name: str, version: str) -> list[StoredPackage]:
    """Return the packages of this name and version; built twice, there may be several."""
    query = select(packages).where(packages.c.name == name, packages.c.version == version)
    return [_of(row) for row in tx.conn.execute(query.order_by(packages.c.id))]


def beginning_with(tx: ReadTx, prefix: str) -> list[StoredPackage]:
    """Return the packages whose id begins so, ascending by id."""
    query = select(packages).where(packages.c.id.startswith(prefix, autoescape=True))
    return [_of(row) for row in tx.conn.execute(query.order_by(packages.c.id))]


@dataclass(frozen=True, slots=True)
class Use:
    """Who needs packages.

    Attributes:
        current: Package id to the names of the current copies that have it, ascending.
        previous: Package id to the names that had it before the one they have now, ascending.
        placed: Ids of all packages that history tells of: whatever was ever placed or ordered.
    """

    current: Mapping[str, tuple[str, ...]]
    previous: Mapping[str, tuple[str, ...]]
    placed: frozenset[str]


def use(tx: ReadTx) -> Use:
    """Say who needs which packages; what nobody needs is in neither of the first two."""
    columns = (instances.c.name, instances.c.package_id, instances.c.state)
    order = (instances.c.created_at_ms.desc(), instances.c.id)
    rows = tx.conn.execute(select(*columns).order_by(*order)).all()
    ordered = tx.conn.execute(select(orders.c.package_id).distinct()).scalars()
    now = {row.name: row.package_id for row in rows if row.state not in CLOSED}
    before: dict[str, str] = {}
    for row in rows:
        if row.name in now and row.package_id != now[row.name]:
            before.setdefault(row.name, row.package_id)
    placed = frozenset((*ordered, *(row.package_id for row in rows)))
    return Use(_names_by_package(now), _names_by_package(before), placed)


def _names_by_package(packages_by_name: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, package_id in sorted(packages_by_name.items()):
        found[package_id] = (*found.get(package_id, ()), name)
    return found


def nodes_of(tx: ReadTx, package_ids: Collection[str]) -> list[NodeName]:
    """Return the nodes that any copy of these packages was placed on, the latest first."""
    latest = func.max(instances.c.created_at_ms)
    query = (
        select(instances.c.node)
        .where(instances.c.package_id.in_(package_ids))
        .group_by(instances.c.node)
        .order_by(latest.desc(), instances.c.node)
    )
    return [NodeName(name) for name in tx.conn.execute(query).scalars()]


def forget(tx: WriteTx, package_ids: Collection[str]) -> None:
    """Remember packages no longer; the caller has found that history tells of none of them."""
    tx.conn.execute(delete(packages).where(packages.c.id.in_(package_ids)))


def _of(row: Row[Any]) -> StoredPackage:
    return StoredPackage(
        id=PackageId(row.id),
        name=row.name,
        version=row.version,
        manifest=row.manifest,
        signatures=tuple(json.loads(row.signatures)),
        admitted_at_ms=row.admitted_at_ms,
    )
