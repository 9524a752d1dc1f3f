"""Reads JSON strictly: every key known, every value what it must be, or a message that says where.

A fault names the file, the path of the value in it, what was expected and what was found.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from wlctl.errors import InvalidFile
from wlctl.placement.text import value as written
from wlctl.placement.text import visible

WordT = TypeVar("WordT")

MAX_TEXT = 64 * 1024
"""Characters of one text."""


def parsed(text: str, file: str, most_characters: int) -> "Value":
    """Read a JSON text.

    Args:
        text: The whole file.
        file: How the file is called in messages.
        most_characters: A longer text is refused unread.

    Raises:
        InvalidFile: It is too long, no JSON, nested too deeply, has a key twice, or a number that
            is none (NaN, Infinity).
    """
    if len(text) > most_characters:
        raise InvalidFile(
            f"{file}: expected at most {most_characters} characters, found {len(text)}"
        )
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_no_number)
    except RecursionError as error:
        raise InvalidFile(f"{file} is nested too deeply") from error
    except ValueError as error:
        raise InvalidFile(f"{file} is not JSON: {error}") from error
    return Value(found, "$", file)


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for n, key in enumerate(keys) if key in keys[:n])
        raise ValueError(f"the key {visible(twice)} is there twice")
    return found


def _no_number(word: str) -> object:
    raise ValueError(f"{word} is not a number")


class Value:
    """One value of a file and the path to it."""

    __slots__ = ("file", "found", "path")

    def __init__(self, found: object, path: str, file: str) -> None:
        self.found = found
        self.path = path
        self.file = file

    def fault(self, expected: str) -> InvalidFile:
        """Say what was expected here."""
        return InvalidFile(f"{self.file}: {self.path}: expected {expected}, found {self._shown()}")

    def fields(self, known: Sequence[str]) -> "Fields":
        """Take an object that has none but the `known` keys.

        Raises:
            InvalidFile: It is no object, or has another key.
        """
        if not isinstance(self.found, dict):
            raise self.fault("an object")
        for key in self.found:
            if key not in known:
                raise self.at(key).fault(f"one of the keys {', '.join(known)}")
        return Fields(self, self.found)

    def entries(self) -> Iterator[tuple[str, "Value"]]:
        """Take an object with any keys.

        Raises:
            InvalidFile: It is no object.
        """
        if not isinstance(self.found, dict):
            raise self.fault("an object")
        for key in self.found:
            yield key, self.at(key)

    def items(self, most: int) -> list["Value"]:
        """Take a list of at most `most` values.

        Raises:
            InvalidFile: It is no list, or a longer one.
        """
        if not isinstance(self.found, list):
            raise self.fault("a list")
        if len(self.found) > most:
            raise self.fault(f"at most {most} entries")
        return [Value(found, f"{self.path}[{n}]", self.file) for n, found in enumerate(self.found)]

    def text(self, most: int = MAX_TEXT) -> str:
        """Take a text.

        Raises:
            InvalidFile: It is none, or longer than `most` characters.
        """
        if not isinstance(self.found, str) or len(self.found) > most:
            raise self.fault(f"a text of at most {most} characters")
        return self.found

    def flag(self) -> bool:
        """Take true or false.

        Raises:
            InvalidFile: It is neither.
        """
        if not isinstance(self.found, bool):
            raise self.fault("true or false")
        return self.found

    def integer(self, least: int, most: int) -> int:
        """Take a whole number.

        Raises:
            InvalidFile: It is none, or out of bounds.
        """
        found = self.found
        if not isinstance(found, int) or isinstance(found, bool) or not least <= found <= most:
            raise self.fault(f"a whole number from {least} to {most}")
        return found

    def number(self, least: float, most: float) -> float:
        """Take a finite number.

        Raises:
            InvalidFile: It is none, or out of bounds.
        """
        found = self.found
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        # An overflowing literal, such as 1e999, is read as infinity: it is out of any bounds.
        if not is_number or not least <= found <= most:  # type: ignore[operator]  # a number
            raise self.fault(f"a number from {least:g} to {most:g}")
        return float(found)  # type: ignore[arg-type]  # likewise

    def choice(self, words: Mapping[str, WordT]) -> WordT:
        """Take one of a few words.

        Raises:
            InvalidFile: It is another.
        """
        if not isinstance(self.found, str) or self.found not in words:
            raise self.fault(f"one of {', '.join(words)}")
        return words[self.found]

    @property
    def is_null(self) -> bool:
        """Whether nothing stands here."""
        return self.found is None

    def at(self, key: str) -> "Value":
        """Take the value under a key that is there."""
        assert isinstance(self.found, dict), "the caller has looked"
        return Value(self.found[key], f"{self.path}.{visible(key)[:60]}", self.file)

    def _shown(self) -> str:
        match self.found:
            case None:
                return "null"
            case dict():
                return "an object"
            case list():
                return f"a list of {len(self.found)}"
            case _:
                return visible(written(self.found))


class Fields:
    """The fields of an object."""

    __slots__ = ("_found", "_of")

    def __init__(self, of: Value, found: Mapping[str, object]) -> None:
        self._of = of
        self._found = found

    def has(self, key: str) -> bool:
        """Answer whether the field is there."""
        return key in self._found

    def get(self, key: str) -> Value | None:
        """Take a field; None where it is not there, or null."""
        value = self._of.at(key) if key in self._found else None
        return None if value is None or value.is_null else value

    def __getitem__(self, key: str) -> Value:
        """Take a field that must be there.

        Raises:
            InvalidFile: It is not.
        """
        if key not in self._found:
            raise self._of.fault(f"the key {key}")
        return self._of.at(key)
