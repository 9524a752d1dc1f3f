import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.package.template import Piece, Reference, names, split


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        pytest.param("--port", ("--port",), id="plain words"),
        pytest.param("$PORT", (Reference("PORT"),), id="a bare name"),
        pytest.param("${PORT}", (Reference("PORT"),), id="a name in braces"),
        pytest.param("a$PORT-b", ("a", Reference("PORT"), "-b"), id="a bare name ends by itself"),
        pytest.param("${A}${B}", (Reference("A"), Reference("B")), id="side by side"),
        pytest.param("$$HOME", ("$", "HOME"), id="two dollars are a dollar"),
        pytest.param("$$$HOME", ("$", Reference("HOME")), id="and a third begins a name"),
        pytest.param("{x}", ("{x}",), id="braces alone are words"),
        pytest.param("", (), id="nothing"),
        pytest.param("a\nb", ("a\nb",), id="lines"),
        pytest.param("$", None, id="a dollar alone"),
        pytest.param("cost: $5", None, id="a dollar before a digit"),
        pytest.param("${", None, id="open braces"),
        pytest.param("${A", None, id="braces that do not close"),
        pytest.param("${A B}", None, id="braces around something else"),
        pytest.param("${}", None, id="empty braces"),
        pytest.param("$(id)", None, id="a command"),
        pytest.param("$Ä", None, id="letters of other scripts"),
    ],
)
def test_a_dollar_is_a_name_or_a_dollar(text: str, pieces: tuple[Piece, ...] | None) -> None:
    assert split(text) == pieces


@given(st.text())
def test_text_without_dollars_is_only_text(text: str) -> None:
    text = text.replace("$", "")

    assert "".join(map(str, split(text) or ())) == text
    assert names(text) == frozenset()


@given(st.text())
def test_doubled_dollars_come_back(text: str) -> None:
    pieces = split(text.replace("$", "$$"))

    assert pieces is not None
    assert "".join(map(str, pieces)) == text
