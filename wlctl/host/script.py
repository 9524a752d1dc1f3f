"""Composes the constant text of each action: one brace group that a cut leaves unable to run."""

from functools import cache
from pathlib import Path

_ACTIONS = Path(__file__).parent / "actions"

_GENERATION = ("state", "tools", "process", "sheet", "fence", "spec", "end", "launch")

_PARTS: dict[str, tuple[str, ...]] = {
    "facts": ("state", "tools", "facts"),
    "offer": ("state", "offer"),
    "receive": ("state", "receive"),
    "place": (*_GENERATION, "release", "place"),
    "start": (*_GENERATION, "start"),
    "stop": ("state", "tools", "process", "sheet", "fence", "spec", "end", "release", "stop"),
    "status": ("state", "process", "fence", "status"),
    "logs": ("state", "fence", "logs"),
}
"""Action to the files it is made of, after the prelude, in this order."""

_CARRIED: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    "place": (("INIT", ("codec", "init")),),
    "start": (("INIT", ("codec", "init")),),
}
"""Action to the programs it leaves on the node: variable, and the files each is made of."""

ACTIONS = tuple(_PARTS)


@cache
def text(action: str) -> bytes:
    """Return the bytes of `action`: a shell parses all of them before it runs any.

    The closing line comes last, so a text that was cut anywhere is a syntax error and nothing else.
    """
    carried = [f"{name}={_quoted(_group(parts))}" for name, parts in _CARRIED.get(action, ())]
    sources = map(_source, ("prelude", "codec", *_PARTS[action]))
    body = [next(sources), *carried, *sources]
    return _wrapped(body).encode("ascii")


def _group(parts: tuple[str, ...]) -> str:
    return _wrapped([_source(part) for part in parts])


def _wrapped(body: list[str]) -> str:
    return "\n".join(["{", *body, "exit", "}", ""])


def _source(part: str) -> str:
    return (_ACTIONS / f"{part}.sh").read_text(encoding="ascii").rstrip("\n")


def _quoted(program: str) -> str:
    return "'" + program.replace("'", "'\\''") + "'"
