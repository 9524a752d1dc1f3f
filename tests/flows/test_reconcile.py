"""One pass over the fleet: what it finishes, what it starts and ends, and when it does nothing."""

import itertools
from pathlib import Path

import pytest

from tests.flows.setting import Setting
from tests.simulation.points import killed_at, moments_of
from wlctl.flows import attesting, doctor, listing
from wlctl.flows.reconcile import Pass, reconcile
from wlctl.ledger import chain
from wlctl.ledger.verify import Verified
from wlctl.lifecycle.table import Act
from wlctl.model.ids import NodeName
from wlctl.model.instance import State


def go_over(setting: Setting, *, dry_run: bool = False) -> Pass:
    with setting.runtime() as rt:
        return reconcile(rt, dry_run=dry_run)


def acts(found: Pass) -> list[tuple[str, Act | None, str]]:
    return [(one.name, one.act, one.came) for one in found.done]


def events(setting: Setting) -> int:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        return chain.head(tx)[0]


@pytest.fixture
def running(setting: Setting) -> Setting:
    """Three nodes, and a copy on one of them."""
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    setting.place(pin=NodeName("elm"))
    return setting


def test_where_all_is_well_a_pass_writes_no_event_and_changes_nothing(running: Setting) -> None:
    before = events(running)

    found = go_over(running)

    assert found.is_quiet
    assert found.asked == 3
    assert events(running) == before


def test_what_a_killed_place_left_is_finished_at_every_moment(
    setting: Setting, tmp_path: Path
) -> None:
    setting.add_node("elm")
    moments = moments_of(setting, lambda one: one.place(refresh=False), tmp_path / "whole")

    for number in range(1, len(moments) + 1):
        left = killed_at(
            setting, lambda one: one.place(refresh=False), number, tmp_path / f"cut-{number}"
        )
        go_over(left)

        where = f"killed at {number}, {moments[number - 1]}"
        assert left.open_operations() == [], where
        assert len(left.alive()) == len(left.holds()), where
        assert isinstance(left.verified(), Verified), where
        assert go_over(left).is_quiet, f"{where}: a second pass has nothing to do"


@pytest.mark.parametrize("verb", ["stop", "unload"])
def test_a_wish_whose_node_was_away_is_carried_out_when_it_is_back(
    running: Setting, verb: str
) -> None:
    running.world.nodes["elm"].up = False
    getattr(running, verb)("web")
    away = go_over(running)
    assert list(away.silent) == ["elm"]
    assert running.alive() != []
    running.world.heal()

    found = go_over(running)

    assert [one.trouble for one in found.done] == [""]
    assert running.alive() == []
    assert running.holds() == ()
    assert go_over(running).is_quiet


def test_what_is_not_proven_gone_is_asked_for_until_it_is(running: Setting) -> None:
    node, iid = running.world.nodes["elm"], running.instance("web").id
    node.unkillable.add(iid)
    running.stop("web")

    again = go_over(running)
    assert [(one.act, one.is_unproven) for one in again.done] == [(Act.STOP, True)]
    node.unkillable.clear()

    assert acts(go_over(running)) == [("web", Act.STOP, "done")]
    assert go_over(running).is_quiet


def test_after_a_reboot_what_shall_run_is_started_there_again(running: Setting) -> None:
    running.world.nodes["elm"].reboot()

    found = go_over(running)

    assert acts(found) == [("web", Act.START_AGAIN, "done")]
    assert running.alive() == [("elm", running.instance("web").id)]
    assert running.instance("web").generation == 2
    assert running.instance("web").state is State.RUNNING
    assert go_over(running).is_quiet


def test_a_reboot_a_while_ago_is_proof_too_however_often_the_node_was_looked_at_since(
    running: Setting,
) -> None:
    for _ in range(120):
        next(running.clock)
    node = running.world.nodes["elm"]
    node.reboot()
    node.uptime_ms = 60_000
    go_over(running, dry_run=True)

    assert acts(go_over(running)) == [("web", Act.START_AGAIN, "done")]
    assert running.instance("web").generation == 2
    assert go_over(running).is_quiet


def test_an_ended_copy_is_written_down_once_and_held(running: Setting) -> None:
    running.world.nodes["elm"].exit(running.instance("web").id, 3)

    found = go_over(running)

    assert [(one.act, one.came) for one in found.done] == [(Act.NOTHING, "failed")]
    assert running.instance("web").state is State.FAILED
    assert len(running.holds()) == 1, "only a proof gives that back"
    assert go_over(running).is_quiet


def test_what_was_attested_dead_and_runs_after_all_is_taken_back_with_what_it_holds(
    running: Setting,
) -> None:
    running.world.nodes["elm"].up = False
    go_over(running)
    with running.runtime() as rt:
        attesting.attest_dead(rt, "elm", replaced=False, accept=lambda _what: None)
    assert running.holds() == ()
    running.world.heal()

    found = go_over(running)

    assert acts(found) == [("web", Act.ADOPT, "running")]
    assert [held.name for held in running.holds()] == ["web"]
    assert running.instance("web").state is State.RUNNING
    assert go_over(running).is_quiet


def test_what_was_unloaded_on_the_node_by_hand_is_not_undone(running: Setting) -> None:
    node, iid = running.world.nodes["elm"], running.instance("web").id
    node.alive.pop(iid)
    node.staged.discard(iid)
    node.departed[iid] = 1

    found = go_over(running)

    assert [one.act for one in found.done] == [Act.DEPART]
    assert running.instance("web").state is State.UNLOADED
    assert running.alive() == []
    assert go_over(running).is_quiet


def test_what_is_told_to_be_unloaded_and_lives_is_held(running: Setting) -> None:
    node, iid = running.world.nodes["elm"], running.instance("web").id
    node.staged.discard(iid)
    node.departed[iid] = 1

    (one,) = go_over(running).done

    assert (one.act, one.came, one.is_unproven) == (Act.DEPART, "held", True)
    assert len(running.holds()) == 1
    assert running.instance("web").state is not State.UNLOADED


def test_what_a_node_has_lost_is_held_and_said(running: Setting) -> None:
    running.world.nodes["elm"].staged.clear()

    found = go_over(running)

    (one,) = found.done
    assert (one.act, one.came, one.is_unproven) == (Act.PROVE_MISSING, "held", True)
    assert len(running.holds()) == 1


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(running: Setting) -> None:
    running.world.nodes["elm"].reboot()
    before = events(running)

    found = go_over(running, dry_run=True)

    assert acts(found) == [("web", Act.START_AGAIN, "dry_run")]
    assert events(running) == before
    assert running.alive() == []


@pytest.mark.parametrize(
    ("had_pass", "later_s", "missing"),
    [
        pytest.param(False, 100, False, id="none ever ran, and nothing waits for one for long"),
        pytest.param(False, 300, True, id="none ever ran, for longer than three intervals"),
        pytest.param(True, 100, False, id="one ran lately"),
        pytest.param(True, 300, True, id="none ran for longer than three intervals"),
    ],
)
def test_passes_that_are_missing_are_noticed_by_who_lists_copies(
    running: Setting, had_pass: bool, later_s: int, missing: bool
) -> None:
    if had_pass:
        go_over(running)
    running.clock = itertools.count(next(running.clock) + later_s * 1000, 1000)
    with running.runtime() as rt:
        found = listing.overdue(rt, listing.ps(rt))
        (said,) = [one for one in doctor.examine(rt) if one.about == "reconcile"]

    assert (found is not None) is missing
    assert found is None or (found.last_at_ms is not None) is had_pass
    assert (said.health is doctor.Health.GOOD) is (had_pass and not missing)


def test_where_nothing_is_placed_no_pass_is_missing(setting: Setting) -> None:
    with setting.runtime() as rt:
        assert listing.overdue(rt, []) is None


def test_a_second_pass_at_the_same_time_does_nothing(running: Setting) -> None:
    with running.runtime() as first, running.runtime() as second:
        assert first.ledger.locks.try_lock("reconcile")

        assert reconcile(second).is_other


def test_a_verb_that_is_at_work_on_a_copy_is_left_alone(running: Setting) -> None:
    running.world.nodes["elm"].up = False
    running.stop("web")
    running.world.heal()
    with running.runtime() as operator:
        assert operator.ledger.locks.try_lock(running.instance("web").id)

        found = go_over(running)

    assert acts(found) == [("web", Act.STOP, "busy")]


def test_only_the_nodes_that_are_named_are_looked_at(running: Setting) -> None:
    running.world.nodes["elm"].reboot()

    with running.runtime() as rt:
        found = reconcile(rt, ["oak"])

    assert found.asked == 1
    assert found.done == ()
