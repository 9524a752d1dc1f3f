"""Where the line between unreachable and indeterminate is drawn, and what each deadline says."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from wlctl.errors import (
    ActionTimeout,
    ConnectionLost,
    DoorRefused,
    ExitCode,
    GarbledAnswer,
    Indeterminate,
    ShellFailed,
    SilenceTimeout,
    SudoRefused,
    Unreachable,
    WlctlError,
)
from wlctl.host import transport
from wlctl.host.answer import Answer, Status
from wlctl.host.transport import Call, ChannelEnded, ChannelSilent, Deadlines

NONCE = "ab" * 16
READY = f"ready {NONCE}\n".encode()
DONE = f"end {NONCE} ok\n".encode()

READ = Call("facts", b"{\n}\n", (("a", "b c"),))
CHANGE = replace(READ, name="place", mutates=True)

Step = bytes | type[Exception]


class ScriptedChannel:
    """A node that says what it was told to, one step for each time it is listened to.

    Args:
        says: Bytes to hand over, or the failure to meet, in order; after the last nothing comes.
        takes: How many sends succeed before the channel is found broken; None for all.
    """

    def __init__(self, says: Sequence[Step], *, takes: int | None = None, stderr: str = "") -> None:
        self._says = list(says)
        self._takes = takes
        self._stderr = stderr
        self.sent: list[bytes] = []
        self.closed = False

    def open(self, nonce: str, _text: bytes) -> "ScriptedChannel":
        assert nonce == NONCE
        return self

    def send(self, data: bytes, timeout_s: float) -> None:
        assert timeout_s > 0
        if self._takes is not None and len(self.sent) >= self._takes:
            raise ChannelEnded
        self.sent.append(data)

    def receive(self, timeout_s: float) -> bytes:
        assert timeout_s > 0
        step = self._says.pop(0) if self._says else ChannelSilent
        if isinstance(step, bytes):
            return step
        raise step

    def complaint(self) -> str:
        return self._stderr

    def close(self) -> None:
        self.closed = True


def _run(channel: ScriptedChannel, call: Call) -> Answer:
    return transport.run(channel, call, nonce=NONCE, deadlines=Deadlines())


def test_nothing_but_the_text_is_sent_before_the_action_is_ready() -> None:
    channel = ScriptedChannel([ChannelSilent])

    with pytest.raises(SilenceTimeout):
        _run(channel, CHANGE)

    assert channel.sent == [CHANGE.text]
    assert channel.closed


def test_the_request_is_framed_by_its_lengths_and_encoded() -> None:
    call = replace(CHANGE, data=[b"12", b"345"], data_bytes=5)
    channel = ScriptedChannel([READY, b"k v%20w\n", DONE])

    found = _run(channel, call)

    assert channel.sent[1:] == [b"000000000000008 000000000000005\na b%20c\n", b"12", b"345"]
    assert found.status is Status.OK
    assert found.text("k") == "v w"


def test_what_a_login_prints_before_the_action_is_passed_over() -> None:
    channel = ScriptedChannel([b"Welcome!\nready soon\n", b"x\nrea", READY[3:] + DONE])

    assert _run(channel, READ).status is Status.OK


def test_an_answer_may_come_byte_by_byte_and_with_the_ready() -> None:
    whole = READY + b"k v\n" + DONE + b"and what follows is nobody's"
    channel = ScriptedChannel([whole[n : n + 1] for n in range(len(whole))])

    assert _run(channel, READ).text("k") == "v"


BEFORE = [
    pytest.param([ChannelSilent], {}, SilenceTimeout, id="nothing is said"),
    pytest.param([ChannelEnded], {}, ShellFailed, id="it ends without a word"),
    pytest.param(
        [b"This account is not available.\n", ChannelEnded], {}, ShellFailed, id="no shell"
    ),
    pytest.param([ChannelEnded], {"takes": 0}, ShellFailed, id="it does not take the text"),
    pytest.param(
        [ChannelEnded], {"stderr": "sudo: a password is required"}, SudoRefused, id="sudo asks"
    ),
    pytest.param(
        [b"refused " + NONCE.encode() + b"\nwhy unlisted\n", ChannelEnded],
        {"takes": 0},
        DoorRefused,
        id="a doorkeeper does not list it, nor wait for the text",
    ),
    pytest.param(
        [b"Welcome!\nrefused -\n", b"why form\n", ChannelEnded], {}, DoorRefused, id="no shell"
    ),
    pytest.param(
        [ChannelEnded], {"stderr": "sh: wlctl-action: not found"}, ShellFailed, id="no doorkeeper"
    ),
    pytest.param([b"x" * 20_000], {}, GarbledAnswer, id="it talks and talks"),
    pytest.param([b"ready " + b"0" * 32 + b"\n"], {}, SilenceTimeout, id="another's ready"),
    pytest.param([b"not" + READY], {}, SilenceTimeout, id="a ready in the middle of a line"),
]


@pytest.mark.parametrize("call", [READ, CHANGE], ids=["read", "change"])
@pytest.mark.parametrize(("says", "more", "failure"), BEFORE)
def test_before_the_action_is_ready_nothing_can_have_run(
    says: list[Step], more: dict[str, object], failure: type[WlctlError], call: Call
) -> None:
    with pytest.raises(failure) as caught:
        _run(ScriptedChannel(says, **more), call)  # type: ignore[arg-type]  # its own keywords

    assert isinstance(caught.value, Unreachable)
    assert caught.value.exit_code is ExitCode.UNREACHABLE


AFTER = [
    pytest.param([READY, ChannelSilent], {}, SilenceTimeout, id="nothing is answered"),
    pytest.param([READY, ChannelEnded], {}, ConnectionLost, id="the connection ends"),
    pytest.param([READY], {"takes": 1}, ConnectionLost, id="it does not take the request"),
    pytest.param([READY, b"k v\n", ChannelEnded], {}, ConnectionLost, id="half an answer"),
    pytest.param([READY, DONE[:-1], ChannelEnded], {}, ConnectionLost, id="no last newline"),
    pytest.param([READY, b"k \xff\n" + DONE], {}, GarbledAnswer, id="no ASCII"),
    pytest.param([READY, b"K v\n" + DONE], {}, GarbledAnswer, id="a key that is none"),
    pytest.param([READY, b"k a\tb\n" + DONE], {}, GarbledAnswer, id="a field that is none"),
    pytest.param([READY, b"k %4\n" + DONE], {}, GarbledAnswer, id="an escape that is none"),
    pytest.param([READY, b"\n" + DONE], {}, GarbledAnswer, id="an empty line"),
    pytest.param([READY, DONE[:-4] + b" fine\n"], {}, GarbledAnswer, id="an unknown status"),
    pytest.param([READY, b"end " + b"0" * 32 + b" ok\n"], {}, SilenceTimeout, id="another's end"),
    pytest.param([READY, b"x" * (1 << 21)], {}, GarbledAnswer, id="too long an answer"),
    pytest.param([READY, b"k\n" * 70_000 + DONE], {}, GarbledAnswer, id="too many lines"),
]


@pytest.mark.parametrize(("says", "more", "failure"), AFTER)
def test_after_it_a_read_is_unreachable(
    says: list[Step], more: dict[str, object], failure: type[WlctlError]
) -> None:
    with pytest.raises(failure) as caught:
        _run(ScriptedChannel(says, **more), READ)  # type: ignore[arg-type]  # its own keywords

    assert isinstance(caught.value, Unreachable)


@pytest.mark.parametrize(("says", "more", "failure"), AFTER)
def test_after_it_a_change_is_indeterminate(
    says: list[Step], more: dict[str, object], failure: type[WlctlError]
) -> None:
    with pytest.raises(Indeterminate) as caught:
        _run(ScriptedChannel(says, **more), CHANGE)  # type: ignore[arg-type]  # its own keywords

    assert isinstance(caught.value.__cause__, failure)
    assert caught.value.exit_code is ExitCode.INDETERMINATE


def test_a_refusal_that_could_not_clean_up_is_indeterminate() -> None:
    unclean = DONE.replace(b" ok", b" unclean")

    with pytest.raises(Indeterminate, match="left there"):
        _run(ScriptedChannel([READY, b"code busy\ndetail left%20there\n" + unclean]), CHANGE)


def test_a_node_that_keeps_talking_is_given_up_at_the_action_s_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = itertools.count(0.0, 5.0)
    monkeypatch.setattr("wlctl.host.transport.time.monotonic", lambda: next(clock))
    channel = ScriptedChannel([READY, *[b"k v\n"] * 100])

    with pytest.raises(ActionTimeout, match="60 s"):
        _run(channel, READ)


@pytest.mark.parametrize(
    ("call", "seconds"),
    [
        pytest.param(READ, 30.0, id="30 s of silence"),
        pytest.param(replace(READ, extra_s=7.0), 37.0, id="and a grace"),
    ],
)
def test_the_patience_of_a_call_is_its_own(call: Call, seconds: float) -> None:
    asked: list[float] = []

    class Listening(ScriptedChannel):
        def receive(self, timeout_s: float) -> bytes:
            asked.append(timeout_s)
            return super().receive(timeout_s)

    _run(Listening([READY, DONE]), call)

    assert asked == pytest.approx([seconds, seconds], abs=0.5)


def test_data_of_another_length_than_was_promised_is_a_bug() -> None:
    def short() -> Iterator[bytes]:
        yield b"1"

    with pytest.raises(AssertionError):
        _run(ScriptedChannel([READY, DONE]), replace(READ, data=short(), data_bytes=2))


def test_a_nonce_that_a_shell_could_read_otherwise_is_a_bug() -> None:
    run: Callable[..., object] = transport.run

    with pytest.raises(AssertionError):
        run(ScriptedChannel([]), READ, nonce="$(id)", deadlines=Deadlines())
