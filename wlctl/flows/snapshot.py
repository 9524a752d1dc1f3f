"""A fleet as a file: written from the ledger, and decided from without one."""

from pathlib import Path

from wlctl.errors import InvalidFile
from wlctl.flows import deciding
from wlctl.flows.deciding import Order
from wlctl.flows.place import Report
from wlctl.flows.runtime import Runtime
from wlctl.model.fleet import Ruling, Verdict
from wlctl.model.node import Node, Tier
from wlctl.model.snapshot import Snapshot
from wlctl.model.workload import WorkloadSpec
from wlctl.package import manifest, workload
from wlctl.placement import engine
from wlctl.placement.document import document
from wlctl.placement.snapshot.read import MAX_CHARACTERS, load
from wlctl.placement.snapshot.write import dump

UNGATED = Verdict(Ruling.ALLOWED, "ungated", "a saved fleet has no policy")
"""What a node gets in a saved fleet, said in every decision made from it."""
PROBE_ONLY = Verdict(Ruling.DENIED, "probe-only", "a discovered node may only be looked at")


def _saved_verdict(node: Node) -> Verdict:
    return UNGATED if node.tier >= Tier.PAIRED else PROBE_ONLY


def take(rt: Runtime) -> str:
    """Write down all that a decision would be made from now; it has no secrets."""
    with rt.ledger.read() as tx:
        views, cluster = deciding.fleet_of(tx, rt.now_ms(), _saved_verdict)
    return dump(
        Snapshot(
            nodes=tuple(views),
            cluster=cluster,
            weights=deciding.weights_of(rt),
            now_ms=rt.now_ms(),
        )
    )


def decide(order: Order, file: Path) -> Report:
    """Decide from a snapshot, without a ledger; the decision is recorded nowhere and has no id.

    Args:
        order: Its package may be a directory or a `workload.toml`, built and signed or not.
        file: A snapshot; its moment is the decision's.

    Raises:
        InvalidFile: The snapshot or the workload is not one.
    """
    found = load(_read(file), str(file))
    spec = _spec(order.package)
    request = deciding.request_of(order, spec, found.nodes)
    decision = engine.decide(request, found.nodes, found.cluster, found.weights, found.now_ms)
    return Report(
        name=order.name or spec.name,
        dry_run=True,
        decision=None,
        document=document(decision),
        placeable=bool(decision.placements),
    )


def _spec(package: Path) -> WorkloadSpec:
    source = package / workload.FILE_NAME if package.is_dir() else package
    return manifest.preview(workload.parse(_read(source), str(source)))


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            return opened.read(MAX_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{file} is not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise InvalidFile(f"{file} cannot be read: {error.strerror}") from error
