"""Frozen values to plain JSON values and back: every field there, no other, each of its type."""

import dataclasses
import types
from collections.abc import Mapping
from enum import Enum, IntEnum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from wlctl.package import units
from wlctl.package.fault import Fault, nearest, quoted

T = TypeVar("T")


def encode(value: object) -> Any:
    """Write a frozen value as JSON can say it; a number's enum becomes its word."""
    match value:
        case IntEnum():
            return value.name.lower()
        case Enum():
            return value.value
        case tuple():
            return [encode(item) for item in value]
        case Mapping():
            return {key: encode(item) for key, item in value.items()}
        case _ if dataclasses.is_dataclass(value):
            names = (field.name for field in dataclasses.fields(value))
            return {name: encode(getattr(value, name)) for name in names}
        case _:
            return value


def decode(wanted: type[T], value: object, where: str = "") -> T:
    """Read what `encode` wrote.

    Raises:
        Fault: A field is missing or unknown, or a value is not of its type.
    """
    return _decode(wanted, value, where)  # type: ignore[no-any-return]  # checked by its own cases


def _decode(wanted: Any, value: object, where: str) -> Any:
    origin = get_origin(wanted)
    if origin in {Union, types.UnionType}:
        return _one_of(get_args(wanted), value, where)
    if origin is tuple:
        return _items(get_args(wanted)[0], value, where)
    if origin is not None:
        return _mapping(value, where)
    if dataclasses.is_dataclass(wanted):
        return _fields(wanted, value, where)
    if issubclass(wanted, Enum):
        return _word(wanted, value, where)
    return _scalar(wanted, value, where)


def _fields(wanted: Any, value: object, where: str) -> Any:
    if not isinstance(value, dict):
        raise Fault(where, f"{quoted(value)} is not an object")
    hints = _hints(wanted)
    for key in value:
        if key not in hints:
            raise Fault(where, f"unknown field {quoted(key)}; {nearest(key, hints)}")
    for name in hints:
        if name not in value:
            raise Fault(_below(where, name), "missing")
    return wanted(**{n: _decode(hint, value[n], _below(where, n)) for n, hint in hints.items()})


def _one_of(choices: tuple[Any, ...], value: object, where: str) -> Any:
    if value is None and types.NoneType in choices:
        return None
    for choice in choices:
        if choice is types.NoneType:
            continue
        is_list = get_origin(choice) is tuple
        if is_list == isinstance(value, list) and (is_list or not _is_scalar(choice)):
            return _decode(choice, value, where)
        if _is_scalar(choice) and type(value) is choice:
            return value
    raise Fault(where, f"{quoted(value)} is not one of the kinds of value that may stand here")


def _items(item: Any, value: object, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise Fault(where, f"{quoted(value)} is not a list")
    return tuple(_decode(item, entry, f"{where}[{index}]") for index, entry in enumerate(value))


def _mapping(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, dict):
        raise Fault(where, f"{quoted(value)} is not an object")
    return {key: _scalar(str, item, _below(where, key[:60])) for key, item in value.items()}


def _word(wanted: Any, value: object, where: str) -> Any:
    by_word = {encode(member): member for member in wanted}
    if not isinstance(value, str) or value not in by_word:
        raise Fault(where, f"{quoted(value)}; {nearest(str(value)[:60], by_word)}")
    return by_word[value]


def _scalar(wanted: Any, value: object, where: str) -> Any:
    if wanted is float and type(value) is int:
        return float(value)  # canonical JSON writes 1.0 as 1
    if type(value) is not wanted:
        raise Fault(where, f"{quoted(value)} is not of type {wanted.__name__}")
    if isinstance(value, int | float) and not abs(value) <= units.MAX_INTEGER:
        raise Fault(where, f"{quoted(value)} is not a number that can be kept exactly")
    return value


def _is_scalar(wanted: Any) -> bool:
    return wanted in {str, int, float, bool}


def _below(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


@cache
def _hints(wanted: Any) -> Mapping[str, Any]:
    hints = get_type_hints(wanted)
    return {field.name: hints[field.name] for field in dataclasses.fields(wanted)}
