"""Place, stop and unload: what the ledger says afterwards, whatever became of the answer."""

import shutil
from typing import Any

import pytest

from tests.flows.setting import Killed, Setting
from tests.world import lost_at
from wlctl.errors import (
    ActionTimeout,
    AmbiguousName,
    Busy,
    FileMissing,
    Indeterminate,
    Interrupted,
    NameTaken,
    OperationTimeout,
    Overtaken,
    SilenceTimeout,
    UnknownName,
    Unreachable,
)
from wlctl.flows import packages
from wlctl.flows.deciding import Order
from wlctl.flows.ending import End, Verb, stop
from wlctl.flows.place import place
from wlctl.flows.signing import KeyChoice
from wlctl.ledger import instances, operations
from wlctl.ledger.attempts import Outcome
from wlctl.ledger.verify import Verified
from wlctl.model.actions import RefusalCode, Refused
from wlctl.model.generation import Proven
from wlctl.model.instance import Desired, State
from wlctl.model.node import Liveness, Tier


def test_a_placed_copy_walked_every_state_and_holds_its_room(setting: Setting) -> None:
    setting.add_node("elm")

    report = setting.place()

    assert report.attempt is not None
    assert report.attempt.outcome is Outcome.PLACED
    walked = " ".join(step.state.value for step in setting.history("web"))
    assert walked == "requested placed fetching verified loaded running"
    (held,) = setting.holds()
    assert (held.node, held.memory_bytes) == ("elm", 256 << 20)
    assert setting.world.nodes["elm"].alive == {setting.instance("web").id: 1}
    assert isinstance(setting.verified(), Verified)


def test_a_copy_that_is_only_staged_runs_nothing(setting: Setting) -> None:
    setting.add_node("elm")

    report = setting.place(start=False)

    assert report.instance is not None
    assert report.instance.state is State.LOADED
    assert report.instance.desired is Desired.STOPPED
    assert setting.world.nodes["elm"].alive == {}


def test_the_intent_is_committed_before_the_first_byte_of_a_mutation(setting: Setting) -> None:
    setting.add_node("elm")
    seen: list[object] = []

    def look(step: str, moment: str) -> None:
        if (step, moment) == ("connect", "before"):
            with setting.runtime() as other, other.ledger.read() as tx:
                seen.append([holder.operation.verb for holder in operations.holders(tx)])
                seen.append([held.name for held in instances.holds(tx)])
                seen.append([step.state.value for step in setting.history("web")])
                seen.append([attempt.outcome for attempt in setting.attempts("web")])

    setting.world.hook = look
    setting.place(refresh=False)

    assert seen == [["place"], ["web"], ["requested", "placed"], [None]]


def test_a_request_is_good_for_a_minute_by_its_nodes_own_clock(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()

    (sent,) = setting.world.nodes["elm"].placed.values()
    assert sent.deadline_ms == 1_000_100 + 60_000, "from the uptime that it had just told"


def test_a_dry_run_decides_the_same_and_sends_nothing(setting: Setting) -> None:
    setting.add_node("elm")
    dry = setting.place(dry_run=True)
    real = setting.place()

    assert dry.document is not None
    assert real.document is not None
    assert dry.document["placements"] == real.document["placements"]
    assert dry.instance is None
    assert [event.payload["dry_run"] for event in setting.events("workload.place")[:2]] == [
        True,
        False,
    ]


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_fits_nowhere_is_a_stored_decision_with_every_reason(
    setting: Setting, dry_run: bool
) -> None:
    setting.add_node("elm", memory_bytes=1 << 20)
    setting.add_node("oak", tier=Tier.DISCOVERED)

    report = setting.place(dry_run=dry_run)

    assert not report.placeable
    assert report.decision is not None
    assert report.document is not None
    (event,) = setting.events("workload.refuse")
    assert event.hash == report.decision
    reasons = {"memory": 1, "trust": 1, "gate": 1}
    assert event.payload["counts"] == {"eligible": 0, "rejected": 2, **reasons}
    assert setting.holds() == ()


@pytest.mark.parametrize("step", ["connect", "offer", "receive"])
def test_a_connection_lost_before_the_mutation_leaves_nothing_and_says_unreachable(
    setting: Setting, step: str
) -> None:
    setting.add_node("elm")
    setting.world.hook = lost_at(step, "before")

    report = setting.place(refresh=False)

    assert report.attempt is not None
    assert report.attempt.outcome is Outcome.UNREACHABLE
    assert setting.instance("web").state is State.UNLOADED
    assert setting.holds() == ()
    assert setting.node("elm").liveness is Liveness.SUSPECT
    setting.world.hook = lost_at("never", "")
    assert setting.place().attempt.outcome is Outcome.PLACED  # type: ignore[union-attr]
    assert isinstance(setting.verified(), Verified)


def test_a_refusal_releases_what_was_reserved_and_keeps_the_reason(setting: Setting) -> None:
    setting.add_node("elm", refusal=Refused(RefusalCode.PORT, "port 80 is taken"))

    report = setting.place()

    assert report.attempt is not None
    assert report.attempt.outcome is Outcome.REFUSED
    assert (report.attempt.code, report.attempt.detail) == ("port", "port 80 is taken")
    assert [step.state for step in setting.history("web")][-2:] == [State.FAILED, State.UNLOADED]
    assert setting.holds() == ()


def test_a_lost_answer_keeps_the_hold_and_the_name_until_it_is_settled(setting: Setting) -> None:
    setting.add_node("elm")
    setting.world.lose_for_good("elm", "place", "after")

    report = setting.place()

    assert report.attempt is not None
    assert report.attempt.outcome is Outcome.INDETERMINATE
    assert report.attempt.is_open
    assert setting.instance("web").unsettled
    assert len(setting.holds()) == 1
    with pytest.raises(Indeterminate, match="nobody knows whether web runs on elm"):
        setting.place()
    setting.world.heal()

    assert setting.unload("web").end is End.DONE
    assert setting.world.nodes["elm"].alive == {}
    assert setting.holds() == ()
    assert not setting.instance("web").unsettled
    assert isinstance(setting.verified(), Verified)


def test_a_placement_that_never_arrived_is_settled_as_never_run(setting: Setting) -> None:
    setting.add_node("elm")

    def vanish(step: str, moment: str) -> None:
        if (step, moment) == ("place", "before"):
            setting.world.nodes["elm"].up = False
            lost_at("place", "after")("place", "after")

    setting.world.hook = vanish
    setting.place()
    setting.world.heal()

    done = setting.unload("web")

    assert done.end is End.DONE
    assert [step.state for step in setting.history("web")][-2:] == [State.FAILED, State.UNLOADED]


def test_a_stop_is_done_only_with_its_proof_and_gives_the_room_back(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()

    done = setting.stop("web")

    assert done.end is End.DONE
    assert done.instance.state is State.STOPPED
    assert setting.holds() == ()
    (_, outcome) = setting.events("workload.stop")
    evidence: Any = outcome.payload["evidence"]
    assert [(read["judgement"], read["cgroup_inode"]) for read in evidence] == [("proven", 77)]


def test_what_is_not_proven_gone_keeps_what_it_holds_and_is_asked_again(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()
    node, iid = setting.world.nodes["elm"], setting.instance("web").id
    node.unkillable.add(iid)

    first = setting.stop("web")

    assert first.end is End.UNPROVEN
    assert "alive" in first.detail
    assert first.instance.state is State.STOPPING
    assert len(setting.holds()) == 1
    node.unkillable.clear()
    assert setting.stop("web").end is End.DONE
    assert setting.holds() == ()


@pytest.mark.parametrize("verb", Verb)
def test_that_nothing_was_read_of_a_run_is_no_proof_of_its_end(
    setting: Setting, verb: Verb
) -> None:
    setting.add_node("elm")
    setting.place()
    end = setting.stop if verb is Verb.STOP else setting.unload
    node, iid = setting.world.nodes["elm"], setting.instance("web").id
    node.unread.add((iid, 1))

    first = end("web")

    assert (first.end, first.detail) == (End.UNPROVEN, "g1: the node read nothing of it")
    assert first.instance.state is State.STOPPING
    assert len(setting.holds()) == 1
    node.unread.clear()
    assert end("web").end is End.DONE
    assert setting.holds() == ()


@pytest.mark.parametrize("verb", Verb)
def test_a_node_that_cannot_be_reached_gets_the_wish_recorded(setting: Setting, verb: Verb) -> None:
    setting.add_node("elm")
    setting.place()
    setting.world.nodes["elm"].up = False

    asked = setting.stop("web") if verb is Verb.STOP else setting.unload("web")

    assert asked.end is End.UNREACHABLE
    assert setting.instance("web").desired.value == ("stopped" if verb is Verb.STOP else "unloaded")
    assert len(setting.holds()) == 1
    assert setting.node("elm").liveness is Liveness.SUSPECT


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("step", ["", "checkpoint"], ids=["its own", "of the checkpoint after it"])
def test_an_answer_to_an_ending_that_is_lost_once_is_asked_for_again(
    setting: Setting, verb: Verb, step: str
) -> None:
    setting.add_node("elm")
    setting.place()
    lost: list[str] = []

    def once(here: str, moment: str) -> None:
        if (here, moment) == (step or verb.value, "after") and not lost:
            lost.append(here)
            raise Indeterminate(f"{here}: no whole answer came")

    setting.world.hook = once
    asked = setting.stop("web") if verb is Verb.STOP else setting.unload("web")

    assert lost == [step or verb.value]
    assert asked.end is End.DONE
    assert setting.alive() == []


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("timeout", [SilenceTimeout, ActionTimeout, OperationTimeout])
def test_a_node_that_was_silent_for_as_long_as_it_had_is_not_waited_for_twice(
    setting: Setting, verb: Verb, timeout: type[Unreachable]
) -> None:
    setting.add_node("elm")
    setting.place()
    asked: list[str] = []

    def silent(here: str, moment: str) -> None:
        if (here, moment) == (verb.value, "after"):
            asked.append(here)
            raise Indeterminate(f"{here}: no whole answer came") from timeout("it is silent")

    setting.world.hook = silent
    ended = setting.stop("web") if verb is Verb.STOP else setting.unload("web")

    assert ended.end is End.INDETERMINATE
    assert asked == [verb.value]


@pytest.mark.parametrize("verb", Verb)
def test_a_lost_answer_whose_node_cannot_be_asked_again_is_not_called_unreachable(
    setting: Setting, verb: Verb
) -> None:
    """Unreachable says that nothing was done on the node."""
    setting.add_node("elm")
    setting.place()

    def lost(here: str, moment: str) -> None:
        if (here, moment) == (verb.value, "after"):
            setting.world.nodes["elm"].up = False
            raise Indeterminate(f"{here}: no whole answer came")

    setting.world.hook = lost
    ended = setting.stop("web") if verb is Verb.STOP else setting.unload("web")

    assert ended.end is End.INDETERMINATE
    assert "no whole answer came; asked again: " in ended.detail
    assert len(setting.holds()) == 1


@pytest.mark.parametrize("verb", Verb)
def test_a_lost_answer_to_an_ending_proves_nothing(setting: Setting, verb: Verb) -> None:
    setting.add_node("elm")
    setting.place()
    setting.world.hook = lost_at(verb.value, "after")

    asked = setting.stop("web") if verb is Verb.STOP else setting.unload("web")

    assert asked.end is End.INDETERMINATE
    assert setting.instance("web").state is State.STOPPING
    assert len(setting.holds()) == 1
    setting.world.hook = lost_at("never", "")
    again = setting.stop("web") if verb is Verb.STOP else setting.unload("web")
    assert again.end is End.DONE


def test_another_machine_under_the_same_address_proves_nothing(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()
    setting.world.nodes["elm"].node_id = "f" * 32

    asked = setting.stop("web")

    assert (asked.end, asked.code) == (End.UNREACHABLE, "foreign-node")
    assert len(setting.holds()) == 1


def test_ending_what_has_ended_is_nothing_to_do(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()
    setting.stop("web")

    assert setting.stop("web").end is End.ALREADY
    assert setting.unload("web").end is End.DONE
    assert setting.unload("web").end is End.ALREADY
    with pytest.raises(UnknownName):
        setting.stop("web")
    with pytest.raises(UnknownName):
        setting.unload("never-was")


def test_a_name_comes_free_with_unload_and_not_with_stop(setting: Setting) -> None:
    setting.add_node("elm")
    first = setting.place()
    setting.stop("web")

    again = setting.place()
    assert again.document is None, "the same package under the same name is nothing to do"
    setting.unload("web")
    second = setting.place()

    assert first.instance is not None
    assert second.instance is not None
    assert first.instance.id != second.instance.id


def test_the_same_name_with_other_options_is_not_taken_for_the_same_order(
    setting: Setting,
) -> None:
    setting.add_node("elm")
    setting.place()

    assert setting.place().document is None
    with pytest.raises(NameTaken, match="placed with other options"):
        setting.place(pin="elm")


@pytest.mark.parametrize(
    ("ordered", "kept"),
    [
        pytest.param({}, {}, id="nothing, so the package decides"),
        pytest.param({"migratable": False}, {"migratable": False}, id="it stays where it is"),
        pytest.param({"max_reschedules": 0}, {"max_reschedules": 0}, id="not even once"),
        pytest.param(
            {"migratable": False, "max_reschedules": 7},
            {"migratable": False, "max_reschedules": 7},
            id="both",
        ),
    ],
)
def test_what_was_ordered_about_moves_is_kept_and_nothing_else(
    setting: Setting, ordered: dict[str, object], kept: dict[str, object]
) -> None:
    setting.add_node("elm")
    setting.place(**ordered)

    with setting.runtime() as rt, rt.ledger.read() as tx:
        options = instances.options_of(tx, setting.instance("web").id)
    about = {key: options[key] for key in ("migratable", "max_reschedules") if key in options}
    assert about == kept


def test_two_copies_of_one_package_need_two_names(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place(name="a")
    setting.place(name="b")

    assert sorted(held.name for held in setting.holds()) == ["a", "b"]
    with pytest.raises(AmbiguousName):
        setting.stop("i")


def test_reservations_count_so_that_room_is_promised_once(setting: Setting) -> None:
    setting.add_node("elm", memory_bytes=300 << 20)
    assert setting.place(name="a").placeable

    report = setting.place(name="b")

    assert not report.placeable
    assert setting.events("workload.refuse")[0].payload["counts"] == {
        "eligible": 0,
        "rejected": 1,
        "memory": 1,
    }


def test_an_unpaired_node_is_only_looked_at_whatever_the_workload_would_put_up_with(
    setting: Setting,
) -> None:
    setting.add_node("oak", tier=Tier.DISCOVERED)
    manifest = setting.package / "workload.toml"
    manifest.write_text(manifest.read_text() + '[policy]\nmin_trust = "discovered"\n')
    with setting.runtime() as rt:
        packages.build(setting.package)
        packages.sign(rt, setting.package, KeyChoice(setting.key))

    report = setting.place()

    assert not report.placeable
    assert setting.events("workload.refuse")[0].payload["counts"] == {
        "eligible": 0,
        "rejected": 1,
        "gate": 1,
    }


def test_the_fence_given_to_a_process_grows_with_every_run_of_its_name(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()
    setting.unload("web")
    setting.place()

    first, second = setting.world.nodes["elm"].fences
    assert first < second


@pytest.mark.parametrize("moment", ["before", "after"])
def test_leaving_at_once_while_placing_leaves_the_intent_for_the_next_command(
    setting: Setting, moment: str
) -> None:
    setting.add_node("elm")

    def press(step: str, when: str) -> None:
        if (step, when) == ("place", moment):
            raise KeyboardInterrupt

    setting.world.hook = press
    with pytest.raises(KeyboardInterrupt):
        setting.place()
    setting.world.heal()

    assert len(setting.holds()) == 1
    assert setting.unload("web").end is End.DONE
    assert setting.holds() == ()


@pytest.mark.parametrize("verb", Verb)
def test_ctrl_c_while_ending_keeps_what_is_held(setting: Setting, verb: Verb) -> None:
    setting.add_node("elm")
    setting.place()

    def press(step: str, when: str) -> None:
        if (step, when) == (verb.value, "after"):
            raise KeyboardInterrupt

    setting.world.hook = press
    end = setting.stop if verb is Verb.STOP else setting.unload
    with pytest.raises(Interrupted, match="keeps what it holds"):
        end("web")
    setting.world.hook = lost_at("never", "")

    assert len(setting.holds()) == 1
    assert end("web").end is End.DONE


def test_a_file_that_is_gone_from_the_store_is_its_own_error_and_releases(
    setting: Setting,
) -> None:
    setting.add_node("elm")

    def lose(step: str, _when: str) -> None:
        if step == "offer":
            shutil.rmtree(setting.home / "store")

    setting.world.hook = lose
    with pytest.raises(FileMissing):
        setting.place(refresh=False)

    assert setting.holds() == ()
    assert setting.instance("web").state is State.UNLOADED
    assert setting.node("elm").liveness is Liveness.ALIVE, "the node had no part in it"


def test_a_reboot_proves_that_what_ran_before_it_is_gone(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()
    setting.world.nodes["elm"].reboot()

    done = setting.stop("web")

    assert done.end is End.DONE
    (proof,) = done.proofs
    assert isinstance(proof, Proven)
    assert "started anew" in proof.by
    assert setting.holds() == ()


def test_a_boot_that_began_before_the_last_contact_is_another_machine_and_proves_nothing(
    setting: Setting,
) -> None:
    setting.add_node("elm")
    setting.place()
    node = setting.world.nodes["elm"]
    node.reboot()
    node.uptime_ms = 3_600_000

    asked = setting.stop("web")

    assert asked.end is End.UNPROVEN
    assert "two machines" in asked.detail
    assert len(setting.holds()) == 1


def test_a_lost_placement_on_a_node_that_was_booted_since_is_settled_too(setting: Setting) -> None:
    setting.add_node("elm")
    setting.world.lose_for_good("elm", "place", "after")
    setting.place()
    setting.world.heal()
    setting.world.nodes["elm"].reboot()
    for _ in range(90):
        next(setting.clock)  # the time after which the node would not have begun with it any more

    assert setting.unload("web").end is End.DONE


def test_the_package_says_how_long_its_processes_have_unless_the_operator_does(
    setting: Setting,
) -> None:
    setting.add_node("elm")
    setting.place()
    node = setting.world.nodes["elm"]
    node.unkillable.add(setting.instance("web").id)

    setting.stop("web")
    with setting.runtime() as rt:
        stop(rt, "web", grace_ms=250)

    assert node.graces_ms == [10_000, 250]


STEPS = [
    (step, moment)
    for step in ("connect", "offer", "receive", "place")
    for moment in ("before", "after")
    if (step, moment) not in {("connect", "after"), ("offer", "after")}
]


@pytest.mark.parametrize(("step", "moment"), STEPS)
def test_a_place_killed_at_any_step_is_ended_by_unload_without_a_trace(
    setting: Setting, step: str, moment: str
) -> None:
    setting.add_node("elm")

    def kill(here: str, when: str) -> None:
        if (here, when) == (step, moment):
            raise Killed

    setting.world.hook = kill
    with pytest.raises(Killed):
        setting.place(refresh=False)
    setting.world.hook = lost_at("never", "")
    assert len(setting.holds()) == 1, "what may run holds its room"

    done = setting.unload("web")

    assert done.end is End.DONE
    assert setting.world.nodes["elm"].alive == {}
    assert setting.holds() == ()
    assert [attempt.outcome for attempt in setting.attempts("web")] == [Outcome.INDETERMINATE]
    assert setting.events("ledger.takeover")[0].payload["verb"] == "place"
    assert isinstance(setting.verified(), Verified)


@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_ending_killed_at_any_step_goes_forward_when_it_is_asked_again(
    setting: Setting, verb: Verb, moment: str
) -> None:
    setting.add_node("elm")
    setting.place()

    def kill(here: str, when: str) -> None:
        if (here, when) == (verb.value, moment):
            raise Killed

    setting.world.hook = kill
    end = setting.stop if verb is Verb.STOP else setting.unload
    with pytest.raises(Killed):
        end("web")
    setting.world.hook = lost_at("never", "")

    assert end("web").end is End.DONE
    assert setting.holds() == ()
    assert isinstance(setting.verified(), Verified)


def test_a_late_place_after_an_unload_is_refused_by_the_node(setting: Setting) -> None:
    setting.add_node("elm")
    setting.world.lose_for_good("elm", "place", "after")
    setting.place()
    setting.world.heal()
    node, iid = setting.world.nodes["elm"], setting.instance("web").id
    setting.unload("web")

    assert node.number[iid] > 1, "the unload's number is higher than the place's"


def test_a_process_that_was_overtaken_writes_nothing(setting: Setting) -> None:
    setting.add_node("elm")

    def overtake(step: str, moment: str) -> None:
        if (step, moment) == ("place", "after"):
            setting.world.hook = lost_at("never", "")
            # The kernel frees a lock when its process is gone; this one only thinks it is alive.
            first.ledger.locks.unlock(setting.instance("web").id)
            assert setting.unload("web").end is End.DONE
            assert first.ledger.locks.try_lock(setting.instance("web").id)

    setting.world.hook = overtake
    with setting.runtime() as first, pytest.raises(Overtaken):
        place(first, Order(package=setting.package, refresh=False))

    assert setting.instance("web").state is State.UNLOADED
    assert setting.holds() == ()
    assert isinstance(setting.verified(), Verified)


def test_a_second_operation_on_a_copy_is_told_who_is_at_work(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()
    found: list[str] = []

    def meddle(step: str, moment: str) -> None:
        if (step, moment) == ("stop", "before"):
            with pytest.raises(Busy) as busy:
                setting.unload("web")
            found.append(busy.value.message)

    setting.world.hook = meddle
    setting.stop("web")

    assert len(found) == 1
    assert "tester@controller is at work" in found[0]
    assert "wlctl test" in found[0]
