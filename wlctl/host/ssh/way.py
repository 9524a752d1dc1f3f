"""The way to a node: what is held open of it, and what of that many nodes share.

All nodes behind a jump host share one connection to it, as long as any of them needs it: a hundred
logins at once are more than its sshd takes (`MaxStartups`).
"""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import paramiko

from wlctl.errors import ConnectFailed, ConnectionLost, ConnectTimeout, Unreachable
from wlctl.host.ssh import wire
from wlctl.host.ssh.connection import Connection, Expected, check_host_key, greet
from wlctl.host.ssh.known_hosts import known
from wlctl.host.ssh.login import log_in
from wlctl.host.ssh.password import by_password
from wlctl.host.ssh.route import Hop, Route
from wlctl.host.ssh.tokens import caller
from wlctl.host.ssh.wire import ProxyCommand, Wire
from wlctl.host.transport import Deadlines


@dataclass(frozen=True, slots=True)
class Credentials:
    """What this side brings along.

    Attributes:
        keys: wlctl's own private key files, tried before those of the configuration.
        configs: ssh's configuration files, the user's before the system's.
        now_s: The time, for certificates: seconds since the epoch. At 0 none is valid.
        not_with: A private key file whose key is not tried, wherever else it may be found.
        password: To log in at the node with, instead of any key; None for keys. Never shown, and
            never given to a jump host.
    """

    keys: tuple[Path, ...] = ()
    configs: tuple[Path, ...] = ()
    now_s: int = 0
    not_with: Path | None = None
    password: str | None = field(default=None, repr=False)


class Way:
    """What is held open of the way to a node."""

    def __init__(self, credentials: Credentials, deadlines: Deadlines) -> None:
        self._credentials = credentials
        self._deadlines = deadlines
        self._open = contextlib.ExitStack()
        self._proxy: ProxyCommand | None = None

    def travel(self, way: Route, last: Expected) -> Connection:
        """Connect to the last hop, through those before it; log in at all but the last."""
        try:
            return self._meet(self._stream(way), way.hops[-1], last)
        except Unreachable as failure:
            if self._proxy is None or not (said := self._proxy.complaint()):
                raise
            raise type(failure)(
                f"{failure.message} (`{way.command}` says: {said[:200]})", hint=failure.hint
            ) from failure

    def log_in(self, ssh: Connection, hop: Hop) -> None:
        """Log in at `hop`."""
        if self._credentials.password is not None:
            by_password(ssh, hop, self._credentials.password, auth_s=self._deadlines.auth_s)
            return
        log_in(
            ssh,
            hop,
            self._credentials.keys,
            auth_s=self._deadlines.auth_s,
            now_s=self._credentials.now_s,
            not_with=self._credentials.not_with,
        )

    def close(self) -> None:
        """Let go of all of it, the far end first."""
        self._open.close()

    def _stream(self, way: Route) -> Wire:
        """Return the bytes that lead to the last hop."""
        if len(way.hops) == 1:
            return self._first(way)
        before = Route(way.hops[:-1], way.command)
        by_keys = replace(self._credentials, password=None)
        ssh = self._open.enter_context(_JUMPS.borrow(before, by_keys, self._deadlines))
        stream = self._through(ssh, before.hops[-1], way.hops[-1])
        self._open.callback(stream.close)
        return stream

    def _first(self, way: Route) -> Wire:
        hop = way.hops[0]
        stall_s = self._deadlines.silence_s
        if not way.command:
            sock = wire.connect(hop.host, hop.port, hop.where, self._deadlines.connect_s)
            self._open.callback(sock.close)
            return Wire(sock, stall_s=stall_s)
        self._proxy = ProxyCommand(way.command)
        self._open.callback(self._proxy.close)
        return Wire(self._proxy.socket, stall_s=stall_s)

    def _meet(self, stream: Wire, hop: Hop, expected: Expected) -> Connection:
        ssh = greet(stream, hop, expected, self._deadlines)
        self._open.callback(ssh.close)
        check_host_key(ssh, hop, expected, self._credentials.now_s)
        return ssh

    def _through(self, ssh: Connection, hop: Hop, after: Hop) -> Wire:
        """Have `hop` connect to the one after it."""
        connect_s = self._deadlines.connect_s
        started_at_s = time.monotonic()
        try:
            channel = ssh.open_channel(
                "direct-tcpip", (after.host, after.port), ("127.0.0.1", 0), timeout=connect_s
            )
        except paramiko.ChannelException as error:
            raise ConnectFailed(
                f"{hop.where} cannot connect to {after.host}:{after.port}: {error.text}"
            ) from error
        except (paramiko.SSHException, OSError, EOFError) as error:
            if time.monotonic() - started_at_s >= connect_s:
                raise ConnectTimeout(
                    f"{after.where} did not answer {hop.where} in {connect_s:g} s"
                ) from error
            raise ConnectionLost(f"the connection to {hop.where} ended: {error}") from error
        return Wire(channel, stall_s=self._deadlines.silence_s)


@dataclass(slots=True)
class _Jump:
    """One connection to a jump host.

    Attributes:
        users: How many ways lead through it, or wait for it.
        failure: Why it could not be made; whoever waits for it meanwhile need not try again.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0
    way: Way | None = None
    ssh: Connection | None = None
    failure: Unreachable | None = None

    def open(self, route: Route, credentials: Credentials, deadlines: Deadlines) -> Connection:
        """Return the connection, made anew if there is none that lives."""
        if self.failure is not None:
            raise type(self.failure)(self.failure.message, hint=self.failure.hint)
        if self.ssh is not None and self.ssh.is_active():
            return self.ssh
        self.close()
        hop = route.hops[-1]
        self.way = Way(credentials, deadlines)
        try:
            expected = Expected(known=known(hop.key_name, hop.known_hosts, caller().uid))
            ssh = self.way.travel(route, expected)
            self.way.log_in(ssh, hop)
        except Unreachable as failure:
            self.failure = failure
            raise
        self.ssh = ssh
        return ssh

    def close(self) -> None:
        """Let go of it."""
        if self.way is not None:
            self.way.close()
        self.way = self.ssh = None


class _Jumps:
    """The connections to jump hosts that this process has."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[Route, tuple[Path, ...], Path | None], _Jump] = {}

    @contextlib.contextmanager
    def borrow(
        self, route: Route, credentials: Credentials, deadlines: Deadlines
    ) -> Iterator[Connection]:
        """Hold a connection to the last hop of `route`; the last to let go closes it.

        Raises:
            Unreachable: It cannot be had.
        """
        key = (route, credentials.keys, credentials.not_with)
        with self._lock:
            jump = self._held.setdefault(key, _Jump())
            jump.users += 1
        try:
            with jump.lock:
                ssh = jump.open(route, credentials, deadlines)
            yield ssh
        finally:
            with self._lock:
                jump.users -= 1
                if last := not jump.users:
                    del self._held[key]
            if last:
                jump.close()


_JUMPS = _Jumps()
