"""Reading what a node sends: the form agreed comes through, anything else is an error."""

import tracemalloc
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.errors import GarbledAnswer
from wlctl.host.answer import (
    ANSWER_MAX_FIELDS,
    ANSWER_MAX_LINES,
    TEXT_MAX_CHARS,
    UPTIME_MAX_MS,
    Status,
    end_of,
    looked_at,
    number,
    parse,
)

NONCE = "cd" * 16
END = f"end {NONCE} ok\n"


def _raw(text: str) -> bytes:
    return (text + END).encode("ascii")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("k\n", [("k", ())], id="a key alone"),
        pytest.param("k v\n", [("k", ("v",))], id="a value"),
        pytest.param("k \n", [("k", ("",))], id="an empty value"),
        pytest.param("k a b  c\n", [("k", ("a", "b", "", "c"))], id="several values"),
        pytest.param("k a%20b%0A\n", [("k", ("a b\n",))], id="what was encoded"),
        pytest.param("k %C3%BC\n", [("k", ("ü",))], id="UTF-8"),
        pytest.param("k =41=3D%3d%3D=\n", [("k", ("=41=3D===",))], id="signs of equality"),
        pytest.param("k %0d%0a=%0d%0A\n", [("k", ("\r\n=\r\n",))], id="ends of lines"),
        pytest.param("k %ff%c3\n", [("k", ("\ufffd\ufffd",))], id="what is no UTF-8"),
        pytest.param("k %ed%a0%80\n", [("k", ("\ufffd" * 3,))], id="half a surrogate pair"),
        pytest.param("k x=1 y=a=b\n", [("k", ("x=1", "y=a=b"))], id="named values"),
    ],
)
def test_lines_are_read(text: str, lines: list[tuple[str, tuple[str, ...]]]) -> None:
    found = parse(_raw(text), NONCE)

    assert [(line.key, line.fields) for line in found.lines] == lines
    assert found.status is Status.OK


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="nothing at all"),
        pytest.param(END.encode()[:-1], id="no last newline"),
        pytest.param(b"end ok\n", id="no nonce"),
        pytest.param(f"end {'0' * 32} ok\n".encode(), id="another nonce"),
        pytest.param(f"end {NONCE} ok more\n".encode(), id="more than a status"),
        pytest.param(f"end {NONCE} OK\n".encode(), id="an unknown status"),
        pytest.param(_raw("K v\n"), id="a capital"),
        pytest.param(_raw("1k v\n"), id="a digit first"),
        pytest.param(_raw("k" * 65 + "\n"), id="too long a key"),
        pytest.param(_raw("\n"), id="an empty line"),
        pytest.param(_raw(" v\n"), id="no key"),
        pytest.param(_raw("k %\n"), id="a bare percent"),
        pytest.param(_raw("k %4g\n"), id="an escape that is none"),
        pytest.param(_raw("k a;b\n"), id="a character that should be encoded"),
        pytest.param(_raw("k a\tb\n"), id="a tab"),
        pytest.param(_raw("k v\r\n"), id="a carriage return"),
        pytest.param(b"k \xc3\xbc\n" + END.encode(), id="bytes that are not ASCII"),
        pytest.param(b"k \x00\n" + END.encode(), id="a NUL"),
    ],
)
def test_what_is_not_in_the_form_agreed_is_an_error(raw: bytes) -> None:
    with pytest.raises(GarbledAnswer):
        parse(raw, NONCE)


@given(st.lists(st.lists(st.text(max_size=20), max_size=4), max_size=6))
def test_any_words_come_through(rows: list[list[str]]) -> None:
    encoded = [
        "".join(f" {quote(word, safe='/:=,@+', errors='replace')}" for word in row) for row in rows
    ]

    found = parse(_raw("".join(f"k{words}\n" for words in encoded)), NONCE)

    expected = [[word.encode("utf-8", "replace").decode() for word in row] for row in rows]
    assert [list(line.fields) for line in found.lines] == expected


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_raise_the_one_error(raw: bytes) -> None:
    try:
        found = parse(raw + END.encode(), NONCE)
    except GarbledAnswer:
        return
    for line in found.lines:
        for field in line.fields:
            field.encode("utf-8")  # whatever it is, it can be written down


@given(st.binary(max_size=300), st.integers(0, 350))
def test_the_end_is_found_wherever_the_stream_is_cut(before: bytes, cut: int) -> None:
    raw = before + b"\n" + END.encode() + b"rest"
    whole = len(before) + 1 + len(END)

    seen = bytearray()
    looked, found = 0, 0
    for piece in (raw[:cut], raw[cut:]):
        if found:
            break
        seen += piece
        found = end_of(seen, NONCE, looked)
        looked = looked_at(seen)

    assert found == whole


@pytest.mark.parametrize(
    ("raw", "length"),
    [
        pytest.param(END, len(END), id="alone"),
        pytest.param("k v\n" + END, 4 + len(END), id="after lines"),
        pytest.param("k " + END, 0, id="in the middle of a line"),
        pytest.param(END[:-1], 0, id="without its newline"),
        pytest.param("k " + END + END, 2 + 2 * len(END), id="first inside a line, then alone"),
    ],
)
def test_the_closing_line_is_a_line_of_its_own(raw: str, length: int) -> None:
    assert end_of(raw.encode(), NONCE) == length


@pytest.mark.parametrize(
    "row",
    [
        pytest.param("a" + " " * 400_000, id="of nothing"),
        pytest.param("a" + " x" * 200_000, id="of one letter each"),
        pytest.param("a " + "%41" * 130_000, id="one, of escapes"),
        pytest.param("a" + " x" * 200_000 + " ;", id="and then what is no field"),
    ],
)
def test_a_line_of_many_fields_takes_no_more_than_they_do(row: str) -> None:
    raw = _raw(row + "\n")
    tracemalloc.start()
    try:
        parse(raw, NONCE)
    except GarbledAnswer:
        pass
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert most < 64 * len(raw)


def test_an_answer_has_so_many_lines_and_no_more() -> None:
    lines = ANSWER_MAX_LINES - 1  # and the closing one
    assert len(parse(_raw("k\n" * lines), NONCE).lines) == lines
    with pytest.raises(GarbledAnswer, match="lines"):
        parse(_raw("k\n" * (lines + 1)), NONCE)


def test_an_answer_has_so_many_fields_and_no_more() -> None:
    fields = ANSWER_MAX_FIELDS - 2  # and those of the closing line
    (line,) = parse(_raw(f"k{' ' * fields}\n"), NONCE).lines
    assert len(line.fields) == fields
    with pytest.raises(GarbledAnswer, match="fields"):
        parse(_raw(f"k{' ' * (fields + 1)}\n"), NONCE)


@pytest.mark.parametrize("text", ["0", "7", "9" * 15])
def test_numbers_are_read(text: str) -> None:
    assert number(text, "k") == int(text)


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", " 1", "1_0", "٣", "9" * 16, "0x1"])
def test_what_is_no_number_is_an_error(text: str) -> None:
    with pytest.raises(GarbledAnswer, match="whole number"):
        number(text, "k")


def test_a_value_that_is_asked_for_must_be_there_once() -> None:
    found = parse(_raw("once v\ntwice v\ntwice v\nlong a b\n"), NONCE)

    assert found.text("once") == "v"
    assert found.has("once")
    assert not found.has("never")
    for key in ("never", "twice", "long"):
        with pytest.raises(GarbledAnswer, match=key):
            found.text(key)


def test_a_value_that_is_asked_for_has_a_bound() -> None:
    found = parse(_raw(f"k {'x' * TEXT_MAX_CHARS}\nlong {'x' * (TEXT_MAX_CHARS + 1)}\n"), NONCE)

    assert len(found.text("k")) == TEXT_MAX_CHARS
    assert len(found.text("long", TEXT_MAX_CHARS + 1)) == TEXT_MAX_CHARS + 1
    with pytest.raises(GarbledAnswer, match="longer"):
        found.text("long")


def test_of_values_with_the_same_name_the_last_counts() -> None:
    (line,) = parse(_raw("k a=1 b a=2 c=x=y\n"), NONCE).lines

    assert line.named == {"a": "2", "c": "x=y"}


def test_no_machine_has_been_up_for_longer_than_there_are_machines() -> None:
    assert parse(_raw(f"uptime_ms {UPTIME_MAX_MS}\n"), NONCE).uptime_ms() == UPTIME_MAX_MS
    with pytest.raises(GarbledAnswer, match="uptime"):
        parse(_raw(f"uptime_ms {UPTIME_MAX_MS + 1}\n"), NONCE).uptime_ms()
