"""What stop and unload make of what they read: more than that something is gone."""

import pytest

from tests.flows.going_over import go_over
from tests.flows.setting import Setting
from tests.world import FakeNode, lost_at, peaceful
from wlctl.errors import Indeterminate
from wlctl.flows import ending, known, starting
from wlctl.flows.ending import End
from wlctl.flows.start_intents import Begin
from wlctl.model.generation import Proven
from wlctl.model.instance import State


@pytest.fixture
def elm(setting: Setting) -> FakeNode:
    setting.add_node("elm")
    setting.place()
    return setting.world.nodes["elm"]


@pytest.mark.parametrize(
    ("status", "state", "said"),
    [
        pytest.param(3, State.FAILED, "g1 ended by itself with status 3", id="with a failure"),
        pytest.param(0, State.FAILED, "g1 ended by itself with status 0", id="a service at all"),
        pytest.param(None, State.FAILED, "exit-unknown", id="in a way that nobody wrote down"),
    ],
)
def test_what_had_ended_by_itself_before_it_was_stopped_is_not_called_stopped(
    setting: Setting, elm: FakeNode, status: int | None, state: State, said: str
) -> None:
    elm.exit(setting.instance("web").id, status)

    done = setting.stop("web")

    assert (done.end, done.instance.state) == (End.DONE, state)
    step = setting.history("web")[-1]
    assert said in step.reason
    assert "no process of it is left" in step.reason
    assert setting.holds() == (), "it is proven gone all the same"


def test_an_unload_says_unloaded_however_it_ended(setting: Setting, elm: FakeNode) -> None:
    elm.exit(setting.instance("web").id, 3)

    assert setting.unload("web").instance.state is State.UNLOADED


def test_who_does_not_wait_gets_no_proof_and_releases_nothing(
    setting: Setting, elm: FakeNode
) -> None:
    with setting.runtime() as rt:
        asked = ending.stop_one(rt, setting.instance("web"), wait=False)

    assert (asked.end, asked.proofs) == (End.ASKED, ())
    assert asked.instance.state is State.STOPPING
    assert len(setting.holds()) == 1
    assert setting.stop("web").end is End.DONE
    assert setting.holds() == ()
    assert elm.alive == {}


def test_what_was_proven_once_is_not_taken_back(setting: Setting, elm: FakeNode) -> None:
    setting.stop("web")
    elm.reboot()
    elm.uptime_ms = 3_600_000  # as if it had been another machine all the time

    assert setting.unload("web").end is End.DONE


def test_a_run_that_a_reboot_has_proven_gone_stays_proven_in_all_later_evidence(
    setting: Setting, elm: FakeNode
) -> None:
    elm.reboot()
    with setting.runtime() as rt:
        assert starting.start(rt, "web").begin is Begin.DONE
    elm.uptime_ms = 60_000  # the copy was seen meanwhile, under this boot

    done = setting.stop("web")

    assert done.end is End.DONE
    first, second = done.proofs
    assert isinstance(first, Proven)
    assert first.by == "as before: the machine was started anew after it was last seen"
    assert isinstance(second, Proven)
    told = setting.history("web")[-1].evidence or {}
    assert [run["judgement"] for run in told.values()] == ["proven", "proven"]


def test_what_was_stopped_and_may_have_been_started_since_is_stopped_again(
    setting: Setting, elm: FakeNode
) -> None:
    """The answer of the start was lost, and the stop after it did not come through."""
    setting.stop("web")
    setting.world.hook = lost_at("start", "after")
    with setting.runtime() as rt:
        assert starting.start(rt, "web").begin is Begin.INDETERMINATE
    setting.world.hook = lost_at("stop", "before")
    assert setting.stop("web").end is End.UNREACHABLE
    assert setting.instance("web").state is State.STOPPED
    assert elm.alive != {}

    setting.world.hook = peaceful
    done = setting.stop("web")

    assert (done.end, elm.alive) == (End.DONE, {})


@pytest.mark.parametrize("by", ["a stop", "a pass"])
def test_what_a_start_took_that_did_not_get_there_is_given_back(
    setting: Setting, elm: FakeNode, by: str
) -> None:
    assert setting.stop("web").end is End.DONE
    elm.up = False
    with setting.runtime() as rt:
        assert starting.start(rt, "web").begin is Begin.UNREACHABLE
    assert setting.stop("web").end is End.UNREACHABLE
    assert len(setting.holds()) == 1, "what was sent on its way may still come there"
    elm.up = True
    with setting.runtime() as rt, rt.ledger.read() as tx:
        assert setting.instance("web").id in known.read(tx).busy, "a pass looks at it closely"

    if by == "a stop":
        assert setting.stop("web").end is End.DONE
    else:
        go_over(setting, 2)

    assert setting.holds() == ()
    assert setting.instance("web").state is State.STOPPED
    assert setting.stop("web").end is End.ALREADY


def test_who_gave_an_ending_so_long_waits_for_one_answer_only(
    setting: Setting, elm: FakeNode
) -> None:
    asked: list[str] = []

    def lost(here: str, moment: str) -> None:
        if (here, moment) == ("stop", "after"):
            asked.append(here)
            raise Indeterminate("stop: no whole answer came")

    setting.world.hook = lost
    with setting.runtime() as rt:
        ended = ending.stop_one(rt, setting.instance("web"), within_s=5)

    assert ended.end is End.INDETERMINATE
    assert asked == ["stop"]
