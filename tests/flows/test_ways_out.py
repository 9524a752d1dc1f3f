"""Nothing is lost, held or wrong for ever: after every mishap there is a way out."""

import itertools
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.flows.going_over import TICK_MS, go_over, let_pass
from tests.flows.setting import Setting
from tests.simulation.points import killed_at, moments_of
from tests.world import FakeNode, lost_at, peaceful
from wlctl.errors import NameTaken, SilenceTimeout
from wlctl.flows import (
    attesting,
    draining,
    leasing,
    listing,
    moving,
    node_changes,
    starting,
)
from wlctl.flows import nodes as fleet
from wlctl.flows.moving import Way
from wlctl.flows.node_changes import Words
from wlctl.flows.reconcile import reconcile
from wlctl.ledger import generations, instances, leases, operations
from wlctl.ledger.leases import Sent
from wlctl.model.actions import RefusalCode, Refused
from wlctl.model.alert import AlertKind
from wlctl.model.boottime import BootTime
from wlctl.model.facts import Capability, Provenance
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.instance import Instance, State
from wlctl.model.node import Address, Liveness, Tier, TransportKind
from wlctl.model.package import RestartPolicy
from wlctl.placement.where import parse as where_of

ELM = NodeName("elm")
SECONDS = 60
NO_CURL = Refused(RefusalCode.RUNTIME, "no curl")


def current(setting: Setting) -> list[Instance]:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        return instances.current(tx)


def forget(node: FakeNode, instance: Instance) -> None:
    """Lose what the node knew of a copy."""
    node.staged.discard(instance.id)
    for key in [key for key in node.runs if key[0] == instance.id]:
        del node.runs[key]


@pytest.fixture
def running(setting: Setting) -> Setting:
    """Three nodes that a pass has looked at, and a copy on one of them."""
    setting.clock = itertools.count(next(setting.clock), TICK_MS)
    setting.busy_timeout_s = 10
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    setting.place(prefer=(ELM,))
    go_over(setting)
    return setting


def test_what_its_node_will_not_start_after_a_reboot_runs_elsewhere(running: Setting) -> None:
    let_pass(running, 60)
    running.world.nodes["elm"].reboot()
    running.world.nodes["elm"].refusal = NO_CURL

    go_over(running, 2)

    (now,) = current(running)
    assert now.node != "elm"
    assert running.alive() == [(now.node, now.id)]


def test_what_no_node_will_start_after_a_reboot_is_lost_and_never_said_to_run(
    running: Setting,
) -> None:
    let_pass(running, 60)
    running.world.nodes["elm"].reboot()
    for node in running.world.nodes.values():
        node.refusal = NO_CURL

    found = go_over(running)
    assert go_over(running, after_s=1)[0].is_quiet
    go_over(running, 3, after_s=400)

    assert [one.state for one in current(running)] == [State.LOST]
    kinds = {kept.alert.kind for one in found for kept in one.raised}
    assert kinds == {AlertKind.REBOOT_NOT_STARTED}
    running.world.nodes["elm"].refusal = None
    go_over(running, after_s=400)
    assert [name for name, _ in running.alive()] == ["elm"]
    assert go_over(running)[0].is_quiet


def test_a_node_that_was_started_anew_while_a_pass_waited_for_others_is_no_stranger(
    running: Setting,
) -> None:
    """Its answer is as old as it is, however long the pass goes on."""
    elm = running.world.nodes["elm"]
    looks = []

    def reboot_meanwhile(step: str, moment: str) -> None:
        if (step, moment) == ("status", "before"):
            looks.append(moment)
        elif (step, moment) == ("commit", "after"):
            return
        if len(looks) == 3 and not elm.reboots:
            let_pass(running, 20)
            elm.reboot()
            elm.uptime_ms = 1_000

    running.world.hook = reboot_meanwhile
    go_over(running)
    running.world.hook = peaceful
    let_pass(running, 20)
    elm.uptime_ms += 21_000

    with running.runtime() as rt:
        found = reconcile(rt)

    assert list(found.silent) == []
    assert [name for name, _ in running.alive()] == ["elm"]
    assert go_over(running)[0].is_quiet


def test_a_lease_that_was_sent_later_is_what_counts(setting: Setting) -> None:
    """A paused pass comes with an older reading than the start that it slept through."""
    setting.add_node("elm")
    setting.place(lease_ms=300_000)
    iid = setting.instance("web").id
    with setting.runtime() as rt:
        starting.restart_one(rt, setting.instance("web"))
        with rt.ledger.read() as tx:
            sent = leases.find(tx, iid)
        assert sent is not None
        before = BootTime(sent.read_at.boot_id, sent.read_at.ms - 1)
        leasing.about_to_send(rt, iid, 300_000, before)
        with rt.ledger.read() as tx:
            assert leases.find(tx, iid) == sent
        anew = BootTime("d" * 32, 1)
        leasing.about_to_send(rt, iid, 300_000, anew)
        with rt.ledger.read() as tx:
            assert leases.find(tx, iid) == Sent(300_000, anew)


def test_failures_of_verbs_do_not_make_a_silence_longer(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    let_pass(running, 150)
    with running.runtime() as rt:
        for _ in range(3):
            fleet.probe(rt, ["elm"])
        reconcile(rt)

    assert running.node("elm").failed_contacts >= 3
    assert running.node("elm").liveness is Liveness.SUSPECT


def test_a_node_that_was_reached_while_a_pass_was_under_way_is_not_dead(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    go_over(running, 2, after_s=45)

    def reach_it(step: str, moment: str) -> None:
        if (step, moment) == ("status", "before"):
            running.world.hook = peaceful
            running.world.nodes["elm"].up = True
            with running.runtime() as rt:
                fleet.probe(rt, ["elm"])
            running.world.nodes["elm"].up = False

    running.world.hook = reach_it
    go_over(running, after_s=170)

    assert running.node("elm").liveness is not Liveness.DEAD
    assert len(current(running)) == 1


def test_a_node_on_which_an_action_hangs_has_answered(running: Setting) -> None:
    def hang(step: str, _moment: str) -> None:
        if step == "facts":
            raise SilenceTimeout("df does not come back")

    for _ in range(8):
        let_pass(running, 170)
        running.world.hook = peaceful
        with running.runtime() as rt:
            fleet.probe(rt, ["oak", "yew"])
        running.world.hook = hang
        with running.runtime() as rt:
            reconcile(rt)

    assert running.node("elm").liveness is Liveness.ALIVE
    assert [name for name, _ in running.alive()] == ["elm"]


def test_what_its_node_lost_can_be_unloaded_once_a_reboot_proves_it_gone(running: Setting) -> None:
    elm, web = running.world.nodes["elm"], running.instance("web")
    forget(elm, web)
    running.unload("web")
    go_over(running, 2)
    assert running.instance("web").state is not State.UNLOADED, "it may run on"

    let_pass(running, 60)
    elm.reboot()
    go_over(running, 2, after_s=400)

    assert running.instance("web").state is State.UNLOADED
    assert running.holds() == ()


def test_a_copy_that_came_to_its_node_after_the_look_is_not_missing_there(running: Setting) -> None:
    on_its_way, looked = threading.Event(), threading.Event()
    looks = []

    def place() -> None:
        running.place(name="api", prefer=(ELM,), refresh=False)

    placing = threading.Thread(target=place)

    def hook(step: str, moment: str) -> None:
        if (step, moment) == ("place", "before"):
            on_its_way.set()
            looked.wait(SECONDS)
        elif (step, moment) == ("status", "before"):
            looks.append(step)
        elif (step, moment) == ("commit", "after") and len(looks) == 3 and not looked.is_set():
            looked.set()
            placing.join(SECONDS)

    running.world.hook = hook
    placing.start()
    assert on_its_way.wait(SECONDS)

    found = go_over(running)

    assert not placing.is_alive()
    assert [kept.alert.kind for one in found for kept in one.raised] == []
    assert running.instance("api").state is State.RUNNING
    running.world.hook = peaceful
    assert go_over(running)[0].is_quiet


def test_a_copy_that_failed_is_held_also_when_its_node_has_lost_it(running: Setting) -> None:
    elm, web = running.world.nodes["elm"], running.instance("web")
    elm.exit(web.id, 3)
    go_over(running)
    assert running.instance("web").state is State.FAILED
    forget(elm, web)
    let_pass(running, 60)
    elm.reboot()

    found = go_over(running, 3)

    assert running.alive() == []
    assert [one.state for one in current(running)] == [State.LOST]
    assert AlertKind.MOVE_BLOCKED in {kept.alert.kind for one in found for kept in one.raised}


def test_a_lost_copy_of_which_nobody_knows_whether_it_was_started_is_not_placed_anew(
    running: Setting,
) -> None:
    for name in ("oak", "yew"):
        running.world.nodes[name].refusal = NO_CURL
    elm = running.world.nodes["elm"]
    elm.up = False
    go_over(running, 4, after_s=40)
    elm.up = True
    elm.reboot()
    running.world.hook = lost_at("start", "after")
    with running.runtime() as rt:
        starting.start(rt, "web")
    running.world.hook = peaceful
    elm.up = False
    for name in ("oak", "yew"):
        running.world.nodes[name].refusal = None

    go_over(running, 3, after_s=170)
    assert [name for name, _ in running.alive()] == ["elm"]

    elm.up = True
    go_over(running, 2, after_s=170)
    assert [(one.state, one.unsettled) for one in current(running)] == [(State.RUNNING, False)]


def test_a_lost_copy_whose_new_one_is_lost_too_is_placed_once_more(running: Setting) -> None:
    """A pass dies before it gives the new copy the name, and then the second node dies."""
    running.add_node("ash")
    running.world.nodes["elm"].up = False
    go_over(running, 3, after_s=40)

    class Cut(BaseException):
        pass

    def cut(step: str, moment: str) -> None:
        if (step, moment) == ("commit", "after") and len(running.alive()) == 2:
            raise Cut

    running.world.hook = cut
    with pytest.raises(Cut):
        go_over(running, after_s=40)
    running.world.hook = peaceful
    second = next(name for name, _ in running.alive() if name != "elm")
    running.world.nodes[second].up = False

    go_over(running, 6, after_s=60)

    (now,) = current(running)
    assert (now.name, now.state) == ("web", State.RUNNING)
    assert now.node not in ("elm", second)


def test_a_stop_that_a_pass_finishes_for_a_drain_is_resumed_too(running: Setting) -> None:
    running.place(name="fixed", pin=ELM)
    elm = running.world.nodes["elm"]
    elm.unkillable.add(running.instance("fixed").id)
    with running.runtime() as rt:
        found = draining.drain(rt, "elm", stop_rest=True)
    assert [one.instance.name for one in found.left] == ["fixed"]
    go_over(running)
    elm.unkillable.clear()
    go_over(running, after_s=300)
    assert running.instance("fixed").state is State.STOPPED

    with running.runtime() as rt:
        node_changes.uncordon(rt, "elm")
        assert [one.instance.name for one in draining.resume(rt, ELM)] == ["fixed"]


def test_what_a_cut_off_move_has_stopped_runs_again_once_its_new_copy_is_vouched_for(
    running: Setting, tmp_path: Path
) -> None:
    """The move dies while its new copy comes up, and then the machine of that."""
    way = Way(stop_first=True)

    def move(one: Setting) -> None:
        with one.runtime() as rt:
            moving.move(rt, moving.find(rt, "web"), way)

    moments = moments_of(running, move, tmp_path / "whole")
    launched = moments.index(("place", "after")) + 1
    left = killed_at(running, move, launched, tmp_path / "cut")
    (second,) = [name for name, _ in left.alive()]
    left.world.nodes[second].up = False

    go_over(left, 5)
    assert [name for name, _ in left.alive()] == [second], "it may run on"
    with left.runtime() as rt:
        attesting.attest_dead(rt, second, replaced=False, accept=lambda _held: None)
    left.world.nodes[second].alive.clear()
    go_over(left, 2)

    assert [name for name, _ in left.alive()] == ["elm"]


def test_a_machine_that_was_given_up_comes_back_by_its_name_and_runs_nothing_old(
    running: Setting,
) -> None:
    old = running.instance("web").id
    elm = running.world.nodes["elm"]
    elm.up = False
    with running.runtime() as rt:
        attesting.attest_dead(rt, "elm", replaced=False, accept=lambda _held: None)
    go_over(running)
    with running.runtime() as rt:
        node_changes.remove(rt, "elm", clean=False)
        assert [one.may_run_on for one in listing.ps(rt)] == [()]
    elm.up = True
    address = Address(TransportKind.LOCAL, host="elm")

    def add(name: str) -> None:
        with running.runtime() as rt:
            fleet.add(rt, name, address, Tier.PAIRED, accept_key=lambda _fingerprint: None)

    with pytest.raises(NameTaken, match="from when it was elm"):
        add("ash")
    add("elm")
    assert ("elm", old) in running.alive()
    go_over(running)

    assert [iid for _, iid in running.alive()] == [one.id for one in current(running)]


def test_a_drain_is_not_done_while_something_there_is_not_proven_gone(running: Setting) -> None:
    running.world.nodes["elm"].unkillable.add(running.instance("web").id)
    running.stop("web")

    with running.runtime() as rt:
        found = draining.drain(rt, "elm")

    assert [(one.instance.name, one.why) for one in found.left] == [
        ("web", "it is stopping there, and not proven gone")
    ]


def test_so_many_runs_of_an_instance_are_kept_and_whatever_is_not_proven_gone(
    setting: Setting,
) -> None:
    setting.add_node("elm")
    setting.place()
    iid = setting.instance("web").id
    newest = 3 * generations.KEPT
    with setting.runtime() as rt:
        for number in range(2, newest + 1):
            with rt.ledger.write(rt.now_ms(), rt.author) as tx:
                generations.intend(tx, iid, number)
                generations.never_began(tx, iid, number, "a test")
        with rt.ledger.read() as tx:
            kept = [run.number for run in generations.of_instance(tx, iid)]

    assert kept == [1, *range(newest - generations.KEPT + 1, newest + 1)]


def test_a_lost_copy_whose_condition_has_no_meaning_any_more_keeps_no_other_down(
    running: Setting,
) -> None:
    """What a value is depends on what the fleet has: now it is a text, and cannot be compared."""
    with running.runtime() as rt:
        for name, offset in (("elm", -3), ("oak", -4)):
            claim = Capability("sensor", {"offset": offset}, Provenance.CLAIMED)
            node_changes.say(rt, name, Words(claims=(claim,)))
    running.place(name="api", prefer=(ELM,), where=(where_of("sensor.offset>=-5"),))
    go_over(running)
    running.add_node("ash")
    with running.runtime() as rt:
        claim = Capability("sensor", {"offset": "low"}, Provenance.CLAIMED)
        node_changes.say(rt, "ash", Words(claims=(claim,)))
    running.world.nodes["elm"].up = False

    passes = go_over(running, 5)

    assert running.named("web").node != "elm"
    raised = {one.alert.subject: one.alert for found in passes for one in found.raised}
    assert raised["api"].kind is AlertKind.MOVE_FAILED
    assert "where" in raised["api"].reason


def test_a_pass_goes_past_what_a_paused_command_is_at_work_on(running: Setting) -> None:
    """However long verbs wait for each other: nodes are looked at again, and leases renewed."""
    running.busy_timeout_s = 40
    held = [running.place(name=f"copy-{n}").copies[0].instance for n in range(3)]
    with running.runtime() as rt, ExitStack() as turns:
        for one in held:
            assert one is not None
            turn = turns.enter_context(operations.turn(rt.ledger, one.id))
            with rt.ledger.write(rt.now_ms(), rt.author) as tx:
                operations.begin(tx, turn, "restart", token=rt.new_token())
        began_s = time.monotonic()
        (found,) = go_over(running)
        took_s = time.monotonic() - began_s

    assert [one.came for one in found.done] == ["busy"] * 3
    assert took_s < running.busy_timeout_s


def test_a_copy_that_the_ledger_knows_nothing_of_is_told_of_for_as_long_as_it_is_there(
    running: Setting,
) -> None:
    """As after a rebuild to which its package was not to be had."""
    elm = running.world.nodes["elm"]
    stranger = InstanceId("i" + "z" * 15)
    elm.staged.add(stranger)
    elm.launch(stranger, 1, 1, RestartPolicy())

    first, second = go_over(running, 2)
    elm.up = False
    silent = go_over(running, 4)
    elm.up = True
    elm.staged.discard(stranger)
    (last,) = go_over(running)

    (raised,) = first.raised
    assert (raised.alert.kind, raised.alert.subject) == (AlertKind.ORPHAN, "elm")
    assert stranger in raised.alert.reason
    assert "wlctl ledger rebuild" in raised.alert.reason
    assert second.is_quiet
    assert AlertKind.ORPHAN not in {one.alert.kind for found in silent for one in found.closed}
    assert AlertKind.ORPHAN in {one.alert.kind for one in last.closed}


def test_a_copy_that_its_supervisor_cannot_begin_again_is_told_of_until_it_can(
    running: Setting,
) -> None:
    """Its disk is full, say: no try of it counts, so its policy is never exhausted."""
    elm = running.world.nodes["elm"]
    elm.end_before_next(running.instance("web").id)

    first, early = go_over(running, 2)
    late, again = go_over(running, 2, after_s=600)
    elm.begin_again(running.instance("web").id)
    (last,) = go_over(running)

    assert running.instance("web").state is State.RUNNING
    assert not first.raised
    assert early.is_quiet
    (raised,) = late.raised
    assert (raised.alert.kind, raised.alert.subject) == (AlertKind.HELD, "web")
    assert "wlctl restart web" in raised.alert.reason
    assert again.is_quiet
    assert [one.alert.kind for one in last.closed] == [AlertKind.HELD]
