"""Start and restart: which runs there are afterwards, whatever became of the answer."""

import shutil
from collections.abc import Callable
from typing import Any

import pytest

from tests.flows.setting import Killed, Setting
from tests.world import FakeNode, Hook, lost_at, peaceful
from wlctl.errors import Busy, Interrupted, Overtaken, UnknownName
from wlctl.flows import starting
from wlctl.flows.ending import End
from wlctl.flows.start_intents import Begin, Beginning, Verb
from wlctl.ledger import generations, instances, operations
from wlctl.ledger.generations import Generation
from wlctl.ledger.verify import Verified
from wlctl.model.actions import RefusalCode, Refused
from wlctl.model.fleet import Claim
from wlctl.model.instance import Desired, State
from wlctl.model.node import Liveness, Tier

STARTED = frozenset({Begin.DONE, Begin.ALREADY})


def start(setting: Setting, word: str = "web") -> Beginning:
    with setting.runtime() as rt:
        return starting.start(rt, word)


def restart(setting: Setting, word: str = "web", *, grace_ms: int | None = None) -> Beginning:
    with setting.runtime() as rt:
        return starting.restart_one(rt, setting.instance(word), grace_ms=grace_ms)


VERBS: dict[Verb, Callable[[Setting], Beginning]] = {Verb.START: start, Verb.RESTART: restart}


def runs(setting: Setting, word: str = "web") -> list[Generation]:
    one = setting.instance(word)
    with setting.runtime() as rt, rt.ledger.read() as tx:
        return generations.of_instance(tx, one.id)


def once(step: str, moment: str, failure: type[BaseException]) -> Hook:
    """Make a hook that fails at a step the first time it is reached, and never again."""
    failed: list[bool] = []

    def hook(here: str, when: str) -> None:
        if (here, when) == (step, moment) and not failed:
            failed.append(True)
            raise failure

    return hook


@pytest.fixture
def elm(setting: Setting) -> FakeNode:
    """A node, with `web` running on it."""
    setting.add_node("elm")
    setting.place()
    return setting.world.nodes["elm"]


def test_what_was_stopped_runs_again_as_a_run_with_the_next_number(
    setting: Setting, elm: FakeNode
) -> None:
    setting.stop("web")

    done = start(setting)

    assert done.begin is Begin.DONE
    assert done.launched is not None
    assert (done.instance.state, done.instance.desired) == (State.RUNNING, Desired.RUNNING)
    assert elm.alive == {done.instance.id: 2}
    assert [(run.number, run.is_gone) for run in runs(setting)] == [(1, True), (2, False)]
    assert [held.name for held in setting.holds()] == ["web"]
    assert [event.payload["phase"] for event in setting.events("workload.start")] == [
        "request",
        "outcome",
    ]
    assert isinstance(setting.verified(), Verified)


def test_what_was_only_staged_is_started(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place(start=False)

    done = start(setting)

    assert done.begin is Begin.DONE
    assert setting.world.nodes["elm"].alive == {done.instance.id: 1}


def test_what_runs_is_left_as_it_is(setting: Setting, elm: FakeNode) -> None:
    before = setting.events("workload.*")

    done = start(setting)

    assert done.begin is Begin.ALREADY
    assert len(elm.fences) == 1
    assert setting.events("workload.*") == before, "nothing to do is not told"


def test_what_was_seen_to_be_unhealthy_runs_already(setting: Setting, elm: FakeNode) -> None:
    elm.health[setting.instance("web").id] = "unhealthy"

    done = start(setting)

    assert done.begin is Begin.ALREADY
    assert done.instance.state is State.UNHEALTHY


@pytest.mark.parametrize("status", [0, 3, None])
def test_what_ended_by_itself_is_proven_gone_before_it_is_started_again(
    setting: Setting, elm: FakeNode, status: int | None
) -> None:
    iid = setting.instance("web").id
    elm.exit(iid, status)

    done = start(setting)

    assert done.begin is Begin.DONE
    assert [proof.evidence.generation for proof in done.proofs] == [1]
    assert elm.alive == {iid: 2}
    walked = [step.state.value for step in setting.history("web")]
    assert walked[-2:] == ["failed", "running"]


def test_what_a_reboot_ended_is_started_again(setting: Setting, elm: FakeNode) -> None:
    elm.reboot()

    done = start(setting)

    assert done.begin is Begin.DONE
    assert [step.state.value for step in setting.history("web")][-2:] == ["lost", "running"]


def test_the_fence_grows_with_every_start(setting: Setting, elm: FakeNode) -> None:
    setting.stop("web")
    start(setting)
    restart(setting)

    assert elm.fences == sorted(set(elm.fences))
    assert len(elm.fences) == 3


def test_a_restart_is_a_stop_with_its_proof_and_then_a_start(
    setting: Setting, elm: FakeNode
) -> None:
    done = restart(setting, grace_ms=250)

    assert done.begin is Begin.DONE
    assert [proof.evidence.generation for proof in done.proofs] == [1]
    assert elm.alive == {done.instance.id: 2}
    assert elm.graces_ms == [250]
    walked = [step.state.value for step in setting.history("web")]
    assert walked[-3:] == ["stopping", "stopped", "running"]
    told = [event.kind for event in setting.events("workload.*") if "gate" not in event.kind]
    assert told[-7:] == [
        *("workload.stop", "workload.lifecycle", "workload.lifecycle", "workload.stop"),
        *("workload.start", "workload.lifecycle", "workload.start"),
    ]
    assert isinstance(setting.verified(), Verified)


def test_restarting_what_does_not_run_is_a_start(setting: Setting, elm: FakeNode) -> None:
    setting.stop("web")

    done = restart(setting)

    assert (done.begin, done.proofs) == (Begin.DONE, ())
    assert len(elm.graces_ms) == 1, "it was not stopped again"


def test_a_restart_whose_stop_is_not_proven_starts_nothing(setting: Setting, elm: FakeNode) -> None:
    iid = setting.instance("web").id
    elm.unkillable.add(iid)

    first = restart(setting)

    assert first.begin is Begin.UNPROVEN
    assert "alive" in first.detail
    assert first.instance.state is State.STOPPING
    assert elm.alive == {iid: 1}
    assert [run.number for run in runs(setting)] == [1], "the next run has no number yet"
    assert len(setting.holds()) == 1
    elm.unkillable.clear()
    assert start(setting).begin is Begin.DONE
    assert elm.alive == {iid: 2}


def test_a_start_beside_what_may_still_run_is_refused(setting: Setting, elm: FakeNode) -> None:
    iid = setting.instance("web").id
    elm.unkillable.add(iid)
    setting.stop("web")

    done = start(setting)

    assert done.begin is Begin.UNPROVEN
    assert elm.alive == {iid: 1}
    assert done.instance.desired is Desired.RUNNING


def test_a_run_that_its_node_does_not_know_any_more_is_not_taken_for_gone(
    setting: Setting, elm: FakeNode
) -> None:
    iid = setting.instance("web").id
    del elm.runs[iid, 1]

    done = start(setting)

    assert done.begin is Begin.UNPROVEN
    assert "its node has no record of that" in done.detail
    assert len(setting.holds()) == 1


def test_room_that_others_took_meanwhile_is_said_and_nothing_is_done(setting: Setting) -> None:
    setting.add_node("elm", memory_bytes=300 << 20)
    setting.place()
    setting.stop("web")
    setting.place(name="other")

    done = start(setting)

    assert done.begin is Begin.NO_ROOM
    assert done.detail.startswith("memory: needs 256 MiB memory")
    assert done.instance.desired is Desired.STOPPED
    assert [held.name for held in setting.holds()] == ["other"]
    setting.unload("other")
    assert start(setting).begin is Begin.DONE
    assert [held.name for held in setting.holds()] == ["web"]


def test_a_restart_keeps_its_room_throughout(setting: Setting) -> None:
    setting.add_node("elm", memory_bytes=300 << 20)
    setting.place()
    held: list[int] = []

    def look(step: str, moment: str) -> None:
        if moment == "before" and step in ("stop", "offer", "start"):
            held.append(len(setting.holds()))

    setting.world.hook = look
    assert restart(setting).begin is Begin.DONE

    assert held == [1, 1, 1]


@pytest.mark.parametrize("verb", Verb)
def test_a_node_that_cannot_be_reached_gets_the_wish_recorded(
    setting: Setting, elm: FakeNode, verb: Verb
) -> None:
    setting.stop("web")
    elm.up = False

    asked = VERBS[verb](setting)

    assert (asked.begin, asked.code) == (Begin.UNREACHABLE, "connect-failed")
    assert asked.instance.desired is Desired.RUNNING
    assert not asked.instance.unsettled
    assert setting.node("elm").liveness is Liveness.SUSPECT
    elm.up = True
    assert VERBS[verb](setting).begin is Begin.DONE
    assert elm.alive == {asked.instance.id: 3}, "a number is never given twice"


def test_what_runs_on_a_node_that_cannot_be_reached_is_not_called_running(
    setting: Setting, elm: FakeNode
) -> None:
    elm.up = False
    before = setting.events("workload.*")

    assert start(setting).begin is Begin.UNREACHABLE
    assert setting.events("workload.*") == before
    assert setting.node("elm").liveness is Liveness.SUSPECT


def test_another_machine_under_the_same_address_is_asked_for_nothing(
    setting: Setting, elm: FakeNode
) -> None:
    setting.stop("web")
    elm.node_id = "f" * 32

    assert (start(setting).begin, start(setting).code) == (Begin.UNREACHABLE, "foreign-node")
    assert elm.alive == {}


def test_a_twin_of_the_node_is_not_believed(setting: Setting, elm: FakeNode) -> None:
    elm.reboot()
    elm.uptime_ms = 3_600_000

    assert (start(setting).begin, start(setting).code) == (Begin.UNREACHABLE, "two-machines")


def test_a_lost_answer_is_unsettled_and_the_run_is_adopted_where_it_lives(
    setting: Setting, elm: FakeNode
) -> None:
    setting.stop("web")
    setting.world.hook = lost_at("start", "after")

    lost = start(setting)

    assert lost.begin is Begin.INDETERMINATE
    assert lost.instance.unsettled
    assert lost.instance.state is State.STOPPED
    assert len(setting.holds()) == 1
    setting.world.hook = peaceful
    again = start(setting)
    assert again.begin is Begin.DONE
    assert again.launched is not None
    assert again.launched.ports == (("http", 20000),), "told by the node, though late"
    assert (again.instance.state, again.instance.unsettled) == (State.RUNNING, False)
    assert elm.alive == {lost.instance.id: 2}, "it was not started anew"
    assert runs(setting)[-1].launch is not None
    assert isinstance(setting.verified(), Verified)


def test_what_a_killed_start_may_have_begun_is_unsettled_while_its_node_is_silent(
    setting: Setting, elm: FakeNode
) -> None:
    setting.stop("web")
    setting.world.hook = once("start", "after", Killed)
    with pytest.raises(Killed):
        start(setting)
    elm.up = False

    assert start(setting).begin is Begin.UNREACHABLE
    assert setting.instance("web").unsettled, "nobody has told whether it runs"
    elm.up = True
    assert start(setting).begin is Begin.DONE
    assert not setting.instance("web").unsettled
    assert len(setting.alive()) == 1


def test_a_start_that_never_arrived_is_closed_before_the_next_one(
    setting: Setting, elm: FakeNode
) -> None:
    setting.stop("web")

    def vanish(step: str, moment: str) -> None:
        if (step, moment) == ("start", "before"):
            lost_at("start", "after")("start", "after")

    setting.world.hook = vanish
    iid = start(setting).instance.id
    late = elm.number[iid]
    setting.world.hook = peaceful

    again = start(setting)

    assert again.begin is Begin.DONE
    assert elm.alive == {iid: 3}
    assert elm.number[iid] > late + 1, "the request that was lost can do nothing any more"
    assert [(run.number, run.is_gone) for run in runs(setting)] == [
        (1, True),
        (2, True),
        (3, False),
    ]


def test_a_stop_after_a_lost_start_ends_what_it_may_have_started(
    setting: Setting, elm: FakeNode
) -> None:
    setting.stop("web")
    setting.world.hook = lost_at("start", "after")
    start(setting)
    setting.world.hook = peaceful

    assert setting.stop("web").end is End.DONE
    assert elm.alive == {}
    assert setting.holds() == ()
    assert not setting.instance("web").unsettled
    assert setting.stop("web").end is End.ALREADY


def test_a_lost_stop_of_a_restart_is_gone_forward_with(setting: Setting, elm: FakeNode) -> None:
    setting.world.hook = lost_at("stop", "after")

    lost = restart(setting)

    assert lost.begin is Begin.INDETERMINATE
    assert (lost.instance.state, lost.instance.desired) == (State.STOPPING, Desired.RUNNING)
    setting.world.hook = peaceful
    assert start(setting).begin is Begin.DONE
    assert elm.alive == {lost.instance.id: 2}


@pytest.mark.parametrize(
    "code", [RefusalCode.BUSY, RefusalCode.RUNTIME, RefusalCode.REVOKED, RefusalCode.SUPERSEDED]
)
def test_a_refusal_starts_nothing_and_the_next_start_gets_past_it(
    setting: Setting, elm: FakeNode, code: RefusalCode
) -> None:
    setting.stop("web")
    elm.refusal = Refused(code, "not now")

    refused = start(setting)

    assert (refused.begin, refused.code, refused.detail) == (Begin.REFUSED, code.value, "not now")
    assert refused.instance.state is State.STOPPED
    assert refused.instance.unsettled is (code is RefusalCode.SUPERSEDED)
    assert len(setting.holds()) == 1, "a start that answered no process is no proof of absence"
    elm.refusal = None
    assert start(setting).begin is Begin.DONE


def test_what_was_refused_is_stopped_with_its_proof(setting: Setting, elm: FakeNode) -> None:
    setting.stop("web")
    elm.refusal = Refused(RefusalCode.RUNTIME, "no such interpreter")
    start(setting)

    assert setting.stop("web").end is End.DONE
    assert setting.holds() == ()


def test_the_stop_of_a_restart_may_be_refused_too(setting: Setting, elm: FakeNode) -> None:
    elm.number[setting.instance("web").id] = 99

    refused = restart(setting)

    assert (refused.begin, refused.code) == (Begin.REFUSED, "superseded")
    assert elm.alive == {refused.instance.id: 1}


def test_files_that_the_node_has_lost_are_brought_again(setting: Setting, elm: FakeNode) -> None:
    setting.stop("web")
    elm.store.clear()

    assert start(setting).begin is Begin.DONE
    assert len(elm.store) == 2


def test_a_file_that_is_gone_from_the_store_is_this_side_s_failure(
    setting: Setting, elm: FakeNode
) -> None:
    setting.stop("web")
    elm.store.clear()
    shutil.rmtree(setting.home / "store")

    failed = start(setting)

    assert (failed.begin, failed.code) == (Begin.FAILED, "file-missing")
    assert setting.node("elm").liveness is Liveness.ALIVE, "the node had no part in it"
    assert elm.alive == {}


@pytest.mark.parametrize("verb", Verb)
def test_a_denial_leaves_everything_as_it_is(setting: Setting, elm: FakeNode, verb: Verb) -> None:
    with setting.runtime() as rt:
        from wlctl.ledger.schema import nodes as table

        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            tx.conn.execute(table.update().values(tier=Tier.DISCOVERED.word))
    if verb is Verb.START:
        setting.stop("web")
    before = dict(elm.alive)

    denied = VERBS[verb](setting)

    assert (denied.begin, denied.code) == (Begin.DENIED, "gate-denied")
    assert elm.alive == before
    assert runs(setting)[-1].number == 1
    asked = [event.payload["action"] for event in setting.events("workload.gate")]
    assert asked[-2 if verb is Verb.RESTART else -1 :] == (
        ["stop", "start"] if verb is Verb.RESTART else ["start"]
    )


def test_what_was_unloaded_does_not_start(setting: Setting, elm: FakeNode) -> None:
    iid = setting.instance("web").id
    setting.unload("web")

    with pytest.raises(UnknownName):
        start(setting)
    found = start(setting, iid)
    assert (found.begin, found.code, found.detail) == (
        Begin.ILLEGAL,
        "illegal-step",
        "it is unloaded",
    )
    assert elm.alive == {}


def test_what_is_not_settled_is_not_started(setting: Setting) -> None:
    setting.add_node("elm")
    setting.world.hook = once("place", "before", Killed)
    with pytest.raises(Killed):
        setting.place()
    setting.world.hook = peaceful

    found = start(setting)

    assert found.begin is Begin.ILLEGAL
    assert found.detail == "its placement is not settled"


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("verb", "step"), [(Verb.START, "start"), (Verb.RESTART, "stop")])
def test_ctrl_c_is_said_and_leaves_an_honest_record(
    setting: Setting, elm: FakeNode, verb: Verb, step: str, moment: str
) -> None:
    if verb is Verb.START:
        setting.stop("web")
    setting.world.hook = once(step, moment, KeyboardInterrupt)

    with pytest.raises(Interrupted, match="nobody knows whether web runs on elm"):
        VERBS[verb](setting)

    assert setting.instance("web").desired is Desired.RUNNING
    with setting.runtime() as rt, rt.ledger.read() as tx:
        assert operations.holders(tx) == ()
    assert VERBS[verb](setting).begin in STARTED
    assert list(elm.alive.values()) == [setting.instance("web").generation]


KILLS = [
    (verb, step, moment)
    for verb, steps in (
        (Verb.START, ("connect", "offer", "start")),
        (Verb.RESTART, ("connect", "stop", "offer", "start")),
    )
    for step in steps
    for moment in ("before", "after")
    if (step, moment) not in {("connect", "after"), ("offer", "after")}
]


@pytest.mark.parametrize("then", ["start", "stop"])
@pytest.mark.parametrize("kill", KILLS, ids=" ".join)
def test_what_is_killed_at_any_step_is_taken_over_by_whatever_verb_comes_next(
    setting: Setting, elm: FakeNode, kill: tuple[Verb, str, str], then: str
) -> None:
    verb, step, moment = kill
    iid = setting.instance("web").id
    if verb is Verb.START:
        setting.stop("web")
    setting.world.hook = once(step, moment, Killed)
    with pytest.raises(Killed):
        VERBS[verb](setting)
    setting.world.hook = peaceful
    assert len(setting.holds()) == 1, "what may run holds its room"

    if then == "stop":
        assert setting.stop("web").end is End.DONE
    else:
        assert start(setting).begin in STARTED

    now = setting.instance("web")
    runs_now = then == "start"
    assert elm.alive == ({iid: now.generation} if runs_now else {})
    assert len(setting.holds()) == (1 if runs_now else 0)
    assert not now.unsettled
    assert all(run.is_gone for run in runs(setting)[: -1 if runs_now else None])
    assert isinstance(setting.verified(), Verified)


@pytest.mark.parametrize("verb", Verb)
def test_a_process_that_was_overtaken_writes_nothing(
    setting: Setting, elm: FakeNode, verb: Verb
) -> None:
    if verb is Verb.START:
        setting.stop("web")
    iid = setting.instance("web").id

    def overtake(step: str, moment: str) -> None:
        if (step, moment) == ("start", "after"):
            setting.world.hook = peaceful
            # The kernel frees a lock when its process is gone; this one only thinks it is alive.
            first.ledger.locks.unlock(iid)
            assert setting.stop("web").end is End.DONE
            assert first.ledger.locks.try_lock(iid)

    setting.world.hook = overtake
    with setting.runtime() as first, pytest.raises(Overtaken):
        with first.ledger.read() as tx:
            instance = instances.get(tx, iid)
        begin = starting.start_one if verb is Verb.START else starting.restart_one
        begin(first, instance)

    assert setting.instance("web").state is State.STOPPED
    assert elm.alive == {}
    assert setting.holds() == ()
    assert isinstance(setting.verified(), Verified)


def test_two_starts_at_once_are_one_run(setting: Setting, elm: FakeNode) -> None:
    setting.stop("web")
    found: list[str] = []

    def meddle(step: str, moment: str) -> None:
        if (step, moment) == ("start", "before"):
            with pytest.raises(Busy) as busy:
                start(setting)
            found.append(busy.value.message)

    setting.world.hook = meddle
    assert start(setting).begin is Begin.DONE

    assert len(found) == 1
    assert "tester@controller is at work" in found[0]
    assert elm.fences == sorted(set(elm.fences))
    assert len(elm.fences) == 2


def test_an_exclusive_claim_is_made_anew(setting: Setting, elm: FakeNode) -> None:
    iid = setting.instance("web").id
    setting.stop("web")
    with setting.runtime() as rt, rt.ledger.write(rt.now_ms(), rt.author) as tx:
        instances.hold_again(tx, iid, [Claim("accel.cuda.1", exclusive=True)])

    (held,) = setting.holds()

    claims: Any = held.claims
    assert claims == (Claim("accel.cuda.1", exclusive=True),)
    assert elm.alive == {}
