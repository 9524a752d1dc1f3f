"""What the guide says of placement is so."""

import re
from pathlib import Path

from wlctl.model.placement import Constraint, Terms
from wlctl.placement.snapshot.read import load

GUIDE = (Path(__file__).parents[2] / "docs" / "guide" / "explain.md").read_text()


def test_every_constraint_and_every_term_is_in_the_guide() -> None:
    words = set(re.findall(r"`([a-z_]+)`", GUIDE))

    assert {*map(str, Constraint), *Terms._fields} <= words


def test_the_snapshot_in_the_guide_can_be_read() -> None:
    [text] = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)

    [node] = load(text, "guide").nodes

    assert (node.name, node.cpu_cores, len(node.capabilities)) == ("web1", 8, 3)
