"""What a placed copy was made from: the package that its node has, and what it takes to run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from wlctl.errors import GateDenied, Revoked, WlctlError
from wlctl.flows import deciding, stored, trust
from wlctl.gate.work import work_of
from wlctl.ledger import instances, nodes, packages, sayings
from wlctl.ledger.packages import StoredPackage
from wlctl.ledger.store import ReadTx
from wlctl.model.event import Json
from wlctl.model.fleet import view_of
from wlctl.model.ids import InstanceId, PackageId
from wlctl.model.instance import Instance
from wlctl.model.package import Health, PackageFile, RestartPolicy
from wlctl.model.policy import Work
from wlctl.model.workload import Execution, Requirement, WorkloadSpec
from wlctl.package import manifest, verify
from wlctl.placement.where import known_of, resolve


@dataclass(frozen=True, slots=True)
class Staged:
    """The package of a copy.

    Attributes:
        spec: What decisions know of it.
        work: What the gate is asked about when it is started.
        fault: Why nobody vouches for it any more; None while somebody does, where it was not asked,
            and for what the gate itself denies and says.
        files: What its node must have to run its variant, the launch sheet first.
        health: How it is asked for; None where nothing is.
        grace_ms: Between stop signal and kill.
        restart: How often its supervisor may begin it again by itself.
        lease_ms: Time to live of the dead-man lease; None for none.
        secrets: The package's name of each to the entry of the settings, where they differ.
    """

    spec: WorkloadSpec
    work: Work
    files: tuple[PackageFile, ...]
    health: Health | None
    grace_ms: int
    restart: RestartPolicy
    lease_ms: int | None
    secrets: Mapping[str, str]
    fault: WlctlError | None = None


def read(tx: ReadTx, instance: Instance, now_ms: int | None = None) -> Staged:
    """Read what `instance` was made from.

    Args:
        now_ms: When it is to be started, for whose signatures count then; None where it is not.
    """
    package = packages.get(tx, instance.package_id)
    stated = manifest.read(package.manifest.encode())
    variant = next(one for one in stated.workload.variants if one.name == instance.variant)
    keys, fault = ((), None) if now_ms is None else _vouched(tx, package, now_ms)
    spec = manifest.spec_of(stated, keys)
    options = instances.options_of(tx, instance.id)
    return Staged(
        spec=spec,
        work=work_of(
            spec,
            where=_conditions(tx, options),
            project=str(options.get("project", "")),
            emulated=variant.execution is Execution.EMULATED,
        ),
        files=(manifest.sheet_of(stated, variant), *manifest.files_of(stated, variant)),
        health=stated.workload.health,
        grace_ms=stated.workload.lifecycle.stop_grace_ms,
        restart=stated.workload.restart,
        lease_ms=cast("int | None", options.get("lease_ms")) or stated.workload.lifecycle.lease_ms,
        secrets=cast("Mapping[str, str]", options.get("secrets", {})),
        fault=fault,
    )


def _vouched(
    tx: ReadTx, package: StoredPackage, now_ms: int
) -> tuple[tuple[str, ...], WlctlError | None]:
    """Name the keys that vouch for a package now, or say why none does."""
    try:
        verified = verify.accept(stored.statement_of(package), trust.trust_in(tx, now_ms))
    except (GateDenied, Revoked):
        return (), None  # the gate denies it, too, and its verdict is chained
    except WlctlError as failure:
        return (), failure
    return tuple(signer.fingerprint for signer in verified.signers), None


def lease_of(tx: ReadTx, instance: Instance) -> int | None:
    """Read the time to live of its lease, in milliseconds; None where it has none."""
    own = cast("int | None", instances.options_of(tx, instance.id).get("lease_ms"))
    if own is not None:
        return own
    stated = manifest.read(packages.get(tx, instance.package_id).manifest.encode())
    return stated.workload.lifecycle.lease_ms


def leases_of(tx: ReadTx, copies: Sequence[Instance]) -> dict[InstanceId, int]:
    """Read the time to live of every lease among many copies; each package is read once."""
    ordered = instances.ordered_leases(tx)
    own: dict[PackageId, int | None] = {}
    found = {}
    for one in copies:
        if one.package_id not in own:
            stated = manifest.read(packages.get(tx, one.package_id).manifest.encode())
            own[one.package_id] = stated.workload.lifecycle.lease_ms
        ttl_ms = ordered.get(one.id) or own[one.package_id]
        if ttl_ms is not None:
            found[one.id] = ttl_ms
    return found


def _conditions(tx: ReadTx, options: Mapping[str, Json]) -> tuple[Requirement, ...]:
    """Read the order's own conditions again: what they mean depends on what the fleet has."""
    kept = cast("Sequence[Mapping[str, Json]]", options.get("where", ()))
    if not kept:
        return ()
    said = sayings.of_fleet(tx)
    views = [view_of(node, None, said.get(node.name, ())) for node in nodes.ls(tx)]
    known = known_of(view.capabilities for view in views)
    return tuple(resolve(deciding.where_read(one), known) for one in kept)
