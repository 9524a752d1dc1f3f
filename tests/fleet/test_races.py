"""Two commands at once, and one that was paused while another overtook it: one truth, one copy."""

import subprocess
from dataclasses import dataclass

import pytest
from _pytest.mark import ParameterSet

from tests.fleet.dies import COMMIT, PAUSED, Dying
from tests.fleet.field import ELM, OAK, Fleet, make_package, program
from tests.fleet.sample import TIMEOUT_S, sample
from tests.fleet.test_killed import (
    PLACE,
    Act,
    Story,
    elm_allows,
    elm_refuses,
    nothing,
    placed,
    stopped,
    unload,
    whole,
)
from wlctl.errors import ExitCode
from wlctl.flows import nodes

pytestmark = pytest.mark.timeout(TIMEOUT_S)


def at_once(fleet: Fleet, *commands: tuple[str, ...]) -> list[subprocess.CompletedProcess[str]]:
    """Run the program several times at once, and wait for all."""
    running = [program(fleet, *argv) for argv in commands]
    said = [one.communicate(timeout=120) for one in running]
    return [
        subprocess.CompletedProcess(one.args, one.returncode, out, err)
        for one, (out, err) in zip(running, said, strict=True)
    ]


def test_of_two_orders_for_the_last_memory_one_wins_and_the_other_says_why(fleet: Fleet) -> None:
    with fleet.runtime() as rt:
        nodes.probe(rt, [ELM])
        facts = next(node.facts for node in nodes.ls(rt) if node.name == ELM)
        assert facts is not None
        big = fleet.package.with_name("big")
        memory = f"{facts.memory_available_bytes * 6 // 10 >> 20}MiB"
        make_package(rt, big, name="big", memory=memory)
    names = ("one", "two")

    done = at_once(
        fleet, *(("place", "big", "--name", name, "--pin", "elm", "--detach") for name in names)
    )

    assert sorted(one.returncode for one in done) == [ExitCode.DONE, ExitCode.CANNOT_PLACE], done
    (lost,) = [one for one in done if one.returncode]
    assert "memory" in lost.stdout
    assert fleet.copies() == [ELM]
    (won,) = [hold.name for hold in fleet.holds()]
    assert won == names[[one.returncode for one in done].index(0)]
    fleet.assert_agreement()
    unload(fleet, won)


def test_of_two_orders_with_one_key_both_end_well_and_one_copy_is_there(fleet: Fleet) -> None:
    done = at_once(fleet, *2 * [(*PLACE, "--key", "deploy-7")])

    assert [one.returncode for one in done] == [0, 0], done
    assert fleet.copies() == [ELM]
    fleet.assert_agreement()
    unload(fleet)


@pytest.mark.parametrize("prepare", [placed, nothing])
def test_a_place_and_an_unload_of_one_name_leave_one_copy_or_none(
    fleet: Fleet, prepare: Act
) -> None:
    prepare(fleet)

    done = at_once(fleet, PLACE, ("unload", "web"))

    assert done[0].returncode == 0, done
    assert done[1].returncode in (0, ExitCode.USAGE), done
    assert len(fleet.copies()) <= 1
    fleet.assert_agreement()
    unload(fleet)


INTENT, SENT, AMID = "after its intent", "before {}", "amid {}"


@dataclass(frozen=True)
class Pause:
    """A command, the step on a node that it is about, and another command that meets it.

    Attributes:
        fallback: The first candidate refuses it.
        then: What the other command leaves running.
    """

    argv: tuple[str, ...]
    step: str
    prepare: Act
    other: tuple[str, ...]
    then: int
    fallback: bool = False


PAUSES = {
    "a place, by an unload": Pause(PLACE, "place", nothing, ("unload", "web"), 0),
    "a place, by the same place": Pause(PLACE, "place", nothing, PLACE, 1),
    "a place with another candidate left, by an unload": Pause(
        PLACE, "place", nothing, ("unload", "web"), 0, fallback=True
    ),
    "a stop, by a start": Pause(("stop", "web"), "stop", placed, ("start", "web"), 1),
    "a stop, by an unload": Pause(("stop", "web"), "stop", placed, ("unload", "web"), 0),
    "an unload, by a place": Pause(("unload", "web"), "stop", placed, PLACE, 1),
    "a start, by a stop": Pause(("start", "web"), "start", stopped, ("stop", "web"), 0),
}


def pauses(*whens: str) -> list[ParameterSet]:
    return [
        pytest.param(pause, when, id=f"{name}, {when.format('a step on its node')}")
        for name, pause in PAUSES.items()
        for when in whens
    ]


MOMENTS: dict[tuple[str, ...], list[str]] = {}
"""Those of each command: they are always the same."""


def moment_of(fleet: Fleet, dying: Dying, pause: Pause, when: str) -> int:
    """Find the number of the moment at which to pause."""
    if pause.argv not in MOMENTS:
        MOMENTS[pause.argv] = whole(fleet, dying, Story(pause.argv, pause.prepare, unload))
    moments = MOMENTS[pause.argv]
    at = moments.index(f"before {pause.step}")
    if when == INTENT:
        return max(n for n, name in enumerate(moments[:at], 1) if name == COMMIT)
    return moments.index(when.format(pause.step)) + 1


@pytest.mark.parametrize(("pause", "when"), sample(pauses(INTENT, SENT, AMID), 4, salt="waited"))
def test_a_paused_command_is_waited_for_and_goes_on_to_its_end(
    fleet: Fleet, dying: Dying, pause: Pause, when: str
) -> None:
    at = moment_of(fleet, dying, pause, when)
    pause.prepare(fleet)
    paused = dying.pause(*pause.argv, at=at, unlocked=False)
    assert paused.status == PAUSED, paused

    other = program(fleet, *pause.other, WLCTL_BUSY_TIMEOUT_S="0.3")
    _, said = other.communicate(timeout=60)

    assert other.returncode == ExitCode.BUSY, said
    assert f"`wlctl {pause.argv[0]}" in said
    assert f"(process {paused.pid})" in said
    assert dying.resume(paused).status == 0
    fleet.assert_agreement()
    unload(fleet)


@pytest.mark.parametrize(
    ("pause", "when"), [*pauses(INTENT), *sample(pauses(SENT, AMID), 4, salt="overtaken")]
)
def test_a_command_that_was_overtaken_writes_nothing_and_sends_nothing(
    fleet: Fleet, dying: Dying, pause: Pause, when: str
) -> None:
    at = moment_of(fleet, dying, pause, when)
    pause.prepare(fleet)
    if pause.fallback:
        elm_refuses(fleet)
    try:
        paused = dying.pause(*pause.argv, at=at, unlocked=True)
        assert paused.status == PAUSED, paused
        before = dying.run(*pause.other)
        assert before.status == 0, before
        there, head = fleet.copies(), fleet.head()
        assert len(there) == pause.then

        late = dying.resume(paused)
    finally:
        if pause.fallback:
            elm_allows(fleet)

    assert late.status == ExitCode.BUSY, late
    assert "taken over" in late.stderr
    sent = [name for name in late.moments[at:] if name.startswith("before ")]
    assert sent == [], "it sends nothing more"
    assert fleet.head() == head, "it writes nothing more"
    assert fleet.copies() == there
    fleet.assert_agreement()
    unload(fleet)


def test_of_two_orders_with_one_key_the_one_outrun_between_two_candidates_ends_well_too(
    fleet: Fleet, dying: Dying
) -> None:
    """The name is nobody's while the first node's refusal is written down and none other tried."""
    keyed = (*PLACE, "--key", "deploy-8")
    elm_refuses(fleet)
    try:
        moments = whole(fleet, dying, Story(PLACE, Fleet.forget_files, unload))
        refused = moments.index("after place") + 2
        assert moments[refused - 1] == COMMIT
        fleet.forget_files()
        paused = dying.pause(*keyed, at=refused, unlocked=False)
        assert paused.status == PAUSED, paused
        other = dying.run(*keyed)
        outrun = dying.resume(paused)
    finally:
        elm_allows(fleet)

    assert (other.status, outrun.status) == (0, 0), (other, outrun)
    assert "placed already" in outrun.stdout
    assert fleet.copies() == [OAK]
    fleet.assert_agreement()
    unload(fleet)
