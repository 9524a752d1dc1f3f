"""One way to a node that is open: runs its actions and tells a no from a failure."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeVar

from wlctl.errors import GarbledAnswer, Indeterminate
from wlctl.host import outcome, script, transport
from wlctl.host.answer import ANSWER_MAX_BYTES, Answer, Status
from wlctl.host.transport import Call, Deadlines, Operation, Transport
from wlctl.model.actions import Refused

Told = TypeVar("Told")


class Session:
    """One node, reached."""

    def __init__(
        self,
        way: Transport,
        *,
        nonce: Callable[[], str],
        deadlines: Deadlines,
        operation: Operation | None = None,
    ) -> None:
        self._way = way
        self._nonce = nonce
        self._deadlines = deadlines
        self._operation = operation or Operation(deadlines.operation_s)

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

    def _told(self, read: Callable[[Answer], Told], found: Answer) -> Told:
        """Read the answer of a mutation: one that cannot be read leaves open what was done."""
        try:
            return read(found)
        except GarbledAnswer as failure:
            raise Indeterminate(
                f"the node's answer to a change cannot be read: {failure.message}",
                hint="type it again, or unload what it was about: that settles what happened",
            ) from failure

    def _run(
        self,
        action: str,
        *params: tuple[str, str],
        mutates: bool = False,
        data: Iterable[bytes] = (),
        data_bytes: int = 0,
        answer_max_bytes: int = ANSWER_MAX_BYTES,
        extra_s: float = 0.0,
        within_s: float | None = None,
    ) -> Answer | Refused:
        deadlines = self._deadlines
        if within_s is not None:
            silence_s = min(deadlines.silence_s, within_s)
            deadlines = replace(deadlines, silence_s=silence_s, action_s=within_s)
        call = Call(
            action,
            script.text(action),
            params,
            mutates=mutates,
            data=data,
            data_bytes=data_bytes,
            answer_max_bytes=answer_max_bytes,
            extra_s=extra_s,
        )
        found = transport.run(
            self._way,
            call,
            nonce=self._nonce(),
            deadlines=deadlines,
            operation=self._operation,
        )
        if found.status is not Status.REFUSED:
            return found
        return self._told(outcome.refusal, found) if mutates else outcome.refusal(found)
