import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.signing.wire import Malformed, Reader, string


@given(st.lists(st.binary(max_size=20)))
def test_strings_come_back_one_by_one(parts: list[bytes]) -> None:
    reader = Reader(b"".join(map(string, parts)))

    assert [reader.string() for _ in parts] == parts
    reader.end()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\0\0\0", id="half a length"),
        pytest.param(b"\0\0\0\5abcd", id="one byte short"),
        pytest.param(b"\xff\xff\xff\xffabcd", id="a length beyond the end"),
    ],
)
def test_what_ends_too_early_is_malformed(data: bytes) -> None:
    with pytest.raises(Malformed, match="ends too early"):
        Reader(data).string()


@pytest.mark.parametrize(
    ("data", "found"),
    [
        pytest.param(b"", 0, id="zero has no bytes"),
        pytest.param(b"\x7f", 127, id="the largest first byte"),
        pytest.param(b"\x00\x80", 128, id="a zero before a set bit"),
        pytest.param(b"\x80", None, id="a set first bit is a sign"),
    ],
)
def test_a_number_is_never_negative(data: bytes, found: int | None) -> None:
    reader = Reader(string(data))
    if found is None:
        with pytest.raises(Malformed, match="negative"):
            reader.unsigned()
    else:
        assert reader.unsigned() == found


@pytest.mark.parametrize("data", [b"\x1b[0m", b"\xff", b"a\n"])
def test_a_name_is_printable_ascii(data: bytes) -> None:
    with pytest.raises(Malformed, match="not plain text"):
        Reader(string(data)).text()


def test_bytes_that_are_left_are_malformed() -> None:
    reader = Reader(string(b"a") + b"b")
    reader.string()

    with pytest.raises(Malformed, match="after its end"):
        reader.end()
