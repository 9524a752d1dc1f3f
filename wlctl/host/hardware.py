"""Reads what a node says of its accelerators, devices and disks, into capabilities."""

from collections.abc import Iterator, Mapping

from wlctl.errors import GarbledAnswer
from wlctl.host.answer import Answer, Line, number
from wlctl.model.facts import Capability, CapabilityState, Scalar

KIB = 1024
MIB = 1024 * KIB

LINES_MAX = 256
"""A node that lists more of one thing than this is not answering."""

TEXT_MAX_CHARS = 120

WORD_MAX_CHARS = 64

AMD = "0x1002"
"""AMD's vendor id on PCI. Source: pci.ids."""

NVIDIA_COLUMNS = 7
"""index, uuid, name, memory.total, memory.free, driver_version, compute_cap."""

_DEVICES: Mapping[str, tuple[str, ...]] = {
    "video": ("path", "name"),
    "serial": ("path", "vendor", "product", "name", "serial"),
    "usb": ("path", "vendor", "product", "name", "serial"),
    "kvm": ("path",),
    "tun": ("path",),
    "fuse": ("path",),
}
"""Kind of device to the attributes that are kept of it."""

_ACCELERATORS: Mapping[str, tuple[str, ...]] = {
    "dri": ("path", "vendor", "product", "name", "uuid"),
    "npu": ("path", "vendor", "product"),
    "edgetpu": ("path",),
    "hailo": ("path",),
}

_EXCLUSIVE = frozenset({"video", "serial"})
"""Devices that one program at a time can use, whoever opens them."""


def lines(found: Answer, key: str) -> list[Line]:
    """Return the lines of `key`.

    Raises:
        GarbledAnswer: There are more than any machine has.
    """
    listed = list(found.all(key))
    if len(listed) > LINES_MAX:
        raise GarbledAnswer(f"the answer says `{key}` more than {LINES_MAX} times")
    return listed


def word(text: str) -> str:
    """Make `text` a segment of a capability's id.

    Raises:
        GarbledAnswer: It cannot be one.
    """
    lowered = text.lower()
    plain = lowered.replace("_", "").replace("-", "")
    if not (lowered.isascii() and plain.isalnum() and len(lowered) <= WORD_MAX_CHARS):
        raise GarbledAnswer(f"{text[:40]!r} cannot be part of a capability's id")
    return lowered


def capabilities(found: Answer) -> Iterator[Capability]:
    """Yield what is there beside processors and memory.

    Raises:
        GarbledAnswer: A line is not in the form agreed.
    """
    for line in lines(found, "device"):
        kind = _kind(line)
        if kind in _DEVICES:  # a newer action text may know more
            attrs = _said(line, _DEVICES[kind])
            yield Capability(f"device.{kind}", attrs, exclusive=kind in _EXCLUSIVE)
    for line in lines(found, "accel"):
        yield from _accelerator(_kind(line), line)
    for line in lines(found, "store"):
        yield Capability(
            "store.mount",
            {
                **_said(line, ("path", "type")),
                "total_bytes": number(line.named.get("total_kib", ""), "store") * KIB,
                "free_bytes": number(line.named.get("free_kib", ""), "store") * KIB,
            },
        )


def unified(found: Answer) -> bool:
    """Answer whether processors and an accelerator share the machine's memory."""
    rows = (line.named.get("row", "") for line in found.all("accel"))
    return any(_is_integrated(row) for row in rows if row)


def _accelerator(kind: str, line: Line) -> Iterator[Capability]:
    if kind == "nvidia":
        yield from _nvidia(line)
        return
    if kind not in _ACCELERATORS:
        return
    attrs = _said(line, _ACCELERATORS[kind])
    yield Capability(f"accel.{kind}", attrs)
    total = line.named.get("vram_total", "")
    if kind == "dri" and attrs.get("vendor") == AMD and line.named.get("kfd") == "yes" and total:
        total_bytes = number(total, "vram_total")
        used_bytes = number(line.named.get("vram_used", "0"), "vram_used")
        which: dict[str, Scalar] = {key: attrs[key] for key in ("path", "uuid") if key in attrs}
        yield Capability("accel.rocm", {**attrs, "memory_bytes": total_bytes})
        yield _vram(which, total_bytes, max(0, total_bytes - used_bytes))


def _nvidia(line: Line) -> Iterator[Capability]:
    """Read one row of nvidia-smi; a card whose driver does not answer is there and degraded.

    Source: nvidia-smi --help-query-gpu; sizes are in MiB, and what a card lacks is `[N/A]`.
    """
    row = line.named.get("row")
    if row is None:
        yield Capability("accel.cuda", state=CapabilityState.DEGRADED)
        return
    fields = [field.strip() for field in row.split(",")]
    if len(fields) != NVIDIA_COLUMNS:
        raise GarbledAnswer(f"`accel` has a row of nvidia-smi that is none: {row[:60]!r}")
    index, uuid, name, total, free, driver, compute = fields
    which: dict[str, Scalar] = {"index": number(index, "accel"), "uuid": uuid[:TEXT_MAX_CHARS]}
    attrs = {**which, "name": name[:TEXT_MAX_CHARS]}
    for attr, text in (("driver", driver), ("compute", compute)):
        if text[:1].isdecimal():
            attrs[attr] = text[:TEXT_MAX_CHARS]
    if total.isdecimal():
        attrs["memory_bytes"] = number(total, "accel") * MIB
    yield Capability("accel.cuda", attrs)
    if total.isdecimal():
        free_mib = number(free, "accel") if free.isdecimal() else 0
        yield _vram(which, number(total, "accel") * MIB, free_mib * MIB)


def _is_integrated(row: str) -> bool:
    fields = [field.strip() for field in row.split(",")]
    return len(fields) == NVIDIA_COLUMNS and not fields[3].isdecimal()


def _vram(which: Mapping[str, Scalar], total_bytes: int, free_bytes: int) -> Capability:
    return Capability(
        "mem.vram",
        {**which, "total_bytes": total_bytes, "free_bytes": min(free_bytes, total_bytes)},
    )


def _kind(line: Line) -> str:
    if not line.fields:
        raise GarbledAnswer(f"`{line.key}` says too little")
    return word(line.fields[0])


def _said(line: Line, attrs: tuple[str, ...]) -> dict[str, Scalar]:
    """Give the attributes that the line has; their text is the node's, or a device's own."""
    named = line.named
    return {attr: named[attr][:TEXT_MAX_CHARS] for attr in attrs if named.get(attr)}
