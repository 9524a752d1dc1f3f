"""Logging in with a password that is typed: at a real sshd, and at what asks for it otherwise."""

import contextlib
import os
import pty
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest
from paramiko.server import InteractiveQuery

from tests.cli.program import Program, program_in
from tests.host.bench import INSTALLATION, nonce
from tests.host.nodes import PASSWORD, PLAIN_USER, SshdNode, sshd_nodes
from wlctl.config import Settings
from wlctl.errors import AuthFailed
from wlctl.flows.runtime import Runtime
from wlctl.host.node import NodeSession, connect
from wlctl.host.ssh import fingerprint
from wlctl.host.transport import Deadlines
from wlctl.model.actions import NodeFacts
from wlctl.model.event import Author
from wlctl.model.node import Address, TransportKind

pytestmark = [pytest.mark.root, pytest.mark.sshd]

HINT = "let wlctl's key in there, and leave out --ask-pass"
PATIENT = Deadlines(auth_s=30.0)


@pytest.fixture(scope="module")
def node() -> Iterator[SshdNode]:
    """A machine whose plain user may log in with a password and become root."""
    with sshd_nodes(1, login="sudo", password=True) as (node,):
        (node.directory / "authorized_keys").write_text("", encoding="ascii")
        yield node


def log_in(node: SshdNode, password: str | None, **changes: object) -> NodeSession:
    address = replace(node.address, **changes)  # type: ignore[arg-type]  # fields of Address
    return connect(
        address, keys=[node.client_key], nonce=nonce, deadlines=PATIENT, password=password
    )


def test_a_password_logs_in_where_no_key_does(node: SshdNode) -> None:
    with pytest.raises(AuthFailed):
        log_in(node, None)

    with log_in(node, PASSWORD) as session:
        assert isinstance(session.facts(INSTALLATION), NodeFacts)


@pytest.mark.parametrize("wrong", ["", "sentinel", PASSWORD.upper(), f"{PASSWORD} "])
def test_a_wrong_password_is_said_to_be_one_and_not_shown(node: SshdNode, wrong: str) -> None:
    with pytest.raises(AuthFailed) as caught:
        log_in(node, wrong)

    assert f"the password is not taken for {PLAIN_USER}" in caught.value.message
    assert wrong == "" or wrong not in f"{caught.value.message}{caught.value.hint}"


def test_a_login_that_takes_no_password_says_what_it_takes() -> None:
    with sshd_nodes(1) as (keys_only,), pytest.raises(AuthFailed) as caught:
        log_in(keys_only, PASSWORD)

    assert "takes no password for root: it takes publickey" in caught.value.message
    assert caught.value.hint == HINT


class Asks(paramiko.ServerInterface):
    """An sshd that asks questions as PAM would: a stand-in, for such a machine changes accounts."""

    def __init__(self, rounds: list[list[tuple[str, bool]]], *, enough: bool = True) -> None:
        self._rounds = list(rounds)
        self._enough = enough
        self.answers: list[str] = []

    def get_allowed_auths(self, username: str) -> str:
        return "publickey,keyboard-interactive"

    def check_auth_interactive(self, username: str, submethods: str) -> int | InteractiveQuery:
        return InteractiveQuery("", "", *self._rounds.pop(0))

    def check_auth_interactive_response(self, responses: list[str]) -> int | InteractiveQuery:
        self.answers += responses
        if self._rounds:
            return InteractiveQuery("", "", *self._rounds.pop(0))
        if not self._enough:
            return paramiko.common.AUTH_PARTIALLY_SUCCESSFUL
        right = self.answers == [PASSWORD]
        return paramiko.common.AUTH_SUCCESSFUL if right else paramiko.common.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.common.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED


@contextlib.contextmanager
def asking(server: Asks, tmp_path: Path) -> Iterator[Address]:
    key = tmp_path / "host"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    host_key = paramiko.Ed25519Key.from_private_key_file(str(key))
    listener = socket.create_server(("127.0.0.1", 0))
    held: list[paramiko.Transport] = []

    def serve() -> None:
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            sock, _ = listener.accept()
            transport = paramiko.Transport(sock)
            held.append(transport)
            transport.add_server_key(host_key)
            transport.start_server(server=server)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield Address(
            TransportKind.SSH,
            host="127.0.0.1",
            port=listener.getsockname()[1],
            user="deploy",
            host_key=f"{host_key.get_name()} {host_key.get_base64()}",
        )
    finally:
        thread.join(20)
        for transport in held:
            transport.close()
            transport.join(20)
        listener.close()


def answer(address: Address) -> None:
    with connect(address, keys=[], nonce=nonce, deadlines=PATIENT, password=PASSWORD):
        pass


def test_one_question_whose_answer_is_not_shown_is_answered(tmp_path: Path) -> None:
    server = Asks([[("Password: ", False)]])

    with asking(server, tmp_path) as address:
        answer(address)

    assert server.answers == [PASSWORD]


@pytest.mark.parametrize(
    ("rounds", "given"),
    [
        pytest.param([[("Password: ", False), ("Token: ", False)]], [], id="two at once"),
        pytest.param([[("Password: ", False)], [("Token: ", False)]], [PASSWORD], id="a second"),
        pytest.param([[("Name: ", True)]], [], id="one whose answer is shown"),
    ],
)
def test_nothing_else_is_ever_answered_with_the_password(
    tmp_path: Path, rounds: list[list[tuple[str, bool]]], given: list[str]
) -> None:
    server = Asks(rounds)

    with asking(server, tmp_path) as address, pytest.raises(AuthFailed) as caught:
        answer(address)

    assert server.answers == given
    assert "a password is not enough for deploy" in caught.value.message
    assert PASSWORD not in caught.value.message


def test_a_password_that_is_one_of_two_factors_is_not_enough(tmp_path: Path) -> None:
    server = Asks([[("Password: ", False)]], enough=False)

    with asking(server, tmp_path) as address, pytest.raises(AuthFailed) as caught:
        answer(address)

    assert "a password is not enough for deploy" in caught.value.message


@pytest.fixture
def program(tmp_path: Path) -> Program:
    made = program_in(tmp_path)
    assert made.run("init").returncode == 0
    return made


def added(node: SshdNode) -> list[str]:
    address = node.address
    where = f"{address.user}@{address.host}"
    key = fingerprint(address.host_key)
    return [
        *("node", "add", "elm", where, "--port", str(address.port), "--sudo"),
        *("--host-key", key, "--ask-pass", "--debug", "-m", "by password"),
    ]


def typed(program: Program, argv: list[str], words: str) -> tuple[int, str, str]:
    """Run it at a terminal, where `words` are typed when it asks for a password.

    Returns:
        Exit code, what the terminal showed, and what /proc showed of the process meanwhile.
    """
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*program.command, *argv],
        cwd=program.directory,
        env=program.variables(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown, seen, is_typed = b"", b"", False
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:  # how a terminal says that its last user is gone
            break
        if b"password of " in shown and not is_typed:
            for name in ("cmdline", "environ"):
                seen += Path(f"/proc/{process.pid}/{name}").read_bytes()
            time.sleep(0.2)  # what is typed before the echo is off would be shown
            os.write(ours, f"{words}\n".encode())
            is_typed = True
    os.close(ours)
    code = process.wait(60)
    return code, shown.decode(), seen.decode("utf-8", "replace")


def test_a_typed_password_is_in_nothing_that_stays_or_is_shown(
    node: SshdNode, program: Program
) -> None:
    code, shown, seen = typed(program, added(node), PASSWORD)

    assert code == 0, shown
    assert f"password of {PLAIN_USER} at {node.address.host}:" in shown
    assert "added elm" in shown
    assert "does not let wlctl's key in yet" in shown
    key = (program.directory / "home/.local/share/wlctl/keys/ssh_ed25519.pub").read_text("ascii")
    assert key.split()[1] in shown, "the line to put there"
    kept = b"".join(
        path.read_bytes() for path in sorted(program.directory.rglob("*")) if path.is_file()
    )
    assert b"by password" in kept, "what is looked through is what was written"
    log = (node.directory / "log").read_bytes()
    for text in (shown.encode(), seen.encode(), kept, log):
        assert PASSWORD.encode() not in text
        assert PASSWORD.split()[1].encode() not in text


def test_a_wrong_one_adds_nothing(node: SshdNode, program: Program) -> None:
    code, shown, _ = typed(program, added(node), f"no {PASSWORD}")

    assert code == 9, shown
    assert "the password is not taken" in shown
    assert PASSWORD not in shown
    assert program.run("node", "ls", "-o", "name").stdout == ""


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        pytest.param(
            ["node", "add", "elm", "root@127.0.0.1", "--ask-pass"],
            2,
            f"wlctl: --ask-pass: nobody is here to type a password: {HINT} [needs-terminal]\n",
            id="without a terminal",
        ),
        pytest.param(
            ["node", "add", "here", "local", "--ask-pass"],
            2,
            "wlctl: nobody logs in to this machine: leave out --ask-pass [usage]\n",
            id="for this machine",
        ),
        pytest.param(
            ["node", "add", "-f", "machines", "--ask-pass"],
            2,
            "wlctl: a list says all of each machine: give --file alone [usage]\n",
            id="for a list",
        ),
        pytest.param(
            ["node", "probe", "--all", "--ask-pass"],
            2,
            "wlctl: a password is for one login: name one node with --ask-pass [usage]\n",
            id="for a fleet",
        ),
        pytest.param(
            ["node", "set", "elm", "--tier", "paired", "--ask-pass"],
            2,
            "wlctl: a port, sudo and a password go with an address: give --address too [usage]\n",
            id="where nobody logs in",
        ),
    ],
)
def test_where_no_password_can_be_typed_one_line_says_so(
    program: Program, argv: list[str], code: int, said: str
) -> None:
    done = program.run(*argv)

    assert (done.returncode, done.stdout, done.stderr) == (code, "", said)


def test_an_administrator_s_password_opens_nothing_but_the_administrator_s_way(
    node: SshdNode, tmp_path: Path
) -> None:
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return PASSWORD

    rt = Runtime(Settings(db=str(tmp_path / "ledger.db")), Author("tester@controller"))
    rt.admin_passwords = ask
    with rt.administrate(node.address, PLAIN_USER), rt.administrate(node.address, PLAIN_USER):
        pass
    with pytest.raises(AuthFailed):
        rt.connect(node.address)

    assert asked == [f"password of {PLAIN_USER} at {node.address.host}:"], "once, and for no other"
