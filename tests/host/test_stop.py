"""What stop ends and proves, against processes that resist, looked at from outside."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, Bench, Work, python, running, script, wait_until
from tests.host.nodes import sshd_nodes
from wlctl.errors import Indeterminate
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import Launched, Refused, Stopped, StopRequest
from wlctl.model.generation import CgroupEnd, Disproven, Liveliness, Proven, Unproven

ROOTS = [(shell, login) for shell in ("dash", "bash", "busybox") for login in ("root", "sudo")]
PLAINS = [(shell, "plain") for shell in ("dash", "bash", "busybox")]
SOME = [("dash", "root"), ("bash", "sudo"), ("busybox", "plain")]
ONE = [("dash", "root")]

TREES = [
    pytest.param(
        script("echo up; exec sleep 1000"), "stopped", id="a process that ends when asked"
    ),
    pytest.param(script("echo up; sleep 1000 & sleep 1001"), "stopped", id="a tree"),
    pytest.param(script("echo up; exit 0"), "exited", id="a process that has ended"),
    pytest.param(
        script("setsid sh -c 'sleep 1000 & sleep 1001 &' & echo up; exec sleep 1000"),
        "stopped",
        id="a daemon that forked twice and left the session",
    ),
    pytest.param(
        script("setsid sleep 1000 & echo up; exit 0"),
        "exited",
        id="a leader that ended and left a daemon behind",
    ),
    pytest.param(
        script("trap '' TERM INT HUP; echo up; sleep 1000 & while :; do sleep 1; done"),
        "killed",
        id="a tree that ignores the signal",
    ),
    pytest.param(
        python("ignore_all(); print('up', flush=True); lose_main_thread()"),
        "killed",
        id="a leader whose main thread has ended and whose other thread runs on",
    ),
    pytest.param(
        python(
            "if os.fork() == 0:\n    daemon(); ignore_all(); lose_main_thread()\n"
            "print('up', flush=True); time.sleep(1000)"
        ),
        "stopped",
        id="a daemon whose main thread has ended",
    ),
    pytest.param(
        script("echo up; kill -STOP $$"), "killed", id="a stopped process, which cannot hear"
    ),
]


@pytest.mark.parametrize(("work", "how"), TREES)
@pytest.mark.kinds(SOME)
def test_nothing_is_left_of(bench: Bench, work: Work, how: str) -> None:
    request = bench.run(work)
    bench.await_log(request, "up")
    time.sleep(0.05)

    proof = bench.prove(request, grace_ms=200)

    assert isinstance(proof, Proven), proof
    assert proof.evidence.how == how
    assert running(bench.node) == []


def test_a_crowd_that_resists_in_every_way_is_ended(bench: Bench) -> None:
    work = python(
        "ignore_all()\n"
        "for n in range(20):\n"
        "    if os.fork() == 0:\n"
        "        if n % 2: daemon()\n"
        "        if n % 5 == 0: lose_main_thread()\n"
        "        if n % 7 == 0: os.kill(os.getpid(), signal.SIGSTOP)\n"
        "        while True: signal.pause()\n"
        "print('up', flush=True)\n"
        "lose_main_thread()"
    )
    request = bench.run(work)
    bench.await_log(request, "up")

    proof = bench.prove(request, grace_ms=50)

    assert isinstance(proof, Proven), proof
    assert proof.evidence.how == "killed"
    assert running(bench.node) == []


@pytest.mark.kinds([("dash", "root"), ("bash", "root"), ("busybox", "root")])
def test_three_hundred_daemons_that_ignore_everything_are_ended(bench: Bench) -> None:
    work = python(
        "ignore_all()\n"
        "for n in range(300):\n"
        "    if os.fork() == 0:\n"
        "        daemon()\n"
        "        if n % 50 == 0: lose_main_thread()\n"
        "        while True: signal.pause()\n"
        "print('up', flush=True)\n"
        "while True: signal.pause()",
        more=("pids 1000",),
    )
    request = bench.run(work)
    bench.await_log(request, "up")

    proof = bench.prove(request, grace_ms=0)

    assert isinstance(proof, Proven), proof
    assert running(bench.node) == []


@pytest.mark.kinds(SOME)
def test_a_zombie_leader_is_gone_although_it_can_be_signalled(bench: Bench) -> None:
    request = bench.run(script("echo up; exec sleep 1000"))
    bench.await_log(request, "up")
    leader = int((bench.cgroup(request) / "cgroup.procs").read_text("ascii"))
    waiter = int(_stat(leader)[1])
    os.kill(waiter, signal.SIGSTOP)
    wait_until(lambda: _stat(waiter)[0] == "T", "the waiter to stand still")
    os.kill(leader, signal.SIGKILL)
    wait_until(lambda: _stat(leader)[0] == "Z", "the zombie")

    proof = bench.prove(request)

    assert isinstance(proof, Proven), proof
    assert proof.evidence.how == "exited"


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(") ")[2].split()


@pytest.mark.kinds(SOME)
def test_a_frozen_process_is_ended(bench: Bench) -> None:
    request = bench.run(script("trap '' TERM; echo up; sleep 1000"))
    bench.await_log(request, "up")
    (bench.cgroup(request) / "cgroup.freeze").write_text("1", encoding="ascii")

    proof = bench.prove(request, grace_ms=50)

    assert isinstance(proof, Proven), proof
    assert proof.evidence.how == "killed"


@pytest.mark.kinds(PLAINS)
def test_cgroups_that_a_workload_made_itself_are_emptied_and_removed(bench: Bench) -> None:
    request = bench.run(
        script(
            "own=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)\n"
            'mkdir -p "$own/a/b" "$own/c"\n'
            'sh -c "echo 0 >$own/a/b/cgroup.procs; exec sleep 1000" &\n'
            "sleep 0.1; echo up; exec sleep 1001"
        )
    )
    bench.await_log(request, "up")
    assert (bench.cgroup(request) / "a/b/cgroup.procs").read_text("ascii").strip()

    proof = bench.prove(request)

    assert isinstance(proof, Proven), proof
    assert running(bench.node) == []


@pytest.mark.kinds(SOME)
def test_a_process_that_somebody_put_into_the_cgroup_is_ended_too(bench: Bench) -> None:
    request = bench.run(script("echo up; exec sleep 1000"))
    bench.await_log(request, "up")
    pid = os.fork()
    if pid == 0:
        os.execvp("sleep", ["sleep", "1000"])
    try:
        (bench.cgroup(request) / "cgroup.procs").write_text(str(pid), encoding="ascii")

        proof = bench.prove(request)

        assert isinstance(proof, Proven), proof
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


@pytest.mark.kinds(ONE)
def test_a_process_of_the_uid_outside_every_cgroup_is_seen_and_named(bench: Bench) -> None:
    request = bench.request(script("echo up; exec sleep 1000"))
    uid = bench.place(request).uid
    bench.await_log(request, "up")
    entered = _enter(bench, f"setpriv --reuid={uid} --regid={uid} --clear-groups sleep 1002")
    try:
        time.sleep(0.2)

        proof = bench.prove(request)

        assert isinstance(proof, Disproven)
        assert proof.evidence.uid_left == 1
        assert proof.evidence.leader is Liveliness.GONE
    finally:
        os.killpg(entered.pid, signal.SIGKILL)
        entered.wait()
    assert isinstance(bench.prove(request, 3), Proven)


def _enter(bench: Bench, text: str) -> "subprocess.Popen[bytes]":
    """Start a program in the node's namespaces, and in no cgroup of the node."""
    inside = next(pid for pid in bench.node.pids() if _command(pid).startswith("sshd:"))
    argv = ["nsenter", "-t", str(inside), "-p", "-m", "sh", "-c", f"exec {text}"]
    return subprocess.Popen(argv, start_new_session=True)


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")


@pytest.mark.kinds(SOME)
def test_the_stop_signal_and_the_grace_are_the_package_s(bench: Bench) -> None:
    work = script(
        "trap 'echo heard; exit 7' USR1; echo up; while :; do sleep 0.05; done",
        signal="USR1",
        grace_ms=5000,
    )
    request = bench.run(work)
    bench.await_log(request, "up")

    (readings,) = bench.stop(request, grace_ms=5000).readings

    assert (readings.how, readings.exit_status) == ("stopped", 7)
    assert "heard" in bench.log(request)


@pytest.mark.kinds(SOME)
def test_a_clean_end_leaves_no_mark_of_a_kill(bench: Bench) -> None:
    request = bench.run(script("echo up; exit 5"))
    bench.await_log(request, "up")
    wait_until(
        lambda: not bench.cgroup(request).exists() or not _members(bench, request), "its end"
    )

    (readings,) = bench.stop(request, grace_ms=0).readings

    assert (readings.how, readings.exit_status) == ("exited", 5)


def _members(bench: Bench, request: object) -> str:
    return (bench.cgroup(request) / "cgroup.procs").read_text("ascii")  # type: ignore[arg-type]  # a request


@pytest.mark.kinds(SOME)
def test_a_stop_asked_again_reads_the_same_end(bench: Bench) -> None:
    request = bench.run(script("trap '' TERM; echo up; while :; do sleep 0.05; done"))
    bench.await_log(request, "up")

    (first,) = bench.stop(request, 2, grace_ms=50).readings
    (again,) = bench.stop(request, 2, grace_ms=50).readings
    (later,) = bench.stop(request, 3, grace_ms=50).readings

    assert first.how == again.how == later.how == "killed"
    assert (first.ctl, first.limit) == (CgroupEnd.REMOVED, CgroupEnd.REMOVED)
    # told as it was read then, or read anew where a run could have written that itself
    is_root = bench.node.address.user == "root" or bench.node.address.sudo
    ends = {CgroupEnd.REMOVED if is_root else CgroupEnd.MISSING}
    assert {again.ctl, again.limit, later.ctl, later.limit} == ends
    assert all(isinstance(judge(readings), Proven) for readings in (first, again, later))


@pytest.mark.kinds([("bash", "root"), ("busybox", "root"), ("dash", "sudo")])
def test_a_run_that_was_proven_gone_is_told_as_it_was_read_then(bench: Bench) -> None:
    request = bench.run(script("exec sleep 1000"))
    (first,) = bench.stop(request, 2, grace_ms=0).readings
    assert isinstance(bench.start(request, 3, 2), Launched)

    told, second = bench.stop(request, 4, generation=2, grace_ms=0).readings

    assert told == first
    assert second.read_at_ms > first.read_at_ms
    assert isinstance(judge(second), Proven)


@pytest.mark.parametrize("what", ["ctl", "limit", "proof", "ended"])
@pytest.mark.kinds(ONE)
def test_a_run_of_which_anything_is_otherwise_by_now_is_read_anew(bench: Bench, what: str) -> None:
    request = bench.run(script("exec sleep 1000"))
    (first,) = bench.stop(request, 2, grace_ms=0).readings
    cgroup = bench.cgroup(request, what)
    if what in ("ctl", "limit"):
        cgroup.mkdir(parents=True)
    else:
        (bench.instance_dir(request) / "g1" / what).unlink()

    (again,) = bench.stop(request, 3, grace_ms=0).readings

    assert again.read_at_ms > first.read_at_ms
    if cgroup.exists():  # it is nobody's, so it stayed
        cgroup.rmdir()


@pytest.mark.kinds([("bash", "root"), ("busybox", "root"), ("dash", "root")])
def test_if_init_dies_the_kernel_ends_everything(bench: Bench) -> None:
    request = bench.run(script("setsid sleep 1000 & echo up; exec sleep 1001"))
    bench.await_log(request, "up")
    init = next(
        pid
        for pid, text in bench.node.commands().items()
        if "init.sh init" in text and "unshare" not in text
    )

    os.kill(init, signal.SIGKILL)

    wait_until(lambda: running(bench.node) == [], "the end of all")
    proof = bench.prove(request)
    assert isinstance(proof, Proven), proof
    assert proof.evidence.exit_status is None, "nobody was left to write it"


@pytest.mark.kinds([("dash", "root"), ("bash", "root")])
def test_if_the_waiter_dies_init_ends_the_generation(bench: Bench) -> None:
    request = bench.run(script("setsid sleep 1000 & echo up; exec sleep 1001"))
    bench.await_log(request, "up")
    waiter = next(pid for pid, text in bench.node.commands().items() if "init.sh waiter" in text)

    os.kill(waiter, signal.SIGKILL)

    wait_until(lambda: running(bench.node) == [], "the end of all")
    assert isinstance(bench.prove(request), Proven)


@pytest.mark.kinds(SOME)
def test_a_cgroup_of_the_same_name_that_is_another_proves_nothing(bench: Bench) -> None:
    request = bench.run(script("echo up; exit 0"))
    bench.await_log(request, "up")
    limit = bench.cgroup(request)
    wait_until(lambda: not _members(bench, request), "its end")
    limit.rmdir()
    limit.mkdir()

    proof = bench.prove(request)

    assert isinstance(proof, Unproven)
    assert proof.evidence.limit is CgroupEnd.FOREIGN
    limit.rmdir()
    assert isinstance(bench.prove(request, 3), Proven)


@pytest.mark.kinds([("dash", "root"), ("bash", "sudo"), ("busybox", "root")])
def test_where_the_node_has_another_way_than_at_the_launch_both_places_are_looked_at(
    bench: Bench,
) -> None:
    """It was launched below a subtree of our own, and systemd has the tree by now."""
    request = bench.run(script("echo up; exec sleep 1000"))
    bench.await_log(request, "up")
    systemd = Path(f"/proc/{bench.node.pids()[0]}/root/run/systemd/system")
    systemd.mkdir(parents=True)
    unit = bench.node.cgroup / "wlctl.slice/wlctl-node.service"
    place = unit / request.installation / request.instance
    for kind in ("ctl", "limit"):
        (place / kind / "g1/below").mkdir(parents=True)
    stray = subprocess.Popen(["sleep", "1004"])
    try:
        (place / "limit/g1/below/cgroup.procs").write_text(str(stray.pid), encoding="ascii")

        (readings,) = bench.stop(request).readings

        assert isinstance(judge(readings), Disproven)
        assert readings.limit is CgroupEnd.OCCUPIED
        assert stray.poll() is None, "what no record names is not killed"
        assert not bench.cgroup(request).exists(), "what the record names was ended"
        unproven = bench.unload(request, 3)
        assert not isinstance(unproven, Refused)
        assert not unproven.removed
    finally:
        stray.kill()
        stray.wait()
    (readings,) = bench.stop(request, 4).readings
    assert isinstance(judge(readings), Proven), readings
    bench.clear()
    assert not place.parent.exists()
    assert not bench.cgroup(request).parents[2].exists(), "neither by the way of its launch"
    unit.rmdir()
    unit.parent.rmdir()
    systemd.rmdir()
    systemd.parent.rmdir()


@pytest.mark.kinds([("dash", "root"), ("bash", "root"), ("busybox", "root")])
def test_a_pid_that_is_somebody_else_s_by_now_is_left_alone(bench: Bench) -> None:
    """Its record names the pid of the node's sshd, with a start time that is not sshd's."""
    request = bench.run(script("echo up; exec sleep 1000"))
    bench.await_log(request, "up")
    record = bench.instance_dir(request) / "g1/record"
    lines = record.read_text("ascii").splitlines()
    lines = ["leader 1 12345 ." if line.startswith("leader") else line for line in lines]
    record.write_text("\n".join([*lines, ""]), encoding="ascii")

    proof = bench.prove(request)

    assert isinstance(proof, Proven), proof
    assert proof.evidence.how == "exited"
    assert running(bench.node) == []
    bench.reconnect()


@pytest.mark.kinds(ONE)
def test_a_torn_record_is_unproven_and_never_read_as_absent(bench: Bench) -> None:
    request = bench.run(script("echo up; exit 0"))
    bench.await_log(request, "up")
    record = bench.instance_dir(request) / "g1/record"
    whole = record.read_bytes()
    for number, length in enumerate((0, 1, len(whole.splitlines()[0]) - 1)):
        record.write_bytes(whole[:length])

        proof = bench.prove(request, 2 + 2 * number)

        assert isinstance(proof, Unproven), proof
        unloaded = bench.unload(request, 3 + 2 * number)
        assert not isinstance(unloaded, Refused)
        assert not unloaded.removed
    record.write_bytes(whole)


@pytest.mark.root
@pytest.mark.sshd
def test_a_reboot_proves_the_end_only_when_it_came_after_the_last_reading() -> None:
    with sshd_nodes(1) as (node,):
        bench = Bench(node)
        request = bench.run(script("echo up; exec sleep 1000"))
        bench.await_log(request, "up")

        node.reboot()
        bench.reconnect()
        (readings,) = bench.stop(request).readings

        assert readings.boot_id != readings.recorded_boot_id
        assert (readings.leader, readings.how) == (Liveliness.UNKNOWN, "")
        assert isinstance(judge(readings), Unproven)
        assert isinstance(judge(readings, boot_began_at_ms=9, last_reading_at_ms=9), Unproven)
        assert isinstance(judge(readings, boot_began_at_ms=10, last_reading_at_ms=9), Proven)
        bench.clear()
        assert bench.left_over() == []
        bench.session.close()


@pytest.mark.kinds(ONE)
def test_two_generations_that_share_a_uid_are_told_apart(bench: Bench) -> None:
    """A generation is judged by its own processes, not by those of the next one."""
    request = bench.run(script("echo up; exec sleep 1000"))
    bench.await_log(request, "up")
    bench.stop(request, 2)
    assert isinstance(bench.start(request, 3, 2), Launched)
    bench.await_log(request, "up")

    first, second = bench.stop(request, 4, generation=2).readings

    assert (first.uid_left, second.uid_left) == (0, 0)
    assert isinstance(judge(first), Proven)
    assert isinstance(judge(second), Proven)


@pytest.mark.kinds([("dash", "root"), ("bash", "sudo"), ("busybox", "plain")])
def test_who_does_not_wait_only_closes_and_asks(bench: Bench) -> None:
    request = bench.run(script("trap 'echo asked' TERM; echo up; while :; do sleep 0.1; done"))
    bench.await_log(request, "up")

    asked = bench.session.stop(
        StopRequest(INSTALLATION, request.instance, number=2, generation=1, wait=False)
    )

    assert isinstance(asked, Stopped)
    assert asked.readings == ()
    bench.await_log(request, "asked")
    status = bench.status(request)
    assert status is not None
    assert (status.desired, status.generations[0].closed) == ("stopped", True)
    assert status.generations[0].leader is Liveliness.ALIVE
    assert isinstance(bench.prove(request, 3, grace_ms=0), Proven)


@pytest.mark.kinds([("dash", "root")])
def test_an_answer_is_waited_for_no_longer_than_was_said(bench: Bench) -> None:
    request = bench.run(script("trap '' TERM; echo up; while :; do sleep 0.1; done"))
    bench.await_log(request, "up")

    with pytest.raises(Indeterminate):
        bench.session.stop(
            StopRequest(
                *(INSTALLATION, request.instance),
                number=2,
                generation=1,
                grace_ms=3_000,
                within_s=0.5,
            )
        )

    bench.reconnect()
    assert isinstance(bench.prove(request, 3, grace_ms=0), Proven)
