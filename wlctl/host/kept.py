"""Reads what a node says it keeps for its ledgers, strictly, into the model's values."""

import binascii
from collections.abc import Sequence

from wlctl.errors import GarbledAnswer
from wlctl.host.answer import Answer, Line, number
from wlctl.model.ids import InstallationId, InstanceId, PackageId, is_checked_id, is_sha256
from wlctl.model.member import parse_member
from wlctl.model.upkeep import (
    ChainPoint,
    Checkpoint,
    Collected,
    Fleet,
    FleetMember,
    ListName,
    Recalled,
    Remembered,
    Supervised,
    Witness,
)

CHECKPOINT_FIELDS = 4
FLEET_FIELDS = 3
SPEC_FIELDS = 3


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
        fleet=Fleet(tuple(map(_member, found.all("member"))), _fleet_note(found)),
    )


def installations(found: Answer) -> dict[InstallationId, Checkpoint]:
    """Read whose checkpoints a node keeps, and the newest of each."""
    named = {}
    for line in found.all("installation"):
        if len(line.fields) != 1 + CHECKPOINT_FIELDS or not is_checked_id(line.fields[0]):
            raise GarbledAnswer("an installation says too little")
        rest = Line(line.key, line.fields[1:])
        named[InstallationId(line.fields[0])] = _checkpoint(rest)
    return named


def recalled(found: Answer) -> Recalled:
    """Read what a lost ledger must know again of its instances on a node."""
    said: dict[InstanceId, list[tuple[str, str]]] = {}
    for line in found.all("spec"):
        if len(line.fields) != SPEC_FIELDS:
            raise GarbledAnswer("a line about an instance says too little")
        said.setdefault(_instance(line), []).append((line.fields[1], line.fields[2]))
    sizes = {
        _instance(line): number(line.fields[1], line.key)
        for line in found.all("manifest")
        if len(line.fields) > 1
    }
    return Recalled(
        node_id=found.text("node_id"),
        instances=tuple(_remembered(one, said[one], sizes.get(one, 0)) for one in sorted(said)),
        torn=_instances(found, "torn"),
        revoked=tuple(
            (line.fields[0], line.fields[1]) for line in found.all("revoked") if line.fields[1:]
        ),
    )


def _instance(line: Line) -> InstanceId:
    if not line.fields or not is_checked_id(line.fields[0]):
        raise GarbledAnswer(f"`{line.key}` names what cannot be an id")
    return InstanceId(line.fields[0])


def _remembered(
    instance: InstanceId, said: Sequence[tuple[str, str]], manifest_bytes: int
) -> Remembered:
    once = dict(said)
    if not {"name", "node", "decision", "package", "sheet"} <= once.keys():
        raise GarbledAnswer(f"what is kept of {instance} does not say what it is")
    if not (is_checked_id(once["name"]) and is_sha256(once["package"])):
        raise GarbledAnswer(f"{instance} has a name or a package that cannot be one")
    env = [value.partition("=") for key, value in said if key == "env"]
    return Remembered(
        instance=instance,
        name=once["name"],
        node=once["node"],
        decision=once["decision"],
        package=PackageId(once["package"]),
        sheet=once["sheet"],
        env=tuple((name, value) for name, _, value in env),
        args=tuple(value for key, value in said if key == "arg"),
        signatures=tuple(value for key, value in said if key == "signature"),
        manifest_bytes=manifest_bytes,
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


def _fleet_note(found: Answer) -> str:
    line = next(found.all("fleet"), None)
    note = line.fields[FLEET_FIELDS - 1] if line and len(line.fields) == FLEET_FIELDS else ""
    return "" if note == "-" else note


def _member(line: Line) -> FleetMember:
    member = parse_member(line.fields[0]) if line.fields else None
    if member is None:
        raise GarbledAnswer("a member of the fleet cannot be read")
    return member
