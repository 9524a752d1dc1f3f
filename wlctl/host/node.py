"""What flows hold of a node while a command runs: one method per action, typed both ways."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from wlctl.errors import GarbledAnswer
from wlctl.host import probe, script, transport
from wlctl.host.answer import Answer, Status
from wlctl.host.transport import Call, Deadlines, Transport
from wlctl.model.actions import NodeFacts, RefusalCode, Refused
from wlctl.model.ids import InstallationId
from wlctl.model.node import Address, TransportKind


def connect(
    address: Address,
    *,
    keys: Sequence[Path],
    nonce: Callable[[], str],
    deadlines: Deadlines | None = None,
) -> "NodeSession":
    """Open the way to the node at `address`, for one command.

    Args:
        keys: Private key files to try before the agent's.
        nonce: Makes 16 to 64 hex digits, never the same twice.

    Raises:
        Unreachable: In the leaf that says which step failed.
    """
    bounds = deadlines or Deadlines()
    return NodeSession(_way(address, keys, bounds), nonce=nonce, deadlines=bounds)


def _way(address: Address, keys: Sequence[Path], deadlines: Deadlines) -> Transport:
    match address.transport:
        case TransportKind.LOCAL:
            from wlctl.host.local import LocalTransport

            return LocalTransport(sudo=address.sudo)
        case TransportKind.SSH:
            from wlctl.host.ssh import SshTransport

            return SshTransport(address, keys=keys, deadlines=deadlines)


class NodeSession:
    """One node, reached: every method runs one action there.

    Each raises `Unreachable` when nothing can have been changed, and those that change something
    raise `Indeterminate` when it may have been. A node's no is a value: `Refused`.
    """

    def __init__(self, way: Transport, *, nonce: Callable[[], str], deadlines: Deadlines) -> None:
        self._way = way
        self._nonce = nonce
        self._deadlines = deadlines

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the node."""
        self._way.close()

    def facts(self, installation: InstallationId) -> NodeFacts | Refused:
        """Look at the node; makes its state directory and id at the first look."""
        found = self._run("facts", ("installation", installation))
        return found if isinstance(found, Refused) else probe.read(found)

    def _run(self, action: str, *params: tuple[str, str]) -> Answer | Refused:
        call = Call(action, script.text(action), params)
        found = transport.run(self._way, call, nonce=self._nonce(), deadlines=self._deadlines)
        return refusal(found) if found.status is Status.REFUSED else found


def refusal(found: Answer) -> Refused:
    """Read why the node refused.

    Raises:
        GarbledAnswer: It gives no known code.
    """
    try:
        code = RefusalCode(found.text("code"))
    except ValueError:
        raise GarbledAnswer(f"an unknown refusal: {found.text('code')[:40]!r}") from None
    return Refused(code, found.text("detail"))
