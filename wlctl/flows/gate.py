"""Ask the gate, where the answer is acted on: inside the transaction that records the act.

Verdicts about verbs are chained, waivers with what they waived; so is every denial. What a verdict
allowed that changes trust needs no event of its own: the change has one.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from wlctl.errors import GateDeferred, GateDenied, InvalidFile, WlctlError
from wlctl.flows import approvals as judging
from wlctl.flows import witnesses
from wlctl.flows.runtime import Runtime
from wlctl.gate import file
from wlctl.gate.judge import APPROVED, judge
from wlctl.ledger import approvals, chain, policies, revocations
from wlctl.ledger.approvals import Approval
from wlctl.ledger.store import ReadTx, WriteTx
from wlctl.model.event import Json
from wlctl.model.fleet import NodeView, Ruling, Verdict
from wlctl.model.instance import Instance
from wlctl.model.node import Node, Tier
from wlctl.model.policy import (
    TRUST_ACTIONS,
    Action,
    Answer,
    GateRequest,
    Policy,
    Unreadable,
    Work,
)

NodeGate = Callable[[Node | NodeView], Verdict]


def policy_of(tx: ReadTx) -> Policy | Unreadable:
    """Read the policy in force."""
    stored = policies.in_force(tx)
    if isinstance(stored, Unreadable):
        return stored
    try:
        return file.parse(stored.text, "the policy in force")
    except InvalidFile as failure:
        return Unreadable(failure.message)


def revoked_of(tx: ReadTx) -> frozenset[str] | Unreadable:
    """Read whatever is revoked: package ids, fingerprints of keys, hashes of files."""
    found = revocations.in_force(tx)
    return found if isinstance(found, Unreadable) else found.refs


def placing(rt: Runtime, tx: ReadTx, work: Work) -> NodeGate:
    """Answer for every node whether `work` may be placed on it, by the policy in force."""
    return by_tier(policy_of(tx), revoked_of(tx), rt.author.principal, work)


def by_tier(
    policy: Policy | Unreadable,
    revoked: frozenset[str] | Unreadable,
    principal: str,
    work: Work,
) -> NodeGate:
    """Answer for every node whether `work` may be placed on it; nodes of one tier are judged once.

    A deferred placement counts as denied; its verdict says why it was deferred.
    """
    known: dict[Tier, Verdict] = {}

    def verdict_of(node: Node | NodeView) -> Verdict:
        found = known.get(node.tier)
        if found is None:
            request = GateRequest(
                Action.PLACE, principal, node=node.name, tier=node.tier, work=work
            )
            found = known[node.tier] = judge(policy, revoked, request).verdict
        return found

    return verdict_of


@contextmanager
def permitted(
    rt: Runtime, action: Action, about: str = "", *, node: Node | None = None
) -> Iterator[WriteTx]:
    """Open the transaction in which `action` is recorded, once the gate has permitted it in it.

    Args:
        about: What is changed, in a word or two, for the chain and whoever reads the error.
        node: For an action on a node; what changes trust has none.

    Raises:
        GateDenied: It is not permitted; that is chained, and the block was not entered.
        GateDeferred: It is not permitted before somebody approves it; likewise.
        LedgerRolledBack, LedgerForked: The ledger is doubted, and `action` ends nothing.
    """
    with rt.ledger.write(rt.now_ms(), rt.author) as tx:
        witnesses.require_believed(tx, action)
        request = GateRequest(action, rt.author.principal, about)
        if node is not None:
            request = replace(request, node=node.name, tier=node.tier)
        answer, approval = _answer(rt, tx, request)
        is_allowed = answer.verdict.ruling is Ruling.ALLOWED
        if not is_allowed or action not in TRUST_ACTIONS:
            chain.append(tx, "policy.gate", _told(request, answer, approval))
        if is_allowed:
            yield tx
    if not is_allowed:
        raise refusal(request, answer.verdict, approval)


def require(rt: Runtime, action: Action, about: str = "", *, node: Node | None = None) -> None:
    """Ask before something slow is done for `action`; the transaction that records it asks again.

    Raises:
        GateDenied, GateDeferred, LedgerRolledBack, LedgerForked: As `permitted`.
    """
    with rt.ledger.read() as tx:
        witnesses.require_believed(tx, action)
        request = GateRequest(action, rt.author.principal, about)
        if node is not None:
            request = replace(request, node=node.name, tier=node.tier)
        verdict = judge(policy_of(tx), revoked_of(tx), request).verdict
    if verdict.ruling is not Ruling.ALLOWED:
        with permitted(rt, action, about, node=node):
            pass


def foreseen(rt: Runtime, tx: ReadTx, action: Action, about: str = "") -> WlctlError | None:
    """Answer how `require` would refuse; None where it would not. Nothing is chained.

    Raises:
        LedgerRolledBack, LedgerForked: The ledger is doubted, and `action` ends nothing.
    """
    witnesses.require_believed(tx, action)
    request = GateRequest(action, rt.author.principal, about)
    verdict = judge(policy_of(tx), revoked_of(tx), request).verdict
    return None if verdict.ruling is Ruling.ALLOWED else refusal(request, verdict)


def verb(
    rt: Runtime,
    tx: WriteTx,
    action: Action,
    *,
    instance: Instance,
    node: Node,
    work: Work | None = None,
) -> WlctlError | None:
    """Ask for a verb on a copy, and chain the verdict.

    Args:
        tx: In which the verb's intent is recorded when this returns None.
        work: What is started; None for a verb that starts nothing.

    Returns:
        None when it is permitted; else the refusal, to be raised or shown after the commit, so
        that the verdict is kept.

    Raises:
        LedgerRolledBack, LedgerForked: The ledger is doubted, and `action` ends nothing.
    """
    witnesses.require_believed(tx, action)
    request = GateRequest(
        action, rt.author.principal, instance.id, node=node.name, tier=node.tier, work=work
    )
    answer, approval = _answer(rt, tx, request)
    told: dict[str, Json] = {"instance": instance.id, "name": instance.name}
    chain.append(tx, "workload.gate", {**told, **_told(request, answer, approval)})
    if answer.verdict.ruling is Ruling.ALLOWED:
        return None
    shown = replace(request, about=instance.name)
    return refusal(shown, answer.verdict, approval)


def denies(
    rt: Runtime, tx: ReadTx, action: Action, *, instance: Instance, node: Node
) -> Verdict | None:
    """Answer what would keep a verb that starts nothing from being done; None for nothing.

    Nothing is chained, so what is tried again and again can ask here first.
    """
    request = GateRequest(action, rt.author.principal, instance.id, node=node.name, tier=node.tier)
    verdict = judge(policy_of(tx), revoked_of(tx), request).verdict
    return None if verdict.ruling is Ruling.ALLOWED else verdict


def refusal(request: GateRequest, verdict: Verdict, approval: Approval | None = None) -> WlctlError:
    """Put a verdict that is no yes into the words of an error."""
    what = f"{request.action} {request.about}".strip()
    why = f"{verdict.rule}: {verdict.reason}" if verdict.reason else verdict.rule
    if approval is not None:
        return GateDeferred(
            f"{what} needs an approver ({why})",
            hint=f"an approver runs `wlctl approve {approval.id}`, then type it again",
        )
    return GateDenied(
        f"{request.principal or 'nobody'} is not permitted to {what} ({why})",
        hint="`wlctl policy show` prints the policy in force",
    )


def _answer(rt: Runtime, tx: WriteTx, request: GateRequest) -> tuple[Answer, Approval | None]:
    """Judge; what is deferred passes with an approval, and gets an id to be approved without."""
    policy, revoked = policy_of(tx), revoked_of(tx)
    answer = judge(policy, revoked, request)
    if (
        answer.verdict.ruling is not Ruling.DEFERRED
        or isinstance(policy, Unreadable)
        or isinstance(revoked, Unreadable)
    ):
        return answer, None
    asked = request_json(request, rt.ledger.installation)
    approval = approvals.defer(tx, rt.new_token(), rt.ledger.installation, asked)
    if not approval.signature:
        return answer, approval
    approver = judging.judge(policy, revoked, approval, approval.signature, tx.now_ms)
    if isinstance(approver, str):
        return answer, approval
    approvals.spend(tx, approval)
    words = f"approved by {approver.principal}, {approval.id}"
    return replace(answer, verdict=Verdict(Ruling.ALLOWED, APPROVED, words)), approval


def request_json(request: GateRequest, installation: str) -> dict[str, Json]:
    """Write the whole request: what an approver's signature binds."""
    work = request.work
    return {
        "installation": installation,
        "action": str(request.action),
        "principal": request.principal,
        "about": request.about,
        "node": request.node,
        "tier": None if request.tier is None else request.tier.word,
        "work": None
        if work is None
        else {
            "kind": work.kind.value,
            "refs": list(work.refs),
            "project": work.project,
            "unsigned": work.unsigned,
            "secrets": work.secrets,
            "emulated": work.emulated,
            "root": work.root,
            "capabilities": list(work.capabilities),
            "accelerators": list(work.accelerators),
            "cpu_cores": work.cpu_cores,
        },
    }


def _told(request: GateRequest, answer: Answer, approval: Approval | None) -> dict[str, Json]:
    """Say what was asked and answered, for the chain."""
    told: dict[str, Json] = {
        "action": str(request.action),
        "about": request.about,
        **verdict_json(answer.verdict),
    }
    if answer.waived is not None:
        told["waived"] = verdict_json(answer.waived)
    if approval is not None:
        told["approval"] = approval.id
    if request.node is not None:
        told["node"] = request.node
    return told


def verdict_json(verdict: Verdict) -> dict[str, Json]:
    """Write a verdict."""
    return {"ruling": verdict.ruling.value, "rule": verdict.rule, "reason": verdict.reason}
