"""A ledger that is older than its nodes, or one of two, is found at the first contact."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.flows.setting import Setting, TestRuntime
from wlctl.errors import ExitCode, LedgerForked, LedgerRolledBack, WlctlError
from wlctl.flows import node_changes, revocations, starting, stored, witnessed
from wlctl.flows.ending import End
from wlctl.flows.nodes import add
from wlctl.flows.reconcile import reconcile
from wlctl.flows.witnesses import EVERY_MS, Watch
from wlctl.ledger import alerts, chain, instances, witnesses
from wlctl.ledger.verify import Verified
from wlctl.model.ids import NodeName
from wlctl.model.instance import Instance
from wlctl.model.node import Address, Liveness, Tier, TransportKind
from wlctl.model.revocation import RevocationKind
from wlctl.model.upkeep import ChainPoint, Checkpoint
from wlctl.model.witness import Doubt, Standing

FOUND = (LedgerRolledBack, LedgerForked)
"""An old copy that has recorded what it is about to do looks like the other one of two."""


@pytest.fixture
def elm(setting: Setting) -> Setting:
    """An installation with one node and one copy on it."""
    setting.add_node("elm")
    assert setting.place(name="web").copies[0].is_placed
    return setting


def copied(setting: Setting, directory: Path) -> Setting:
    """The same installation on another machine: a copy of its directory, and the same nodes."""
    home = directory / "copied"
    shutil.copytree(setting.home, home)
    return replace(setting, home=home)


def doubt_of(setting: Setting) -> Doubt | None:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        return witnesses.doubt_of(tx)


def steps_of(setting: Setting) -> list[str]:
    """From now on, list what is asked of nodes."""
    seen: list[str] = []

    def hook(step: str, moment: str) -> None:
        if moment == "before":
            seen.append(step)

    setting.world.hook = hook
    return seen


def place(setting: Setting, name: str, node: str = "") -> WlctlError | None:
    """Place a copy, and answer what kept it from being."""
    try:
        report = setting.place(name=name, pin=NodeName(node) if node else None)
    except WlctlError as failure:
        return failure
    return report.copies[0].failure


def test_what_changes_something_leaves_a_checkpoint_of_it_before(elm: Setting) -> None:
    with elm.runtime() as rt, rt.ledger.read() as tx:
        asked = next(event for event in chain.events(tx, kind="workload.place"))

    newest = elm.world.nodes["elm"].newest_checkpoint()

    assert newest is not None
    assert newest.seq > asked.seq
    assert [member.name for member in elm.world.nodes["elm"].fleet.members] == ["elm"]


def test_every_node_agrees_with_a_ledger_that_is_the_only_one(elm: Setting) -> None:
    elm.add_node("oak")
    with elm.runtime() as rt:
        found = witnessed.ask(rt)

    assert [(one.node, one.standing) for one in found] == [
        ("elm", Standing.AGREES),
        ("oak", Standing.NONE),
    ]


def test_an_old_copy_is_found_before_anything_is_sent_and_from_then_on_known(
    elm: Setting, tmp_path: Path
) -> None:
    old = copied(elm, tmp_path)
    elm.place(name="second")
    asked = steps_of(elm)

    failure = place(old, "third")

    assert isinstance(failure, FOUND)
    assert failure.exit_code is ExitCode.LEDGER
    assert "place" not in asked
    assert "receive" not in asked
    assert doubt_of(old) in (Doubt.ROLLED_BACK, Doubt.FORKED)
    assert old.open_operations() == []
    assert [hold.name for hold in old.holds()] == ["web"]
    assert isinstance(old.verified(), Verified)
    with old.runtime() as rt, rt.ledger.read() as tx:
        assert [one.alert.kind.value for one in alerts.ls(tx)] in (["rollback"], ["fork"])
    with pytest.raises(FOUND):
        old.place(name="fourth")
    assert place(elm, "third") is None, "the one that is whole goes on"


def test_two_copies_that_both_went_on_are_found_by_whichever_comes_second(
    elm: Setting, tmp_path: Path
) -> None:
    elm.add_node("oak")
    other = copied(elm, tmp_path)
    for name in ("one", "two", "three"):
        assert place(elm, name, "oak") is None
    for name in ("x", "y", "z", "zz"):
        assert place(other, name, "elm") is None

    assert isinstance(place(elm, "last", "elm"), FOUND)
    assert isinstance(place(other, "last", "oak"), LedgerForked)
    assert doubt_of(elm) in (Doubt.ROLLED_BACK, Doubt.FORKED)
    assert doubt_of(other) is Doubt.FORKED


def test_what_will_not_be_started_again_is_not_stopped_for_a_restart(
    elm: Setting, tmp_path: Path
) -> None:
    other = copied(elm, tmp_path)
    assert place(elm, "second") is None

    with other.runtime() as rt, pytest.raises(FOUND):
        starting.restart_one(rt, rt_instance(rt))

    assert len(elm.alive()) == 2
    assert other.open_operations() == []


def test_a_stop_elsewhere_is_found_by_the_first_start_of_the_copy(
    elm: Setting, tmp_path: Path
) -> None:
    other = copied(elm, tmp_path)
    elm.stop("web")

    with other.runtime() as rt, pytest.raises(FOUND):
        starting.restart_one(rt, rt_instance(rt))

    assert elm.alive() == []


def rt_instance(rt: TestRuntime) -> Instance:
    with rt.ledger.read() as tx:
        return instances.find(tx, "web")


REFUSED: dict[str, Callable[[TestRuntime], object]] = {
    "start": lambda rt: starting.start(rt, "web"),
    "restart": lambda rt: starting.restart_one(rt, rt_instance(rt)),
    "node rm": lambda rt: node_changes.remove(rt, "elm", clean=False),
    "package gc": lambda rt: stored.gc(rt, dry_run=False),
    "unrevoke": lambda rt: revocations.unrevoke(rt, RevocationKind.PACKAGE, "ab" * 32, "why"),
    "node add": lambda rt: add(
        rt,
        "oak",
        Address(TransportKind.LOCAL, host="oak"),
        Tier.PAIRED,
        accept_key=lambda _fingerprint: None,
    ),
}


@pytest.mark.parametrize("verb", REFUSED)
def test_with_a_doubted_ledger_is_refused(elm: Setting, verb: str) -> None:
    elm.world.add("oak")
    elm.stop("web")
    with elm.runtime() as rt, rt.ledger.write(rt.now_ms(), rt.author) as tx:
        witnesses.doubt(tx, Doubt.RESTORED, {})
    asked = steps_of(elm)

    with elm.runtime() as rt, pytest.raises(LedgerRolledBack, match="is a backup"):
        REFUSED[verb](rt)

    assert asked == []
    assert elm.open_operations() == []


def test_with_a_doubted_ledger_things_are_ended_and_kept_from_running(elm: Setting) -> None:
    with elm.runtime() as rt, rt.ledger.write(rt.now_ms(), rt.author) as tx:
        witnesses.doubt(tx, Doubt.FORKED, {})
        assert witnesses.doubt(tx, Doubt.RESTORED, {}) is None, "it is doubted once"

    assert elm.stop("web").end is End.DONE
    with elm.runtime() as rt:
        node_changes.cordon(rt, "elm", for_ms=None)
    assert elm.unload("web").end is End.DONE
    assert elm.alive() == []
    assert isinstance(elm.verified(), Verified)


def test_a_node_that_keeps_what_was_never_signed_speaks_only_against_itself(
    elm: Setting,
) -> None:
    elm.add_node("oak")
    forged = ChainPoint(7, 1, "f" * 64)
    elm.world.nodes["elm"].checkpoints.append(Checkpoint(forged, "nobody signed this\n\n"))

    report = elm.place(name="next", prefer=(NodeName("elm"),))

    (copy,) = report.copies
    assert [one.code for one in copy.attempts] == ["false-witness", ""]
    assert copy.is_placed
    assert doubt_of(elm) is None
    with elm.runtime() as rt:
        found = {one.node: one for one in witnessed.ask(rt)}
    failure = found[NodeName("elm")].failure
    assert failure is not None
    assert failure.code == "false-witness"
    assert found[NodeName("oak")].standing is Standing.AGREES


def test_a_pass_leaves_a_checkpoint_once_and_nothing_where_nothing_happened(
    elm: Setting,
) -> None:
    node = elm.node("elm")
    elm.stop("web")

    def keep() -> list[str]:
        asked = steps_of(elm)
        with elm.runtime() as rt, rt.connect(node.address) as session:
            theirs = elm.world.nodes["elm"].newest_checkpoint()
            Watch(rt).keep(session, node, theirs)  # type: ignore[arg-type] # a session's twin
        return [one for one in asked if one not in ("connect", "commit")]

    assert keep() == [], "the stop has left one just now"
    for _ in range(EVERY_MS // 1000):
        next(elm.clock)
    assert keep() == ["checkpoint"]
    assert keep() == []
    for _ in range(EVERY_MS // 1000):
        next(elm.clock)
    assert keep() == [], "nothing has happened since"


def test_a_witness_that_is_missed_keeps_nobody_from_anything(elm: Setting) -> None:
    def hook(step: str, moment: str) -> None:
        if (step, moment) == ("checkpoint", "before"):
            raise LedgerRolledBack("whatever it is")

    elm.world.hook = hook

    assert place(elm, "second") is None
    assert elm.stop("second").end is End.DONE


def test_a_pass_does_nothing_with_an_old_ledger_and_renews_nothing(
    elm: Setting, tmp_path: Path
) -> None:
    old = copied(elm, tmp_path)
    assert place(elm, "second") is None
    asked = steps_of(elm)

    for _ in range(2):
        with old.runtime() as rt, pytest.raises(LedgerRolledBack):
            reconcile(rt)

    assert set(asked) <= {"connect", "status", "witness", "commit"}
    assert doubt_of(old) is Doubt.ROLLED_BACK
    with old.runtime() as rt:
        assert reconcile(rt, dry_run=True).done == (), "looking is always allowed"


def test_a_pass_leaves_every_node_a_checkpoint_and_the_next_one_nothing(elm: Setting) -> None:
    elm.add_node("oak")
    with elm.runtime() as rt:
        reconcile(rt)
    assert elm.world.nodes["oak"].newest_checkpoint() is not None
    asked = steps_of(elm)

    with elm.runtime() as rt:
        assert reconcile(rt).is_quiet

    assert "checkpoint" not in asked


def test_a_node_that_lies_about_the_chain_is_not_dead_for_it(elm: Setting) -> None:
    forged = ChainPoint(7, 1, "f" * 64)
    elm.world.nodes["elm"].checkpoints.append(Checkpoint(forged, "nobody signed this\n\n"))

    for _ in range(5):
        with elm.runtime() as rt:
            reconcile(rt)

    assert elm.node("elm").liveness is not Liveness.DEAD
    assert doubt_of(elm) is None
    with elm.runtime() as rt, rt.ledger.read() as tx:
        assert [one.alert.kind.value for one in alerts.ls(tx)] == ["node-refuses"]
