"""The dead-man lease: a copy whose lease is not renewed in time is ended by its own init."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, Bench, running, script, wait_until
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import Launched, NodeStatus, PlaceRequest, RefusalCode, Refused
from wlctl.model.generation import Proven
from wlctl.model.upkeep import LeaseRequest

ONE = [("dash", "root")]
ROOTS = [("dash", "root"), ("bash", "sudo"), ("busybox", "root"), ("systemd", "root")]

HOSTILE = script("trap '' TERM INT HUP; setsid sleep 1000 & echo up; while :; do sleep 1; done")


def now(bench: Bench) -> NodeStatus:
    found = bench.session.status(INSTALLATION)
    assert isinstance(found, NodeStatus)
    return found


def leased(bench: Bench, ttl_ms: int) -> PlaceRequest:
    request = replace(bench.request(HOSTILE), lease_until_ms=now(bench).uptime_ms + ttl_ms)
    bench.place(request)
    bench.await_log(request, "up")
    return request


def renew(bench: Bench, request: PlaceRequest, until_ms: int, **changes: object) -> int | Refused:
    usual = LeaseRequest(request.installation, request.instance, 1, now(bench).boot_id, until_ms)
    return bench.session.renew_lease(replace(usual, **changes))  # type: ignore[arg-type]  # its fields


def lease_file(bench: Bench, request: PlaceRequest) -> Path:
    """Where it lies, seen through a process that is on the node."""
    spec = (bench.instance_dir(request) / "spec").read_text("ascii").splitlines()
    short = next(line for line in spec if line.startswith("short ")).split()[1]
    return Path(f"/proc/{bench.node.pids()[0]}/root/run/wlctl/{short}/lease")


@pytest.mark.kinds(ROOTS)
def test_a_lease_that_runs_out_ends_everything_of_the_copy(bench: Bench) -> None:
    began_s = time.monotonic()
    request = leased(bench, 3000)

    wait_until(lambda: running(bench.node) == [], "its end")

    assert time.monotonic() - began_s >= 2.5
    over = renew(bench, request, now(bench).uptime_ms + 60_000)
    assert isinstance(over, Refused)
    assert over.code is RefusalCode.NO_LEASE
    (readings,) = bench.stop(request).readings
    assert isinstance(judge(readings), Proven)
    assert (readings.how, readings.exit_status) == ("lease_stopped", 137)
    late = renew(bench, request, now(bench).uptime_ms + 60_000)
    assert isinstance(late, Refused)
    assert late.code is RefusalCode.SUPERSEDED


@pytest.mark.kinds([("dash", "root"), ("bash", "sudo"), ("busybox", "root")])
def test_a_lease_is_kept_though_the_disk_does_not_answer_any_more(bench: Bench) -> None:
    """A FIFO that nobody writes to is opened as long as a disk that hangs is read."""
    request = leased(bench, 60_000)
    run = bench.instance_dir(request) / "g1"
    for name in ("exit", "record"):
        (run / name).rename(run / f"{name}.was")
        os.mkfifo(run / name)
    time.sleep(2.5)  # time enough for whoever reads them to be held up
    lease_file(bench, request).unlink()

    wait_until(lambda: not any("sleep 1000" in words for words in running(bench.node)), "its end")

    for name in ("exit", "record"):
        (run / f"{name}.was").rename(run / name)


@pytest.mark.kinds(ROOTS)
def test_a_renewal_extends_and_never_shortens(bench: Bench) -> None:
    request = leased(bench, 4000)
    later = now(bench).uptime_ms + 60_000

    assert renew(bench, request, later) == later // 10 * 10
    assert renew(bench, request, later - 50_000) == later // 10 * 10

    time.sleep(4.5)
    assert running(bench.node) != []
    assert isinstance(bench.prove(request, grace_ms=0), Proven)


@pytest.mark.parametrize("content", [None, "", "1 boot 99999999999 .\n", "torn"])
@pytest.mark.kinds(ONE)
def test_a_lease_that_is_missing_torn_or_foreign_has_run_out(
    bench: Bench, content: str | None
) -> None:
    request = leased(bench, 60_000)
    file = lease_file(bench, request)

    if content is None:
        file.unlink()
    else:
        file.write_text(content, encoding="ascii")

    wait_until(lambda: running(bench.node) == [], "its end")
    late = renew(bench, request, now(bench).uptime_ms + 60_000)
    assert isinstance(late, Refused)
    assert late.code is RefusalCode.NO_LEASE


@pytest.mark.kinds(ONE)
def test_a_renewal_for_another_boot_generation_or_copy_is_refused(bench: Bench) -> None:
    request = leased(bench, 60_000)
    plain = bench.run(HOSTILE)
    later = now(bench).uptime_ms + 60_000

    for refused, code in (
        (renew(bench, request, later, boot_id="other"), RefusalCode.CLOCK),
        (renew(bench, request, later, generation=2), RefusalCode.SUPERSEDED),
        (renew(bench, request, later, instance="i-none"), RefusalCode.UNKNOWN_INSTANCE),
        (renew(bench, plain, later), RefusalCode.NO_LEASE),
    ):
        assert isinstance(refused, Refused), refused
        assert refused.code is code


@pytest.mark.kinds([("dash", "plain"), ("systemd", "plain")])
def test_a_copy_that_could_leave_is_given_no_lease(bench: Bench) -> None:
    request = replace(bench.request(HOSTILE), lease_until_ms=now(bench).uptime_ms + 60_000)

    assert bench.refused(request).code is RefusalCode.NO_LEASE
    assert bench.left_over() == []


@pytest.mark.kinds(ONE)
def test_a_further_generation_has_a_lease_of_its_own(bench: Bench) -> None:
    request = leased(bench, 60_000)
    bench.stop(request, 2, grace_ms=0)

    assert isinstance(bench.start(request, 3, 2), Launched)

    without = renew(bench, request, now(bench).uptime_ms + 60_000, generation=2)
    assert isinstance(without, Refused)
    assert without.code is RefusalCode.NO_LEASE
