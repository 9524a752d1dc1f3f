"""Exclusive needs get places of their own whenever that is possible, and never otherwise."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wlctl.placement.matching import Contended, Want, assign


def possible(slots: Sequence[Sequence[int]], taken: frozenset[int] = frozenset()) -> bool:
    """Try everything."""
    return not slots or any(
        possible(slots[1:], taken | {place}) for place in slots[0] if place not in taken
    )


@pytest.mark.parametrize(
    ("wants", "expected"),
    [
        pytest.param([], [], id="nothing wanted"),
        pytest.param([Want(1, [3, 4])], [[3]], id="the first of its places"),
        pytest.param([Want(1, [0, 1]), Want(1, [0])], [[1], [0]], id="the pickiest chooses first"),
        pytest.param(
            [Want(1, [0, 1]), Want(1, [1, 2]), Want(1, [0, 2])], [[0], [1], [2]], id="a ring"
        ),
        pytest.param([Want(2, [0, 1, 2]), Want(1, [0])], [[1, 2], [0]], id="several for one"),
        pytest.param(
            [Want(1, [0, 1]), Want(1, [1, 2]), Want(1, [2, 3]), Want(1, [0, 1])],
            [[0], [2], [3], [1]],
            id="places are handed on where they must be",
        ),
    ],
)
def test_an_assignment(wants: list[Want], expected: list[list[int]]) -> None:
    assert assign(wants) == expected


@pytest.mark.parametrize(
    ("wants", "expected"),
    [
        pytest.param([Want(1, [])], Contended((0,), 1, 0), id="nothing to have"),
        pytest.param([Want(2, [0])], Contended((0,), 2, 1), id="more than there is"),
        pytest.param([Want(1, [0]), Want(1, [0])], Contended((0, 1), 2, 1), id="two want the same"),
        pytest.param(
            [Want(1, [5]), Want(1, [0, 1]), Want(1, [0, 1]), Want(1, [1, 0])],
            Contended((1, 2, 3), 3, 2),
            id="only those that contend are named",
        ),
    ],
)
def test_contention(wants: list[Want], expected: Contended) -> None:
    assert assign(wants) == expected


def test_running_out_of_steps_is_contention_and_never_a_match() -> None:
    wants = [Want(1, [0, 1]), Want(1, [0, 1])]

    assert assign(wants, budget=3) == [[0], [1]]
    assert isinstance(assign(wants, budget=2), Contended)


def test_a_hard_case_is_decided_within_the_budget() -> None:
    wants = [Want(1, list(range(63))) for _ in range(64)]

    assert assign(wants) == Contended(tuple(range(64)), 64, 63)


wants_of = st.lists(
    st.tuples(st.integers(1, 3), st.lists(st.integers(0, 5), unique=True)), max_size=5
).map(lambda drawn: [Want(number, places) for number, places in drawn])


@settings(deadline=None)
@given(wants_of)
def test_it_agrees_with_trying_everything(wants: list[Want]) -> None:
    found = assign(wants)

    slots = [want.places for want in wants for _ in range(want.number)]
    assert isinstance(found, Contended) is not possible(slots)
    if isinstance(found, Contended):
        places = {place for n in found.wants for place in wants[n].places}
        assert found.there == len(places) < found.asked
        assert found.asked == sum(wants[n].number for n in found.wants)
    else:
        given_ = [place for places in found for place in places]
        assert len(set(given_)) == len(given_), "no place twice"
        assert [len(places) for places in found] == [want.number for want in wants]
        assert all(
            set(places) <= set(want.places) for places, want in zip(found, wants, strict=True)
        )
