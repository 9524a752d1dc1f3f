"""A node that is a machine of its own: its own kernel, clock, and all controllers of cgroup v2.

It is emulated, booted once, and then woken from its saved memory, which the cache keeps.
"""

import contextlib
import json
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from tests.host.systemd import (
    SystemdNode,
    address_of,
    cgroup_of,
    made,
    one_builder,
    run,
    system,
)

BOOT_S = 180.0
"""As long as it may take where everything else takes the processors."""

# not `-cpu max`: with five levels of page tables the emulated machine does not wake
_MACHINE = (
    *("qemu-system-x86_64", "-machine", "q35", "-accel", "tcg,thread=multi,tb-size=256"),
    *("-cpu", "qemu64", "-m", "512", "-smp", "2"),
    *("-nodefaults", "-no-user-config", "-display", "none"),
    *("-device", "virtio-rng-pci", "-device", "virtio-net-pci,netdev=net"),
    "-append",
    " ".join(
        (
            *("root=/dev/vda", "rw", "quiet", "console=ttyS0", "net.ifnames=0", "mitigations=off"),
            *("systemd.unified_cgroup_hierarchy=1", "systemd.wants=systemd-networkd.service"),
        )
    ),
)


class MachineNode(SystemdNode):
    """The machine. The emulator's forwarder answers before it does, which takes its time."""

    def await_greeting(self) -> None:
        ends_at_s = time.monotonic() + BOOT_S
        assert self._child is not None
        while self._child.poll() is None and time.monotonic() < ends_at_s:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(
                    (self.address.host, self.address.port), timeout=10.0
                ) as sock,
            ):
                if sock.recv(4) == b"SSH-":
                    return
            time.sleep(0.1)
        said = [(self.directory / name) for name in ("log", "console")]
        raise AssertionError("\n".join(path.read_text("utf-8", "replace") for path in said))

    def set_clock(self, ahead_s: float = 0.0) -> None:
        """Set its wall clock to this machine's, or `ahead_s` before it."""
        self.sh(":")  # to connect takes its time
        self.sh(f"date -s @{time.time() + ahead_s:.3f}")


@contextlib.contextmanager
def machine() -> Iterator[MachineNode]:
    """Wake the machine; everything of it is gone afterwards, whatever happens."""
    made_of = system()
    saved = _saved_machine(made_of)
    base = Path(tempfile.mkdtemp(prefix="wlctl-machine-", dir="/var/tmp"))
    try:
        with _running(made_of, base, saved / "disk", saved / "memory") as running:
            running.node.set_clock()  # which stood still while it slept
            yield running.node
    finally:
        shutil.rmtree(base)


def _saved_machine(made_of: Path) -> Path:
    """Boot it once, and keep its disk and memory as they were then."""
    qemu = subprocess.run([_MACHINE[0], "--version"], capture_output=True, text=True, check=True)
    with one_builder():
        path, whole = made("machine", repr((made_of.name, qemu.stdout, _MACHINE)))
        if not whole:
            _save_machine(made_of, path)
    return path


def _save_machine(made_of: Path, path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    run(
        *("mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", str(made_of / "root")),
        *(str(path / "system"), "1500M"),
    )
    _overlay(path / "system", "raw", path / "disk")
    with _running(made_of, path, path / "disk", None) as running:
        running.node.sh("systemctl is-system-running --wait >/dev/null || :; sync")
        running.node.hang_up()
        running.ask("migrate", uri=f"exec:cat >{shlex.quote(str(path / 'memory'))}")
        ends_at_s = time.monotonic() + BOOT_S
        while (status := running.ask("query-migrate").get("status")) != "completed":
            assert status != "failed"
            assert time.monotonic() < ends_at_s, status
            time.sleep(0.1)
        running.ask("quit")
    (path / "whole").touch()


def _overlay(of: Path, form: str, path: Path) -> None:
    run("qemu-img", "create", "-q", "-f", "qcow2", "-F", form, "-b", str(of), str(path))


@dataclass
class _Machine:
    """A machine that runs, and the socket that its emulator takes commands at."""

    node: MachineNode
    control: Path

    def ask(self, command: str, **arguments: str) -> dict[str, Any]:
        """Give the emulator one command. Source: QEMU, QMP reference manual."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(BOOT_S)
            sock.connect(str(self.control))
            with sock.makefile("rw", encoding="utf-8") as stream:
                stream.readline()
                _say(stream, "qmp_capabilities")
                return _say(stream, command, **arguments)


def _say(stream: TextIO, command: str, **arguments: str) -> dict[str, Any]:
    stream.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
    stream.flush()
    answer: dict[str, Any] = json.loads(stream.readline())
    while "event" in answer:
        answer = json.loads(stream.readline())
    found: dict[str, Any] = answer["return"]
    return found


@contextlib.contextmanager
def _running(made_of: Path, base: Path, disk: Path, memory: Path | None) -> Iterator[_Machine]:
    """Run the machine on `disk`, or on a copy when it wakes from `memory`."""
    control = Path(tempfile.mkdtemp(prefix="wlctl-qmp-", dir="/var/tmp")) / "socket"
    address = address_of(made_of, "root")
    argv = [
        *_MACHINE,
        *("-kernel", str(next((made_of / "root/boot").glob("vmlinuz-*")))),
        *("-initrd", str(next((made_of / "root/boot").glob("initrd.img-*")))),
        *("-serial", f"file:{base / 'console'}", "-qmp", f"unix:{control},server=on,wait=off"),
        *("-netdev", f"user,id=net,restrict=on,hostfwd=tcp:{address.host}:{address.port}-:22"),
    ]
    if memory is not None:
        _overlay(disk, "qcow2", base / "disk")
        disk = base / "disk"
        argv += ["-incoming", f"exec:cat {shlex.quote(str(memory))}"]
    argv += ["-drive", f"file={disk},format=qcow2,if=virtio,cache=unsafe"]
    join = 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"'
    start = ["sh", "-c", join, "sh", str(cgroup_of(base)), *argv]
    node = MachineNode(address, made_of / "key", base, cgroup_of(base), "dash", start)
    try:
        node.start()
        yield _Machine(node, control)
    finally:
        node.kill()
        shutil.rmtree(control.parent)
