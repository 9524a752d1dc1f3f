"""What a package is given that names a login, groups or capabilities, and what proves its end."""

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import Bench, Work, running, script, wait_until
from tests.host.nodes import PLAIN_UID, sshd_nodes
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import RefusalCode
from wlctl.model.generation import Containment, Liveliness, Proven

ROOTS = [("dash", "root"), ("bash", "sudo"), ("busybox", "root")]
ONE = [("dash", "root")]

SHOW = script(
    """
    grep -E '^(Uid|Gid|Groups|Cap[EPBA]..|NoNewPrivs):' /proc/self/status
    touch "$WLCTL_DATA_DIR/d" "$WLCTL_RUN_DIR/r" "$TMPDIR/t" && echo done
    exec sleep 1000"""
)

NET_RAW = f"{1 << 13:016x}"


def shown(bench: Bench, work: Work) -> tuple[Containment, dict[str, list[str]]]:
    request = bench.request(work)
    placed = bench.place(request)
    log = bench.await_log(request, "done")
    said = dict(line.split(":\t", 1) for line in log.splitlines() if ":\t" in line)
    proof = bench.prove(request)
    assert isinstance(proof, Proven), proof
    assert running(bench.node) == []
    return placed.containment, {name: value.split() for name, value in said.items()}


@pytest.mark.kinds(ROOTS)
def test_an_existing_login_is_taken_and_still_has_no_way_out(bench: Bench) -> None:
    containment, said = shown(bench, replace(SHOW, more=("user nobody",)))

    assert containment is Containment.ISOLATED
    assert said["Uid"] == said["Gid"] == ["65534"] * 4
    assert said["Groups"] == []
    assert said["CapBnd"] == ["0" * 16]
    assert said["NoNewPrivs"] == ["1"]


@pytest.mark.kinds(ROOTS)
def test_groups_are_added_to_a_uid_of_its_own(bench: Bench) -> None:
    containment, said = shown(bench, replace(SHOW, more=("group nogroup", "group worker")))

    assert containment is Containment.ISOLATED
    assert int(said["Uid"][0]) >= 61_184
    assert sorted(said["Groups"]) == [str(PLAIN_UID), "65534"]


@pytest.mark.kinds(ROOTS)
def test_a_capability_is_given_and_no_other(bench: Bench) -> None:
    containment, said = shown(bench, replace(SHOW, more=("capability CAP_NET_RAW",)))

    assert containment is Containment.ISOLATED
    for kind in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
        assert said[kind] == [NET_RAW]


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(("user root",), id="root"),
        pytest.param(("capability CAP_SETUID",), id="a capability to become anybody"),
        pytest.param(("capability CAP_NET_RAW", "capability CAP_SYS_ADMIN"), id="one among many"),
    ],
)
@pytest.mark.kinds(ONE)
def test_who_can_leave_its_cgroup_is_said_not_to_be_confined(
    bench: Bench, more: tuple[str, ...]
) -> None:
    containment, said = shown(bench, replace(SHOW, more=more))

    assert containment is Containment.CGROUP
    assert (said["Uid"][0] == "0") == (more == ("user root",))


@pytest.mark.kinds(ROOTS)
def test_root_that_leaves_its_cgroup_is_ended_with_its_namespace(bench: Bench) -> None:
    """A package that may be root can move itself out of its cgroup, and not out of its init."""
    request = bench.run(
        script(
            "sh -c 'echo 0 > /sys/fs/cgroup/cgroup.procs; cat /proc/self/cgroup; echo left; "
            "exec setsid sleep 1002' &\nexec sleep 1001",
            more=("user root",),
        )
    )
    log = bench.await_log(request, "left")
    assert "0::/\n" in log, "it did leave"

    proof = bench.prove(request)

    assert isinstance(proof, Proven), proof
    assert proof.evidence.init is Liveliness.GONE
    wait_until(lambda: running(bench.node) == [], "the end of what had left")


@pytest.mark.kinds(ONE)
def test_what_else_a_login_runs_is_neither_ended_nor_counted_against_it(bench: Bench) -> None:
    request = bench.run(script("echo up; exec sleep 1000", more=("user worker",)))
    bench.await_log(request, "up")
    inside = str(bench.node.insider())
    argv = ["nsenter", "-t", inside, "-p", "-m", "setpriv", f"--reuid={PLAIN_UID}"]
    argv += [f"--regid={PLAIN_UID}", "--clear-groups", "sleep", "1003"]
    other = subprocess.Popen(argv, start_new_session=True)
    try:
        wait_until(lambda: b"1003" in _command(other.pid), "the other one")

        (readings,) = bench.stop(request).readings

        assert isinstance(judge(readings), Proven), readings
        assert (readings.uid, readings.uid_shared, readings.uid_left) == (PLAIN_UID, True, 1)
        assert other.poll() is None
    finally:
        os.killpg(other.pid, signal.SIGKILL)
        other.wait()


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.mark.root
@pytest.mark.sshd
@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_where_ids_end_at_65536_each_instance_still_has_one_of_its_own(shell: str) -> None:
    """As in a container, whose user namespace has no more."""
    with sshd_nodes(1, shell=shell, own_boot_id=False, ids=65_536) as (node,):
        bench = Bench(node)
        first, second = (bench.request(SHOW) for _ in range(2))

        uids = [bench.place(request).uid for request in (first, second)]

        assert len({*uids}) == 2
        assert all(uid is not None and 61_184 <= uid < 65_520 for uid in uids)
        for request, uid in zip((first, second), uids, strict=True):
            log = bench.await_log(request, "done")
            assert f"Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n" in log
            proof = bench.prove(request)
            assert isinstance(proof, Proven), proof
            assert proof.evidence.uid_left == 0
        bench.clear()
        assert bench.left_over() == []
        bench.session.close()


@pytest.mark.root
@pytest.mark.sshd
@pytest.mark.parametrize("ids", [pytest.param(n, id=f"{n} ids") for n in (1000, 65_519)])
def test_a_node_that_has_no_ids_to_give_says_so(ids: int) -> None:
    with sshd_nodes(1, own_boot_id=False, ids=ids) as (node,):
        bench = Bench(node)

        refused = bench.refused(bench.request(SHOW))

        assert (refused.code, "no ids to give" in refused.detail) == (RefusalCode.NO_USER, True)
        assert bench.left_over() == []
        bench.session.close()


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(("user nobody",), id="a login"),
        pytest.param(("group nogroup",), id="a group"),
        pytest.param(("capability CAP_NET_RAW",), id="a capability"),
    ],
)
@pytest.mark.kinds([("dash", "plain")])
def test_a_plain_login_can_give_nobody(bench: Bench, more: tuple[str, ...]) -> None:
    assert bench.refused(bench.request(replace(SHOW, more=more))).code is RefusalCode.NO_USER


@pytest.mark.kinds([("bash", "sudo")])
def test_the_login_that_wlctl_comes_by_is_never_given(bench: Bench) -> None:
    work = replace(SHOW, more=("user worker",))

    assert bench.refused(bench.request(work)).code is RefusalCode.NO_USER
