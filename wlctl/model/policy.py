"""The policy's nouns: what the gate is asked, what permits and forbids it, and what it could do."""

import math
from dataclasses import dataclass
from enum import StrEnum

from wlctl.model.fleet import Verdict
from wlctl.model.ids import NodeName
from wlctl.model.node import Tier
from wlctl.model.workload import Kind

ANY = "*"
"""In a list of a policy: all there are. No list of actions may have it."""


class Action(StrEnum):
    """What the gate is asked about; there is nothing else that it could be asked."""

    PLACE = "place"
    """Put a copy on a node."""
    START = "start"
    """Start a copy that is there."""
    STOP = "stop"
    """End every run of a copy; no denial but an explicit one keeps anybody from it."""
    UNLOAD = "unload"
    """End a copy and remove it; no denial but an explicit one keeps anybody from it."""
    SWAP = "swap"
    """Put another version in the place of a copy."""
    MOVE = "move"
    """Put a copy on another node, and end it where it was."""
    RUN = "run"
    """Run a command beside a copy."""
    CORDON = "cordon"
    """Take nothing new on a node; no denial but an explicit one keeps anybody from it."""
    SLOT_BOOT = "slot.boot"
    """Boot a runner's slot on a node."""
    NODE_ADD = "node.add"
    """Take a machine into the fleet."""
    NODE_TIER = "node.tier"
    """Say how far a node is trusted."""
    NODE_CONTAINMENT = "node.containment"
    """Say how well a node must hold its workloads."""
    NODE_REKEY = "node.rekey"
    """Take another identity for a node."""
    NODE_ENFORCE = "node.enforce"
    """Let a node verify what it is sent, or no longer."""
    ATTEST_DEAD = "attest-dead"
    """Vouch that a node runs nothing any more."""
    SIGNER_ADD = "signer.add"
    """Accept somebody's signatures."""
    SIGNER_RM = "signer.rm"
    """Accept somebody's signatures no longer."""
    POLICY_APPLY = "policy.apply"
    """Put another policy in force."""
    REVOKE = "revoke"
    """Forbid a package, a key or a file everywhere."""
    UNREVOKE = "unrevoke"
    """Take a revocation back."""
    FORCE_FREE = "force-free"
    """Give up what a slot holds, without proof."""
    LEDGER_REBUILD = "ledger.rebuild"
    """Make a ledger out of what nodes keep."""
    APPROVE = "approve"
    """Approve what the gate has deferred."""


WORK_ACTIONS = frozenset({Action.PLACE, Action.START, Action.SWAP, Action.MOVE, Action.RUN})
"""These start what a package says, so they name one; without it the question is about nothing."""

TEARDOWN = frozenset({Action.STOP, Action.UNLOAD, Action.CORDON})
"""These only shrink what runs: a mistake in the policy must never keep something running."""

TRUST_ACTIONS = frozenset(
    {
        Action.NODE_ADD,
        Action.NODE_TIER,
        Action.NODE_CONTAINMENT,
        Action.NODE_REKEY,
        Action.NODE_ENFORCE,
        Action.ATTEST_DEAD,
        Action.SIGNER_ADD,
        Action.SIGNER_RM,
        Action.POLICY_APPLY,
        Action.REVOKE,
        Action.UNREVOKE,
        Action.FORCE_FREE,
        Action.LEDGER_REBUILD,
        Action.APPROVE,
    }
)
"""These change what is trusted; they have neither a node nor a package to be judged by."""


@dataclass(frozen=True, slots=True)
class Permit:
    """What allows an action: every condition must hold.

    Attributes:
        actions: Never empty.
        kinds: Of workload, or `*`.
        principals: Who asks, or `*`; never empty.
        projects: Of the order, or `*`; an order without one needs `*`.
        capabilities: Which Linux capabilities a workload may have, or `*`.
        accelerators: Which accelerators it may ask for, or `*`.
        max_cpu_cores: None for no limit.
    """

    id: str
    actions: tuple[Action, ...]
    principals: tuple[str, ...]
    kinds: tuple[str, ...] = (ANY,)
    projects: tuple[str, ...] = (ANY,)
    min_node_tier: Tier = Tier.PAIRED
    allow_secrets: bool = False
    allow_emulated: bool = False
    allow_root: bool = False
    capabilities: tuple[str, ...] = ()
    accelerators: tuple[str, ...] = ()
    max_cpu_cores: float | None = None


@dataclass(frozen=True, slots=True)
class Deny:
    """What forbids an action, whoever asks and whatever permits it."""

    id: str
    actions: tuple[Action, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The greatest magnitude of an effect that is let through.

    Attributes:
        magnitude: 0 to 1.
        human_approval: What is over it is deferred to an approver, instead of denied.
    """

    magnitude: float
    human_approval: bool = False


@dataclass(frozen=True, slots=True)
class Approver:
    """Whose signature lets a deferred action through.

    Attributes:
        principal: Their login: nobody approves what they asked for themselves.
        key: Their public key, `TYPE BASE64`; no two approvers have the same.
    """

    principal: str
    key: str


@dataclass(frozen=True, slots=True)
class Policy:
    """What is permitted; everything else is denied."""

    permits: tuple[Permit, ...] = ()
    denies: tuple[Deny, ...] = ()
    ceiling: Ceiling | None = None
    approvers: tuple[Approver, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What stands in the place of a policy, or a revocation list, that cannot be read."""

    why: str


@dataclass(frozen=True, slots=True)
class Work:
    """What a package would do on a node, as the gate sees it; derived, never claimed by who asks.

    Attributes:
        refs: What vouches for it and what a revocation may name: package id, keys, hashes.
        unsigned: Only in decisions from a saved fleet.
        emulated: It would run through an emulator.
        root: It would run as root.
        capabilities: Linux capabilities it is given, ascending.
        accelerators: Of every variant and of what the order adds, ascending.
    """

    kind: Kind
    refs: tuple[str, ...]
    project: str = ""
    unsigned: bool = False
    secrets: bool = False
    emulated: bool = False
    root: bool = False
    capabilities: tuple[str, ...] = ()
    accelerators: tuple[str, ...] = ()
    cpu_cores: float = 0.0


@dataclass(frozen=True, slots=True)
class GateRequest:
    """One question to the gate.

    Attributes:
        action: One of `Action`; anything else is denied.
        principal: Who asks: a login, or a role of the database.
        about: What it is about, in words that are the same whenever the same is asked.
        node: None for what has none.
        tier: Of that node.
        work: None for what starts nothing.
    """

    action: str
    principal: str
    about: str = ""
    node: NodeName | None = None
    tier: Tier | None = None
    work: Work | None = None


@dataclass(frozen=True, slots=True)
class Effect:
    """How much an action could do, in parts of 0 to 1."""

    risk: float = 0.0
    security: float = 0.0
    privacy: float = 0.0
    novelty: float = 0.0
    fairness: float = 0.0

    @property
    def parts(self) -> dict[str, float]:
        """The parts by name, in their order."""
        return {
            "risk": self.risk,
            "security": self.security,
            "privacy": self.privacy,
            "novelty": self.novelty,
            "fairness": self.fairness,
        }

    @property
    def magnitude(self) -> float:
        """The Euclidean norm of the parts over that of all ones: 0 to 1, to six decimals."""
        total = sum(part * part for part in self.parts.values())
        return round(math.sqrt(total / len(self.parts)), 6)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the gate answers.

    Attributes:
        verdict: What holds.
        effect: What the action could do.
        waived: What would have held, had the action not been a teardown; None for all others.
    """

    verdict: Verdict
    effect: Effect
    waived: Verdict | None = None
