"""Leases: armed by every start, renewed by every pass, and never too short to be renewed."""

import itertools
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.flows.setting import Killed, Setting
from tests.world import lost_at
from wlctl.errors import Indeterminate, NameTaken, UsageError
from wlctl.flows import ledger as ledgers
from wlctl.flows.rebuild import rebuild
from wlctl.flows.reconcile import Pass, reconcile
from wlctl.flows.starting import restart_one
from wlctl.ledger import instances, leases
from wlctl.lifecycle.lease import KILL_BOUND_MS, bound_ms
from wlctl.model.alert import AlertKind
from wlctl.model.ids import NodeName
from wlctl.model.instance import Instance, State
from wlctl.model.node import Liveness

MINUTE_MS = 60_000


@pytest.fixture
def leased(setting: Setting) -> Setting:
    """A copy that its node ends five minutes after the last renewal."""
    setting.add_node("elm")
    setting.place(lease_ms=5 * MINUTE_MS)
    return setting


def until_ms(setting: Setting) -> int:
    return setting.world.nodes["elm"].leases[setting.instance("web").id]


def pass_over(setting: Setting) -> None:
    with setting.runtime() as rt:
        reconcile(rt)


def test_a_lease_counts_from_a_reading_of_the_connection_that_starts_it(leased: Setting) -> None:
    assert until_ms(leased) == 1_000_100 + 5 * MINUTE_MS


def test_a_copy_without_a_lease_has_none(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()
    pass_over(setting)

    assert setting.world.nodes["elm"].leases == {}


def test_every_pass_renews_it_from_its_own_reading(leased: Setting) -> None:
    node = leased.world.nodes["elm"]
    for uptime_ms in (1_060_000, 1_120_000):
        node.uptime_ms = uptime_ms

        pass_over(leased)

        assert until_ms(leased) == uptime_ms + 5 * MINUTE_MS


def test_a_dry_run_renews_nothing(leased: Setting) -> None:
    before = until_ms(leased)
    leased.world.nodes["elm"].uptime_ms = 1_060_000

    with leased.runtime() as rt:
        reconcile(rt, dry_run=True)

    assert until_ms(leased) == before


def test_the_next_run_has_the_lease_of_its_order_too(leased: Setting) -> None:
    with leased.runtime() as rt:
        restart_one(rt, leased.instance("web"))

    assert leased.instance("web").generation == 2
    assert until_ms(leased) > 5 * MINUTE_MS


def test_a_lease_is_a_part_of_the_order(leased: Setting) -> None:
    with pytest.raises(NameTaken, match="other options"):
        leased.place(lease_ms=6 * MINUTE_MS)


@pytest.mark.parametrize("lease_ms", [3 * MINUTE_MS - 1, 1])
def test_a_lease_shorter_than_three_passes_is_refused(setting: Setting, lease_ms: int) -> None:
    setting.add_node("elm")

    with pytest.raises(UsageError, match="between two passes"):
        setting.place(lease_ms=lease_ms)
    assert setting.events("workload.place") == []


def test_how_often_passes_run_counts_once_ten_of_them_have(setting: Setting) -> None:
    setting.add_node("elm")
    setting.clock = itertools.count(next(setting.clock), 10)
    for _ in range(11):
        pass_over(setting)
        for _ in range(20_000 // 10):
            next(setting.clock)

    assert setting.place(lease_ms=MINUTE_MS + 5_000).copies[0].is_placed
    with pytest.raises(UsageError, match="between two passes"):
        setting.place(name="other", lease_ms=MINUTE_MS - 1)


def test_a_lease_of_just_three_passes_is_one(setting: Setting) -> None:
    setting.add_node("elm")

    assert setting.place(lease_ms=3 * MINUTE_MS).copies[0].is_placed


@dataclass
class Apart:
    """A node with a leased copy, whose uptime goes on by the controller's clock, and two others.

    Attributes:
        began_ms: When its boot began, by that clock.
    """

    setting: Setting
    began_ms: int
    placed_at_ms: list[int] = field(default_factory=list)

    def go_over(self, *, after_s: int = 40) -> Pass:
        for _ in range(after_s - 1):
            next(self.setting.clock)
        now_ms = next(self.setting.clock)
        self.setting.world.nodes["elm"].uptime_ms = now_ms - self.began_ms
        with self.setting.runtime() as rt:
            return reconcile(rt)

    def copies(self) -> list[Instance]:
        with self.setting.runtime() as rt, rt.ledger.read() as tx:
            found = [*instances.rescheduled(tx), *instances.current(tx)]
        return sorted(found, key=lambda one: one.created_at_ms)


@pytest.fixture
def apart(setting: Setting) -> Apart:
    for name in ("elm", "oak", "yew"):
        setting.add_node(name)
    setting.place(lease_ms=5 * MINUTE_MS, prefer=(NodeName("elm"),))
    made = Apart(setting, next(setting.clock) - 1_000_000)
    made.go_over()

    def watch(step: str, moment: str) -> None:
        if (step, moment) == ("place", "before"):
            made.placed_at_ms.append(next(setting.clock))

    setting.world.hook = watch
    return made


def gone_at_ms(apart: Apart) -> int:
    """Say by the controller's clock when the node ends its copy at the very latest."""
    (until_ms,) = apart.setting.world.nodes["elm"].leases.values()
    return apart.began_ms + until_ms + KILL_BOUND_MS


def test_a_leased_copy_is_placed_anew_only_when_the_old_one_is_gone_for_certain(
    apart: Apart,
) -> None:
    apart.setting.world.nodes["elm"].up = False

    found = [apart.go_over() for _ in range(12)]

    old, new = apart.copies()
    assert (old.state, new.state) == (State.RESCHEDULED, State.RUNNING)
    assert apart.placed_at_ms[0] > gone_at_ms(apart)
    raised = [kept.alert.kind for one in found for kept in one.raised]
    assert sorted(raised) == [AlertKind.LEASE_WAITING, AlertKind.NODE_DEAD]
    closed = [kept.alert.kind for one in found for kept in one.closed]
    assert closed == [AlertKind.LEASE_WAITING]


def test_a_renewal_whose_answer_was_lost_counts_as_one_that_came(apart: Apart) -> None:
    node = apart.setting.world.nodes["elm"]
    watch = apart.setting.world.hook

    def lose(step: str, moment: str) -> None:
        watch(step, moment)
        if (step, moment) == ("lease", "after"):
            node.up = False
            raise Indeterminate("no whole answer came")

    apart.setting.world.hook = lose
    apart.go_over()
    assert not node.up

    for _ in range(14):
        apart.go_over()

    assert apart.copies()[-1].state is State.RUNNING
    assert apart.placed_at_ms[0] > gone_at_ms(apart)


def test_a_renewal_whose_answer_was_lost_keeps_no_other_from_being_sent(leased: Setting) -> None:
    leased.place(name="api", lease_ms=5 * MINUTE_MS)
    node = leased.world.nodes["elm"]
    node.uptime_ms = 1_060_000
    leased.world.hook = lost_at("lease", "after")

    pass_over(leased)

    assert list(node.leases.values()) == [1_060_000 + 5 * MINUTE_MS] * 2
    assert leased.node("elm").liveness is Liveness.ALIVE


def test_a_leased_copy_whose_restart_was_cut_off_with_its_node_is_placed_anew_after_its_lease(
    apart: Apart,
) -> None:
    """Nobody knows whether it was started; that its lease is over settles it."""
    setting, elm = apart.setting, apart.setting.world.nodes["elm"]
    watch = setting.world.hook

    def cut(step: str, moment: str) -> None:
        if (step, moment) == ("start", "after"):
            elm.up = False
            raise Killed

    setting.world.hook = cut
    with suppress(Killed), setting.runtime() as rt:
        restart_one(rt, setting.instance("web"))
    setting.world.hook = watch

    for _ in range(14):
        apart.go_over()

    old, new = apart.copies()
    assert (old.state, new.state) == (State.RESCHEDULED, State.RUNNING)
    assert apart.placed_at_ms[0] > gone_at_ms(apart)
    assert setting.open_operations() == []
    elm.up = True
    apart.go_over()
    apart.go_over(after_s=400)
    assert [iid for _, iid in setting.alive()] == [new.id]
    assert len(setting.holds()) == 1


def test_a_leased_copy_that_its_supervisor_was_about_to_begin_again_may_still_run_by_its_lease(
    apart: Apart,
) -> None:
    """Its last run is proven gone when its node is seen last; the next one has the lease's rest."""
    elm, web = apart.setting.world.nodes["elm"], apart.setting.instance("web")
    elm.end_before_next(web.id)
    apart.go_over()
    assert apart.setting.instance("web").state is State.RESTARTING
    elm.begin_again(web.id)
    elm.up = False

    for _ in range(14):
        apart.go_over()

    assert apart.copies()[-1].state is State.RUNNING
    assert apart.placed_at_ms[0] > gone_at_ms(apart)


def test_a_ledger_that_was_put_back_does_not_take_an_old_renewal_for_the_last(
    apart: Apart, tmp_path: Path
) -> None:
    """What was renewed since the backup was made is known to nobody but the node."""
    setting, elm = apart.setting, apart.setting.world.nodes["elm"]
    with setting.runtime() as rt:
        kept = ledgers.backup(rt, tmp_path / "backup")
    for _ in range(10):
        apart.go_over()
    with setting.runtime() as rt:
        ledgers.put_back(rt, kept.file, replace=True, accept=lambda _there: None)
    with setting.runtime() as rt:
        rebuild(rt, (), accept_key=lambda _where, _shown: None, accept=lambda: None)
    elm.up = False
    apart.placed_at_ms.clear()

    for _ in range(20):
        apart.go_over()

    assert apart.copies()[-1].state is State.RUNNING
    assert apart.placed_at_ms[0] > gone_at_ms(apart)


def test_when_this_machine_was_started_anew_the_lease_is_counted_anew(apart: Apart) -> None:
    apart.setting.world.nodes["elm"].up = False
    for _ in range(4):
        apart.go_over()
    apart.setting.world.controller_boot_id = "d" * 32
    restarted_ms = next(apart.setting.clock)

    for _ in range(12):
        apart.go_over()

    assert apart.copies()[-1].state is State.RUNNING
    assert apart.placed_at_ms[0] > restarted_ms + bound_ms(5 * MINUTE_MS)


def test_a_lease_is_kept_before_it_is_sent(setting: Setting) -> None:
    setting.add_node("elm")
    kept = []

    def look(step: str, moment: str) -> None:
        if (step, moment) in (("place", "before"), ("start", "before")):
            with setting.runtime() as rt, rt.ledger.read() as tx:
                (one,) = instances.current(tx)
                kept.append(leases.find(tx, one.id))

    setting.world.hook = look
    setting.place(lease_ms=5 * MINUTE_MS)
    with setting.runtime() as rt:
        restart_one(rt, setting.instance("web"))

    first, second = kept
    assert first is not None
    assert second is not None
    assert first.ttl_ms == second.ttl_ms == 5 * MINUTE_MS
    assert second.read_at.ms > first.read_at.ms


def test_what_its_lease_has_ended_is_begun_again_by_the_pass_that_reaches_it(
    setting: Setting,
) -> None:
    """This machine was cut off for longer than the lease; nothing was placed elsewhere."""
    setting.add_node("elm")
    setting.place(lease_ms=5 * MINUTE_MS)
    pass_over(setting)
    setting.world.nodes["elm"].hold(setting.instance("web").id, "lease")

    pass_over(setting)

    web = setting.instance("web")
    assert (web.state, web.generation) == (State.RUNNING, 2)
    assert [step.state for step in setting.history("web")].count(State.LOST) == 1
    assert until_ms(setting) > 5 * MINUTE_MS
