"""A TCP proxy in front of a node: it forwards, notes where messages end, and cuts where it is told.

It counts bytes, not packets: what is sent before a cut arrives whole, and nothing after it does. A
cut closes both sides at once, as a router does that loses its table, or a laptop that is closed.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

PIECE_BYTES = 64 * 1024

PATIENCE_S = 60.0
"""For how long a connection may say nothing at all; no test waits so long."""


class Way(StrEnum):
    """Which way bytes go."""

    REQUEST = "request"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a connection ends.

    Attributes:
        after_bytes: So many bytes of that way arrive.
        stays: Nothing that comes later gets through either.
    """

    way: Way
    after_bytes: int
    stays: bool = False


@dataclass
class Proxy:
    """One proxy on loopback.

    Attributes:
        messages: Of each connection since the last plan, from 1, and each way: at which byte each
            piece that came at once ended.
        order: Of each connection the same pieces both ways, as they came.
        cuts_made: How many were.
    """

    host: str
    port: int
    _to: tuple[str, int]
    _plan: Mapping[int, Cut] = field(default_factory=dict)
    messages: dict[tuple[int, Way], list[int]] = field(default_factory=dict)
    order: dict[int, list[tuple[Way, int]]] = field(default_factory=dict)
    cuts_made: int = 0
    _closed: bool = False
    _count: int = 0
    _open: set[socket.socket] = field(default_factory=set)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _threads: list[threading.Thread] = field(default_factory=list)

    def plan(self, cuts: Mapping[int, Cut] | None = None) -> None:
        """Count connections from 1 again, and cut these; what was cut off gets through again."""
        with self._guard:
            self._plan = cuts or {}
            self._count = self.cuts_made = 0
            self._closed = False
            self.messages = {}
            self.order = {}

    def shut(self) -> None:
        """Let nothing through from now on; what is open is cut."""
        with self._guard:
            self._closed = True
            there = list(self._open)
        for sock in there:
            _end(sock)

    def serve(self, listener: socket.socket) -> None:
        """Take connections until the listener is shut."""
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            with self._guard:
                self._count += 1
                number, closed = self._count, self._closed
            if closed:
                near.close()
                continue
            self._connect(near, number)

    def _connect(self, near: socket.socket, number: int) -> None:
        try:
            far = socket.create_connection(self._to, timeout=PATIENCE_S)
        except OSError:  # the node is down: so is what stands in front of it
            near.close()
            return
        for sock in (near, far):
            sock.settimeout(PATIENCE_S)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        carrier = threading.Thread(target=self._carry, args=(number, near, far))
        self._threads.append(carrier)
        carrier.start()

    def _carry(self, number: int, near: socket.socket, far: socket.socket) -> None:
        with near, far:
            with self._guard:
                self._open |= {near, far}
            answers = threading.Thread(target=self._pump, args=(number, Way.ANSWER, far, near))
            answers.start()
            self._pump(number, Way.REQUEST, near, far)
            answers.join()
            with self._guard:
                self._open -= {near, far}

    def _pump(self, number: int, way: Way, source: socket.socket, sink: socket.socket) -> None:
        cut = self._plan.get(number)
        left = cut.after_bytes if cut is not None and cut.way is way else None
        with self._guard:
            ends = self.messages.setdefault((number, way), [])
            order = self.order.setdefault(number, [])
        passed = 0
        with contextlib.suppress(OSError):
            while left is None or left > 0:
                piece = source.recv(PIECE_BYTES)
                if not piece:
                    break
                piece = piece if left is None else piece[:left]
                passed += len(piece)
                order.append((way, passed))  # before it goes on: what answers it comes later
                sink.sendall(piece)
                ends.append(passed)
                left = None if left is None else left - len(piece)
        if left == 0:
            with self._guard:
                self.cuts_made += 1
                self._closed = self._closed or (cut is not None and cut.stays)
        for sock in (source, sink):
            _end(sock)

    def wait(self) -> None:
        """Wait until every connection has ended."""
        for carrier in self._threads:
            carrier.join(PATIENCE_S)
        self._threads = []


def _end(sock: socket.socket) -> None:
    """Send what is still to be sent, and say both ways that this was all."""
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxy(host: str, port: int) -> Iterator[Proxy]:
    """Stand in front of `host`, `port`, on a port of loopback; all of it is gone afterwards."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        made = Proxy("127.0.0.1", listener.getsockname()[1], (host, port))
        server = threading.Thread(target=made.serve, args=(listener,))
        server.start()
        try:
            yield made
        finally:
            _end(listener)  # this, and not closing it, wakes who waits in accept
            server.join(PATIENCE_S)
            made.shut()
            made.wait()
