"""Check, show, apply and try policies, and approve what the one in force has deferred."""

from dataclasses import dataclass
from pathlib import Path

from wlctl import signing
from wlctl.errors import ApprovalRefused, GateDenied, InvalidFile, PolicyLocksOut
from wlctl.flows import approvals as judging
from wlctl.flows import gate, packages
from wlctl.flows.runtime import Runtime
from wlctl.flows.signing import KeyChoice, signing_key
from wlctl.gate import file
from wlctl.gate.default import can_be_changed
from wlctl.gate.judge import POLICY_UNREADABLE, judge
from wlctl.gate.work import work_of
from wlctl.ledger import approvals, nodes, policies
from wlctl.ledger.approvals import Approval
from wlctl.ledger.policies import StoredPolicy
from wlctl.model.fleet import Ruling
from wlctl.model.ids import PackageId
from wlctl.model.node import Node
from wlctl.model.policy import Action, Answer, Approver, GateRequest, Policy, Unreadable
from wlctl.package import manifest

MAX_SIGNATURE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Applied:
    """What `policy apply` did.

    Attributes:
        is_new: It was not in force already, to the byte.
        keeps_author: Whoever applied it may apply another one.
    """

    stored: StoredPolicy
    policy: Policy
    is_new: bool
    keeps_author: bool


@dataclass(frozen=True, slots=True)
class Trial:
    """What the gate would answer."""

    package_id: PackageId
    name: str
    request: GateRequest
    node: Node
    answer: Answer


def check(path: Path) -> Policy:
    """Read a policy file and find every kind of mistake that can be seen in it.

    Raises:
        InvalidFile: There is one; file and path of the key are named.
        PolicyLocksOut: Nobody could ever put another one in force.
    """
    return _checked(path)[1]


def show(rt: Runtime) -> StoredPolicy:
    """Return the policy in force.

    Raises:
        GateDenied: It cannot be read, so nothing but teardown is permitted.
    """
    with rt.ledger.read() as tx:
        stored = policies.in_force(tx)
    if isinstance(stored, Unreadable):
        raise _unreadable(stored)
    return stored


def apply(rt: Runtime, path: Path) -> Applied:
    """Put the policy of a file in force; chained with its hash. What is in force is nothing to do.

    Raises:
        InvalidFile, PolicyLocksOut: As `check`; the policy in force stays.
        GateDenied: Whoever runs this may not.
    """
    text, policy = _checked(path)
    own = GateRequest(Action.POLICY_APPLY, rt.author.principal)
    keeps_author = judge(policy, (), own).verdict.ruling is Ruling.ALLOWED
    with rt.ledger.read() as tx:
        stored = policies.in_force(tx)
    if not isinstance(stored, Unreadable) and stored.text == text:
        return Applied(stored, policy, is_new=False, keeps_author=keeps_author)
    with gate.permitted(rt, Action.POLICY_APPLY, policies.digest_of(text)[:12]) as tx:
        stored = policies.apply(tx, text)
    return Applied(stored, policy, is_new=True, keeps_author=keeps_author)


def try_out(
    rt: Runtime,
    package: Path,
    node_name: str,
    *,
    action: str = Action.PLACE,
    principal: str = "",
    project: str = "",
    emulated: bool = False,
    policy_file: Path | None = None,
) -> Trial:
    """Answer as the gate would, for a package on a node; nothing is recorded.

    Args:
        package: As `place` takes it; verified, and stored nowhere.
        action: A word that is no action is judged, too.
        principal: Who would ask; empty for whoever runs this.
        emulated: As if the emulated variant had been chosen.
        policy_file: Instead of the policy in force.

    Raises:
        UnknownName: The fleet has no such node, or the store no such package.
        WlctlError: The package is not what its signer signed.
    """
    verified = packages.inspect(rt, package)
    spec = manifest.spec_of(verified.manifest, [signer.fingerprint for signer in verified.signers])
    with rt.ledger.read() as tx:
        node = nodes.get(tx, node_name)
        policy = _checked(policy_file)[1] if policy_file else gate.policy_of(tx)
        revoked = gate.revoked_of(tx)
    request = GateRequest(
        action=action,
        principal=principal or rt.author.principal,
        about=spec.name,
        node=node.name,
        tier=node.tier,
        work=work_of(spec, project=project, emulated=emulated),
    )
    answer = judge(policy, revoked, request)
    return Trial(verified.manifest.package_id, spec.name, request, node, answer)


def find_deferred(rt: Runtime, prefix: str) -> Approval:
    """Find what was deferred under an id, or the beginning of one.

    Raises:
        UnknownName, AmbiguousName: As `ledger.approvals.find`.
    """
    with rt.ledger.read() as tx:
        return approvals.find(tx, rt.ledger.installation, prefix)


def approve(
    rt: Runtime,
    prefix: str,
    *,
    choice: KeyChoice | None = None,
    signature_file: Path | None = None,
) -> tuple[Approval, Approver]:
    """Record an approver's signature of what was deferred.

    Args:
        choice: Of the key that signs here and now; or else:
        signature_file: Made of `Approval.text` by `ssh-keygen -Y sign -n wlctl-approval`.

    Raises:
        ApprovalRefused: It would not count; nothing was recorded.
        GateDenied: Whoever runs this may not approve.
        WlctlError: The key or the file cannot be read.
    """
    found = find_deferred(rt, prefix)
    if signature_file is not None:
        armored = _signature(signature_file)
    else:
        assert choice is not None, "a key or a signature"
        armored = signing.sign(found.text.encode(), signing_key(choice), judging.NAMESPACE)
    with gate.permitted(rt, Action.APPROVE, found.id) as tx:
        approval = approvals.find(tx, rt.ledger.installation, found.id)
        policy, revoked = gate.policy_of(tx), gate.revoked_of(tx)
        assert isinstance(policy, Policy), "what cannot be read permits nothing"
        assert not isinstance(revoked, Unreadable), "nor does this"
        approver = judging.judge(policy, revoked, approval, armored, tx.now_ms)
        if isinstance(approver, str):
            raise ApprovalRefused(f"{approval.id} is not approved: {approver}")
        approvals.approve(tx, approval, approver=approver.principal, signature=armored)
    return approval, approver


def _checked(path: Path) -> tuple[str, Policy]:
    text = _read(path)
    policy = file.parse(text, str(path))
    for n, approver in enumerate(policy.approvers):
        signing.parse_public_key(approver.key, f"{path}: approver[{n}].key")
    if not can_be_changed(policy):
        raise PolicyLocksOut(
            f"{path} permits nobody to put another policy in force",
            hint='give somebody a permit with the action "policy.apply"',
        )
    return text, policy


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as opened:
            return opened.read(file.MAX_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{path} is not UTF-8 at byte {error.start}") from None
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror}") from error


def _signature(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            return opened.read(MAX_SIGNATURE_BYTES).decode("ascii", errors="replace")
    except OSError as error:
        raise InvalidFile(f"{path} cannot be read: {error.strerror}") from error


def _unreadable(found: Unreadable) -> GateDenied:
    return GateDenied(
        f"nothing but teardown is permitted ({POLICY_UNREADABLE}: {found.why})",
        hint="`wlctl audit verify` says what was changed; put a backup of the ledger in its place",
    )
