"""Whether a ledger is in good order below its chain: file, pages, references, tables."""

from collections.abc import Iterator
from dataclasses import dataclass

from wlctl.errors import LedgerDamaged
from wlctl.ledger import chain
from wlctl.ledger.backend import Finding
from wlctl.ledger.migrate import revision_of
from wlctl.ledger.store import Ledger, failures_said
from wlctl.model.event import Checkpoint


@dataclass(frozen=True, slots=True)
class Health:
    """What was looked at, in that order.

    Attributes:
        head: The newest event; its links are `audit verify`'s to follow. None if unreadable.
    """

    findings: tuple[Finding, ...]
    head: Checkpoint | None

    @property
    def good(self) -> bool:
        """Whether everything is as it must be."""
        return all(finding.good for finding in self.findings)


def check(ledger: Ledger) -> Health:
    """Look at everything that `audit verify` does not; what is damaged is found, never raised."""
    findings = list(_found_below(ledger))
    head = None
    try:
        with ledger.read() as tx:
            findings.append(Finding("revision", good=True, detail=revision_of(tx.conn)))
            seq, digest = chain.head(tx)
            head = Checkpoint(ledger.installation, ledger.epoch, seq, digest)
            findings.append(Finding("chain_head", good=seq > 0, detail=f"{seq} {digest}"))
    except LedgerDamaged as damage:
        findings.append(Finding("tables", good=False, detail=damage.message))
    return Health(tuple(findings), head)


def _found_below(ledger: Ledger) -> Iterator[Finding]:
    try:
        with failures_said(ledger.backend):
            yield from ledger.backend.examine()
    except LedgerDamaged as damage:
        yield Finding("integrity", good=False, detail=damage.message)
