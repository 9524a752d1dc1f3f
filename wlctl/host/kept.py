"""Reads what a node says it keeps for its ledgers, strictly, into the model's values."""

import binascii

from wlctl.errors import GarbledAnswer
from wlctl.host.answer import Answer, Line, number
from wlctl.model.ids import InstanceId, is_checked_id
from wlctl.model.upkeep import (
    ChainPoint,
    Checkpoint,
    Collected,
    FleetMember,
    ListName,
    Supervised,
    Witness,
)

CHECKPOINT_FIELDS = 4
MEMBER_FIELDS = 6


def lease_until_ms(found: Answer) -> int:
    """Read until when a lease holds, in the node's uptime."""
    return found.number("until")


def collected(found: Answer) -> Collected:
    """Read what was taken away."""
    return Collected(
        node_id=found.text("node_id"),
        files=found.number("files"),
        size_bytes=found.number("bytes"),
        logs=found.number("logs"),
        held_by=tuple(field for line in found.all("held") for field in line.fields),
    )


def part(found: Answer, size_bytes: int, expected_bytes: int) -> bytes:
    """Read a part of a file: exactly `expected_bytes` of one that has `size_bytes`."""
    if (size := found.number("size")) != size_bytes:
        raise GarbledAnswer(f"the node's file has {size} bytes, not {size_bytes}")
    text = "".join(field for line in found.all("data") for field in line.fields)
    try:
        data = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        raise GarbledAnswer("a part of a file is not base64") from None
    if len(data) != expected_bytes:
        raise GarbledAnswer(f"{len(data)} bytes of a file came, {expected_bytes} were asked for")
    return data


def supervised(found: Answer) -> Supervised:
    """Read whose supervisors were started."""
    return Supervised(
        found.text("node_id"), _instances(found, "started"), _instances(found, "failed")
    )


def _instances(found: Answer, key: str) -> tuple[InstanceId, ...]:
    named = [field for line in found.all(key) for field in line.fields]
    for name in named:
        if not is_checked_id(name):
            raise GarbledAnswer(f"`{key}` names what cannot be an id: {name[:40]!r}")
    return tuple(map(InstanceId, named))


def witness(found: Answer) -> Witness:
    """Read what a node keeps of its ledger."""
    return Witness(
        node_id=found.text("node_id"),
        checkpoints=tuple(_checkpoint(line) for line in found.all("checkpoint")),
        fleet=tuple(_member(line) for line in found.all("member")),
    )


def list_name(line: Line) -> ListName | None:
    """Read which revocation list a node has; None when it is damaged."""
    if line.fields == ("-",):
        return None
    epoch, serial, sha256 = _three(line)
    return ListName(epoch, serial, sha256)


def chain_point(line: Line) -> ChainPoint:
    """Read which event of the chain a node has as its newest."""
    epoch, seq, sha256 = _three(line)
    return ChainPoint(epoch, seq, sha256)


def _three(line: Line) -> tuple[int, int, str]:
    if len(line.fields) < CHECKPOINT_FIELDS - 1:
        raise GarbledAnswer(f"`{line.key}` says too little")
    epoch, serial, sha256 = line.fields[:3]
    return number(epoch, line.key), number(serial, line.key), sha256


def _checkpoint(line: Line) -> Checkpoint:
    if len(line.fields) != CHECKPOINT_FIELDS:
        raise GarbledAnswer("a checkpoint says too little")
    return Checkpoint(chain_point(line), line.fields[3])


def _member(line: Line) -> FleetMember:
    fields = line.fields[0].split("\n") if line.fields else []
    if len(fields) != MEMBER_FIELDS:
        raise GarbledAnswer("a member of the fleet says too little")
    name, node_id, user, host, port, host_key = fields
    return FleetMember(name, node_id, user, host, number(port, "member"), host_key)
