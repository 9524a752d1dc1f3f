"""A node falls silent: when it is dead, what is placed anew, and what happens when it is back."""

import itertools
from pathlib import Path

import pytest

from tests.fleet.sample import SEED, TIMEOUT_S, sample
from tests.flows.setting import Setting
from tests.simulation.points import killed_at, moments_of
from wlctl.cli.listing import trouble_line
from wlctl.errors import AuthFailed, HostKeyChanged, Indeterminate, LedgerBusy
from wlctl.flows import (
    attesting,
    decisions,
    ending,
    listing,
    node_changes,
    packages,
    signers,
    status,
)
from wlctl.flows.node_changes import Words
from wlctl.flows.reconcile import Pass, reconcile
from wlctl.flows.signing import KeyChoice
from wlctl.ledger import chain, instances, troubles
from wlctl.ledger.troubles import Trouble
from wlctl.ledger.verify import Verified
from wlctl.lifecycle.table import Act
from wlctl.model.actions import RefusalCode, Refused
from wlctl.model.alert import AlertKind
from wlctl.model.facts import Capability, Provenance
from wlctl.model.ids import NodeName
from wlctl.model.instance import Instance, State
from wlctl.model.node import Liveness

MINUTE_S = 60
TICK_MS = 50
"""A pass looks at the clock a few dozen times, and takes a second or two."""


def let_pass(setting: Setting, seconds: int) -> None:
    for _ in range(seconds * 1000 // TICK_MS):
        next(setting.clock)


def go_over(setting: Setting) -> Pass:
    with setting.runtime() as rt:
        return reconcile(rt)


def passes(setting: Setting, count: int, *, every_s: int = 40) -> list[Pass]:
    """Run passes as cron does."""
    found = []
    for _ in range(count):
        let_pass(setting, every_s)
        found.append(go_over(setting))
    return found


def until_dead(setting: Setting, name: str) -> list[Pass]:
    found = passes(setting, 4)
    assert setting.node(name).liveness is Liveness.DEAD
    return found


def copies(setting: Setting, name: str) -> list[Instance]:
    """List every copy that ever had the name and is not gone, oldest first."""
    with setting.runtime() as rt, rt.ledger.read() as tx:
        found = [*instances.rescheduled(tx), *instances.current(tx)]
    return sorted((one for one in found if one.name == name), key=lambda one: one.created_at_ms)


def alerts(found: list[Pass]) -> list[tuple[AlertKind, str]]:
    return [(kept.alert.kind, kept.alert.subject) for one in found for kept in one.raised]


def events(setting: Setting) -> int:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        return chain.head(tx)[0]


@pytest.fixture
def setting(setting: Setting) -> Setting:
    """The same, by a clock on which passes are short, and with patience for many at once."""
    setting.busy_timeout_s = 10
    setting.clock = itertools.count(next(setting.clock), TICK_MS)
    return setting


@pytest.fixture
def running(setting: Setting) -> Setting:
    """Three nodes that a pass has looked at, and a copy on one of them."""
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    setting.place(prefer=(NodeName("elm"),))
    assert setting.instance("web").node == "elm"
    go_over(setting)
    return setting


def test_a_node_that_is_silent_for_long_is_dead_and_what_ran_there_is_placed_anew(
    running: Setting,
) -> None:
    running.world.nodes["elm"].up = False

    found = until_dead(running, "elm")

    old, new = copies(running, "web")
    assert (old.state, old.node) == (State.RESCHEDULED, "elm")
    assert (new.state, new.name) == (State.RUNNING, "web")
    assert new.node in ("oak", "yew")
    assert new.replaces is None
    assert alerts(found) == [(AlertKind.NODE_DEAD, "elm")]
    assert {hold.node for hold in running.holds()} == {"elm", new.node}, "until it is proven gone"
    assert isinstance(running.verified(), Verified)


def test_a_node_that_is_silent_for_a_short_time_loses_nothing(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    passes(running, 3, every_s=20)
    assert running.node("elm").liveness is Liveness.SUSPECT
    running.world.heal()

    (found,) = passes(running, 1)

    assert running.node("elm").liveness is Liveness.ALIVE
    assert found.is_quiet
    assert [one.node for one in copies(running, "web")] == ["elm"]


def test_what_may_run_twice_and_what_is_wrong_is_listed_with_the_copy(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    until_dead(running, "elm")
    with running.runtime() as rt:
        (listed,) = listing.ps(rt)
    assert listed.may_run_on == ("elm",)
    assert listed.trouble is None

    running.world.nodes[listed.instance.node].up = False
    with running.runtime() as rt:
        signers.rm(rt, "me")
    passes(running, 5)

    with running.runtime() as rt:
        (listed,) = listing.ps(rt)
        (told,) = status.status(rt, [listed.instance], stored=True)
    assert listed.instance.state is State.LOST
    assert listed.trouble == told.trouble
    assert listed.trouble is not None
    assert listed.trouble.kind is AlertKind.MOVE_BLOCKED
    with running.runtime() as rt:
        assert decisions.trouble_of(rt, "web") == listed.trouble
        assert decisions.trouble_of(rt, "nothing") is None


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        pytest.param(Trouble(AlertKind.HELD, "x"), "held: x", id="for no time that is known"),
        pytest.param(
            Trouble(AlertKind.LEASE_WAITING, "x", until_ms=61_000),
            "lease-waiting: x; that is over in 1m",
            id="until a lease is over",
        ),
        pytest.param(
            Trouble(AlertKind.MOVE_FAILED, "x", tries=2, until_ms=21_000),
            "move-failed: x; it is tried again in 20s",
            id="until it is tried again",
        ),
        pytest.param(
            Trouble(AlertKind.MOVE_FAILED, "x", tries=2, until_ms=1_000),
            "move-failed: x",
            id="it is time",
        ),
    ],
)
def test_what_is_wrong_is_said_with_how_long_it_is_waited_for(trouble: Trouble, said: str) -> None:
    assert trouble_line(trouble, 1_000) == said


def test_after_the_move_a_pass_does_nothing(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    until_dead(running, "elm")
    before = events(running)

    assert go_over(running).is_quiet
    assert events(running) == before


def test_when_the_node_is_back_its_copy_is_unloaded_there_and_proven(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    until_dead(running, "elm")
    old, new = copies(running, "web")
    assert ("elm", old.id) in running.alive(), "it ran on, cut off: at least once"
    running.world.heal()

    found = go_over(running)

    assert [(one.act, one.came) for one in found.done] == [(Act.END_ORPHAN, "done")]
    assert running.alive() == [(new.node, new.id)]
    assert [hold.node for hold in running.holds()] == [new.node]
    assert [kept.alert.kind for kept in found.closed] == [AlertKind.NODE_DEAD]
    assert go_over(running).is_quiet


def test_an_orphan_that_cannot_be_proven_gone_is_asked_for_less_and_less_often(
    running: Setting,
) -> None:
    running.world.nodes["elm"].up = False
    until_dead(running, "elm")
    old = copies(running, "web")[0]
    running.world.heal()
    running.world.nodes["elm"].unkillable.add(old.id)

    found = [go_over(running)]
    assert alerts(found) == [(AlertKind.ORPHAN, "web")]
    assert go_over(running).is_quiet, "it was tried a moment ago"
    tried = [bool(one.done) for one in passes(running, 30, every_s=10)]

    assert 4 <= sum(tried) <= 8, "10 s, 20, 40, 80, ... between them"
    assert alerts(found) == [(AlertKind.ORPHAN, "web")], "once"
    running.world.nodes["elm"].unkillable.clear()
    passes(running, 1, every_s=300)
    assert len(running.holds()) == 1


def test_what_finds_no_place_is_adopted_back_when_its_node_returns(setting: Setting) -> None:
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    setting.place(prefer=(NodeName("elm"),))
    go_over(setting)
    for name in ("oak", "yew"):
        setting.world.nodes[name].memory_bytes = 1 << 20
    setting.world.nodes["elm"].up = False
    let_pass(setting, 900)  # facts run out, and are read anew
    found = passes(setting, 5)
    assert setting.instance("web").state is State.LOST
    assert (AlertKind.MOVE_FAILED, "web") in alerts(found)
    setting.world.heal()

    back = go_over(setting)

    assert [(one.act, one.came) for one in back.done] == [(Act.ADOPT, "running")]
    assert len(copies(setting, "web")) == 1
    assert {kept.alert.kind for kept in back.closed} >= {AlertKind.NODE_DEAD}
    go_over(setting)
    assert go_over(setting).is_quiet
    with setting.runtime() as rt, rt.ledger.read() as tx:
        assert troubles.ls(tx) == {}


def test_when_most_of_the_fleet_falls_silent_at_once_it_is_this_machine(running: Setting) -> None:
    for node in running.world.nodes.values():
        node.up = False

    found = passes(running, 90)  # for an hour

    assert {running.node(name).liveness for name in ("elm", "oak", "yew")} == {Liveness.ALIVE}
    assert alerts(found) == [(AlertKind.CONTROLLER_ISOLATED, "")]
    assert all(one.isolated for one in found)
    running.world.heal()
    assert [kept.alert.kind for kept in go_over(running).closed] == [AlertKind.CONTROLLER_ISOLATED]
    assert running.instance("web").state is State.RUNNING


def test_time_in_which_this_machine_slept_is_no_silence(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    passes(running, 2, every_s=20)
    let_pass(running, 8 * 60 * MINUTE_S)

    (found,) = passes(running, 1, every_s=1)

    assert running.node("elm").failed_contacts >= 3
    assert running.node("elm").liveness is Liveness.SUSPECT
    assert found.is_quiet


def test_time_before_this_machine_was_started_anew_is_no_silence(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    passes(running, 2)
    running.world.controller_boot_id = "d" * 32
    passes(running, 1)
    assert running.node("elm").liveness is Liveness.SUSPECT

    passes(running, 2)

    assert running.node("elm").liveness is Liveness.DEAD


@pytest.mark.parametrize("failure", [AuthFailed, HostKeyChanged])
def test_a_machine_that_refuses_us_is_there_and_nothing_on_it_is_lost(
    running: Setting, failure: type[AuthFailed] | type[HostKeyChanged]
) -> None:
    running.world.refuses["elm"] = failure("it says no")

    found = passes(running, 6)

    assert running.node("elm").liveness is Liveness.SUSPECT
    assert len(copies(running, "web")) == 1
    assert alerts(found) == [(AlertKind.NODE_REFUSES, "elm")]


def test_what_fails_on_this_side_is_no_nodes_fault(running: Setting) -> None:
    def hold_the_ledger(step: str, moment: str) -> None:
        if (step, moment) == ("status", "before"):
            raise LedgerBusy("another wlctl has held the ledger")

    running.world.hook = hold_the_ledger

    with pytest.raises(LedgerBusy):
        go_over(running)

    running.world.hook = lambda _step, _moment: None
    assert {running.node(name).liveness for name in running.world.nodes} == {Liveness.ALIVE}
    assert go_over(running).is_quiet


def test_a_state_directory_that_was_emptied_is_held_and_said(running: Setting) -> None:
    node = running.world.nodes["elm"]
    node.node_id = "f" * 32

    found = passes(running, 6)

    assert running.node("elm").liveness is Liveness.SUSPECT
    assert len(copies(running, "web")) == 1
    assert alerts(found) == [(AlertKind.TWO_MACHINES, "elm")]


def test_a_clone_under_the_same_key_is_held_and_said(running: Setting) -> None:
    node = running.world.nodes["elm"]
    node.boot_id = "9" * 36  # another boot, that began long ago

    found = passes(running, 6)

    assert len(copies(running, "web")) == 1
    assert alerts(found) == [(AlertKind.TWO_MACHINES, "elm")]


def test_in_a_maintenance_window_a_node_is_not_dead(running: Setting) -> None:
    with running.runtime() as rt:
        node_changes.cordon(rt, "elm", for_ms=10 * 60_000)
    running.world.nodes["elm"].up = False
    passes(running, 6)
    assert running.node("elm").liveness is Liveness.SUSPECT
    let_pass(running, 10 * MINUTE_S)

    passes(running, 4)

    assert running.node("elm").liveness is Liveness.DEAD


@pytest.mark.parametrize(
    ("options", "why"),
    [
        pytest.param({"pin": NodeName("elm")}, "it was ordered for elm alone", id="pinned"),
        pytest.param({"migratable": False}, "migratable is false", id="not to be moved"),
        pytest.param({"max_reschedules": 0}, "0 is its limit", id="moved enough"),
    ],
)
def test_what_may_not_be_moved_is_held_and_said_once(
    setting: Setting, options: dict[str, object], why: str
) -> None:
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    setting.place(prefer=(NodeName("elm"),), **options)
    go_over(setting)
    setting.world.nodes["elm"].up = False

    found = until_dead(setting, "elm") + passes(setting, 5)

    assert setting.instance("web").state is State.LOST
    assert sorted(alerts(found)) == [(AlertKind.MOVE_BLOCKED, "web"), (AlertKind.NODE_DEAD, "elm")]
    assert any(why in one.trouble for each in found for one in each.done)
    setting.world.heal()
    passes(setting, 2)
    assert setting.instance("web").state is State.RUNNING


def test_that_it_runs_nowhere_is_nobodys_trouble_once_it_is_to_be_stopped(setting: Setting) -> None:
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    setting.place(pin=NodeName("elm"))
    go_over(setting)
    setting.world.nodes["elm"].up = False
    until_dead(setting, "elm")

    setting.stop("web")
    found = passes(setting, 2)

    over = [kept.alert.kind for each in found for kept in each.closed]
    assert over == [AlertKind.MOVE_BLOCKED]
    assert alerts(found) == []


PACKAGES = [
    pytest.param('kind = "service"', 'kind = "job"', "a job that may have run", id="a job"),
    pytest.param("[resources]", "[data]\nkeep = true\n[resources]", "its data is", id="kept data"),
    pytest.param(
        "[resources]",
        '[requires]\ncommon = [{ id = "sensor.cam.front" }]\n[resources]',
        "attached to its node",
        id="attached hardware",
    ),
    pytest.param(
        "[resources]",
        "[lifecycle]\nmigratable = false\n[resources]",
        "migratable is false",
        id="what its package says",
    ),
]


@pytest.mark.parametrize(("line", "instead", "why"), PACKAGES)
def test_what_a_package_ties_to_its_node_is_held_there(
    setting: Setting, line: str, instead: str, why: str
) -> None:
    described = setting.package / "workload.toml"
    described.write_text(described.read_text().replace(line, instead, 1))
    with setting.runtime() as rt:
        packages.build(setting.package)
        packages.sign(rt, setting.package, KeyChoice(setting.key))
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
        with setting.runtime() as rt:
            words = Words(claims=(Capability("sensor.cam.front", {}, Provenance.CLAIMED),))
            node_changes.say(rt, name, words)
    setting.place(prefer=(NodeName("elm"),))
    go_over(setting)
    setting.world.nodes["elm"].up = False

    found = until_dead(setting, "elm")

    assert [where for where, _ in setting.alive()] == ["elm"]
    assert setting.instance("web").state is State.LOST
    assert any(why in one.trouble for each in found for one in each.done)


def test_a_copy_is_moved_so_often_as_its_order_allows(setting: Setting) -> None:
    for name in ("elm", "oak", "yew", "ash", "fir"):
        setting.add_node(name)
    setting.place(max_reschedules=2)
    go_over(setting)
    where = []
    for _ in range(3):
        node = setting.instance("web").node
        where.append(node)
        setting.world.nodes[node].up = False
        passes(setting, 5)
        setting.world.heal()
        passes(setting, 1)

    assert len(set(where[:2])) == 2
    assert [step.state for step in setting.history("web")].count(State.LOST) == 1
    assert setting.instance("web").node == where[2]
    assert setting.instance("web").state is State.RUNNING, "its own node had it again"


def test_what_was_to_be_stopped_or_gone_is_not_placed_anew(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    running.stop("web")

    passes(running, 6)

    assert len(copies(running, "web")) == 1
    running.world.heal()
    passes(running, 2)
    assert running.instance("web").state is State.STOPPED
    assert running.alive() == []


def test_an_operator_who_ends_a_lost_copy_ends_its_new_one_too(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    passes(running, 3)
    lost = running.instance("web")

    def unload_meanwhile(step: str, moment: str) -> None:
        if (step, moment) == ("place", "after"):
            running.world.hook = lambda _step, _moment: None
            running.world.nodes["elm"].up = False
            with running.runtime() as rt:
                ending.unload_one(rt, lost)

    running.world.hook = unload_meanwhile
    passes(running, 1)
    running.world.hook = lambda _step, _moment: None
    passes(running, 3)

    assert [name for name, _ in running.alive()] == ["elm"], "the old one, cut off"
    running.world.heal()
    passes(running, 2, every_s=300)
    assert running.alive() == []
    assert running.holds() == ()


def test_a_package_whose_signer_was_removed_is_not_placed_anew(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    with running.runtime() as rt:
        signers.rm(rt, "me")

    found = until_dead(running, "elm") + passes(running, 2)

    assert running.instance("web").state is State.LOST
    assert (AlertKind.MOVE_BLOCKED, "web") in alerts(found)


def test_what_was_built_since_is_not_rolled_forward(running: Setting) -> None:
    before = running.instance("web")
    (running.package / "workload.toml").write_text("changed since")
    (running.package / "bin" / "run").chmod(0o644)
    running.world.nodes["elm"].up = False

    until_dead(running, "elm")

    assert running.instance("web").package_id == before.package_id
    assert running.instance("web").state is State.RUNNING


def test_a_pass_places_no_more_anew_than_its_budget(setting: Setting) -> None:
    for name in ("elm", "oak", "yew"):
        setting.add_node(name, memory_bytes=64 << 30)
    setting.place(count=25, prefer=(NodeName("elm"),))
    go_over(setting)
    there = [one for one, _ in setting.alive() if one == "elm"]
    setting.world.nodes["elm"].up = False
    found = passes(setting, 7)

    moved = [sum(one.came.startswith("placed") for one in each.done) for each in found]
    assert max(moved) == 10
    assert sum(moved) == len(there) == 25
    assert all(one.node != "elm" for n in range(1, 26) for one in copies(setting, f"web.{n}")[-1:])
    assert go_over(setting).is_quiet


def test_what_finds_no_place_counts_against_the_budget_too(setting: Setting) -> None:
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    setting.place(count=12, prefer=(NodeName("elm"),))
    go_over(setting)
    for name in ("oak", "yew"):
        setting.world.nodes[name].memory_bytes = 1 << 20
    setting.world.nodes["elm"].up = False
    let_pass(setting, 900)  # facts run out, and are read anew

    tried = [sum(one.came == "no_node" for one in each.done) for each in passes(setting, 6)]

    assert max(tried) == 10


def test_an_attested_dead_node_gives_up_its_copies_at_once(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    with running.runtime() as rt:
        attesting.attest_dead(rt, "elm", replaced=False, accept=lambda _what: None)

    go_over(running)

    old, new = copies(running, "web")
    assert (old.state, new.state) == (State.RESCHEDULED, State.RUNNING)


def test_a_machine_that_was_attested_dead_and_is_not_is_said_until_it_starts_anew(
    running: Setting,
) -> None:
    running.world.nodes["elm"].up = False
    with running.runtime() as rt:
        attesting.attest_dead(rt, "elm", replaced=False, accept=lambda _what: None)
    go_over(running)
    new = copies(running, "web")[-1]
    running.world.heal()

    found = go_over(running)

    assert (AlertKind.RETURNED, "elm") in alerts([found])
    assert running.alive() == [(new.node, new.id)], "what was replaced is unloaded first"
    assert go_over(running).is_quiet
    running.world.nodes["elm"].reboot()
    assert AlertKind.RETURNED in {kept.alert.kind for kept in go_over(running).closed}


@pytest.mark.timeout(TIMEOUT_S)
def test_a_pass_killed_at_any_moment_leaves_one_copy(running: Setting, tmp_path: Path) -> None:
    running.world.nodes["elm"].up = False
    passes(running, 3)
    let_pass(running, 40)

    def move(one: Setting) -> None:
        down = one.world.nodes["elm"]
        down.up = False
        go_over(one)

    moments = moments_of(running, move, tmp_path / "whole")
    assert ("place", "after") in moments
    for number in sample(range(1, len(moments) + 1), 12, salt="pass"):
        where = f"killed at {number}, {moments[number - 1]} (WLCTL_SEED={SEED})"
        left = killed_at(running, move, number, tmp_path / f"cut-{number}")
        left.world.nodes["elm"].up = False
        passes(left, 6)

        apart = [name for name, _ in left.alive() if name != "elm"]
        assert len(apart) == 1, where
        assert left.instance("web").state is State.RUNNING, where
        assert left.open_operations() == [], where
        left.world.heal()
        passes(left, 3, every_s=300)
        assert len(left.alive()) == 1, where
        assert len(left.holds()) == 1, where
        assert isinstance(left.verified(), Verified), where
        assert go_over(left).is_quiet, where


def test_a_lost_answer_of_the_new_copy_is_settled_before_anything_else(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    passes(running, 3)

    def lose(step: str, moment: str) -> None:
        if (step, moment) == ("place", "after"):
            for name in ("oak", "yew"):
                if any(where == name for where, _ in running.alive()):
                    running.world.nodes[name].up = False
            raise Indeterminate("no whole answer came")

    running.world.hook = lose
    (found,) = passes(running, 1)
    running.world.hook = lambda _step, _moment: None
    assert [one.kind for one in found.done if one.kind] == [AlertKind.UNSETTLED]
    passes(running, 2)
    assert len([name for name, _ in running.alive() if name != "elm"]) == 1, "no third copy"
    for name in ("oak", "yew"):
        running.world.nodes[name].up = True

    passes(running, 3, every_s=300)

    old, new = copies(running, "web")
    assert (old.state, new.state) == (State.RESCHEDULED, State.RUNNING)
    assert not new.unsettled


def test_what_its_node_forgot_is_placed_anew_once_a_newer_boot_proves_it_gone(
    running: Setting,
) -> None:
    node = running.world.nodes["elm"]
    let_pass(running, 60)
    node.reboot()
    node.staged.clear()

    passes(running, 2)

    (now,) = (one for one in copies(running, "web") if one.state is State.RUNNING)
    assert now.node != "elm"
    assert [hold.node for hold in running.holds()] == [now.node], "nothing of it is there"


def test_a_pass_over_one_node_alone_never_declares_it_dead(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    for _ in range(2):
        let_pass(running, 40)
        go_over(running)
    before = running.node("elm").silent_ms

    for _ in range(6):
        let_pass(running, 40)
        with running.runtime() as rt:
            reconcile(rt, ["elm"])

    assert running.node("elm").silent_ms == before
    assert running.node("elm").liveness is Liveness.SUSPECT
    assert len(copies(running, "web")) == 1


def test_a_pass_over_one_node_alone_places_nothing_anew(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    for name in ("oak", "yew"):
        running.world.nodes[name].refusal = Refused(RefusalCode.RUNTIME, "no curl")
    until_dead(running, "elm")
    for name in ("oak", "yew"):
        running.world.nodes[name].refusal = None
    let_pass(running, 400)

    with running.runtime() as rt:
        reconcile(rt, ["elm"])
    assert [one.state for one in copies(running, "web")] == [State.LOST]

    passes(running, 1)
    assert copies(running, "web")[-1].state is State.RUNNING
