"""An operator's word that a machine is dead: what it releases, whom it takes, and how it ends."""

from collections.abc import Sequence

import pytest

from tests.flows.policed import OWNER, apply
from tests.flows.setting import Setting
from tests.world import FakeNode
from wlctl.errors import Declined, ExitCode, GateDenied, IllegalStep, NodeInUse, UsageError
from wlctl.flows import attesting, node_changes, node_view, nodes
from wlctl.flows.attesting import Attested
from wlctl.flows.ending import End
from wlctl.ledger.verify import Verified
from wlctl.model.instance import Instance, State
from wlctl.model.node import Liveness, Tier


@pytest.fixture
def elm(setting: Setting) -> FakeNode:
    setting.add_node("elm")
    return setting.world.nodes["elm"]


def agree(_held: Sequence[Instance]) -> None:
    """Say yes."""


def attest(setting: Setting, name: str = "elm", *, replaced: bool = False) -> Attested:
    with setting.runtime() as rt:
        return attesting.attest_dead(rt, name, replaced=replaced, accept=agree)


def probe(setting: Setting) -> None:
    with setting.runtime() as rt:
        nodes.probe(rt, None)


def held(setting: Setting) -> list[str]:
    return [hold.name for hold in setting.holds()]


def holds_true(setting: Setting) -> None:
    assert isinstance(setting.verified(), Verified)


def test_what_was_meant_to_run_is_lost_and_holds_nothing_any_more(
    setting: Setting, elm: FakeNode
) -> None:
    setting.place()
    elm.up = False

    done = attest(setting)

    assert [(one.name, one.state) for one in done.released] == [("web", State.LOST)]
    assert held(setting) == []
    node = setting.node("elm")
    assert (node.liveness, node.attested_dead_at_ms is not None) == (Liveness.DEAD, True)
    assert setting.history("web")[-1].reason == "its node was attested dead"
    (event,) = setting.events("node.attest_dead")
    assert event.payload["released"] == [done.released[0].id]
    holds_true(setting)


def test_what_was_to_be_stopped_is_still_not_called_stopped(
    setting: Setting, elm: FakeNode
) -> None:
    setting.place()
    elm.up = False
    setting.stop("web")

    attest(setting)

    assert setting.instance("web").state is State.STOPPING
    assert held(setting) == []
    holds_true(setting)


def test_what_was_to_be_unloaded_is_gone_and_its_name_is_free(
    setting: Setting, elm: FakeNode
) -> None:
    setting.place()
    elm.up = False
    assert setting.unload("web").end is End.UNREACHABLE

    attest(setting)

    assert setting.instance("web").state is State.UNLOADED
    setting.add_node("oak")
    assert setting.place().document is not None
    assert setting.instance("web").node == "oak"
    holds_true(setting)


def test_a_lost_answer_is_settled_by_it(setting: Setting, elm: FakeNode) -> None:
    setting.world.lose_for_good("elm", "place", "after")
    setting.place()
    assert setting.instance("web").unsettled

    attest(setting)

    found = setting.instance("web")
    assert (found.state, found.unsettled, held(setting)) == (State.LOST, False, [])
    assert setting.open_operations() == []
    holds_true(setting)


def test_a_node_that_answers_is_not_dead(setting: Setting, elm: FakeNode) -> None:
    setting.place()

    with pytest.raises(IllegalStep, match="elm answers"):
        attest(setting)

    assert setting.node("elm").attested_dead_at_ms is None
    assert held(setting) == ["web"]
    assert not setting.events("node.attest_dead")


def test_another_machine_that_answers_there_does_not_keep_it_alive(
    setting: Setting, elm: FakeNode
) -> None:
    setting.place()
    elm.node_id = "f" * 32

    attest(setting)

    assert held(setting) == []


def test_nothing_is_placed_on_it_and_it_says_why(setting: Setting, elm: FakeNode) -> None:
    elm.up = False
    attest(setting)

    with setting.runtime() as rt:
        report = setting.place(dry_run=True, refresh=False)
        odd = [one.code for one in node_view.report(rt, "elm").odd]

    assert report.document is not None
    (group,) = report.document["rejected"]
    assert "node_retired" in [one["constraint"] for one in group["rejections"]]
    assert odd[0] == "attested-dead"


def test_the_word_ends_at_its_next_answer_and_the_boot_is_told(
    setting: Setting, elm: FakeNode
) -> None:
    elm.up = False
    attest(setting)
    elm.up = True

    probe(setting)

    node = setting.node("elm")
    assert (node.liveness, node.attested_dead_at_ms) == (Liveness.ALIVE, None)
    assert setting.events("node.liveness")[-1].payload["reason"] == (
        "answered, with the boot under way that was attested dead"
    )
    elm.up = False
    attest(setting)
    elm.up = True
    elm.reboot()
    probe(setting)
    assert setting.events("node.liveness")[-1].payload["reason"] == (
        "answered, started anew since it was attested dead"
    )
    holds_true(setting)


def test_silence_does_not_end_it(setting: Setting, elm: FakeNode) -> None:
    elm.up = False
    attest(setting)

    probe(setting)

    assert setting.node("elm").attested_dead_at_ms is not None


def test_it_is_asked_for_with_what_it_releases_and_a_no_changes_nothing(
    setting: Setting, elm: FakeNode
) -> None:
    setting.place()
    elm.up = False
    asked: list[list[str]] = []

    def refuse(found: Sequence[Instance]) -> None:
        asked.append([one.name for one in found])
        raise Declined("no")

    with setting.runtime() as rt, pytest.raises(Declined):
        attesting.attest_dead(rt, "elm", replaced=False, accept=refuse)

    assert asked == [["web"]]
    assert held(setting) == ["web"]


def test_whom_the_policy_does_not_let_vouch_is_refused_before_anything_is_tried(
    setting: Setting, elm: FakeNode
) -> None:
    elm.up = False
    apply(setting, OWNER)

    with pytest.raises(GateDenied) as refusal:
        attest(setting)

    assert refusal.value.exit_code is ExitCode.REFUSED
    assert setting.node("elm").attested_dead_at_ms is None


class TestTheMachineBefore:
    """A node that was rekeyed to another machine; what the old one held."""

    @pytest.fixture(autouse=True)
    def replaced(self, setting: Setting, elm: FakeNode) -> None:
        setting.place()
        elm.node_id = "f" * 32
        elm.alive.clear()
        with setting.runtime() as rt:
            node_changes.rekey(rt, "elm", Tier.PAIRED, accept=lambda _shown, _placed: None)

    def test_what_it_held_is_released_and_the_new_one_stays_as_it_is(
        self, setting: Setting
    ) -> None:
        done = attest(setting, replaced=True)

        assert [(one.name, one.state) for one in done.released] == [("web", State.LOST)]
        assert held(setting) == []
        node = setting.node("elm")
        assert (node.liveness, node.attested_dead_at_ms) == (Liveness.ALIVE, None)
        assert setting.events("node.attest_dead")[-1].payload["replaced"] is True
        holds_true(setting)

    def test_after_an_unload_the_name_is_free_on_the_new_one(self, setting: Setting) -> None:
        assert setting.unload("web").end is End.UNREACHABLE

        attest(setting, replaced=True)

        assert setting.place().placeable
        assert setting.instance("web").state is State.RUNNING
        assert held(setting) == ["web"]
        assert attest(setting, replaced=True).released == (), "what runs on the new one is not its"


def test_a_node_that_was_never_rekeyed_has_no_machine_before(
    setting: Setting, elm: FakeNode
) -> None:
    with pytest.raises(UsageError, match="from the beginning"):
        attest(setting, replaced=True)


class TestRemoval:
    def test_is_refused_while_it_holds_and_says_what_ends_that(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        setting.place()
        elm.up = False

        with setting.runtime() as rt, pytest.raises(NodeInUse) as refusal:
            node_changes.remove(rt, "elm", clean=False)

        assert "wlctl node attest-dead elm" in (refusal.value.hint or "")

    def test_of_one_attested_dead_ends_what_was_lost_with_it(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        setting.place()
        elm.up = False
        attest(setting)

        with setting.runtime() as rt:
            node_changes.remove(rt, "elm", clean=False)

        assert setting.instance("web").state is State.UNLOADED
        with setting.runtime() as rt:
            assert nodes.ls(rt) == []
        holds_true(setting)
