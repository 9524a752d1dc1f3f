"""Workloads that mean harm, and disks that hang or lose power: proven, or said not to be."""

import contextlib
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, Bench, python, running, script, wait_until
from tests.host.nodes import SshdNode, sshd_nodes
from tests.host.test_supervised import POLICY
from wlctl.errors import Indeterminate, Unreachable
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import InstanceStatus, Launched, PlaceRequest, Read, StopRequest
from wlctl.model.generation import Disproven, Liveliness, Proven, Unproven
from wlctl.model.upkeep import LeaseRequest

ONE = [("dash", "root")]
ROOTS = [("dash", "root"), ("bash", "sudo"), ("busybox", "root")]
PLAINS = [("dash", "plain"), ("bash", "plain"), ("busybox", "plain")]

SLEEP = script("echo up; exec sleep 1000")


@pytest.mark.kinds(ROOTS)
def test_a_neighbour_s_processes_and_files_are_out_of_reach(bench: Bench) -> None:
    neighbour = bench.run(SLEEP)
    bench.await_log(neighbour, "up")
    before = bench.status(neighbour)
    assert before is not None
    there = f"/var/lib/wlctl/{neighbour.installation}/instances/{neighbour.instance}"
    cgroup = f"/sys/fs/cgroup/wlctl/{neighbour.installation}/{neighbour.instance}"
    request = bench.run(
        script(
            f"""
            try() {{ if "$@" >/dev/null 2>&1; then echo "ALLOWED $*"; fi; }}
            for f in opnum spec current g1/record g1/exit g1/open g1/launch g1/out; do
                try cat {there}/$f
                try sh -c "echo x >> {there}/$f"
            done
            try ls {there} {there}/g1
            try mv {there}/g1 {there}/g2
            try touch {there}/g1/data/x
            for c in limit/g1 ctl/g1; do
                try sh -c "echo 0 > {cgroup}/$c/cgroup.procs"
                try sh -c "echo 1 > {cgroup}/$c/cgroup.kill"
                try sh -c "echo 1 > {cgroup}/$c/cgroup.freeze"
            done
            try kill -9 1 "$PPID"
            try sh -c "echo x >> /var/lib/wlctl/revoked"
            try unshare -Ur sh -c "echo 0 > /sys/fs/cgroup/cgroup.procs"
            echo done
            exec sleep 1000"""
        )
    )

    log = bench.await_log(request, "done")

    assert "ALLOWED" not in log
    assert bench.status(neighbour) == before
    assert isinstance(bench.prove(request), Proven)


@pytest.mark.kinds(ROOTS)
def test_who_watches_it_and_what_is_known_of_it_are_out_of_reach(bench: Bench) -> None:
    work = script(
        """
        try() { if "$@" >/dev/null 2>&1; then echo "ALLOWED $*"; fi; }
        own=/var/lib/wlctl/inst-test/instances/$WLCTL_INSTANCE run=${WLCTL_RUN_DIR%/g1}
        cgroup=/sys/fs/cgroup/wlctl/inst-test/$WLCTL_INSTANCE
        for f in $own/opnum $own/current $own/supervisor $own/sup.sh $own/sup.lock $own/g1/record \
            $own/g1/exit $own/g1/open $own/g1/launch $own/g1/init.sh $own/g1/health $own/g1/fifo \
            $run/lease; do
            try sh -c "echo x >$f"
            try sh -c "echo x >>$f"
            try mv $f $f.moved
            try rm -f $f
            try cat $f
        done
        try ln -sfn g2 $run/current
        try touch $run/lease.n $own/g1/work/x $own/g1/closed
        for c in limit limit/g1 limit/g1/hook ctl ctl/g1 ctl/sup; do
            try sh -c "echo 0 >$cgroup/$c/cgroup.procs"
            try sh -c "echo 1 >$cgroup/$c/cgroup.kill"
            try sh -c "echo 1 >$cgroup/$c/cgroup.freeze"
            try mkdir $cgroup/$c/below
        done
        try kill -9 1 $PPID
        try cat /proc/1/environ /proc/$PPID/environ
        try nsenter -t 1 -m true
        echo done
        exec sleep 1000""",
        more=("health_kind exec", "health_target check", "health_interval_ms 100"),
    )
    work = replace(work, files={**work.files, "check": b"#!/bin/sh\n"})
    until_ms = bench.facts.uptime_ms + 600_000
    request = bench.request(work, lease_until_ms=until_ms)
    launched = bench.place(request)

    log = bench.await_log(request, "done")

    assert log == "done\n"
    wait_until(lambda: _standing(bench, request).generations[0].health == "healthy", "its health")
    assert not _standing(bench, request).unsupervised
    lease = LeaseRequest(INSTALLATION, request.instance, 1, launched.boot_id, until_ms + 60_000)
    assert bench.session.renew_lease(lease) == (until_ms + 60_000) // 10 * 10
    assert isinstance(bench.prove(request), Proven)


def _standing(bench: Bench, request: PlaceRequest) -> InstanceStatus:
    status = bench.status(request)
    assert status is not None
    return status


@pytest.mark.kinds(ROOTS)
def test_another_process_that_has_the_leader_s_pid_by_now_is_neither_it_nor_ended(
    bench: Bench,
) -> None:
    request = bench.request(script("exit 0"))
    pid = bench.place(request).pid
    wait_until(lambda: _standing(bench, request).generations[0].exit_status == 0, "its end")
    again = (
        f"for n in $(seq 200); do echo {pid - 1} >/proc/sys/kernel/ns_last_pid; sleep 1003 & "
        f"[ $! != {pid} ] || break; kill $!; done; echo $!; wait"
    )
    insider = bench.node.insider()
    inside = ["nsenter", "-t", str(insider), "-p", "-m", "sh", "-c", again]
    with subprocess.Popen(inside, stdout=subprocess.PIPE, start_new_session=True) as other:
        try:
            assert other.stdout is not None
            assert int(other.stdout.readline()) == pid, "the kernel gave it again"

            (readings,) = bench.stop(request, grace_ms=0).readings

            assert isinstance(judge(readings), Proven), readings
            assert readings.leader is Liveliness.GONE
            assert other.poll() is None
            command = Path(f"/proc/{insider}/root/proc/{pid}/cmdline").read_bytes()
            assert command == b"sleep\x001003\x00"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(other.pid, signal.SIGKILL)


NAMELESS = python(
    "ctypes.CDLL(None).prctl(15, b'x) Z\\nb', 0, 0, 0)\n"  # PR_SET_NAME
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
    "print('up', flush=True)\n"
    "while True: time.sleep(1)\n",
    grace_ms=20_000,
)


@pytest.mark.kinds(ROOTS)
def test_a_process_is_seen_whatever_it_calls_itself(bench: Bench) -> None:
    """The kernel writes a name as it is among the columns of `stat`, ends of lines and all."""
    request = bench.run(NAMELESS, restart=POLICY)
    bench.await_log(request, "up")
    time.sleep(2.5)  # time enough for its supervisor to look

    status = _standing(bench, request)
    assert status.generations[0].leader is Liveliness.ALIVE
    assert status.supervisor is Liveliness.ALIVE
    read = bench.session.prove(INSTALLATION, request.instance)
    assert isinstance(read, Read), read
    assert isinstance(judge(read.readings[0]), Disproven)

    proof = bench.prove(request, grace_ms=20_000)

    assert isinstance(proof, Proven), proof
    assert (proof.evidence.how, proof.evidence.exit_status) == ("stopped", 7)


@pytest.mark.kinds(PLAINS)
def test_what_leaves_its_cgroup_under_the_same_login_ends_with_its_namespace(bench: Bench) -> None:
    request = bench.run(
        script(
            "own=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)\n"
            "mkdir ${own%/limit/g1}/away\n"
            'sh -c "echo 0 >${own%/limit/g1}/away/cgroup.procs; exec setsid sleep 1002" &\n'
            "sleep 0.2; echo up; exec sleep 1001"
        )
    )
    bench.await_log(request, "up")
    away = bench.cgroup(request).parent.parent / "away"
    assert (away / "cgroup.procs").read_text("ascii").strip(), "it did leave"

    proof = bench.prove(request)

    assert isinstance(proof, Proven), proof
    wait_until(lambda: running(bench.node) == [], "the end of what had left")
    away.rmdir()


@pytest.mark.kinds(ROOTS)
def test_a_fork_bomb_is_held_to_its_limit_and_ended(bench: Bench) -> None:
    bomb = python(
        "ignore_all()\nprint('up', flush=True)\n"
        "while True:\n"
        "    try: os.fork()\n"
        "    except OSError: time.sleep(0.05)\n",
        more=("pids 64",),
    )
    request = bench.run(bomb)
    bench.await_log(request, "up")
    procs = bench.cgroup(request) / "cgroup.procs"
    wait_until(lambda: len(procs.read_text("ascii").split()) > 30, "the crowd")
    assert len(procs.read_text("ascii").split()) <= 64

    proof = bench.prove(request, grace_ms=0)

    assert isinstance(proof, Proven), proof
    assert running(bench.node) == []


@pytest.mark.kinds([("busybox", "root")])
def test_a_thousand_processes_are_ended(bench: Bench) -> None:
    work = python(
        "for n in range(1000):\n"
        "    if os.fork() == 0:\n"
        "        signal.pause()\n"
        "print('up', flush=True)\n"
        "signal.pause()",
        more=("pids 2000",),
    )
    request = bench.run(work)
    bench.await_log(request, "up")
    assert len((bench.cgroup(request) / "cgroup.procs").read_text("ascii").split()) == 1001

    proof = bench.prove(request, grace_ms=0)

    assert isinstance(proof, Proven), proof
    assert running(bench.node) == []


def _inside(node: SshdNode, *argv: str) -> None:
    command = ["nsenter", "-t", str(node.pids()[0]), "-m", *argv]
    subprocess.run(command, check=True, capture_output=True, timeout=20)


@contextlib.contextmanager
def _disk(size_mib: int) -> Iterator[tuple[Path, str]]:
    """A disk of its own: the file behind it, and the loop device."""
    with tempfile.TemporaryDirectory(prefix="wlctl-disk-", dir="/var/tmp") as directory:
        image = Path(directory) / "disk"
        with image.open("wb") as file:
            file.truncate(size_mib << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
        device = _loop(image)
        try:
            yield image, device
        finally:
            subprocess.run(["losetup", "-d", device], check=True)


def _loop(image: Path) -> str:
    argv = ["losetup", "-f", "--show", str(image)]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.root
@pytest.mark.sshd
def test_a_process_that_nothing_can_end_is_unproven_until_it_can() -> None:
    """It waits for a frozen disk (D state), and no signal reaches it."""
    with _disk(16) as (_, device), sshd_nodes(1) as (node,):
        bench = Bench(node)
        _inside(node, "mkdir", "/run/disk")
        _inside(node, "mount", device, "/run/disk")
        _inside(node, "chmod", "777", "/run/disk")
        request = bench.run(script("echo up; while :; do date > /run/disk/f; sleep 0.02; done"))
        bench.await_log(request, "up")
        _inside(node, "fsfreeze", "-f", "/run/disk")
        try:
            time.sleep(0.3)
            stuck = bench.prove(request, grace_ms=100)
            refused = bench.start(request, 3, 2)
        finally:
            _inside(node, "fsfreeze", "-u", "/run/disk")

        assert not isinstance(stuck, Proven), stuck
        assert Liveliness.ALIVE in {stuck.evidence.leader, stuck.evidence.init} or (
            stuck.evidence.uid_left
        )
        assert not isinstance(refused, Launched), refused
        assert isinstance(bench.prove(request, 4), Proven)
        bench.clear()
        _inside(node, "umount", "/run/disk")
        bench.session.close()


def _snapshot(image: Path) -> bytes:
    """What the disk holds at one moment: read twice, until nothing was written in between."""
    before = image.read_bytes()
    while (after := image.read_bytes()) != before:
        before = after
    return after


@pytest.mark.root
@pytest.mark.sshd
def test_a_power_cut_leaves_nothing_that_is_read_as_absent() -> None:
    """Whatever was answered before the cut is there afterwards, whole or torn."""
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    with _disk(8) as (image, device), sshd_nodes(1) as (node,):
        _inside(node, "mkdir", "-p", "/var/lib/wlctl")
        _inside(node, "mount", device, "/var/lib/wlctl")
        bench = Bench(node)
        answered: list[PlaceRequest] = []
        asked: list[PlaceRequest] = []
        cuts: list[tuple[bytes, list[PlaceRequest]]] = []
        done = threading.Event()

        def work() -> None:
            try:
                for _ in range(6):
                    request = bench.request(SLEEP)
                    asked.append(request)
                    bench.place(request)
                    answered.append(request)
            finally:
                done.set()

        worker = threading.Thread(target=work)
        worker.start()
        while not done.is_set():
            done.wait(chance.uniform(0.05, 0.4))
            known = list(answered)
            cuts.append((_snapshot(image), known))
        worker.join()
        assert len(answered) == 6
        bench.session.close()
        for content, known in chance.sample(cuts, min(4, len(cuts))):
            node.reboot()
            _read_again(node, content, known, [one for one in asked if one not in known], seed)


def _read_again(
    node: SshdNode, content: bytes, known: list[PlaceRequest], others: list[PlaceRequest], seed: int
) -> None:
    with _disk(8) as (image, _):
        image.write_bytes(content)
        device = _loop(image)
        try:
            _inside(node, "mount", device, "/var/lib/wlctl")
            bench = Bench(node)
            for request in known:
                (readings,) = bench.stop(request).readings
                assert readings.launched, f"seed {seed}: {request.instance} is read as absent"
                assert isinstance(judge(readings), Unproven), "another boot, and no more is known"
                later = judge(readings, boot_began_at_ms=2, last_reading_at_ms=1)
                assert isinstance(later, Proven) == readings.recorded
            for request in others:
                # cut before its answer: refused where the node's own name was torn, too
                asked = StopRequest(request.installation, request.instance, 2, 1, 500)
                with contextlib.suppress(Indeterminate, Unreachable):
                    bench.session.stop(asked)
            bench.session.close()
            _inside(node, "umount", "/var/lib/wlctl")
        finally:
            subprocess.run(["losetup", "-d", device], check=True)
