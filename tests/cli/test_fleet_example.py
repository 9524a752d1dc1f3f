"""The fleet example runs as it stands, tells its story, and leaves nothing behind."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.host.nodes import cgroup2

pytestmark = [pytest.mark.root, pytest.mark.sshd]

RUN = Path(__file__).parents[2] / "examples/fleet/run"


def test_the_fleet_example_tells_its_story_and_leaves_nothing(program: Program) -> None:
    done = subprocess.run(
        ["sh", str(RUN)],
        env=program.variables(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("is placed already") >= 2, "a deploy that is repeated does nothing"
    assert "[exit 3: cannot place; the old version still runs]" in done.stdout
    preferred = re.search(r"--name extra --prefer (\w+)", done.stdout)
    placed = re.search(r"placed extra on (\w+)", done.stdout)
    assert preferred, done.stdout
    assert placed, done.stdout
    assert placed[1] != preferred[1], "a dead node is gone past"
    assert "[exit 9: its node is dead; the wish is recorded," in done.stdout
    assert "whole: " in done.stdout
    assert list(cgroup2().glob("wlctl-example-*")) == []
    assert list(Path("/var/tmp").glob("wlctl-fleet.*")) == []
