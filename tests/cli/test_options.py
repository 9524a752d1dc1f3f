"""What is recorded of a command line: everything but what may be secret."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.cli.options import CONCEALED, recorded


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        pytest.param([], "wlctl", id="nothing"),
        pytest.param(["stop", "web-1"], "wlctl stop web-1", id="plain words"),
        pytest.param(["stop", "-m", "a b"], "wlctl stop -m 'a b'", id="words that need quotes"),
        pytest.param(
            ["place", "p", "--env", "TOKEN=x", "--pin", "elm"],
            "wlctl place p --env … --pin elm",
            id="a value after its option",
        ),
        pytest.param(
            ["--db=postgresql://u:x@h/d", "ps"], "wlctl --db=… ps", id="a value in one word"
        ),
        pytest.param(
            ["place", "p", "--env", "--arg", "x"],
            "wlctl place p --env … x",
            id="a value like an option",
        ),
        pytest.param(["place", "p", "--secret"], "wlctl place p --secret", id="no value at all"),
        pytest.param(
            ["place", "p", "--", "--token", "x"], "wlctl place p -- … …", id="all after --"
        ),
        pytest.param(
            ["place", "p", "--env-file", "f"],
            "wlctl place p --env-file f",
            id="a file of them, which says only where",
        ),
        pytest.param(["stop", "a\n\x1b[m"], r"wlctl stop 'a\n\x1b[m'", id="a hostile word"),
    ],
)
def test_a_command_line_is_recorded_as(argv: list[str], line: str) -> None:
    assert recorded(argv) == line


WORDS = st.lists(st.sampled_from(["place", "p", "-m", "why", "--pin=elm", "--db=x"]), max_size=4)


@given(before=WORDS, option=st.sampled_from(sorted(CONCEALED)), after=WORDS, joined=st.booleans())
def test_no_value_that_may_be_secret_is_ever_recorded(
    before: list[str], option: str, after: list[str], joined: bool
) -> None:
    value = [f"{option}=K=hunter2"] if joined else [option, "K=hunter2"]

    assert "hunter2" not in recorded([*before, *value, *after])
    assert "hunter2" not in recorded([*before, "--", *after, "hunter2"])


@given(st.lists(st.text(st.characters(categories=None, exclude_categories=[]))))
def test_whatever_was_typed_is_recorded_as_one_line_that_can_be_stored(argv: list[str]) -> None:
    line = recorded(argv)

    assert len(line.splitlines()) == 1
    line.encode()
