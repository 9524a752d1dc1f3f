"""The policy that `init` puts in force, and whether a policy could ever be changed again."""

from wlctl.gate.judge import judge
from wlctl.model.fleet import Ruling
from wlctl.model.policy import ANY, TRUST_ACTIONS, Action, GateRequest, Policy

_TEXT = """\
# The policy of this ledger. What no permit allows is denied. `wlctl policy apply FILE` puts another
# one in force; `wlctl policy check FILE` says what is wrong with it first.

# Whoever made this ledger may change what it trusts: nodes, signers, revocations, this policy.
# Other logins get such a right by being named in `principals`.
[[permit]]
id = "owner"
actions = [
{trust}]
principals = [{principal}]

# Everybody who can use this ledger may run signed work on nodes that you have paired. It has no
# secrets, no root, no Linux capabilities and no emulator; write a permit for what needs more.
# `stop`, `unload` and `cordon` only shrink what runs: no missing permit keeps anybody from them.
# They are listed so that a waiver in the chain means that somebody took them out.
[[permit]]
id = "signed-work"
actions = [
  "place", "start", "swap", "move", "run", "slot.boot",
  "stop", "unload", "cordon",
]
principals = ["*"]
kinds = ["*"]
projects = ["*"]
min_node_tier = "paired"
accelerators = ["*"]
"""

_NOBODY = "\0"
"""No login is called so: it stands for whoever `*` means."""


def default_text(principal: str) -> str:
    """Write the policy that a ledger begins with.

    Args:
        principal: Who made the ledger.
    """
    trust = "".join(f'  "{action}",\n' for action in Action if action in TRUST_ACTIONS)
    return _TEXT.format(trust=trust, principal=_basic_string(principal))


def can_be_changed(policy: Policy) -> bool:
    """Answer whether anybody is permitted to put another policy in force."""
    named = {name for permit in policy.permits for name in permit.principals}
    return any(
        judge(
            policy, (), GateRequest(Action.POLICY_APPLY, _NOBODY if name == ANY else name)
        ).verdict.ruling
        is Ruling.ALLOWED
        for name in named
    )


def _basic_string(text: str) -> str:
    """Write a TOML string; a login may be anything."""
    escaped = "".join(
        one if " " <= one <= "~" and one not in '"\\' else f"\\U{ord(one):08x}" for one in text
    )
    return f'"{escaped}"'
