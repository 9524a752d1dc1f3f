"""Runs the same actions on this machine, without SSH."""

import contextlib
import os
import selectors
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

from wlctl.errors import ShellFailed
from wlctl.host.transport import ChannelEnded, ChannelSilent

COMPLAINT_MAX_BYTES = 4096

READ_BYTES = 64 * 1024

REAP_S = 0.5
"""How long an action that has answered may take to exit before a thread waits for it instead."""

PASSED_ON = ("HOME", "XDG_RUNTIME_DIR", "WLCTL_NODE_STATE")
"""All that an action learns of the caller's environment; over SSH it learns none of it."""


class LocalChannel:
    """A child process in a session of its own: nothing that ends this one ends it."""

    def __init__(self, child: "subprocess.Popen[bytes]") -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        self._child = child
        self._stdin, self._stdout, self._stderr = child.stdin, child.stdout, child.stderr
        self._complaint = bytearray()
        for stream in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(stream.fileno(), False)
        self._readable = selectors.DefaultSelector()
        self._readable.register(self._stdout, selectors.EVENT_READ)
        self._readable.register(self._stderr, selectors.EVENT_READ)
        self._writable = selectors.DefaultSelector()
        self._writable.register(self._stdin, selectors.EVENT_WRITE)

    def send(self, data: bytes, timeout_s: float) -> None:
        """Write all of `data`; see `Channel`."""
        rest = memoryview(data)
        ends_at_s = time.monotonic() + timeout_s
        while rest:
            left_s = ends_at_s - time.monotonic()
            if left_s <= 0 or not self._writable.select(left_s):
                raise ChannelSilent
            try:
                rest = rest[os.write(self._stdin.fileno(), rest) :]
            except BrokenPipeError:
                raise ChannelEnded from None

    def receive(self, timeout_s: float) -> bytes:
        """Return what came; see `Channel`."""
        ends_at_s = time.monotonic() + timeout_s
        while True:
            left_s = ends_at_s - time.monotonic()
            ready = {key.fileobj for key, _ in self._readable.select(left_s)}
            if left_s <= 0 or not ready:
                raise ChannelSilent
            if self._stderr in ready:
                self._hear_complaint()
            if self._stdout in ready:
                got = os.read(self._stdout.fileno(), READ_BYTES)
                if not got:
                    raise ChannelEnded
                return got

    def complaint(self) -> str:
        """Return the beginning of the error stream."""
        while len(self._complaint) < COMPLAINT_MAX_BYTES and any(
            key.fileobj is self._stderr for key, _ in self._readable.select(0)
        ):
            self._hear_complaint()
        return self._complaint.decode("utf-8", errors="replace")

    def close(self) -> None:
        """Close the pipes; the action ignores it and goes on to its end."""
        self._readable.close()
        self._writable.close()
        for stream in (self._stdin, self._stdout, self._stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        try:
            self._child.wait(REAP_S)
        except subprocess.TimeoutExpired:
            threading.Thread(target=self._child.wait, daemon=True).start()

    def _hear_complaint(self) -> None:
        got = os.read(self._stderr.fileno(), READ_BYTES)
        if not got:
            self._readable.unregister(self._stderr)
        self._complaint += got[: COMPLAINT_MAX_BYTES - len(self._complaint)]


class LocalTransport:
    """This machine.

    Args:
        shell: What runs `-s NONCE`.
        sudo: Run it as root.
    """

    def __init__(self, *, shell: Sequence[str] = ("sh",), sudo: bool = False) -> None:
        self._argv = [*(("sudo", "-n") if sudo else ()), *shell, "-s"]

    def open(self, nonce: str, _text: bytes) -> LocalChannel:
        """Start the shell; see `Transport`."""
        try:
            child = subprocess.Popen(  # noqa: S603 - constant words and a nonce; no shell reads it
                [*self._argv, nonce],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(os.environ),
                cwd="/",
                close_fds=True,  # dash cannot close a descriptor above 9
                start_new_session=True,
            )
        except OSError as error:
            raise ShellFailed(f"{self._argv[0]} cannot be started: {error.strerror}") from error
        return LocalChannel(child)

    def close(self) -> None:
        """Nothing is held open between actions."""


def _environment(own: Mapping[str, str]) -> dict[str, str]:
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {"PATH": path} | {name: own[name] for name in PASSED_ON if name in own}
