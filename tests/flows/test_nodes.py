"""Nodes in the ledger: added, looked at, told of, cordoned, rekeyed and removed."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.flows.setting import Setting
from tests.world import FakeNode, lost_at, peaceful
from wlctl.errors import (
    Declined,
    ForeignNode,
    HostKeyChanged,
    NameTaken,
    NodeInUse,
    NodeUnfit,
    TwoMachines,
    UnknownName,
    Unreachable,
    WlctlError,
)
from wlctl.flows import deciding, doctor, measuring, node_changes, node_list, node_view, nodes
from wlctl.flows.node_changes import Rekeyed, Words
from wlctl.flows.node_list import Added, Wanted
from wlctl.flows.nodes import Contact
from wlctl.ledger.verify import Verified
from wlctl.model.actions import Cleaned
from wlctl.model.facts import Capability, Provenance
from wlctl.model.fleet import NodeView
from wlctl.model.ids import NodeName
from wlctl.model.instance import State
from wlctl.model.node import Address, Liveness, Tier, TransportKind
from wlctl.model.package import fingerprint
from wlctl.placement.where import parse

CAMERA = Capability("sensor.cam.front", {"resolution": 1080}, Provenance.CLAIMED)


@pytest.fixture
def elm(setting: Setting) -> FakeNode:
    """The node `elm`, in the world and in the fleet."""
    setting.add_node("elm")
    return setting.world.nodes["elm"]


def probe(setting: Setting, *names: str) -> list[Contact]:
    with setting.runtime() as rt:
        return nodes.probe(rt, names or None)


def view(setting: Setting, name: str) -> NodeView:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        views, _ = deciding.fleet_of(tx, rt.now_ms())
    return next(one for one in views if one.name == name)


def say(setting: Setting, **words: object) -> None:
    with setting.runtime() as rt:
        node_changes.say(rt, "elm", Words(**words))  # type: ignore[arg-type]  # fields of Words


def odd(setting: Setting) -> list[str]:
    with setting.runtime() as rt:
        return [one.code for one in node_view.report(rt, "elm").odd]


def holds_true(setting: Setting) -> None:
    assert isinstance(setting.verified(), Verified)


class TestLookingAgain:
    def test_facts_are_numbered_and_replaced_whole(self, setting: Setting, elm: FakeNode) -> None:
        elm.memory_bytes = 4 << 30

        (contact,) = probe(setting, "elm")

        assert contact.facts is not None
        assert contact.facts.seq == 2
        assert setting.node("elm").facts == contact.facts
        assert contact.facts.memory_total_bytes == 4 << 30

    def test_every_node_is_looked_at_when_none_is_named(self, setting: Setting) -> None:
        for name in ("ash", "elm", "oak"):
            setting.add_node(name)
        setting.world.nodes["elm"].up = False

        contacts = probe(setting)

        assert [one.node for one in contacts] == ["ash", "elm", "oak"]
        assert [one.failure is None for one in contacts] == [True, False, True]

    def test_one_that_is_named_twice_is_looked_at_once(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        assert len(probe(setting, "elm", "elm")) == 1

    def test_a_name_that_is_none_contacts_nothing(self, setting: Setting, elm: FakeNode) -> None:
        setting.world.hook = lost_at("connect", "before")

        with pytest.raises(UnknownName):
            probe(setting, "elm", "yew")

        assert setting.node("elm").failed_contacts == 0

    @pytest.mark.parametrize(
        ("off_ms", "skewed"),
        [
            pytest.param(0, False, id="somewhere between question and answer"),
            pytest.param(3_000, False, id="after the answer by what is allowed"),
            pytest.param(3_001, True, id="by more"),
            pytest.param(-3_000, False, id="before the question by what is allowed"),
            pytest.param(-3_001, True, id="by more than that"),
        ],
    )
    def test_a_clock_that_is_off_is_said(
        self, setting: Setting, elm: FakeNode, off_ms: int, skewed: bool
    ) -> None:
        def look_at_the_clock(step: str, _moment: str) -> None:
            if step == "facts":  # a second after the question, and one before the answer
                elm.wall_ms = next(setting.clock) + off_ms

        setting.world.hook = look_at_the_clock
        probe(setting, "elm")

        assert odd(setting) == (["clock-skew"] if skewed else [])


class TestStrangers:
    def strangers(self, setting: Setting, elm: FakeNode, **changes: object) -> Contact:
        setting.world.nodes["elm"] = replace(elm, **changes)  # type: ignore[arg-type]  # by name
        (contact,) = probe(setting, "elm")
        return contact

    @pytest.mark.parametrize(
        ("changes", "error", "words"),
        [
            pytest.param({"node_id": "f" * 32}, ForeignNode, "was emptied", id="an empty state"),
            pytest.param(
                {"node_id": "f" * 32, "machine_id": "n" * 32},
                ForeignNode,
                "another machine",
                id="another machine",
            ),
            pytest.param({"boot_id": "b2"}, TwoMachines, "another boot", id="two machines"),
        ],
    )
    def test_a_stranger_changes_nothing_but_that_a_contact_failed(
        self,
        setting: Setting,
        elm: FakeNode,
        changes: dict[str, object],
        error: type[WlctlError],
        words: str,
    ) -> None:
        before = setting.node("elm")

        contact = self.strangers(setting, elm, memory_bytes=1, **changes)

        assert isinstance(contact.failure, error)
        assert words in contact.failure.message
        after = setting.node("elm")
        assert after == replace(
            before, liveness=Liveness.SUSPECT, failed_contacts=1, failure=error.code
        )
        assert odd(setting)[0] == error.code
        with setting.runtime() as rt:
            findings = [one.hint for one in doctor.examine(rt) if one.about == "node elm"]
        assert "rekey" in findings[0] or "two-machines" in findings[0]
        holds_true(setting)

    def test_nothing_is_placed_on_a_stranger(self, setting: Setting, elm: FakeNode) -> None:
        self.strangers(setting, elm, node_id="f" * 32)

        assert not setting.place().placeable

    def test_the_node_itself_is_believed_again(self, setting: Setting, elm: FakeNode) -> None:
        self.strangers(setting, elm, boot_id="b2")

        contact = self.strangers(setting, elm, boot_id="b3", uptime_ms=0)

        assert contact.failure is None
        assert (setting.node("elm").liveness, setting.node("elm").failure) == (Liveness.ALIVE, "")
        holds_true(setting)


class TestAnOperatorsWord:
    def test_claims_and_labels_survive_every_probe_and_enter_decisions(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        setting.add_node("oak")
        say(setting, claims=(CAMERA, node_changes.label("env", "prod")))

        probe(setting)

        assert CAMERA in view(setting, "elm").capabilities
        report = setting.place(dry_run=True, where=(parse("label.env=prod"),))
        assert report.placeable
        assert report.document is not None
        placed = [one["chosen"]["node"] for one in report.document["placements"]]
        assert placed == ["elm"]
        holds_true(setting)

    def test_what_is_said_again_replaces_what_was_said(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        better = replace(CAMERA, attrs={"resolution": 2160}, exclusive=True)
        say(setting, claims=(CAMERA,))
        say(setting, claims=(better,))

        with setting.runtime() as rt:
            assert [one.capability for one in node_view.report(rt, "elm").said] == [better]
        holds_true(setting)

    def test_the_same_word_again_is_no_event(self, setting: Setting, elm: FakeNode) -> None:
        for _ in range(2):
            say(setting, tier=Tier.TRUSTED, claims=(CAMERA,))

        assert len(setting.events("node.set")) == 1

    def test_what_is_withdrawn_is_gone(self, setting: Setting, elm: FakeNode) -> None:
        say(setting, claims=(CAMERA, node_changes.label("env", "prod")))

        say(setting, withdrawn=(CAMERA.id,))

        ids = [one.id for one in view(setting, "elm").capabilities]
        assert "node.label.env" in ids
        assert CAMERA.id not in ids
        holds_true(setting)

    def test_what_nobody_said_cannot_be_withdrawn_and_nothing_else_happens(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        with pytest.raises(UnknownName):
            say(setting, tier=Tier.TRUSTED, claims=(CAMERA,), withdrawn=("sensor.cam.rear",))

        assert setting.node("elm").tier is Tier.PAIRED
        assert CAMERA not in view(setting, "elm").capabilities

    def test_a_tier_is_the_operator_s_word(self, setting: Setting, elm: FakeNode) -> None:
        say(setting, tier=Tier.DISCOVERED)
        assert not setting.place(dry_run=True).placeable

        say(setting, tier=Tier.PAIRED)
        assert setting.place(dry_run=True).placeable
        assert [event.payload.get("tier") for event in setting.events("node.set")] == [
            "discovered",
            "paired",
        ]
        holds_true(setting)


class TestCordons:
    def test_a_cordoned_node_takes_nothing_and_says_why(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        with setting.runtime() as rt:
            node_changes.cordon(rt, "elm", for_ms=None)

        report = setting.place(dry_run=True)

        assert not report.placeable
        assert report.document is not None
        assert "cordoned" in str(report.document)
        assert odd(setting) == ["cordoned"]
        holds_true(setting)

    def test_what_runs_there_goes_on_and_can_be_ended(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        setting.place()
        with setting.runtime() as rt:
            node_changes.cordon(rt, "elm", for_ms=None)

        assert setting.instance("web").state is State.RUNNING
        assert setting.unload("web").instance.state is State.UNLOADED

    def test_a_cordon_with_an_end_ends(self, setting: Setting, elm: FakeNode) -> None:
        with setting.runtime() as rt:
            until_ms = node_changes.cordon(rt, "elm", for_ms=5_000).cordoned_until_ms
        assert until_ms is not None
        assert view(setting, "elm").cordoned

        with setting.runtime() as rt:
            while rt.now_ms() < until_ms:
                pass

        assert not view(setting, "elm").cordoned
        with setting.runtime() as rt:
            assert node_changes.uncordon(rt, "elm")[1] is False, "it was not cordoned any more"
        holds_true(setting)

    def test_a_second_uncordon_is_no_event(self, setting: Setting, elm: FakeNode) -> None:
        with setting.runtime() as rt:
            node_changes.cordon(rt, "elm", for_ms=None)
            assert node_changes.uncordon(rt, "elm")[1] is True
            assert node_changes.uncordon(rt, "elm")[1] is False

        assert len(setting.events("node.uncordon")) == 1
        assert not view(setting, "elm").cordoned


class TestFigures:
    def test_they_are_measured_kept_and_survive_probes(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        with setting.runtime() as rt:
            (done,) = measuring.measure(rt, ["elm", "elm"])

        probe(setting)

        (figure,) = done.figures
        assert figure in view(setting, "elm").capabilities
        assert figure.provenance is Provenance.MEASURED
        holds_true(setting)

    def test_each_node_fails_alone(self, setting: Setting, elm: FakeNode) -> None:
        setting.add_node("oak")
        elm.up = False

        with setting.runtime() as rt:
            first, second = measuring.measure(rt, ["elm", "oak"])

        assert isinstance(first.failure, Unreachable)
        assert second.failure is None
        assert len(setting.events("node.measure")) == 1

    def test_a_stranger_s_figures_are_not_kept(self, setting: Setting, elm: FakeNode) -> None:
        elm.node_id = "f" * 32

        with setting.runtime() as rt:
            (done,) = measuring.measure(rt, ["elm"])

        assert isinstance(done.failure, ForeignNode)
        assert setting.events("node.measure") == []


def rekey(setting: Setting, tier: Tier = Tier.DISCOVERED) -> tuple[Rekeyed, tuple[str, ...]]:
    asked: list[tuple[str, ...]] = []
    with setting.runtime() as rt:
        done = node_changes.rekey(
            rt, "elm", tier, accept=lambda _shown, placed: asked.append(placed)
        )
    (placed,) = asked
    return done, placed


class TestAnotherIdentity:
    def test_is_taken_and_the_tier_starts_over(self, setting: Setting, elm: FakeNode) -> None:
        with setting.runtime() as rt:
            measuring.measure(rt, ["elm"])
        say(setting, claims=(CAMERA,))
        elm.node_id = "f" * 32
        probe(setting)

        done, _ = rekey(setting)

        node = setting.node("elm")
        assert done.replaced
        assert (node.node_id, node.tier, node.liveness) == (
            "f" * 32,
            Tier.DISCOVERED,
            Liveness.ALIVE,
        )
        said = [one.id for one in view(setting, "elm").capabilities]
        assert CAMERA.id in said, "the operator's word holds"
        assert "perf.memory" not in said, "what was measured was another machine"
        holds_true(setting)

    def test_leaves_what_is_held_on_the_old_machine_held(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        setting.place()
        setting.world.nodes["elm"] = FakeNode(node_id="f" * 32)

        done, placed = rekey(setting, Tier.PAIRED)
        ending = setting.unload("web")

        assert (done.left, placed) == (("web",), ("web",))
        assert ending.code == "foreign-node", "the new machine proves nothing about the old one"
        assert [hold.name for hold in setting.holds()] == ["web"]
        holds_true(setting)

    def test_of_the_same_state_directory_leaves_what_runs_there_alone(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        setting.place()

        done, _ = rekey(setting, Tier.PAIRED)

        assert not done.replaced
        assert setting.unload("web").instance.state is State.UNLOADED

    def test_that_another_node_has_is_refused(self, setting: Setting, elm: FakeNode) -> None:
        setting.add_node("oak")
        elm.node_id = setting.world.nodes["oak"].node_id
        before = setting.node("elm")

        with pytest.raises(NameTaken):
            rekey(setting)

        assert setting.node("elm") == before

    def test_is_not_taken_without_a_yes(self, setting: Setting, elm: FakeNode) -> None:
        def no(_shown: str, _placed: tuple[str, ...]) -> None:
            raise Declined("no")

        elm.node_id = "f" * 32
        before = setting.node("elm")
        with setting.runtime() as rt, pytest.raises(Declined):
            node_changes.rekey(rt, "elm", Tier.PAIRED, accept=no)

        assert setting.node("elm") == before


def remove(setting: Setting, *, clean: bool = False) -> Cleaned | None:
    with setting.runtime() as rt:
        return node_changes.remove(rt, "elm", clean=clean)


class TestRemoval:
    def test_is_refused_while_something_is_placed_there(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        setting.place()
        for ready in (lambda: None, lambda: setting.stop("web")):
            ready()
            with pytest.raises(NodeInUse, match="web"):
                remove(setting, clean=True)

        setting.unload("web")
        assert remove(setting) is None
        with pytest.raises(UnknownName):
            setting.node("elm")
        assert setting.history("web"), "what ran there is still told"
        holds_true(setting)

    def test_cleans_when_asked_and_says_what_for_whom(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        elm.installations.add("another")

        cleaned = remove(setting, clean=True)

        assert cleaned == Cleaned(("/var/lib/wlctl/it",), ("another",))
        assert elm.installations == {"another"}

    @pytest.mark.parametrize(
        ("spoil", "error"),
        [
            pytest.param(lambda elm: setattr(elm, "up", False), Unreachable, id="silent"),
            pytest.param(lambda elm: setattr(elm, "node_id", "f" * 32), NodeUnfit, id="foreign"),
            pytest.param(lambda elm: elm.staged.add("i1"), NodeUnfit, id="not empty"),
        ],
    )
    def test_of_a_node_that_cannot_be_cleaned_does_not_happen(
        self,
        setting: Setting,
        elm: FakeNode,
        spoil: Callable[[FakeNode], None],
        error: type[WlctlError],
    ) -> None:
        spoil(elm)

        with pytest.raises(error):
            remove(setting, clean=True)

        assert setting.node("elm").name == "elm"
        assert setting.events("node.rm") == []

    def test_whose_answer_was_lost_can_be_typed_again(
        self, setting: Setting, elm: FakeNode
    ) -> None:
        setting.world.hook = lost_at("clean", "after")
        with pytest.raises(WlctlError) as caught:
            remove(setting, clean=True)
        assert caught.value.code == "indeterminate"
        setting.world.hook = peaceful

        assert remove(setting, clean=True) is not None
        holds_true(setting)

    def test_gives_name_and_machine_free(self, setting: Setting, elm: FakeNode) -> None:
        say(setting, claims=(CAMERA,))
        with setting.runtime() as rt:
            node_changes.cordon(rt, "elm", for_ms=None)
        remove(setting)

        with setting.runtime() as rt:
            nodes.add(
                rt,
                "elm",
                Address(TransportKind.LOCAL, host="elm"),
                Tier.PAIRED,
                accept_key=lambda _shown: None,
            )

        again = view(setting, "elm")
        assert not again.cordoned
        assert CAMERA not in again.capabilities
        holds_true(setting)


def wanted(name: str, **more: object) -> Wanted:
    return Wanted(name, Address(TransportKind.SSH, host=name), **more)  # type: ignore[arg-type]


def add_all(
    setting: Setting, *listed: Wanted, accept: Callable[[Wanted, str], None] | None = None
) -> list[Added]:
    with setting.runtime() as rt:
        return node_list.add_all(rt, listed, accept=accept or (lambda _wanted, _shown: None))


class TestALongList:
    def test_every_machine_is_added_as_its_line_says(self, setting: Setting) -> None:
        asked = []
        shown = fingerprint(setting.world.add("elm").host_key)
        setting.world.add("oak")

        done = add_all(
            setting,
            wanted("elm", fingerprint=shown, tier=Tier.TRUSTED, claims=(CAMERA,)),
            wanted("oak"),
            accept=lambda one, _shown: asked.append(one.name),
        )

        assert [one.failure for one in done] == [None, None]
        assert asked == ["oak"], "a key that was given is not asked for"
        elm = setting.node("elm")
        assert (elm.tier, elm.address.host_key) == (
            Tier.TRUSTED,
            setting.world.nodes["elm"].host_key,
        )
        assert CAMERA in view(setting, "elm").capabilities
        holds_true(setting)

    def test_each_fails_alone(self, setting: Setting) -> None:
        setting.add_node("ash")
        for name in ("elm", "fir", "ivy", "oak", "yew"):
            setting.world.add(name)
        setting.world.nodes["elm"].up = False
        setting.world.nodes["fir"].missing = ("flock",)
        setting.world.nodes["yew"].node_id = setting.world.nodes["ash"].node_id

        done = add_all(
            setting,
            *map(wanted, ("ash", "elm", "fir", "oak", "yew")),
            wanted("ivy", fingerprint="SHA256:other"),
        )

        failures = {one.wanted.name: one.failure for one in done}
        assert isinstance(failures["ash"], NameTaken)
        assert isinstance(failures["elm"], Unreachable)
        assert isinstance(failures["fir"], NodeUnfit)
        assert failures["oak"] is None
        assert isinstance(failures["yew"], NameTaken)
        assert isinstance(failures["ivy"], HostKeyChanged)
        with setting.runtime() as rt:
            assert [node.name for node in nodes.ls(rt)] == ["ash", "oak"]

    def test_a_no_is_for_one_machine(self, setting: Setting) -> None:
        def only_oak(one: Wanted, _shown: str) -> None:
            if one.name != "oak":
                raise Declined("no")

        for name in ("elm", "oak"):
            setting.world.add(name)

        elm, oak = add_all(setting, wanted("elm"), wanted("oak"), accept=only_oak)

        assert isinstance(elm.failure, Declined)
        assert oak.node is not None
        assert oak.node.name == NodeName("oak")

    def test_a_second_time_does_nothing(self, setting: Setting) -> None:
        setting.world.add("elm")
        add_all(setting, wanted("elm"))

        (again,) = add_all(setting, wanted("elm"))

        assert again.already
        assert len(setting.events("node.add")) == 1
