"""What flows hold of a node while a command runs: one method per action, typed both ways."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from wlctl.errors import InvalidFile
from wlctl.host import outcome, probe
from wlctl.host.answer import Answer
from wlctl.host.transport import CHUNK_BYTES, Deadlines, Operation, Transport
from wlctl.host.upkeep import Upkeep
from wlctl.model.actions import (
    Cleaned,
    Launched,
    LogTail,
    Measured,
    NodeFacts,
    NodeStatus,
    Offered,
    Placed,
    PlaceRequest,
    Read,
    Refused,
    Settled,
    SettleRequest,
    StartRequest,
    Stopped,
    StopRequest,
    Unloaded,
    UnloadRequest,
)
from wlctl.model.ids import InstallationId, InstanceId
from wlctl.model.node import Address, TransportKind
from wlctl.model.package import RestartPolicy

STATUS_MAX_BYTES = 16 << 20

STATUS_LINE_BYTES = 4096

LOG_MAX_BYTES = 256 * 1024

ENCODED_GROWTH = 3
"""Percent-encoding makes at most so many bytes of one."""

SHEET_GRACE_S = 600.0
"""How long a stop is waited for when only the launch sheet on the node knows its grace."""


def connect(
    address: Address,
    *,
    keys: Sequence[Path],
    nonce: Callable[[], str],
    deadlines: Deadlines | None = None,
    configs: Sequence[Path] = (),
    now_ms: int = 0,
    password: str | None = None,
) -> "NodeSession":
    """Open the way to the node at `address`, for one command.

    Args:
        keys: Private key files to try before those of ssh's configuration and the agent's.
        nonce: Makes 16 to 64 hex digits, never the same twice.
        configs: ssh's configuration files, the user's before the system's; none to read none.
        now_ms: The time, for certificates: at 0 none is valid.
        password: To log in with, instead of any key.

    Raises:
        Unreachable: In the leaf that says which step failed.
    """
    bounds = deadlines or Deadlines()
    operation = Operation(bounds.operation_s)  # connecting is part of it
    if address.transport is TransportKind.LOCAL:
        from wlctl.host.local import LocalTransport

        way: Transport = LocalTransport(sudo=address.sudo)
    else:
        from wlctl.host.ssh import Credentials, SshTransport

        credentials = Credentials(tuple(keys), tuple(configs), now_ms // 1000, password=password)
        way = SshTransport(address, credentials=credentials, deadlines=bounds)
    return NodeSession(way, nonce=nonce, deadlines=bounds, operation=operation)


class NodeSession(Upkeep):
    """One node, reached: every method runs one action there.

    Each raises `Unreachable` when nothing can have been changed, and those that change something
    raise `Indeterminate` when it may have been. A node's no is a value: `Refused`.
    """

    def facts(self, installation: InstallationId) -> NodeFacts | Refused:
        """Look at the node; makes its state directory and id at the first look."""
        found = self._run("facts", ("installation", installation))
        return found if isinstance(found, Refused) else probe.read(found)

    def measure(self, installation: InstallationId) -> Measured | Refused:
        """Measure processors, memory and disk, for less than three seconds; it leaves nothing."""
        found = self._run("measure", ("installation", installation))
        return found if isinstance(found, Refused) else outcome.measured(found)

    def clean(self, installation: InstallationId, node_id: str) -> Cleaned | Refused:
        """Take away what the installation has on the node, and all when it was the last one.

        A node with another id refuses, and so does one with anything left of an instance.
        """
        found = self._run(
            "clean", ("installation", installation), ("node_id", node_id), mutates=True
        )
        return found if isinstance(found, Refused) else self._told(outcome.cleaned, found)

    def offer(self, installation: InstallationId, sha256s: Sequence[str]) -> Offered | Refused:
        """Ask which of these files the node's store lacks."""
        asked = (("sha256", sha256) for sha256 in sha256s)
        found = self._run("offer", ("installation", installation), *asked)
        return found if isinstance(found, Refused) else outcome.offered(found, sha256s)

    def receive(self, sha256: str, size_bytes: int, data: BinaryIO) -> Refused | None:
        """Put one file of exactly `size_bytes` into the node's store, which checks its hash.

        A store file changes nothing that runs, so this is safe to repeat and never indeterminate.
        """
        chunks = _chunks(data, size_bytes)
        found = self._run("receive", ("sha256", sha256), data=chunks, data_bytes=size_bytes)
        return found if isinstance(found, Refused) else None

    def place(self, request: PlaceRequest) -> Placed | Launched | Refused:
        """Verify and stage an instance, and start its first generation unless told not to."""
        found = self._run(
            "place",
            ("installation", request.installation),
            ("instance", request.instance),
            ("name", request.name),
            ("node", request.node),
            ("decision", request.decision),
            ("number", str(request.number)),
            ("generation", str(request.generation)),
            ("fence", str(request.fence)),
            ("package", request.package),
            ("sheet", request.sheet),
            ("deadline", str(request.deadline_ms)),
            ("lease", str(request.lease_until_ms)),
            ("containment", request.settles.value),
            ("restart", _policy_text(request.restart)),
            ("start", "yes" if request.start else "no"),
            ("project", request.project),
            *(("signature", signature) for signature in request.signatures),
            *(("env", f"{name}={value}") for name, value in request.env),
            *(("arg", arg) for arg in request.args),
            *(("secret", f"{name}={value}") for name, value in request.secrets),
            mutates=True,
        )
        return found if isinstance(found, Refused) else self._told(outcome.placed, found)

    def start(self, request: StartRequest) -> Launched | Refused:
        """Start a further generation of what was placed."""
        found = self._run(
            "start",
            ("installation", request.installation),
            ("instance", request.instance),
            ("number", str(request.number)),
            ("generation", str(request.generation)),
            ("fence", str(request.fence)),
            ("package", request.package),
            ("deadline", str(request.deadline_ms)),
            ("lease", str(request.lease_until_ms)),
            ("containment", request.settles.value),
            ("restart", _policy_text(request.restart)),
            *(("secret", f"{name}={value}") for name, value in request.secrets),
            mutates=True,
        )
        return found if isinstance(found, Refused) else self._told(outcome.launched, found)

    def stop(self, request: StopRequest) -> Stopped | Refused:
        """Close and end every generation of an instance, and read what is left of each."""
        more = () if request.wait else (("wait", "no"),)
        found = self._end("stop", request, *more)
        return found if isinstance(found, Refused) else self._told(outcome.stopped, found)

    def unload(self, request: UnloadRequest) -> Unloaded | Refused:
        """Stop an instance and remove what it had on the node."""
        purge = ("purge", "yes" if request.purge else "no")
        found = self._end("unload", request, purge)
        return found if isinstance(found, Refused) else self._told(outcome.unloaded, found)

    def prove(self, installation: InstallationId, instance: InstanceId) -> Read | Refused:
        """Read every generation of an instance, to be judged; it ends and changes nothing."""
        found = self._run("prove", ("installation", installation), ("instance", instance))
        return found if isinstance(found, Refused) else outcome.read(found)

    def settle(self, request: SettleRequest) -> Settled | Refused:
        """Learn what became of a decision, and call it off for ever where nothing did."""
        found = self._run(
            "settle",
            ("installation", request.installation),
            ("instance", request.instance),
            ("decision", request.decision),
            ("number", str(request.number)),
            ("generation", str(request.generation)),
            mutates=True,
        )
        return found if isinstance(found, Refused) else self._told(outcome.settled, found)

    def status(self, installation: InstallationId) -> NodeStatus | Refused:
        """Read everything of one installation on the node: readings, not proofs."""
        found = self._run(
            "status", ("installation", installation), answer_max_bytes=STATUS_MAX_BYTES
        )
        return found if isinstance(found, Refused) else outcome.status(found)

    def logs(
        self,
        installation: InstallationId,
        instance: InstanceId,
        *,
        generation: int = 0,
        lines: int = 100,
        max_bytes: int = LOG_MAX_BYTES,
        after: int | None = None,
    ) -> LogTail | Refused:
        """Read the end of a generation's output, or what stands after a byte of it.

        Args:
            generation: 0 for the one launched last.
            lines: At most so many, and at most `max_bytes` of them.
            after: Read from this byte on instead, whole lines while more may come; from the first
                where the output was bounded meanwhile.
        """
        found = self._run(
            "logs",
            ("installation", installation),
            ("instance", instance),
            ("generation", str(generation)),
            ("lines", str(lines)),
            ("bytes", str(max_bytes)),
            *(() if after is None else (("after", str(after)),)),
            answer_max_bytes=ENCODED_GROWTH * max_bytes + STATUS_LINE_BYTES,
        )
        return found if isinstance(found, Refused) else outcome.log_tail(found)

    def _end(
        self, verb: str, request: StopRequest | UnloadRequest, *more: tuple[str, str]
    ) -> Answer | Refused:
        grace_ms = request.grace_ms
        grace = () if grace_ms is None else (("grace", str(grace_ms)),)
        grace_s = SHEET_GRACE_S if grace_ms is None else grace_ms / 1000
        return self._run(
            "stop",
            ("verb", verb),
            ("installation", request.installation),
            ("instance", request.instance),
            ("number", str(request.number)),
            ("generation", str(request.generation)),
            *grace,
            *more,
            mutates=True,
            extra_s=grace_s if request.within_s is None else 0.0,
            within_s=request.within_s,
        )


def _policy_text(policy: RestartPolicy) -> str:
    """Say a restart policy as a node keeps it."""
    numbers = (policy.max_restarts, policy.window_ms, policy.backoff_base_ms, policy.backoff_max_ms)
    return " ".join(map(str, numbers))


def _chunks(data: BinaryIO, size_bytes: int) -> Iterator[bytes]:
    """Read exactly `size_bytes`.

    Raises:
        InvalidFile: There are fewer.
    """
    left = size_bytes
    while left:
        chunk = data.read(min(left, CHUNK_BYTES))
        if not chunk:
            raise InvalidFile("a file became shorter while it was sent")
        left -= len(chunk)
        yield chunk
