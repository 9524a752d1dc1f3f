"""Does the policy permit it? Steps in a fixed order: the first that fails decides, and is named."""

from collections.abc import Callable, Collection, Iterator

from wlctl.gate.effect import effect_of
from wlctl.model.fleet import Ruling, Verdict
from wlctl.model.node import Tier
from wlctl.model.policy import (
    ANY,
    TEARDOWN,
    TRUST_ACTIONS,
    WORK_ACTIONS,
    Action,
    Answer,
    Ceiling,
    Effect,
    GateRequest,
    Permit,
    Policy,
    Unreadable,
    Work,
)

POLICY_UNREADABLE = "policy-unreadable"
REVOCATIONS_UNREADABLE = "revocations-unreadable"
UNKNOWN_ACTION = "unknown-action"
INVALID_CONTEXT = "invalid-context"
REVOKED = "revoked"
SECRETS_NEED_TRUSTED = "secrets-need-trusted"
NO_PERMIT = "no-permit"
CEILING = "ceiling"
APPROVED = "approved"
TEARDOWN_WAIVER = "teardown-waiver"

BUILT_IN = frozenset(
    {
        POLICY_UNREADABLE,
        REVOCATIONS_UNREADABLE,
        UNKNOWN_ACTION,
        INVALID_CONTEXT,
        REVOKED,
        SECRETS_NEED_TRUSTED,
        NO_PERMIT,
        CEILING,
        APPROVED,
        TEARDOWN_WAIVER,
    }
)
"""Rules that are not the policy's own, so none of its own may be called so."""

Revoked = Collection[str] | Unreadable


def judge(policy: Policy | Unreadable, revoked: Revoked, request: GateRequest) -> Answer:
    """Answer one question.

    Args:
        policy: The one in force.
        revoked: Whatever is revoked: package ids, signer keys, artifact hashes.
        request: What is asked, by whom.
    """
    effect = effect_of(request)
    verdict, is_explicit = _judge(policy, revoked, request, effect)
    if verdict.ruling is Ruling.ALLOWED or is_explicit or request.action not in TEARDOWN:
        return Answer(verdict, effect)
    words = f"{request.action} only shrinks what runs; without this: {verdict.rule}"
    return Answer(Verdict(Ruling.ALLOWED, TEARDOWN_WAIVER, words), effect, waived=verdict)


def _judge(
    policy: Policy | Unreadable, revoked: Revoked, request: GateRequest, effect: Effect
) -> tuple[Verdict, bool]:
    """Take the steps; the second value tells whether an explicit deny decided."""
    if request.action not in set(Action):
        return _denied(UNKNOWN_ACTION, f"there is no action {request.action}"), False
    if isinstance(policy, Unreadable):
        return _denied(POLICY_UNREADABLE, policy.why), False
    fault = _context_fault(request)
    if fault:
        return _denied(INVALID_CONTEXT, fault), False
    found = _revocation(revoked, request)
    if found is not None:
        return found, False
    for deny in policy.denies:
        if request.action in deny.actions:
            return _denied(deny.id, deny.reason), True
    return _permitted(policy, request, effect), False


def _context_fault(request: GateRequest) -> str:
    if request.action not in WORK_ACTIONS:
        return ""
    work = request.work
    if work is None or not (any(work.refs) or work.unsigned):
        return f"a {request.action} names a package, key or hash"
    if request.node is None or request.tier is None:
        return f"a {request.action} names a node"
    return ""


def _revocation(revoked: Revoked, request: GateRequest) -> Verdict | None:
    if isinstance(revoked, Unreadable):
        return _denied(REVOCATIONS_UNREADABLE, revoked.why)
    if request.work is None or request.action in TRUST_ACTIONS:
        return None
    named = sorted(set(revoked).intersection(request.work.refs))
    return _denied(REVOKED, f"{named[0]} is revoked") if named else None


def _permitted(policy: Policy, request: GateRequest, effect: Effect) -> Verdict:
    work = request.work
    if (
        work is not None
        and request.action not in TRUST_ACTIONS
        and work.secrets
        and request.tier is not Tier.TRUSTED
    ):
        return _denied(SECRETS_NEED_TRUSTED, "only a trusted node may receive secrets")
    missing: list[str] = []
    for permit in policy.permits:
        if request.action in permit.actions:
            fault = next(_unmet(permit, request), "")
            if not fault:
                return _under(policy.ceiling, permit, effect)
            missing.append(f"{permit.id}: {fault}")
    return _denied(NO_PERMIT, "; ".join(missing) or f"no permit names {request.action}")


def _under(ceiling: Ceiling | None, permit: Permit, effect: Effect) -> Verdict:
    if ceiling is None or effect.magnitude <= ceiling.magnitude:
        return Verdict(Ruling.ALLOWED, permit.id)
    words = f"magnitude {effect.magnitude:g} is over {ceiling.magnitude:g}"
    if ceiling.human_approval:
        return Verdict(Ruling.DEFERRED, CEILING, f"{words}: an approver decides")
    return _denied(CEILING, words)


def _unmet(permit: Permit, request: GateRequest) -> Iterator[str]:
    """Say which conditions of a permit do not hold; those about what is not there do."""
    if not _among(request.principal, permit.principals):
        yield f"not for {request.principal}"
    if request.action in TRUST_ACTIONS:
        return
    if request.tier is not None and request.tier < permit.min_node_tier:
        yield f"the node is {request.tier.word}, not {permit.min_node_tier.word}"
    if request.work is not None:
        for condition in _CONDITIONS:
            if fault := condition(permit, request.work):
                yield fault


def _kind(permit: Permit, work: Work) -> str:
    return "" if _among(work.kind.value, permit.kinds) else f"not for a {work.kind.value}"


def _project(permit: Permit, work: Work) -> str:
    if _among(work.project, permit.projects):
        return ""
    return f"not for project {work.project}" if work.project else "only for a project"


def _secrets(permit: Permit, work: Work) -> str:
    return "no secrets" if work.secrets and not permit.allow_secrets else ""


def _emulated(permit: Permit, work: Work) -> str:
    return "nothing emulated" if work.emulated and not permit.allow_emulated else ""


def _root(permit: Permit, work: Work) -> str:
    return "nothing as root" if work.root and not permit.allow_root else ""


def _capabilities(permit: Permit, work: Work) -> str:
    over = [one for one in work.capabilities if not _among(one, permit.capabilities)]
    return f"no capability {over[0]}" if over else ""


def _accelerators(permit: Permit, work: Work) -> str:
    over = [one for one in work.accelerators if not _among(one, permit.accelerators)]
    return f"no accelerator {over[0]}" if over else ""


def _cpu(permit: Permit, work: Work) -> str:
    most = permit.max_cpu_cores
    if most is None or 0 < work.cpu_cores <= most:
        return ""
    if not work.cpu_cores:  # nothing asked for is nothing limited
        return f"it sets no limit of cores, at most {most:g}"
    return f"{work.cpu_cores:g} cores are over {most:g}"


_CONDITIONS: tuple[Callable[[Permit, Work], str], ...] = (
    _kind,
    _project,
    _secrets,
    _emulated,
    _root,
    _capabilities,
    _accelerators,
    _cpu,
)


def _among(word: str, listed: Collection[str]) -> bool:
    return ANY in listed or (bool(word) and word in listed)


def _denied(rule: str, reason: str) -> Verdict:
    return Verdict(Ruling.DENIED, rule, reason)
