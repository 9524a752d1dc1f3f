"""The bytes below SSH: a TCP connection, a jump host's channel, or the streams of a command."""

import contextlib
import errno
import os
import signal
import socket
import subprocess
import time

import paramiko

from wlctl.errors import BannerTimeout, ConnectFailed, ConnectTimeout

CHECK_WAY = "check address, port and firewalls, and that sshd runs there"

COMPLAINT_MAX_BYTES = 4096

HOLD_BYTES = 16 * 1024
"""Paramiko asks for the head of a packet and then for its rest: both have mostly come by then."""

PROXY_GRACE_S = 0.5
"""How long a proxy command may take to end once its streams are closed."""

_DEAD_AFTER = (
    (socket.SO_KEEPALIVE, socket.SOL_SOCKET, 1),
    (socket.TCP_KEEPIDLE, socket.IPPROTO_TCP, 15),
    (socket.TCP_KEEPINTVL, socket.IPPROTO_TCP, 5),
    (socket.TCP_KEEPCNT, socket.IPPROTO_TCP, 3),
)
"""The kernel asks a machine that says nothing: 15 s, and three times 5 s."""


class Wire:
    """What paramiko reads and writes; it neither waits for small packets nor for ever.

    Linux forgets TCP_QUICKACK at will, so it is set again at each receive; without it every
    exchange of small packets stands still for 40 ms. Paramiko tries to write until it is closed, so
    a peer that takes nothing, or a byte now and then, is given up here.

    Args:
        stall_s: How long the other side may take for one packet.

    Source: Linux, tcp(7).
    """

    def __init__(self, stream: socket.socket | paramiko.Channel, *, stall_s: float) -> None:
        self._stream = stream
        self._stall_s = stall_s
        self._stuck_since_s: float | None = None
        self._broken = False
        self._held = b""
        self._tcp = isinstance(stream, socket.socket) and stream.family != socket.AF_UNIX

    def await_greeting(self, where: str, banner_s: float) -> None:
        """Wait for the first byte, and keep it for the first receive.

        Raises:
            BannerTimeout: None came in time.
            ConnectFailed: None will come.
        """
        self._stream.settimeout(banner_s)
        try:
            self._held = self._stream.recv(1)
        except TimeoutError as error:
            raise BannerTimeout(
                f"{where} accepts and does not greet within {banner_s:g} s"
            ) from error
        except OSError as error:
            raise ConnectFailed(f"{where} hung up: {error.strerror}") from error
        if not self._held:
            raise ConnectFailed(f"{where} hung up without a greeting")

    def recv(self, count: int) -> bytes:
        """Receive, acknowledging at once; what comes with it is held for the next receive."""
        if self._held:
            held, self._held = self._held[:count], self._held[count:]
            return held
        self._check_taken()
        if self._tcp:
            assert isinstance(self._stream, socket.socket)
            self._stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        got = self._stream.recv(max(count, HOLD_BYTES))
        self._held = got[count:]
        return got[:count]

    def send(self, data: bytes) -> int:
        """Send some of `data`; TimeoutError means try again."""
        self._check_taken()
        try:
            sent = self._stream.send(data)
        except TimeoutError:
            self._wait_on()
            raise
        if sent == len(data):
            self._stuck_since_s = None
        else:
            self._wait_on()
        return sent

    def _wait_on(self) -> None:
        now_s = time.monotonic()
        self._stuck_since_s = self._stuck_since_s or now_s
        self._broken = now_s - self._stuck_since_s >= self._stall_s

    def _check_taken(self) -> None:
        if self._broken:  # as no TimeoutError, which ETIMEDOUT would be: paramiko tries those again
            raise ConnectionAbortedError(errno.ECONNABORTED, "the other side takes nothing")

    def settimeout(self, timeout_s: float | None) -> None:
        """Bound each receive and send."""
        self._stream.settimeout(timeout_s)

    def close(self) -> None:
        """Let go of the stream; a jump host that is gone cannot be told."""
        with contextlib.suppress(EOFError, OSError, paramiko.SSHException):
            self._stream.close()

    @property
    def _closed(self) -> bool:  # paramiko asks for it
        if isinstance(self._stream, socket.socket):
            return self._stream.fileno() < 0
        return bool(self._stream.closed)


def connect(host: str, port: int, where: str, connect_s: float) -> socket.socket:
    """Connect by TCP.

    Raises:
        ConnectTimeout: Nothing answered in time.
        ConnectFailed: The name does not resolve, or nothing listens there.
    """
    try:
        sock = socket.create_connection((host, port), timeout=connect_s)
    except TimeoutError as error:
        said = f"{where} did not answer in {connect_s:g} s"
        raise ConnectTimeout(said, hint=CHECK_WAY) from error
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise ConnectFailed(f"{where} cannot be connected to: {why}", hint=CHECK_WAY) from error
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option, level, value in _DEAD_AFTER:
        sock.setsockopt(level, option, value)
    return sock


class ProxyCommand:
    """A command of ssh's configuration, whose input and output lead to a machine.

    It runs as ssh runs it: by the shell, with our environment. It is in a session of its own, so
    that a Ctrl-C here does not cut an action in the middle; it ends when its streams do.

    Raises:
        ConnectFailed: It cannot be started.
    """

    def __init__(self, command: str) -> None:
        self._command = command
        self.socket, theirs = socket.socketpair()
        self._complaint, stderr = os.pipe()
        # When it complains more than the pipe holds, the rest is lost rather than waited for
        os.set_blocking(stderr, False)
        os.set_blocking(self._complaint, False)
        try:
            self._child = subprocess.Popen(  # noqa: S603 - the user's own words, as ssh runs them
                ["/bin/sh", "-c", f"exec {command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=stderr,
                start_new_session=True,
            )
        except OSError as error:
            self.socket.close()
            os.close(self._complaint)
            raise ConnectFailed(f"`{command}` cannot be started: {error.strerror}") from error
        finally:
            theirs.close()
            os.close(stderr)

    def complaint(self) -> str:
        """Return what it has said on its error stream."""
        with contextlib.suppress(BlockingIOError):
            said = os.read(self._complaint, COMPLAINT_MAX_BYTES)
            return " ".join(said.decode("utf-8", errors="replace").split())
        return ""

    def close(self) -> None:
        """End it and whatever it started."""
        self.socket.close()
        os.close(self._complaint)
        try:
            self._child.wait(PROXY_GRACE_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
