"""Readings that end nothing: what runs goes on, and what was ended reads as it did then."""

from dataclasses import replace

import pytest

from tests.host.bench import INSTALLATION, Bench, script, wait_until
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import PlaceRequest, Read, RefusalCode, Refused
from wlctl.model.generation import CgroupEnd, Disproven, Liveliness, Proven, Readings, Unproven
from wlctl.model.ids import InstanceId

SLEEP = script("exec sleep 1000")
SOME = [("dash", "root"), ("bash", "sudo"), ("busybox", "root"), ("dash", "plain")]


def exit_of(bench: Bench, request: PlaceRequest) -> int | None:
    status = bench.status(request)
    assert status is not None
    return status.generations[0].exit_status


def read(bench: Bench, request: PlaceRequest) -> tuple[Readings, ...]:
    found = bench.session.prove(INSTALLATION, request.instance)
    assert isinstance(found, Read)
    assert len(found.node_id) == 32
    return found.readings


@pytest.mark.kinds(SOME)
def test_what_runs_is_read_and_runs_on(bench: Bench) -> None:
    request = bench.run(SLEEP)
    before = bench.status(request)

    (first,) = read(bench, request)
    (second,) = read(bench, request)

    assert isinstance(judge(first), Disproven)
    assert (first.closed, first.leader, first.limit) == (
        False,
        Liveliness.ALIVE,
        CgroupEnd.OCCUPIED,
    )
    assert replace(second, read_at_ms=0) == replace(first, read_at_ms=0)
    assert bench.status(request) == before


@pytest.mark.kinds(SOME)
def test_what_was_stopped_reads_as_gone_again(bench: Bench) -> None:
    request = bench.run(SLEEP)
    stopped = bench.stop(request, 2)

    (found,) = read(bench, request)

    assert isinstance(judge(found), Proven)
    assert {found.ctl, found.limit} == {CgroupEnd.MISSING}
    (then,) = stopped.readings
    assert (found.how, found.exit_status, found.uid) == (then.how, then.exit_status, then.uid)


@pytest.mark.kinds([("dash", "root")])
def test_what_ended_by_itself_is_not_taken_away_by_reading_it(bench: Bench) -> None:
    request = bench.run(script("exit 3"))
    wait_until(lambda: exit_of(bench, request) == 3, "its end")

    (found,) = read(bench, request)

    assert isinstance(judge(found), Unproven)
    assert (found.closed, found.leader, found.exit_status) == (False, Liveliness.GONE, 3)
    assert found.limit is CgroupEnd.THERE
    assert bench.cgroup(request).exists()


@pytest.mark.kinds([("dash", "root")])
def test_every_generation_is_read(bench: Bench) -> None:
    request = bench.run(SLEEP)
    bench.stop(request, 2)
    bench.start(request, 3, 2)

    first, second = read(bench, request)

    assert (first.generation, second.generation) == (1, 2)
    assert isinstance(judge(first), Proven)
    assert isinstance(judge(second), Disproven)


@pytest.mark.kinds([("dash", "root"), ("busybox", "root")])
def test_what_was_unloaded_is_told_as_it_was_read_then(bench: Bench) -> None:
    request = bench.run(SLEEP)
    unloaded = bench.unload(request, 2)
    assert not isinstance(unloaded, Refused)

    assert read(bench, request) == unloaded.readings


@pytest.mark.kinds([("dash", "root")])
def test_what_is_not_there_is_refused(bench: Bench) -> None:
    found = bench.session.prove(INSTALLATION, InstanceId("never-was"))

    assert isinstance(found, Refused)
    assert found.code is RefusalCode.UNKNOWN_INSTANCE
