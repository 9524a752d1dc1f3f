"""Where systemd has the cgroup tree: one delegated unit, ours to lay out and never to stop."""

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest

from tests.host.bench import Bench, Work, running, script, wait_until
from tests.host.systemd import SystemdNode, container
from tests.host.test_stop import TREES
from tests.host.test_supervised import CRASH, POLICY, await_held
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import (
    Cleaned,
    GenerationStatus,
    InstanceStatus,
    Launched,
    PlaceRequest,
    RefusalCode,
    Refused,
)
from wlctl.model.generation import CgroupEnd, Containment, Liveliness, Proven, Unproven
from wlctl.model.upkeep import Supervised

pytestmark = [pytest.mark.root, pytest.mark.sshd, pytest.mark.timeout(900)]

SLEEP = script("exec sleep 1000")

LIMITS = ("memory_bytes 67108864", "cpu_milli 200", "pids 32")


@pytest.fixture(scope="module")
def booted() -> Iterator[SystemdNode]:
    with container() as node:
        yield node


@pytest.fixture(scope="module")
def booted_for_worker() -> Iterator[SystemdNode]:
    with container(user="worker") as node:
        yield node


@pytest.fixture
def as_root(booted: SystemdNode) -> Iterator[Bench]:
    yield from _bench(booted)


@pytest.fixture
def as_worker(booted_for_worker: SystemdNode) -> Iterator[Bench]:
    booted_for_worker.sh("loginctl enable-linger worker")
    yield from _bench(booted_for_worker)


def _bench(node: SystemdNode) -> Iterator[Bench]:
    bench = Bench(node)
    try:
        yield bench
        bench.clear()
        assert bench.left_over() == []
    finally:
        bench.session.close()


def _node(bench: Bench) -> SystemdNode:
    assert isinstance(bench.node, SystemdNode)
    return bench.node


def _show(node: SystemdNode, *names: str) -> dict[str, str]:
    text = node.sh(f"systemctl show wlctl-node.service -p {','.join(names)}")
    return dict(line.split("=", 1) for line in text.splitlines())


def test_what_is_placed_runs_below_one_unit_that_no_one_stops_by_hand(as_root: Bench) -> None:
    node = _node(as_root)
    request = as_root.request(SLEEP)

    done = as_root.place(request)

    assert done.way == "systemd"
    assert done.containment is Containment.ISOLATED
    assert done.cgroup.startswith(f"{node.unit()}/inst-test/")
    assert _show(node, "Delegate", "RefuseManualStop", "OOMScoreAdjust", "OOMPolicy") == {
        "Delegate": "yes",
        "RefuseManualStop": "yes",
        "OOMScoreAdjust": "-900",
        "OOMPolicy": "continue",
    }
    main = _show(node, "MainPID")["MainPID"]
    assert node.sh(f"cat {node.unit()}/_keep/cgroup.procs").split() == [main]
    assert node.sh(f"cat {node.unit()}/cgroup.procs") == ""
    assert "refused" in node.sh("systemctl stop wlctl-node.service 2>&1 || :")


def test_limits_that_no_controller_is_there_for_are_named(as_root: Bench) -> None:
    done = as_root.place(as_root.request(script("exec sleep 1000", more=LIMITS)))

    assert set(done.unenforced) == {"memory", "cpu"}


@pytest.mark.parametrize("command", ["daemon-reload", "daemon-reexec"])
def test_what_runs_outlives(as_root: Bench, command: str) -> None:
    request = as_root.run(SLEEP)
    before = _show(_node(as_root), "MainPID", "InvocationID")

    _node(as_root).sh(f"systemctl {command}")

    assert _show(_node(as_root), "MainPID", "InvocationID") == before
    found = as_root.status(request)
    assert found is not None
    assert found.generations[0].leader is Liveliness.ALIVE
    assert isinstance(as_root.prove(request), Proven)


def test_a_unit_that_was_ended_proves_what_was_below_it_and_the_next_start_has_another(
    as_root: Bench,
) -> None:
    node = _node(as_root)
    request = as_root.run(SLEEP)
    before = _show(node, "InvocationID")
    node.sh("systemctl kill -s KILL wlctl-node.service")
    wait_until(lambda: not node.commands(), "everything below the unit to end")
    wait_until(lambda: _show(node, "ActiveState")["ActiveState"] == "failed", "the unit to end")

    (readings,) = as_root.stop(request).readings
    again = as_root.start(request, 3, 2)

    assert {readings.ctl, readings.limit} == {CgroupEnd.UNIT_GONE}
    assert isinstance(judge(readings), Proven)
    assert isinstance(again, Launched)
    assert _show(node, "InvocationID") != before


def test_a_unit_made_anew_proves_what_was_below_the_old_one(as_root: Bench) -> None:
    node = _node(as_root)
    request = as_root.run(SLEEP)
    node.sh("systemctl kill -s KILL wlctl-node.service")
    wait_until(lambda: not node.commands(), "everything below the unit to end")
    other = as_root.run(SLEEP)

    (readings,) = as_root.stop(request).readings

    assert {readings.ctl, readings.limit} == {CgroupEnd.UNIT_GONE}
    found = as_root.status(other)
    assert found is not None
    assert found.generations[0].leader is Liveliness.ALIVE


def test_a_cgroup_taken_away_below_the_same_unit_with_its_parent_proves_nothing(
    as_root: Bench,
) -> None:
    node = _node(as_root)
    request = as_root.run(script("exit 0"))
    wait_until(lambda: not node.commands(), "its end")
    below = f"{node.unit()}/inst-test/{request.instance}"
    node.sh(f"rmdir {below}/limit/g1 {below}/limit")

    (readings,) = as_root.stop(request).readings

    assert readings.limit is CgroupEnd.MISSING_UNKNOWN
    assert isinstance(judge(readings), Unproven)
    node.sh("systemctl kill -s KILL wlctl-node.service")
    wait_until(lambda: _show(node, "ActiveState")["ActiveState"] == "failed", "the unit to end")


def test_cleaning_takes_the_unit_away_once_nothing_is_left(booted: SystemdNode) -> None:
    bench = Bench(booted)
    request = bench.run(SLEEP)
    refused = bench.session.clean(request.installation, bench.facts.node_id)
    assert isinstance(refused, Refused)
    assert _show(booted, "ActiveState")["ActiveState"] == "active"
    bench.clear()

    done = bench.session.clean(request.installation, bench.facts.node_id)

    assert isinstance(done, Cleaned)
    wait_until(lambda: _show(booted, "LoadState")["LoadState"] == "not-found", "the unit to go")
    bench.session.close()


def test_a_plain_user_is_refused_until_it_lingers(booted_for_worker: SystemdNode) -> None:
    booted_for_worker.sh("loginctl disable-linger worker")
    bench = Bench(booted_for_worker)

    refused = bench.refused(bench.request(SLEEP))

    assert refused.code is RefusalCode.NO_LINGER
    assert refused.detail.endswith("loginctl enable-linger worker")
    assert bench.left_over() == []
    bench.session.close()


def test_what_a_plain_user_placed_outlives_its_session_and_is_proven_gone_by_another(
    as_worker: Bench,
) -> None:
    request = as_worker.request(SLEEP)
    done = as_worker.place(request)
    assert done.way == "systemd-user"
    assert done.containment is Containment.CGROUP
    as_worker.session.close()
    sessions = "ls /sys/fs/cgroup/user.slice/user-1234.slice"
    wait_until(lambda: "session-" not in _node(as_worker).sh(sessions), "its session to end")
    as_worker.reconnect()

    found = as_worker.status(request)

    assert found is not None
    assert found.generations[0].leader is Liveliness.ALIVE
    assert isinstance(as_worker.prove(request), Proven)


def test_a_plain_users_failed_start_leaves_nothing(as_worker: Bench) -> None:
    request = as_worker.run(script("exit 3"))
    wait_until(lambda: as_worker.status(request).generations[0].exit_status == 3, "its end")  # type: ignore[union-attr]  # it is there

    assert isinstance(as_worker.prove(request), Proven)


@pytest.mark.parametrize("login", ["root", "worker"])
@pytest.mark.parametrize(
    ("work", "how"),
    # the small system has no Python
    [tree for tree in TREES if cast("Work", tree.values[0]).command == ("./run",)],
)
def test_nothing_is_left_of(
    login: str, work: Work, how: str, request: pytest.FixtureRequest
) -> None:
    bench: Bench = request.getfixturevalue(f"as_{login}")
    asked = bench.run(work)
    bench.await_log(asked, "up")

    proof = bench.prove(asked, grace_ms=200)

    assert isinstance(proof, Proven), proof
    assert proof.evidence.how in {how, "killed"}
    assert running(bench.node) == []


@pytest.mark.parametrize("login", ["root", "worker"])
def test_health_is_looked_at_and_a_supervisor_that_died_is_started_again(
    login: str, request: pytest.FixtureRequest
) -> None:
    bench: Bench = request.getfixturevalue(f"as_{login}")
    node = _node(bench)
    work = script('touch "$WLCTL_DATA_DIR/well"; exec sleep 1000')
    check = b'#!/bin/sh\nid -u; cat /proc/self/cgroup; test -e "$WLCTL_DATA_DIR/well"\n'
    asked = bench.run(
        replace(
            work,
            files={**work.files, "check": check},
            more=("health_kind exec", "health_target check", "health_interval_ms 50"),
        )
    )
    wait_until(lambda: _generation(bench, asked).health == "healthy", "it to be healthy")
    below = f"{node.unit().removeprefix('/sys/fs/cgroup')}/inst-test/{asked.instance}"
    state = "/var/lib/wlctl" if login == "root" else "/home/worker/.local/state/wlctl"
    directory = f"{state}/inst-test/instances/{asked.instance}/g1"
    assert f"{below}/limit/g1/hook" in node.sh(f"cat {directory}/health.out")

    node.sh(f"kill -9 $(cat /sys/fs/cgroup{below}/ctl/sup/cgroup.procs)")
    wait_until(lambda: _standing(bench, asked).unsupervised, "its end")
    done = bench.session.supervise(asked.installation, [asked.instance])
    node.sh(f"rm {directory}/data/well")

    assert isinstance(done, Supervised)
    assert done.started == (asked.instance,)
    wait_until(lambda: _generation(bench, asked).health == "unhealthy", "it to be unhealthy")
    (readings,) = bench.stop(asked).readings
    assert isinstance(judge(readings), Proven)


def _standing(bench: Bench, request: PlaceRequest) -> InstanceStatus:
    status = bench.status(request)
    assert status is not None
    return status


def _generation(bench: Bench, request: PlaceRequest) -> GenerationStatus:
    return _standing(bench, request).generations[-1]


@pytest.mark.parametrize("login", ["as_root", "as_worker"])
def test_a_supervisor_begins_a_run_again_below_the_unit_too(
    login: str, request: pytest.FixtureRequest
) -> None:
    bench: Bench = request.getfixturevalue(login)
    asked = bench.run(CRASH, restart=POLICY)

    found = await_held(bench, asked, "exhausted")

    assert [run.number for run in found.generations] == [1, 2, 3, 4]
    assert all(isinstance(judge(read), Proven) for read in bench.stop(asked).readings)
    assert running(bench.node) == []
