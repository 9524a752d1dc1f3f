"""SSH to real servers and to what only looks like one: every trouble has its own error, in time."""

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, Bench, nonce, script
from tests.host.nodes import SshdNode, sshd_nodes
from wlctl.errors import (
    AuthFailed,
    AuthTimeout,
    BannerTimeout,
    ConnectFailed,
    ConnectionLost,
    ConnectTimeout,
    HostKeyChanged,
    Indeterminate,
    ShellFailed,
    Unreachable,
)
from wlctl.host import ssh
from wlctl.host.node import NodeSession, connect
from wlctl.host.transport import Deadlines
from wlctl.model.actions import NodeFacts
from wlctl.model.node import Address

pytestmark = [pytest.mark.root, pytest.mark.sshd]

QUICK = Deadlines(connect_s=0.5, banner_s=0.5, auth_s=3.0, silence_s=2.0, action_s=5.0)


@pytest.fixture(scope="module")
def node() -> Iterator[SshdNode]:
    with sshd_nodes(1) as (node,):
        yield node


def _connect(address: Address, node: SshdNode, **more: object) -> NodeSession:
    usual = {"keys": [node.client_key], "nonce": nonce, "deadlines": QUICK}
    return connect(address, **{**usual, **more})  # type: ignore[arg-type]  # its keywords


def test_a_node_is_reached_and_answers(node: SshdNode) -> None:
    with _connect(node.address, node) as session:
        assert isinstance(session.facts(INSTALLATION), NodeFacts)


def test_several_actions_share_one_connection(node: SshdNode) -> None:
    with _connect(node.address, node) as session:
        for _ in range(5):
            assert isinstance(session.facts(INSTALLATION), NodeFacts)
    wait = time.monotonic() + 5
    while any("sh -s" in text for text in node.commands().values()):
        assert time.monotonic() < wait


def test_another_host_key_is_another_machine(node: SshdNode, tmp_path: Path) -> None:
    other = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)], check=True)
    kind, blob = other.with_suffix(".pub").read_text("ascii").split()[:2]

    with pytest.raises(HostKeyChanged, match="SHA256:"):
        _connect(replace(node.address, host_key=f"{kind} {blob}"), node)


def test_a_host_key_of_a_type_that_is_gone_is_another_machine(node: SshdNode) -> None:
    blob = node.address.host_key.split()[1]

    with pytest.raises(HostKeyChanged, match="rsa-sha2-512"):
        _connect(replace(node.address, host_key=f"ssh-rsa {blob}"), node)


def test_no_recorded_host_key_is_no_host_key(node: SshdNode) -> None:
    with pytest.raises(HostKeyChanged):
        _connect(replace(node.address, host_key=""), node)


def test_the_key_that_a_machine_shows_can_be_asked_for(node: SshdNode) -> None:
    shown = ssh.scan_host_key(replace(node.address, host_key=""))

    assert shown == node.address.host_key
    listed = subprocess.run(
        ["ssh-keygen", "-l", "-f", f"{node.host_key_file}.pub"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ssh.fingerprint(shown) == listed.stdout.split()[1]


@pytest.mark.parametrize("text", ["", "ssh-ed25519", "ssh-ed25519 !!!", "ssh-ed25519 AAA"])
def test_a_fingerprint_of_what_is_no_host_key_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="TYPE BASE64"):
        ssh.fingerprint(text)


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param([], id="no key at all"),
        pytest.param(["missing"], id="a key file that is not there"),
        pytest.param(["garbage"], id="a key file that holds no key"),
        pytest.param(["stranger"], id="a key that the node does not know"),
        pytest.param(["locked"], id="a key behind a passphrase"),
    ],
)
def test_a_login_without_a_key_that_fits_is_refused(
    node: SshdNode, keys: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / "garbage").write_text("no key\n", encoding="ascii")
    for name, word in (("stranger", ""), ("locked", "secret")):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", word, "-f", str(tmp_path / name)]
        subprocess.run(argv, check=True)

    with pytest.raises(AuthFailed):
        _connect(node.address, node, keys=[tmp_path / key for key in keys])


def test_a_login_that_is_not_there_is_refused(node: SshdNode) -> None:
    with pytest.raises(AuthFailed):
        _connect(replace(node.address, user="nobody-here"), node)


def test_a_login_without_a_shell_is_said(node: SshdNode) -> None:
    with (
        _connect(replace(node.address, user="sshd"), node) as session,
        pytest.raises(ShellFailed, match="not available"),
    ):
        session.facts(INSTALLATION)


def test_a_key_of_the_agent_is_tried_after_the_files(
    node: SshdNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sock = tmp_path / "agent"
    agent = subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(sock)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        ends_at_s = time.monotonic() + 5
        while not sock.exists():
            assert time.monotonic() < ends_at_s
            time.sleep(0.01)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(sock))
        add = ["ssh-add", "-q", str(node.client_key)]
        subprocess.run(add, check=True, capture_output=True)

        with _connect(node.address, node, keys=[]) as session:
            assert isinstance(session.facts(INSTALLATION), NodeFacts)
    finally:
        agent.terminate()
        agent.wait()


def test_an_address_where_nothing_listens_is_said(node: SshdNode) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    with pytest.raises(ConnectFailed, match="refused"):
        _connect(replace(node.address, host="127.0.0.1", port=port), node)


def test_a_name_that_does_not_resolve_is_said(node: SshdNode) -> None:
    with pytest.raises(ConnectFailed):
        _connect(replace(node.address, host="nowhere.invalid"), node)


def test_a_black_hole_is_given_up_in_time(node: SshdNode) -> None:
    """A listener whose queue is full drops what comes next, as a firewall does."""
    with socket.socket() as full, contextlib.ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(2):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        time.sleep(0.05)
        started_at_s = time.monotonic()

        with pytest.raises(ConnectTimeout):
            _connect(replace(node.address, host="127.0.0.1", port=full.getsockname()[1]), node)

        assert time.monotonic() - started_at_s < 2.0


@contextlib.contextmanager
def _server(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """Something that accepts connections and is no SSH server."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                peer, _ = server.accept()
                with peer:
                    talk(peer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def _wait_for_end(peer: socket.socket) -> None:
    while peer.recv(4096):
        pass


def _saying(words: bytes) -> Callable[[socket.socket], None]:
    def talk(peer: socket.socket) -> None:
        peer.sendall(words)
        _wait_for_end(peer)

    return talk


@pytest.mark.parametrize(
    ("talk", "failure"),
    [
        pytest.param(_wait_for_end, BannerTimeout, id="silence"),
        pytest.param(lambda peer: None, ConnectFailed, id="hanging up"),
        pytest.param(
            _saying(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            ConnectFailed,
            id="another protocol",
        ),
        pytest.param(
            _saying(b"SSH-2.0-x\r\n" + os.urandom(64)),
            Unreachable,
            id="a greeting and then noise",
        ),
        pytest.param(
            _saying(b"SSH-2.0-x\r\n"),
            AuthTimeout,
            id="a greeting and then silence",
        ),
    ],
)
def test_what_only_looks_like_a_node_is_given_up_in_time(
    node: SshdNode, talk: Callable[[socket.socket], None], failure: type[Exception]
) -> None:
    started_at_s = time.monotonic()

    with _server(talk) as port, pytest.raises(failure):
        _connect(replace(node.address, host="127.0.0.1", port=port), node)

    assert time.monotonic() - started_at_s < 5.0


def test_a_node_that_dies_in_the_middle_is_lost(tmp_path: Path) -> None:
    with sshd_nodes(1) as (node,):
        bench = Bench(node, Deadlines(silence_s=5.0))
        request = bench.request(script("exec sleep 1000"))
        fate = threading.Timer(0.02, node.kill)
        fate.start()

        with pytest.raises((Indeterminate, ConnectionLost)):
            for _ in range(1000):
                bench.session.place(request)
        bench.session.close()
        fate.join()


def test_a_large_file_arrives_whole(node: SshdNode) -> None:
    bench = Bench(node)
    data = os.urandom(5_000_003)

    name = bench.put(data)

    assert (node.state / "store" / name).read_bytes() == data
    bench.session.close()


def test_many_nodes_at_once_fail_alone(node: SshdNode) -> None:
    bad = replace(node.address, port=1)
    answers: dict[int, object] = {}

    def ask(index: int, address: Address) -> None:
        try:
            with _connect(address, node) as session:
                answers[index] = session.facts(INSTALLATION)
        except Unreachable as failure:
            answers[index] = failure

    threads = [
        threading.Thread(target=ask, args=(index, bad if index % 4 == 0 else node.address))
        for index in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for index, answer in answers.items():
        assert isinstance(answer, ConnectFailed if index % 4 == 0 else NodeFacts)
    assert len(answers) == 12
