"""`$NAME` in a command or a value: which names stand there, and what is only text."""

import re
from dataclasses import dataclass

_PIECE = re.compile(r"\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})|([^$]+)")


@dataclass(frozen=True, slots=True)
class Reference:
    """A place where the value of a variable will stand."""

    name: str


Piece = str | Reference


def split(text: str) -> tuple[Piece, ...] | None:
    """Take `text` apart into words and references; `$$` is a dollar.

    Returns:
        The pieces in order, or None where a `$` is followed by none of `$`, `NAME` and `{NAME}`.
    """
    pieces: list[Piece] = []
    end = 0
    for match in _PIECE.finditer(text):
        if match.start() != end:
            return None
        end = match.end()
        dollar, bare, braced, words = match.groups()
        pieces.append(dollar or words or Reference(bare or braced))
    return tuple(pieces) if end == len(text) else None


def names(text: str) -> frozenset[str]:
    """List the variables `text` refers to; empty for a text that cannot be taken apart."""
    return frozenset(p.name for p in split(text) or () if isinstance(p, Reference))
