"""A command killed at any moment: the next one brings ledger, machines and chain to agreement."""

from pathlib import Path

import pytest

from tests.flows.setting import Setting
from tests.simulation.points import Verb, killed_at, moments_of
from wlctl.flows.ending import End
from wlctl.ledger.verify import Verified
from wlctl.model.actions import RefusalCode, Refused
from wlctl.model.ids import NodeName
from wlctl.model.instance import State

ELM = NodeName("elm")


def place(setting: Setting) -> object:
    return setting.place(prefer=(ELM,), refresh=False)


def place_three(setting: Setting) -> object:
    return setting.place(count=3, refresh=False)


def stop(setting: Setting) -> object:
    return setting.stop("web")


def unload(setting: Setting) -> object:
    return setting.unload("web")


def alone(setting: Setting) -> None:
    setting.add_node("elm")


def refused_first(setting: Setting) -> None:
    setting.add_node("elm", refusal=Refused(RefusalCode.ADMISSION, "no room"))
    setting.add_node("oak")


def unreachable_first(setting: Setting) -> None:
    setting.add_node("elm")
    setting.add_node("oak")
    setting.world.nodes["elm"].up = False


def placed(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()


def assert_agreement(setting: Setting) -> None:
    assert setting.open_operations() == []
    assert isinstance(setting.verified(), Verified)
    held = {(hold.node, hold.instance) for hold in setting.holds()}
    assert set(setting.alive()) == held, "a process without a hold is an orphan"


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(alone, id="on the only node"),
        pytest.param(refused_first, id="on the second node"),
        pytest.param(unreachable_first, id="on the node that answers"),
    ],
)
def test_a_place_killed_anywhere_is_finished_by_typing_it_again(
    setting: Setting, tmp_path: Path, prepare: Verb
) -> None:
    prepare(setting)
    moments = moments_of(setting, place, tmp_path / "whole")

    for number in range(1, len(moments) + 1):
        left = killed_at(setting, place, number, tmp_path / f"cut-{number}")
        place(left)

        where = f"killed at {number}, {moments[number - 1]}"
        assert len(left.alive()) == 1, where
        assert left.instance("web").state is State.RUNNING, where
        assert_agreement(left)


def test_a_place_killed_anywhere_is_ended_by_unload(setting: Setting, tmp_path: Path) -> None:
    refused_first(setting)
    moments = moments_of(setting, place, tmp_path / "whole")
    began = moments.index(("commit", "after")) + 1

    for number in range(began, len(moments) + 1):
        left = killed_at(setting, place, number, tmp_path / f"cut-{number}")
        ended = left.unload("web")

        assert ended.end in (End.DONE, End.ALREADY), f"killed at {number}, {moments[number - 1]}"
        assert left.alive() == []
        assert left.holds() == ()
        assert_agreement(left)


@pytest.mark.parametrize("verb", [stop, unload])
def test_an_ending_killed_anywhere_goes_forward(
    setting: Setting, tmp_path: Path, verb: Verb
) -> None:
    placed(setting)
    moments = moments_of(setting, verb, tmp_path / "whole")

    for number in range(1, len(moments) + 1):
        left = killed_at(setting, verb, number, tmp_path / f"cut-{number}")
        verb(left)

        assert left.alive() == [], f"killed at {number}, {moments[number - 1]}"
        assert left.holds() == ()
        assert_agreement(left)


def test_placing_anew_after_an_unload_that_was_killed_ends_the_old_copy_first(
    setting: Setting, tmp_path: Path
) -> None:
    placed(setting)
    old = setting.instance("web").id
    moments = moments_of(setting, unload, tmp_path / "whole")

    for number in range(1, len(moments)):
        left = killed_at(setting, unload, number, tmp_path / f"cut-{number}")
        place(left)

        where = f"killed at {number}, {moments[number - 1]}"
        assert [iid for _, iid in left.alive()] == [left.instance("web").id], where
        assert left.instance("web").id != old, where
        assert_agreement(left)


def test_several_copies_killed_anywhere_are_completed_by_typing_it_again(
    setting: Setting, tmp_path: Path
) -> None:
    setting.add_node("elm")
    setting.add_node("oak")
    moments = moments_of(setting, place_three, tmp_path / "whole")

    for number in range(1, len(moments) + 1, 3):
        left = killed_at(setting, place_three, number, tmp_path / f"cut-{number}")
        place_three(left)

        assert len(left.alive()) == 3, f"killed at {number}"
        assert_agreement(left)
