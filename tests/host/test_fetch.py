"""A store file comes back part by part, under every shell; what is no part of it is an error."""

import base64
import os

import pytest

from tests.host.bench import Bench, sha256
from wlctl.errors import GarbledAnswer
from wlctl.host import kept
from wlctl.host.answer import Answer, Line, Status
from wlctl.host.upkeep import FETCH_BYTES
from wlctl.model.actions import RefusalCode, Refused

ALL = [("dash", "root"), ("bash", "sudo"), ("busybox", "plain")]
ONE = [("dash", "root")]


def fetched(bench: Bench, name: str, size_bytes: int) -> bytes:
    whole = b""
    for offset in range(0, size_bytes, FETCH_BYTES):
        part = bench.session.fetch(name, offset=offset, size_bytes=size_bytes)
        assert isinstance(part, bytes), part
        whole += part
    return whole


@pytest.mark.kinds(ALL)
def test_a_file_comes_back_as_it_went(bench: Bench) -> None:
    for size in (1, 65_535, 65_536, FETCH_BYTES, FETCH_BYTES + 1, 2 * FETCH_BYTES + 70_000):
        content = os.urandom(size)
        name = bench.put(content)

        assert fetched(bench, name, size) == content


@pytest.mark.kinds(ONE)
def test_a_file_that_the_node_does_not_hold_is_refused(bench: Bench) -> None:
    bench.put(b"something else")

    refused = bench.session.fetch(sha256(b"never sent"), offset=0, size_bytes=10)

    assert isinstance(refused, Refused)
    assert refused.code is RefusalCode.FETCH


@pytest.mark.kinds(ONE)
@pytest.mark.parametrize("size_bytes", [4, 6, FETCH_BYTES])
def test_a_file_of_another_size_than_was_signed_is_no_answer(bench: Bench, size_bytes: int) -> None:
    name = bench.put(b"bytes")

    with pytest.raises(GarbledAnswer, match="has 5 bytes"):
        bench.session.fetch(name, offset=0, size_bytes=size_bytes)


@pytest.mark.kinds(ONE)
def test_only_whole_parts_are_asked_for(bench: Bench) -> None:
    name = bench.put(b"bytes")

    refused = bench.session.fetch(name, offset=1, size_bytes=5)

    assert isinstance(refused, Refused)
    assert refused.code is RefusalCode.INVALID_REQUEST


def answered(size: str, *data: str) -> Answer:
    lines = [Line("size", (size,)), *(Line("data", tuple(one.split(" "))) for one in data)]
    return Answer(tuple(lines), Status.OK)


GOOD = base64.b64encode(b"hello").decode()


def test_a_part_is_put_together_from_its_lines() -> None:
    assert kept.part(answered("5", GOOD), 5, 5) == b"hello"
    assert kept.part(answered("5", GOOD[:4], GOOD[4:]), 5, 5) == b"hello"
    assert kept.part(answered("0"), 0, 0) == b""


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(answered("6", GOOD), id="another size"),
        pytest.param(answered("-5", GOOD), id="no size"),
        pytest.param(answered("5"), id="nothing"),
        pytest.param(answered("5", GOOD, GOOD), id="padding in the middle"),
        pytest.param(answered("5", base64.b64encode(b"hello!").decode()), id="a byte too many"),
        pytest.param(answered("5", base64.b64encode(b"hell").decode()), id="a byte too few"),
        pytest.param(answered("5", "aGVsbG8"), id="no padding"),
        pytest.param(answered("5", "!!!!"), id="no base64"),
        pytest.param(answered("5", "é"), id="no ASCII"),
    ],
)
def test_what_is_no_part_of_the_file_is_an_error(answer: Answer) -> None:
    with pytest.raises(GarbledAnswer):
        kept.part(answer, 5, 5)
