"""The real program, killed by its own hand: SIGKILL after a commit, or around a step on a node.

`python dies.py` has everything imported once, and then forks for each line it reads: the child is a
run of `wlctl` that counts its moments and, at the one it was given, kills itself.
"""

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
from wlctl.ledger.sqlite import Sqlite
from wlctl.ledger.store import Ledger, WriteTx
from wlctl.model.actions import Refused
from wlctl.model.event import Author

PRELOADED = (ending, place, starting, ssh, opening)

DIED = -signal.SIGKILL

COMMIT = "commit"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the program.

    Attributes:
        status: As `subprocess` has it: negative for a signal.
        moments: Those that it went through, in their order.
    """

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

    def run(self, *argv: str, die_at: int = 0, synchronous: str = "", db: str = "") -> Run:
        """Run `wlctl argv`, to its end or to the moment with the number `die_at`, from 1.

        Args:
            synchronous: How SQLite is to sync, instead of as the program says.
            db: Another ledger than the usual one.
        """
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        asked = {"argv": argv, "die_at": die_at, "synchronous": synchronous, "db": db}
        self._child.stdin.write(f"{json.dumps(asked)}\n")
        self._child.stdin.flush()
        status = int(self._child.stdout.readline())
        files = {name: self._directory / name for name in ("moments", "stdout", "stderr")}
        moments = files["moments"].read_text("utf-8").splitlines()
        out, err = (files[name].read_text("utf-8") for name in ("stdout", "stderr"))
        return Run(status, moments, out, err)

    def close(self) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait(60)
        self._child.stdout.close()


def _serve() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(asked)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _become(asked: dict[str, Any]) -> None:
    """Be one run of the program, and never return."""
    for number, name in ((0, "/dev/null"), (1, "stdout"), (2, "stderr")):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        fd = os.open(name, flags, 0o600)
        os.dup2(fd, number)
        os.close(fd)
    if asked["db"]:
        os.environ["WLCTL_DB"] = asked["db"]
    listen_to(_mortal(asked["die_at"]))
    if asked["synchronous"]:
        _sync_as(asked["synchronous"])
    sys.stdin, sys.stdout, sys.stderr = (
        open(fd, mode, encoding="utf-8", closefd=False)  # noqa: SIM115 - they are the process's own
        for fd, mode in ((0, "r"), (1, "w"), (2, "w"))
    )
    code = 70
    try:
        code = app.main(asked["argv"])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _mortal(die_at: int) -> Callable[[str], None]:
    moments = os.open("moments", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    left = iter(range(1, sys.maxsize))

    def moment(name: str) -> None:
        os.write(moments, f"{name}\n".encode())
        if next(left) == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    return moment


def listen_to(moment: Callable[[str], None]) -> None:
    """Have `moment` called after each commit, and before, amid and after each step on a node."""
    commits, runs, listens = Ledger.write, Session._run, _Talk.read_answer

    @contextmanager
    def write(self: Ledger, now_ms: int, author: Author) -> Iterator[WriteTx]:
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
