"""The only module that speaks SSH: one connection per node and command, strict about its host key.

`~/.ssh/config`, jump hosts and certificates are resolved before this point: what arrives here is an
address, a login and the keys to try.
"""

import base64
import binascii
import contextlib
import hashlib
import itertools
import os
import pwd
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import paramiko
from paramiko.ssh_exception import IncompatiblePeer

from wlctl.errors import (
    AuthFailed,
    AuthTimeout,
    BannerTimeout,
    ConnectFailed,
    ConnectionLost,
    ConnectTimeout,
    HostKeyChanged,
    ShellFailed,
)
from wlctl.host.transport import ChannelEnded, ChannelSilent, Deadlines
from wlctl.model.node import Address

KEEPALIVE_S = 15

COMPLAINT_MAX_BYTES = 4096

READ_BYTES = 64 * 1024

_ALGORITHMS: Final = {"ssh-rsa": ("rsa-sha2-512", "rsa-sha2-256")}
"""Key type to the algorithms it is asked for by; any other is asked for by its own name."""


class PromptSocket(socket.socket):
    """A TCP socket that neither holds back small writes nor small acknowledgements.

    Linux forgets TCP_QUICKACK at will, so it is set again at each receive; without it every
    exchange of small packets stands still for 40 ms.

    Source: Linux, tcp(7).
    """

    def recv(self, bufsize: int, flags: int = 0, /) -> bytes:
        """Receive, acknowledging at once."""
        self.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        return super().recv(bufsize, flags)


class SshChannel:
    """One command on the connection."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self._complaint = bytearray()

    def send(self, data: bytes, timeout_s: float) -> None:
        """Write all of `data`; see `Channel`."""
        rest = memoryview(data)
        self._channel.settimeout(timeout_s)
        while rest:
            try:
                sent = self._channel.send(bytes(rest))
            except TimeoutError:
                raise ChannelSilent from None
            except OSError:
                raise ChannelEnded from None
            if sent == 0:
                raise ChannelEnded
            rest = rest[sent:]

    def receive(self, timeout_s: float) -> bytes:
        """Return what came; see `Channel`."""
        self._channel.settimeout(timeout_s)
        try:
            got = self._channel.recv(READ_BYTES)
        except TimeoutError:
            raise ChannelSilent from None
        if not got:
            raise ChannelEnded
        return got

    def complaint(self) -> str:
        """Return the beginning of the error stream."""
        self._channel.settimeout(1.0)  # it ended: what is under way arrives now or never
        while len(self._complaint) < COMPLAINT_MAX_BYTES:
            try:
                got = self._channel.recv_stderr(COMPLAINT_MAX_BYTES)
            except TimeoutError:
                break
            if not got:
                break
            self._complaint += got
        return self._complaint[:COMPLAINT_MAX_BYTES].decode("utf-8", errors="replace")

    def close(self) -> None:
        """Close the channel; the action ignores it and goes on to its end."""
        self._channel.close()


class SshTransport:
    """An authenticated connection to the machine with the recorded host key.

    Args:
        keys: Private key files without passphrase; the agent's keys come after them.

    Raises:
        Unreachable: In the leaf that says which step failed.
    """

    def __init__(self, address: Address, *, keys: Sequence[Path], deadlines: Deadlines) -> None:
        self._command = "sudo -n sh -s " if address.sudo else "sh -s "
        self._where = f"{address.host}:{address.port}"
        self._deadlines = deadlines
        self._ssh = _greet(address.host, address.port, deadlines, key_type=_type_of(address))
        try:
            _check_host_key(self._ssh, address)
            _log_in(self._ssh, address.user or own_login(), keys, deadlines)
        except BaseException:
            self._ssh.close()
            raise
        self._ssh.set_keepalive(KEEPALIVE_S)

    def open(self, nonce: str) -> SshChannel:
        """Start the shell; see `Transport`."""
        try:
            channel = self._ssh.open_session(timeout=self._deadlines.silence_s)
            channel.exec_command(self._command + nonce)
        except paramiko.ChannelException as error:
            raise ShellFailed(f"{self._where} opens no session: {error.text}") from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise ConnectionLost(f"the connection to {self._where} ended: {error}") from error
        return SshChannel(channel)

    def close(self) -> None:
        """End the connection."""
        self._ssh.close()


def own_login() -> str:
    """Return what ssh logs in as when nobody says."""
    return pwd.getpwuid(os.getuid()).pw_name


def scan_host_key(host: str, port: int = 22, *, deadlines: Deadlines | None = None) -> str:
    """Return the host key that `host` shows, `TYPE BASE64`: Ed25519 where it has one.

    Whether it is the right one is for the caller to find out.

    Raises:
        Unreachable: Nothing there speaks SSH.
    """
    ssh = _greet(host, port, deadlines or Deadlines(), key_type="")
    try:
        shown = ssh.get_remote_server_key()
    finally:
        ssh.close()
    return f"{shown.get_name()} {shown.get_base64()}"


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


def _type_of(address: Address) -> str:
    return address.host_key.partition(" ")[0]


def _greet(host: str, port: int, deadlines: Deadlines, *, key_type: str) -> paramiko.Transport:
    """Connect, wait for the banner, and exchange keys."""
    sock = _connect(host, port, deadlines.connect_s)
    try:
        _await_banner(sock, f"{host}:{port}", deadlines.banner_s)
        ssh = paramiko.Transport(sock)
    except BaseException:
        sock.close()
        raise
    ssh.banner_timeout = deadlines.banner_s
    if key_type:
        ssh.get_security_options().key_types = _ALGORITHMS.get(key_type, (key_type,))
    started = time.monotonic()
    try:
        ssh.start_client(timeout=deadlines.auth_s)
        ssh.get_remote_server_key()  # it returns in silence when its time is up
    except (paramiko.SSHException, OSError, EOFError) as error:
        ssh.close()
        if isinstance(error, IncompatiblePeer) and key_type:
            raise _host_key_changed(
                f"{host}:{port}", f"it no longer has a {key_type} key"
            ) from error
        if time.monotonic() - started >= deadlines.auth_s:
            raise AuthTimeout(
                f"{host}:{port} did not finish the key exchange in {deadlines.auth_s:g} s"
            ) from error
        raise ConnectFailed(f"{host}:{port} does not speak SSH as it should: {error}") from error
    return ssh


def _connect(host: str, port: int, connect_s: float) -> socket.socket:
    try:
        plain = socket.create_connection((host, port), timeout=connect_s)
    except TimeoutError as error:
        raise ConnectTimeout(f"{host}:{port} did not answer in {connect_s:g} s") from error
    except OSError as error:
        raise ConnectFailed(f"{host}:{port} cannot be connected to: {error.strerror}") from error
    sock = PromptSocket(fileno=plain.detach())
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _await_banner(sock: socket.socket, where: str, banner_s: float) -> None:
    sock.settimeout(banner_s)
    try:
        first = sock.recv(1, socket.MSG_PEEK)
    except TimeoutError as error:
        raise BannerTimeout(f"{where} accepts and does not greet within {banner_s:g} s") from error
    except OSError as error:
        raise ConnectFailed(f"{where} hung up: {error.strerror}") from error
    if not first:
        raise ConnectFailed(f"{where} hung up without a greeting")


def _check_host_key(ssh: paramiko.Transport, address: Address) -> None:
    shown = ssh.get_remote_server_key()
    if f"{shown.get_name()} {shown.get_base64()}" != " ".join(address.host_key.split()[:2]):
        now = fingerprint(f"{shown.get_name()} {shown.get_base64()}")
        raise _host_key_changed(f"{address.host}:{address.port}", f"it shows {now}")


def _host_key_changed(where: str, what: str) -> HostKeyChanged:
    return HostKeyChanged(
        f"{where} is not the machine that was added: {what}",
        hint="find out why its key changed; nothing is sent there meanwhile",
    )


def _log_in(
    ssh: paramiko.Transport, user: str, files: Sequence[Path], deadlines: Deadlines
) -> None:
    ssh.auth_timeout = deadlines.auth_s
    ends_at_s = time.monotonic() + deadlines.auth_s
    tried = 0
    with _agent_keys() as in_agent:
        for key in itertools.chain(_file_keys(files), in_agent):
            tried += 1
            if _accepts(ssh, user, key):
                return
            if time.monotonic() >= ends_at_s:
                raise AuthTimeout(f"the login as {user} was not done in {deadlines.auth_s:g} s")
            if not ssh.is_active():
                break  # some servers hang up after too many keys
    raise AuthFailed(
        f"the node takes none of {tried} keys for {user}" if tried else "there is no key to try",
        hint="add wlctl's public key to the login's ~/.ssh/authorized_keys on the node",
    )


def _accepts(ssh: paramiko.Transport, user: str, key: paramiko.PKey) -> bool:
    try:
        ssh.auth_publickey(user, key)
    except (paramiko.SSHException, OSError, EOFError):
        return False
    return ssh.is_authenticated()


def _file_keys(files: Sequence[Path]) -> Iterator[paramiko.PKey]:
    for file in files:
        try:
            yield paramiko.PKey.from_path(file)
        except (OSError, ValueError, TypeError, paramiko.SSHException):
            continue  # unreadable, or behind a passphrase: the agent may have it


@contextlib.contextmanager
def _agent_keys() -> Iterator[Sequence[paramiko.PKey]]:
    """Hold the agent open while its keys are tried: it signs with them itself."""
    if "SSH_AUTH_SOCK" not in os.environ:
        yield ()
        return
    try:
        agent = paramiko.Agent()
    except (paramiko.SSHException, OSError):
        yield ()
        return
    try:
        yield agent.get_keys()
    finally:
        agent.close()
