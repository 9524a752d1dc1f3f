"""A ledger that is gone, old or copied is made anew from what its nodes keep."""

import itertools
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.flows.going_over import TICK_MS, go_over
from tests.flows.setting import Killed, Setting
from tests.world import World
from wlctl.cli.rebuilt import as_json, exit_code, lines
from wlctl.errors import (
    DoorRefused,
    ExitCode,
    GarbledAnswer,
    LedgerForked,
    LedgerRolledBack,
    NoLedger,
)
from wlctl.flows import attesting, signers, starting, witnessed
from wlctl.flows import ledger as flow
from wlctl.flows.ending import End
from wlctl.flows.rebuild import Rebuilt, rebuild
from wlctl.flows.recalling import Target
from wlctl.flows.start_intents import Begin
from wlctl.ledger import alerts, instances, revocations, witnesses
from wlctl.ledger.verify import Verified
from wlctl.model.actions import Refused
from wlctl.model.ids import InstallationId, NodeName
from wlctl.model.instance import Desired, State
from wlctl.model.node import Address, Tier, TransportKind
from wlctl.model.policy import Unreadable
from wlctl.model.revocation import RevocationKind
from wlctl.model.upkeep import Checkpoint, Fleet, FleetMember, Recalled, Witness
from wlctl.model.witness import Doubt, Standing

ELM, OAK = NodeName("elm"), NodeName("oak")


@pytest.fixture
def fleet(setting: Setting) -> Setting:
    """Two nodes, a copy on each, and one that is stopped."""
    setting.add_node("elm", tier=Tier.TRUSTED)
    setting.add_node("oak")
    for name, node in (("web", ELM), ("api", OAK), ("old", OAK)):
        setting.place(name=name, pin=node)
    setting.stop("old")
    return setting


def seed(host: str, name: str = "") -> Target:
    return Target(NodeName(name), "", Address(TransportKind.LOCAL, host=host), Tier.DISCOVERED)


def rebuilt(setting: Setting, *seeds: Target) -> Rebuilt:
    with setting.runtime() as rt:
        return rebuild(rt, seeds, accept_key=lambda _where, _shown: None, accept=lambda: None)


def delete(setting: Setting) -> None:
    """Delete the ledger, and leave the keys."""
    (setting.home / "ledger.db").unlink()


def names(setting: Setting) -> dict[str, State]:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        return {one.name: one.state for one in instances.current(tx)}


def doubt_of(setting: Setting) -> Doubt | None:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        return witnesses.doubt_of(tx)


def test_a_deleted_ledger_is_made_again_and_everything_can_be_ended_and_proven(
    fleet: Setting,
) -> None:
    before, installation = names(fleet), ""
    with fleet.runtime() as rt:
        installation = rt.ledger.installation
    delete(fleet)

    done = rebuilt(fleet, seed("oak"))

    assert done.made
    assert done.installation == installation
    assert done.nodes == (ELM, OAK)
    assert done.epoch == 1
    assert exit_code(done) is ExitCode.DONE
    assert "the ledger is believed again, in epoch 1" in list(lines(done))
    assert as_json(done)["over"] is True
    assert not [copy for copy in done.copies if copy.trouble]
    assert names(fleet) == before | {"old": State.STOPPING}
    assert fleet.node("elm").tier is Tier.TRUSTED
    assert isinstance(fleet.verified(), Verified)
    assert sorted(len(fleet.holds()) * "h") == ["h"] * 3
    for name in before:
        assert fleet.unload(name).end is End.DONE, name
    assert fleet.alive() == []
    assert fleet.holds() == ()
    assert isinstance(fleet.verified(), Verified)


def test_what_was_made_again_is_stopped_and_started_with_numbers_that_count(
    fleet: Setting,
) -> None:
    delete(fleet)
    rebuilt(fleet, seed("elm"))

    assert fleet.stop("web").end is End.DONE
    with fleet.runtime() as rt:
        signers.add(rt, "me", fleet.key.with_name("signer.pub"))
        again = starting.start(rt, "web")

    assert again.begin is Begin.DONE, again.detail
    assert fleet.world.nodes["elm"].alive == {fleet.instance("web").id: 2}
    assert fleet.place(name="more").copies[0].is_placed


def test_what_is_asked_of_a_copy_while_nodes_are_asked_is_not_undone(fleet: Setting) -> None:
    """Its node had told that it runs; then it was stopped."""
    web = fleet.instance("web").id

    def stop_meanwhile(step: str, moment: str) -> None:
        if (step, moment) == ("recall", "before") and web in fleet.world.nodes["elm"].alive:
            fleet.stop("web")

    fleet.world.hook = stop_meanwhile
    rebuilt(fleet)

    assert fleet.instance("web").state is State.STOPPED
    assert fleet.instance("web").desired is Desired.STOPPED


def test_a_rebuild_may_be_repeated_and_finds_nothing_new(fleet: Setting) -> None:
    delete(fleet)
    rebuilt(fleet, seed("elm"))
    before, holds = names(fleet), fleet.holds()

    again = rebuilt(fleet)

    assert [copy.name for copy in again.copies if copy.is_new] == []
    assert again.epoch == 2
    assert names(fleet) == before
    assert fleet.holds() == holds
    assert isinstance(fleet.verified(), Verified)


def test_nothing_on_any_node_is_changed_but_the_checkpoint(fleet: Setting) -> None:
    asked: list[str] = []
    delete(fleet)

    def hook(step: str, moment: str) -> None:
        if moment == "before":
            asked.append(step)

    fleet.world.hook = hook
    rebuilt(fleet, seed("elm"))

    reading = {"connect", "installations", "witness", "status", "recall", "facts", "fetch"}
    assert set(asked) == reading | {"checkpoint"}


def backed_up(fleet: Setting, directory: Path) -> Path:
    with fleet.runtime() as rt:
        return flow.backup(rt, directory / "backup.db").file


def put_back(fleet: Setting, backup: Path) -> flow.PutBack:
    with fleet.runtime() as rt:
        return flow.put_back(rt, backup, replace=True, accept=lambda _there: None)


def test_an_old_backup_only_ends_things_until_its_nodes_were_asked(
    fleet: Setting, tmp_path: Path
) -> None:
    backup = backed_up(fleet, tmp_path)
    fleet.add_node("ash")
    fleet.place(name="new", pin=NodeName("ash"))
    fleet.unload("api")
    oak = fleet.world.nodes["oak"]
    gone = fleet.instance("api").id
    oak.departed[gone] = oak.number[gone]
    fleet.stop("web")
    put_back(fleet, backup)

    with pytest.raises(LedgerRolledBack):
        fleet.place(name="other")
    with pytest.raises(LedgerRolledBack), fleet.runtime() as rt:
        starting.start(rt, "old")
    assert fleet.stop("web").end is End.DONE
    done = rebuilt(fleet)

    assert done.nodes == (NodeName("ash"), ELM, OAK)
    assert done.departed == 1
    assert [copy.name for copy in done.copies if copy.is_new] == ["new"]
    assert names(fleet) == {"web": State.STOPPED, "old": State.STOPPED, "new": State.RUNNING}
    assert doubt_of(fleet) is None
    assert fleet.stop("new").end is End.DONE
    assert fleet.unload("new").end is End.DONE
    assert fleet.place(name="other").copies[0].is_placed
    assert isinstance(fleet.verified(), Verified)


@pytest.mark.parametrize("verb", ["stop", "unload"])
def test_what_was_done_since_a_backup_does_not_keep_it_from_ending_things(
    fleet: Setting, tmp_path: Path, verb: str
) -> None:
    backup = backed_up(fleet, tmp_path)
    for _ in range(2):
        with fleet.runtime() as rt:
            fleet.stop("web")
            assert starting.start(rt, "web").begin is Begin.DONE
    shutil.copy(backup, fleet.home / "ledger.db")

    done = fleet.stop("web") if verb == "stop" else fleet.unload("web")

    assert done.end is End.DONE, done.detail
    assert fleet.instance("web").id not in fleet.world.nodes["elm"].alive
    assert doubt_of(fleet) in (Doubt.ROLLED_BACK, Doubt.FORKED)
    assert isinstance(fleet.verified(), Verified)


def test_of_two_copies_the_one_that_was_rebuilt_is_the_only_one_from_then_on(
    fleet: Setting, tmp_path: Path
) -> None:
    other = replace(fleet, home=tmp_path / "other")
    shutil.copytree(fleet.home, other.home)
    fleet.place(name="here", pin=ELM)
    with pytest.raises((LedgerForked, LedgerRolledBack)):
        other.place(name="there", pin=ELM)

    done = rebuilt(other)

    assert [copy.name for copy in done.copies if copy.is_new] == ["here"]
    assert other.place(name="there", pin=ELM).copies[0].is_placed
    with pytest.raises(LedgerRolledBack):
        fleet.place(name="more", pin=OAK)
    with other.runtime() as rt:
        assert {one.standing for one in witnessed.ask(rt)} == {Standing.AGREES}
        with rt.ledger.read() as tx:
            assert alerts.ls(tx) == []


def test_a_node_that_is_away_keeps_the_rebuild_from_being_over(fleet: Setting) -> None:
    delete(fleet)
    fleet.world.nodes["elm"].up = False

    first = rebuilt(fleet, seed("oak"))

    assert first.epoch is None
    assert exit_code(first) is ExitCode.UNREACHABLE
    said = "\n".join(lines(first))
    assert "elm could not be asked (connect-failed)" in said
    assert "it is not over" in said
    assert as_json(first)["failures"] == {"elm": "connect-failed"}
    assert [name for name, _ in first.failures] == ["elm"]
    assert names(fleet).keys() == {"api", "old"}
    assert doubt_of(fleet) is Doubt.RESTORED
    with pytest.raises(LedgerRolledBack), fleet.runtime() as rt:
        signers.add(rt, "me", fleet.key.with_name("signer.pub"))
    assert fleet.unload("api").end is End.DONE
    fleet.world.heal()
    assert rebuilt(fleet).epoch == 1
    assert names(fleet).keys() == {"web", "old"}


def test_a_node_that_is_attested_dead_is_not_waited_for(fleet: Setting) -> None:
    delete(fleet)
    fleet.world.nodes["elm"].up = False
    rebuilt(fleet, seed("oak"))

    with fleet.runtime() as rt:
        attesting.attest_dead(rt, "elm", replaced=False, accept=lambda _held: None)

    assert rebuilt(fleet).epoch == 1
    with fleet.runtime() as rt:
        signers.add(rt, "me", fleet.key.with_name("signer.pub"))
    assert fleet.place(name="more").copies[0].is_placed


def test_without_keys_or_without_a_node_there_is_nothing_to_make_a_ledger_with(
    fleet: Setting,
) -> None:
    delete(fleet)
    with pytest.raises(NoLedger, match="no node is known"):
        rebuilt(fleet)
    shutil.rmtree(fleet.home / "keys")
    with pytest.raises(NoLedger, match="its keys are not"):
        rebuilt(fleet, seed("elm"))
    assert not (fleet.home / "ledger.db").exists()


def test_a_node_of_somebody_else_makes_no_ledger(fleet: Setting) -> None:
    delete(fleet)
    stranger = fleet.world.add("stranger")
    stranger.checkpoints = [Checkpoint(fleet.world.nodes["elm"].checkpoints[-1].at, "no note")]
    stranger.witness_of = InstallationId("wother")

    with pytest.raises(NoLedger, match="none of these nodes keeps a checkpoint"):
        rebuilt(fleet, seed("stranger"))
    assert not (fleet.home / "ledger.db").exists()


def test_no_node_can_put_a_machine_into_the_fleet(fleet: Setting) -> None:
    delete(fleet)
    fleet.world.add("evil")
    evil = FleetMember(
        NodeName("evil"),
        fleet.world.nodes["evil"].node_id,
        Address(TransportKind.LOCAL, host="evil"),
        Tier.TRUSTED,
    )
    elm = fleet.world.nodes["elm"]
    elm.fleet = Fleet((*elm.fleet.members, evil), elm.fleet.note)

    done = rebuilt(fleet, seed("oak"), seed("elm"))

    assert done.nodes == (ELM, OAK)


def test_what_any_node_keeps_as_revoked_is_revoked(
    fleet: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    ref = "ab" * 32
    kept = Recalled("", (), (), (("package", ref), ("artifact", "cd" * 32), ("odd", "x")))
    plain = World.connect

    def connect(world: World, address: Address) -> object:
        session = plain(world, address)
        recall = session.recall

        def more(installation: InstallationId) -> Recalled | Refused:
            found = recall(installation)
            assert isinstance(found, Recalled)
            return replace(found, revoked=kept.revoked)

        session.recall = more  # type: ignore[method-assign, assignment]  # what this node keeps
        return session

    monkeypatch.setattr(World, "connect", connect)
    delete(fleet)

    assert rebuilt(fleet, seed("elm")).revoked == 2

    with fleet.runtime() as rt, rt.ledger.read() as tx:
        found = revocations.in_force(tx)
    assert not isinstance(found, Unreadable)
    assert ref in found.refs
    assert RevocationKind.PACKAGE in {one.kind for one in found.entries}


def test_two_copies_of_one_name_are_both_kept_and_the_one_that_lives_has_it(
    fleet: Setting,
) -> None:
    elm, oak = (fleet.world.nodes[name] for name in ("elm", "oak"))
    (api,) = (one for one in oak.placed.values() if one.name == "api")
    (web,) = (one for one in elm.placed.values() if one.name == "web")
    elm.placed[web.decision] = replace(web, name="api")
    oak.exit(api.instance, 1)
    delete(fleet)

    done = rebuilt(fleet, seed("elm"))

    assert {copy.name: copy.node for copy in done.copies if "api" in copy.name} == {
        "api": ELM,
        f"api-{api.instance[-6:]}": OAK,
    }
    assert [bool(copy.trouble) for copy in done.copies].count(True) == 1
    for name in names(fleet):
        assert fleet.unload(name).end is End.DONE


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param(b"{}", id="another file"),
        pytest.param(b"x" * ((1 << 20) + 1), id="one that is too long"),
        pytest.param(b"", id="none"),
    ],
)
def test_what_cannot_be_known_again_is_named_and_no_manifest_is_believed_but_by_its_hash(
    fleet: Setting, spoilt: bytes
) -> None:
    running = {one for _, one in fleet.alive()}
    for node in fleet.world.nodes.values():
        for asked in node.placed.values():
            node.store[asked.package] = spoilt
    delete(fleet)

    done = rebuilt(fleet, seed("elm"))

    assert running <= {copy.instance for copy in done.copies if copy.trouble}
    assert names(fleet) == {}
    assert exit_code(done) is ExitCode.PARTIAL
    assert {one for _, one in fleet.alive()} == running, "nothing is ended for it"
    assert isinstance(fleet.verified(), Verified)


def test_a_launch_sheet_that_is_not_the_package_s_is_not_believed(fleet: Setting) -> None:
    elm = fleet.world.nodes["elm"]
    (web,) = elm.placed.values()
    elm.placed[web.decision] = replace(web, sheet="ab" * 32)
    delete(fleet)

    done = rebuilt(fleet, seed("elm"))

    assert [copy.trouble for copy in done.copies if copy.trouble] == [
        "its launch sheet is not one of its package's"
    ]
    assert names(fleet).keys() == {"api", "old"}


def test_an_instance_that_a_second_node_claims_too_stays_where_it_is(
    fleet: Setting,
) -> None:
    elm, oak = (fleet.world.nodes[name] for name in ("elm", "oak"))
    (web,) = elm.placed.values()
    oak.placed[web.decision] = web
    oak.staged.add(web.instance)

    done = rebuilt(fleet)

    assert [(copy.node, copy.trouble) for copy in done.copies if copy.trouble] == [
        (OAK, "the ledger has it on elm: that node's word counts")
    ]
    assert fleet.instance("web").node == ELM


def test_a_seed_behind_a_doorkeeper_is_spoken_to_as_one(
    fleet: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = World.connect

    def connect(world: World, address: Address) -> object:
        if address.host == "oak" and not address.enforced:
            raise DoorRefused("a doorkeeper stands there")
        return plain(world, address)

    monkeypatch.setattr(World, "connect", connect)
    delete(fleet)

    done = rebuilt(fleet, seed("oak"))

    assert OAK in done.nodes
    assert fleet.node("oak").address.enforced


def test_an_answer_that_is_none_is_one_line_and_nothing_of_it_is_kept(
    fleet: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete(fleet)
    plain = World.connect

    def connect(world: World, address: Address) -> object:
        session = plain(world, address)
        if address.host == "elm":

            def garbled(_installation: InstallationId) -> Witness | Refused:
                raise GarbledAnswer("a line that is none")

            session.witness = garbled  # type: ignore[method-assign] # a hostile node
        return session

    monkeypatch.setattr(World, "connect", connect)

    done = rebuilt(fleet, seed("oak"))

    assert [(name, failure.code) for name, failure in done.failures] == [("elm", "garbled-answer")]
    assert done.epoch is None
    assert "web" not in names(fleet)


def test_a_node_that_answers_as_another_is_not_believed(fleet: Setting) -> None:
    delete(fleet)
    fleet.world.nodes["elm"].node_id = "f" * 32

    done = rebuilt(fleet, seed("oak"))

    assert [(name, failure.code) for name, failure in done.failures] == [("elm", "foreign-node")]
    assert "web" not in names(fleet)


def every_commit(fleet: Setting, directory: Path, of: str) -> int:
    """Count the commits of a rebuild, or of a restore."""
    trial = fleet.copy(directory / "trial")
    count = 0

    def hook(step: str, _moment: str) -> None:
        nonlocal count
        count += step == "commit"

    trial.world.hook = hook
    rebuilt(trial, *([seed("oak")] if of == "deleted" else []))
    return count


@pytest.mark.parametrize("kind", ["deleted", "restored"])
def test_killed_after_any_commit_a_rebuild_is_finished_by_the_next(
    fleet: Setting, tmp_path: Path, kind: str
) -> None:
    backup = backed_up(fleet, tmp_path)
    fleet.place(name="late", pin=ELM)
    if kind == "deleted":
        delete(fleet)
    else:
        put_back(fleet, backup)
    commits = every_commit(fleet, tmp_path, kind)
    assert commits > 5

    for number in range(1, commits):
        case = fleet.copy(tmp_path / str(number))
        left = number

        def hook(step: str, _moment: str) -> None:
            nonlocal left
            left -= step == "commit"
            if not left:
                raise Killed

        case.world.hook = hook
        with pytest.raises(Killed):
            rebuilt(case, *([seed("oak")] if kind == "deleted" else []))
        case.world.heal()

        done = rebuilt(case, seed("oak"))

        assert done.epoch is not None
        assert names(case).keys() == {"web", "api", "old", "late"}, number
        assert isinstance(case.verified(), Verified)


def test_a_copy_that_was_placed_anew_since_a_backup_keeps_the_place_of_the_lost_one(
    setting: Setting, tmp_path: Path
) -> None:
    """Its node died after the backup, and the ledger was lost before that node was back."""
    setting.clock = itertools.count(next(setting.clock), TICK_MS)
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    setting.place(prefer=(ELM,))
    old = setting.instance("web")
    go_over(setting)
    backup = backed_up(setting, tmp_path)
    setting.world.nodes["elm"].up = False
    go_over(setting, 4)
    new = setting.named("web")
    assert new.id != old.id

    put_back(setting, backup)
    with setting.runtime() as rt:
        attesting.attest_dead(rt, "elm", replaced=False, accept=lambda _: None)
    rebuilt(setting)
    go_over(setting, 3, after_s=400)

    assert {iid for _, iid in setting.alive()} == {old.id, new.id}
    assert setting.named("web").id == new.id
    assert list(names(setting)) == ["web"]
    setting.world.nodes["elm"].up = True
    go_over(setting, 2, after_s=400)
    assert [iid for _, iid in setting.alive()] == [new.id]
    assert isinstance(setting.verified(), Verified)
