"""Nodes with a network of their own, whose links can be cut: namespaces and veth pairs.

The controller is in a namespace, too: a thread enters it, and everything that it starts is there.
Nothing of it is seen by this machine's own network.
"""

import contextlib
import ctypes
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from tests.host.nodes import Link

NAMED = Path("/run/netns")
CLONE_NEWNET = 0x40000000


@dataclass(frozen=True)
class Network:
    """A controller's namespace and those of nodes.

    Attributes:
        name: Of the controller's namespace; those of nodes begin with it.
    """

    name: str
    links: tuple[Link, ...]

    def cut(self, position: int) -> None:
        """Take a node's link down: nothing passes, and nobody is told."""
        _ip("-n", self.name, "link", "set", f"to{position}", "down")

    def heal(self, position: int) -> None:
        """Let everything pass to a node again."""
        _ip("-n", self.name, "link", "set", f"to{position}", "up")

    def inside(self, work: Callable[[], None]) -> None:
        """Do `work` in the controller's namespace; what it raises is raised here."""
        failures: list[BaseException] = []

        def run() -> None:
            try:
                _enter(NAMED / self.name)
                work()
            except BaseException as failure:  # noqa: BLE001 - raised again in the test's own thread
                failures.append(failure)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]


@contextlib.contextmanager
def network(count: int) -> Iterator[Network]:
    """Make a controller's network with links to `count` nodes; all of it is gone afterwards."""
    name = f"wlctl-{os.getpid()}-{uuid4().hex[:6]}"
    names = [name, *(f"{name}-{position}" for position in range(count))]
    made: list[str] = []
    try:
        for one in names:
            _ip("netns", "add", one)
            made.append(one)
            _ip("-n", one, "link", "set", "lo", "up")
        for position, one in enumerate(names[1:]):
            _ip(*f"-n {name} link add to{position} type veth peer name wire netns {one}".split())
            for where, device, host in ((name, f"to{position}", 1), (one, "wire", 2)):
                _ip("-n", where, "addr", "add", f"10.88.{position}.{host}/24", "dev", device)
                _ip("-n", where, "link", "set", "dev", device, "up")
        links = (Link(f"10.88.{n}.2", NAMED / one) for n, one in enumerate(names[1:]))
        yield Network(name, tuple(links))
    finally:
        for one in made:
            _ip("netns", "del", one)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _enter(namespace: Path) -> None:
    """Enter a network namespace with this thread alone; see setns(2)."""
    libc = ctypes.CDLL(None, use_errno=True)
    with namespace.open("rb") as file:
        if libc.setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
