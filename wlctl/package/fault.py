"""What is wrong with a description or a manifest, and how text nobody vouches for is shown."""

import difflib
from collections.abc import Iterable

_SHOWN_CHARACTERS = 60


class Fault(Exception):
    """One thing that is not as it must be; the caller knows the file and makes an error of it.

    Args:
        where: Key path, e.g. `variant[1].requires[0].id`; empty for the whole.
        what: What was found and what is allowed, without a full stop.
    """

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where, what)
        self.where = where
        self.what = what

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


def quoted(value: object, limit: int = _SHOWN_CHARACTERS) -> str:
    """Write `value` so that it cannot be mistaken for the sentence around it.

    Text stands in double quotes with everything outside printable ASCII escaped, and is cut after
    `limit` characters; a table or list is only called that.
    """
    match value:
        case str():
            body = ascii(value[:limit])[1:-1].replace("\\'", "'").replace('"', '\\"')
            return f'"{body}{"…" if len(value) > limit else ""}"'
        case bool():
            return "true" if value else "false"
        case dict():
            return "a table"
        case list() | tuple():
            return "a list"
        case _:
            text = ascii(value)
            return text if len(text) <= limit else f"{text[:limit]}…"


def nearest(name: str, known: Iterable[str]) -> str:
    """Name the one of `known` that was most likely meant, in whatever case, or list them all."""
    by_folded = {one.casefold(): one for one in sorted(known)}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    if close:
        return f"did you mean {by_folded[close[0]]}?"
    return f"known here: {', '.join(by_folded.values())}"
