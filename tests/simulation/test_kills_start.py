"""A start or restart killed at any moment: whatever verb comes next brings all to agreement."""

from pathlib import Path

import pytest

from tests.flows.setting import Setting
from tests.simulation.points import Verb, killed_at, moments_of
from tests.simulation.test_kills import assert_agreement, placed, stop, unload
from wlctl.flows import recover, starting
from wlctl.flows.start_intents import Begin, Beginning
from wlctl.model.actions import RefusalCode, Refused
from wlctl.model.instance import State


def start(setting: Setting) -> object:
    with setting.runtime() as rt:
        return starting.start(rt, "web")


def restart(setting: Setting) -> object:
    with setting.runtime() as rt:
        return starting.restart_one(rt, setting.instance("web"))


def recovered(setting: Setting) -> object:
    with setting.runtime() as rt:
        return recover.recover(rt, setting.instance("web").id)


def stopped(setting: Setting) -> None:
    placed(setting)
    setting.stop("web")


def exited(setting: Setting) -> None:
    placed(setting)
    setting.world.nodes["elm"].exit(setting.instance("web").id, 1)


def refused_before(setting: Setting) -> None:
    stopped(setting)
    elm = setting.world.nodes["elm"]
    elm.refusal = Refused(RefusalCode.RUNTIME, "no such interpreter")
    found = start(setting)
    assert isinstance(found, Beginning)
    assert found.begin is Begin.REFUSED
    elm.refusal = None


BEGINNINGS = [
    pytest.param(stopped, start, id="a start of what was stopped"),
    pytest.param(exited, start, id="a start of what had ended by itself"),
    pytest.param(refused_before, start, id="a start after one that was refused"),
    pytest.param(placed, restart, id="a restart"),
]


@pytest.mark.parametrize(("prepare", "verb"), BEGINNINGS)
def test_a_beginning_killed_anywhere_is_finished_by_typing_it_again(
    setting: Setting, tmp_path: Path, prepare: Verb, verb: Verb
) -> None:
    prepare(setting)
    moments = moments_of(setting, verb, tmp_path / "whole")

    for number in range(1, len(moments) + 1):
        left = killed_at(setting, verb, number, tmp_path / f"cut-{number}")
        found = verb(left)

        where = f"killed at {number}, {moments[number - 1]}"
        assert isinstance(found, Beginning), where
        assert found.begin in (Begin.DONE, Begin.ALREADY), where
        assert left.instance("web").state is State.RUNNING, where
        assert len(left.alive()) == 1, where
        assert_agreement(left)


@pytest.mark.parametrize(
    ("then", "runs"),
    [
        pytest.param(stop, False, id="stop"),
        pytest.param(unload, False, id="unload"),
        pytest.param(recovered, True, id="a recovery, which goes forward"),
    ],
)
@pytest.mark.parametrize(
    "beginning",
    [
        pytest.param((refused_before, start), id="of a start after one that was refused"),
        pytest.param((placed, restart), id="of a restart"),
    ],
)
def test_a_beginning_killed_anywhere_is_taken_over(
    setting: Setting, tmp_path: Path, beginning: tuple[Verb, Verb], then: Verb, runs: bool
) -> None:
    prepare, verb = beginning
    prepare(setting)
    moments = moments_of(setting, verb, tmp_path / "whole")
    first = moments.index(("commit", "after")) + 1

    for number in range(first, len(moments) + 1):
        left = killed_at(setting, verb, number, tmp_path / f"cut-{number}")
        then(left)

        where = f"killed at {number}, {moments[number - 1]}"
        assert len(left.alive()) == int(runs), where
        assert_agreement(left)
