"""Nodes that go wrong in the middle: each trouble has its own error in time, and leaves nothing."""

import io
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import nonce, wait_until
from tests.host.nodes import SshdNode, sshd_nodes
from wlctl.errors import (
    ActionTimeout,
    ConnectionLost,
    GarbledAnswer,
    Indeterminate,
    OperationTimeout,
    ShellFailed,
    SilenceTimeout,
    Unreachable,
)
from wlctl.host import transport
from wlctl.host.answer import Answer, Status
from wlctl.host.node import connect
from wlctl.host.ssh import Credentials, SshTransport
from wlctl.host.transport import Call, Deadlines, Operation

pytestmark = [pytest.mark.root, pytest.mark.sshd]

QUICK = Deadlines(
    connect_s=1.0, banner_s=1.0, auth_s=5.0, silence_s=1.0, action_s=3.0, operation_s=30.0
)

READ = Call("facts", b"{\nexit\n}\n")
CHANGE = replace(READ, name="place", mutates=True)

ANSWER = 'set -- $SSH_ORIGINAL_COMMAND; printf "ready %s\\n" "$3"; '
"""What an odd node does first: it says that the action of this nonce is ready."""


@pytest.fixture(scope="module")
def node() -> Iterator[SshdNode]:
    with sshd_nodes(1) as (node,):
        yield node


@pytest.fixture(autouse=True)
def _nothing_left(node: SshdNode) -> Iterator[None]:
    """No descriptor and no thread is left here, and no session there."""
    before = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
    yield
    for pid, words in node.commands().items():
        if not words.startswith("/usr/sbin/sshd"):
            with suppress(ProcessLookupError):
                os.kill(pid, 9)  # what the odd command of a test left behind is the test's own
    wait_until(
        lambda: (
            len(list(Path("/proc/self/fd").iterdir())) <= before[0]
            and threading.active_count() <= before[1]
        ),
        f"no more descriptors and threads than {before}",
    )
    wait_until(lambda: not sessions(node), "the end of every session")


def sessions(node: SshdNode) -> list[str]:
    """The sshd processes there that serve somebody."""
    found = []
    for pid in node.pids():
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
            if words.startswith("sshd:") and "listener" not in words:
                found.append(words)
    return found


@pytest.fixture
def odd(node: SshdNode, tmp_path: Path) -> Iterator["Odd"]:
    allowed = node.directory / "authorized_keys"
    before = allowed.read_text("ascii")
    yield Odd(node, tmp_path / "odd")
    allowed.write_text(before, encoding="ascii")


class Odd:
    """A login on a node that runs something else than what it is asked to."""

    def __init__(self, node: SshdNode, key: Path) -> None:
        self._node = node
        self._key = key
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
        subprocess.run(argv, check=True)

    @contextmanager
    def running(self, command: str, deadlines: Deadlines = QUICK) -> Iterator[SshTransport]:
        public = " ".join(self._key.with_suffix(".pub").read_text("ascii").split()[:2])
        script = self._node.directory / "odd"
        script.write_text(f"{command}\n", encoding="utf-8")
        with (self._node.directory / "authorized_keys").open("a", encoding="ascii") as file:
            file.write(f'command=". {script}" {public}\n')
        way = SshTransport(
            self._node.address, credentials=Credentials((self._key,)), deadlines=deadlines
        )
        try:
            yield way
        finally:
            way.close()

    def ask(self, command: str, call: Call = READ, deadlines: Deadlines = QUICK) -> Answer:
        with self.running(command, deadlines) as way:
            return transport.run(way, call, nonce=nonce(), deadlines=deadlines)


@pytest.mark.parametrize(
    ("command", "call", "failure"),
    [
        pytest.param("exit 1", READ, ShellFailed, id="it ends at once"),
        pytest.param("exit 1", CHANGE, ShellFailed, id="so before a change"),
        pytest.param("sleep 1717", READ, SilenceTimeout, id="it says nothing"),
        pytest.param("sleep 1717", CHANGE, SilenceTimeout, id="so before a change"),
        pytest.param("exec yes", READ, GarbledAnswer, id="it prints without end"),
        pytest.param("exec head -c 10485760 /dev/zero", READ, GarbledAnswer, id="it prints 10 MB"),
        pytest.param("exec head -c 300 /dev/urandom", READ, ShellFailed, id="it prints garbage"),
        pytest.param(f"{ANSWER} exec yes", READ, GarbledAnswer, id="its answer has no end"),
        pytest.param(f"{ANSWER} exec yes", CHANGE, Indeterminate, id="so after a change"),
        pytest.param(
            f"{ANSWER} exec head -c 10485760 /dev/urandom", READ, GarbledAnswer, id="10 MB of it"
        ),
        pytest.param(
            f"{ANSWER} printf 'a b\\nend '; sleep 1717", READ, SilenceTimeout, id="it stops within"
        ),
        pytest.param(
            f"{ANSWER} printf 'a b\\nend '; sleep 1717",
            CHANGE,
            Indeterminate,
            id="it stops within the answer to a change",
        ),
        pytest.param(f"{ANSWER} printf 'a b\\n'", READ, ConnectionLost, id="it ends within"),
        pytest.param(
            f"{ANSWER} while :; do printf 'a b\\n'; sleep 0.1; done",
            READ,
            ActionTimeout,
            id="it always says a little more",
        ),
        pytest.param(
            f"{ANSWER} printf 'end %s ok\\n' 0123456789abcdef",
            READ,
            ConnectionLost,
            id="the answer to somebody else",
        ),
        pytest.param(
            f"{ANSWER} printf '\\377\\nend %s ok\\n' \"$3\"; sleep 1",
            READ,
            GarbledAnswer,
            id="no ASCII",
        ),
    ],
)
def test_a_node_that_goes_wrong_has_its_own_error_in_time(
    odd: Odd, command: str, call: Call, failure: type[Exception]
) -> None:
    started_at_s = time.monotonic()

    with pytest.raises(failure):
        odd.ask(command, call)

    assert time.monotonic() - started_at_s < 6


@pytest.mark.parametrize(
    "left",
    [
        pytest.param("sleep 1717 &", id="it"),
        pytest.param("(setsid sleep 1717 &);", id="a daemon"),
        pytest.param("yes &", id="one that prints on"),
    ],
)
def test_what_keeps_the_channel_open_keeps_nobody_waiting(odd: Odd, left: str) -> None:
    started_at_s = time.monotonic()

    found = odd.ask(f"{ANSWER} {left} printf 'a b\\nend %s ok\\n' \"$3\"")

    assert found.status is Status.OK
    assert time.monotonic() - started_at_s < 2.5


def test_all_of_one_command_has_its_time_too(odd: Odd) -> None:
    deadlines = replace(QUICK, operation_s=1.0)
    operation = Operation(deadlines.operation_s)
    slowly = f"{ANSWER} sleep 0.4; printf 'end %s ok\\n' \"$3\""

    with odd.running(slowly) as way, pytest.raises(OperationTimeout, match="1 s, `facts`"):
        for _ in range(5):
            transport.run(way, READ, nonce=nonce(), deadlines=deadlines, operation=operation)


def test_a_change_that_is_cut_by_that_time_may_have_happened(odd: Odd) -> None:
    deadlines = replace(QUICK, operation_s=0.7)

    with pytest.raises(Indeterminate, match="took longer"):
        odd.ask(f"{ANSWER} sleep 1717", CHANGE, deadlines)


def test_nothing_is_begun_when_that_time_is_over(odd: Odd) -> None:
    operation = Operation(0.0)

    with odd.running("echo") as way, pytest.raises(OperationTimeout):
        transport.run(way, CHANGE, nonce=nonce(), deadlines=QUICK, operation=operation)


def test_a_grace_gives_more_time(odd: Odd) -> None:
    call = replace(READ, extra_s=5.0)
    deadlines = replace(QUICK, silence_s=0.3, action_s=0.3, operation_s=0.3)

    found = odd.ask(f"{ANSWER} sleep 1; printf 'end %s ok\\n' \"$3\"", call, deadlines)

    assert found.status is Status.OK


@contextmanager
def frozen(node: SshdNode) -> Iterator[None]:
    """Stop every process of a node: the kernel still answers for it, and nothing else does."""
    switch = node.cgroup / "cgroup.freeze"
    switch.write_text("1", encoding="ascii")
    try:
        yield
    finally:
        switch.write_text("0", encoding="ascii")


def _way(node: SshdNode, deadlines: Deadlines = QUICK) -> SshTransport:
    return SshTransport(
        node.address, credentials=Credentials((node.client_key,)), deadlines=deadlines
    )


def test_a_dead_connection_is_noticed_long_before_a_grace_is_over(node: SshdNode) -> None:
    call = replace(READ, text=b"{\nread -r l\nexit\n}\n", extra_s=600.0)
    way = _way(node)

    with frozen(node):
        started_at_s = time.monotonic()
        with pytest.raises(Unreachable):
            transport.run(way, call, nonce=nonce(), deadlines=QUICK)
        took_s = time.monotonic() - started_at_s
        way.close()

    assert took_s < 5 * QUICK.silence_s


def test_a_node_that_only_waits_is_not_dead(odd: Odd) -> None:
    call = replace(READ, extra_s=10.0)
    deadlines = replace(QUICK, silence_s=0.3)

    found = odd.ask(f"{ANSWER} sleep 2; printf 'end %s ok\\n' \"$3\"", call, deadlines)

    assert found.status is Status.OK


def test_an_upload_to_a_node_that_takes_nothing_is_given_up(node: SshdNode) -> None:
    """Its window, the socket's buffers and the kernel's are full long before the end."""
    size = 64 << 20
    data = io.BytesIO(bytes(size))
    deadlines = replace(QUICK, action_s=60.0)
    started_at_s = 0.0

    with connect(node.address, keys=[node.client_key], nonce=nonce, deadlines=deadlines) as session:
        fate = threading.Timer(0.1, (node.cgroup / "cgroup.freeze").write_text, ("1",))
        fate.start()
        try:
            started_at_s = time.monotonic()
            with pytest.raises((Unreachable, Indeterminate)):
                for _ in range(50):
                    data.seek(0)
                    session.receive("0" * 64, size, data)
            took_s = time.monotonic() - started_at_s
        finally:
            fate.join()
            (node.cgroup / "cgroup.freeze").write_text("0")

    assert took_s < 10 * QUICK.silence_s


def test_a_login_that_is_frozen_is_given_up(node: SshdNode) -> None:
    deadlines = replace(QUICK, banner_s=0.5)

    with frozen(node), pytest.raises(Unreachable, match=r"does not greet within 0\.5 s"):
        _way(node, deadlines)


def test_a_node_that_starts_no_shell_says_so_at_once(node: SshdNode, odd: Odd) -> None:
    with odd.running("exec /nowhere/sh") as way, pytest.raises(ShellFailed, match="not found"):
        transport.run(way, READ, nonce=nonce(), deadlines=QUICK)
