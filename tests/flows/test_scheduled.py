"""Interval jobs run when they are due: once for all that were missed, and never two at once."""

import itertools
import sys
import zoneinfo
from dataclasses import replace
from unittest.mock import ANY

import pytest

from tests.flows import policed
from tests.flows.conftest import write_package
from tests.flows.setting import Killed, Setting
from wlctl.flows import listing, packages
from wlctl.flows.reconcile import Pass, reconcile
from wlctl.flows.scheduled import Ran, run_due
from wlctl.flows.signing import KeyChoice
from wlctl.flows.starting import restart_one, start
from wlctl.ledger import schedules
from wlctl.ledger.verify import Verified
from wlctl.model.alert import AlertKind
from wlctl.model.ids import InstanceId, NodeName
from wlctl.model.instance import State

HOUR_MS = 3_600_000


@pytest.fixture
def hourly(setting: Setting) -> Setting:
    """A node with a job on it that is due every hour, and runs for the first time."""
    describe(setting, 'every = "1h"')
    setting.add_node("elm")
    setting.place()
    with setting.runtime() as rt:  # begins its schedule
        run_due(rt, {NodeName("elm")})
    return setting


def describe(setting: Setting, schedule: str) -> None:
    """Make the package one of an interval job."""
    directory = setting.package.with_name("job")
    write_package(directory, name="job")
    description = directory / "workload.toml"
    text = description.read_text().replace('kind = "service"', 'kind = "interval"')
    description.write_text(f"{text}[schedule]\n{schedule}\n")
    with setting.runtime() as rt:
        packages.build(directory)
        packages.sign(rt, directory, KeyChoice(setting.key))
    setting.package = directory


def pass_ms(setting: Setting, span_ms: int) -> None:
    setting.clock = itertools.count(next(setting.clock) + span_ms, 1000)


def end(setting: Setting, status: int = 0) -> None:
    """Let its run end by itself, and a pass see that."""
    setting.world.nodes["elm"].exit(setting.instance("job").id, status)
    with setting.runtime() as rt:
        reconcile(rt)


def run(setting: Setting, *answered: str, dry_run: bool = False) -> Ran:
    with setting.runtime() as rt:
        return run_due(rt, {NodeName(name) for name in answered or ("elm",)}, dry_run=dry_run)


def came(found: Ran) -> list[str]:
    return [one.came for one in found.done]


def head(setting: Setting) -> int:
    return len(setting.events("*"))


def generation(setting: Setting) -> int:
    return setting.instance("job").generation


def test_it_runs_again_when_an_hour_is_over_and_not_before(hourly: Setting) -> None:
    end(hourly)
    pass_ms(hourly, HOUR_MS - 120_000)
    assert run(hourly) == Ran()
    assert generation(hourly) == 1

    pass_ms(hourly, 120_000)
    assert came(run(hourly)) == ["done"]
    assert (generation(hourly), hourly.instance("job").state) == (2, State.RUNNING)
    assert len(hourly.alive()) == 1
    assert isinstance(hourly.verified(), Verified)


def test_a_second_pass_right_after_does_and_writes_nothing(hourly: Setting) -> None:
    end(hourly)
    pass_ms(hourly, HOUR_MS)
    run(hourly)
    run(hourly)
    before = head(hourly), rows(hourly)

    assert run(hourly) == Ran()

    assert (head(hourly), rows(hourly)) == before


def rows(setting: Setting) -> dict[InstanceId, schedules.Scheduled]:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        return schedules.ls(tx)


def test_what_was_missed_is_run_once(hourly: Setting) -> None:
    end(hourly)
    pass_ms(hourly, 50 * HOUR_MS)

    assert came(run(hourly)) == ["done"]
    end(hourly)
    assert run(hourly) == Ran()
    assert generation(hourly) == 2


def test_one_that_is_late_makes_the_next_be_left_out_and_that_is_said(hourly: Setting) -> None:
    pass_ms(hourly, HOUR_MS)
    first = run(hourly)
    again = run(hourly)

    assert came(first) == ["skipped: still running"]
    assert again.done == ()
    (alert,) = first.alerts
    assert (alert.kind, alert.subject) == (AlertKind.JOB_SKIPPED, "job")
    assert again.alerts == first.alerts
    assert generation(hourly) == 1
    (event,) = [one for one in hourly.events("workload.start") if "due_at_ms" in one.payload]
    assert (event.payload["outcome"], event.payload["reason"]) == ("skipped", "still running")

    end(hourly)
    assert run(hourly) == Ran(), "what was left out is not made up for"
    pass_ms(hourly, HOUR_MS)
    assert came(run(hourly)) == ["done"]
    assert isinstance(hourly.verified(), Verified)


def test_what_goes_on_for_hours_is_skipped_once_an_hour_under_one_alert(hourly: Setting) -> None:
    found = []
    for _ in range(3):
        pass_ms(hourly, HOUR_MS)
        found.append(run(hourly))

    assert [came(one) for one in found] == [["skipped: still running"]] * 3
    assert len({one.alerts for one in found}) == 1


def test_a_run_that_failed_is_not_tried_again_before_the_next_is_due(hourly: Setting) -> None:
    end(hourly, status=3)
    assert hourly.instance("job").state is State.FAILED
    assert run(hourly) == Ran()

    pass_ms(hourly, HOUR_MS)
    assert came(run(hourly)) == ["done"]


def test_an_operators_start_after_it_was_due_is_the_run_that_was_due(hourly: Setting) -> None:
    end(hourly)
    pass_ms(hourly, HOUR_MS)
    with hourly.runtime() as rt:
        start(rt, "job")

    assert run(hourly) == Ran()
    assert generation(hourly) == 2


def test_a_stop_takes_it_off_its_schedule_and_a_start_puts_it_on_again(hourly: Setting) -> None:
    end(hourly)
    hourly.stop("job")
    pass_ms(hourly, 5 * HOUR_MS)
    assert run(hourly) == Ran()
    assert rows(hourly) == {}

    with hourly.runtime() as rt:
        start(rt, "job")
    end(hourly)
    assert run(hourly) == Ran(), "an hour after that start, not at once"
    pass_ms(hourly, HOUR_MS)
    assert came(run(hourly)) == ["done"]


def test_on_a_node_that_does_not_answer_it_waits_and_is_run_once_then(hourly: Setting) -> None:
    end(hourly)
    pass_ms(hourly, 3 * HOUR_MS)
    assert run(hourly, "oak") == Ran()

    hourly.world.nodes["elm"].up = False
    assert came(run(hourly)) == ["unreachable"]
    hourly.world.heal()
    assert came(run(hourly)) == ["done"]
    assert generation(hourly) == 2


def test_a_start_that_is_denied_is_said_until_one_succeeds(hourly: Setting) -> None:
    end(hourly)
    policed.apply(hourly, policed.OWNER)
    pass_ms(hourly, HOUR_MS)

    first, events = run(hourly), head(hourly)
    assert came(first) == ["denied"]
    assert first.done[0].trouble != ""
    assert [one.kind for one in first.alerts] == [AlertKind.ACTION_FAILED]
    assert run(hourly) == Ran(alerts=first.alerts)
    assert head(hourly) == events

    policed.apply(hourly, policed.OWNER + policed.WORK)
    pass_ms(hourly, HOUR_MS)
    assert run(hourly).alerts == ()
    assert generation(hourly) == 2


def test_what_is_wrong_with_a_job_is_over_when_somebody_has_started_it(hourly: Setting) -> None:
    end(hourly)
    policed.apply(hourly, policed.OWNER)
    pass_ms(hourly, HOUR_MS)
    assert len(run(hourly).alerts) == 1
    policed.apply(hourly, policed.OWNER + policed.WORK)
    with hourly.runtime() as rt:
        start(rt, "job")

    assert run(hourly) == Ran()

    pass_ms(hourly, HOUR_MS)
    assert [one.kind for one in run(hourly).alerts] == [AlertKind.JOB_SKIPPED]
    with hourly.runtime() as rt:
        restart_one(rt, hourly.instance("job"))
    assert run(hourly) == Ran()


def test_a_dry_run_says_what_is_due_and_does_nothing(hourly: Setting) -> None:
    end(hourly)
    pass_ms(hourly, HOUR_MS)
    before = head(hourly), rows(hourly)

    found = run(hourly, dry_run=True)

    assert [(one.name, one.node, one.came) for one in found.done] == [("job", "elm", "dry_run")]
    assert (head(hourly), rows(hourly)) == before


def test_a_job_by_the_clock_waits_for_its_time_of_day(setting: Setting) -> None:
    describe(setting, 'cron = "15 2 * * *"\ntimezone = "Asia/Kolkata"')
    setting.add_node("elm")
    setting.place()
    run(setting)
    end(setting)
    due = next(iter(rows(setting).values())).due_at_ms

    assert due is not None
    assert due % (24 * HOUR_MS) == 20 * HOUR_MS + 45 * 60_000  # 02:15 there
    pass_ms(setting, due - next(setting.clock) - 60_000)
    assert run(setting) == Ran()
    pass_ms(setting, 120_000)
    assert came(run(setting)) == ["done"]


def forget_timezones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away the system's timezones and the package's, also where one was read before."""
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()
    for name in {"tzdata", *(name for name in sys.modules if name.startswith("tzdata."))}:
        monkeypatch.setitem(sys.modules, name, None)


def test_a_job_in_a_timezone_that_is_not_known_here_is_said_and_stops_no_pass(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe(setting, 'cron = "15 2 * * *"\ntimezone = "Asia/Kolkata"')
    setting.add_node("elm")
    setting.place()
    end(setting)
    pass_ms(setting, 48 * HOUR_MS)
    forget_timezones(monkeypatch)
    try:
        found = run(setting)
    finally:
        zoneinfo.reset_tzpath()

    assert found.done == ()
    assert [one.kind for one in found.alerts] == [AlertKind.ACTION_FAILED]
    assert "Asia/Kolkata" in found.alerts[0].reason


def test_ps_says_when_a_job_runs_next(hourly: Setting) -> None:
    with hourly.runtime() as rt:
        (listed,) = listing.ps(rt)
    (kept,) = rows(hourly).values()
    assert listed.due_at_ms == kept.due_at_ms
    assert listed.due_at_ms is not None

    hourly.stop("job")
    run(hourly)
    with hourly.runtime() as rt:
        assert listing.ps(rt)[0].due_at_ms is None


def test_killed_at_any_moment_a_due_run_is_run_once_by_the_passes_after(
    hourly: Setting, tmp_path_factory: pytest.TempPathFactory
) -> None:
    end(hourly)
    pass_ms(hourly, HOUR_MS)
    for number in range(1, 30):
        left = hourly.copy(tmp_path_factory.mktemp("cut"))
        left.clock = itertools.count(next(hourly.clock), 1000)
        if not killed(left, number):
            assert number > 3
            return
        for _ in range(2):
            with left.runtime() as rt:
                reconcile(rt)
            run(left)
        assert generation(left) in (2, 3), f"killed at {number}"
        assert len(left.alive()) == 1, f"killed at {number}"
        assert run(left) == Ran(), f"killed at {number}"
    raise AssertionError("it has more moments than were tried")


def killed(setting: Setting, number: int) -> bool:
    """Kill a pass over what is due at its `number`th step; False where it has fewer."""
    count = itertools.count(1)

    def die(_step: str, _moment: str) -> None:
        if next(count) == number:
            raise Killed

    setting.world.hook = die
    try:
        run(setting)
    except Killed:
        return True
    finally:
        setting.world.heal()
        setting.world.hook = lambda _step, _moment: None
    return False


def test_passes_of_reconcile_run_what_is_due_and_raise_and_close_what_is_wrong(
    hourly: Setting,
) -> None:
    def go_over() -> Pass:
        with hourly.runtime() as rt:
            return reconcile(rt)

    go_over()
    pass_ms(hourly, HOUR_MS)
    late = go_over()
    assert [one.came for one in late.done] == ["skipped: still running"]
    assert [one.alert.kind for one in late.raised] == [AlertKind.JOB_SKIPPED]
    assert go_over().is_quiet

    hourly.world.nodes["elm"].exit(hourly.instance("job").id, 3)
    over = go_over()
    assert [one.alert.kind for one in over.closed] == [AlertKind.JOB_SKIPPED]
    (failed,) = over.raised
    assert failed.alert.kind is AlertKind.HELD
    assert "runs again when it is due" in failed.alert.reason
    assert go_over().is_quiet

    pass_ms(hourly, HOUR_MS)
    again = go_over()
    assert [one.came for one in again.done] == ["done"]
    assert again.closed == (replace(failed, closed_at_ms=ANY),)
    assert go_over().is_quiet


def test_of_what_a_reboot_ended_nobody_is_told_when_the_next_run_is_due(hourly: Setting) -> None:
    pass_ms(hourly, 2 * HOUR_MS)
    hourly.world.nodes["elm"].reboot()
    with hourly.runtime() as rt:
        found = reconcile(rt)

    assert [one.came for one in found.done] == ["failed", "done"]
    assert (found.raised, found.open) == ((), 0)
    with hourly.runtime() as rt:
        assert reconcile(rt).is_quiet


def test_a_job_whose_run_a_reboot_has_cut_is_said_to_run_when_it_is_due(hourly: Setting) -> None:
    pass_ms(hourly, 60_000)
    hourly.world.nodes["elm"].reboot()

    with hourly.runtime() as rt:
        first = reconcile(rt)
        second = reconcile(rt)

    assert [kept.alert.kind for kept in first.raised] == [AlertKind.HELD]
    assert "runs again when it is due" in first.raised[0].alert.reason
    assert second.is_quiet
