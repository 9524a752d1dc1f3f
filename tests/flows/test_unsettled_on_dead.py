"""A copy of which nobody knows whether it was placed, on a node that died with the answer."""

import itertools

import pytest

from tests.flows.conftest import write_package
from tests.flows.going_over import TICK_MS, go_over
from tests.flows.setting import Setting
from tests.world import FakeNode, peaceful
from wlctl.errors import Indeterminate
from wlctl.flows import attesting, node_changes, packages, starting
from wlctl.flows.signing import KeyChoice
from wlctl.lifecycle.lease import bound_ms
from wlctl.model.alert import AlertKind
from wlctl.model.ids import NodeName
from wlctl.model.instance import State
from wlctl.model.node import Liveness, Tier

ELM = NodeName("elm")
LEASE_MS = 5 * 60_000


@pytest.fixture
def fleet(setting: Setting) -> Setting:
    """Three nodes that answer."""
    setting.clock = itertools.count(next(setting.clock), TICK_MS)
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    go_over(setting)
    return setting


def place_and_lose(setting: Setting, moment: str = "after", **options: object) -> None:
    """Place a copy on elm, which dies with the answer, or before it was reached."""
    elm = setting.world.nodes["elm"]

    def cut(step: str, when: str) -> None:
        if (step, when) == ("place", moment):
            elm.up = False
            raise Indeterminate("place: no whole answer came")

    setting.world.hook = cut
    setting.place(prefer=(ELM,), **options)
    setting.world.hook = peaceful
    assert bool(elm.alive) == (moment == "after")


def test_says_so_and_what_an_operator_can_do(fleet: Setting) -> None:
    place_and_lose(fleet)

    passes = go_over(fleet, 6)

    raised = [one.alert for found in passes for one in found.raised]
    (told,) = [one for one in raised if one.kind is AlertKind.UNSETTLED]
    assert told.subject == "web"
    assert "wlctl node attest-dead elm" in told.reason
    fleet.world.nodes["elm"].up = True
    (found,) = go_over(fleet, after_s=400)
    assert AlertKind.UNSETTLED in {one.alert.kind for one in found.closed}
    assert fleet.instance("web").state is State.RUNNING


def test_a_job_that_may_have_run_there_is_not_run_again_once_that_is_attested_dead(
    fleet: Setting,
) -> None:
    job = fleet.package.with_name("job")
    write_package(job, name="job")
    text = (job / "workload.toml").read_text().replace('"service"', '"job"')
    (job / "workload.toml").write_text(text)
    with fleet.runtime() as rt:
        packages.build(job)
        packages.sign(rt, job, KeyChoice(fleet.key))
    fleet.package = job
    place_and_lose(fleet)

    with fleet.runtime() as rt:
        attesting.attest_dead(rt, "elm", replaced=False, accept=lambda _: None)
    passes = go_over(fleet, 3)

    assert [name for name, _ in fleet.alive()] == ["elm"]
    raised = [one.alert for found in passes for one in found.raised]
    assert [one.reason for one in raised if one.kind is AlertKind.MOVE_BLOCKED] == [
        "it is a job that may have run: it is not run again by itself"
    ]


def test_is_not_called_lost_for_a_start_that_may_have_come_through(fleet: Setting) -> None:
    fleet.place(prefer=(ELM,))
    fleet.stop("web")
    elm = fleet.world.nodes["elm"]

    def cut(step: str, when: str) -> None:
        if (step, when) == ("start", "after"):
            elm.up = False
            raise Indeterminate("start: no whole answer came")

    fleet.world.hook = cut
    with fleet.runtime() as rt:
        starting.start(rt, "web")
    fleet.world.hook = peaceful

    go_over(fleet, 6)

    web = fleet.named("web")
    assert (web.node, web.state, web.unsettled) == (ELM, State.STOPPED, True)
    assert [name for name, _ in fleet.alive()] == ["elm"]
    elm.up = True
    go_over(fleet, after_s=400)
    assert fleet.named("web").state is State.RUNNING


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param("after", id="and it was placed"),
        pytest.param("before", id="and it never was"),
    ],
)
def test_is_settled_by_its_lease_and_placed_anew(fleet: Setting, moment: str) -> None:
    sent_ms = next(fleet.clock)
    place_and_lose(fleet, moment, lease_ms=LEASE_MS)
    old = fleet.instance("web")
    placed_at_ms = []
    fleet.world.hook = lambda step, when: placed_at_ms.extend(
        [next(fleet.clock)] if (step, when) == ("place", "before") else []
    )

    passes = go_over(fleet, 10)

    assert fleet.named("web").id != old.id
    assert placed_at_ms[0] > sent_ms + bound_ms(LEASE_MS)
    raised = {one.alert.kind for found in passes for one in found.raised}
    assert AlertKind.UNSETTLED not in raised
    fleet.world.heal()
    go_over(fleet, 2, after_s=400)
    assert [one for _, one in fleet.alive()] == [fleet.named("web").id]
    assert [hold.instance for hold in fleet.holds()] == [fleet.named("web").id]
    assert go_over(fleet)[0].is_quiet


@pytest.mark.parametrize("moment", ["after", "before"])
def test_is_placed_anew_once_it_is_attested_dead_and_ended_where_it_comes_back(
    fleet: Setting, moment: str
) -> None:
    place_and_lose(fleet, moment)
    with fleet.runtime() as rt:
        attesting.attest_dead(rt, "elm", replaced=False, accept=lambda _: None)

    go_over(fleet, 2)
    fleet.world.heal()
    go_over(fleet, 3, after_s=400)

    web = fleet.named("web")
    assert (web.state, [one for _, one in fleet.alive()]) == (State.RUNNING, [web.id])
    assert [hold.instance for hold in fleet.holds()] == [web.id]


def test_says_what_to_do_where_another_machine_has_its_node_s_name_by_now(fleet: Setting) -> None:
    place_and_lose(fleet)
    fleet.world.nodes["elm"] = FakeNode("f" * 32, boot_id="9" * 8, uptime_ms=10)
    with fleet.runtime() as rt:
        node_changes.rekey(rt, "elm", Tier.PAIRED, accept=lambda *_: None)

    (found,) = go_over(fleet)
    with fleet.runtime() as rt:
        attesting.attest_dead(rt, "elm", replaced=True, accept=lambda _: None)
    go_over(fleet, 2, after_s=400)

    (told,) = [one.alert for one in found.raised if one.alert.kind is AlertKind.UNSETTLED]
    assert "wlctl node attest-dead elm --replaced" in told.reason
    assert fleet.named("web").state is State.RUNNING
    assert len(fleet.alive()) == 1
    assert fleet.node("elm").liveness is Liveness.ALIVE
