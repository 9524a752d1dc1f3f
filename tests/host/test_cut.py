"""A text, a request or an answer that is cut anywhere runs nothing by half."""

import contextlib
import io
import os
import signal
import subprocess
import time
from dataclasses import replace

import pytest

from tests.host.bench import Bench, nonce, running, script, wait_until
from wlctl.errors import ConnectionLost, Indeterminate, Unreachable
from wlctl.host import script as texts
from wlctl.host import transport
from wlctl.host.ssh import SshChannel
from wlctl.host.transport import Call, ChannelEnded, ChannelSilent
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import Launched, PlaceRequest, RefusalCode, Refused, Stopped, Unloaded
from wlctl.model.generation import Proven

SHELLS = (("dash",), ("bash",), ("busybox", "ash"))
SOME = [("dash", "root"), ("bash", "sudo"), ("busybox", "plain")]

SLEEP = script("exec sleep 1000")


@pytest.mark.parametrize("shell", SHELLS, ids=lambda argv: argv[0])
@pytest.mark.parametrize("action", texts.ACTIONS)
def test_a_text_that_is_cut_runs_nothing(action: str, shell: tuple[str, ...]) -> None:
    """The first thing an action does is to say `ready`: no cut text says it."""
    text = texts.text(action)
    cuts = {len(text) - 1, len(text) - 2, len(text) - 3, len(text) - 6, 1, 2, 3}
    cuts |= {len(text) * part // 12 for part in range(1, 12)}
    for cut in sorted(cuts):
        done = subprocess.run(
            [*shell, "-s", "0" * 16], input=text[:cut], capture_output=True, timeout=10, check=False
        )
        if cut == len(text) - 1:
            continue  # only the last newline is missing: the group is whole, and its input empty
        assert done.stdout == b"", f"cut after {cut} of {len(text)} bytes"


@pytest.mark.parametrize("action", texts.ACTIONS)
def test_an_action_is_one_group_and_its_end_comes_last(action: str) -> None:
    text = texts.text(action)

    assert text.startswith(b"{\n")
    assert text.endswith(b"\nexit\n}\n")
    assert text.isascii()


def _place_params(request: PlaceRequest) -> tuple[tuple[str, str], ...]:
    return (
        ("installation", request.installation),
        ("instance", request.instance),
        ("name", request.name),
        ("node", request.node),
        ("decision", request.decision),
        ("number", "1"),
        ("generation", "1"),
        ("fence", "1"),
        ("package", request.package),
        ("sheet", request.sheet),
        ("deadline", str(request.deadline_ms)),
        ("start", "yes"),
    )


def _begin(bench: Bench, action: str) -> tuple[SshChannel, str]:
    """Bring an action to the point where it waits for its request."""
    mark = nonce()
    channel = bench.session._way.open(mark, texts.text(action))
    assert isinstance(channel, SshChannel)
    channel.send(texts.text(action), 5.0)
    seen = b""
    while f"ready {mark}\n".encode() not in seen:
        seen += channel.receive(5.0)
    return channel, mark


def _rest(channel: SshChannel) -> bytes:
    seen = b""
    with contextlib.suppress(ChannelEnded, ChannelSilent):
        while True:
            seen += channel.receive(5.0)
    channel.close()
    return seen


@pytest.mark.parametrize(
    "more",
    [
        pytest.param((), id="a short one, read without a fork"),
        pytest.param((("arg", "x" * 5000),), id="a long one"),
    ],
)
@pytest.mark.kinds(SOME)
def test_a_request_that_is_cut_does_nothing(
    bench: Bench, more: tuple[tuple[str, str], ...]
) -> None:
    request = bench.request(SLEEP)
    whole = transport._request(Call("place", b"", (*_place_params(request), *more)))
    for cut in (0, 1, 15, 31, 32, 33, len(whole) // 2, len(whole) - 2, len(whole) - 1):
        channel, mark = _begin(bench, "place")
        channel.send(whole[:cut], 5.0) if cut else None
        channel._channel.shutdown_write()

        answer = _rest(channel)

        assert answer.endswith(f"end {mark} refused\n".encode()), f"cut after {cut}: {answer!r}"
        assert bench.status(request) is None
    claims = bench.node.state / request.installation / "decisions"
    assert not claims.exists() or request.decision not in {path.name for path in claims.iterdir()}
    bench.place(request)


@pytest.mark.parametrize("part", [0, 31, -1])
@pytest.mark.kinds(SOME)
def test_a_peer_that_falls_silent_holds_nobody_up(bench: Bench, part: int) -> None:
    request = bench.request(SLEEP)
    whole = transport._request(Call("place", b"", _place_params(request)))
    channel, _ = _begin(bench, "place")
    if part:
        channel.send(whole[:part], 5.0)

    bench.run(SLEEP)

    channel.close()
    assert bench.status(request) is None


@pytest.mark.parametrize(
    "framing",
    [
        b"",
        b"000000000000003",
        b"000000000000003 00000000000000x\n",
        b"00000000000000003 0000000000000\n",
        b"garbage garbage garbage garbage\n",
        b"000000999999999 000000000000000\n",
        b"000000000000004 000000000000000\na=b\n",
        b"000000000000004 000000000000000\n\xff\xfe \n",
        b"000000000000009 000000000000000\nnumber %\n",
        b"000000000000010 000000000000000\nnumber %0\n",
        b"000000000000011 000000000000000\nnumber %zz\n",
        b"000000000000011 000000000000000\nnumber %00\n",
        b"000000000000011 000000000000000\n$(id) `id`\n",
        b"000000000000012 000000000000000\nnumber 1\nnumber 2\n",
    ],
)
@pytest.mark.kinds(SOME)
def test_a_request_that_is_none_is_refused(bench: Bench, framing: bytes) -> None:
    channel, mark = _begin(bench, "place")
    if framing:
        channel.send(framing, 5.0)
    channel._channel.shutdown_write()

    answer = _rest(channel)

    assert b"code invalid_request\n" in answer
    assert answer.endswith(f"end {mark} refused\n".encode())


@pytest.mark.kinds(SOME)
def test_an_upload_that_is_cut_leaves_no_file(bench: Bench) -> None:
    data = b"x" * 100_000
    name = bench.put(b"something else")
    store = bench.node.state / "store"
    before = {path.name for path in store.iterdir()}
    whole = transport._request(Call("receive", b"", (("sha256", "0" * 64),), data_bytes=len(data)))
    for cut in (0, 1, 65_536, len(data) - 1):
        channel, mark = _begin(bench, "receive")
        channel.send(whole + data[:cut], 5.0)
        channel._channel.shutdown_write()

        answer = _rest(channel)

        assert b"code fetch\n" in answer
        assert answer.endswith(f"end {mark} refused\n".encode())
    assert {path.name for path in store.iterdir()} == before
    assert name in before


@pytest.mark.kinds(SOME)
def test_an_upload_that_is_not_what_was_announced_leaves_no_file(bench: Bench) -> None:
    refused = bench.session.receive("0" * 64, 5, io.BytesIO(b"other"))

    assert isinstance(refused, Refused)
    assert refused.code is RefusalCode.VERIFY
    names = {path.name for path in (bench.node.state / "store").iterdir()}
    assert "0" * 64 not in names
    assert not [name for name in names if name.startswith(".")]


@pytest.mark.kinds(SOME)
def test_a_mutation_goes_on_to_its_end_when_its_channel_dies(bench: Bench) -> None:
    """The answer is lost: what was asked is done all the same, and asking again tells of it."""
    request = bench.request(SLEEP)
    channel, _ = _begin(bench, "place")
    channel.send(transport._request(Call("place", b"", _place_params(request))), 5.0)

    bench.session.close()
    bench.reconnect()

    wait_until(lambda: _running(bench, request), "the generation that was asked for")
    wait_until(lambda: _answered(bench, request), "the outcome")


def _running(bench: Bench, request: PlaceRequest) -> bool:
    status = bench.status(request)
    return status is not None and any(one.pid for one in status.generations)


def _answered(bench: Bench, request: PlaceRequest) -> bool:
    try:
        return isinstance(bench.session.place(request), Launched)
    except Indeterminate:
        return False  # it is still at work


class _Scissors:
    """A transport that lets only so many bytes of the answer through, and then breaks."""

    def __init__(self, bench: Bench, let_through: int) -> None:
        self._bench = bench
        self._left = let_through

    def open(self, mark: str, text: bytes) -> "_Scissors":
        self._channel = self._bench.session._way.open(mark, text)
        self._mark = mark
        self._ready = False
        return self

    def send(self, data: bytes, timeout_s: float) -> None:
        self._channel.send(data, timeout_s)

    def receive(self, timeout_s: float) -> bytes:
        got = self._channel.receive(timeout_s)
        if not self._ready:
            self._ready = True
            return got
        if self._left <= 0:
            raise ChannelEnded
        got = got[: self._left]
        self._left -= len(got)
        return got

    def complaint(self) -> str:
        return ""

    def close(self) -> None:
        self._channel.close()


@pytest.mark.kinds(SOME)
def test_an_answer_that_is_cut_is_indeterminate_and_is_settled_by_asking(bench: Bench) -> None:
    for cut in (0, 1, 20, 100):
        request = bench.request(SLEEP)
        call = Call("place", texts.text("place"), _place_params(request), mutates=True)

        with pytest.raises(Indeterminate):
            transport.run(
                _Scissors(bench, cut), call, nonce=nonce(), deadlines=transport.Deadlines()
            )

        wait_until(lambda request=request: _answered(bench, request), "the outcome")  # type: ignore[misc]  # bound here
        stopped = bench.stop(request)
        assert isinstance(stopped, Stopped)
        assert isinstance(judge(stopped.readings[0]), Proven)


@pytest.mark.kinds(SOME)
def test_a_read_whose_answer_is_cut_is_unreachable(bench: Bench) -> None:
    call = Call("facts", texts.text("facts"), (("installation", "inst-test"),))

    with pytest.raises(ConnectionLost) as caught:
        transport.run(_Scissors(bench, 50), call, nonce=nonce(), deadlines=transport.Deadlines())

    assert isinstance(caught.value, Unreachable)


@pytest.mark.kinds([("dash", "root"), ("bash", "root"), ("busybox", "root")])
def test_a_place_that_is_killed_anywhere_is_settled_by_an_unload(bench: Bench) -> None:
    """The node's script is killed at any moment: an unload with a higher number ends it all."""
    for delay_ms in range(0, 120, 8):
        request = bench.request(SLEEP)
        channel, _ = _begin(bench, "place")
        channel.send(transport._request(Call("place", b"", _place_params(request))), 5.0)
        time.sleep(delay_ms / 1000)
        for pid, text in bench.node.commands().items():
            if text.startswith("sh -s "):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        channel.close()

        unloaded = bench.unload(replace(request), 2)

        assert isinstance(unloaded, Unloaded), unloaded
        assert unloaded.removed, unloaded
        assert all(isinstance(judge(readings), Proven) for readings in unloaded.readings)
        time.sleep(0.05)
        assert not [text for text in running(bench.node) if "sleep 1000" in text]
