"""Sizes, spans, cores and values as decisions write them."""

from typing import Any

import pytest

from wlctl.placement import text


@pytest.mark.parametrize(
    ("count", "written"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1025, "1.00 KiB"),
        (1535, "1.49 KiB"),
        (1536, "1.50 KiB"),
        (2**20 - 1, "1023.99 KiB"),
        (2**30, "1 GiB"),
        (5 * 2**40, "5 TiB"),
        (2**50, "1024 TiB"),
        (-1, "-1 B"),
        (-1536, "-1.50 KiB"),
        (2**256 - 1, f"{(2**256 - 1) // 2**40}.99 TiB"),
        pytest.param(2**20000, "2^20000 B", id="what nobody has"),
        pytest.param(-(2**20000), "-2^20000 B", id="nor lacks"),
    ],
)
def test_a_size_is_exact_or_has_two_decimals_and_never_rounds_up(count: int, written: str) -> None:
    assert text.size(count) == written


@pytest.mark.parametrize(
    ("milli", "written"),
    [
        (0, "0 cores"),
        (1, "0.001 cores"),
        (500, "0.5 cores"),
        (1000, "1 core"),
        (1250, "1.25 cores"),
        (16000, "16 cores"),
        (-500, "-0.5 cores"),
    ],
)
def test_cores(milli: int, written: str) -> None:
    assert text.core_count(milli) == written


@pytest.mark.parametrize(
    ("milliseconds", "written"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (59_999, "59 s"),
        (60_000, "1 m"),
        (3_599_999, "59 m"),
        (3_600_000, "1 h"),
        (86_399_999, "23 h"),
        (86_400_000, "1 d"),
    ],
)
def test_a_span_is_rounded_down_to_its_largest_unit(milliseconds: int, written: str) -> None:
    assert text.span(milliseconds) == written


@pytest.mark.parametrize(
    ("found", "written"),
    [
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (7.5, "7.5"),
        (2**256 - 1, str(2**256 - 1)),
        (2**256, "an integer of 257 bits"),
        pytest.param(-(10**5000), "an integer of 16610 bits", id="too long to write"),
        ("plain", "plain"),
        ("", '""'),
        ("two words", '"two words"'),
        ("a,b", '"a,b"'),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 80 + "…"),
        ("\x00", "\\x00"),
        ((), "[]"),
        (("a", 1, True), "[a, 1, true]"),
        (tuple(range(99)), f"[{', '.join(map(str, range(80)))}"[:80] + "…"),
    ],
)
def test_a_value(found: Any, written: str) -> None:
    assert text.value(found) == written


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain é ✓", "plain é ✓"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\r\nb\t", "a\\r\\nb\\t"),
        ("\x9b", "\\x9b"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}", "\\u202e"),
        ("\N{ZERO WIDTH SPACE}", "\\u200b"),
        ("\N{LINE SEPARATOR}", "\\u2028"),
        ("\ud800", "\\ud800"),
        ("\U000e0041", "\\U000e0041"),
    ],
)
def test_what_does_not_show_is_escaped(raw: str, shown: str) -> None:
    assert text.visible(raw) == shown


def test_things_are_counted() -> None:
    assert [text.count(number, "node") for number in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]
