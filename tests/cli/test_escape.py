"""The escaper: whatever comes in, what goes out moves no cursor, ends no line and hides nothing."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.cli.escape import visible, visible_json

ANYTHING = st.text(st.characters(categories=None, exclude_categories=[]))
"""Every code point, surrogates included."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("web-1", "web-1", id="plain"),
        pytest.param("Zoë 渡辺 😀", "Zoë 渡辺 😀", id="any language"),
        pytest.param("\x1b[31mred", r"\x1b[31mred", id="a colour"),
        pytest.param("\x1b]8;;http://x\x07link", r"\x1b]8;;http://x\x07link", id="a link"),
        pytest.param("\x9b31m", r"\x9b31m", id="a colour in one C1 byte"),
        pytest.param("a\x7fb", r"a\x7fb", id="a delete"),
        pytest.param("a\rb\nc\td", r"a\rb\nc\td", id="the ends of a line, and a tab"),
        pytest.param("a\u2028b\u2029c\x85d", r"a\u2028b\u2029c\x85d", id="Unicode's line ends"),
        pytest.param("abc\u202exe.fdp", r"abc\u202exe.fdp", id="text turned round"),
        pytest.param("a\u2066b\u2069\u200e\u061c", r"a\u2066b\u2069\u200e\u061c", id="isolates"),
        pytest.param("a\u200bb\u2060c\ufeff", r"a\u200bb\u2060c\ufeff", id="invisible spaces"),
        pytest.param("a\u00adb", r"a\xadb", id="a soft hyphen"),
        pytest.param("a\U000e0041b", r"a\U000e0041b", id="tag letters"),
        pytest.param("a\udc80b", r"a\udc80b", id="a byte that was no text"),
        pytest.param("[bold]x[/bold]", "[bold]x[/bold]", id="rich's markup means nothing"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_it_shows(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_text_of_several_lines_keeps_their_ends_and_nothing_else() -> None:
    assert visible("a\nb\x1b\t", keep="\n") == "a\n" + r"b\x1b\t"


@given(ANYTHING)
def test_whatever_comes_in_one_line_of_harmless_text_goes_out(text: str) -> None:
    shown = visible(text)

    assert len(shown.splitlines()) <= 1
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    assert not [c for c in shown if unicodedata.bidirectional(c) in _TURNING]
    shown.encode()


_TURNING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


@given(ANYTHING)
def test_to_escape_twice_is_to_escape_once(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(st.text(), st.booleans(), st.sampled_from([None, 2]))
def test_json_says_the_same_after_escaping(text: str, ascii_only: bool, indent: int | None) -> None:
    plain = json.dumps({text: [text]}, ensure_ascii=False, indent=indent)

    shown = visible_json(plain, ascii_only=ascii_only)

    assert json.loads(shown) == {text: [text]}
    assert shown.isascii() or not ascii_only


@given(ANYTHING)
def test_json_is_harmless_and_can_be_encoded_whatever_comes_in(text: str) -> None:
    shown = visible_json(json.dumps(text, ensure_ascii=False), ascii_only=False)

    assert visible(shown) == shown
    json.loads(shown).encode()
