"""How an answer looks: rows and documents, as tables for people or JSON for programs."""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from wlctl.cli.escape import visible, visible_json
from wlctl.cli.options import Output, Session
from wlctl.errors import UsageError
from wlctl.model.event import Json

T = TypeVar("T")

GAP = "  "


@dataclass(frozen=True)  # with slots, `Column[X](…)` fails on Python 3.11
class Column(Generic[T]):
    """One column of a table, and one key of its JSON.

    Attributes:
        title: In capitals; empty for a key that only JSON has.
        key: In JSON; within a schema version keys are only added.
        value: What JSON says.
        text: What people read; None for the value itself, with `-` for null or nothing.
        wide: Shown to people only with `-o wide`.
    """

    title: str
    key: str
    value: Callable[[T], Json]
    text: Callable[[T], str] | None = None
    wide: bool = False

    def shown(self, item: T) -> str:
        """Give the cell for people, escaped."""
        return visible(self.text(item) if self.text else _plain(self.value(item)))

    def all_shown(self, items: Sequence[T]) -> list[str]:
        """Give the cell of each item for people, escaped; most columns need no escaping at all."""
        text, value = self.text, self.value
        cells = [text(item) for item in items] if text else [_plain(value(item)) for item in items]
        joined = "".join(cells)
        return cells if joined.isascii() and joined.isprintable() else list(map(visible, cells))


def rows(
    session: Session,
    schema: str,
    columns: Sequence[Column[T]],
    items: Iterable[T],
    *,
    none: str = "",
) -> None:
    """Print a list; the first column is its key, which `-o name` prints alone.

    Args:
        session: Says the format.
        schema: Name and version, e.g. `wlctl.ps/1`.
        columns: Never empty.
        items: Lines are printed as they come with jsonl and name; tables and json wait for all.
        none: Said to whoever looks at a terminal, where a table would have no line.
    """
    match session.output:
        case Output.JSON:
            listed: list[Json] = [_record(columns, item) for item in items]
            _print_json(session, {"schema": schema, "items": listed}, indent=2)
        case Output.JSONL:
            for item in _while_read(session, items):
                _print_json(session, {"schema": schema, **_record(columns, item)})
        case Output.NAME:
            for item in _while_read(session, items):
                session.streams.data(f"{visible(_plain(columns[0].value(item)))}\n")
        case Output.TABLE | Output.WIDE:
            shown = _shown(session, columns)
            listing = list(items)
            if none and not listing and session.streams.out_is_terminal:
                session.note(none)
            _print_table(session, [c.title for c in shown], [c.all_shown(listing) for c in shown])


def follow(session: Session, schema: str, columns: Sequence[Column[T]], items: Iterable[T]) -> None:
    """Print a list that has no end, each item as it comes, until nobody reads any more.

    Args:
        session: Says the format.
        schema: Name and version, of each line.
        columns: Never empty.
        items: Asked for one more only when the one before has been read or printed.

    Raises:
        UsageError: The format is json, which is one document and so has an end.
    """
    output = session.output
    if output is Output.JSON:
        raise UsageError("a list without an end is no json document", hint="follow with -o jsonl")
    shown = _shown(session, columns)
    widths = [_width(column.title) for column in shown]
    if output in (Output.TABLE, Output.WIDE):
        session.streams.data(f"{GAP.join(column.title for column in shown)}\n", now=True)
    for item in _while_read(session, items):
        match output:
            case Output.JSONL:
                line = _json_text(session, {"schema": schema, **_record(columns, item)})
            case Output.NAME:
                line = visible(_plain(columns[0].value(item)))
            case _:
                cells = [column.shown(item) for column in shown]
                # The widest so far: a column moves once for a long cell, and then stays.
                widths = [max(old, _width(c)) for old, c in zip(widths, cells, strict=True)]
                line = _aligned(cells, widths)
        session.streams.data(f"{line}\n", now=True)


def follow_lines(
    session: Session, schema: str, value: Mapping[str, Json], lines: Iterable[str], *, raw: bool
) -> None:
    """Print lines as they come, until nobody reads any more.

    Args:
        schema: Name and version, of each line as JSON.
        value: What JSON says beside the `line`.
        raw: To people, print each as it is.

    Raises:
        UsageError: The format is json, which is one document and so has an end.
    """
    if session.output is Output.JSON:
        raise UsageError("a list without an end is no json document", hint="follow with -o jsonl")
    for line in _while_read(session, lines):
        match session.output:
            case Output.JSONL:
                text = _json_text(session, {"schema": schema, **value, "line": line})
            case Output.NAME:
                continue
            case _:
                text = line if raw else visible(line)
        session.streams.data(f"{text}\n", now=True)


def document(
    session: Session,
    schema: str,
    value: Mapping[str, Json],
    lines: Iterable[str],
    *,
    name: str = "",
) -> None:
    """Print a single answer.

    Args:
        session: Says the format.
        schema: Name and version, e.g. `wlctl.place/1`.
        value: What JSON says.
        lines: What people read; each is escaped, so text from outside cannot add one.
        name: What `-o name` prints; without it, that prints nothing.
    """
    match session.output:
        case Output.JSON:
            _print_json(session, {"schema": schema, **value}, indent=2)
        case Output.JSONL:
            _print_json(session, {"schema": schema, **value})
        case Output.NAME:
            if name:
                session.streams.data(f"{visible(name)}\n")
        case Output.TABLE | Output.WIDE:
            for line in lines:
                session.streams.data(f"{visible(line)}\n")


def counted(count: int, thing: str, things: str = "") -> str:
    """Say how many, in the plural unless it is one: `1 node`, `2 nodes`."""
    return f"{count} {thing if count == 1 else things or f'{thing}s'}"


def _record(columns: Sequence[Column[T]], item: T) -> dict[str, Json]:
    return {column.key: column.value(item) for column in columns}


def _shown(session: Session, columns: Sequence[Column[T]]) -> list[Column[T]]:
    wide = session.output is Output.WIDE
    return [column for column in columns if column.title and (wide or not column.wide)]


def _print_json(session: Session, value: Json, *, indent: int | None = None) -> None:
    session.streams.data(f"{_json_text(session, value, indent=indent)}\n")


def _json_text(session: Session, value: Json, *, indent: int | None = None) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    return visible_json(text, ascii_only=not session.streams.out_is_unicode)


def _while_read(session: Session, items: Iterable[T]) -> Iterable[T]:
    for item in items:
        if session.streams.reader_gone:
            return
        yield item


def _plain(value: Json) -> str:
    if isinstance(value, str):  # nearly all are, and a table may have many
        return value or "-"
    match value:
        case None | [] | ():
            return "-"
        case True:
            return "yes"
        case False:
            return "no"
        case list() | tuple():
            return ",".join(_plain(each) for each in value)
        case _:
            return str(value)


def _print_table(session: Session, titles: list[str], columns: list[list[str]]) -> None:
    if not columns[0]:
        return
    widths = [_widest([t, *c]) for t, c in zip(titles, columns, strict=True)]
    total = sum(widths) + len(GAP) * (len(widths) - 1)
    if session.streams.out_is_terminal and total > shutil.get_terminal_size().columns:
        _print_blocks(session, titles, list(map(list, zip(*columns, strict=True))))
        return
    padded = [_padded(cells, width) for cells, width in zip(columns, widths, strict=True)]
    lines = [_bold(session, _aligned(titles, widths))]
    lines += [GAP.join(row).rstrip() for row in zip(*padded, strict=True)]
    session.streams.data("\n".join([*lines, ""]))


def _aligned(cells: list[str], widths: list[int]) -> str:
    padded = [_padded([cell], width)[0] for cell, width in zip(cells, widths, strict=True)]
    return GAP.join(padded).rstrip()


def _padded(cells: list[str], width: int) -> list[str]:
    if "".join(cells).isascii():
        return [cell.ljust(width) for cell in cells]
    return [cell + " " * (width - _width(cell)) for cell in cells]


def _print_blocks(session: Session, titles: list[str], cells: list[list[str]]) -> None:
    """Give each item lines of its own, where a table would be wider than the terminal."""
    margin = max(map(_width, titles[1:]), default=0)
    for first, *rest in cells:
        session.streams.data(f"{_bold(session, first)}\n")
        for title, cell in zip(titles[1:], rest, strict=True):
            session.streams.data(f"{GAP}{title:<{margin}}{GAP}{cell}\n")


def _bold(session: Session, text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if session.color else text


def _widest(cells: list[str]) -> int:
    return max(map(len if "".join(cells).isascii() else _width, cells))


def _width(text: str) -> int:
    """Count the terminal's columns that `text` takes."""
    if text.isascii():
        return len(text)
    import unicodedata  # for those few texts

    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
