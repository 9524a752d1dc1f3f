"""A node of the fleet as the others keep it: what is read back is what was written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.model.ids import CHECKED_ID, NodeName, is_checked_id
from wlctl.model.member import (
    fleet_text,
    member_text,
    members_sha256,
    parse_fleet,
    parse_member,
)
from wlctl.model.node import Address, Tier, TransportKind
from wlctl.model.upkeep import FleetMember

LINES = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20)
NAMES = st.from_regex(CHECKED_ID, fullmatch=True).filter(is_checked_id).map(NodeName)
MEMBERS = st.builds(
    FleetMember,
    NAMES,
    LINES,
    st.builds(
        Address,
        st.sampled_from(TransportKind),
        host=LINES,
        port=st.integers(0, 65535),
        user=LINES,
        host_key=LINES,
        sudo=st.booleans(),
        enforced=st.booleans(),
    ),
    st.sampled_from(Tier),
)
ELM = FleetMember(
    NodeName("elm"), "a" * 32, Address(TransportKind.SSH, "10.0.0.5", 22, "ops", "key"), Tier.PAIRED
)


@given(MEMBERS)
def test_a_member_that_is_written_is_read_back(member: FleetMember) -> None:
    assert parse_member(member_text(member)) == member


@given(st.text(max_size=80))
def test_any_other_text_is_no_member(text: str) -> None:
    found = parse_member(text)

    assert found is None or member_text(found) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("elm\n", "../elm\n", id="a name that cannot be one"),
        pytest.param("ssh\n", "telnet\n", id="a transport that there is not"),
        pytest.param("\n22\n", "\n-1\n", id="a port that is no number"),
        pytest.param("\n22\n", "\n99999\n", id="a port that is too high"),
        pytest.param("paired", "root", id="a tier that there is not"),
        pytest.param("key\n", "key\nmaybe\n", id="a line too many"),
    ],
)
def test_a_member_that_says_anything_odd_is_none(before: str, after: str) -> None:
    text = member_text(ELM)
    assert before in text

    assert parse_member(text.replace(before, after, 1)) is None


@given(st.lists(MEMBERS, max_size=3), st.lists(MEMBERS, max_size=3))
def test_another_fleet_has_another_digest(one: list[FleetMember], two: list[FleetMember]) -> None:
    assert (members_sha256(one) == members_sha256(two)) is (one == two)


def test_the_text_that_signs_a_fleet_is_read_back_and_nothing_else_is() -> None:
    text = fleet_text("wabc", 3, 44, "f" * 64)

    assert parse_fleet(text) == ("wabc", 3, 44, "f" * 64)
    assert parse_fleet(text.replace("/fleet", "")) is None, "a checkpoint is no fleet"
    assert parse_fleet(f"{text}more\n") is None
