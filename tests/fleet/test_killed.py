"""kill -9 at any moment: the next command brings ledger, nodes and chain to agreement."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from tests.fleet.dies import DIED, Dying
from tests.fleet.field import ELM, OAK, Fleet
from tests.fleet.lost import after_the_request
from tests.fleet.sample import SEED, TIMEOUT_S, sample
from wlctl.flows.ending import End
from wlctl.flows.start_intents import Begin
from wlctl.model.instance import State

pytestmark = pytest.mark.timeout(TIMEOUT_S)

PLACE = ("place", "web", "--prefer", "elm", "--detach")

MUTATIONS = frozenset({"place", "settle", "start", "stop"})


def nothing(fleet: Fleet) -> None:
    """Nothing is there, and the files have to be brought anew."""
    fleet.forget_files()


def elm_refuses(fleet: Fleet) -> None:
    """A list of what is revoked that cannot be read allows nothing to be started there."""
    fleet.forget_files()
    damaged = fleet.elm.state / "other" / "revoked"
    damaged.parent.mkdir()
    damaged.write_text("torn", encoding="ascii")


def elm_allows(fleet: Fleet) -> None:
    (fleet.elm.state / "other" / "revoked").unlink()
    (fleet.elm.state / "other").rmdir()


def elm_is_down(fleet: Fleet) -> None:
    fleet.forget_files()
    fleet.proxy.shut()


def elm_is_up(fleet: Fleet) -> None:
    fleet.proxy.plan()


def answer_lost(fleet: Fleet) -> None:
    """The node does all of the first place, and nobody hears its answer."""
    cut = after_the_request(fleet)
    fleet.ready()
    fleet.proxy.plan({1: cut})


def unsettled(fleet: Fleet) -> None:
    """The answer of an earlier place was lost, and its node could not be asked."""
    cut = after_the_request(fleet)
    fleet.ready()
    fleet.proxy.plan({1: replace(cut, stays=True)})
    assert fleet.place().copies[0].is_open
    fleet.ready()


def placed(fleet: Fleet) -> None:
    assert fleet.place().copies[0].is_placed


def stopped(fleet: Fleet) -> None:
    placed(fleet)
    assert fleet.stop().end is End.DONE


def place_again(fleet: Fleet) -> None:
    fleet.place()
    instance = fleet.instance()
    assert instance is not None
    assert instance.state is State.RUNNING
    assert fleet.copies() == [instance.node]


def start_again(fleet: Fleet) -> None:
    assert fleet.start().begin in (Begin.DONE, Begin.ALREADY)
    assert len(fleet.copies()) == 1


def stop_again(fleet: Fleet) -> None:
    assert fleet.stop().end in (End.DONE, End.ALREADY)
    assert fleet.copies() == []
    assert fleet.holds() == ()


def unload(fleet: Fleet, name: str = "web") -> None:
    if fleet.instance(name) is not None:
        assert fleet.unload(name).end in (End.DONE, End.ALREADY)
    assert fleet.copies() == []
    assert fleet.holds() == ()


Act = Callable[[Fleet], None]


@dataclass(frozen=True)
class Story:
    """One command, what was before it, and what is done after it was killed.

    Attributes:
        clears: Takes away what `prepare` made of the world.
        always: Those moments are tried in any case around which something on a node is changed,
            and the first and the last.
        cases: How many others are, where it is no campaign.
    """

    argv: tuple[str, ...]
    prepare: Act
    recover: Act
    clears: Act | None = None
    always: bool = True
    cases: int = 2


STORIES = {
    "a place on the first candidate": Story(PLACE, nothing, place_again),
    "a place that the first candidate refuses": Story(
        PLACE, elm_refuses, place_again, elm_allows, always=False, cases=3
    ),
    "a place whose first candidate is down": Story(
        PLACE, elm_is_down, place_again, elm_is_up, always=False
    ),
    "a place whose answer is lost": Story(PLACE, answer_lost, place_again, always=False, cases=3),
    "a place that settles an older one": Story(
        PLACE, unsettled, place_again, always=False, cases=3
    ),
    "a place that is unloaded then": Story(PLACE, nothing, unload, always=False),
    "a stop": Story(("stop", "web"), placed, stop_again),
    "an unload": Story(("unload", "web"), placed, unload),
    "an unload of what is not settled": Story(("unload", "web"), unsettled, unload, always=False),
    "an unload, and then it is placed anew": Story(
        ("unload", "web"), placed, place_again, always=False
    ),
    "a start": Story(("start", "web"), stopped, start_again),
    "a start that is stopped then": Story(("start", "web"), stopped, stop_again, always=False),
    "a restart": Story(("restart", "web"), placed, start_again, always=False),
}


@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_a_command_killed_at_any_moment_is_recovered_by_one_more(
    fleet: Fleet, dying: Dying, story: Story
) -> None:
    moments = whole(fleet, dying, story)

    for number in chosen(moments, story):
        where = f"killed at {number}, {moments[number - 1]} (WLCTL_SEED={SEED})"
        fleet.ready()
        story.prepare(fleet)
        try:
            killed = dying.run(*story.argv, die_at=number)
            assert killed.status == DIED, f"{where}: {killed}"
            assert set(fleet.running()) <= {ELM, OAK}
        finally:
            if story.clears is not None:
                story.clears(fleet)

        try:
            story.recover(fleet)
            fleet.assert_agreement()
            unload(fleet)
            fleet.assert_empty()
        except BaseException as failure:
            failure.add_note(where)
            raise


def whole(fleet: Fleet, dying: Dying, story: Story) -> list[str]:
    """Run it to its end once, and list every moment it goes through."""
    fleet.ready()
    story.prepare(fleet)
    try:
        run = dying.run(*story.argv)
        assert run.status == 0, run
    finally:
        if story.clears is not None:
            story.clears(fleet)
    unload(fleet)
    fleet.assert_empty()
    return run.moments


def chosen(moments: list[str], story: Story) -> list[int]:
    """Choose moments to die at: those around a change on a node always, the others by chance."""
    numbers = range(1, len(moments) + 1)
    changing = {n for n in numbers if moments[n - 1].partition(" ")[2] in MUTATIONS}
    always = {1, len(moments), *changing} if story.always else set()
    others = [n for n in numbers if n not in always]
    return sorted({*always, *sample(others, story.cases, salt=" ".join(story.argv))})
