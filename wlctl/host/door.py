"""What is said at the door of an enforced node: which action is asked for, and how it says no."""

import hashlib
import re

from wlctl.errors import DoorRefused

REQUEST = "wlctl-action"

_REFUSAL = re.compile(rb"(?:^|\n)refused (?:[0-9a-f]+|-)\nwhy ([a-z]{1,32})\n")

_REASONS = {
    "form": "the node's doorkeeper takes no shell, only actions that it lists",
    "unlisted": "this action is not on the node's list",
    "unsafe": "what the doorkeeper goes by in /etc/wlctl can be written by others than root",
    "short": "the action did not arrive whole at the doorkeeper",
}


def request(text: bytes, nonce: str) -> str:
    """Write the command that asks for an action, whose bytes follow on its stdin."""
    return f"{REQUEST} {digest(text)} {len(text)} {nonce}"


def digest(text: bytes) -> str:
    """Name an action's text as a doorkeeper's list does."""
    return hashlib.sha256(text).hexdigest()


def refusal(seen: bytes) -> DoorRefused | None:
    """Read a doorkeeper's no out of what came instead of an action's first word, if it is one."""
    found = _REFUSAL.search(seen)
    if found is None:
        return None
    word = found[1].decode("ascii")
    return DoorRefused(
        _REASONS.get(word, f"the node's doorkeeper says {word}"),
        hint="`wlctl node enforce NODE --as LOGIN` puts node and ledger in step",
    )
