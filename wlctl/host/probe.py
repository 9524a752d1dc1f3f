"""Reads a facts answer: what a node is, as one typed value."""

from collections.abc import Iterator

from wlctl.errors import GarbledAnswer
from wlctl.host import hardware
from wlctl.host.answer import Answer, Line, number
from wlctl.host.hardware import TEXT_MAX_CHARS, lines, word
from wlctl.model.actions import NodeFacts
from wlctl.model.facts import Capability, Scalar
from wlctl.model.generation import Containment

KIB = 1024

PORT_MAX = 65_535


def read(found: Answer) -> NodeFacts:
    """Read the answer of a facts action.

    Raises:
        GarbledAnswer: Something is missing, or not what it should be.
    """
    return NodeFacts(
        node_id=found.text("node_id"),
        machine_id=found.text("machine_id"),
        boot_id=found.text("boot_id"),
        uptime_ms=found.uptime_ms(),
        wall_ms=wall_ms(found.text("wall")),
        load_average=_decimal(found.text("load"), "load"),
        memory_total_bytes=found.number("memory_total_kib") * KIB,
        memory_available_bytes=found.number("memory_available_kib") * KIB,
        memory_ours_bytes=found.number("memory_ours_bytes"),
        disk_free_bytes=found.number("disk_free_kib") * KIB,
        cpu_cores=cores(found.text("cpus")),
        ports_listening=_ports(found),
        state_dir=found.text("state_dir"),
        containment=_containment(found.text("containment")),
        cgroup_root=found.text("cgroup_root"),
        instances=tuple(sorted(line.fields[0] for line in found.all("instance") if line.fields)),
        capabilities=tuple(sorted(_capabilities(found), key=lambda have: have.id)),
        missing=tuple(sorted(line.fields[0] for line in found.all("missing") if line.fields)),
    )


def wall_ms(text: str) -> int:
    """Read seconds with a fraction; a clock that knows none is taken to be in mid-second."""
    whole, _, fraction = text.partition(".")
    part = fraction[:3].ljust(3, "0") if fraction.isdecimal() else "500"
    return number(whole, "wall") * 1000 + int(part)


def cores(online: str) -> int:
    """Count the processors in the kernel's list, e.g. `0-3,6`.

    Raises:
        GarbledAnswer: It is no such list.

    Source: Linux, Documentation/admin-guide/cputopology.rst.
    """
    count = 0
    for part in online.split(","):
        first, _, last = part.partition("-")
        low = number(first, "cpus")
        count += number(last or first, "cpus") - low + 1
    if count < 1:
        raise GarbledAnswer(f"`cpus` should be a list of processors, not {online[:40]!r}")
    return count


def _decimal(text: str, key: str) -> float:
    whole, _, fraction = text.partition(".")
    return number(whole, key) + number(fraction or "0", key) / 10.0 ** len(fraction)


def _ports(found: Answer) -> tuple[int, ...]:
    ports = set()
    for line in found.all("listening"):
        for field in line.fields:
            try:
                port = int(field, 16)
            except ValueError:
                raise GarbledAnswer(
                    f"`listening` has a port that is none: {field[:40]!r}"
                ) from None
            if not 0 <= port <= PORT_MAX:
                raise GarbledAnswer(f"`listening` has a port that is none: {field[:40]!r}")
            ports.add(port)
    return tuple(sorted(ports))


def _containment(word: str) -> Containment:
    try:
        return Containment(word)
    except ValueError:
        raise GarbledAnswer(f"`containment` is an unknown word {word[:40]!r}") from None


def _capabilities(found: Answer) -> Iterator[Capability]:
    arch = _ARCHITECTURES.get(found.text("arch"), found.text("arch"))
    yield Capability(f"cpu.arch.{word(arch)}")
    yield Capability("cpu.cores", {"count": cores(found.text("cpus"))})
    yield from _memory(found, arch)
    yield _system(found)
    yield _state(found)
    yield Capability("node.containment", {"value": _containment(found.text("containment")).value})
    if root := found.text("cgroup_root"):
        way = found.text("cgroup_way")
        controllers = tuple(f for line in lines(found, "controllers") for f in line.fields)
        yield Capability(
            "node.cgroup", {"version": 2, "way": way, "root": root, "controllers": controllers}
        )
    for line in lines(found, "runtime"):
        yield _runtime(line)
    yield from hardware.capabilities(found)


_ARCHITECTURES = {"arm64": "aarch64", "amd64": "x86_64"}
"""What some systems call an architecture, to what Linux does."""


def _memory(found: Answer, arch: str) -> Iterator[Capability]:
    pool = {
        "total_bytes": found.number("memory_total_kib") * KIB,
        "free_bytes": found.number("memory_available_kib") * KIB,
    }
    yield Capability("mem.system", pool)
    if hardware.unified(found) or (_is_macos(found) and arch == "aarch64"):
        yield Capability("mem.unified", pool)


def _is_macos(found: Answer) -> bool:
    return found.has("os") and found.text("os") == "macos"


def _system(found: Answer) -> Capability:
    known = {"kernel": found.text("kernel")[:TEXT_MAX_CHARS]}
    for attr, key in (("distribution", "distribution"), ("version", "distribution_version")):
        if found.has(key):
            known[attr] = found.text(key)[:TEXT_MAX_CHARS]
    return Capability("os.macos" if _is_macos(found) else "os.linux", known)


def _state(found: Answer) -> Capability:
    attrs: dict[str, Scalar] = {
        "path": found.text("state_dir"),
        "free_bytes": found.number("disk_free_kib") * KIB,
    }
    if found.has("disk_total_kib"):
        attrs["total_bytes"] = found.number("disk_total_kib") * KIB
    return Capability("store.state", attrs)


def _runtime(line: Line) -> Capability:
    name, *more = line.fields or ("",)
    attrs: dict[str, Scalar] = {}
    if more and "=" not in more[0]:
        attrs["version"] = more[0][:TEXT_MAX_CHARS]
    named = line.named
    attrs |= {key: named[key][:TEXT_MAX_CHARS] for key in ("path", "arch") if named.get(key)}
    return Capability(f"runtime.{word(name)}", attrs)
