"""What greets as SSH does and then is none: an error of that machine alone, and bounded."""

import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import paramiko
import pytest
from paramiko.common import (
    AUTH_SUCCESSFUL,
    OPEN_SUCCEEDED,
    cMSG_CHANNEL_DATA,
    cMSG_CHANNEL_EXTENDED_DATA,
    cMSG_CHANNEL_WINDOW_ADJUST,
)
from paramiko.message import Message

from wlctl.errors import ConnectFailed, Unreachable
from wlctl.host.ssh.connection import (
    GREETING_MAX_BYTES,
    PACKET_MAX_BYTES,
    Connection,
    Expected,
    greet,
)
from wlctl.host.ssh.route import Hop
from wlctl.host.ssh.transport import SshChannel
from wlctl.host.ssh.wire import Wire
from wlctl.host.transport import ChannelSilent, Deadlines

HOP = Hop("elm", "elm", 22, "root", (), (), True, "none", (), "elm")

BOUNDS = Deadlines(banner_s=10.0, auth_s=20.0, silence_s=20.0)

VERSION = b"SSH-2.0-odd\r\n"
KEXINIT = b"\x14"
DISCONNECT = b"\x01"


def packet(payload: bytes, *, padding: int | None = None, length: int | None = None) -> bytes:
    """A packet before any key was exchanged. Source: RFC 4253, section 6."""
    pad = 16 - (len(payload) + 5) % 8
    body = bytes([pad if padding is None else padding]) + payload + bytes(pad)
    return struct.pack(">I", len(body) if length is None else length) + body


@contextmanager
def peer(serve: Callable[[socket.socket], None]) -> Iterator[Wire]:
    """The bytes to somebody who does `serve`, and then only listens."""
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # what it does not take stays here

    def run() -> None:
        try:
            serve(theirs)
            while theirs.recv(65536):
                pass
        except OSError:
            pass  # we have hung up

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield Wire(ours, stall_s=1.0)
    finally:
        ours.close()
        theirs.shutdown(socket.SHUT_RDWR)
        thread.join()
        theirs.close()


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(packet(b"", padding=255, length=4), id="a packet of nothing"),
        pytest.param(packet(b"", padding=0, length=0), id="a packet that is shorter than none"),
        pytest.param(packet(b"\xfa"), id="an unknown message"),
        pytest.param(packet(KEXINIT), id="an exchange that is cut"),
        pytest.param(
            packet(KEXINIT + bytes(16) + struct.pack(">I", 2) + b"\xff\xfe" + bytes(40)),
            id="names that are no text",
        ),
        pytest.param(
            packet(DISCONNECT + struct.pack(">II", 2, 2) + b"\xff\xfe"),
            id="a farewell that is no text",
        ),
        pytest.param(
            packet(KEXINIT, length=0xFFFFFFFC) + bytes(2 * PACKET_MAX_BYTES),
            id="a packet of four gigabytes",
        ),
        pytest.param(os.urandom(65536), id="noise"),
    ],
)
def test_a_machine_that_sends_what_is_no_ssh_is_one_that_cannot_be_reached(sent: bytes) -> None:
    with peer(lambda sock: sock.sendall(VERSION + sent)) as wire, pytest.raises(Unreachable):
        greet(wire, HOP, Expected(), BOUNDS)


@pytest.mark.parametrize("line", [b"x" * 100, b"SSH-2.0-" + b"x" * 92], ids=["a text", "a version"])
def test_a_greeting_without_an_end_is_given_up(line: bytes) -> None:
    sent = []

    def flood(sock: socket.socket) -> None:
        sock.sendall(line)
        while True:
            sent.append(sock.send(bytes(4096)))

    with peer(flood) as wire, pytest.raises(ConnectFailed, match="no end"):
        greet(wire, HOP, Expected(), BOUNDS)
    assert sum(sent) < 64 * GREETING_MAX_BYTES  # all that the socket holds is sent and never read


def test_a_packet_of_any_size_below_the_bound_is_read() -> None:
    with peer(lambda sock: sock.sendall(packet(b"\x02" + bytes(PACKET_MAX_BYTES - 24)))) as wire:
        hearing = Connection(wire, (), BOUNDS).packetizer
        kind, _ = hearing.read_message()
    assert kind == 2


class _Anybody(paramiko.ServerInterface):
    """Lets in whoever comes."""

    def check_auth_none(self, _username: str) -> int:
        return AUTH_SUCCESSFUL

    def check_channel_request(self, _kind: str, _number: int) -> int:
        return OPEN_SUCCEEDED


@contextmanager
def dribbling(one: Callable[[], object]) -> Iterator[None]:
    """Do `one` again and again, for as long as nobody has had enough."""
    enough = threading.Event()

    def run() -> None:
        while not enough.wait(0.05):
            one()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


@contextmanager
def session() -> Iterator[tuple[Connection, paramiko.Channel, paramiko.Channel]]:
    """A connection to a server of our own: it, and a channel as either side has it."""
    ours, theirs = socket.socketpair()
    with closing(paramiko.Transport(theirs)) as server:
        server.add_server_key(paramiko.ECDSAKey.generate())
        server.start_server(threading.Event(), _Anybody())
        with closing(greet(Wire(ours, stall_s=10.0), HOP, Expected(), BOUNDS)) as client:
            client.auth_none("root")
            channel = client.open_session()
            far = server.accept(10)
            assert far is not None
            yield client, channel, far


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(lambda at: Message().add_byte(cMSG_CHANNEL_DATA).add_int(at), id="output"),
        pytest.param(
            lambda at: Message().add_byte(cMSG_CHANNEL_EXTENDED_DATA).add_int(at).add_int(1),
            id="complaints",
        ),
    ],
)
def test_whoever_sends_more_than_was_asked_for_is_cut_off(head: Callable[[int], Message]) -> None:
    with session() as (client, channel, far):
        assert far.transport is not None
        send, piece = far.transport._send_user_message, 32768  # type: ignore[attr-defined]  # past what a channel sends
        with suppress(EOFError):  # we have hung up
            for _ in range(2 * channel.in_window_size // piece):
                send(head(far.remote_chanid).add_string(bytes(piece)))
        client.join(20)

        assert not client.is_active()
        kept = len(channel.in_buffer) + len(channel.in_stderr_buffer)
        assert kept <= channel.in_window_size + piece


def test_whoever_keeps_to_it_may_send_any_amount() -> None:
    whole = 3 << 20
    with session() as (client, channel, far):
        thread = threading.Thread(target=far.sendall, args=(bytes(whole),))
        thread.start()
        near = SshChannel(client, channel, dead_after_s=20.0)
        came = 0
        while came < whole:
            came += len(near.receive(20.0))
        thread.join()
        assert client.is_active()


def test_whoever_takes_a_byte_at_a_time_is_given_up_in_time() -> None:
    with session() as (client, channel, far):
        assert far.transport is not None
        send = far.transport._send_user_message  # type: ignore[attr-defined]  # past what a channel sends
        more = Message().add_byte(cMSG_CHANNEL_WINDOW_ADJUST).add_int(far.remote_chanid).add_int(1)
        near = SshChannel(client, channel, dead_after_s=20.0)
        near.send(bytes(channel.out_window_size), 20.0)
        with dribbling(lambda: send(more)), pytest.raises(ChannelSilent):
            near.send(bytes(32768), 1.0)


def test_a_packet_that_is_taken_ever_so_slowly_is_given_up() -> None:
    def sip(sock: socket.socket) -> None:
        while sock.recv(512):
            time.sleep(0.01)

    with peer(sip) as wire, pytest.raises(ConnectionError, match="takes nothing"):
        wire.settimeout(0.1)
        rest, ends_at_s = bytes(4 << 20), time.monotonic() + 60.0
        while rest and time.monotonic() < ends_at_s:
            with suppress(TimeoutError):  # as paramiko does
                rest = rest[wire.send(rest) :]


def test_whoever_complains_a_byte_at_a_time_is_not_listened_to_for_long() -> None:
    with session() as (client, channel, far):
        near = SshChannel(client, channel, dead_after_s=20.0)
        with dribbling(lambda: far.send_stderr(b"x")):
            said = near.complaint()
        assert set(said) == {"x"}
        assert len(said) < 1000
