"""What is said at the door of an enforced node, as text."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.errors import DoorRefused
from wlctl.host import door, doorkeeper, script
from wlctl.model.enforcement import Enforcement

NONCE = "ab" * 16


def test_a_request_names_the_text_its_length_and_the_nonce() -> None:
    digest = hashlib.sha256(b"text").hexdigest()

    assert door.request(b"text", NONCE) == f"wlctl-action {digest} 4 {NONCE}"


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        pytest.param(b"refused -\nwhy form\n", "takes no shell", id="not a request"),
        pytest.param(b"refused ab12\nwhy unlisted\n", "not on the node's list", id="not listed"),
        pytest.param(b"hello\nrefused -\nwhy unsafe\n", "others than root", id="after noise"),
        pytest.param(b"refused -\nwhy tired\n", "says tired", id="by another version"),
    ],
)
def test_a_no_is_told_in_words(seen: bytes, said: str) -> None:
    refused = door.refusal(seen)

    assert isinstance(refused, DoorRefused)
    assert said in refused.message


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"refused -\n", id="no reason"),
        pytest.param(b"refused -\nwhy form", id="a line that is cut"),
        pytest.param(b"I refused -\nwhy form\n", id="in the middle of a line"),
        pytest.param(b"refused -\nwhy \x1b[2J\n", id="a reason that is none"),
        pytest.param(b"refused -\nwhy " + b"x" * 33 + b"\n", id="a reason without an end"),
    ],
)
def test_what_is_no_no_is_none(seen: bytes) -> None:
    assert door.refusal(seen) is None


@given(seen=st.binary(max_size=200))
def test_nothing_that_comes_breaks_the_reading(seen: bytes) -> None:
    refused = door.refusal(b"refused -\nwhy " + seen)

    assert refused is None or refused.message.isprintable()


def test_the_list_has_every_action_and_none_that_only_an_administrator_runs() -> None:
    listed = dict(line.split(" ")[::-1] for line in doorkeeper.actions().splitlines())

    assert tuple(listed) == script.ACTIONS
    assert all(listed[name] == door.digest(script.text(name)) for name in script.ACTIONS)
    assert not {door.digest(script.text(name)) for name in script.ADMINISTRATIVE} & set(
        listed.values()
    )


def test_no_action_is_longer_than_a_doorkeeper_reads() -> None:
    assert max(len(script.text(name)) for name in script.ACTIONS) < 10**6


LOOKS_FOR_A_DOORKEEPER = (
    'if [ -e "/etc/wlctl/$installation/doorkeeper" ]; then WLCTL_DOOR=/etc/wlctl/$installation; fi'
)
"""What a supervisor asks before it begins a run again: no doorkeeper has started it."""


def test_no_listed_action_names_what_the_doorkeeper_goes_by() -> None:
    """What they read there they find by the doorkeeper's word, and nothing in them can write it."""
    for name in script.ACTIONS:
        text = script.text(name).decode("ascii")
        assert "/etc/wlctl" not in text.replace(LOOKS_FOR_A_DOORKEEPER, "", 1)
        assert ">$WLCTL_DOOR" not in text.replace('"', "")


@pytest.mark.parametrize("field", ["doorkeeper", "actions", "signers", "revoked"])
def test_lists_that_differ_in_anything_are_told_apart(field: str) -> None:
    one = Enforcement("d", "a", "s", "r", ())
    parts = {"doorkeeper": "d", "actions": "a", "signers": "s", "revoked": "r"}
    other = Enforcement(**{**parts, field: "x"}, projects=())

    assert one.sha256 != other.sha256
    assert one.sha256 != Enforcement(**parts, projects=("p",)).sha256
    assert one.sha256 == Enforcement(**parts, projects=()).sha256
