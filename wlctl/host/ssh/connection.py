"""One SSH connection: greeted, its keys exchanged, and its host key checked."""

import base64
import binascii
import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import paramiko
from paramiko.common import cMSG_CHANNEL_REQUEST, cMSG_GLOBAL_REQUEST
from paramiko.message import Message
from paramiko.packet import Packetizer
from paramiko.ssh_exception import IncompatiblePeer

from wlctl.errors import (
    AuthTimeout,
    ConnectFailed,
    HostKeyChanged,
    HostKeyRevoked,
    HostKeyUnknown,
)
from wlctl.host.ssh import certificate
from wlctl.host.ssh.certificate import NoCertificate
from wlctl.host.ssh.known_hosts import Known
from wlctl.host.ssh.route import Hop
from wlctl.host.ssh.wire import Wire
from wlctl.host.transport import Deadlines

KEY_TYPES: Final = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
)
"""Best first."""

_ALGORITHMS: Final = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
"""Key type to the algorithms it is asked for by; any other is asked for by its own name."""

_CIPHERS: Final = (
    "aes128-gcm@openssh.com",
    "aes256-gcm@openssh.com",
    "aes128-ctr",
    "aes192-ctr",
    "aes256-ctr",
)
"""The first two need no message code of their own, so they cost half in Python."""

_MACS: Final = (
    "hmac-sha2-256-etm@openssh.com",
    "hmac-sha2-512-etm@openssh.com",
    "hmac-sha2-256",
    "hmac-sha2-512",
)

PACKET_MAX_BYTES: Final = 256 * 1024
"""What announces more is not SSH. Source: OpenSSH, packet.c, PACKET_MAX_SIZE."""

GREETING_MAX_BYTES: Final = 64 * 1024
"""A server may say something before its version; paramiko would read it without an end."""


@dataclass(frozen=True, slots=True)
class Expected:
    """Which host key may be shown.

    Attributes:
        recorded: `TYPE BASE64`: this key and no other; None to ask `known` instead.
        known: What known_hosts files say; None to take whatever is shown.
        revoked: What may never be shown, as blobs.
    """

    recorded: str | None = None
    known: Known | None = None
    revoked: frozenset[bytes] = frozenset()

    @property
    def algorithms(self) -> tuple[str, ...]:
        """What to ask for, best first: certificates only where somebody may have signed one."""
        if self.recorded:
            return algorithms_of([self.recorded.partition(" ")[0]])
        if self.known is None or self.known.empty:
            return algorithms_of(KEY_TYPES)
        certified = KEY_TYPES if self.known.authorities else ()
        plain = self.known.key_types or KEY_TYPES
        return (
            *(f"{name}{certificate.SUFFIX}" for name in algorithms_of(certified)),
            *algorithms_of([kind for kind in plain if kind in KEY_TYPES]),
        )


def algorithms_of(types: Sequence[str]) -> tuple[str, ...]:
    """Return the names by which keys of `types` are asked for."""
    return tuple(name for kind in types for name in _ALGORITHMS.get(kind, (kind,)))


class _Hearing(Packetizer):
    """Knows when it heard of the other side, and takes so much of it at once and no more."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)  # type: ignore[arg-type]  # it uses no more of a socket than a Wire has
        self.heard_at_s = time.monotonic()
        self._greeting_left = GREETING_MAX_BYTES

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        if n > PACKET_MAX_BYTES:
            raise paramiko.SSHException(f"it announces a packet of {n} bytes")
        found: bytes = super().read_all(n, check_rekey)
        return found

    def _read_timeout(self, timeout: float) -> bytes:
        found: bytes = super()._read_timeout(timeout)  # type: ignore[misc]  # the stubs leave it out
        self._greeting_left -= len(found)
        if self._greeting_left < 0:
            raise paramiko.SSHException(": it has no end")
        return found

    def read_message(self) -> tuple[int, Message]:
        found: tuple[int, Message] = super().read_message()
        self.heard_at_s = time.monotonic()
        return found


_Handler = Callable[[paramiko.Channel, Message], None]


def _within_window(handler: _Handler) -> _Handler:
    """Hold the other side to the window it was given: paramiko keeps whatever comes."""

    def handle(channel: paramiko.Channel, message: Message) -> None:
        handler(channel, message)
        if len(channel.in_buffer) + len(channel.in_stderr_buffer) > channel.in_window_size:
            raise paramiko.SSHException("it sends more than it was asked for")

    return handle


class Connection(paramiko.Transport):
    """What paramiko leaves to be said about a connection."""

    packetizer: _Hearing

    def __init__(self, wire: Wire, algorithms: Sequence[str], deadlines: Deadlines) -> None:
        super().__init__(
            wire,  # type: ignore[arg-type]  # as above
            packetizer_class=_Hearing,
        )
        handlers: dict[int, _Handler] = self._channel_handler_table  # type: ignore[has-type]  # the stubs leave it out
        self._channel_handler_table = {at: _within_window(do) for at, do in handlers.items()}
        self._algorithms = tuple(algorithms)
        self.banner_timeout = deadlines.banner_s
        self.handshake_timeout = deadlines.auth_s
        self.auth_timeout = deadlines.auth_s
        self.clear_to_send_timeout = deadlines.silence_s
        self.channel_timeout = deadlines.silence_s

    @property
    def preferred_keys(self) -> tuple[str, ...]:
        """Exactly what is expected, in that order."""
        return self._algorithms

    @property
    def preferred_ciphers(self) -> tuple[str, ...]:
        """The fast ones first, and none that is known to be weak."""
        return _CIPHERS

    @property
    def preferred_macs(self) -> tuple[str, ...]:
        """None that is known to be weak."""
        return _MACS

    @property
    def heard_at_s(self) -> float:
        """When the last packet came, on the monotonic clock."""
        return self.packetizer.heard_at_s

    def get_exception(self) -> Exception | None:
        """Return what ended the connection; what is no SSH ends it in errors of any kind."""
        found = super().get_exception()
        if found is None or isinstance(found, paramiko.SSHException | OSError | EOFError):
            return found
        broken = paramiko.SSHException(f"it sends what is no SSH ({type(found).__name__})")
        broken.__cause__ = found
        return broken

    def ask_alive(self) -> None:
        """Ask for an answer of whatever kind; sshd gives one to a request that it does not know."""
        message = Message()
        message.add_byte(cMSG_GLOBAL_REQUEST)
        message.add_string("keepalive@openssh.com")
        message.add_boolean(True)
        self._send(message)

    def execute(self, channel: paramiko.Channel, command: str) -> None:
        """Have `command` run, without waiting for the word that it does.

        A no closes the channel; paramiko would wait for either without an end.
        """
        message = Message()
        message.add_byte(cMSG_CHANNEL_REQUEST)
        message.add_int(channel.remote_chanid)
        message.add_string("exec")
        message.add_boolean(True)
        message.add_string(command)
        self._send(message)

    def _log(self, *_words: object) -> None:
        """Say nothing: what goes wrong is raised, and nobody reads paramiko's own log."""

    def _parse_debug(self, _message: Message) -> None:
        """Pass over what sshd says for its debugging: paramiko spells it out for a log."""

    def _send(self, message: Message) -> None:
        self._send_user_message(message)  # type: ignore[attr-defined]  # the stubs leave it out


def greet(wire: Wire, hop: Hop, expected: Expected, deadlines: Deadlines) -> Connection:
    """Wait for the banner, and exchange keys.

    Raises:
        BannerTimeout: Nothing greets.
        AuthTimeout: The exchange takes too long.
        ConnectFailed: What is there does not speak SSH.
        HostKeyChanged: It has no key of the type that is expected.
    """
    wire.await_greeting(hop.where, deadlines.banner_s)
    ssh = Connection(wire, expected.algorithms, deadlines)
    started_at_s = time.monotonic()
    try:
        ssh.start_client(timeout=deadlines.auth_s)
        ssh.get_remote_server_key()  # it returns in silence when its time is up
    except (paramiko.SSHException, OSError, EOFError) as error:
        ssh.close()
        if isinstance(error, IncompatiblePeer) and "host key" in str(error):
            asked = ", ".join(expected.algorithms)
            raise changed(hop, f"it no longer has a key of the recorded type ({asked})") from error
        if time.monotonic() - started_at_s >= deadlines.auth_s:
            raise AuthTimeout(
                f"{hop.where} did not finish the key exchange in {deadlines.auth_s:g} s"
            ) from error
        why = str(error)[:200] or "it hung up"
        raise ConnectFailed(f"{hop.where} does not speak SSH as it should: {why}") from error
    return ssh


def check_host_key(ssh: Connection, hop: Hop, expected: Expected, now_s: int) -> None:
    """Make sure that the machine is the one that is meant.

    Args:
        now_s: The time, for certificates: seconds since the epoch.

    Raises:
        HostKeyChanged, HostKeyUnknown, HostKeyRevoked: It is not, or nobody can know.
    """
    shown = _blob(ssh)
    known = expected.known or Known(revoked=expected.revoked)
    if {shown, plain_key(ssh)[1]} & known.revoked:
        raise _revoked(hop, plain_key(ssh)[1])
    if expected.recorded is not None:
        if line_of(ssh) != " ".join(expected.recorded.split()[:2]):
            raise changed(hop, f"it shows {fingerprint(line_of(ssh))}")
    elif expected.known is not None:
        _check_known(ssh, hop, known, now_s)


def _check_known(ssh: Connection, hop: Hop, known: Known, now_s: int) -> None:
    why = ""
    if (shown := _blob(ssh)) != plain_key(ssh)[1]:
        try:
            _check_certificate(shown, hop, known, now_s)
        except NoCertificate as error:
            why = f"; its certificate does not count: {error}"
        else:
            return
    if plain_key(ssh) in known.keys:
        return
    shows = f"it shows {fingerprint(line_of(ssh))}{why}"
    if known.keys:
        raise changed(hop, shows)
    raise HostKeyUnknown(
        f"nothing says whether {hop.where} is the machine that is meant: {shows}",
        hint=f"compare its key and record it: ssh -o StrictHostKeyChecking=ask {hop.name} true",
    )


def _check_certificate(blob: bytes, hop: Hop, known: Known, now_s: int) -> None:
    cert = certificate.read(blob)
    if cert.authority in known.revoked:
        raise _revoked(hop, cert.authority)
    if cert.authority not in known.authorities:
        raise NoCertificate("nobody who may has signed it")
    name = hop.key_name.removeprefix("[").rpartition("]:")[0] or hop.key_name
    certificate.check_host(cert, name, now_s)


def changed(hop: Hop, what: str) -> HostKeyChanged:
    """Say that a machine is not the one it was."""
    return HostKeyChanged(
        f"{hop.where} is not the machine that it was: {what}",
        hint="find out why its key changed; nothing is sent there meanwhile",
    )


def _revoked(hop: Hop, blob: bytes) -> HostKeyRevoked:
    key = base64.b64encode(blob).decode("ascii")
    return HostKeyRevoked(f"{hop.where} shows a revoked key: {fingerprint(f'- {key}')}")


def line_of(ssh: Connection) -> str:
    """Return the key that is shown, `TYPE BASE64`; of a certificate the key that it is for."""
    kind, blob = plain_key(ssh)
    return f"{kind} {base64.b64encode(blob).decode('ascii')}"


def plain_key(ssh: Connection) -> tuple[str, bytes]:
    """Return type and blob of the key that is shown; of a certificate the key that it is for."""
    shown = ssh.get_remote_server_key()
    return shown.get_name(), bytes(shown.asbytes())


def _blob(ssh: Connection) -> bytes:
    """Return what is shown: a key, or a certificate."""
    public = getattr(ssh.get_remote_server_key(), "public_blob", None)
    return plain_key(ssh)[1] if public is None else bytes(public.key_blob)


def fingerprint(host_key: str) -> str:
    """Return `SHA256:…` of a host key `TYPE BASE64`, as OpenSSH prints it.

    Raises:
        ValueError: It is no host key.

    Source: OpenSSH, ssh-keygen(1), `-l`.
    """
    try:
        blob = base64.b64decode(host_key.split()[1], validate=True)
    except (IndexError, binascii.Error) as error:
        raise ValueError("a host key is `TYPE BASE64`") from error
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode("ascii")
    return f"SHA256:{digest.rstrip('=')}"
