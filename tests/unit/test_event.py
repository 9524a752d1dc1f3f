import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.model.event import Checkpoint, checkpoint_text, parse_checkpoint, rfc3339

HASH = "0123456789abcdef" * 4
CHECKPOINT = Checkpoint("wabc", 1, 42, HASH)
TEXT = f"wlctl/wabc\n1\n42\n{HASH}\n"


def test_a_checkpoint_is_four_lines() -> None:
    assert checkpoint_text(CHECKPOINT) == TEXT


@given(
    installation=st.from_regex(r"[a-z0-9][a-z0-9._-]{0,20}", fullmatch=True),
    epoch=st.integers(0, 10**18 - 1),
    seq=st.integers(0, 10**18 - 1),
    digest=st.text("0123456789abcdef", min_size=64, max_size=64),
)
def test_what_is_written_is_read_back(installation: str, epoch: int, seq: int, digest: str) -> None:
    checkpoint = Checkpoint(installation, epoch, seq, digest)

    assert parse_checkpoint(checkpoint_text(checkpoint)) == checkpoint


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(TEXT[:-1], id="no newline at the end"),
        pytest.param(TEXT + "\n", id="one more line"),
        pytest.param(TEXT.replace("\n", "\r\n"), id="other line ends"),
        pytest.param(TEXT.replace("wlctl/", "other/"), id="the origin of another program"),
        pytest.param(TEXT.replace("wabc", ""), id="no installation"),
        pytest.param(TEXT.replace("wabc", "w/abc"), id="no checked id"),
        pytest.param(TEXT.replace("\n1\n", "\n01\n"), id="another way to write a number"),
        pytest.param(TEXT.replace("\n1\n", "\n-1\n"), id="a negative number"),
        pytest.param(TEXT.replace("\n1\n", "\n\u0661\n"), id="digits of another script"),
        pytest.param(TEXT.replace("42", "9" * 19), id="a number that no ledger can have"),
        pytest.param(TEXT.replace(HASH, HASH.upper()), id="a hash in capitals"),
        pytest.param(TEXT.replace(HASH, HASH[:-1]), id="a hash that is too short"),
    ],
)
def test_nothing_else_is_read(text: str) -> None:
    assert parse_checkpoint(text) is None


@pytest.mark.parametrize(
    ("at_ms", "text"),
    [
        pytest.param(0, "1970-01-01T00:00:00.000Z", id="the first moment"),
        pytest.param(1, "1970-01-01T00:00:00.001Z", id="a millisecond later"),
        pytest.param(1_700_000_000_999, "2023-11-14T22:13:20.999Z", id="nothing is rounded up"),
        pytest.param(253_402_300_799_999, "9999-12-31T23:59:59.999Z", id="the last moment"),
    ],
)
def test_a_moment_is_written_in_utc(at_ms: int, text: str) -> None:
    assert rfc3339(at_ms) == text


@given(one=st.integers(0, 2**47), other=st.integers(0, 2**47))
def test_texts_of_moments_are_ordered_as_the_moments(one: int, other: int) -> None:
    assert (rfc3339(one) < rfc3339(other)) == (one < other)
