"""A pass beside a verb, each where it hurts most: what was asked for last is what is."""

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.conftest import write_package
from tests.flows.going_over import TICK_MS, at, go_over, let_pass, lose_web
from tests.flows.setting import Setting
from tests.simulation.points import killed_at, moments_of
from tests.world import peaceful
from wlctl.cli.moving import lines_of
from wlctl.errors import Overtaken
from wlctl.flows import draining, ending, moving, packages, starting
from wlctl.flows.ending import End
from wlctl.flows.moving import Moved, Step, Way
from wlctl.flows.signing import KeyChoice
from wlctl.flows.start_intents import Begin
from wlctl.model.ids import NodeName
from wlctl.model.instance import Desired, Instance, State

ELM = NodeName("elm")
SECONDS = 60


def move(setting: Setting, way: Way) -> Moved:
    with setting.runtime() as rt:
        return moving.move(rt, moving.find(rt, "web"), way)


@pytest.fixture
def running(setting: Setting) -> Setting:
    """Three nodes, and a copy on one of them."""
    setting.clock = itertools.count(next(setting.clock), TICK_MS)
    setting.busy_timeout_s = 20
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    setting.place(prefer=(ELM,))
    return setting


@pytest.mark.parametrize(
    ("way", "step"),
    [
        pytest.param(Way(), "place", id="while its new copy comes up"),
        pytest.param(Way(stop_first=True), "stop", id="while it stops the old copy first"),
        pytest.param(Way(stop_first=True), "place", id="while its new copy comes up alone"),
    ],
)
def test_a_pass_that_runs_beside_a_move_undoes_nothing_of_it(
    running: Setting, way: Way, step: str
) -> None:
    """The pass goes on while the move does, and may wait for it."""
    beside = threading.Thread(target=lambda: go_over(running, after_s=1))
    most = []

    def hook(here: str, when: str) -> None:
        most.append(len(running.alive()))
        if (here, when) == (step, "before") and beside.ident is None:
            beside.start()
            beside.join(0.5)  # it is through by then, or waits for us

    running.world.hook = hook
    moved = move(running, way)
    beside.join(SECONDS)
    running.world.hook = peaceful
    go_over(running, 2)

    assert moved.step is Step.MOVED
    assert [name for name, _ in running.alive()] == [moved.node]
    assert max(most) == (1 if way.stop_first else 2)


def test_where_a_new_copy_is_not_proven_gone_the_old_one_stays_stopped(running: Setting) -> None:
    def cling(step: str, moment: str) -> None:
        if (step, moment) == ("place", "after"):
            for name in ("oak", "yew"):
                node = running.world.nodes[name]
                node.unkillable |= set(node.alive)
                node.health |= dict.fromkeys(node.alive, "unhealthy")

    running.world.hook = cling
    moved = move(running, Way(stop_first=True, timeout_s=0.0))
    with running.runtime() as rt:
        again = starting.start(rt, "web")
    found = go_over(running)

    assert moved.step is Step.UNSETTLED
    assert next(lines_of(moved)).startswith("web is stopped on elm")
    assert again.begin is Begin.ILLEGAL
    assert len(running.alive()) == 1
    assert not found[0].is_quiet
    for node in running.world.nodes.values():
        node.unkillable.clear()
    go_over(running, 2, after_s=300)
    assert [name for name, _ in running.alive()] == ["elm"]
    assert go_over(running)[0].is_quiet


def test_an_operator_who_stops_what_a_cut_off_move_has_stopped_means_it(
    running: Setting, tmp_path: Path
) -> None:
    way = Way(stop_first=True)
    moments = moments_of(running, lambda one: move(one, way), tmp_path / "whole")
    stopped = moments.index(("stop", "after"))
    commits = [number for number, (step, _) in enumerate(moments, 1) if step == "commit"]
    proven = [number for number in commits if number > stopped][1]  # a checkpoint is left first
    left = killed_at(running, lambda one: move(one, way), proven, tmp_path / "cut")
    assert left.instance("web").state is State.STOPPED

    left.stop("web")
    go_over(left, 3)

    assert left.alive() == []
    assert left.instance("web").state is State.STOPPED


def test_an_operator_who_stops_a_copy_while_a_move_has_it_stopped_means_it(
    running: Setting,
) -> None:
    at(running, "offer", "before", lambda: running.stop("web"))

    moved = move(running, Way(stop_first=True))
    go_over(running, 2)

    assert moved.step is not Step.MOVED
    assert running.alive() == []


def test_an_operator_who_stops_what_a_drain_has_stopped_means_it(running: Setting) -> None:
    running.place(name="fixed", pin=ELM)
    with running.runtime() as rt:
        draining.drain(rt, "elm", stop_rest=True)
    running.stop("fixed")

    with running.runtime() as rt:
        assert draining.resume(rt, ELM) == []


def test_an_operators_stop_wins_over_a_pass_that_was_about_to_start(running: Setting) -> None:
    """The pass has read that the copy shall run, and has yet to ask for its turn."""
    let_pass(running, 60)
    running.world.nodes["elm"].reboot()
    at(running, "status", "before", lambda: at(running, "commit", "after", lost_then_stopped))

    def lost_then_stopped() -> None:
        if running.instance("web").state is State.LOST:
            running.stop("web")
        else:
            at(running, "commit", "after", lost_then_stopped)

    go_over(running, 2)

    assert running.alive() == []
    assert running.instance("web").desired is Desired.STOPPED


@pytest.mark.parametrize("act", [starting.start_one, ending.stop_one, ending.unload_one])
def test_what_a_pass_has_seen_counts_only_until_somebody_asks_for_something(
    running: Setting, act: Callable[..., object]
) -> None:
    seen = running.instance("web")
    running.stop("web")

    with running.runtime() as rt, pytest.raises(Overtaken):
        act(rt, seen, as_seen=True)
    assert running.instance("web").state is State.STOPPED


def use_job(setting: Setting, kind: str, more: str = "") -> None:
    """Let the package that is placed from here on be a job."""
    job = setting.package.with_name("job")
    write_package(job, name="job")
    text = (job / "workload.toml").read_text().replace('"service"', f'"{kind}"')
    (job / "workload.toml").write_text(text + more)
    with setting.runtime() as rt:
        packages.build(job)
        packages.sign(rt, job, KeyChoice(setting.key))
    setting.package = job


def jobs(setting: Setting, kind: str, more: str = "") -> tuple[Instance, Instance]:
    """Place two jobs, and let both of them finish."""
    use_job(setting, kind, more)
    setting.place(name="one", prefer=(ELM,))
    setting.place(name="two", prefer=(ELM,))
    for name in ("one", "two"):
        setting.world.nodes["elm"].exit(setting.instance(name).id, 0)
    go_over(setting)
    return setting.instance("one"), setting.instance("two")


def test_an_interval_job_that_was_stopped_while_others_were_started_is_not_started(
    running: Setting,
) -> None:
    _, two = jobs(running, "interval", '[schedule]\nevery = "1h"\n')
    let_pass(running, 3600)
    at(running, "start", "before", lambda: running.stop("two"))

    go_over(running)

    assert running.instance("one").generation == 2
    assert running.instance("two").generation == two.generation
    assert running.instance("two").desired is Desired.STOPPED


def test_a_job_that_was_started_again_while_others_were_unloaded_is_not_unloaded(
    running: Setting,
) -> None:
    def start_again() -> None:
        with running.runtime() as rt:
            starting.start(rt, "two")

    jobs(running, "job")
    let_pass(running, 8 * 24 * 3600)
    at(running, "unload", "before", start_again)

    go_over(running)

    assert running.instance("one").state is State.UNLOADED
    assert running.instance("two").state is State.RUNNING


def test_a_lost_copy_is_not_started_beside_the_one_that_takes_its_place(running: Setting) -> None:
    lose_web(running)
    begun = []

    def start_the_old() -> None:
        elm = running.world.nodes["elm"]
        elm.up = True
        elm.reboot()
        with running.runtime() as rt:
            begun.append(starting.start(rt, "web").begin)

    at(running, "place", "after", start_the_old)
    go_over(running, after_s=40)

    assert begun == [Begin.ILLEGAL]
    assert len(running.alive()) == 1


def test_no_other_copy_is_begun_beside_a_lost_one_that_is_being_started(running: Setting) -> None:
    lose_web(running)
    elm = running.world.nodes["elm"]

    def pass_meanwhile() -> None:
        elm.up = False  # for whoever connects now
        go_over(running, after_s=40)

    elm.up = True
    elm.reboot()
    at(running, "start", "before", pass_meanwhile)
    with running.runtime() as rt:
        begun = starting.start(rt, "web")

    assert begun.begin is Begin.DONE
    assert [name for name, _ in running.alive()] == ["elm"]


def test_nothing_is_called_stopped_while_the_copy_that_takes_its_place_runs(
    running: Setting,
) -> None:
    lose_web(running)
    ended = []

    def stop_the_old() -> None:
        running.world.nodes["elm"].up = True
        ended.append(running.stop("web").end)

    at(running, "place", "after", stop_the_old)
    go_over(running, after_s=40)

    assert ended == [End.UNPROVEN]
    go_over(running, 2)
    assert running.alive() == []
    assert running.stop("web").end is End.ALREADY


@pytest.mark.parametrize("kind", ["service", "job"])
def test_a_copy_that_was_stopped_while_a_pass_was_about_to_give_it_up_is_stopped(
    running: Setting, kind: str
) -> None:
    """Its node was started anew after its supervisor had ended it, and the pass has read that."""
    elm, web = running.world.nodes["elm"], running.instance("web")
    policy = elm.policies[web.id]
    if kind == "job":
        running.unload("web")
        use_job(running, kind)
        running.place(name="web", prefer=(ELM,))
        web = running.instance("web")
    elm.policies[web.id] = policy
    elm.end_before_next(web.id)
    elm.reboot()
    ended = []

    def stop_it() -> None:
        if running.instance("web").state is State.RESTARTING:
            ended.append(running.stop("web").end)
        else:
            at(running, "commit", "after", stop_it)

    at(running, "status", "before", lambda: at(running, "commit", "after", stop_it))
    go_over(running)

    assert ended == [End.DONE]
    assert running.instance("web").state is State.STOPPED
    assert running.alive() == []
