"""Names and ids, and the one rule for those that become a part of a path or a command."""

import re
from typing import NewType

NodeName = NewType("NodeName", str)
"""An operator's name for a node: the ledger's key, and what people type."""
InstanceId = NewType("InstanceId", str)
"""The ledger's id of one placed copy; never reused."""
PackageId = NewType("PackageId", str)
"""sha256 of the package's statement, 64 hex digits."""
DecisionId = NewType("DecisionId", str)
"""Hash of the decision's chain event, 64 hex digits."""
InstallationId = NewType("InstallationId", str)
"""One ledger's identity on the nodes it uses."""

CHECKED_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
"""What may become part of a path on a node: nothing else is ever joined into one."""

SHA256_HEX = re.compile(r"[0-9a-f]{64}")


def is_checked_id(text: str) -> bool:
    """Answer whether `text` may become part of a path on a node."""
    return CHECKED_ID.fullmatch(text) is not None and ".." not in text


def is_sha256(text: str) -> bool:
    """Answer whether `text` is a sha256 in lower-case hex."""
    return SHA256_HEX.fullmatch(text) is not None
