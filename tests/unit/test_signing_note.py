"""Signed notes: the form in which a checkpoint can be kept anywhere."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl import signing
from wlctl.errors import BadSignature, InvalidFile, UntrustedSigner, UsageError, WlctlError

TEXT = "wlctl/w1\n7\nabc\n"

PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETERS_NOTE = """\
If you think cryptography is the answer to your problem,
then you don't know what your problem is.

\N{EM DASH} PeterNeumann \
x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=
"""
"""The example of golang.org/x/mod/sumdb/note."""


@pytest.fixture(scope="session")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("note") / "key"
    signing.generate_key(path, comment="checkpoints")
    return path


@pytest.fixture(scope="session")
def other_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("note") / "key"
    signing.generate_key(path, comment="checkpoints")
    return path


def test_a_note_of_the_reference_implementation_is_verified() -> None:
    assert signing.verify_note(PETERS_NOTE, [PETER]).endswith("what your problem is.\n")


def test_what_is_signed_here_is_verified_here(key: Path) -> None:
    note = signing.sign_note(TEXT, name="wlctl/w1", key=key)

    assert note.startswith(f"{TEXT}\n\N{EM DASH} wlctl/w1 ")
    assert signing.verify_note(note, [signing.note_verifier(key, name="wlctl/w1")]) == TEXT


def test_a_text_may_have_empty_lines(key: Path) -> None:
    note = signing.sign_note("a\n\nb\n", name="n", key=key)

    assert signing.verify_note(note, [signing.note_verifier(key, name="n")]) == "a\n\nb\n"


def test_a_signature_by_somebody_else_is_passed_over(key: Path, other_key: Path) -> None:
    note = signing.sign_note(TEXT, name="n", key=key)
    line = signing.sign_note(TEXT, name="witness", key=other_key).splitlines()[-1]

    verifier = signing.note_verifier(key, name="n")
    assert signing.verify_note(f"{note}{line}\n", [verifier]) == TEXT


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        pytest.param(lambda note: note.replace("\n7\n", "\n8\n"), BadSignature, id="another text"),
        pytest.param(lambda note: note.replace("abc\n", "abc"), InvalidFile, id="a line joined"),
        pytest.param(lambda note: "", InvalidFile, id="nothing"),
        pytest.param(lambda note: TEXT, InvalidFile, id="no signature"),
        pytest.param(lambda note: f"{TEXT}\n", InvalidFile, id="an empty line and no signature"),
        pytest.param(lambda note: note[:-1], InvalidFile, id="without its last newline"),
        pytest.param(lambda note: note.replace("\N{EM DASH}", "-"), InvalidFile, id="a dash"),
        pytest.param(lambda note: note.replace(" n ", " m "), UntrustedSigner, id="another name"),
        pytest.param(lambda note: note.replace(" n ", " n+ "), InvalidFile, id="no name"),
        pytest.param(lambda note: f"{note}\N{EM DASH} n AAAA\n", InvalidFile, id="a short one"),
        pytest.param(lambda note: f"{note}\N{EM DASH} n !\n", InvalidFile, id="no base64"),
        pytest.param(
            lambda note: note + note.splitlines()[-1][:-8] + "AAAAAA==\n",
            BadSignature,
            id="a bad one too",
        ),
        pytest.param(
            lambda note: note + (note.splitlines()[-1] + "\n") * 100, InvalidFile, id="101 of them"
        ),
        pytest.param(lambda note: f"\t{note}", InvalidFile, id="a control character"),
        pytest.param(lambda note: "x" * 64 * 1024 + note, InvalidFile, id="without end"),
        pytest.param(lambda note: f"\ud800{note}", InvalidFile, id="no Unicode"),
    ],
)
def test_a_note_that_was_touched_is_refused(
    spoil: Callable[[str], str], error: type[WlctlError], key: Path
) -> None:
    note = signing.sign_note(TEXT, name="n", key=key)

    with pytest.raises(error):
        signing.verify_note(spoil(note), [signing.note_verifier(key, name="n")])


def test_a_key_with_the_same_name_does_not_verify(key: Path, other_key: Path) -> None:
    note = signing.sign_note(TEXT, name="n", key=key)

    with pytest.raises(UntrustedSigner):
        signing.verify_note(note, [signing.note_verifier(other_key, name="n")])
    with pytest.raises(UntrustedSigner):
        signing.verify_note(note, [])


@pytest.mark.parametrize(
    "verifier",
    [
        pytest.param("", id="nothing"),
        pytest.param("PeterNeumann", id="a name alone"),
        pytest.param(PETER.replace("c74f20a3", "c74f20a4"), id="an id that does not fit"),
        pytest.param(PETER[:-4], id="a key cut short"),
        pytest.param(PETER.replace("+ARpc", "+Ahpc"), id="a type that is not known"),
        pytest.param(PETER.replace("PeterNeumann", "Peter"), id="another name"),
    ],
)
def test_what_is_no_verifier_is_refused(verifier: str) -> None:
    with pytest.raises(UsageError):
        signing.verify_note(PETERS_NOTE, [verifier])


@given(st.integers(0, len(PETERS_NOTE)), st.integers(0, 5), st.text(max_size=5))
def test_no_damage_to_a_note_is_accepted(at: int, gone: int, put: str) -> None:
    note = PETERS_NOTE[:at] + put + PETERS_NOTE[at + gone :]
    text = PETERS_NOTE.rpartition("\n\n")[0] + "\n"
    try:
        found = signing.verify_note(note, [PETER])
    except WlctlError:
        return
    assert found == text
