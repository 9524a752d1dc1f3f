"""Ways that could lead to two copies of one thing, or back from a stop: each of them is shut."""

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.going_over import TICK_MS, at, go_over, let_pass, lose_web
from tests.flows.setting import Killed, Setting
from tests.simulation.points import killed_at, moments_of
from tests.world import FakeNode, lost_at, peaceful
from wlctl.errors import ConnectFailed, Indeterminate, Overtaken
from wlctl.flows import (
    acting,
    attesting,
    cut_off,
    draining,
    looking,
    moving,
    node_changes,
    starting,
    succession,
)
from wlctl.flows.ending import End, Ending
from wlctl.flows.moving import Moved, Step, Way
from wlctl.flows.runtime import Runtime
from wlctl.flows.start_intents import Begin, Beginning
from wlctl.ledger import instances
from wlctl.lifecycle.table import Act
from wlctl.model.actions import RefusalCode, Refused
from wlctl.model.alert import AlertKind
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.node import Liveness, Node, Tier

ELM = NodeName("elm")
BUSY = Refused(RefusalCode.BUSY, "another action holds the node")


@pytest.fixture
def running(setting: Setting) -> Setting:
    """Three nodes, and a copy on one of them."""
    setting.clock = itertools.count(next(setting.clock), TICK_MS)
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    setting.place(prefer=(ELM,))
    return setting


def where(setting: Setting) -> list[str]:
    return [name for name, _ in setting.alive()]


def replace_elm(setting: Setting, *, uptime_ms: int = 10) -> None:
    """Take another machine for the node; the old one runs on, and nobody can ask it."""
    setting.world.nodes["old"] = setting.world.nodes.pop("elm")
    let_pass(setting, 60)
    setting.world.nodes["elm"] = FakeNode("f" * 32, boot_id="9" * 8, uptime_ms=uptime_ms)
    with setting.runtime() as rt:
        node_changes.rekey(rt, "elm", Tier.PAIRED, accept=lambda *_: None)


def test_the_boot_of_another_machine_proves_nothing_of_what_ran_on_the_one_before(
    running: Setting,
) -> None:
    """A node is rekeyed to a machine that was just turned on; the old one still runs the copy."""
    go_over(running)
    replace_elm(running)

    passes = go_over(running, 3)

    assert where(running) == ["old"]
    assert [hold.name for hold in running.holds()] == ["web"]
    (raised,) = passes[0].raised
    assert raised.alert.kind is AlertKind.STATE_LOST
    assert "wlctl node attest-dead elm --replaced" in raised.alert.reason


def test_that_another_machine_falls_silent_makes_nothing_of_the_one_before_lost(
    running: Setting,
) -> None:
    go_over(running)
    replace_elm(running)
    running.world.nodes["elm"].up = False

    go_over(running, 5)

    assert running.node("elm").liveness is Liveness.DEAD
    assert where(running) == ["old"]


@pytest.mark.parametrize("uptime_ms", [10, 10_000_000])
@pytest.mark.parametrize("was_dead", [False, True])
def test_what_ran_on_a_machine_that_was_vouched_for_is_placed_anew(
    running: Setting, *, uptime_ms: int, was_dead: bool
) -> None:
    """Whether it was lost before its node was rekeyed, or found missing after."""
    go_over(running)
    if was_dead:
        for name in ("oak", "yew"):
            running.world.nodes[name].refusal = BUSY
        running.world.nodes["elm"].up = False
        go_over(running, 4)
    replace_elm(running, uptime_ms=uptime_ms)
    del running.world.nodes["old"]
    go_over(running)
    assert where(running) == []
    for node in running.world.nodes.values():
        node.refusal = None

    with running.runtime() as rt:
        attesting.attest_dead(rt, "elm", replaced=True, accept=lambda _: None)
    go_over(running, 2, after_s=300)

    assert len(running.alive()) == 1
    assert running.named("web").state is State.RUNNING
    assert go_over(running)[0].is_quiet


def between_candidates(setting: Setting, act: Callable[[], object]) -> None:
    """Let something happen when the first candidate has refused, and the next is not tried yet."""
    others = [setting.world.nodes[name] for name in ("oak", "yew")]
    for node in others:
        node.refusal = BUSY

    def refused() -> None:
        for node in others:
            node.refusal = None
        act()

    at(setting, "place", "after", lambda: at(setting, "commit", "after", refused))


def test_no_other_candidate_is_tried_once_the_lost_copy_was_started_again(
    running: Setting,
) -> None:
    lose_web(running)
    begun = []

    def start_the_old() -> None:
        elm = running.world.nodes["elm"]
        elm.up = True
        elm.reboot()
        with running.runtime() as rt:
            begun.append(starting.start(rt, "web").begin)

    between_candidates(running, start_the_old)
    (found,) = go_over(running, after_s=40)

    assert begun == [Begin.DONE]
    assert AlertKind.MOVE_FAILED not in {one.alert.kind for one in found.raised}
    assert where(running) == ["elm"]


@pytest.mark.parametrize("verb", [Setting.stop, Setting.unload])
def test_no_other_candidate_is_tried_once_the_lost_copy_was_ended(
    running: Setting, verb: Callable[[Setting, str], Ending]
) -> None:
    lose_web(running)
    ended = []

    def end_the_old() -> None:
        running.world.nodes["elm"].up = True
        ended.append(verb(running, "web").end)

    between_candidates(running, end_the_old)
    go_over(running, after_s=40)

    assert ended == [End.DONE]
    assert running.alive() == []


@pytest.mark.parametrize("stop_first", [False, True])
def test_no_other_candidate_of_a_move_is_tried_once_its_copy_was_stopped(
    running: Setting, *, stop_first: bool
) -> None:
    ended = []
    between_candidates(running, lambda: ended.append(running.stop("web").end))
    with running.runtime() as rt:
        moved = moving.move(rt, moving.find(rt, "web"), Way(stop_first=stop_first))

    assert moved.step is Step.NOT_PLACED
    assert ended in ([End.DONE], [End.ALREADY])
    assert running.alive() == []
    go_over(running, 2)
    assert running.alive() == []


def lose_its_new_copy_too(setting: Setting) -> None:
    """Leave a lost copy, and one that was to take its place, of which nobody knows if it runs."""
    lose_web(setting)

    def cut(step: str, moment: str) -> None:
        if (step, moment) == ("place", "after"):
            setting.world.nodes["oak"].up = setting.world.nodes["yew"].up = False
            raise Indeterminate("place: no whole answer came")

    setting.world.hook = cut
    go_over(setting, after_s=40)
    setting.world.hook = peaceful


def test_nothing_is_placed_under_a_name_while_a_copy_that_stood_in_for_it_is_not_settled(
    running: Setting,
) -> None:
    lose_its_new_copy_too(running)
    with running.runtime() as rt:
        running.unload("web")
        attesting.attest_dead(rt, "elm", replaced=False, accept=lambda _: None)
    running.world.nodes["elm"].reboot()
    assert len(running.alive()) == 1
    for name in ("oak", "yew"):
        node = running.world.nodes[name]
        node.up = not node.alive

    with pytest.raises(Indeterminate):
        running.place()

    assert len(running.alive()) == 1
    running.world.heal()
    assert running.place().copies[0].is_placed
    assert len(running.alive()) == 1
    go_over(running, 2)
    assert len(running.alive()) == 1


def test_a_node_is_not_drained_while_a_copy_on_it_is_still_to_be_started(running: Setting) -> None:
    """It was stopped, and its node refused to start it: the next pass would, drained or not."""
    running.stop("web")
    elm = running.world.nodes["elm"]
    elm.refusal = BUSY
    with running.runtime() as rt:
        assert starting.start(rt, "web").begin is Begin.REFUSED
    elm.refusal = None

    with running.runtime() as rt:
        drained = draining.drain(rt, "elm")
        stopped = draining.drain(rt, "elm", stop_rest=True)
    go_over(running, 2, after_s=400)

    assert [one.instance.name for one in drained.left] == ["web"]
    assert (stopped.left, where(running)) == ((), [])
    with running.runtime() as rt:
        assert [one.begin for one in draining.resume(rt, ELM)] == [Begin.DONE]


def test_a_drain_that_stops_the_rest_keeps_nothing_that_was_asked_to_be_unloaded(
    running: Setting,
) -> None:
    """The unload comes while the drain tries other nodes, and is not proven."""
    elm = running.world.nodes["elm"]
    elm.unkillable = set(elm.alive)
    for name in ("oak", "yew"):
        running.world.nodes[name].refusal = BUSY
    ended = []
    at(running, "place", "after", lambda: ended.append(running.unload("web").end))

    with running.runtime() as rt:
        drained = draining.drain(rt, "elm", stop_rest=True)

    assert ended == [End.UNPROVEN]
    assert [one.instance.name for one in drained.left] == ["web"]
    assert running.named("web").desired is Desired.UNLOADED
    elm.unkillable.clear()
    go_over(running, after_s=400)
    assert (running.alive(), running.holds()) == ([], ())


def cut_unloads(setting: Setting, *, first: Callable[[str, str], None] = peaceful) -> None:
    """Let no unload come through."""

    def hook(step: str, moment: str) -> None:
        first(step, moment)
        if (step, moment) == ("unload", "before"):
            raise ConnectFailed("nothing listens there")

    setting.world.hook = hook


@pytest.mark.parametrize("stop_first", [False, True])
def test_a_new_copy_that_has_failed_stands_in_the_way_until_it_is_proven_gone(
    running: Setting, *, stop_first: bool
) -> None:
    """Its leader has ended, and what else it began may live on: its node cannot be asked."""

    def fail(step: str, moment: str) -> None:
        if (step, moment) == ("place", "after"):
            for name in ("oak", "yew"):
                node = running.world.nodes[name]
                for one in list(node.alive):
                    node.exit(one, 1)

    cut_unloads(running, first=fail)
    with running.runtime() as rt:
        moved = moving.move(rt, moving.find(rt, "web"), Way(stop_first=stop_first))
    stopped = running.stop("web")

    assert moved.step is Step.UNSETTLED
    assert (stopped.end, running.alive()) == (End.UNPROVEN, [])
    with running.runtime() as rt:
        assert starting.start(rt, "web").begin is Begin.ILLEGAL
    running.world.hook = peaceful
    go_over(running, 2, after_s=400)
    assert running.stop("web").end is End.ALREADY


def lost_beside_another(setting: Setting) -> None:
    """Leave a lost copy on the last node, and one elsewhere that nobody knows of; both run."""
    for name in ("elm", "oak"):
        setting.world.nodes[name].refusal = BUSY
    setting.unload("web")
    setting.place(prefer=(NodeName("yew"),))
    for name in ("elm", "oak"):
        setting.world.nodes[name].refusal = None
    go_over(setting)
    setting.world.nodes["yew"].up = False
    go_over(setting, 3, after_s=40)

    def cut(step: str, moment: str) -> None:
        if (step, moment) == ("place", "after"):
            for name in ("elm", "oak"):
                setting.world.nodes[name].up = False
            raise Indeterminate("place: no whole answer came")

    setting.world.hook = cut
    go_over(setting, after_s=40)
    setting.world.heal()
    assert len(setting.alive()) == 2


def test_a_lost_copy_that_is_back_when_its_new_one_is_found_to_run_gives_way_at_once(
    running: Setting,
) -> None:
    lost_beside_another(running)

    (found,) = go_over(running)

    assert Act.END_LOST in {one.act for one in found.done}
    assert len(running.alive()) == 1
    go_over(running, 2)
    assert where(running) != ["yew"]
    assert running.named("web").state is State.RUNNING


def act_on(rt: Runtime, node: Node, instance: Instance, act: Act) -> None:
    """Carry out what a pass has decided about a copy, by a look of now."""
    with rt.connect(node.address) as session:
        look = looking.look(rt, session, node)
    acting.carry_out(rt, node, instance, act, look)


def test_a_lost_copy_is_not_taken_back_once_another_copy_of_its_order_may_run(
    running: Setting,
) -> None:
    """The pass had read that there is none, when the other one was written down."""
    lose_its_new_copy_too(running)
    running.world.nodes["elm"].up = True
    lost = running.named("web")

    with running.runtime() as rt, pytest.raises(Overtaken):
        act_on(rt, running.node("elm"), lost, Act.ADOPT)

    assert running.named("web").state is State.LOST


def test_a_lost_copy_that_was_stopped_meanwhile_does_not_give_way(running: Setting) -> None:
    """The pass had read that it is to run, and that another copy of its order does."""
    lose_web(running)
    running.world.nodes["elm"].up = True
    lost = running.named("web")
    running.stop("web")

    with running.runtime() as rt, pytest.raises(Overtaken):
        act_on(rt, running.node("elm"), lost, Act.END_LOST)

    assert running.named("web").state is State.STOPPED


@pytest.mark.parametrize("act", [Act.DEPART, Act.PROVE_MISSING])
def test_what_a_verb_is_at_work_on_is_not_closed_by_what_its_node_said_before(
    running: Setting, act: Act
) -> None:
    """Its node does not list it any more, and a stop of it had begun when the pass gets there."""
    elm, web = running.world.nodes["elm"], running.instance("web")
    elm.unkillable.add(web.id)
    assert running.stop("web").end is End.UNPROVEN
    elm.reboot()
    elm.staged.clear()
    if act is Act.DEPART:
        elm.departed[web.id] = 1
    at(running, "stop", "before", die)
    with pytest.raises(Killed):
        running.stop("web")
    stopping = running.instance("web")

    with running.runtime() as rt:
        act_on(rt, running.node("elm"), stopping, act)

    assert running.instance("web") == stopping
    assert running.open_operations() == ["stop"]


def die() -> None:
    raise Killed


def test_what_another_machine_says_of_an_unload_closes_nothing(running: Setting) -> None:
    """It answers under the node's name between the look and the question."""
    elm, web = running.world.nodes["elm"], running.instance("web")
    elm.reboot()
    elm.staged.clear()
    elm.departed[web.id] = 1
    at(running, "prove", "before", lambda: setattr(elm, "node_id", "b" * 32))

    go_over(running)

    assert running.instance("web").state is State.RUNNING
    assert [hold.name for hold in running.holds()] == ["web"]


def test_what_cannot_be_started_again_on_its_node_is_placed_elsewhere_only_once_it_is_proven_gone(
    running: Setting,
) -> None:
    """Its node was started anew, and is silent again before anything of the copy was read."""
    go_over(running)
    running.world.nodes["elm"].reboot()
    running.world.hook = lost_at("stop", "before")

    go_over(running)

    assert running.named("web").state is State.LOST
    assert running.alive() == []
    running.world.hook = peaceful
    go_over(running, after_s=400)
    assert where(running) == ["elm"]


def test_a_new_copy_that_got_the_name_meanwhile_is_not_given_up_for_being_unwell(
    running: Setting,
) -> None:
    """The old one's node died while the new one was waited for, and a pass has seen to that."""

    def lose_the_old() -> None:
        for name in ("oak", "yew"):
            node = running.world.nodes[name]
            node.health |= dict.fromkeys(node.alive, "unhealthy")
        running.world.nodes["elm"].up = False
        go_over(running, 4, after_s=40)

    go_over(running)
    at(running, "place", "after", lambda: at(running, "status", "before", lose_the_old))
    with running.runtime() as rt:
        moved = moving.move(rt, moving.find(rt, "web"), Way(timeout_s=0.0))

    assert moved.step is Step.UNSETTLED
    new = running.named("web")
    assert (new.desired, new.node in ("oak", "yew")) == (Desired.RUNNING, True)
    assert (new.node, new.id) in running.alive()


@pytest.mark.parametrize("verb", [Setting.stop, Setting.unload])
def test_what_was_ended_while_a_drain_was_taken_back_is_not_started(
    running: Setting, verb: Callable[[Setting, str], Ending]
) -> None:
    """The other copy was started first; an unload that does not come through is one, too."""
    running.place(name="fixed", pin=ELM)
    running.place(name="other", pin=ELM)
    with running.runtime() as rt:
        draining.drain(rt, "elm", stop_rest=True)

    def end_the_other() -> None:
        cut_unloads(running)
        (waiting,) = (one for one in ("fixed", "other") if running.instance(one).generation == 1)
        verb(running, waiting)
        running.world.hook = peaceful

    at(running, "start", "before", end_the_other)
    with running.runtime() as rt:
        begun = draining.resume(rt, ELM)

    assert len(running.alive()) == 2  # web, and the one of the two that was started before
    assert [one.begin for one in begun] == [Begin.DONE]


def test_what_is_stopped_while_a_move_that_failed_starts_it_again_stays_stopped(
    running: Setting,
) -> None:
    for name in ("oak", "yew"):
        running.world.nodes[name].refusal = BUSY

    def stop_it() -> None:
        web = running.named("web")
        if (web.state, web.desired) == (State.STOPPED, Desired.RUNNING):
            running.stop("web")
        else:
            at(running, "commit", "after", stop_it)

    at(running, "commit", "after", stop_it)
    with running.runtime() as rt, pytest.raises(Overtaken):
        moving.move(rt, moving.find(rt, "web"), Way(stop_first=True))

    assert running.alive() == []
    go_over(running, 2)
    assert running.alive() == []


def before_turns(rt: Runtime, act: Callable[[], object]) -> None:
    """Let something happen right before each turn that a command asks for."""
    plain = rt.ledger.locks.try_lock

    def try_lock(scope: str) -> bool:
        act()
        return plain(scope)

    rt.ledger.locks.try_lock = try_lock  # type: ignore[method-assign] # to come in between


def cut_off_when_up(setting: Setting, directory: Path) -> tuple[Setting, InstanceId]:
    """Kill a move when its new copy is up, and has not got the name; give what is left, and it."""
    moments = moments_of(setting, move_web, directory / "whole")
    up = max(n for n, (step, _) in enumerate(moments, 1) if step == "status") + 1
    left = killed_at(setting, move_web, up, directory / "cut")
    (new,) = (one for _, one in left.alive() if one != left.named("web").id)
    return left, new


def test_a_pass_gives_up_no_new_copy_that_has_the_name_by_the_time_its_move_has_ended(
    running: Setting, tmp_path: Path
) -> None:
    """The pass has read that it stands beside the old one, and waits for the end of the move."""
    left, new = cut_off_when_up(running, tmp_path)
    old = left.named("web")

    def end_the_move() -> None:
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            succession.give_way(tx, instances.get(tx, old.id))
            instances.change(tx, new, replaces=None)

    with left.runtime() as rt:
        before_turns(rt, end_the_move)
        done = cut_off.let_go(rt)

    assert done == []
    assert (left.named("web").id, left.named("web").desired) == (new, Desired.RUNNING)


def test_what_stood_in_for_a_copy_whose_name_is_anothers_by_now_is_ended(
    running: Setting, tmp_path: Path
) -> None:
    """A cut off move has left it, an operator has stopped it, and the old one was unloaded."""
    left, new = cut_off_when_up(running, tmp_path)
    assert left.stop(new).end is End.DONE
    assert left.unload("web").end is End.DONE
    assert left.place().copies[0].is_placed

    go_over(left, 2)

    with left.runtime() as rt, rt.ledger.read() as tx:
        assert instances.get(tx, new).state is State.UNLOADED
    assert len(left.alive()) == 1


def move_web(setting: Setting) -> Moved:
    with setting.runtime() as rt:
        return moving.move(rt, moving.find(rt, "web"), Way())


@pytest.mark.parametrize("verb", [Setting.stop, Setting.unload])
def test_what_was_placed_anew_can_be_ended_where_it_was(
    running: Setting, verb: Callable[[Setting, str], Ending]
) -> None:
    """It is only ever ended, whichever word is used for it."""
    old = running.instance("web")
    lose_web(running)
    go_over(running, after_s=40)
    running.world.nodes["elm"].up = True
    assert len(running.alive()) == 2

    ended = verb(running, old.id)

    assert (ended.end, ended.instance.state) == (End.DONE, State.UNLOADED)
    assert running.open_operations() == []
    assert len(running.alive()) == 1


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda one: one.unload("web"), id="unload"),
        pytest.param(lambda one: one.stop("web"), id="stop"),
        pytest.param(lambda one: begin(one, starting.start), id="start"),
    ],
)
def test_what_was_on_the_machine_before_says_nothing_against_the_one_that_is_there(
    running: Setting, ask: Callable[[Setting], object]
) -> None:
    replace_elm(running)

    ask(running)

    elm = running.node("elm")
    assert (elm.liveness, elm.failure, elm.failed_contacts) == (Liveness.ALIVE, "", 0)


def begin(setting: Setting, verb: Callable[[Runtime, str], Beginning]) -> Beginning:
    with setting.runtime() as rt:
        return verb(rt, "web")


def test_no_new_copy_is_placed_beside_an_old_one_that_was_started_again_meanwhile(
    running: Setting,
) -> None:
    """A move has stopped it first, and an operator starts it before the new one is written down."""
    begun: list[Begin] = []

    def start_it() -> None:
        if not begun and running.named("web").state is State.STOPPED:
            begun.append(begin(running, starting.start).begin)

    with running.runtime() as rt:
        before_turns(rt, start_it)
        moved = moving.move(rt, moving.find(rt, "web"), Way(stop_first=True))

    assert (moved.step, begun) == (Step.NOT_PLACED, [Begin.DONE])
    assert where(running) == ["elm"]


def test_what_a_drain_has_stopped_is_not_started_by_who_lets_go_of_a_move(
    running: Setting,
) -> None:
    running.place(name="fixed", pin=ELM)
    with running.runtime() as rt:
        draining.drain(rt, "elm", stop_rest=True)
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            assert not cut_off.want_again(tx, running.named("fixed"))

    assert running.named("fixed").desired is Desired.STOPPED


def test_a_node_is_not_drained_while_a_stopped_copy_on_it_may_have_been_started(
    running: Setting,
) -> None:
    """The answer of the start was lost, and the stop after it did not come through."""
    running.stop("web")
    running.world.hook = lost_at("start", "after")
    assert begin(running, starting.start).begin is Begin.INDETERMINATE
    running.world.hook = lost_at("stop", "before")
    assert running.stop("web").end is End.UNREACHABLE
    running.world.hook = peaceful

    with running.runtime() as rt:
        drained = draining.drain(rt, "elm", stop_rest=True)

    assert [one.instance.name for one in drained.left] == ["web"]
    assert where(running) == ["elm"]


def test_a_place_is_not_taken_while_a_verb_is_at_work_on_the_copy_that_has_it(
    running: Setting,
) -> None:
    """A stop of the lost copy has begun, and dies, when the new one was found to run."""
    lose_web(running)
    old, cut = running.named("web"), []

    def stop_the_old() -> None:
        with running.runtime() as rt, rt.ledger.read() as tx:
            (new,) = instances.standing_in(tx)
        if new.state is not State.RUNNING:
            at(running, "commit", "after", stop_the_old)
            return
        running.world.nodes["elm"].up = True
        at(running, "stop", "before", die)
        with pytest.raises(Killed):
            running.stop("web")
        cut.append(new.id)

    at(running, "place", "before", lambda: at(running, "commit", "after", stop_the_old))
    go_over(running, after_s=40)

    assert len(cut) == 1
    assert (running.named("web").id, running.named("web").state) == (old.id, State.LOST)
    assert running.open_operations() == ["stop"]
    go_over(running, 3)
    assert running.alive() == []
