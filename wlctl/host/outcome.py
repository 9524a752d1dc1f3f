"""Reads what the actions on instances answer, strictly, into the model's values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from wlctl.errors import GarbledAnswer
from wlctl.host.answer import ANSWER_MAX_BYTES, Answer, Line, bounded, number
from wlctl.host.kept import chain_point, list_name
from wlctl.model.actions import (
    Begun,
    Cleaned,
    GenerationStatus,
    InstanceStatus,
    Launched,
    LogTail,
    Measured,
    NodeStatus,
    Offered,
    Placed,
    Read,
    RefusalCode,
    Refused,
    Restarts,
    Settled,
    SettleOutcome,
    Stopped,
    Unloaded,
)
from wlctl.model.facts import Capability, Provenance
from wlctl.model.generation import CgroupEnd, Containment, Liveliness, Readings
from wlctl.model.ids import InstanceId, is_checked_id

Word = TypeVar("Word", bound=StrEnum)


class Record(StrEnum):
    """What the node found of a generation's launch record."""

    NONE = "none"
    TORN = "torn"
    WHOLE = "whole"


class Kind(StrEnum):
    """What the end of a run means by itself."""

    ALWAYS = "always"
    """That it failed: it is to run until it is stopped."""
    ONCE = "once"
    """With success, that it has finished."""


NOTHING = "-"
"""How an answer says that there is no value."""


def refusal(found: Answer) -> Refused:
    """Read why the node refused."""
    return Refused(_word(RefusalCode, found.text("code"), "code"), found.text("detail"))


def placed(found: Answer) -> Placed | Launched:
    """Read what place did: staged, or launched too."""
    staged = list(found.all("staged"))
    if staged:
        return Placed(already=_flag(staged[0].named, "already"))
    return launched(found)


def launched(found: Answer) -> Launched:
    """Read a launch."""
    line = _only(found, "launched")
    return _launched(line, _generation(line, 0), _only(found, "given"))


def _launched(line: Line, generation: int, given: Line) -> Launched:
    said = line.named
    return Launched(
        already=_flag(said, "already"),
        generation=generation,
        boot_id=_get(said, "boot"),
        containment=_word(Containment, _get(said, "containment"), "containment"),
        way=_get(said, "way"),
        pid=_number(said, "pid"),
        start_ticks=_number(said, "start"),
        uid=_optional(said, "uid"),
        cgroup=_text(said, "cgroup"),
        cgroup_inode=_optional(said, "inode"),
        ports=tuple(_port(value) for value in _values(given, "port")),
        unenforced=tuple(_values(given, "unenforced")),
        data_dir=_get(given.named, "data"),
    )


def offered(found: Answer, asked: Sequence[str]) -> Offered:
    """Read which of the files `asked` for are missing."""
    lacking = {field for line in found.all("missing") for field in line.fields}
    return Offered(
        node_id=found.text("node_id"),
        uptime_ms=found.uptime_ms(),
        missing=tuple(sha256 for sha256 in asked if sha256 in lacking),
        checkpoint=next(map(chain_point, found.all("checkpoint")), None),
    )


def stopped(found: Answer) -> Stopped:
    """Read a stop: what became of each generation."""
    return Stopped(found.text("node_id"), _readings(found), _pruned(found))


def read(found: Answer) -> Read:
    """Read what is to be judged of each generation."""
    return Read(found.text("node_id"), _readings(found), _pruned(found))


def unloaded(found: Answer) -> Unloaded:
    """Read an unload."""
    return Unloaded(
        node_id=found.text("node_id"),
        readings=_readings(found),
        removed=found.text("removed") == "yes",
        kept_data=found.text("kept") if found.has("kept") else "",
        pruned=_pruned(found),
    )


def settled(found: Answer) -> Settled:
    """Read what became of a decision."""
    lines = list(found.all("refused"))
    refused = None
    if lines:
        code = _word(RefusalCode, _field(lines[0], 0), "refused")
        refused = Refused(code, _field(lines[0], 1))
    return Settled(
        node_id=found.text("node_id"),
        outcome=_word(SettleOutcome, found.text("outcome"), "outcome"),
        refused=refused,
        readings=_readings(found),
    )


def status(found: Answer) -> NodeStatus:
    """Read everything of one installation on the node."""
    _once(_id(line, 0) for line in found.all("instance"))
    runs = _runs(found)
    restarts = {_id(line, 0): _restarts(line) for line in found.all("restarts")}
    pruned = {_id(line, 0): _generation(line, 1) for line in found.all("pruned")}
    return NodeStatus(
        node_id=found.text("node_id"),
        boot_id=found.text("boot_id"),
        uptime_ms=found.uptime_ms(),
        instances=tuple(
            replace(
                _instance_status(line, runs.get(_id(line, 0), [])),
                restarts=restarts.get(_id(line, 0)),
                pruned=pruned.get(_id(line, 0), 0),
            )
            for line in found.all("instance")
        ),
        departed={
            InstanceId(_id(line, 0)): number(_field(line, 1), "departed")
            for line in found.all("departed")
        },
        revocations=next(map(list_name, found.all("revocations")), None),
        checkpoint=next(map(chain_point, found.all("checkpoint")), None),
    )


def _runs(found: Answer) -> dict[str, list[GenerationStatus]]:
    """Read what was seen of each generation, by the instance's id."""
    launches = _launches(found)
    begun = {_run(line): line for line in found.all("restarted")}
    ended = {_run(line): _reading(line, at=1) for line in found.all("ended")}
    boot_id, uptime_ms = found.text("boot_id"), found.uptime_ms()
    runs: dict[str, list[GenerationStatus]] = {}
    _once(map(_run, found.all("generation")))
    for line in found.all("generation"):
        key = _run(line)
        seen = _generation_status(line, launches.get(key))
        if key in begun:
            elapsed_ms = uptime_ms - _number(begun[key].named, "at")
            age_ms = max(0, elapsed_ms) if seen.boot_id == boot_id else None
            seen = replace(seen, begun=_begun(begun[key], age_ms))
        runs.setdefault(key[0], []).append(replace(seen, ended=ended.get(key)))
    return runs


def _launches(found: Answer) -> dict[tuple[str, int], Launched]:
    given = {_run(line): line for line in found.all("given")}
    launches = {}
    for line in found.all("launched"):
        key = _run(line)
        if key not in given:
            raise GarbledAnswer(f"the answer does not say what {key[0]} was given")
        launches[key] = _launched(line, key[1], given[key])
    return launches


def _run(line: Line) -> tuple[str, int]:
    return _id(line, 0), _generation(line, 1)


def _begun(line: Line, age_ms: int | None) -> Begun:
    said = line.named
    return Begun(_number(said, "from"), age_ms, _text(said, "why"))


def _restarts(line: Line) -> Restarts:
    said = line.named
    return Restarts(
        once=_word(Kind, _get(said, "kind"), "kind") is Kind.ONCE,
        most=_number(said, "max"),
        window_ms=_number(said, "window"),
        within=_number(said, "within"),
        held=_text(said, "held"),
        why=_text(said, "why"),
    )


FIGURES = ("cpu.single", "cpu.all", "memory", "disk.write")
"""What is measured, below `perf.`: what one and what all processors hash, what memory is cleared,
and what reaches the disk."""

MIB = 1 << 20


def measured(found: Answer) -> Measured:
    """Read a measurement."""
    figures = {}
    for line in found.all("figure"):
        name = _field(line, 0)
        if name in FIGURES:
            mib = _number(line.named, "bytes") / MIB
            value = round(mib * 1000 / max(1, _number(line.named, "ms")), 1)
            figures[name] = Capability(
                f"perf.{name}", {"value": value, "unit": "MiB/s"}, Provenance.MEASURED
            )
    return Measured(found.text("node_id"), tuple(figures[name] for name in sorted(figures)))


def cleaned(found: Answer) -> Cleaned:
    """Read what was taken away."""
    return Cleaned(
        removed=tuple(_field(line, 0) for line in found.all("removed")),
        kept_for=tuple(sorted(_id(line, 0) for line in found.all("kept"))),
    )


def log_tail(found: Answer) -> LogTail:
    """Read the end of a generation's output."""
    line = _only(found, "log")
    said = line.named
    return LogTail(
        _generation(line, 0),
        found.text("text", ANSWER_MAX_BYTES),
        _number(said, "size"),
        next_byte=_number(said, "to"),
        is_over=_flag(said, "over"),
    )


def _readings(found: Answer) -> tuple[Readings, ...]:
    readings = tuple(_reading(line) for line in found.all("generation"))
    _once(one.generation for one in readings)
    return readings


def _once(keys: Iterable[object]) -> None:
    """Make sure that an answer says one thing of each of these: the ledger keeps it once."""
    seen = set()
    for key in keys:
        if key in seen:
            raise GarbledAnswer("the answer says something of one thing twice")
        seen.add(key)


def _pruned(found: Answer) -> int:
    return max((_generation(line, 0) for line in found.all("pruned")), default=0)


def _reading(line: Line, at: int = 0) -> Readings:
    said = line.named
    record = _word(Record, _get(said, "record"), "record")
    return Readings(
        generation=_generation(line, at),
        closed=_flag(said, "closed"),
        launched=record is not Record.NONE,
        recorded=record is Record.WHOLE,
        boot_id=_get(said, "boot"),
        recorded_boot_id=_text(said, "recorded_boot"),
        containment=_containment(said),
        leader=_word(Liveliness, _get(said, "leader"), "leader"),
        init=_word(Liveliness, _get(said, "init"), "init"),
        ctl=_word(CgroupEnd, _get(said, "ctl"), "ctl"),
        limit=_word(CgroupEnd, _get(said, "limit"), "limit"),
        cgroup_inode=_optional(said, "inode"),
        uid=_optional(said, "uid"),
        uid_left=_optional(said, "left"),
        uid_shared=_flag(said, "shared"),
        how=_text(said, "how"),
        exit_status=_optional(said, "exit"),
        oom_kills=_optional(said, "oom"),
        read_at_ms=_number(said, "at"),
    )


def _containment(said: Mapping[str, str]) -> Containment | None:
    word = _get(said, "containment")
    return None if word == NOTHING else _word(Containment, word, "containment")


def _generation_status(line: Line, launch: Launched | None) -> GenerationStatus:
    said = line.named
    return GenerationStatus(
        number=_generation(line, 1),
        closed=_flag(said, "closed"),
        torn=_word(Record, _get(said, "record"), "record") is Record.TORN,
        boot_id=_text(said, "boot"),
        leader=_word(Liveliness, _get(said, "leader"), "leader"),
        populated=None if _get(said, "populated") == NOTHING else _number(said, "populated") == 1,
        exit_status=_optional(said, "exit"),
        pid=_optional(said, "pid"),
        uid=_optional(said, "uid"),
        oom_kills=_optional(said, "oom"),
        health=_text(said, "health"),
        misses=_number(said, "misses"),
        launch=launch,
    )


def _instance_status(line: Line, generations: list[GenerationStatus]) -> InstanceStatus:
    said = line.named
    return InstanceStatus(
        instance=InstanceId(_id(line, 0)),
        desired=_text(said, "desired"),
        number=_optional(said, "number"),
        current=_optional(said, "current"),
        name=_text(said, "name"),
        package=_text(said, "package"),
        supervisor=_word(Liveliness, _get(said, "supervisor"), "supervisor"),
        generations=tuple(sorted(generations, key=lambda one: one.number)),
    )


def _only(found: Answer, key: str) -> Line:
    lines = list(found.all(key))
    if len(lines) != 1:
        raise GarbledAnswer(f"the answer should say `{key}` once")
    return lines[0]


def _field(line: Line, at: int) -> str:
    if len(line.fields) <= at:
        raise GarbledAnswer(f"`{line.key}` says too little")
    return bounded(line.fields[at], line.key)


def _id(line: Line, at: int) -> str:
    found = _field(line, at)
    if not is_checked_id(found):
        raise GarbledAnswer(f"`{line.key}` names what cannot be an id: {found[:40]!r}")
    return found


def _generation(line: Line, at: int) -> int:
    return number(_field(line, at), line.key)


def _get(said: Mapping[str, str], key: str) -> str:
    if key not in said:
        raise GarbledAnswer(f"the answer does not say `{key}`")
    return bounded(said[key], key)


def _text(said: Mapping[str, str], key: str) -> str:
    found = _get(said, key)
    return "" if found == NOTHING else found


def _number(said: Mapping[str, str], key: str) -> int:
    return number(_get(said, key), key)


def _optional(said: Mapping[str, str], key: str) -> int | None:
    return None if _get(said, key) == NOTHING else _number(said, key)


def _flag(said: Mapping[str, str], key: str) -> bool:
    match _get(said, key):
        case "yes":
            return True
        case "no":
            return False
        case other:
            raise GarbledAnswer(f"`{key}` should be yes or no, not {other[:40]!r}")


def _word(words: type[Word], text: str, key: str) -> Word:
    try:
        return words(text)
    except ValueError:
        raise GarbledAnswer(f"`{key}` is an unknown word {text[:40]!r}") from None


def _values(line: Line, key: str) -> list[str]:
    start = f"{key}="
    return [field.removeprefix(start) for field in line.fields if field.startswith(start)]


def _port(text: str) -> tuple[str, int]:
    name, _, port = text.rpartition(":")
    return name, number(port, "port")
