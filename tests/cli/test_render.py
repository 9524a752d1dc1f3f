"""Rows and documents: aligned for people, exact for programs, harmless for terminals."""

import json
import os
from collections.abc import Callable, Iterator
from io import StringIO, TextIOWrapper
from operator import itemgetter
from pathlib import Path

import pytest

from wlctl.cli import render
from wlctl.cli.options import Session
from wlctl.cli.streams import Streams
from wlctl.errors import UsageError
from wlctl.model.event import Json


class Terminal(StringIO):
    """Something a person reads."""

    def isatty(self) -> bool:
        return True


Row = dict[str, Json]


def columns(*names: str) -> list[render.Column[Row]]:
    return [render.Column(name.upper(), name, itemgetter(name)) for name in names]


Print = Callable[..., str]


@pytest.fixture
def print_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Print:
    """Print rows in a format to a stream, and give what arrived there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def printed(
        rows: list[Row],
        shown: list[render.Column[Row]] | None = None,
        output: str = "table",
        stream: StringIO | None = None,
    ) -> str:
        out = stream or StringIO()
        session = Session([], Streams(out, StringIO()))
        session.given["output"] = output
        render.rows(session, "wlctl.test/1", shown or columns(*rows[0]), rows)
        session.streams.finish()
        return out.getvalue()

    return printed


ELM: Row = {"name": "elm", "memory": 512, "tags": ["a", "b"]}
OAK: Row = {"name": "oak-of-the-north", "memory": None, "tags": []}


def test_a_table_is_aligned_and_says_nothing_with_a_dash(print_rows: Print) -> None:
    assert print_rows([ELM, OAK]) == (
        "NAME              MEMORY  TAGS\n"
        "elm               512     a,b\n"
        "oak-of-the-north  -       -\n"
    )


def test_a_table_of_nothing_is_nothing(print_rows: Print) -> None:
    assert print_rows([], columns("name")) == ""


def test_wide_characters_are_counted_as_the_terminal_does(print_rows: Print) -> None:
    assert print_rows([{"name": "渡辺", "n": 1}, {"name": "e\u0301lm", "n": 2}]).splitlines() == [
        "NAME  N",
        "渡辺  1",
        "e\u0301lm   2",
    ]


def test_a_cell_cannot_make_a_line_or_a_colour(print_rows: Print) -> None:
    assert print_rows([{"name": "a\n\x1b[31mb"}]) == "NAME\n" + r"a\n\x1b[31mb" + "\n"


def test_a_terminal_too_narrow_for_the_table_gets_lines_for_each_item(
    print_rows: Print, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "29")
    monkeypatch.setenv("NO_COLOR", "1")

    assert print_rows([ELM, OAK], stream=Terminal()) == (
        "elm\n  MEMORY  512\n  TAGS    a,b\noak-of-the-north\n  MEMORY  -\n  TAGS    -\n"
    )


def test_a_terminal_just_wide_enough_gets_the_table(
    print_rows: Print, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("NO_COLOR", "1")

    assert print_rows([ELM, OAK], stream=Terminal()).startswith("NAME              MEMORY  TAGS\n")


def test_what_is_no_terminal_is_never_too_narrow(
    print_rows: Print, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "5")

    assert print_rows([ELM]).startswith("NAME  MEMORY  TAGS\n")


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [
        pytest.param({"TERM": "xterm"}, True, id="a terminal"),
        pytest.param({"TERM": "dumb"}, False, id="a dumb one"),
        pytest.param({"TERM": "xterm", "NO_COLOR": "1"}, False, id="nobody wants it"),
    ],
)
def test_a_table_is_coloured_on(
    variables: dict[str, str],
    coloured: bool,
    print_rows: Print,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert ("\x1b[" in print_rows([ELM], stream=Terminal())) is coloured


def test_people_read_what_a_column_says_for_them_and_programs_the_value(
    print_rows: Print,
) -> None:
    shown = [
        *columns("name"),
        render.Column(
            "FREE", "free_bytes", lambda r: r["memory"], text=lambda r: f"{r['memory']}M"
        ),
        render.Column[Row]("", "schema_only", lambda _row: True),
        render.Column[Row]("NOTE", "note", lambda _row: "x", wide=True),
    ]

    assert print_rows([ELM], shown).splitlines() == ["NAME  FREE", "elm   512M"]
    assert print_rows([ELM], shown, "wide").splitlines()[1] == "elm   512M  x"
    assert json.loads(print_rows([ELM], shown, "json")) == {
        "schema": "wlctl.test/1",
        "items": [{"name": "elm", "free_bytes": 512, "schema_only": True, "note": "x"}],
    }


def test_json_lines_each_carry_the_schema(print_rows: Print) -> None:
    lines = print_rows([ELM, OAK], output="jsonl").splitlines()

    assert [json.loads(line) for line in lines] == [
        {"schema": "wlctl.test/1", **ELM},
        {"schema": "wlctl.test/1", **OAK},
    ]


def test_json_of_nothing_is_an_empty_list(print_rows: Print) -> None:
    assert json.loads(print_rows([], columns("name"), "json"))["items"] == []


def test_names_are_the_first_column_alone(print_rows: Print) -> None:
    assert print_rows([ELM, OAK], output="name") == "elm\noak-of-the-north\n"


def test_yes_and_no_are_words_for_people(print_rows: Print) -> None:
    assert print_rows([{"a": True, "b": False}]).splitlines()[1] == "yes  no"


def test_json_on_a_stream_without_unicode_is_escaped_and_still_json(
    print_rows: Print, tmp_path: Path
) -> None:
    file = tmp_path / "out"
    with file.open("wb") as binary, TextIOWrapper(binary, "ascii", errors="strict") as stream:
        session = Session([], Streams(stream, StringIO()))
        session.given["output"] = "json"
        rows: list[Row] = [{"name": "Zoë"}]
        render.rows(session, "wlctl.test/1", columns("name"), rows)

    assert json.loads(file.read_text("ascii"))["items"] == [{"name": "Zoë"}]


def test_rows_are_asked_for_only_while_somebody_reads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    asked: list[int] = []

    def endless() -> Iterator[Row]:
        while True:
            asked.append(len(asked))
            session.streams.reader_gone = len(asked) > 3
            yield {"name": "elm"}

    session = Session([], Streams(StringIO(), StringIO()))
    session.given["output"] = "jsonl"
    render.rows(session, "wlctl.test/1", columns("name"), endless())

    assert len(asked) == 4


def test_a_reader_who_left_is_noticed_before_there_is_anything_to_write() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w") as out:
        streams = Streams(out, StringIO())
        assert streams.is_read()
        os.close(read)
        assert not streams.is_read(), "so `logs --follow | head` ends without one line more"
    assert Streams(StringIO(), StringIO()).is_read(), "what is no pipe is read for ever"


class Watched(StringIO):
    """A stream that remembers what had arrived each time it was flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def flush(self) -> None:
        if not self.closed:
            self.seen.append(self.getvalue())


@pytest.mark.parametrize(
    ("output", "printed"),
    [
        pytest.param(
            "table",
            ["NAME  N\n", "elm   1\n", "oak-of-the-north  2\n", "elm               3\n"],
            id="a table, as wide as its widest cell so far",
        ),
        pytest.param("name", ["elm\n", "oak-of-the-north\n", "elm\n"], id="names"),
        pytest.param(
            "jsonl",
            [
                '{"schema": "wlctl.test/1", "name": "elm", "n": 1}\n',
                '{"schema": "wlctl.test/1", "name": "oak-of-the-north", "n": 2}\n',
                '{"schema": "wlctl.test/1", "name": "elm", "n": 3}\n',
            ],
            id="lines of json",
        ),
    ],
)
def test_what_is_followed_is_printed_as_it_comes(
    output: str, printed: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    out = Watched()
    session = Session([], Streams(out, StringIO()))
    session.given["output"] = output
    names = ["elm", "oak-of-the-north", "elm"]
    rows: list[Row] = [{"name": name, "n": n} for n, name in enumerate(names, 1)]

    render.follow(session, "wlctl.test/1", columns("name", "n"), rows)

    assert out.seen == ["".join(printed[: n + 1]) for n in range(len(printed))]


def test_what_is_followed_cannot_be_one_json_document(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    session = Session([], Streams(StringIO(), StringIO()))
    session.given["output"] = "json"

    with pytest.raises(UsageError):
        render.follow(session, "wlctl.test/1", columns("name"), [])


@pytest.mark.parametrize(
    ("output", "printed"),
    [
        pytest.param("table", "placed\n" + r"on e\nlm" + "\n", id="lines, each one line"),
        pytest.param("wide", "placed\n" + r"on e\nlm" + "\n", id="the same"),
        pytest.param("jsonl", '{"schema": "wlctl.test/1", "node": "elm"}\n', id="one line"),
        pytest.param("json", '{\n  "schema": "wlctl.test/1",\n  "node": "elm"\n}\n', id="json"),
        pytest.param("name", "web-1\n", id="its name"),
    ],
)
def test_a_document_is_printed_as(
    output: str, printed: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    out = StringIO()
    session = Session([], Streams(out, StringIO()))
    session.given["output"] = output

    lines = ["placed", "on e\nlm"]
    render.document(session, "wlctl.test/1", {"node": "elm"}, lines, name="web-1")

    assert out.getvalue() == printed
