"""Runs one action on a node, and alone draws the line between unreachable and indeterminate."""

import contextlib
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from wlctl.errors import (
    ActionTimeout,
    ConnectionLost,
    GarbledAnswer,
    Indeterminate,
    OperationTimeout,
    ShellFailed,
    SilenceTimeout,
    SudoRefused,
    Unreachable,
)
from wlctl.host import answer, door
from wlctl.host.answer import ANSWER_MAX_BYTES, Answer, Status

CHUNK_BYTES = 32 * 1024
"""What is handed to a channel at a time: paramiko is fastest so."""

NOISE_MAX_BYTES = 16 * 1024
"""What a login may print before the action answers `ready`: a profile that greets, for example."""

PARAMS_MAX_BYTES = 4 << 20
"""The request without its data; the node holds to the same bound."""

UPLOAD_FLOOR_BYTES_S = 256 * 1024
"""An upload slower than this is given up."""

_NONCE = re.compile(r"[0-9a-f]{16,64}")


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long each step may take; each has its own error."""

    connect_s: float = 10.0
    banner_s: float = 5.0
    auth_s: float = 10.0
    silence_s: float = 30.0
    action_s: float = 60.0
    operation_s: float = 300.0


@dataclass(frozen=True, slots=True)
class Call:
    """One action as it travels.

    Attributes:
        text: Constant bytes: one brace group.
        params: In order; keys may repeat. Sent only after the action answered `ready`.
        data: Sent after the parameters; `data_bytes` long in all.
        mutates: Running it twice, late or by half could matter.
        extra_s: What this action may take beyond the action deadline, a grace for example.
    """

    name: str
    text: bytes
    params: tuple[tuple[str, str], ...] = ()
    mutates: bool = False
    data: Iterable[bytes] = ()
    data_bytes: int = 0
    answer_max_bytes: int = ANSWER_MAX_BYTES
    extra_s: float = 0.0


class Operation:
    """The time that all actions of one command on one node have together; it starts here.

    What an action may take beyond its own deadline, this may too: a grace, an upload.
    """

    def __init__(self, whole_s: float) -> None:
        self.whole_s = whole_s
        self.ends_at_s = time.monotonic() + whole_s

    def extend(self, extra_s: float) -> None:
        """Allow for one action's grace or upload."""
        self.whole_s += extra_s
        self.ends_at_s += extra_s


class ChannelEnded(Exception):
    """The other side closed, or the connection broke."""


class ChannelBroken(ChannelEnded):
    """The connection is gone; whatever ran, it was not that which ended the channel."""


class ChannelSilent(Exception):
    """Nothing could be read or written within the time given."""


class Channel(Protocol):
    """One shell on the node that runs an action, and its three streams."""

    def send(self, data: bytes, timeout_s: float) -> None:
        """Write all of `data`.

        Raises:
            ChannelEnded: It can take no more.
            ChannelSilent: It has not taken all of it after `timeout_s`.
        """

    def receive(self, timeout_s: float) -> bytes:
        """Return what came, at least one byte.

        Raises:
            ChannelEnded: No more will come.
            ChannelSilent: Nothing came for `timeout_s`.
        """

    def complaint(self) -> str:
        """Return the beginning of what came on the error stream so far."""

    def close(self) -> None:
        """Let go of it; what runs on the node goes on to its end."""


class Transport(Protocol):
    """A way to a node, held open for one command."""

    def open(self, nonce: str, text: bytes) -> Channel:
        """Start what reads an action: a shell, or the node's doorkeeper, which is told what comes.

        Args:
            text: The action, which the caller sends next.

        Raises:
            Unreachable: It cannot be started.
        """

    def close(self) -> None:
        """Let go of the node."""


def run(
    transport: Transport,
    call: Call,
    *,
    nonce: str,
    deadlines: Deadlines,
    operation: Operation | None = None,
) -> Answer:
    """Run `call` once and return its answer.

    Args:
        nonce: 16 to 64 hex digits, never used before: it marks this answer as ours.
        operation: What this action is part of; by default it stands alone.

    Raises:
        Unreachable: No whole answer came, and nothing can have been changed.
        Indeterminate: No whole answer came to a mutation of which a byte had been sent.
    """
    assert _NONCE.fullmatch(nonce), "a nonce goes into a command line"
    request = _request(call)
    clock = _Clock(call, deadlines, operation or Operation(deadlines.operation_s))
    clock.check()
    talk = _Talk(transport.open(nonce, call.text), call, nonce, clock)
    try:
        talk.wait_ready()
        try:
            talk.send_all(request)
            found = talk.read_answer()
        except Unreachable as failure:
            if not call.mutates:
                raise
            raise Indeterminate(
                f"`{call.name}` was sent and no whole answer came: {failure.message}",
                hint="type it again, or unload what it was about: that settles what happened",
            ) from failure
    finally:
        talk.channel.close()
    if found.status is Status.UNCLEAN:
        raise Indeterminate(
            f"`{call.name}` failed and could not clean up: {_detail(found)}",
            hint="type it again, or unload what it was about: that settles what is left",
        )
    return found


def _request(call: Call) -> bytes:
    lines = "".join(f"{key} {quote(value, safe='/:=,@+')}\n" for key, value in call.params)
    params = lines.encode("ascii")
    assert len(params) <= PARAMS_MAX_BYTES, "callers bound what they ask"
    return b"%015d %015d\n" % (len(params), call.data_bytes) + params


def _detail(found: Answer) -> str:
    return next(
        (line.fields[0] for line in found.all("detail") if line.fields), "it does not say why"
    )


class _Clock:
    """Says how much longer to wait, and which deadline it was that passed."""

    def __init__(self, call: Call, deadlines: Deadlines, operation: Operation) -> None:
        self._name = call.name
        extra_s = call.extra_s + call.data_bytes / UPLOAD_FLOOR_BYTES_S
        operation.extend(extra_s)
        self._operation = operation
        self._silence_s = deadlines.silence_s + call.extra_s
        self._whole_s = deadlines.action_s + extra_s
        self._ends_at_s = time.monotonic() + self._whole_s

    def check(self) -> None:
        """Make sure that there is time left.

        Raises:
            ActionTimeout, OperationTimeout: There is none.
        """
        now_s = time.monotonic()
        if now_s >= self._operation.ends_at_s:
            raise OperationTimeout(
                f"all that was to be done there took longer than {self._operation.whole_s:g} s, "
                f"`{self._name}` was the last of it"
            )
        if now_s >= self._ends_at_s:
            raise ActionTimeout(f"`{self._name}` was not done after {self._whole_s:g} s")

    def patience_s(self) -> float:
        """Return how long to wait for the next byte; raises as `check`."""
        self.check()
        ends_at_s = min(self._ends_at_s, self._operation.ends_at_s)
        return min(self._silence_s, max(0.001, ends_at_s - time.monotonic()))

    def too_late(self, what: str) -> Unreachable:
        """Return the failure of a node that did nothing for as long as `patience_s` said."""
        try:
            self.check()
        except (ActionTimeout, OperationTimeout) as failure:
            return failure
        return SilenceTimeout(f"the node {what} for {self._silence_s:g} s")


class _Talk:
    """One action's conversation."""

    def __init__(self, channel: Channel, call: Call, nonce: str, clock: _Clock) -> None:
        self.channel = channel
        self._call = call
        self._nonce = nonce
        self._clock = clock
        self._rest = bytearray()
        self._broken = False

    def wait_ready(self) -> None:
        """Send the text and wait until the action runs; noise before its first word is dropped."""
        mark = f"ready {self._nonce}\n".encode("ascii")
        seen = bytearray()
        with contextlib.suppress(ConnectionLost):  # what was said before that is still to be read
            self._send(self._call.text)
        while True:
            try:
                seen += self._receive()
            except ConnectionLost as failure:
                raise self._no_action(bytes(seen)) from failure
            at = seen.find(mark)
            if at == 0 or (at > 0 and seen[at - 1 : at] == b"\n"):
                self._rest += seen[at + len(mark) :]
                return
            if len(seen) > NOISE_MAX_BYTES:
                raise GarbledAnswer("the login prints too much before the action runs")

    def send_all(self, request: bytes) -> None:
        """Send parameters and data."""
        sent = 0
        self._send(request)
        for chunk in self._call.data:
            sent += len(chunk)
            self._send(chunk)
        assert sent == self._call.data_bytes, "the length was promised"

    def read_answer(self) -> Answer:
        """Read up to the closing line; what follows it is nobody's."""
        raw = self._rest
        looked = 0
        while not (length := answer.end_of(raw, self._nonce, looked)):
            if len(raw) > self._call.answer_max_bytes:
                raise GarbledAnswer(
                    f"the answer is longer than {self._call.answer_max_bytes} bytes"
                )
            looked = answer.looked_at(raw)
            raw += self._receive()
        return answer.parse(bytes(raw[:length]), self._nonce)

    def _no_action(self, seen: bytes) -> Unreachable:
        if self._broken:
            return ConnectionLost("the connection broke before an action ran")
        if (refused := door.refusal(seen)) is not None:
            return refused
        said = self.channel.complaint() or seen.decode("utf-8", errors="replace")
        said = " ".join(said.split())[:200] or "it ended without a word"
        if "sudo:" in said:
            return SudoRefused(
                f"sudo does not let wlctl in: {said}",
                hint="add `LOGIN ALL=(root) NOPASSWD: /bin/sh` to the node's sudoers",
            )
        if door.REQUEST in said:
            return ShellFailed(
                f"no doorkeeper answered, though the node is recorded as enforced: {said}",
                hint="`wlctl node enforce NODE --as LOGIN` again, or with --remove",
            )
        return ShellFailed(f"no shell ran the action: {said}")

    def _send(self, data: bytes) -> None:
        for start in range(0, len(data), CHUNK_BYTES):
            try:
                self.channel.send(data[start : start + CHUNK_BYTES], self._clock.patience_s())
            except ChannelEnded as end:
                self._broken = isinstance(end, ChannelBroken)
                raise ConnectionLost("the connection ended while it was written to") from None
            except ChannelSilent:
                raise self._clock.too_late("took no data") from None

    def _receive(self) -> bytes:
        try:
            return self.channel.receive(self._clock.patience_s())
        except ChannelEnded as end:
            self._broken = isinstance(end, ChannelBroken)
            raise ConnectionLost("the connection ended before the answer did") from None
        except ChannelSilent:
            raise self._clock.too_late("said nothing") from None
