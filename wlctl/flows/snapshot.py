"""A fleet as a file: written from the ledger, and decided from without one."""

from dataclasses import replace
from pathlib import Path

from wlctl.errors import InvalidFile
from wlctl.flows import deciding, gate
from wlctl.flows.deciding import Order
from wlctl.flows.place import Report
from wlctl.flows.runtime import Runtime
from wlctl.gate import file
from wlctl.gate.work import work_of
from wlctl.model.policy import Policy, Unreadable, Work
from wlctl.model.snapshot import SavedGate, Snapshot
from wlctl.model.workload import WorkloadSpec
from wlctl.package import manifest, verify, workload
from wlctl.placement import engine
from wlctl.placement.document import document
from wlctl.placement.snapshot.read import MAX_CHARACTERS, load
from wlctl.placement.snapshot.write import UNGATED, dump


def take(rt: Runtime) -> str:
    """Write down all that a decision would be made from now, the policy included; no secrets."""
    with rt.ledger.read() as tx:
        views, cluster = deciding.fleet_of(tx, rt.now_ms())
        revoked = gate.revoked_of(tx)
        saved = _saved_gate(rt, gate.policy_of(tx), revoked)
    if not isinstance(revoked, Unreadable):
        cluster = replace(cluster, revoked=cluster.revoked | revoked)
    return dump(
        Snapshot(
            nodes=tuple(replace(view, gate=UNGATED) for view in views),
            cluster=cluster,
            weights=deciding.weights_of(rt),
            now_ms=rt.now_ms(),
            gate=saved,
        )
    )


def _saved_gate(
    rt: Runtime, policy: Policy | Unreadable, revoked: frozenset[str] | Unreadable
) -> SavedGate:
    for one in (policy, revoked):
        if isinstance(one, Unreadable):
            return SavedGate(rt.author.principal, {}, one.why)
    assert isinstance(policy, Policy)
    return SavedGate(rt.author.principal, file.tables_of(policy))


def decide(order: Order, path: Path) -> Report:
    """Decide from a snapshot, without a ledger; the decision is recorded nowhere and has no id.

    The gate judges as it did: by the policy of the snapshot, for whoever took it.

    Args:
        order: Its package may be a directory, built and signed or not, or a `workload.toml`.
        path: A snapshot; its moment is the decision's.

    Raises:
        InvalidFile: The snapshot or the workload is not one.
    """
    found = load(_read(path), str(path))
    spec, unsigned = _spec(order.package)
    request = deciding.request_of(order, spec, found.nodes)
    nodes = found.nodes
    if found.gate is not None:
        work = work_of(spec, where=request.where, project=order.project, unsigned=unsigned)
        verdict_of = _verdict_of(found.gate, found.cluster.revoked, work, str(path))
        nodes = tuple(
            replace(node, gate=verdict_of(node)) if node.gate == UNGATED else node for node in nodes
        )
    decision = engine.decide(request, nodes, found.cluster, found.weights, found.now_ms)
    return Report(
        name=order.name or spec.name,
        dry_run=True,
        decision=None,
        document=document(decision),
        placeable=bool(decision.placements),
    )


def _verdict_of(saved: SavedGate, revoked: frozenset[str], work: Work, path: str) -> gate.NodeGate:
    policy: Policy | Unreadable = (
        Unreadable(saved.unreadable)
        if saved.unreadable
        else file.from_tables(saved.policy, f"{path}: $.gate.policy")
    )
    return gate.by_tier(policy, revoked, saved.principal, work)


def _spec(package: Path) -> tuple[WorkloadSpec, bool]:
    """Read what would be placed, and whether nobody vouches for it."""
    if package.is_dir() and (package / manifest.FILE_NAME).exists():
        stated = verify.read(package)
        return manifest.spec_of(stated.manifest), not stated.signatures
    source = package / workload.FILE_NAME if package.is_dir() else package
    return manifest.preview(workload.parse(_read(source), str(source))), True


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as opened:
            return opened.read(MAX_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{path} is not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror}") from error
