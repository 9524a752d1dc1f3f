"""One authenticated connection to a node, over as many hops as it takes, and the shells on it."""

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

import paramiko

from wlctl.errors import ConnectionLost, ShellFailed
from wlctl.host import door
from wlctl.host.ssh.connection import Connection, Expected, line_of
from wlctl.host.ssh.known_hosts import Known, known
from wlctl.host.ssh.route import Route, route
from wlctl.host.ssh.tokens import caller
from wlctl.host.ssh.way import Credentials, Way
from wlctl.host.transport import ChannelBroken, ChannelEnded, ChannelSilent, Deadlines
from wlctl.model.node import Address

COMPLAINT_MAX_BYTES = 4096

COMPLAINT_S = 1.0
"""It is asked for when the command has ended: what is under way arrives now or never."""

READ_BYTES = 64 * 1024

SETTLE_S = 0.1
"""How long a connection may take to be seen as gone, once its channel is."""

ASKS_PER_SILENCE = 3
"""How often a connection that says nothing is asked whether it lives, before it counts as dead."""


class SshChannel:
    """One command on the connection.

    Args:
        dead_after_s: How long the connection may give no sign of life.
    """

    def __init__(self, ssh: Connection, channel: paramiko.Channel, *, dead_after_s: float) -> None:
        self._ssh = ssh
        self._channel = channel
        self._dead_after_s = dead_after_s
        self._complaint = bytearray()

    def send(self, data: bytes, timeout_s: float) -> None:
        """Write all of `data`; see `Channel`."""
        rest = memoryview(data)
        ends_at_s = time.monotonic() + timeout_s
        while rest:
            # in all: the other side could take a byte at a time
            if (left_s := ends_at_s - time.monotonic()) <= 0:
                raise ChannelSilent
            self._channel.settimeout(left_s)
            try:
                sent = self._channel.send(bytes(rest))
            except TimeoutError:
                raise ChannelSilent from None
            except (OSError, EOFError, paramiko.SSHException):
                raise self._ended() from None
            if sent == 0:
                raise self._ended()
            rest = rest[sent:]

    def receive(self, timeout_s: float) -> bytes:
        """Return what came; see `Channel`. A connection that is dead meanwhile has ended."""
        ends_at_s = time.monotonic() + timeout_s
        while True:
            left_s = ends_at_s - time.monotonic()
            self._channel.settimeout(max(0.001, min(left_s, self._dead_after_s / ASKS_PER_SILENCE)))
            try:
                got = self._channel.recv(READ_BYTES)
            except TimeoutError:
                if time.monotonic() >= ends_at_s:
                    raise ChannelSilent from None
                self._ask_alive()
                continue
            except (EOFError, OSError, paramiko.SSHException):
                raise self._ended() from None
            if not got:
                raise self._ended()
            return got

    def _ended(self) -> ChannelEnded:
        """Say whether the command ended, or all of the connection."""
        if not self._channel.eof_received:
            self._ssh.join(SETTLE_S)  # paramiko lets go of its channels first
            if not self._ssh.is_alive():
                return ChannelBroken()
        return ChannelEnded()

    def _ask_alive(self) -> None:
        if time.monotonic() - self._ssh.heard_at_s > self._dead_after_s:
            raise ChannelBroken
        try:
            self._ssh.ask_alive()
        except (EOFError, OSError, paramiko.SSHException):
            raise ChannelBroken from None

    def complaint(self) -> str:
        """Return the beginning of the error stream."""
        ends_at_s = time.monotonic() + COMPLAINT_S
        while len(self._complaint) < COMPLAINT_MAX_BYTES:
            if (left_s := ends_at_s - time.monotonic()) <= 0:
                break
            self._channel.settimeout(left_s)
            try:
                got = self._channel.recv_stderr(COMPLAINT_MAX_BYTES)
            except (TimeoutError, EOFError, OSError, paramiko.SSHException):
                break
            if not got:
                break
            self._complaint += got
        return self._complaint[:COMPLAINT_MAX_BYTES].decode("utf-8", errors="replace")

    def close(self) -> None:
        """Close the channel; the action ignores it and goes on to its end."""
        with contextlib.suppress(EOFError, OSError, paramiko.SSHException):
            self._channel.close()


class SshTransport:
    """An authenticated connection to the machine with the recorded host key.

    Raises:
        Unreachable: In the leaf that says which step failed, naming the hop.
    """

    def __init__(self, address: Address, *, credentials: Credentials, deadlines: Deadlines) -> None:
        self._shell = "sudo -n sh -s " if address.sudo else "sh -s "
        self._enforced = address.enforced
        self._deadlines = deadlines
        self._way = Way(credentials, deadlines)
        try:
            way = _route(address, credentials)
            self._where = way.hops[-1].where
            recorded = Expected(recorded=address.host_key or "none")
            self._ssh = self._way.travel(way, recorded)
            self._way.log_in(self._ssh, way.hops[-1])
        except BaseException:
            self._way.close()
            raise

    def open(self, nonce: str, text: bytes) -> SshChannel:
        """Start the shell, or ask the doorkeeper; see `Transport`."""
        command = door.request(text, nonce) if self._enforced else self._shell + nonce
        try:
            channel = self._ssh.open_session(timeout=self._deadlines.silence_s)
            self._ssh.execute(channel, command)
        except paramiko.ChannelException as error:
            raise ShellFailed(f"{self._where} opens no session: {error.text}") from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            why = str(error) or "it hung up"
            raise ConnectionLost(f"the connection to {self._where} ended: {why}") from error
        return SshChannel(self._ssh, channel, dead_after_s=self._deadlines.silence_s)

    def close(self) -> None:
        """End the connection, and those below it."""
        self._way.close()


def login_name(address: Address, configs: Sequence[Path] = ()) -> str:
    """Say which login the address leads to, by ssh's configuration files where it names none."""
    return _route(address, Credentials(configs=tuple(configs))).hops[-1].user


def scan_host_key(
    address: Address,
    *,
    credentials: Credentials | None = None,
    trusted: Path | None = None,
    deadlines: Deadlines | None = None,
) -> str:
    """Return the host key that the machine at `address` shows, `TYPE BASE64`.

    Ed25519 where it has one. Jump hosts on the way are logged in to; the machine itself is not.

    Args:
        trusted: A known_hosts file that must know the key, or an authority for it; without one
            any key is returned, and whether it is right is for the caller to find out.

    Raises:
        HostKeyChanged, HostKeyUnknown: `trusted` says otherwise, or nothing.
        HostKeyRevoked: `trusted`, or the user's own known_hosts, says that the key is revoked.
        Unreachable: Nothing there speaks SSH.
    """
    credentials = credentials or Credentials()
    bounds = deadlines or Deadlines()
    found = _route(address, credentials)
    node = found.hops[-1]
    uid = caller().uid
    if trusted is not None:
        expected = Expected(known=known(node.key_name, [trusted], uid))
    else:
        said = known(node.key_name, node.known_hosts, uid) if credentials.configs else Known()
        expected = Expected(revoked=said.revoked)
    with contextlib.closing(Way(credentials, bounds)) as way:
        return line_of(way.travel(found, expected))


def _route(address: Address, credentials: Credentials) -> Route:
    return route(
        address.host,
        user=address.user,
        port=address.port,
        files=credentials.configs,
        caller=caller(),
    )
