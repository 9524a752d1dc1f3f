"""The local transport: the same actions on this machine, and nothing left of a node's trouble."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, nonce
from wlctl.errors import GarbledAnswer, Indeterminate, ShellFailed, SilenceTimeout, SudoRefused
from wlctl.host import script, transport
from wlctl.host.local import LocalTransport
from wlctl.host.node import NodeSession, connect
from wlctl.host.transport import Call, Deadlines
from wlctl.model.actions import NodeFacts, RefusalCode, Refused
from wlctl.model.node import Address, TransportKind

SHELLS = [("dash",), ("bash",), ("busybox", "ash")]

QUICK = Deadlines(silence_s=0.3, action_s=1.0)


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WLCTL_NODE_STATE", str(tmp_path / "state"))


@pytest.mark.parametrize("shell", SHELLS, ids=lambda argv: argv[0])
def test_this_machine_answers_what_it_is(shell: tuple[str, ...], tmp_path: Path) -> None:
    session = NodeSession(LocalTransport(shell=shell), nonce=nonce, deadlines=Deadlines())

    facts = session.facts(INSTALLATION)

    assert isinstance(facts, NodeFacts)
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    assert facts.boot_id == boot_id
    assert facts.state_dir == str(tmp_path / "state")
    assert facts.cpu_cores == os.cpu_count()
    again = session.facts(INSTALLATION)
    assert isinstance(again, NodeFacts)
    assert again.node_id == facts.node_id, "its id is made once"


def test_an_address_without_ssh_is_this_machine() -> None:
    with connect(Address(TransportKind.LOCAL), keys=[], nonce=nonce) as session:
        assert isinstance(session.facts(INSTALLATION), NodeFacts)


def test_a_shell_that_is_not_there_is_said() -> None:
    with pytest.raises(ShellFailed, match="no-such-shell"):
        LocalTransport(shell=("no-such-shell",)).open(nonce(), b"")


def _program(tmp_path: Path, text: str) -> LocalTransport:
    """A node whose `sh` is this program."""
    path = tmp_path / "node"
    path.write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return LocalTransport(shell=(str(path),))


READY = 'while read -r l && [ "$l" != "}" ]; do :; done; echo "ready $2"; '

FACTS = Call("facts", script.text("facts"), (("installation", "i"),))
CHANGE = Call("stop", script.text("stop"), mutates=True)


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        pytest.param("echo no shell here >&2", ShellFailed, id="a login without a shell"),
        pytest.param("echo 'sudo: a password is required' >&2; exit 1", SudoRefused, id="sudo"),
        pytest.param("exec sleep 5", SilenceTimeout, id="a node that never answers"),
        pytest.param(READY + "exec sleep 5", SilenceTimeout, id="one that stops in the middle"),
        pytest.param(READY + "head -c 10000000 /dev/zero", GarbledAnswer, id="10 MB of zeros"),
        pytest.param(READY + "head -c 100000 /dev/urandom", GarbledAnswer, id="random bytes"),
        pytest.param("exec yes", GarbledAnswer, id="one that never stops talking"),
        pytest.param("yes >&2; :", SilenceTimeout, id="one that never stops complaining"),
        pytest.param("exec yes >&2", ShellFailed, id="one that does nothing else"),
    ],
)
def test_a_node_in_trouble_is_a_clear_error_in_time(
    tmp_path: Path, text: str, failure: type[Exception]
) -> None:
    text += ' || exit 0\nprintf "\\nend %s ok\\n" "$2"' if "head" in text else ""
    started_at_s = time.monotonic()

    with pytest.raises(failure):
        transport.run(_program(tmp_path, text), FACTS, nonce=nonce(), deadlines=QUICK)

    assert time.monotonic() - started_at_s < 3.0


def test_a_change_that_is_not_answered_is_indeterminate(tmp_path: Path) -> None:
    way = _program(tmp_path, READY + "exec sleep 5")

    with pytest.raises(Indeterminate, match="said nothing"):
        transport.run(way, CHANGE, nonce=nonce(), deadlines=QUICK)


def test_a_node_that_takes_no_data_is_given_up(tmp_path: Path) -> None:
    data = [b"x" * 32_768] * 64
    call = Call("receive", script.text("receive"), data=data, data_bytes=sum(map(len, data)))

    with pytest.raises(SilenceTimeout, match="took no data"):
        transport.run(_program(tmp_path, READY + "sleep 5"), call, nonce=nonce(), deadlines=QUICK)


def test_a_daemon_that_keeps_the_pipes_open_does_not_hold_up_the_answer(tmp_path: Path) -> None:
    way = _program(tmp_path, READY + 'sleep 3 <&0 & printf "end %s ok\\n" "$2"')
    started_at_s = time.monotonic()

    transport.run(way, FACTS, nonce=nonce(), deadlines=QUICK)

    assert time.monotonic() - started_at_s < 2.0


def test_ctrl_c_at_the_terminal_does_not_reach_an_action(tmp_path: Path) -> None:
    channel = _program(tmp_path, 'ps -o sid= -p $$; echo "ready $2"; sleep 0.1').open(nonce(), b"")

    session_id = int(channel.receive(5.0).split()[0])
    channel.close()

    assert session_id != os.getsid(0)


def test_an_action_learns_nothing_of_the_caller_s_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASH_ENV", "/tmp/evil")
    monkeypatch.setenv("LD_PRELOAD", "")
    channel = _program(tmp_path, "env; sleep 0.1").open(nonce(), b"")

    names = {line.partition(b"=")[0] for line in channel.receive(5.0).splitlines()}
    channel.close()

    assert names <= {
        b"PATH",
        b"HOME",
        b"XDG_RUNTIME_DIR",
        b"WLCTL_NODE_STATE",
        b"PWD",
        b"SHLVL",
        b"_",
    }


@pytest.mark.parametrize("shell", SHELLS, ids=lambda argv: argv[0])
def test_a_state_directory_that_cannot_be_written_is_said(
    shell: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="ascii")
    monkeypatch.setenv("WLCTL_NODE_STATE", str(tmp_path / "file/state"))
    session = NodeSession(LocalTransport(shell=shell), nonce=nonce, deadlines=Deadlines())

    refused = session.facts(INSTALLATION)

    assert isinstance(refused, Refused)
    assert refused.code is RefusalCode.RESOURCES


def test_nothing_is_left_of_an_action_that_answered() -> None:
    before = _children()
    session = NodeSession(LocalTransport(), nonce=nonce, deadlines=Deadlines())

    for _ in range(3):
        session.facts(INSTALLATION)

    assert _children() <= before  # what others left to be taken in may go meanwhile


def _children() -> set[str]:
    argv = ["ps", "-o", "pid=,stat=", "--ppid", str(os.getpid())]
    listed = subprocess.run(argv, capture_output=True, text=True, check=False).stdout.splitlines()
    return {line.split()[0] for line in listed if "R" not in line.split()[1]}
