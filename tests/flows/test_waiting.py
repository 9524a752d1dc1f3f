"""Waiting for a copy: when it is up, when it has ended, when it is late, and what is shown then."""

from collections.abc import Callable

import pytest

from tests.flows.setting import Setting
from tests.world import FakeNode
from wlctl.flows.waiting import Awaited, Came, Until, wait
from wlctl.model.instance import State


@pytest.fixture
def placed(setting: Setting) -> Setting:
    setting.add_node("elm")
    setting.place()
    return setting


def await_it(
    setting: Setting,
    *,
    until: Until = Until.RUNNING,
    has_health: bool = False,
    timeout_s: float = 100,
    go_on: Callable[[], bool] = lambda: True,
) -> Awaited:
    with setting.runtime() as rt:
        return wait(
            rt,
            setting.instance("web").id,
            until=until,
            has_health=has_health,
            timeout_s=timeout_s,
            go_on=go_on,
        )


def node(setting: Setting) -> FakeNode:
    return setting.world.nodes["elm"]


def after_looks(setting: Setting, count: int, act: Callable[[], object]) -> None:
    """Let something happen on the node after so many looks at it."""
    looks = [0]

    def hook(step: str, moment: str) -> None:
        if (step, moment) == ("status", "before"):
            looks[0] += 1
            if looks[0] == count:
                act()

    setting.world.hook = hook


def test_without_a_health_check_it_is_up_when_it_has_lived_a_while(placed: Setting) -> None:
    assert await_it(placed).came is Came.UP


def test_with_one_it_is_up_when_that_says_so_and_not_before(placed: Setting) -> None:
    iid = placed.instance("web").id
    node(placed).health[iid] = "starting"
    after_looks(placed, 4, lambda: node(placed).health.update({iid: "healthy"}))

    assert await_it(placed, has_health=True).came is Came.UP


def test_what_is_not_healthy_in_time_is_late_and_its_output_is_shown(placed: Setting) -> None:
    node(placed).health[placed.instance("web").id] = "unhealthy"

    found = await_it(placed, has_health=True, timeout_s=5)

    assert found.came is Came.LATE
    assert found.log == ("one", "two")
    assert placed.instance("web").state is State.UNHEALTHY, "and kept in the history"


def test_a_service_that_ended_has_failed_whatever_its_status(placed: Setting) -> None:
    iid = placed.instance("web").id
    node(placed).exit(iid, 0)

    found = await_it(placed)

    assert (found.came, found.exit_status) == (Came.FAILED, 0)
    assert found.detail == "it ended with status 0"
    assert found.log == ("one", "two")
    assert placed.instance("web").state is State.FAILED


def test_what_its_supervisor_begins_again_and_that_lives_then_is_up(placed: Setting) -> None:
    iid = placed.instance("web").id
    node(placed).alive.pop(iid)
    node(placed).exits[iid, 1] = 3
    after_looks(placed, 3, lambda: node(placed).begin_again(iid))

    found = await_it(placed)

    assert (found.came, found.instance.generation) == (Came.UP, 2)


def test_what_its_supervisor_holds_in_the_end_has_failed(placed: Setting) -> None:
    iid = placed.instance("web").id
    node(placed).begin_again(iid)
    after_looks(placed, 1, lambda: node(placed).hold(iid))

    found = await_it(placed)

    assert (found.came, found.exit_status) == (Came.FAILED, 1)
    assert placed.instance("web").state is State.FAILED


def test_a_signal_is_named(placed: Setting) -> None:
    node(placed).exit(placed.instance("web").id, 137)

    assert await_it(placed).detail == "it ended with status 137 (signal 9)"


def test_a_node_that_does_not_answer_for_a_while_is_asked_again(placed: Setting) -> None:
    node(placed).up = False
    asked = [0]

    def hook(step: str, moment: str) -> None:
        if (step, moment) == ("connect", "before"):
            asked[0] += 1
            node(placed).up = asked[0] >= 3

    placed.world.hook = hook

    assert await_it(placed).came is Came.UP
    assert asked[0] >= 3


def test_one_that_never_answers_is_late_and_says_why(placed: Setting) -> None:
    node(placed).up = False

    found = await_it(placed, timeout_s=5)

    assert found.came is Came.LATE
    assert "refused the connection" in found.detail
    assert "its output cannot be had" in found.log[0]


def test_whoever_waits_may_stop_waiting_and_the_copy_stays(placed: Setting) -> None:
    node(placed).health[placed.instance("web").id] = "starting"

    found = await_it(placed, has_health=True, go_on=lambda: False)

    assert found.came is Came.CALLED_OFF
    assert placed.alive() != []


def test_a_service_is_never_finished_so_waiting_for_that_lasts_to_the_end(placed: Setting) -> None:
    assert await_it(placed, until=Until.FINISHED, timeout_s=5).came is Came.LATE
