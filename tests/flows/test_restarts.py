"""What supervisors begin by themselves is followed, once and with its proofs, by all that comes."""

import pytest

from tests.flows.setting import Setting
from tests.world import FakeNode, lost_at
from wlctl.cli import status as cli
from wlctl.flows import listing
from wlctl.flows.proving import prove
from wlctl.flows.reconcile import Pass, reconcile
from wlctl.flows.start_intents import Begin, Beginning
from wlctl.flows.starting import restart_one, start
from wlctl.flows.status import status
from wlctl.ledger import chain, generations, instances
from wlctl.ledger.generations import Generation
from wlctl.ledger.verify import Verified
from wlctl.model.instance import State


@pytest.fixture
def elm(setting: Setting) -> FakeNode:
    """The only node, and a copy on it that its supervisor may begin again three times."""
    setting.add_node("elm")
    setting.place()
    return setting.world.nodes["elm"]


def go_over(setting: Setting) -> Pass:
    with setting.runtime() as rt:
        return reconcile(rt)


def begin(setting: Setting) -> Beginning:
    with setting.runtime() as rt:
        return start(rt, "web")


def events(setting: Setting) -> int:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        return chain.head(tx)[0]


def runs(setting: Setting) -> list[Generation]:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        return generations.of_instance(tx, setting.instance("web").id)


def steps(setting: Setting) -> list[tuple[str, str]]:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        history = instances.history(tx, setting.instance("web").id)
    return [(step.state.value, step.reason) for step in history]


ONCE = [
    ("unhealthy", "g1 ended by itself with status 1"),
    ("restarting", "g1 proven gone on its node"),
    ("running", "g2 begun by its supervisor"),
]
TWICE = [
    ("unhealthy", "g2 ended by itself with status 1"),
    ("restarting", "g2 proven gone on its node"),
    ("running", "g3 begun by its supervisor"),
]


def test_each_restart_is_a_walk_and_a_run_of_its_own_with_the_proof_of_the_one_before(
    setting: Setting, elm: FakeNode
) -> None:
    before = len(steps(setting))
    elm.begin_again(setting.instance("web").id, age_ms=60_000)
    elm.begin_again(setting.instance("web").id)

    go_over(setting)

    assert steps(setting)[before:] == ONCE + TWICE
    assert setting.instance("web").state is State.RUNNING
    assert setting.instance("web").generation == 3
    first, second, third = runs(setting)
    assert [run.role for run in (first, second, third)] == ["current", "restart", "restart"]
    assert (first.is_gone, second.is_gone, third.proof) == (True, True, None)
    assert third.launch is not None
    assert second.intended_at_ms < third.intended_at_ms
    assert isinstance(setting.verified(), Verified)


def test_it_is_followed_once_and_a_second_look_writes_nothing(
    setting: Setting, elm: FakeNode
) -> None:
    elm.begin_again(setting.instance("web").id)
    go_over(setting)
    after = events(setting)

    assert go_over(setting).is_quiet
    assert events(setting) == after


def test_one_that_is_to_be_begun_again_is_unhealthy_until_it_runs(
    setting: Setting, elm: FakeNode
) -> None:
    iid = setting.instance("web").id
    elm.exits[iid, 1] = 1
    elm.alive.pop(iid)
    go_over(setting)
    assert setting.instance("web").state is State.UNHEALTHY
    before = len(steps(setting))

    elm.begin_again(iid)
    go_over(setting)

    assert steps(setting)[before:] == ONCE[1:]


def test_one_that_is_ended_and_not_begun_yet_is_restarting(setting: Setting, elm: FakeNode) -> None:
    iid = setting.instance("web").id
    elm.exits[iid, 1] = 1
    elm.alive.pop(iid)
    elm.ended.add((iid, 1))
    go_over(setting)
    assert setting.instance("web").state is State.RESTARTING
    before = len(steps(setting))

    elm.begin_again(iid)
    go_over(setting)

    assert steps(setting)[before:] == ONCE[2:]


def test_what_is_held_has_failed_is_proven_gone_and_is_left_to_an_operator(
    setting: Setting, elm: FakeNode
) -> None:
    iid = setting.instance("web").id
    elm.begin_again(iid)
    elm.hold(iid)

    go_over(setting)

    assert setting.instance("web").state is State.FAILED
    assert steps(setting)[-1] == ("failed", "g2 ended by itself with status 1 (exhausted)")
    assert all(run.is_gone for run in runs(setting))
    assert elm.alive == {}
    assert go_over(setting).done == ()

    assert begin(setting).begin is Begin.DONE
    assert setting.instance("web").generation == 3
    assert elm.held == {}


def test_a_stop_that_knows_of_no_restart_proves_every_run(setting: Setting, elm: FakeNode) -> None:
    iid = setting.instance("web").id
    elm.begin_again(iid)
    elm.begin_again(iid)

    ended = setting.stop("web")

    assert [proof.evidence.generation for proof in ended.proofs] == [1, 2, 3]
    assert [run.number for run in runs(setting) if run.is_gone] == [1, 2, 3]
    assert setting.instance("web").state is State.STOPPED
    assert begin(setting).begin is Begin.DONE
    assert setting.instance("web").generation == 4, "no number is given twice"


def test_a_run_of_which_nobody_knew_and_that_lives_holds_what_it_holds(
    setting: Setting, elm: FakeNode
) -> None:
    iid = setting.instance("web").id
    elm.begin_again(iid)
    elm.unkillable.add(iid)

    setting.stop("web")

    assert setting.instance("web").state is State.STOPPING
    assert len(setting.holds()) == 1
    elm.unkillable.clear()
    setting.stop("web")
    assert setting.holds() == ()


def test_a_copy_whose_unknown_run_lives_is_not_proven_gone(setting: Setting, elm: FakeNode) -> None:
    elm.begin_again(setting.instance("web").id)

    with setting.runtime() as rt:
        found = prove(rt, setting.instance("web"))

    assert [(run.number, run.judgement) for run in found.runs] == [(1, "proven"), (2, "disproven")]


def test_restart_by_an_operator_ends_the_run_that_a_supervisor_began(
    setting: Setting, elm: FakeNode
) -> None:
    elm.begin_again(setting.instance("web").id)

    with setting.runtime() as rt:
        done = restart_one(rt, setting.instance("web"))

    assert done.begin is Begin.DONE
    assert elm.alive == {done.instance.id: 3}
    assert [run.number for run in runs(setting) if run.is_gone] == [1, 2]


def test_a_start_whose_answer_was_lost_and_that_was_begun_again_meanwhile_is_adopted(
    setting: Setting, elm: FakeNode
) -> None:
    setting.stop("web")
    setting.world.hook = lost_at("start", "after")
    assert begin(setting).begin is Begin.INDETERMINATE
    setting.world.heal()
    elm.begin_again(setting.instance("web").id)

    go_over(setting)

    assert setting.instance("web").state is State.RUNNING
    assert not setting.instance("web").unsettled
    assert elm.alive == {setting.instance("web").id: 3}
    assert setting.instance("web").generation == 3
    assert isinstance(setting.verified(), Verified)


def test_what_is_being_stopped_while_it_is_begun_again_keeps_every_run(
    setting: Setting, elm: FakeNode
) -> None:
    elm.up = False
    setting.stop("web")
    elm.begin_again(setting.instance("web").id)
    setting.world.heal()

    go_over(setting)

    assert setting.instance("web").state is State.STOPPED
    assert elm.alive == {}
    assert all(run.is_gone for run in runs(setting))
    assert len(runs(setting)) == 2


def test_a_lease_is_renewed_for_the_run_that_a_supervisor_began(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place(lease_ms=300_000)
    elm, iid = setting.world.nodes["elm"], setting.instance("web").id
    elm.begin_again(iid)
    elm.uptime_ms = 1_060_000

    go_over(setting)

    assert elm.leases[iid] == 1_060_000 + 300_000


def test_runs_of_which_its_node_keeps_no_record_any_more_were_read_as_gone_there(
    setting: Setting, elm: FakeNode
) -> None:
    iid = setting.instance("web").id
    for _ in range(5):
        elm.begin_again(iid)
    elm.prune(iid, 4)

    go_over(setting)

    assert [(run.number, run.is_gone) for run in runs(setting)] == [
        (1, True),
        (5, True),
        (6, False),
    ]
    assert setting.instance("web").generation == 6


def test_an_unload_that_finds_the_first_run_pruned_is_proven_all_the_same(
    setting: Setting, elm: FakeNode
) -> None:
    iid = setting.instance("web").id
    for _ in range(5):
        elm.begin_again(iid)
    elm.prune(iid, 4)

    with setting.runtime() as rt:
        assert prove(rt, setting.instance("web")).runs[0].judgement == "proven"
    setting.unload("web")

    assert setting.instance("web").state is State.UNLOADED
    assert setting.holds() == ()


def test_the_first_run_is_not_taken_for_gone_where_its_node_does_not_say_so(
    setting: Setting, elm: FakeNode
) -> None:
    iid = setting.instance("web").id
    elm.begin_again(iid)
    elm.prune(iid, 1)
    elm.pruned.clear()

    setting.stop("web")

    assert setting.instance("web").state is State.STOPPING
    assert len(setting.holds()) == 1


def test_a_number_that_nobody_gave_is_believed_of_no_node(setting: Setting, elm: FakeNode) -> None:
    iid = setting.instance("web").id
    elm.begin_again(iid)
    elm.begun.clear()

    go_over(setting)

    assert setting.instance("web").generation == 1
    assert len(runs(setting)) == 1


def test_status_says_what_its_supervisor_did_and_ps_how_often_lately(
    setting: Setting, elm: FakeNode
) -> None:
    iid = setting.instance("web").id
    elm.begin_again(iid)
    go_over(setting)

    with setting.runtime() as rt:
        (found,) = status(rt, [setting.instance("web")])
        (listed,) = listing.ps(rt)

    assert found.seen is not None
    assert found.seen.restarts is not None
    assert (found.seen.restarts.within, found.seen.restarts.most) == (1, 3)
    assert (listed.restarts, listed.restarts_lately) == (1, 1)


def test_status_shows_the_run_that_its_node_has_before_the_ledger_knows_of_it(
    setting: Setting, elm: FakeNode
) -> None:
    elm.begin_again(setting.instance("web").id)

    with setting.runtime() as rt:
        (found,) = status(rt, [setting.instance("web")])

    lines = "\n".join(cli._lines(found, setting.instance("web").since_ms))
    assert "  run       g2: leader alive, pid 4711, started again 1 time\n" in lines
    assert "  restarts  1 of 3 within 10m, by its supervisor\n" in lines
    assert "! its node launched g2, the ledger knows of g1\n" in lines


def test_status_says_what_is_held_and_what_to_type(setting: Setting, elm: FakeNode) -> None:
    elm.hold(setting.instance("web").id)

    with setting.runtime() as rt:
        (found,) = status(rt, [setting.instance("web")])

    lines = "\n".join(cli._lines(found, setting.instance("web").since_ms))
    why = "g1 ended by itself with status 1 (exhausted)"
    assert f"  held      {why}; `wlctl start web`\n" in lines


def test_what_a_supervisor_had_ended_when_its_node_was_started_anew_is_started_there_again(
    setting: Setting, elm: FakeNode
) -> None:
    web = setting.instance("web")
    elm.end_before_next(web.id)
    elm.reboot()

    go_over(setting)

    now = setting.instance("web")
    assert (now.state, now.generation) == (State.RUNNING, 2)
    assert ("lost", "its node was started anew") in steps(setting)
    assert setting.alive() == [("elm", web.id)]
