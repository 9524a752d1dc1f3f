"""Predicates: each operator, both sides of every edge, and types that do not fit."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.fleets import where
from wlctl.placement.compare import phrase, satisfied, shortfall

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("found", "op", "wanted", "holds"),
    [
        pytest.param("x", "eq", "x", True, id="equal text"),
        pytest.param("x", "eq", "X", False, id="text is compared as it is"),
        pytest.param(3, "eq", 3.0, True, id="an int equals a float"),
        pytest.param(3, "eq", 3.5, False, id="another number"),
        pytest.param(2**53 + 1, "eq", float(2**53), False, id="large numbers are compared exactly"),
        pytest.param(True, "eq", True, True, id="equal booleans"),
        pytest.param(1, "eq", True, False, id="one is not true"),
        pytest.param(0, "eq", False, False, id="zero is not false"),
        pytest.param("1", "eq", 1, False, id="text is not a number"),
        pytest.param(NAN, "eq", NAN, False, id="nan equals nothing"),
        pytest.param(("a", 1), "eq", ("a", 1.0), True, id="equal lists"),
        pytest.param(("a", 1), "eq", ("a", True), False, id="lists compare item by item"),
        pytest.param(("a",), "eq", ("a", "b"), False, id="a shorter list"),
        pytest.param(("a",), "eq", "a", False, id="a list is not its only item"),
        pytest.param("a", "eq", ("a",), False, id="an item is not its list"),
        pytest.param("1.0", "eq", "1.0.0", False, id="equality of versions is of their text"),
        pytest.param(8, "gte", 8, True, id="exactly the least"),
        pytest.param(7.999, "gte", 8, False, id="just below the least"),
        pytest.param(8, "lte", 8, True, id="exactly the most"),
        pytest.param(8.001, "lte", 8, False, id="just above the most"),
        pytest.param(10**400, "gte", 1.5, True, id="an int beyond all floats"),
        pytest.param(INF, "gte", 1, True, id="infinity is more"),
        pytest.param(NAN, "gte", 0, False, id="nan is not more"),
        pytest.param(NAN, "lte", 0, False, id="nor less"),
        pytest.param("3.11", "gte", "3.9", True, id="3.11 is above 3.9"),
        pytest.param("3.9", "gte", "3.11", False, id="3.9 is below 3.11"),
        pytest.param("3.9", "lte", "3.11", True, id="so it is at most 3.11"),
        pytest.param("3.11", "gte", "3.11", True, id="the same version"),
        pytest.param("3.11", "gte", "3.11.0", True, id="a missing segment counts as zero"),
        pytest.param("3.11", "gte", "3.11.1", False, id="and one is more than zero"),
        pytest.param("3.11.0.0", "lte", "3.11", True, id="trailing zeros add nothing"),
        pytest.param("3.010", "gte", "3.9", True, id="leading zeros do not count"),
        pytest.param("0", "gte", "0.0", True, id="zero is zero"),
        pytest.param("10", "gte", "9", True, id="one segment is a version too"),
        pytest.param("9" * 5000, "gte", "3", True, id="a segment of any length"),
        pytest.param("3." + "9" * 5000, "lte", "3.1" + "0" * 5000, True, id="two such"),
        pytest.param("3.11rc1", "gte", "3.9", False, id="letters make it no version"),
        pytest.param("", "gte", "0", False, id="empty text is no version"),
        pytest.param("3..1", "gte", "0", False, id="an empty segment is none"),
        pytest.param("\u0663.\u0661", "gte", "3.9", False, id="only ascii digits"),
        pytest.param(3.11, "gte", "3.9", False, id="a number against a version"),
        pytest.param("3.11", "gte", 3, False, id="a version against a number"),
        pytest.param(True, "gte", 0, False, id="a boolean has no order"),
        pytest.param(1, "lte", True, False, id="nor is it a bound"),
        pytest.param(("3",), "gte", "3", False, id="a list has no order"),
        pytest.param("b", "in", ("a", "b"), True, id="one of the list"),
        pytest.param("c", "in", ("a", "b"), False, id="none of the list"),
        pytest.param(1, "in", (True,), False, id="membership is typed"),
        pytest.param(("a",), "in", ("a", "b"), False, id="a list is not in a list of texts"),
        pytest.param("a", "in", "abc", False, id="in text is not a list"),
        pytest.param("a", "in", (), False, id="nothing is in an empty list"),
        pytest.param(("avx", "sse"), "has", "avx", True, id="the list has it"),
        pytest.param(("avx",), "has", "sse", False, id="the list lacks it"),
        pytest.param((1,), "has", True, False, id="typed, too"),
        pytest.param("avx", "has", "avx", False, id="text is not a list"),
        pytest.param((), "has", "avx", False, id="an empty list"),
        *(
            pytest.param(None, op, wanted, False, id=f"an absent attribute fails {op}")
            for op, wanted in (("eq", "x"), ("gte", 1), ("lte", "1"), ("in", ("x",)), ("has", "x"))
        ),
    ],
)
def test_a_predicate(found: Any, op: str, wanted: Any, holds: bool) -> None:
    assert satisfied(where("n", op, wanted), found) is holds


@pytest.mark.parametrize(
    ("found", "op", "wanted", "words"),
    [
        ("3.9", "gte", "3.11", "n is 3.9, needs n >= 3.11"),
        (4, "lte", 3, "n is 4, needs n <= 3"),
        (None, "gte", "3.11", "no attribute n, needs n >= 3.11"),
        (
            3.11,
            "gte",
            "3.9",
            "n is 3.11, needs n >= 3.9: a number does not compare with a version",
        ),
        ("new", "gte", "3.9", "n is new, needs n >= 3.9: a text does not compare with a version"),
        (
            True,
            "gte",
            1,
            "n is true, needs n >= 1: a boolean does not compare with a number",
        ),
        ("1", "eq", 1, "n is 1, needs n = 1: a version does not compare with a number"),
        ("x", "eq", "y", "n is x, needs n = y"),
        ("c", "in", ("a", "b c"), 'n is c, needs n in [a, "b c"]'),
        ("avx", "has", "avx", "n is avx, needs n has avx: a text is not a list"),
        (("sse",), "has", "avx", "n is [sse], needs n has avx"),
        ("x" * 90, "eq", "y", f"n is {'x' * 80}…, needs n = y"),
        (10**400, "lte", 1, "n is an integer of 1329 bits, needs n <= 1"),
        (NAN, "gte", 1, "n is nan, needs n >= 1"),
    ],
)
def test_a_shortfall_in_words(found: Any, op: str, wanted: Any, words: str) -> None:
    assert shortfall(where("n", op, wanted), found) == words


def test_what_would_move_the_cursor_is_escaped() -> None:
    assert shortfall(where("n", "eq", "ok"), "\x1b[2Jé\u202e\ud800") == (
        'n is "\\x1b[2Jé\\u202e\\ud800", needs n = ok'
    )


@pytest.mark.parametrize(
    ("op", "wanted", "words"),
    [("eq", "x", "n = x"), ("gte", 1.5, "n >= 1.5"), ("has", "a b", 'n has "a b"')],
)
def test_a_predicate_in_words(op: str, wanted: Any, words: str) -> None:
    assert phrase(where("n", op, wanted)) == words


versions = st.lists(st.integers(0, 10**20), min_size=1, max_size=5)


@given(versions, versions)
def test_versions_order_like_lists_of_numbers_padded_with_zeros(
    left: list[int], right: list[int]
) -> None:
    length = max(len(left), len(right))
    padded = [segments + [0] * (length - len(segments)) for segments in (left, right)]
    texts = [".".join(map(str, segments)) for segments in (left, right)]

    assert satisfied(where("n", "gte", texts[1]), texts[0]) is (padded[0] >= padded[1])
    assert satisfied(where("n", "lte", texts[1]), texts[0]) is (padded[0] <= padded[1])


scalars = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.from_regex(r"\A[0-9.]{1,6}\Z"),
)
values = st.one_of(scalars, st.lists(scalars, max_size=3).map(tuple))


@given(st.one_of(st.none(), values), st.sampled_from(["eq", "gte", "lte", "in", "has"]), values)
def test_no_pair_of_values_crashes_a_predicate_or_its_words(
    found: Any, op: str, wanted: Any
) -> None:
    predicate = where("n", op, wanted)

    assert satisfied(predicate, found) in (True, False)
    assert shortfall(predicate, found).isprintable()
