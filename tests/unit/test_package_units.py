import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.package import units


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("256MiB", 268_435_456, id="binary units"),
        pytest.param("1GB", 1_000_000_000, id="decimal units"),
        pytest.param("1.5GiB", 1_610_612_736, id="a fraction that is a whole number of bytes"),
        pytest.param("0.1KiB", None, id="a fraction of a byte"),
        pytest.param("0", 0, id="a zero needs no unit"),
        pytest.param("12", None, id="any other number does"),
        pytest.param("12B", 12, id="bytes are a unit too"),
        pytest.param("256 MiB", None, id="no space before the unit"),
        pytest.param("256mib", None, id="units keep their case"),
        pytest.param("256Mb", None, id="bits are not bytes"),
        pytest.param("-1B", None, id="no sign"),
        pytest.param("1e3B", None, id="no exponent"),
        pytest.param("٣MiB", None, id="no digits of other scripts"),
        pytest.param("9007199254740991B", 2**53 - 1, id="the largest exact integer"),
        pytest.param("9007199254740992B", None, id="one more is not kept by every reader"),
        pytest.param("8192TiB", None, id="as large with a unit"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_size_is_whole_bytes_with_a_unit(text: str, found: int | None) -> None:
    assert units.size_bytes(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("10s", 10_000, id="seconds"),
        pytest.param("250ms", 250, id="milliseconds"),
        pytest.param("1.5s", 1_500, id="a fraction that is whole milliseconds"),
        pytest.param("0.0001s", None, id="less than a millisecond"),
        pytest.param("5m", 300_000, id="m is minutes"),
        pytest.param("6h", 21_600_000, id="hours"),
        pytest.param("7d", 604_800_000, id="days"),
        pytest.param("0", 0, id="a zero needs no unit"),
        pytest.param("10", None, id="any other number does"),
        pytest.param("1h30m", None, id="one unit only"),
        pytest.param("10S", None, id="units keep their case"),
    ],
)
def test_a_duration_is_whole_milliseconds_with_a_unit(text: str, found: int | None) -> None:
    assert units.duration_ms(text) == found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        pytest.param(0.5, 0.5, id="half a core"),
        pytest.param(2, 2.0, id="whole cores"),
        pytest.param(0, 0.0, id="none"),
        pytest.param(0.001, 0.001, id="the smallest step"),
        pytest.param(0.0005, None, id="half of the smallest step"),
        pytest.param(4096, 4096.0, id="the most"),
        pytest.param(4096.001, None, id="a step more than the most"),
        pytest.param(-0.5, None, id="less than none"),
        pytest.param(float("nan"), None, id="not a number"),
        pytest.param(float("inf"), None, id="no end of cores"),
        pytest.param(True, None, id="a truth is no number"),
        pytest.param("0.5", None, id="text is no number"),
    ],
)
def test_cores_are_a_number_in_steps_of_a_thousandth(value: object, found: float | None) -> None:
    assert units.cores(value) == found


@given(st.integers(0, 4_096_000))
def test_every_step_of_cores_is_exact(milli: int) -> None:
    found = units.cores(milli / 1000)

    assert found is not None
    assert round(found * 1000) == milli


@given(st.text(max_size=20))
def test_no_text_breaks_a_unit(text: str) -> None:
    for read in (units.size_bytes, units.duration_ms):
        found = read(text)
        assert found is None or 0 <= found < 2**53
