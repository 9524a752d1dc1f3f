"""How copies are: asked of many nodes at once, and never changing anything."""

from dataclasses import replace

import pytest

from tests.flows.setting import Setting
from tests.unit.test_seen import WEB
from wlctl.flows import listing, targets
from wlctl.flows import status as flow
from wlctl.flows.reconcile import reconcile
from wlctl.flows.status import Status
from wlctl.flows.targets import Targets
from wlctl.model.instance import State


def asked(setting: Setting, *names: str, stored: bool = False) -> list[Status]:
    with setting.runtime() as rt:
        chosen = targets.find(rt, Targets(names) if names else Targets(everything=True), gone=True)
        return flow.status(rt, chosen, stored=stored)


@pytest.fixture
def two(setting: Setting) -> Setting:
    setting.add_node("elm")
    setting.add_node("oak")
    setting.place(name="a", pin="elm")
    setting.place(name="b", pin="oak")
    setting.place(name="c", pin="elm")
    return setting


def test_each_node_is_asked_once_and_the_order_is_that_of_the_names(two: Setting) -> None:
    steps: list[str] = []
    two.world.hook = lambda step, _moment: steps.append(step)

    found = asked(two, "c", "b", "a")

    assert [one.instance.name for one in found] == ["c", "b", "a"]
    assert steps.count("status") == 2
    assert all(one.seen is not None and one.differences == () for one in found)


def test_what_differs_is_said_and_nothing_is_changed(two: Setting) -> None:
    two.world.nodes["elm"].exit(two.instance("a").id, 3)
    before = two.events("workload.*"), two.instance("a")

    first, *_ = asked(two, "a")

    assert first.differences == (
        "the ledger says running, its node failed: g1 ended by itself with status 3",
    )
    assert (two.events("workload.*"), two.instance("a")) == before


def test_a_node_that_does_not_answer_fails_alone_and_what_is_known_is_shown(two: Setting) -> None:
    two.world.nodes["oak"].up = False

    a, b, _ = asked(two)

    assert a.failure is None
    assert b.failure is not None
    assert b.failure.code == "connect-failed"
    assert (b.seen, b.at_ms) == (None, two.instance("b").seen_at_ms)
    assert b.run is not None
    assert b.run.number == 1


def test_another_machine_is_believed_nothing(two: Setting) -> None:
    two.world.nodes["oak"].node_id = "f" * 32

    (found,) = asked(two, "b")

    assert found.seen is None
    assert found.failure is not None
    assert found.failure.code == "foreign-node"


def test_stored_asks_nobody(two: Setting) -> None:
    steps: list[str] = []
    two.world.hook = lambda step, _moment: steps.append(step)

    found = asked(two, stored=True)

    assert steps == []
    assert [one.failure for one in found] == [None] * 3
    assert [one.at_ms for one in found] == [two.instance(name).seen_at_ms for name in "abc"]


def test_a_pass_that_finds_all_as_it_was_is_a_contact_with_every_copy(two: Setting) -> None:
    written = two.instance("a").seen_at_ms
    with two.runtime() as rt:
        reconcile(rt)
        (listed, *_) = listing.ps(rt)

    assert two.instance("a").seen_at_ms == written, "nothing is written of what did not change"
    assert listed.seen_at_ms == two.node("elm").seen_at_ms
    assert asked(two, "a", stored=True)[0].at_ms == listed.seen_at_ms
    assert listed.seen_at_ms is not None
    assert written is not None
    assert listed.seen_at_ms > written


@pytest.mark.parametrize(
    ("own", "of_node", "rekeyed", "seen"),
    [
        pytest.param(5, 9, None, 9, id="by a later contact with its node"),
        pytest.param(9, 5, None, 9, id="by its own word"),
        pytest.param(None, None, None, None, id="never"),
        pytest.param(None, 9, None, 9, id="by its node alone"),
        pytest.param(5, 9, 4, 5, id="not by the machine that has the name since"),
        pytest.param(5, 9, 3, 9, id="by the machine that had the name already"),
    ],
)
def test_a_copy_was_seen_at_the_last_contact_with_its_machine(
    own: int | None, of_node: int | None, rekeyed: int | None, seen: int | None
) -> None:
    copy = replace(WEB, created_at_ms=4, seen_at_ms=own)

    assert listing.seen_at_ms(copy, of_node, rekeyed) == seen


def test_an_exit_that_is_about_to_be_written_is_looked_for_again(two: Setting) -> None:
    iid = two.instance("a").id
    elm = two.world.nodes["elm"]
    elm.exit(iid, None)
    steps: list[str] = []

    def write(step: str, _moment: str) -> None:
        steps.append(step)
        if steps.count("status") == 2:
            elm.exits[iid, 1] = 0

    two.world.hook = write
    (found,) = asked(two, "a")

    assert "status 0" in found.differences[0]


def test_an_exit_that_nobody_wrote_is_unknown(two: Setting) -> None:
    two.world.nodes["elm"].exit(two.instance("a").id, None)

    (found,) = asked(two, "a")

    assert "exit-unknown" in found.differences[0]


def test_what_is_gone_is_shown_as_it_ended(two: Setting) -> None:
    two.unload("a")

    (found,) = asked(two, "a")

    assert found.instance.state is State.UNLOADED
    assert found.differences == ()


def test_the_history_has_every_step_with_what_was_read(two: Setting) -> None:
    two.stop("a")
    two.unload("a")

    with two.runtime() as rt:
        steps = flow.history(rt, two.instance("a"))

    assert [step.state.value for step in steps][-3:] == ["stopping", "stopped", "unloaded"]
    stopped = steps[-2]
    assert stopped.evidence is not None
    assert stopped.evidence["g1"]["judgement"] == "proven"
    assert stopped.evidence["g1"]["exit_status"] == 143
    assert steps[0].evidence is None
    told = {event.seq: event for event in two.events("workload.lifecycle")}
    assert [told[step.seq].payload["to"] for step in steps] == [step.state for step in steps]
