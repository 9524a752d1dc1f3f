"""Passes and verbs at the same time: nobody waits for ever, and what came last is what is."""

import itertools
import random
import threading
from collections.abc import Callable

import pytest

from tests.flows.setting import Setting
from tests.simulation.test_fixpoint import assert_one_each
from wlctl.errors import Busy, IllegalStep, Overtaken, UnknownName
from wlctl.flows import draining, ending, moving, node_changes
from wlctl.flows.moving import Way
from wlctl.flows.reconcile import Pass, reconcile
from wlctl.flows.runtime import Runtime
from wlctl.flows.starting import restart_one, start
from wlctl.ledger.verify import Verified
from wlctl.model.instance import State

NAMES = ("web", "api")
SECONDS = 120
"""So long may all of it take; it takes a few seconds on an idle machine."""

EXPECTED = (Busy, IllegalStep, Overtaken, UnknownName)
"""What a verb may be told because somebody else was first."""

Act = Callable[[Runtime, str], object]

VERBS: dict[str, Act] = {
    "stop": ending.stop,
    "start": start,
    "restart": lambda rt, name: restart_one(rt, moving.find(rt, name)),
    "move": lambda rt, name: moving.move(rt, moving.find(rt, name), Way(timeout_s=1)),
    "move, stopped first": lambda rt, name: moving.move(
        rt, moving.find(rt, name), Way(timeout_s=1, stop_first=True)
    ),
    "drain": lambda rt, _name: draining.drain(rt, "oak", stop_rest=True),
    "resume": lambda rt, _name: draining.resume(rt, node_changes.uncordon(rt, "oak")[0].name),
    "pass": lambda rt, _name: reconcile(rt),
}
"""None of them takes a copy away for good."""


@pytest.fixture
def running(setting: Setting) -> Setting:
    setting.clock = itertools.count(next(setting.clock), 20)
    setting.busy_timeout_s = 20
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    for name in NAMES:
        setting.place(name=name)
    return setting


@pytest.mark.parametrize("seed", range(4))
def test_passes_and_verbs_at_random_end_and_leave_what_was_asked_for(
    running: Setting, seed: int
) -> None:
    unexpected: list[BaseException] = []

    def work(number: int) -> None:
        chosen = random.Random(f"{seed} {number}")
        for _ in range(6):
            verb = "pass" if number < 2 else chosen.choice(sorted(VERBS))
            try:
                with running.runtime() as rt:
                    VERBS[verb](rt, chosen.choice(NAMES))
            except EXPECTED:
                continue
            except BaseException as failure:  # noqa: BLE001 - raised again in the test's own thread
                unexpected.append(failure)
                return

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive(), "somebody waits for ever"
    assert unexpected == []

    found = [_later_pass(running) for _ in range(3)]
    assert found[-1].is_quiet
    assert running.open_operations() == []
    assert isinstance(running.verified(), Verified)
    assert_one_each(running)
    assert {running.named(name).name for name in NAMES} == set(NAMES), "each has its copy"


def _later_pass(setting: Setting) -> Pass:
    for _ in range(400_000 // 20):
        next(setting.clock)
    with setting.runtime() as rt:
        return reconcile(rt)


def test_of_two_passes_at_once_one_works_and_both_end_well(running: Setting) -> None:
    running.world.nodes["elm"].reboot()
    found = []

    def work() -> None:
        with running.runtime() as rt:
            found.append(reconcile(rt))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)

    assert len(found) == len(threads)
    assert any(not one.is_other for one in found)
    assert_one_each(running)


@pytest.mark.parametrize("verb", ["stop", "unload"])
def test_an_operators_end_wins_over_a_pass_that_starts(running: Setting, verb: str) -> None:
    """The node was started anew, and a pass is about to start the copy again."""
    name = next(one for one in NAMES if running.instance(one).node == "elm")
    running.world.nodes["elm"].reboot()
    ended = threading.Event()

    def end_meanwhile(step: str, moment: str) -> None:
        if (step, moment) == ("start", "before") and not ended.is_set():
            ended.set()
            thread.start()

    def end() -> None:
        with running.runtime() as rt:
            getattr(ending, verb)(rt, name)

    thread = threading.Thread(target=end)
    running.world.hook = end_meanwhile
    with running.runtime() as rt:
        reconcile(rt)
    thread.join(SECONDS)
    running.world.hook = lambda _step, _moment: None
    for _ in range(2):
        with running.runtime() as rt:
            reconcile(rt)

    assert ended.is_set()
    iid = running.instance(name).id
    assert iid not in {one for _, one in running.alive()}
    expected = State.STOPPED if verb == "stop" else State.UNLOADED
    assert running.instance(name).state is expected
