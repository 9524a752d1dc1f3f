"""How the value of a setting is read: each parser answers it, or raises what to say instead."""

import os
import re
from collections.abc import Callable
from pathlib import Path

Parse = Callable[[object], object]
"""Raises ValueError with what to say instead."""

WEIGHT_MAX = 1e9
"""More than this would only lose the digits of the other terms."""

CAPABILITY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")

OUTPUTS = ("table", "wide", "json", "jsonl", "name")


def boolean(value: object) -> bool:
    """Read a yes or a no, as TOML or the environment has it."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("", "0", "false", "no", "off"):
        return False
    raise ValueError("say 1 or 0, true or false")


def seconds(least: float, most: float) -> Parse:
    """Make a parser of a number of seconds; both ends belong to it."""

    def parse(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError("say a number of seconds")  # noqa: TRY004 - parsers raise one kind
        try:
            number = float(value)
        except ValueError:
            raise ValueError("say a number of seconds") from None
        if not least <= number <= most:  # false for NaN too
            raise ValueError(f"say {least:g} to {most:g} seconds")
        return number

    return parse


def count(least: int, most: int) -> Parse:
    """Make a parser of a whole number; both ends belong to it."""

    def parse(value: object) -> int:
        digits = str(value)
        if isinstance(value, bool) or not (digits.isascii() and digits.isdecimal()):
            raise ValueError("say a whole number")
        if len(digits) > len(str(most)) or not least <= int(digits) <= most:
            raise ValueError(f"say {least} to {most}")
        return int(digits)

    return parse


def weight(value: object) -> float:
    """Read what a term of a score is worth: finite and at least zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("say a number")  # noqa: TRY004 - parsers raise one kind
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError("say a number") from None
    if not 0 <= number <= WEIGHT_MAX:  # false for NaN too
        raise ValueError(f"say 0 to {WEIGHT_MAX:g}")
    return number


def capability(value: object) -> str:
    """Read the id of a capability."""
    if not isinstance(value, str) or not CAPABILITY.fullmatch(value):
        raise ValueError("say the dotted id of a capability, e.g. node.class.dev")
    return value


def output(value: object) -> str:
    """Read a format."""
    if value not in OUTPUTS:
        raise ValueError(f"say one of {', '.join(OUTPUTS)}")
    return str(value)


def node(value: object) -> str:
    """Read a node's name."""
    if not isinstance(value, str):
        raise ValueError("say the name of a node")  # noqa: TRY004 - parsers raise one kind
    return value


def nodes(value: object) -> tuple[str, ...]:
    """Read names of nodes: a list in a file, with commas between them in the environment."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("say names of nodes")
    return tuple(name.strip() for name in names)


def ledger(value: object) -> str:
    """Read a ledger's URL or path; a path comes out absolute."""
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("say a path or a URL")
    if "://" in value:
        return value
    if value.startswith("~"):
        return str(_below_home(value))
    try:
        return str(Path(value).absolute())
    except FileNotFoundError:
        raise ValueError("the working directory is gone; say an absolute path") from None


def ledger_in_file(value: object) -> str:
    """Read the same from a file, where a relative path would mean another ledger everywhere."""
    location = ledger(value)
    if not str(value).startswith(("/", "~")) and "://" not in location:
        raise ValueError("say an absolute path or a URL")
    return location


def _below_home(value: str) -> Path:
    if not home_is_sound():
        raise ValueError("HOME is not an absolute path")
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise ValueError("there is no home directory of that name") from None


def home_is_sound() -> bool:
    """Answer whether HOME is absolute, or unset so that the passwd entry counts."""
    return os.environ.get("HOME", "/").startswith("/")
