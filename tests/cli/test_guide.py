"""The first page of the guide to packages, typed as it is by somebody who has nothing but a key."""

import re
from pathlib import Path

from tests.cli.program import Program

GUIDE = (Path(__file__).parents[2] / "docs/guide/package.md").read_text(encoding="utf-8")


def test_five_commands_lead_from_nothing_to_a_signed_and_verified_package(
    program: Program,
) -> None:
    block = re.search(r"## From nothing to a signed package\n\n```sh\n(.*?)```", GUIDE, re.DOTALL)
    assert block is not None
    commands = block[1].splitlines()
    assert len(commands) == 5
    assert all(command.startswith("wlctl ") for command in commands)
    home = Path(program.variables()["HOME"])
    key = home / ".ssh/id_ed25519"
    made = program.sh(f"mkdir -p {key.parent} && ssh-keygen -q -t ed25519 -N '' -f {key}")
    assert made.returncode == 0, made.stderr

    said = []
    for command in commands:
        done = program.sh(command)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        said.append(done.stdout)

    assert "hello 0.1.0 is signed by me" in said[-1]
