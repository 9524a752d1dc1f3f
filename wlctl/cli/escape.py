"""The one escaper: text from anywhere else cannot move the cursor, hide a word or end a line."""

import json
import re
from functools import cache

# Controls (C0, DEL, C1), what reorders or hides text (soft hyphen, bidi marks and embeddings,
# zero-width and invisible operators, interlinear marks, tags), what ends a line (U+2028, U+2029),
# and surrogates, which are no characters at all.
_HIDDEN = (
    r"\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff"
)


@cache
def _pattern(*, ascii_only: bool = False) -> re.Pattern[str]:
    return re.compile(f"[{_HIDDEN}]|[^\\x00-\\x7f]" if ascii_only else f"[{_HIDDEN}]")


def visible(text: str, *, keep: str = "") -> str:
    r"""Write every character that does not show as itself as `\xNN`, `\uNNNN` or `\UNNNNNNNN`.

    Args:
        text: From anywhere.
        keep: Characters that stay, e.g. a newline where a text has lines of its own.
    """
    if text.isascii() and text.isprintable():
        return text
    return _pattern().sub(lambda found: found[0] if found[0] in keep else _escaped(found[0]), text)


def visible_json(text: str, *, ascii_only: bool) -> str:
    r"""Do the same to a JSON text, whose escapes are its own; what it says stays the same.

    A surrogate, which no reader could encode, becomes its escape as visible text.

    Args:
        text: Made by `json.dumps(..., ensure_ascii=False)`.
        ascii_only: The stream may not be able to carry more than ASCII.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    return _pattern(ascii_only=ascii_only).sub(lambda found: _escaped_json(found[0]), text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _escaped_json(character: str) -> str:
    if character == "\n":  # between tokens; inside a string json.dumps has escaped it
        return character
    if "\ud800" <= character <= "\udfff":
        return rf"\{_escaped(character)}"
    return json.dumps(character)[1:-1]
