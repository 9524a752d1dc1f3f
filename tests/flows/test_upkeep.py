"""What a pass lets go: finished jobs, what lies unused on nodes, old documents and keys."""

import itertools

import pytest

from tests.flows import policed
from tests.flows.conftest import write_package
from tests.flows.setting import Setting
from wlctl.errors import Indeterminate, UnknownName
from wlctl.flows import decisions, packages, upkeep
from wlctl.flows.deciding import Order
from wlctl.flows.ending import unload
from wlctl.flows.place import place
from wlctl.flows.reconcile import reconcile
from wlctl.flows.signing import KeyChoice
from wlctl.flows.upkeep import Seen
from wlctl.ledger import keys
from wlctl.ledger.upkeep import Pruned
from wlctl.ledger.verify import Verified
from wlctl.lifecycle.upkeep import DAY_MS
from wlctl.model.alert import AlertKind
from wlctl.model.ids import NodeName
from wlctl.model.instance import State

HOUR_MS = 3_600_000


@pytest.fixture
def finished(setting: Setting) -> Setting:
    """A node with a job on it that has finished, and is kept for an hour."""
    setting.package = setting.package.with_name("job")
    write_package(setting.package, name="job")
    description = setting.package / "workload.toml"
    text = description.read_text().replace('kind = "service"', 'kind = "job"')
    description.write_text(f'{text}[lifecycle]\nkeep = "1h"\n')
    with setting.runtime() as rt:
        packages.build(setting.package)
        packages.sign(rt, setting.package, KeyChoice(setting.key))
    setting.add_node("elm")
    setting.place()
    end(setting)
    return setting


def end(setting: Setting, status: int = 0) -> None:
    setting.world.nodes["elm"].exit(setting.instance("job").id, status)
    with setting.runtime() as rt:
        reconcile(rt)


def pass_ms(setting: Setting, span_ms: int) -> None:
    setting.clock = itertools.count(next(setting.clock) + span_ms, 1000)


def let_go(setting: Setting, *answered: str, dry_run: bool = False) -> Seen:
    with setting.runtime() as rt:
        names = {NodeName(name) for name in answered or ("elm",)}
        return upkeep.unload_finished(rt, names, dry_run=dry_run)


def test_a_finished_job_is_unloaded_when_its_time_is_over_and_not_before(
    finished: Setting,
) -> None:
    pass_ms(finished, HOUR_MS - 60_000)
    assert let_go(finished) == Seen()

    pass_ms(finished, 60_000)
    assert [(one.name, one.came) for one in let_go(finished).done] == [("job", "unloaded")]
    assert finished.instance("job").state is State.UNLOADED
    assert finished.world.nodes["elm"].staged == set()
    assert finished.holds() == ()
    assert isinstance(finished.verified(), Verified)
    before = len(finished.events("*"))
    assert let_go(finished) == Seen()
    assert len(finished.events("*")) == before


def test_a_job_that_failed_or_runs_is_kept(finished: Setting) -> None:
    with finished.runtime() as rt:
        unload(rt, "job")
    finished.place()
    pass_ms(finished, 9 * DAY_MS)
    assert let_go(finished) == Seen()
    end(finished, status=3)
    pass_ms(finished, 9 * DAY_MS)
    assert let_go(finished) == Seen()
    assert finished.instance("job").state is State.FAILED


def test_on_a_node_that_does_not_answer_it_stays(finished: Setting) -> None:
    pass_ms(finished, DAY_MS)

    assert let_go(finished, "oak") == Seen()
    finished.world.nodes["elm"].up = False
    (away,) = let_go(finished).done
    assert (away.came, away.kind) == ("unreachable", AlertKind.ACTION_FAILED)
    assert finished.instance("job").state is State.FINISHED

    finished.world.heal()
    with finished.runtime() as rt:
        reconcile(rt)
    assert finished.instance("job").state is State.UNLOADED


def test_what_the_policy_keeps_is_said_and_writes_nothing(finished: Setting) -> None:
    deny = '[[deny]]\nid = "evidence"\nactions = ["unload"]\nreason = "kept"\n'
    policed.apply(finished, policed.OWNER + policed.WORK + deny)
    pass_ms(finished, DAY_MS)
    before = len(finished.events("*"))

    found = let_go(finished)

    assert found.done == ()
    (alert,) = found.alerts
    assert (alert.kind, alert.subject) == (AlertKind.ACTION_FAILED, "job")
    assert "evidence" in alert.reason
    assert len(finished.events("*")) == before
    assert finished.instance("job").state is State.FINISHED


def test_a_dry_run_says_what_is_past_its_time(finished: Setting) -> None:
    pass_ms(finished, DAY_MS)

    assert [one.came for one in let_go(finished, dry_run=True).done] == ["dry_run"]
    assert finished.instance("job").state is State.FINISHED


def collect(setting: Setting, *answered: str) -> list[str]:
    with setting.runtime() as rt:
        names = {NodeName(name) for name in answered or ("elm",)}
        return [one.came for one in upkeep.collect(rt, names)]


@pytest.fixture
def used(setting: Setting) -> Setting:
    """A node from which a copy was unloaded just now, and left two files."""
    setting.add_node("elm")
    setting.place()
    setting.unload("web")
    setting.world.nodes["elm"].garbage = 2
    return setting


def collections(setting: Setting) -> int:
    return setting.world.nodes["elm"].collections


def test_a_node_is_asked_to_collect_when_what_was_given_up_is_of_age(used: Setting) -> None:
    pass_ms(used, HOUR_MS - 60_000)
    assert collect(used) == []
    assert collections(used) == 0

    pass_ms(used, 60_000)
    assert collect(used) == ["2 files and 0 logs removed"]
    events = len(used.events("*"))
    assert collect(used) == []
    assert collections(used) == 1
    assert len(used.events("*")) == events

    used.place()
    used.unload("web")
    pass_ms(used, 2 * HOUR_MS)
    assert collect(used) == []
    assert collections(used) == 2


def test_a_node_that_nothing_was_placed_on_is_never_asked(setting: Setting) -> None:
    setting.add_node("elm")
    pass_ms(setting, 30 * DAY_MS)

    assert collect(setting) == []
    assert collections(setting) == 0


def test_a_node_that_is_used_is_asked_once_a_day_for_its_logs(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()
    pass_ms(setting, DAY_MS - 60_000)
    collect(setting)
    assert collections(setting) == 0

    pass_ms(setting, 60_000)
    for _ in range(3):
        collect(setting)
    assert collections(setting) == 1
    pass_ms(setting, DAY_MS)
    collect(setting)
    assert collections(setting) == 2


def test_a_node_that_cannot_be_asked_is_asked_by_a_later_pass(used: Setting) -> None:
    pass_ms(used, 2 * HOUR_MS)
    assert collect(used, "oak") == []

    used.world.nodes["elm"].up = False
    assert collect(used) == []
    used.world.heal()
    assert collect(used) == ["2 files and 0 logs removed"]


def test_another_machine_that_answers_is_not_taken_for_the_node(used: Setting) -> None:
    pass_ms(used, 2 * HOUR_MS)
    used.world.nodes["elm"].node_id = "f" * 32

    assert collect(used) == []
    used.world.nodes["elm"].node_id = "a" * 32
    assert collect(used) == []
    assert collections(used) == 2


def prune(setting: Setting) -> Pruned:
    with setting.runtime() as rt:
        return upkeep.prune(rt)


def test_the_document_of_a_dry_run_goes_after_a_week_and_its_event_stays(setting: Setting) -> None:
    setting.add_node("elm")
    with setting.runtime() as rt:
        dry = place(rt, Order(package=setting.package, dry_run=True))
    setting.place()
    assert dry.decision is not None
    pass_ms(setting, 7 * DAY_MS - 120_000)
    assert prune(setting) == Pruned()

    pass_ms(setting, 120_000)
    assert prune(setting) == Pruned(documents=1)
    events = len(setting.events("*"))
    assert prune(setting) == Pruned()
    assert len(setting.events("*")) == events
    assert setting.events("ledger.*")[-1].payload["documents"] == 1
    with setting.runtime() as rt, pytest.raises(UnknownName, match="not kept any more"):
        decisions.explain(rt, dry.decision)
    assert isinstance(setting.verified(), Verified)


def test_a_key_goes_after_thirty_days(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place(key="nightly")
    pass_ms(setting, 30 * DAY_MS - 120_000)
    assert prune(setting) == Pruned()

    pass_ms(setting, 120_000)
    assert prune(setting) == Pruned(keys=1)
    assert prune(setting) == Pruned()
    assert isinstance(setting.verified(), Verified)


def test_the_key_of_what_is_not_settled_stays(setting: Setting) -> None:
    setting.add_node("elm")

    def lose(step: str, moment: str) -> None:
        if (step, moment) == ("place", "after"):
            setting.world.nodes["elm"].up = False
            raise Indeterminate("lost")

    setting.world.hook = lose
    setting.place(key="nightly")
    pass_ms(setting, 40 * DAY_MS)

    assert prune(setting) == Pruned()
    with setting.runtime() as rt, rt.ledger.read() as tx:
        assert keys.find(tx, "nightly") is not None


def test_a_pass_does_all_that_is_due_and_a_second_one_right_after_does_nothing(
    finished: Setting,
) -> None:
    finished.world.nodes["elm"].garbage = 3
    pass_ms(finished, 40 * DAY_MS)

    def pass_over() -> Seen:
        with finished.runtime() as rt:
            return upkeep.see_to(rt, {NodeName("elm")})

    assert [one.came for one in pass_over().done] == ["unloaded", "3 files and 0 logs removed"]
    before = len(finished.events("*")), collections(finished)
    assert pass_over() == Seen()
    assert (len(finished.events("*")), collections(finished)) == before


def test_a_dry_run_collects_and_prunes_nothing(finished: Setting) -> None:
    pass_ms(finished, 40 * DAY_MS)
    before = len(finished.events("*"))

    with finished.runtime() as rt:
        found = upkeep.see_to(rt, {NodeName("elm")}, dry_run=True)

    assert [one.came for one in found.done] == ["dry_run"]
    assert (len(finished.events("*")), collections(finished)) == (before, 0)
