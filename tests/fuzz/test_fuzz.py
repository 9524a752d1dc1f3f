"""A bounded run of the fuzzer, with fresh seeds, and Hypothesis on the same parsers everywhere."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]

RUN_S = 12
"""`make fuzz` runs for longer."""

HAS_WHEELS = (
    sys.platform == "linux" and platform.machine() == "x86_64" and sys.version_info < (3, 14)
)
"""As requirements-dev.in has it."""


@pytest.mark.parametrize("name", TARGETS)
def test_each_parser_takes_what_it_should(name: str) -> None:
    take, seed = TARGETS[name]

    take(seed)


@pytest.mark.parametrize("name", TARGETS)
@given(data=st.data())
def test_no_bytes_break_a_parser(name: str, data: st.DataObject) -> None:
    """Any bytes, and what is nearly right: a piece of it repeated, left out or another."""
    take, seed = TARGETS[name]
    take(data.draw(st.binary(max_size=200)))
    at, gone = data.draw(st.integers(0, len(seed))), data.draw(st.integers(0, 40))
    other = data.draw(st.binary(max_size=20) | st.just(seed[at : at + 100]))

    take(seed[:at] + other + seed[at + gone :])


@pytest.mark.slow
def test_the_fuzzer_finds_nothing_in_a_short_run(tmp_path: Path) -> None:
    """A find prints the traceback, and the input for `tests.fuzz.campaign replay`."""
    if not HAS_WHEELS:
        return  # Hypothesis above is all that there is here
    command = [sys.executable, "-m", "tests.fuzz.campaign", str(RUN_S)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, check=False, timeout=200
    )
    said = done.stderr.decode(errors="backslashreplace")
    finds = [path.read_bytes().hex() for path in tmp_path.rglob("find-*")]

    assert done.returncode == 0, f"{said[-4000:]}\ninputs, in hex: {finds}"
    assert "number_of_executed_units" in said
