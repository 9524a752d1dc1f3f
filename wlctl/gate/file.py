"""What does a policy file say? Read strictly: every key known, every word one there is."""

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from wlctl.errors import InvalidFile
from wlctl.gate.judge import BUILT_IN
from wlctl.gate.table import Table, shown
from wlctl.model.node import Tier
from wlctl.model.policy import ANY, Action, Approver, Ceiling, Deny, Permit, Policy
from wlctl.model.workload import Kind

MAX_CHARACTERS = 256 * 1024
MAX_RULES = 1000
MAX_CORES = 4096

_TOP = ("permit", "deny", "effect", "approver")
_PERMIT = (
    *("id", "actions", "principals", "kinds", "projects", "min_node_tier", "allow_secrets"),
    *("allow_emulated", "allow_root", "capabilities", "accelerators", "max_cpu"),
)
_DENY = ("id", "actions", "reason")
_EFFECT = ("ceiling", "human_approval")
_APPROVER = ("principal", "key")

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_KEY = re.compile(r"[a-z0-9@.-]{1,64} [A-Za-z0-9+/]{16,4096}={0,2}")

_ACTIONS = tuple(action.value for action in Action)
_KINDS = (*(kind.value for kind in Kind), ANY)
_TIERS = tuple(tier.word for tier in Tier)


def parse(text: str, source: str = "policy") -> Policy:
    """Read a policy.

    Args:
        text: The whole file, TOML.
        source: How the file is called in messages.

    Raises:
        InvalidFile: It is too long or no TOML, a key is unknown or missing, a value is not what it
            must be, an action does not exist or is a bare `*`, or two rules have one id. The
            message names the key's path, what was found and what is allowed.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidFile(f"{source}: at most {MAX_CHARACTERS} characters, found {len(text)}")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidFile(f"{source} is not TOML: {error}") from error
    except RecursionError as error:
        raise InvalidFile(f"{source} is nested too deeply") from error
    return from_tables(found, source)


def from_tables(found: Mapping[str, object], source: str) -> Policy:
    """Read a policy that was already taken apart.

    Args:
        found: As tomllib gives it.
        source: How it is called in messages.

    Raises:
        InvalidFile: As `parse`, but for text that is no TOML.
    """
    top = Table(found, "", _TOP, source)
    permits = top.tables("permit", _PERMIT, MAX_RULES)
    denies = top.tables("deny", _DENY, MAX_RULES)
    ids: set[str] = set()
    policy = Policy(
        permits=tuple(_permit(table, ids) for table in permits),
        denies=tuple(_deny(table, ids) for table in denies),
        ceiling=_ceiling(top.table("effect", _EFFECT)) if top.has("effect") else None,
        approvers=tuple(map(_approver, top.tables("approver", _APPROVER, MAX_RULES))),
    )
    _check_approvers(policy, top)
    return policy


def _permit(table: Table, ids: set[str]) -> Permit:
    default = Permit("", (), ())
    return Permit(
        id=_id(table, ids),
        actions=_actions(table),
        principals=table.texts("principals"),
        kinds=table.words("kinds", _kind, _KINDS) if table.has("kinds") else default.kinds,
        projects=table.texts("projects") if table.has("projects") else default.projects,
        min_node_tier=(
            table.word("min_node_tier", _tier, _TIERS)
            if table.has("min_node_tier")
            else default.min_node_tier
        ),
        allow_secrets=table.flag("allow_secrets"),
        allow_emulated=table.flag("allow_emulated"),
        allow_root=table.flag("allow_root"),
        capabilities=table.optional_texts("capabilities"),
        accelerators=table.optional_texts("accelerators"),
        max_cpu_cores=table.number("max_cpu", 0, MAX_CORES) if table.has("max_cpu") else None,
    )


def _deny(table: Table, ids: set[str]) -> Deny:
    return Deny(_id(table, ids), _actions(table), table.text("reason"))


def _id(table: Table, ids: set[str]) -> str:
    found = table.text("id")
    if _ID.fullmatch(found) is None:
        allowed = "lower-case letters, digits and . _ - after the first, up to 64"
        raise table.fault("id", f"found {shown(found)}; allowed are {allowed}")
    if found in BUILT_IN:
        raise table.fault("id", f"{found} is a rule of the gate itself; choose another")
    if found in ids:
        raise table.fault("id", f"{found} is there twice; verdicts name the rule that decided")
    ids.add(found)
    return found


def _actions(table: Table) -> tuple[Action, ...]:
    if ANY in table.texts("actions"):
        raise table.fault("actions", f'"{ANY}" names no action; list each one that is meant')
    return table.words("actions", _action, _ACTIONS)


def _ceiling(table: Table) -> Ceiling:
    return Ceiling(table.number("ceiling", 0, 1), table.flag("human_approval"))


def _approver(table: Table) -> Approver:
    principal, key = table.text("principal"), table.text("key")
    if principal == ANY:
        raise table.fault("principal", "an approver is one login")
    spelled = " ".join(key.split()[:2])
    if _KEY.fullmatch(spelled) is None:
        raise table.fault("key", 'expected a public key, "TYPE BASE64"')
    return Approver(principal, spelled)


def tables_of(policy: Policy) -> dict[str, Any]:
    """Write a policy as `from_tables` reads it, without its approvers."""
    tables: dict[str, Any] = {
        "permit": [_permit_table(permit) for permit in policy.permits],
        "deny": [
            {"id": deny.id, "actions": list(map(str, deny.actions)), "reason": deny.reason}
            for deny in policy.denies
        ],
    }
    if policy.ceiling is not None:
        tables["effect"] = {
            "ceiling": policy.ceiling.magnitude,
            "human_approval": policy.ceiling.human_approval,
        }
    return tables


def _permit_table(permit: Permit) -> dict[str, Any]:
    table: dict[str, Any] = {
        "id": permit.id,
        "actions": list(map(str, permit.actions)),
        "principals": list(permit.principals),
        "kinds": list(permit.kinds),
        "projects": list(permit.projects),
        "min_node_tier": permit.min_node_tier.word,
        "allow_secrets": permit.allow_secrets,
        "allow_emulated": permit.allow_emulated,
        "allow_root": permit.allow_root,
        "capabilities": list(permit.capabilities),
        "accelerators": list(permit.accelerators),
    }
    if permit.max_cpu_cores is not None:
        table["max_cpu"] = permit.max_cpu_cores
    return table


def _check_approvers(policy: Policy, top: Table) -> None:
    for n, approver in enumerate(policy.approvers):
        before = policy.approvers[:n]
        if any(approver.principal == other.principal for other in before):
            raise top.fault(f"approver[{n}].principal", f"{approver.principal} is there twice")
        if any(approver.key == other.key for other in before):
            raise top.fault(f"approver[{n}].key", "two approvers cannot have one key")


def _kind(word: str) -> str | None:
    return word if word in _KINDS else None


def _tier(word: str) -> Tier | None:
    return Tier[word.upper()] if word in _TIERS else None


def _action(word: str) -> Action | None:
    return Action(word) if word in _ACTIONS else None
