"""The guide to packages and the examples say what the program does."""

import re
import shutil
from pathlib import Path

import pytest

from wlctl import errors
from wlctl.errors import WlctlError
from wlctl.package import build, starter, workload
from wlctl.package.words import CAPABILITIES, GIVEN_NAMES, STOP_SIGNALS

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guide/package.md").read_text(encoding="utf-8")
DESCRIPTIONS = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
CODES = {error.code: error for error in vars(errors).values() if hasattr(error, "code")}
KEYS = {
    *workload._TOP,
    *workload._RUN,
    *workload._VARIANT,
    *workload._REQUIREMENT,
    *workload._POLICY,
    *workload._LIFECYCLE,
    *workload._HEALTH,
    *("cpu", "memory", "accel_memory", "disk", "pids", "max", "window", "backoff", "backoff_max"),
    *("keep", "every", "cron", "timezone", "attr", "op", "value", "minimum", "weight", "common"),
}


@pytest.mark.parametrize("number", range(len(DESCRIPTIONS)))
def test_every_description_in_the_guide_is_read(number: int) -> None:
    workload.parse(DESCRIPTIONS[number])


@pytest.mark.parametrize("key", sorted(KEYS))
def test_every_key_is_in_the_guide(key: str) -> None:
    assert re.search(rf"[`.{{,\[ ]{key}[`.,}}\] ]", GUIDE)


@pytest.mark.parametrize("name", [*sorted(GIVEN_NAMES), *STOP_SIGNALS])
def test_every_word_that_may_stand_there_is_in_the_guide(name: str) -> None:
    assert f"`{name}`" in GUIDE


@pytest.mark.parametrize("row", re.findall(r"^\| `([a-z-]+)` \| (\d) \|", GUIDE, re.MULTILINE))
def test_every_code_in_the_guide_has_the_exit_code_it_says(row: tuple[str, str]) -> None:
    code, exit_code = row
    error: type[WlctlError] = CODES[code]

    assert error.exit_code == int(exit_code)


def test_the_capability_in_the_guide_is_one() -> None:
    assert set(re.findall(r"CAP_[A-Z_]+", GUIDE)) <= CAPABILITIES


@pytest.mark.parametrize("name", ["hello", "job", "picky", "web"])
def test_every_example_is_a_package(name: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / name, tmp_path / name)

    built = build.build(tmp_path / name)

    assert any(file.mode == "0555" for file in built.manifest.files)


def test_every_line_of_the_starter_is_right_once_it_is_no_comment(tmp_path: Path) -> None:
    starter.write(tmp_path)
    path = tmp_path / "workload.toml"
    lines = path.read_text(encoding="utf-8").splitlines()
    uncommented = [re.sub(r"^# (?=\[|[a-z_]+ = )", "", line) for line in lines]
    assert uncommented != lines

    described = workload.parse("\n".join(uncommented))

    assert described.health is not None
    assert described.ports
    assert described.keep_data
