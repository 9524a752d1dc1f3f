"""A command that stands still anywhere and is overtaken: it writes and begins nothing any more."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.fleet.sample import SEED, sample
from tests.flows.setting import Setting
from tests.simulation.points import Verb, moments_of
from tests.simulation.test_kills import (
    alone,
    assert_agreement,
    place,
    placed,
    refused_first,
    stop,
    unload,
)
from tests.simulation.test_kills_start import restart, start, stopped
from tests.world import peaceful
from wlctl.errors import Overtaken
from wlctl.ledger import chain

COMMIT = ("commit", "after")

LOOKS = frozenset({"connect", "offer", "status"})
"""What changes nothing on a node."""

CASES = 3


@dataclass
class Overtaking:
    """Lets another command come in at one moment, and watches what the first one does after that.

    Attributes:
        at: Number of the moment, from 1.
        late: What was asked of a node that changes something, or committed, after it.
        open: What was under way before the other command.
        then: The newest event and all processes there are, when the other command was done.
    """

    setting: Setting
    other: Verb
    at: int
    passed: int = 0
    late: list[tuple[str, str]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    then: object = None

    def __call__(self, step: str, moment: str) -> None:
        self.passed += 1
        begins = moment == "before" or (step, moment) == COMMIT
        if self.passed > self.at and begins and step not in LOOKS:
            self.late.append((step, moment))
        if self.passed == self.at:
            # The kernel frees what a process held that is gone; this one only thinks it is alive.
            self.setting.running[0].ledger.locks.close()
            self.setting.world.hook = peaceful
            self.open = self.setting.open_operations()
            self.other(self.setting)
            self.then = seen(self.setting)
            self.setting.world.hook = self


def seen(setting: Setting) -> object:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        return chain.head(tx), setting.alive()


@pytest.mark.parametrize(
    ("prepare", "verb", "other"),
    [
        pytest.param(alone, place, unload, id="a place, by an unload"),
        pytest.param(alone, place, place, id="a place, by the same place"),
        pytest.param(refused_first, place, unload, id="a place with another candidate"),
        pytest.param(stopped, start, stop, id="a start, by a stop"),
        pytest.param(stopped, start, unload, id="a start, by an unload"),
        pytest.param(placed, restart, stop, id="a restart, by a stop"),
        pytest.param(placed, restart, start, id="a restart, by a start"),
        pytest.param(placed, stop, start, id="a stop, by a start"),
        pytest.param(placed, stop, unload, id="a stop, by an unload"),
        pytest.param(placed, unload, place, id="an unload, by a place"),
        pytest.param(placed, unload, stop, id="an unload, by a stop"),
    ],
)
def test_who_was_overtaken_writes_nothing_and_begins_nothing(
    setting: Setting, tmp_path: Path, prepare: Verb, verb: Verb, other: Verb
) -> None:
    prepare(setting)
    moments = moments_of(setting, verb, tmp_path / "whole")
    first, last = moments.index(COMMIT) + 1, len(moments) - moments[::-1].index(COMMIT)

    for number in sample(range(first, last), CASES, salt="overtaken"):
        where = f"overtaken at {number}, {moments[number - 1]} (WLCTL_SEED={SEED})"
        left = setting.copy(tmp_path / f"cut-{number}")
        left.world.hook = overtaking = Overtaking(left, other, number)
        try:
            verb(left)
        except Overtaken:
            pass
        else:
            assert overtaking.open == [], f"nothing was under way between two candidates: {where}"
            continue
        left.world.heal()

        # That a node keeps a checkpoint is noted all the same: it tells of the node alone. One that
        # comes after the other command's is refused.
        noted = [COMMIT] if moments[number - 1][0] == "checkpoint" else []
        assert overtaking.late in ([], noted), where
        assert seen(left) == overtaking.then, where
        assert_agreement(left)
