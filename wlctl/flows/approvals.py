"""Approvals: which there are, and whether one counts, when it is given and when it is used."""

from collections.abc import Collection, Iterable

from wlctl import signing
from wlctl.flows.runtime import Runtime
from wlctl.ledger import approvals, instances
from wlctl.ledger.approvals import Approval, Standing
from wlctl.model.ids import InstanceId
from wlctl.model.package import fingerprint
from wlctl.model.policy import Approver, Policy

NAMESPACE = "wlctl-approval"
"""What the signature is for: one that was made for a package approves nothing."""


def ls(rt: Runtime, *, everything: bool = False) -> list[tuple[Approval, Standing]]:
    """List what was deferred and can still be carried out, the newest first.

    Args:
        everything: What was carried out or has expired, too.
    """
    now_ms = rt.now_ms()
    with rt.ledger.read() as tx:
        found = [(one, one.standing(now_ms)) for one in approvals.ls(tx, rt.ledger.installation)]
    return [pair for pair in found if everything or pair[1] in {Standing.OPEN, Standing.APPROVED}]


def called(rt: Runtime, found: Iterable[Approval]) -> dict[str, str]:
    """Give the name of each copy that a request is about: a request has its id."""
    about = {InstanceId(str(one.request.get("about", ""))) for one in found}
    with rt.ledger.read() as tx:
        return {one.id: one.name for one in instances.of_ids(tx, about)}


def judge(
    policy: Policy, revoked: Collection[str], approval: Approval, armored: str, now_ms: int
) -> Approver | str:
    """Say who approves with a signature, or why it does not count.

    It must be of this very request, by an approver of the policy in force whose key is not revoked
    and whose login and key are not those of who asked, in time, and not used before.
    """
    if approval.spent_at_ms is not None:
        return "it was used already"
    if approval.expires_at_ms <= now_ms:
        return "it has expired; the command that was deferred, typed again, gets a new id"
    asked = approvals.digest_of(approval.request), approval.request.get("principal")
    if asked != (approval.request_sha256, approval.principal):
        return "the request is not the one that was deferred"
    reading = signing.read_signature(armored.encode(), approval.text.encode(), NAMESPACE)
    if reading.fault is not None:
        return f"the signature does not fit: {reading.fault}"
    if reading.fingerprint in revoked:
        return f"{reading.fingerprint} is revoked"
    for approver in policy.approvers:
        if fingerprint(approver.key) == reading.fingerprint:
            if approver.principal == approval.principal:
                return f"{approver.principal} asked for it, so somebody else has to approve it"
            return approver
    return f"{reading.fingerprint} is the key of no approver that the policy names"
