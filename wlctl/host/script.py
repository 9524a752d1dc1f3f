"""Composes the constant text of each action: one brace group that a cut leaves unable to run."""

from functools import cache
from pathlib import Path

_ACTIONS = Path(__file__).parent / "actions"

_PARTS: dict[str, tuple[str, ...]] = {
    "facts": ("state", "tools", "facts"),
}
"""Action to the files it is made of, after the prelude, in this order."""

_CARRIED: dict[str, tuple[tuple[str, str], ...]] = {}
"""Action to the programs it leaves on the node: variable and file."""

ACTIONS = tuple(_PARTS)


@cache
def text(action: str) -> bytes:
    """Return the bytes of `action`: a shell parses all of them before it runs any.

    The closing line comes last, so a text that was cut anywhere is a syntax error and nothing else.
    """
    carried = [f"{name}={_quoted(_source(part))}" for name, part in _CARRIED.get(action, ())]
    body = [_source("prelude"), *carried, *map(_source, _PARTS[action])]
    return "\n".join(["{", *body, "exit", "}", ""]).encode("ascii")


def _source(part: str) -> str:
    return (_ACTIONS / f"{part}.sh").read_text(encoding="ascii").rstrip("\n")


def _quoted(program: str) -> str:
    return "'" + program.replace("'", "'\\''") + "\n'"
