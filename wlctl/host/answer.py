"""The one reader of what a node answers: bounded, strict, and valid Unicode from here on."""

import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from wlctl.errors import GarbledAnswer

ANSWER_MAX_BYTES = 1 << 20
"""An answer longer than this is none, unless its action allows more."""

ANSWER_MAX_LINES = 65_536

ANSWER_MAX_FIELDS = 1 << 21
"""In all its lines; as an object each takes many times the byte that it may be sent in."""

TEXT_MAX_CHARS = 16_384
"""Of one value: it may be written down, for good."""

NUMBER_MAX_DIGITS = 15
"""As the actions themselves have it: a multiple of such a number still fits the ledger's."""

UPTIME_MAX_MS = 100 * 365 * 24 * 3600 * 1000
"""No machine has been up for a century, and the moment it began would be no date."""

CLOSING_MAX_BYTES = 128
"""The closing line is shorter: a word, a nonce of at most 64 digits, and a status."""

_PLAIN = "[A-Za-z0-9._~/:=,@+-]*+"

_LINE = re.compile(rf"[a-z][a-z0-9_]{{0,63}}(?: {_PLAIN}(?:%[0-9A-Fa-f]{{2}}{_PLAIN})*+)*+")
"""A key, and its fields, a space before each. Nothing matched is given back: what could be takes
hundreds of bytes for each field of a line that has a million."""


class Status(StrEnum):
    """How an action ended, by its own word."""

    OK = "ok"
    REFUSED = "refused"
    """Nothing was done, and nothing of the attempt is left."""
    UNCLEAN = "unclean"
    """Nothing was achieved, and something of the attempt may be left."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: a key and its decoded fields."""

    key: str
    fields: tuple[str, ...]

    @property
    def named(self) -> Mapping[str, str]:
        """The fields of the form `name=value`; the last of a name wins."""
        return dict(field.split("=", 1) for field in self.fields if "=" in field)


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer, in the node's order."""

    lines: tuple[Line, ...]
    status: Status

    def all(self, key: str) -> Iterator[Line]:
        """Yield the lines of `key`."""
        return (line for line in self.lines if line.key == key)

    def has(self, key: str) -> bool:
        """Answer whether there is a line of `key`."""
        return any(line.key == key for line in self.lines)

    def text(self, key: str, max_chars: int = TEXT_MAX_CHARS) -> str:
        """Return the only field of the only line of `key`.

        Raises:
            GarbledAnswer: There is none, or more than one, or it is longer than `max_chars`.
        """
        found = [line.fields for line in self.all(key)]
        if len(found) != 1 or len(found[0]) != 1:
            raise GarbledAnswer(f"the answer should say `{key}` once, with one value")
        return bounded(found[0][0], key, max_chars)

    def number(self, key: str) -> int:
        """Return `text(key)` as a whole number, zero or more.

        Raises:
            GarbledAnswer: It is none.
        """
        return number(self.text(key), key)

    def uptime_ms(self) -> int:
        """Return for how long the machine has been up.

        Raises:
            GarbledAnswer: It does not say so, or no machine can have been.
        """
        uptime_ms = self.number("uptime_ms")
        if uptime_ms > UPTIME_MAX_MS:
            raise GarbledAnswer(f"`uptime_ms` is longer than any machine's: {uptime_ms}")
        return uptime_ms


def bounded(text: str, key: str, max_chars: int = TEXT_MAX_CHARS) -> str:
    """Return `text`.

    Raises:
        GarbledAnswer: It is longer than `max_chars`; `key` names the place.
    """
    if len(text) > max_chars:
        raise GarbledAnswer(f"`{key}` is longer than {max_chars} characters")
    return text


def number(text: str, key: str) -> int:
    """Read a whole number of at most NUMBER_MAX_DIGITS digits.

    Raises:
        GarbledAnswer: `text` is anything else; `key` names the place.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= NUMBER_MAX_DIGITS):
        raise GarbledAnswer(f"`{key}` should be a whole number, not {text[:40]!r}")
    return int(text)


def looked_at(raw: bytes | bytearray) -> int:
    """Return where `end_of` is to go on once more came, having found no end in `raw`."""
    return max(0, len(raw) - CLOSING_MAX_BYTES)


def end_of(raw: bytes | bytearray, nonce: str, start: int = 0) -> int:
    """Return the length of the answer in `raw` up to and with its closing line, or 0.

    Args:
        start: No closing line begins before this byte.
    """
    mark = f"end {nonce} ".encode("ascii")
    at = raw.find(mark, start)
    while at != -1:
        stop = raw.find(b"\n", at)
        if stop == -1:
            return 0
        if at == 0 or raw[at - 1 : at] == b"\n":
            return stop + 1
        at = raw.find(mark, stop)
    return 0


def parse(raw: bytes, nonce: str) -> Answer:
    """Read `raw`, which `end_of` found whole.

    Fields that are not UTF-8 get the replacement character where they are not.

    Raises:
        GarbledAnswer: Any line is not in the form agreed.
    """
    try:
        text = raw.decode("ascii")
    except UnicodeDecodeError:
        raise GarbledAnswer("the answer holds bytes that are not ASCII") from None
    if not text.endswith("\n"):
        raise GarbledAnswer("the answer has no closing line")
    if text.count("\n") > ANSWER_MAX_LINES:
        raise GarbledAnswer(f"the answer has more than {ANSWER_MAX_LINES} lines")
    if text.count(" ") > ANSWER_MAX_FIELDS:
        raise GarbledAnswer(f"the answer has more than {ANSWER_MAX_FIELDS} fields")
    rows = text[:-1].split("\n")
    word = rows.pop().removeprefix(f"end {nonce} ")
    try:
        status = Status(word)
    except ValueError:
        raise GarbledAnswer(f"the answer ends in an unknown status {word[:40]!r}") from None
    return Answer(tuple(_line(row) for row in rows), status)


def _line(row: str) -> Line:
    if _LINE.fullmatch(row) is None:
        raise GarbledAnswer(f"the answer has a line that is none: {row[:80]!r}")
    key, *fields = row.split(" ")
    if "%" in row:  # most are plain, and an answer has hundreds
        fields = list(map(_decoded, fields))
    return Line(key, tuple(fields))


def _decoded(field: str) -> str:
    # quoted-printable is the same with another sign, and read in C: an output has 100 000 escapes
    raw = binascii.a2b_qp(field.replace("=", "=3D").replace("%", "="))
    return raw.decode("utf-8", errors="replace")
