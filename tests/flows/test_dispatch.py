"""Candidates in turn, lost answers, keys, plans, several copies: one copy each, and the truth."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.flows.setting import Setting
from tests.world import FakeNode, Hook, lost_at, peaceful
from wlctl.errors import Indeterminate, KeySpent, NameTaken, Overtaken, PlanMoved, UsageError
from wlctl.flows import packages
from wlctl.flows.deciding import Order
from wlctl.flows.place import place
from wlctl.flows.plan import Choice, Plan
from wlctl.flows.signing import KeyChoice
from wlctl.ledger.attempts import Outcome
from wlctl.ledger.verify import Verified
from wlctl.model.actions import RefusalCode, Refused, Settled, SettleOutcome
from wlctl.model.generation import Liveliness, Readings
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.instance import State

FULL = Refused(RefusalCode.ADMISSION, "no room any more")


def outcomes(setting: Setting) -> list[tuple[str, str, str]]:
    """List every attempt at the first decision: its node, what came of it, and how it settled."""
    report = setting.last
    return [
        (one.node, one.outcome.value if one.outcome else "", one.settled)
        for copy in report.copies
        for one in copy.attempts
    ]


def assert_in_order(setting: Setting) -> None:
    """Nothing is left in the middle, and rows, chain and machines say the same."""
    assert setting.open_operations() == []
    assert isinstance(setting.verified(), Verified)
    assert len(setting.alive()) == len(setting.holds())


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param({"refusal": FULL}, id="refuses"),
        pytest.param({"up": False}, id="cannot be reached"),
    ],
)
def test_where_a_node_does_nothing_the_next_one_is_tried(
    setting: Setting, trouble: dict[str, object]
) -> None:
    setting.add_node("elm", memory_bytes=64 << 30)
    setting.add_node("oak")
    vars(setting.world.nodes["elm"]).update(trouble)

    report = setting.place(prefer=(NodeName("elm"),), refresh=False)

    assert [outcome[:2] for outcome in outcomes(setting)] == [
        ("elm", "refused" if "refusal" in trouble else "unreachable"),
        ("oak", "placed"),
    ]
    assert [attempt.number for attempt in report.copies[0].attempts] == [1, 2]
    assert setting.alive() == [("oak", setting.instance("web").id)]
    assert setting.world.nodes["elm"].staged == set()
    assert_in_order(setting)


def test_a_pinned_order_tries_no_other_node(setting: Setting) -> None:
    setting.add_node("elm", refusal=FULL)
    setting.add_node("oak")

    setting.place(pin=NodeName("elm"))

    assert outcomes(setting) == [("elm", "refused", "")]
    assert setting.alive() == []
    assert_in_order(setting)


@pytest.mark.parametrize("code", [RefusalCode.SUPERSEDED, RefusalCode.CANCELLED])
def test_what_somebody_else_called_off_is_not_gone_past(
    setting: Setting, code: RefusalCode
) -> None:
    setting.add_node("elm", refusal=Refused(code, "a later one came"))
    setting.add_node("oak")

    setting.place(prefer=(NodeName("elm"),))

    assert outcomes(setting) == [("elm", "refused", "")]
    assert setting.alive() == []


def test_when_every_node_refuses_each_is_named_and_nothing_is_left(setting: Setting) -> None:
    for name in ("elm", "oak", "yew"):
        setting.add_node(name, refusal=FULL)

    report = setting.place()

    assert sorted(node for node, *_ in outcomes(setting)) == ["elm", "oak", "yew"]
    assert not report.copies[0].is_placed
    assert setting.holds() == ()
    assert_in_order(setting)


def test_a_candidate_that_was_filled_meanwhile_is_passed_over_and_said(setting: Setting) -> None:
    setting.add_node("elm", refusal=FULL)
    setting.add_node("oak", memory_bytes=300 << 20)
    setting.add_node("yew", memory_bytes=290 << 20)

    def fill(step: str, moment: str) -> None:
        if (step, moment) == ("place", "before"):
            setting.world.hook = peaceful
            setting.place(name="other", pin=NodeName("oak"), refresh=False)

    setting.world.hook = fill
    report = setting.place(prefer=(NodeName("elm"), NodeName("oak")), refresh=False)

    assert [(one.node, one.why) for one in report.copies[0].passed] == [("oak", "memory")]
    assert [node for node, *_ in outcomes(setting)] == ["elm", "yew"]
    assert_in_order(setting)


def once(hook: Hook) -> Callable[[Setting], Hook]:
    """Let a hook act once."""

    def make(setting: Setting) -> Hook:
        def act(step: str, moment: str) -> None:
            try:
                hook(step, moment)
            except BaseException:
                setting.world.hook = peaceful
                raise

        return act

    return make


def test_a_lost_answer_is_asked_for_again_and_the_copy_taken_as_it_is(setting: Setting) -> None:
    setting.add_node("elm")
    setting.add_node("oak")
    setting.world.hook = once(lost_at("place", "after"))(setting)

    report = setting.place(prefer=(NodeName("elm"),), refresh=False)

    assert outcomes(setting) == [("elm", "indeterminate", "placed")]
    assert report.copies[0].is_placed
    assert setting.alive() == [("elm", setting.instance("web").id)]
    assert setting.instance("web").state is State.RUNNING
    assert not setting.instance("web").unsettled
    assert [event.payload["phase"] for event in setting.events("workload.place")][-1] == "adopted"
    assert_in_order(setting)


def vanishing(setting: Setting) -> Hook:
    """Lose the request itself: the node never sees it, and nobody here can know."""

    def vanish(step: str, moment: str) -> None:
        if (step, moment) == ("place", "before"):
            setting.world.hook = peaceful
            raise Indeterminate("place: no whole answer came")

    return vanish


def test_a_lost_request_is_called_off_on_its_node_before_the_next_is_tried(
    setting: Setting,
) -> None:
    setting.add_node("elm")
    setting.add_node("oak")
    setting.world.hook = vanishing(setting)

    setting.place(prefer=(NodeName("elm"),), refresh=False)

    assert outcomes(setting) == [("elm", "indeterminate", "cancelled"), ("oak", "placed", "")]
    assert list(setting.world.nodes["elm"].claims.values()) == ["cancelled"]
    assert setting.alive() == [("oak", setting.instance("web").id)]
    assert_in_order(setting)


def test_what_cannot_be_settled_ends_the_dispatch_and_holds_everything(setting: Setting) -> None:
    setting.add_node("elm")
    setting.add_node("oak")
    setting.world.lose_for_good("elm", "place", "after")

    report = setting.place(prefer=(NodeName("elm"),), refresh=False)

    assert outcomes(setting) == [("elm", "indeterminate", "")]
    assert report.copies[0].is_open
    assert setting.instance("web").unsettled
    assert [held.node for held in setting.holds()] == ["elm"]
    with pytest.raises(Indeterminate, match="nobody knows whether web runs on elm"):
        setting.place(prefer=(NodeName("elm"),), refresh=False)
    assert setting.alive() == [("elm", setting.instance("web").id)]


RAN = FakeNode(runs={(InstanceId("x"), 1): FakeNode.boot_id}).readings(InstanceId("x"), 1)
RUNS = replace(RAN, leader=Liveliness.ALIVE)


def settled_as(outcome: SettleOutcome, *readings: Readings) -> Settled:
    return Settled("", outcome, None, readings)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(settled_as(SettleOutcome.WORKING), id="its place is still at work there"),
        pytest.param(settled_as(SettleOutcome.UNPROVEN), id="what it began is not read as gone"),
        pytest.param(settled_as(SettleOutcome.CANCELLED, RUNS), id="what it called off runs"),
    ],
)
def test_a_word_without_the_proof_settles_nothing(setting: Setting, answer: Settled) -> None:
    setting.add_node("elm", settled=answer)
    setting.add_node("oak")
    setting.world.hook = vanishing(setting)

    report = setting.place(prefer=(NodeName("elm"),), refresh=False)

    assert outcomes(setting) == [("elm", "indeterminate", "")]
    assert report.copies[0].is_open
    assert setting.instance("web").unsettled
    assert [held.node for held in setting.holds()] == ["elm"]
    setting.world.nodes["elm"].settled = None
    assert setting.place(prefer=(NodeName("elm"),), refresh=False).copies[0].is_placed
    assert_in_order(setting)


def test_what_was_called_off_and_is_proven_gone_is_gone_past(setting: Setting) -> None:
    setting.add_node("elm", settled=settled_as(SettleOutcome.CANCELLED, RAN))
    setting.add_node("oak")
    setting.world.hook = vanishing(setting)

    setting.place(prefer=(NodeName("elm"),), refresh=False)

    assert outcomes(setting) == [("elm", "indeterminate", "cancelled"), ("oak", "placed", "")]
    assert_in_order(setting)


def test_the_same_order_typed_again_adopts_what_is_there(setting: Setting) -> None:
    setting.add_node("elm")
    setting.world.lose_for_good("elm", "place", "after")
    setting.place()
    setting.world.heal()

    again = setting.place()

    assert again.decision is None
    assert [one.name for one in again.standing] == ["web"]
    assert setting.instance("web").state is State.RUNNING
    assert_in_order(setting)


def test_the_same_order_typed_again_places_anew_what_never_arrived(setting: Setting) -> None:
    setting.add_node("elm")

    def vanish(step: str, moment: str) -> None:
        if (step, moment) == ("place", "before"):
            setting.world.nodes["elm"].up = False
            raise Indeterminate("place: no whole answer came")

    setting.world.hook = vanish
    setting.place()
    first = setting.instance("web").id
    setting.world.heal()

    again = setting.place()

    assert again.copies[0].is_placed
    assert setting.instance("web").id != first
    assert setting.alive() == [("elm", setting.instance("web").id)]
    assert_in_order(setting)


def test_a_request_that_arrives_after_it_was_settled_does_nothing(setting: Setting) -> None:
    setting.add_node("elm")
    late = []

    def delay(step: str, moment: str) -> None:
        if (step, moment) == ("place", "before"):
            setting.world.hook = peaceful
            late.append(step)
            raise Indeterminate("place: no whole answer came")

    setting.world.hook = delay
    setting.place(refresh=False)
    node, iid = setting.world.nodes["elm"], setting.instance("web").id

    assert late == ["place"]
    assert node.number[iid] > 1, "a request with number 1 is refused from now on"
    assert list(node.claims.values()) == ["cancelled"]
    assert setting.alive() == []


def test_an_overtaken_process_sends_nothing_more(setting: Setting) -> None:
    setting.add_node("elm")
    setting.add_node("oak")

    def overtake(step: str, moment: str) -> None:
        if (step, moment) == ("offer", "before"):
            setting.world.hook = peaceful
            # The kernel frees a lock when its process is gone; this one only thinks it is alive.
            first.ledger.locks.unlock(setting.instance("web").id)
            setting.unload("web")
            assert first.ledger.locks.try_lock(setting.instance("web").id)

    setting.world.hook = overtake
    with setting.runtime() as first, pytest.raises(Overtaken):
        place(first, Order(package=setting.package, refresh=False))

    assert [node.staged for node in setting.world.nodes.values()] == [set(), set()]
    assert setting.alive() == []
    assert_in_order(setting)


def test_what_is_called_off_between_two_steps_is_not_begun(setting: Setting) -> None:
    setting.add_node("elm")
    setting.add_node("oak")
    going = [True]

    def call_off(step: str, moment: str) -> None:
        if (step, moment) == ("offer", "before"):
            going[0] = False

    setting.world.hook = call_off
    with setting.runtime() as rt:
        order = Order(package=setting.package, refresh=False)
        report = place(rt, order, go_on=lambda: going[0])

    (attempt,) = report.copies[0].attempts
    assert (attempt.outcome, attempt.code) == (Outcome.UNREACHABLE, "interrupted")
    assert setting.alive() == []
    assert setting.holds() == ()
    assert setting.node(attempt.node).liveness.value == "alive", "the node had no part in it"
    assert_in_order(setting)


def test_copies_of_one_order_spread_over_equal_nodes(setting: Setting) -> None:
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)

    report = setting.place(count=3)

    assert [copy.name for copy in report.copies] == ["web.1", "web.2", "web.3"]
    assert sorted(node for node, _ in setting.alive()) == ["elm", "oak", "yew"]
    assert_in_order(setting)


def test_two_copies_on_one_node_are_two_claims(setting: Setting) -> None:
    setting.add_node("elm")

    report = setting.place(count=2)

    assert all(copy.is_placed for copy in report.copies)
    assert len(setting.world.nodes["elm"].claims) == 2
    assert_in_order(setting)


def test_an_order_for_several_places_only_those_that_are_missing(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place(count=3)
    setting.unload("web.2")

    again = setting.place(count=3)

    assert [copy.name for copy in again.copies] == ["web.2"]
    assert sorted(one.name for one in again.standing) == ["web.1", "web.3"]
    assert sorted(held.name for held in setting.holds()) == ["web.1", "web.2", "web.3"]
    assert setting.place(count=3).decision is None
    assert_in_order(setting)


def test_one_copy_that_finds_no_node_does_not_keep_the_others(setting: Setting) -> None:
    setting.add_node("elm", refusal=FULL)
    setting.add_node("oak", memory_bytes=600 << 20)

    report = setting.place(count=3)

    placed = [copy.name for copy in report.copies if copy.is_placed]
    assert len(placed) == 2
    assert len(setting.alive()) == 2
    assert_in_order(setting)


def test_a_key_places_once_however_often_it_is_given(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place(key="k1")

    again = setting.place(key="k1")

    assert again.decision is None
    assert len(setting.alive()) == 1


@pytest.mark.parametrize("options", [{"name": "other"}, {"count": 2}, {"project": "p"}])
def test_a_key_is_not_taken_for_another_order(setting: Setting, options: dict[str, object]) -> None:
    setting.add_node("elm")
    setting.place(key="k1")
    setting.unload("web")

    with pytest.raises(KeySpent, match="given with another order"):
        setting.place(key="k1", **options)
    assert setting.alive() == []


def test_a_key_whose_copy_was_unloaded_places_nothing_again(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place(key="k1")
    setting.unload("web")

    with pytest.raises(KeySpent, match="was unloaded since"):
        setting.place(key="k1")
    assert setting.place(key="k2").copies[0].is_placed


def test_a_key_that_placed_nothing_may_be_given_again(setting: Setting) -> None:
    setting.add_node("elm", refusal=FULL)
    assert not setting.place(key="k1").copies[0].is_placed
    setting.world.nodes["elm"].refusal = None
    setting.world.nodes["elm"].claims.clear()

    assert setting.place(key="k1").copies[0].is_placed


def test_a_plan_is_carried_out_while_it_is_what_comes_out(setting: Setting) -> None:
    setting.add_node("elm")
    made = setting.place(dry_run=True).plan

    assert setting.place(plan=made).copies[0].is_placed


def test_a_plan_that_would_come_out_otherwise_changes_nothing(setting: Setting) -> None:
    setting.add_node("elm")
    setting.add_node("oak")
    made = setting.place(dry_run=True, prefer=(NodeName("elm"),)).plan
    setting.place(name="other", pin=NodeName("oak"))
    before = setting.events("workload.place")

    with pytest.raises(PlanMoved):
        setting.place(plan=other_choice(made), prefer=(NodeName("elm"),))
    assert setting.events("workload.place") == before
    assert [held.name for held in setting.holds()] == ["other"]


def other_choice(made: Plan | None) -> Plan:
    """Swap what a plan says of the choice, as a fleet that moved would."""
    assert made is not None
    return replace(made, choices=(Choice(("oak", "elm"), made.choices[0].variant),))


def test_a_plan_is_not_taken_for_another_order(setting: Setting) -> None:
    setting.add_node("elm")
    made = setting.place(dry_run=True).plan

    with pytest.raises(UsageError, match="another order"):
        setting.place(plan=made, name="other")


def test_a_variable_that_the_package_does_not_allow_is_refused_before_anything(
    setting: Setting,
) -> None:
    setting.add_node("elm")

    with pytest.raises(UsageError, match="does not let an order set LOG"):
        setting.place(env=(("LOG", "debug"),))
    with pytest.raises(UsageError, match="takes no arguments"):
        setting.place(args=("-v",))
    assert setting.events("workload.place") == []


def test_a_service_cannot_be_waited_for_to_its_end(setting: Setting) -> None:
    setting.add_node("elm")

    with pytest.raises(UsageError, match="does not finish"):
        setting.place(to_finish=True)
    assert setting.events("workload.place") == []


def test_what_an_order_adds_reaches_the_node_and_is_kept_with_the_order(
    setting: Setting,
) -> None:
    setting.add_node("elm")
    manifest = setting.package / "workload.toml"
    text = manifest.read_text().replace(
        "[[variant]]", 'args = "append"\nenv_allow = ["LOG", "PATH_*"]\n[[variant]]', 1
    )
    manifest.write_text(text)
    with setting.runtime() as rt:
        packages.build(setting.package)
        packages.sign(rt, setting.package, KeyChoice(file=setting.key))

    setting.place(env=(("LOG", "debug"),), args=("-v", "a b"))

    (sent,) = setting.world.nodes["elm"].placed.values()
    assert (sent.env, sent.args) == ((("LOG", "debug"),), ("-v", "a b"))
    with pytest.raises(NameTaken, match="other options"):
        setting.place(env=(("LOG", "info"),), args=("-v", "a b"))
    for event in setting.events("workload.place"):
        assert "debug" not in str(event.payload), "values are never chained"
