"""A cursor over one table of `workload.toml`: every key has a type, and no key is passed over."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TypeVar

from wlctl.package import units
from wlctl.package.fault import Fault, nearest, quoted

EnumT = TypeVar("EnumT", bound=StrEnum)

_SHOWN_CHARACTERS = 60


class Table:
    """One table, read key by key; what is wrong is said with the path of the key.

    Args:
        values: As tomllib gives them.
        path: Of the table itself; empty for the file's top.
        known: Every key that may be there.

    Raises:
        Fault: On construction when a key is not known, on reading when a value is not what it must
            be.
    """

    def __init__(self, values: dict[str, object], path: str, known: Sequence[str]) -> None:
        self._values = values
        self._path = path
        for key in values:
            if key not in known:
                raise Fault(self.at(key), f"unknown key; {nearest(key, known)}")

    def at(self, key: str) -> str:
        """Spell the path of `key`."""
        is_plain = key.isascii() and key.isprintable() and len(key) <= _SHOWN_CHARACTERS
        shown = key if is_plain else quoted(key)
        return f"{self._path}.{shown}" if self._path else shown

    def has(self, key: str) -> bool:
        """Answer whether the key is written at all."""
        return key in self._values

    def text(self, key: str, default: str | None = None) -> str:
        """Read text; without a default the key must be there."""
        value = self._value(key, default)
        if isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            raise Fault(self.at(key), f"{quoted(value)} is a number; write text in quotes")
        raise Fault(self.at(key), f"{quoted(value)} is not text")

    def flag(self, key: str, *, default: bool) -> bool:
        """Read true or false."""
        value = self._value(key, default)
        if isinstance(value, bool):
            return value
        raise Fault(self.at(key), f"{quoted(value)} is not true or false")

    def integer(self, key: str, default: int) -> int:
        """Read a whole number."""
        value = self._value(key, default)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise Fault(self.at(key), f"{quoted(value)} is not a whole number")

    def number(self, key: str, default: float | None = None) -> float:
        """Read a finite number."""
        value = self._value(key, default)
        if isinstance(value, int | float) and not isinstance(value, bool):
            # Also false for nan; the bound is what JSON readers keep exactly.
            if abs(value) <= units.MAX_INTEGER:
                return float(value)
            raise Fault(self.at(key), f"{quoted(value)} is not a number that can be kept exactly")
        raise Fault(self.at(key), f"{quoted(value)} is not a number")

    def choice(self, key: str, words: type[EnumT], default: EnumT | None = None) -> EnumT:
        """Read one of the words of an enum."""
        value = self.text(key, default)
        try:
            return words(value)
        except ValueError:
            allowed = [str(word) for word in words]
            raise Fault(self.at(key), f"{quoted(value)}; {nearest(value, allowed)}") from None

    def size_bytes(self, key: str, default: int = 0) -> int:
        """Read a size such as `"256MiB"`."""
        return self._quantity(key, default, units.size_bytes, "a size", units.SIZE_WORDS)

    def duration_ms(self, key: str, default: int) -> int:
        """Read a duration such as `"10s"`."""
        words = units.DURATION_WORDS
        return self._quantity(key, default, units.duration_ms, "a duration", words)

    def cores(self, key: str, default: float = 0.0) -> float:
        """Read a number of cores such as `0.5`."""
        value = self._value(key, default)
        found = units.cores(value)
        if found is None:
            raise Fault(self.at(key), f"{quoted(value)} is not {units.CORES_WORDS}, at most 4096")
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        """Read a list of texts, empty when the key is not there."""
        value = self._value(key, [])
        if not isinstance(value, list):
            raise Fault(self.at(key), f"{quoted(value)} is not a list of texts")
        for index, item in enumerate(value):
            if not isinstance(item, str):
                raise Fault(f"{self.at(key)}[{index}]", f"{quoted(item)} is not text")
        return tuple(value)

    def table(self, key: str, known: Sequence[str]) -> "Table":
        """Open the table under `key`, an empty one when it is not there."""
        return Table(_as_table(self._value(key, {}), self.at(key)), self.at(key), known)

    def open_table(self, key: str) -> dict[str, object]:
        """Read a table whose keys are the author's own, empty when it is not there."""
        return _as_table(self._value(key, {}), self.at(key))

    def tables(self, key: str, known: Sequence[str], most: int) -> tuple["Table", ...]:
        """Open each table of a list, empty when the key is not there."""
        value = self._value(key, [])
        if not isinstance(value, list):
            raise Fault(self.at(key), f"{quoted(value)} is not a list of tables")
        if len(value) > most:
            raise Fault(self.at(key), f"{len(value)} entries; at most {most}")
        paths = [f"{self.at(key)}[{index}]" for index in range(len(value))]
        return tuple(
            Table(_as_table(item, path), path, known)
            for item, path in zip(value, paths, strict=True)
        )

    def raw(self, key: str) -> object:
        """Read whatever stands there; the key must be there."""
        return self._value(key, None)

    def _value(self, key: str, default: object) -> object:
        if key in self._values:
            return self._values[key]
        if default is None:
            raise Fault(self.at(key), "missing")
        return default

    def _quantity(
        self,
        key: str,
        default: int,
        read: Callable[[str], int | None],
        noun: str,
        words: str,
    ) -> int:
        if key not in self._values:
            return default
        value = self._values[key]
        found = read(value) if isinstance(value, str) else None
        if found is None:
            raise Fault(self.at(key), f"{quoted(value)} is not {noun}; write {words}")
        return found


def _as_table(value: object, path: str) -> dict[str, object]:
    if isinstance(value, dict):
        return value
    raise Fault(path, f"{quoted(value)} is not a table")
