"""A move by hand: one copy serves all the time; what fails or is killed leaves one that does."""

import itertools
from pathlib import Path

import pytest

from tests.fleet.sample import SEED, TIMEOUT_S, sample
from tests.flows.setting import Setting
from tests.simulation.points import killed_at, moments_of
from wlctl.errors import IllegalStep, UnknownName, UsageError
from wlctl.flows import moving, packages
from wlctl.flows.moving import Moved, Step, Way
from wlctl.flows.reconcile import reconcile
from wlctl.flows.signing import KeyChoice
from wlctl.ledger import instances
from wlctl.ledger.verify import Verified
from wlctl.model.actions import RefusalCode, Refused
from wlctl.model.ids import NodeName
from wlctl.model.instance import Instance, State

OAK = NodeName("oak")


@pytest.fixture
def running(setting: Setting) -> Setting:
    """Three nodes, and a copy on one of them."""
    setting.clock = itertools.count(next(setting.clock), 50)
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    setting.place(prefer=(NodeName("elm"),))
    return setting


def move(setting: Setting, way: Way | None = None) -> Moved:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        instance = instances.find(tx, "web")
    with setting.runtime() as rt:
        return moving.move(rt, instance, way or Way())


def go_over(setting: Setting, times: int = 1) -> None:
    for _ in range(times):
        for _ in range(1200):
            next(setting.clock)
        with setting.runtime() as rt:
            reconcile(rt)


def current(setting: Setting) -> list[Instance]:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        return instances.current(tx)


def most_alive(setting: Setting) -> list[int]:
    """Watch how many copies have a process, at every moment from now on."""
    seen: list[int] = []
    setting.world.hook = lambda _step, _moment: seen.append(len(setting.alive()))
    return seen


@pytest.mark.parametrize("to", [None, OAK])
def test_a_copy_moves_to_another_node_and_one_serves_all_the_time(
    running: Setting, to: NodeName | None
) -> None:
    old, seen = running.instance("web"), most_alive(running)

    moved = move(running, Way(to=to))

    assert (moved.step, moved.origin, moved.instance.name) == (Step.MOVED, "elm", "web")
    assert moved.node == (to or moved.node) != "elm"
    assert set(seen) == {1, 2}
    (now,) = current(running)
    assert (now.id, now.state, now.replaces) == (moved.instance.id, State.RUNNING, None)
    assert running.alive() == [(moved.node, now.id)]
    assert [hold.instance for hold in running.holds()] == [now.id]
    with running.runtime() as rt, rt.ledger.read() as tx:
        assert instances.get(tx, old.id).state is State.UNLOADED
    assert isinstance(running.verified(), Verified)


@pytest.mark.parametrize(
    ("options", "way"),
    [
        pytest.param({}, Way(stop_first=True), id="asked for"),
        pytest.param({"lease_ms": 300_000}, Way(), id="of a leased copy, always"),
    ],
)
def test_the_old_copy_is_proven_stopped_first_where_two_may_not_run(
    setting: Setting, options: dict[str, object], way: Way
) -> None:
    for name in ("elm", "oak"):
        setting.add_node(name)
    setting.place(prefer=(NodeName("elm"),), **options)
    seen = most_alive(setting)

    moved = move(setting, way)

    assert moved.step is Step.MOVED
    assert set(seen) == {0, 1}
    assert [name for name, _ in setting.alive()] == ["oak"]
    assert len(setting.holds()) == 1


def test_a_dry_run_says_where_it_would_go_and_changes_nothing(running: Setting) -> None:
    before = running.alive()

    moved = move(running, Way(to=OAK, dry_run=True))

    assert (moved.step, moved.node) == (Step.WOULD, "oak")
    assert running.alive() == before
    assert len(current(running)) == 1


def test_where_no_other_node_fits_nothing_is_done(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()

    assert move(setting).step is Step.NO_NODE
    assert move(setting, Way(dry_run=True)).step is Step.NO_NODE
    assert len(setting.alive()) == 1


@pytest.mark.parametrize("stop_first", [False, True])
def test_where_every_node_refuses_the_old_copy_serves(running: Setting, stop_first: bool) -> None:
    for name in ("oak", "yew"):
        running.world.nodes[name].refusal = Refused(RefusalCode.RUNTIME, "no curl")

    moved = move(running, Way(stop_first=stop_first))

    assert moved.step is Step.NOT_PLACED
    assert "no curl" in moved.detail
    assert [name for name, _ in running.alive()] == ["elm"]
    assert running.instance("web").state is State.UNLOADED, "of the last attempt"
    (now,) = current(running)
    assert (now.node, now.state) == ("elm", State.RUNNING)


@pytest.mark.parametrize("stop_first", [False, True])
def test_a_new_copy_that_does_not_come_up_is_ended(running: Setting, stop_first: bool) -> None:
    def crash(step: str, moment: str) -> None:
        if (step, moment) == ("status", "before"):
            for name in ("oak", "yew"):
                node = running.world.nodes[name]
                for iid in list(node.alive):
                    node.exit(iid, 3)

    running.world.hook = crash

    moved = move(running, Way(stop_first=stop_first, timeout_s=1))

    running.world.hook = lambda _step, _moment: None
    assert moved.step is Step.NOT_UP
    assert [name for name, _ in running.alive()] == ["elm"]
    assert [one.node for one in current(running)] == ["elm"]
    go_over(running)
    assert len(running.holds()) == 1


def test_an_old_copy_that_is_not_proven_gone_has_lost_its_name_and_is_ended_later(
    running: Setting,
) -> None:
    old = running.instance("web")
    running.world.nodes["elm"].unkillable.add(old.id)

    moved = move(running)

    assert moved.step is Step.NOT_GONE
    with running.runtime() as rt, rt.ledger.read() as tx:
        assert instances.find(tx, "web").id == moved.instance.id
    running.world.nodes["elm"].unkillable.clear()
    go_over(running, 2)
    assert [one.id for one in current(running)] == [moved.instance.id]
    assert current(running)[0].state is State.RUNNING


def test_an_old_copy_that_is_not_proven_stopped_begins_no_other(running: Setting) -> None:
    old = running.instance("web")
    running.world.nodes["elm"].unkillable.add(old.id)

    moved = move(running, Way(stop_first=True))

    assert moved.step in (Step.NOT_STOPPED, Step.DOWN)
    assert [name for name, _ in running.alive()] == ["elm"]
    running.world.nodes["elm"].unkillable.clear()
    go_over(running, 3)
    assert [(one.node, one.state) for one in current(running)] == [("elm", State.RUNNING)]
    assert len(running.alive()) == 1


@pytest.mark.parametrize(
    ("prepare", "way", "failure"),
    [
        pytest.param("", Way(to=NodeName("elm")), UsageError, id="to where it is"),
        pytest.param("", Way(to=NodeName("nix")), UnknownName, id="to no node"),
        pytest.param("stop", Way(), IllegalStep, id="what does not run"),
    ],
)
def test_what_cannot_be_moved_is_refused_and_nothing_is_done(
    running: Setting, prepare: str, way: Way, failure: type[Exception]
) -> None:
    if prepare:
        running.stop("web")
    before = running.alive()

    with pytest.raises(failure):
        move(running, way)

    assert running.alive() == before
    assert len(current(running)) == 1


def test_a_copy_that_was_ordered_for_its_node_is_moved_only_by_name(setting: Setting) -> None:
    for name in ("elm", "oak"):
        setting.add_node(name)
    setting.place(pin=NodeName("elm"))

    with pytest.raises(UsageError, match="ordered for elm alone"):
        move(setting)
    assert move(setting, Way(to=OAK)).step is Step.MOVED


def test_a_copy_whose_data_is_kept_on_its_node_is_not_moved(setting: Setting) -> None:
    described = setting.package / "workload.toml"
    text = described.read_text().replace("[resources]", "[data]\nkeep = true\n[resources]")
    described.write_text(text)
    with setting.runtime() as rt:
        packages.build(setting.package)
        packages.sign(rt, setting.package, KeyChoice(setting.key))
    for name in ("elm", "oak"):
        setting.add_node(name)
    setting.place(prefer=(NodeName("elm"),))

    with pytest.raises(UsageError, match="would stay behind"):
        move(setting, Way(to=OAK))
    assert [name for name, _ in setting.alive()] == ["elm"]


@pytest.mark.parametrize("verb", ["stop", "unload"])
def test_an_operator_who_ends_a_copy_that_is_being_moved_ends_it(
    running: Setting, verb: str
) -> None:
    def end_meanwhile(step: str, moment: str) -> None:
        if (step, moment) == ("place", "after"):
            running.world.hook = lambda _step, _moment: None
            getattr(running, verb)("web")

    running.world.hook = end_meanwhile

    moved = move(running)

    assert moved.step is Step.NOT_UP
    go_over(running, 2)
    assert running.alive() == []
    assert running.holds() == ()


def test_a_pass_beside_a_move_leaves_its_new_copy_alone(running: Setting) -> None:
    def pass_meanwhile(step: str, moment: str) -> None:
        if (step, moment) == ("place", "after"):
            running.world.hook = lambda _step, _moment: None
            go_over(running)

    running.world.hook = pass_meanwhile

    assert move(running).step is Step.MOVED
    assert len(current(running)) == 1


@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("stop_first", [False, True])
def test_a_move_killed_at_any_moment_leaves_one_copy_that_serves(
    running: Setting, tmp_path: Path, stop_first: bool
) -> None:
    way = Way(stop_first=stop_first)
    moments = moments_of(running, lambda one: move(one, way), tmp_path / "whole")

    for number in sample(range(1, len(moments) + 1), 12, salt=f"move {stop_first}"):
        where = f"killed at {number}, {moments[number - 1]} (WLCTL_SEED={SEED})"
        left = killed_at(running, lambda one: move(one, way), number, tmp_path / f"cut-{number}")

        go_over(left, 3)

        (now,) = current(left)
        assert (now.name, now.state, now.replaces) == ("web", State.RUNNING, None), where
        assert left.alive() == [(now.node, now.id)], where
        assert [hold.instance for hold in left.holds()] == [now.id], where
        assert left.open_operations() == [], where
        assert isinstance(left.verified(), Verified), where
