"""How the nodes of a fleet are written down, to be signed and kept by each of them."""

import hashlib
import re
from collections.abc import Sequence

from wlctl.model.ids import CHECKED_ID, NodeName, is_checked_id
from wlctl.model.node import Address, Tier, TransportKind
from wlctl.model.upkeep import FleetMember

FIELDS = 10
PORT_MAX = 65535
PORT_DIGITS = 5

YES = "yes"

_NUMBER = "(0|[1-9][0-9]{0,17})"
_NOTE = re.compile(rf"wlctl/({CHECKED_ID.pattern})/fleet\n{_NUMBER}\n{_NUMBER}\n([0-9a-f]{{64}})\n")


def member_text(member: FleetMember) -> str:
    """Write a member, a line for each of its fields."""
    address = member.address
    return "\n".join(
        (
            member.name,
            member.node_id,
            address.transport.value,
            address.user,
            address.host,
            str(address.port),
            address.host_key,
            YES if address.sudo else "",
            YES if address.enforced else "",
            member.tier.word,
        )
    )


def parse_member(text: str) -> FleetMember | None:
    """Read what `member_text` wrote; None for anything else."""
    fields = text.split("\n")
    if len(fields) != FIELDS:
        return None
    name, node_id, transport, user, host, port, host_key, sudo, enforced, tier = fields
    try:
        member = FleetMember(
            NodeName(name),
            node_id,
            Address(
                TransportKind(transport),
                host,
                int(port[:PORT_DIGITS]),
                user,
                host_key,
                sudo=sudo == YES,
                enforced=enforced == YES,
            ),
            Tier[tier.upper()],
        )
    except (KeyError, ValueError):
        return None
    good = is_checked_id(name) and 0 <= member.address.port <= PORT_MAX
    return member if good and member_text(member) == text else None


def members_sha256(members: Sequence[FleetMember]) -> str:
    """Return the digest that stands for the members, in their order."""
    texts = (f"{member_text(member)}\0" for member in members)
    return hashlib.sha256("".join(texts).encode()).hexdigest()


def fleet_text(installation: str, epoch: int, seq: int, sha256: str) -> str:
    """Write the text of the note that signs a fleet, as of an event of the chain."""
    return f"wlctl/{installation}/fleet\n{epoch}\n{seq}\n{sha256}\n"


def parse_fleet(text: str) -> tuple[str, int, int, str] | None:
    """Read what `fleet_text` wrote: installation, epoch, seq, digest; None for anything else."""
    found = _NOTE.fullmatch(text)
    if found is None:
        return None
    installation, epoch, seq, sha256 = found.groups()
    return installation, int(epoch), int(seq), sha256
