"""Waiting for a state: what is seen meanwhile is kept, and what cannot come is said."""

import pytest

from tests.flows.setting import Setting
from tests.world import FakeNode
from wlctl.errors import UnknownName, UsageError
from wlctl.flows import packages, until
from wlctl.flows.signing import KeyChoice
from wlctl.flows.until import Came, Waited, goal_of
from wlctl.ledger.verify import Verified
from wlctl.model.instance import State

HEALTH = '[health]\nexec = "bin/run"\n'


@pytest.fixture
def elm(setting: Setting) -> FakeNode:
    """A node, with `web` running on it."""
    setting.add_node("elm")
    setting.place()
    return setting.world.nodes["elm"]


def waited(setting: Setting, word: str, *, for_s: float = 60, called_off: bool = False) -> Waited:
    with setting.runtime() as rt:
        return until.wait(
            rt,
            setting.instance("web"),
            goal_of(word),
            ends_at_s=rt.elapsed_s() + for_s,
            go_on=lambda: not called_off,
        )


def at_look(setting: Setting, number: int, act: object) -> None:
    """Do something the `number`th time that the node is looked at."""
    looks = [0]

    def hook(step: str, moment: str) -> None:
        if (step, moment) == ("status", "before"):
            looks[0] += 1
            if looks[0] == number:
                act()  # type: ignore[operator]  # a function

    setting.world.hook = hook


def test_what_is_there_is_answered_after_one_look(setting: Setting, elm: FakeNode) -> None:
    steps: list[str] = []
    setting.world.hook = lambda step, _moment: steps.append(step)

    assert waited(setting, "running") == Waited("web", Came.THERE, "running")
    assert steps.count("status") == 1
    assert elm.alive


def test_healthy_needs_the_check_to_pass_where_there_is_one(setting: Setting) -> None:
    described = setting.package / "workload.toml"
    described.write_text(described.read_text() + HEALTH)
    with setting.runtime() as rt:
        packages.build(setting.package)
        packages.sign(rt, setting.package, KeyChoice(setting.key))
    setting.add_node("elm")
    setting.place()
    elm, iid = setting.world.nodes["elm"], setting.instance("web").id
    elm.health[iid] = "starting"

    assert waited(setting, "healthy", for_s=5) == Waited(
        "web", Came.TIMEOUT, "running", "its health is starting"
    )
    elm.health[iid] = "healthy"
    assert waited(setting, "stopped", for_s=3).detail == "", "nothing is wrong with its health"
    elm.health[iid] = "starting"
    at_look(setting, 3, lambda: elm.health.update({iid: "healthy"}))
    assert waited(setting, "healthy") == Waited("web", Came.THERE, "running")
    assert setting.instance("web").health == "healthy"


def test_without_a_check_running_is_healthy(setting: Setting, elm: FakeNode) -> None:
    assert elm.alive
    assert waited(setting, "healthy").came is Came.THERE


def test_an_end_that_is_seen_is_kept_in_the_history(setting: Setting, elm: FakeNode) -> None:
    iid = setting.instance("web").id
    at_look(setting, 3, lambda: elm.exit(iid, 3))

    assert waited(setting, "failed") == Waited("web", Came.THERE, "failed")

    step = setting.history("web")[-1]
    assert (step.state, step.reason) == (State.FAILED, "g1 ended by itself with status 3")
    assert step.evidence is not None
    assert step.evidence["exit_status"] == 3
    assert len(setting.holds()) == 1, "a look gives nothing back"
    assert isinstance(setting.verified(), Verified)


def test_health_that_is_seen_to_change_is_kept_both_ways(setting: Setting, elm: FakeNode) -> None:
    iid = setting.instance("web").id
    elm.health[iid] = "unhealthy"
    assert waited(setting, "unhealthy").came is Came.THERE
    elm.health[iid] = "healthy"
    assert waited(setting, "running").came is Came.THERE

    walked = [step.state.value for step in setting.history("web")]
    assert walked[-3:] == ["running", "unhealthy", "running"]


def test_what_cannot_come_any_more_is_said_at_once(setting: Setting, elm: FakeNode) -> None:
    assert waited(setting, "finished") == Waited(
        "web", Came.NEVER, "running", "a service does not finish"
    )
    elm.exit(setting.instance("web").id, 1)
    assert waited(setting, "healthy").came is Came.NEVER


def test_time_that_has_passed_is_said_with_how_it_stands(setting: Setting, elm: FakeNode) -> None:
    assert elm.alive
    assert waited(setting, "stopped", for_s=3) == Waited("web", Came.TIMEOUT, "running")
    assert waited(setting, "stopped", for_s=0).came is Came.TIMEOUT
    assert waited(setting, "running", for_s=0).came is Came.THERE, "one look there always is"


def test_a_node_that_does_not_answer_is_asked_again(setting: Setting, elm: FakeNode) -> None:
    elm.up = False
    found = waited(setting, "unhealthy", for_s=5)
    assert (found.came, found.detail) == (Came.TIMEOUT, "elm refused the connection")

    def connect(step: str, _moment: str) -> None:
        asked.append(step)
        elm.up = len(asked) > 2

    asked: list[str] = []
    setting.world.hook = connect
    elm.health[setting.instance("web").id] = "unhealthy"
    assert waited(setting, "unhealthy").came is Came.THERE


def test_a_copy_that_the_node_does_not_list_is_not_called_gone(
    setting: Setting, elm: FakeNode
) -> None:
    elm.staged.clear()

    found = waited(setting, "unhealthy", for_s=3)

    assert (found.came, found.state) == (Came.TIMEOUT, "running")
    assert found.detail == "elm does not list it"


def test_what_another_command_does_is_seen(setting: Setting, elm: FakeNode) -> None:
    at_look(setting, 2, lambda: setting.stop("web"))

    assert waited(setting, "stopped") == Waited("web", Came.THERE, "stopped")
    assert elm.alive == {}


def test_who_does_not_want_to_wait_any_longer_is_told_how_it_stands(
    setting: Setting, elm: FakeNode
) -> None:
    assert elm.alive
    found = waited(setting, "stopped", called_off=True)

    assert (found.came, found.state) == (Came.CALLED_OFF, "running")


def test_a_word_that_is_no_state_is_a_mistake(setting: Setting) -> None:
    with pytest.raises(UsageError, match="no state of an instance"):
        goal_of("runing")
    with setting.runtime() as rt:
        with pytest.raises(UsageError, match="no liveness"):
            until.wait_for_node(rt, "elm", "up", ends_at_s=0)
        with pytest.raises(UnknownName):
            until.wait_for_node(rt, "elm", "alive", ends_at_s=0)


def test_a_node_is_waited_for_by_probing_it(setting: Setting, elm: FakeNode) -> None:
    elm.up = False
    with setting.runtime() as rt:
        found = until.wait_for_node(rt, "elm", "alive", ends_at_s=rt.elapsed_s() + 3)
        assert (found.came, found.state) == (Came.TIMEOUT, "suspect")
        assert found.detail == "elm refused the connection"
        assert until.wait_for_node(rt, "elm", "suspect", ends_at_s=0).came is Came.THERE
        elm.up = True
        assert until.wait_for_node(rt, "elm", "alive", ends_at_s=0).came is Came.THERE
        gone = until.wait_for_node(rt, "elm", "dead", ends_at_s=0, go_on=lambda: False)
        assert gone.came is Came.CALLED_OFF
    assert setting.node("elm").liveness.value == "alive"
