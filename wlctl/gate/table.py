"""A cursor over one table of a policy file: every key known, every value what it must be."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TypeVar

from wlctl.errors import InvalidFile

WordT = TypeVar("WordT")

_SHOWN_CHARACTERS = 60


class Table:
    """One table of a file; what is wrong is said with the file and the path of the key.

    Args:
        found: As tomllib gives it.
        path: Of the table itself; empty for the file's top.
        known: Every key that may be there.
        source: How the file is called in messages.

    Raises:
        InvalidFile: On construction when it is no table or has another key, on reading when a value
            is not what it must be.
    """

    def __init__(self, found: object, path: str, known: Sequence[str], source: str) -> None:
        self._path = path
        self._source = source
        if not isinstance(found, dict):
            raise InvalidFile(f"{source}: {path}: expected a table, found {shown(found)}")
        self._values = found
        for key in found:
            if key not in known:
                raise self.fault(key, f"unknown key; {nearest(key, known)}")

    def fault(self, key: str, what: str) -> InvalidFile:
        """Say what is wrong with the value of `key`."""
        plain = key if key.isascii() and key.isprintable() else shown(key)
        where = f"{self._path}.{plain}" if self._path else plain
        return InvalidFile(f"{self._source}: {where}: {what}")

    def has(self, key: str) -> bool:
        """Answer whether the key is written at all."""
        return key in self._values

    def text(self, key: str) -> str:
        """Read text that is there and not empty."""
        return self._as_text(key, self._value(key))

    def flag(self, key: str) -> bool:
        """Read true or false; false when it is not written."""
        value = self._values.get(key, False)
        if isinstance(value, bool):
            return value
        raise self.fault(key, f"expected true or false, found {shown(value)}")

    def number(self, key: str, least: float, most: float) -> float:
        """Read a number within bounds."""
        value = self._value(key)
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and least <= value <= most
        ):
            return float(value)
        raise self.fault(key, f"expected {least:g} to {most:g}, found {shown(value)}")

    def word(self, key: str, read: Callable[[str], WordT | None], known: Sequence[str]) -> WordT:
        """Read one of the words that `read` knows."""
        return self._word(key, self.text(key), read, known)

    def words(
        self, key: str, read: Callable[[str], WordT | None], known: Sequence[str]
    ) -> tuple[WordT, ...]:
        """Read a list of words that is there and not empty."""
        return tuple(
            self._word(f"{key}[{n}]", text, read, known) for n, text in enumerate(self.texts(key))
        )

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of texts that is there and not empty; no text is empty or there twice."""
        listed = self.optional_texts(key)
        if not listed:
            raise self.fault(key, "the list is empty" if self.has(key) else "missing")
        return listed

    def optional_texts(self, key: str) -> tuple[str, ...]:
        """Read a list of texts that may be empty or not written; no text is empty or twice."""
        value = self._values.get(key, [])
        if not isinstance(value, list):
            raise self.fault(key, f"expected a list of texts, found {shown(value)}")
        listed = tuple(self._as_text(f"{key}[{n}]", item) for n, item in enumerate(value))
        for n, item in enumerate(listed):
            if item in listed[:n]:
                raise self.fault(f"{key}[{n}]", f"{shown(item)} is there twice")
        return listed

    def tables(self, key: str, known: Sequence[str], most: int) -> tuple["Table", ...]:
        """Open each table of a list, none when it is not written."""
        value = self._values.get(key, [])
        if not isinstance(value, list):
            raise self.fault(key, f"expected [[{key}]] tables, found {shown(value)}")
        if len(value) > most:
            raise self.fault(key, f"at most {most}, found {len(value)}")
        return tuple(
            Table(item, f"{key}[{n}]", known, self._source) for n, item in enumerate(value)
        )

    def table(self, key: str, known: Sequence[str]) -> "Table":
        """Open the table under `key`."""
        return Table(self._values[key], key, known, self._source)

    def _value(self, key: str) -> object:
        if key not in self._values:
            raise self.fault(key, "missing")
        return self._values[key]

    def _as_text(self, key: str, value: object) -> str:
        if isinstance(value, str) and value:
            return value
        raise self.fault(key, f"expected text, found {shown(value)}")

    def _word(
        self, key: str, text: str, read: Callable[[str], WordT | None], known: Sequence[str]
    ) -> WordT:
        found = read(text)
        if found is None:
            raise self.fault(key, f"found {shown(text)}; {nearest(text, known)}")
        return found


def shown(value: object) -> str:
    """Write a value so that it cannot be mistaken for the sentence around it."""
    match value:
        case str():
            body = ascii(value[:_SHOWN_CHARACTERS])[1:-1].replace('"', '\\"')
            return f'"{body}{"…" if len(value) > _SHOWN_CHARACTERS else ""}"'
        case bool():
            return "true" if value else "false"
        case dict():
            return "a table"
        case list():
            return "a list"
        case _:
            return ascii(value)[:_SHOWN_CHARACTERS]


def nearest(word: str, known: Sequence[str]) -> str:
    """Name the one that was most likely meant, or all there are."""
    near = get_close_matches(word.lower(), known, n=1)
    return f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
