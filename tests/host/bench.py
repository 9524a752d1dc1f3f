"""What the action tests share: a workload as a sheet and files, and a node to try it on."""

import hashlib
import io
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from tests.host.nodes import SshdNode
from wlctl.host.node import NodeSession, connect
from wlctl.host.transport import Deadlines
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import (
    InstanceStatus,
    Launched,
    LogTail,
    NodeFacts,
    PlaceRequest,
    Refused,
    StartRequest,
    Stopped,
    StopRequest,
    Unloaded,
    UnloadRequest,
)
from wlctl.model.generation import Proof
from wlctl.model.ids import DecisionId, InstallationId, InstanceId, PackageId

INSTALLATION = InstallationId("inst-test")
PACKAGE = PackageId("ab" * 32)

WAIT_S = 30.0


def nonce() -> str:
    return os.urandom(16).hex()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def encoded(text: str) -> str:
    return quote(text, safe="/:=,@+")


@dataclass(frozen=True)
class Work:
    """One variant of a package: its files, and what stands in its launch sheet.

    Attributes:
        command: Already encoded words, so that they may hold references.
        more: Further lines of the sheet, as they are.
    """

    command: Sequence[str] = ("./run",)
    files: Mapping[str, bytes] = field(default_factory=dict)
    more: Sequence[str] = ()
    args: str = "none"
    keep: bool = False
    grace_ms: int = 500
    signal: str = "TERM"

    @property
    def sheet(self) -> bytes:
        lines = [
            "wlctl-launch-sheet 1",
            "workload web",
            "version 1.0",
            "kind service",
            "variant default",
            *(f"arg {word}" for word in self.command),
            f"args {self.args}",
            f"data {'keep' if self.keep else 'drop'}",
            f"stop_signal {self.signal}",
            f"stop_grace_ms {self.grace_ms}",
            *(f"file 0555 {sha256(data)} {encoded(path)}" for path, data in self.files.items()),
            *self.more,
            "end",
            "",
        ]
        return "\n".join(lines).encode("ascii")


def script(text: str, **more: object) -> Work:
    """A workload that is one shell script."""
    return replace(Work(files={"run": f"#!/bin/sh\n{text}\n".encode()}), **more)  # type: ignore[arg-type]  # fields of Work


RESISTANCE = """
import ctypes, os, signal, sys, threading, time
def daemon():
    os.setsid()
    if os.fork(): os._exit(0)
def lose_main_thread():
    threading.Thread(target=lambda: time.sleep(1000)).start()
    exit_this_thread = {"x86_64": 60}.get(os.uname().machine, 93)
    ctypes.CDLL(None).syscall(exit_this_thread, 0)
def ignore_all():
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
"""


def python(text: str, **more: object) -> Work:
    """A workload that is one Python program, with the helpers above."""
    work = Work(("python3", "run"), files={"run": (RESISTANCE + text).encode()})
    return replace(work, **more)  # type: ignore[arg-type]  # fields of Work


def wait_until(true: Callable[[], bool], what: str) -> None:
    ends_at_s = time.monotonic() + WAIT_S
    while not true():
        assert time.monotonic() < ends_at_s, f"waited in vain: {what}"
        time.sleep(0.01)


class Bench:
    """One node with one session on it, and the verbs with their usual arguments."""

    def __init__(self, node: SshdNode, deadlines: Deadlines | None = None) -> None:
        self.node = node
        self._deadlines = deadlines
        self.session = self._connect()
        self._facts: NodeFacts | None = None
        self._asked: list[PlaceRequest] = []

    def _connect(self) -> NodeSession:
        keys = [self.node.client_key]
        return connect(self.node.address, keys=keys, nonce=nonce, deadlines=self._deadlines)

    def reconnect(self) -> None:
        """Come back after the connection is gone."""
        self.session.close()
        self.session = self._connect()

    @property
    def facts(self) -> NodeFacts:
        if self._facts is None:
            found = self.session.facts(INSTALLATION)
            assert isinstance(found, NodeFacts)
            self._facts = found
        return self._facts

    def put(self, data: bytes) -> str:
        name = sha256(data)
        assert self.session.receive(name, len(data), io.BytesIO(data)) is None
        return name

    def request(self, work: Work, **changes: object) -> PlaceRequest:
        """A request for `work`, whose files are put into the node's store."""
        for data in {*work.files.values()}:
            self.put(data)
        return self.asked(**{"package": PACKAGE, "sheet": self.put(work.sheet), **changes})

    def asked(self, **changes: object) -> PlaceRequest:
        """A request with its usual fields, for what is in the node's store."""
        usual = PlaceRequest(
            installation=INSTALLATION,
            instance=InstanceId(f"i-{os.urandom(6).hex()}"),
            name="web",
            node="elm",
            decision=DecisionId(os.urandom(32).hex()),
            number=1,
            generation=1,
            fence=1,
            package=PACKAGE,
            sheet=64 * "0",
            deadline_ms=self.facts.uptime_ms + 600_000,
        )
        request = replace(usual, **changes)  # type: ignore[arg-type]  # fields of PlaceRequest
        self._asked.append(request)
        return request

    def clear(self) -> None:
        """Unload every instance that was asked for; each must be read as gone."""
        for request in self._asked:
            done = self.unload(request, 99, generation=0)
            assert isinstance(done, Unloaded), done
            assert done.removed, done
        self._asked = []

    def asked_nothing(self) -> None:
        """Forget what was asked: it was refused, and so must not be there to be unloaded."""
        self._asked = []

    def place(self, request: PlaceRequest) -> Launched:
        done = self.session.place(request)
        assert isinstance(done, Launched), done
        return done

    def run(self, work: Work, **changes: object) -> PlaceRequest:
        """Place `work`, and return the request that did it."""
        request = self.request(work, **changes)
        self.place(request)
        return request

    def refused(self, request: PlaceRequest) -> Refused:
        done = self.session.place(request)
        assert isinstance(done, Refused), done
        return done

    def start(self, request: PlaceRequest, number: int, generation: int) -> Launched | Refused:
        return self.session.start(
            StartRequest(
                installation=request.installation,
                instance=request.instance,
                number=number,
                generation=generation,
                fence=generation,
                package=request.package,
                deadline_ms=request.deadline_ms,
                settles=request.settles,
            )
        )

    def stop(
        self, request: PlaceRequest, number: int = 2, *, generation: int = 1, grace_ms: int = 500
    ) -> Stopped:
        done = self.session.stop(
            StopRequest(request.installation, request.instance, number, generation, grace_ms)
        )
        assert isinstance(done, Stopped), done
        return done

    def prove(self, request: PlaceRequest, number: int = 2, **more: int) -> Proof:
        """Stop it, and judge what was read of its only generation."""
        (readings,) = self.stop(request, number, **more).readings
        return judge(readings)

    def unload(
        self, request: PlaceRequest, number: int = 9, *, generation: int = 1, purge: bool = True
    ) -> Unloaded | Refused:
        return self.session.unload(
            UnloadRequest(
                request.installation, request.instance, number, generation, grace_ms=0, purge=purge
            )
        )

    def status(self, request: PlaceRequest) -> InstanceStatus | None:
        found = self.session.status(request.installation)
        assert not isinstance(found, Refused)
        return next((one for one in found.instances if one.instance == request.instance), None)

    def log(self, request: PlaceRequest, generation: int = 0) -> str:
        tail = self.session.logs(request.installation, request.instance, generation=generation)
        assert isinstance(tail, LogTail), tail
        return tail.text

    def await_log(self, request: PlaceRequest, words: str) -> str:
        wait_until(lambda: words in self.log(request), f"{words!r} in the log")
        return self.log(request)

    def instance_dir(self, request: PlaceRequest) -> Path:
        return self.node.state / request.installation / "instances" / request.instance

    def cgroup(self, request: PlaceRequest, kind: str = "limit", generation: int = 1) -> Path:
        below = f"wlctl/{request.installation}/{request.instance}/{kind}/g{generation}"
        return self.node.cgroup / below

    def left_over(self) -> list[str]:
        """Everything of any instance that is still on the node: processes, cgroups, directories."""
        wait_until(lambda: not _shells(self.node), "the actions' shells to exit")
        found = running(self.node)
        found += [name for name in self.node.cgroups() if name != "."]
        return found + self.node.instances()


def running(node: SshdNode) -> list[str]:
    """Whatever runs on the node besides sshd and the shells of actions that have answered."""
    return [text for text in node.commands().values() if not _is_ours(text)]


def _is_ours(command: str) -> bool:
    """Whether this is the shell of an action that has answered and is about to exit."""
    return command == "" or "sh -s " in command or "doorkeeper wlctl-action " in command


def _shells(node: SshdNode) -> list[str]:
    return [text for text in node.commands().values() if _is_ours(text)]
