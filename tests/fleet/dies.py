"""The real program, killed or paused by its own hand: after a commit, or around a step on a node.

`python dies.py` has everything imported once, and then forks for each line it reads: the child is a
run of `wlctl` that counts its moments and, at the one it was given, sends itself a signal.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wlctl.cli import app, ending, place, starting
from wlctl.flows import runtime
from wlctl.host import ssh
from wlctl.host.answer import Answer
from wlctl.host.session import Session
from wlctl.host.transport import _Talk
from wlctl.ledger import opening
from wlctl.ledger.locks import Locks
from wlctl.ledger.sqlite import Sqlite
from wlctl.ledger.store import Ledger, WriteTx
from wlctl.model.actions import Refused
from wlctl.model.event import Author

PRELOADED = (ending, place, starting, ssh, opening)

DIED = -signal.SIGKILL

PAUSED = -signal.SIGSTOP

COMMIT = "commit"

FILES = ("moments", "stdout", "stderr")
"""What each run leaves, with its process's number."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the program.

    Attributes:
        status: As `subprocess` has it: negative for a signal.
        moments: Those that it went through, in their order.
        pid: Of its process.
    """

    pid: int
    status: int
    moments: list[str]
    stdout: str
    stderr: str


class Dying:
    """Runs the program as often as asked, each time in a process of its own."""

    def __init__(self, directory: Path, variables: Mapping[str, str]) -> None:
        self._directory = directory
        self._child = subprocess.Popen(
            [sys.executable, __file__],
            cwd=directory,
            env=dict(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def run(self, *argv: str, die_at: int = 0, synchronous: str = "") -> Run:
        """Run `wlctl argv`, to its end or to the moment with the number `die_at`, from 1.

        Args:
            synchronous: How SQLite is to sync, instead of as the program says.
        """
        self._ask(argv=argv, at=die_at, signal=signal.SIGKILL, synchronous=synchronous)
        return self._answer()

    def pause(self, *argv: str, at: int, unlocked: bool) -> Run:
        """Run `wlctl argv` up to its moment `at`, and stop it there; `resume` lets it go on.

        Args:
            unlocked: The kernel takes its locks away, as if it had died, and it does not know.
        """
        self._ask(argv=argv, at=at, signal=signal.SIGSTOP, unlocked=unlocked)
        return self._answer()

    def resume(self, paused: Run) -> Run:
        """Let it go on, to its end."""
        self._ask(resume=paused.pid)
        return self._answer()

    def _ask(self, **what: object) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(f"{json.dumps(what)}\n")
        self._child.stdin.flush()

    def _answer(self) -> Run:
        assert self._child.stdout is not None
        pid, status = map(int, self._child.stdout.readline().split())
        said = [(self._directory / f"{name}-{pid}").read_text("utf-8") for name in FILES]
        return Run(pid, status, said[0].splitlines(), said[1], said[2])

    def close(self) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait(60)
        self._child.stdout.close()


def _serve() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        pid = asked.get("resume") or os.fork()
        if pid == 0:
            _become(asked)
        if "resume" in asked:
            os.kill(pid, signal.SIGCONT)
        _, status = os.waitpid(pid, os.WUNTRACED)
        code = PAUSED if os.WIFSTOPPED(status) else os.waitstatus_to_exitcode(status)
        sys.stdout.write(f"{pid} {code}\n")
        sys.stdout.flush()


def _become(asked: dict[str, Any]) -> None:
    """Be one run of the program, and never return."""
    null = os.open("/dev/null", os.O_RDONLY)
    moments, out, err = (
        os.open(f"{name}-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        for name in FILES
    )
    for number, fd in enumerate((null, out, err)):
        os.dup2(fd, number)
    held: set[Locks] = set()
    left = iter(range(1, sys.maxsize))

    def moment(name: str) -> None:
        os.write(moments, f"{name}\n".encode())
        if next(left) == asked["at"]:
            if asked.get("unlocked"):
                _unlock(held)
            os.kill(os.getpid(), asked["signal"])

    listen_to(moment, held)
    if asked.get("synchronous"):
        _sync_as(asked["synchronous"])
    sys.stdin, sys.stdout, sys.stderr = (
        open(fd, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - the process's own
        for fd, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    code = 70
    try:
        code = app.main(asked["argv"])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _unlock(held: set[Locks]) -> None:
    """Free what the kernel holds for this process, behind its back."""
    for locks in held:
        for scope in locks._held:
            locks._set(fcntl.F_UNLCK, scope)


def listen_to(moment: Callable[[str], None], held: set[Locks]) -> None:
    """Have `moment` called after each commit, and before, amid and after each step on a node.

    Args:
        held: Gets the locks of every ledger that is written to.
    """
    commits, runs, listens = Ledger.write, Session._run, _Talk.read_answer

    @contextmanager
    def write(self: Ledger, now_ms: int, author: Author) -> Iterator[WriteTx]:
        held.add(self.locks)
        with commits(self, now_ms, author) as tx:
            yield tx
        moment(COMMIT)

    def run(self: Session, action: str, *params: tuple[str, str], **rest: Any) -> Answer | Refused:
        moment(f"before {action}")
        found = runs(self, action, *params, **rest)
        moment(f"after {action}")
        return found

    def read_answer(self: _Talk) -> Answer:
        moment(f"amid {self._call.name}")
        return listens(self)

    Ledger.write = write  # type: ignore[method-assign] # to be heard is all it adds
    Session._run = run  # type: ignore[method-assign] # likewise
    _Talk.read_answer = read_answer  # type: ignore[method-assign] # likewise


def _sync_as(word: str) -> None:
    connects = Sqlite.connect

    def connect(self: Sqlite) -> Any:
        conn = connects(self)
        conn.execute(f"PRAGMA synchronous = {word}")
        return conn

    Sqlite.connect = connect  # type: ignore[method-assign] # weaker than it is


if __name__ == "__main__":
    runtime.ssh_configs = lambda: ()
    _serve()
