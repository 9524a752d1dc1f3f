"""What runs on a node without a cgroup, by its operator's word, and what proves its end."""

import contextlib
import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.host.bench import Bench, Work, python, running, script, wait_until
from tests.host.nodes import SHELLS, SshdNode, sshd_nodes
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import Launched, PlaceRequest, Read, RefusalCode, Refused, Unloaded
from wlctl.model.generation import (
    CgroupEnd,
    Containment,
    Disproven,
    Liveliness,
    Proven,
    Readings,
    Unproven,
)
from wlctl.model.node import Settles
from wlctl.model.package import RestartPolicy

pytestmark = [pytest.mark.root, pytest.mark.sshd]

SLEEP = script("echo up; exec sleep 1000")

SHOW = script(
    """
    grep -E '^(Uid|NoNewPrivs|NSpid):' /proc/self/status
    touch "$WLCTL_DATA_DIR/d" "$WLCTL_RUN_DIR/r" "$TMPDIR/t" && echo done
    exec sleep 1000"""
)

ESCAPES = python(
    """
for _ in range(3):
    if os.fork() == 0:
        daemon()
        ignore_all()
        time.sleep(1000)
        os._exit(0)
print("up", flush=True)
time.sleep(1000)
"""
)
"""A leader, and children that have left its session and let nothing end them but a kill."""

NAMESPACED = [(shell, login) for shell in SHELLS for login in ("root", "plain")]


@contextlib.contextmanager
def bare(shell: str = "dash", login: str = "root", *, namespaces: bool = True) -> Iterator[Bench]:
    """A node where wlctl may make no cgroup.

    Args:
        namespaces: Whether a plain user may have any.
    """
    with sshd_nodes(
        1,
        shell=shell,
        login=login,
        delegate=False,
        mount_cgroup=login == "plain",
        own_boot_id=not (login == "plain" and namespaces),
    ) as (node,):
        bench = Bench(node)
        try:
            yield bench
        finally:
            bench.session.close()


def settled(bench: Bench, work: Work, **changes: object) -> PlaceRequest:
    """A request by an operator who settles for it."""
    return bench.request(work, settles=Settles.LEADER_ONLY, **changes)


def quiet(node: SshdNode) -> None:
    wait_until(lambda: running(node) == [], "the end of all that ran there")


@pytest.mark.parametrize(("shell", "login"), NAMESPACED)
def test_it_runs_where_the_operator_settles_for_it_and_its_end_is_proven_by_its_namespace(
    shell: str, login: str
) -> None:
    with bare(shell, login) as bench:
        request = settled(bench, ESCAPES, package="ab" * 32)
        placed = bench.place(request)
        bench.await_log(request, "up")

        assert placed.containment is Containment.LEADER_ONLY
        assert (placed.way, placed.cgroup, placed.cgroup_inode) == ("none", "", None)
        status = bench.status(request)
        assert status is not None
        assert [one.launch for one in status.generations] == [replace(placed, already=True)]
        assert status.generations[0].populated is None

        proof = bench.prove(request)

        assert isinstance(proof, Proven), proof
        assert proof.evidence.init is Liveliness.GONE
        assert (proof.evidence.ctl, proof.evidence.limit) == (CgroupEnd.NONE, CgroupEnd.NONE)
        assert proof.evidence.uid_left == (0 if login == "root" else None)
        quiet(bench.node)
        again = bench.start(request, 3, 2)
        assert isinstance(again, Launched), again
        bench.clear()
        assert bench.left_over() == []


@pytest.mark.parametrize(
    ("login", "namespaces"),
    [
        pytest.param("root", True, id="root where no cgroup v2 is mounted"),
        pytest.param("plain", True, id="a plain user that may make none"),
        pytest.param("plain", False, id="a plain user that may have no namespaces either"),
    ],
)
def test_a_node_without_a_cgroup_refuses_while_nobody_settles_for_that(
    login: str, namespaces: bool
) -> None:
    with bare(login=login, namespaces=namespaces) as bench:
        assert bench.facts.containment is Containment.LEADER_ONLY

        assert bench.refused(bench.request(SLEEP)).code is RefusalCode.NO_CGROUP

        bench.asked_nothing()
        request = bench.request(SLEEP, settles=Settles.LEADER_ONLY, start=False)
        bench.session.place(request)
        unwanted = replace(request, settles=Settles.AUTO)
        started = bench.start(unwanted, 2, 1)
        assert isinstance(started, Refused)
        assert started.code is RefusalCode.NO_CGROUP
        bench.clear()
        assert bench.left_over() == []


def test_what_was_started_by_a_word_is_answered_for_after_the_word_was_taken_back() -> None:
    with bare() as bench:
        request = settled(bench, SLEEP)
        placed = bench.place(request)
        taken_back = replace(request, settles=Settles.AUTO)

        assert bench.place(taken_back) == replace(placed, already=True)

        bench.stop(request)
        started = bench.start(request, 3, 2)
        assert isinstance(started, Launched)
        assert bench.start(taken_back, 3, 2) == replace(started, already=True)
        bench.clear()


def test_where_the_node_can_do_better_it_does_whatever_its_operator_settles_for() -> None:
    with sshd_nodes(1) as (node,):
        bench = Bench(node)
        request = settled(bench, SLEEP)

        assert bench.place(request).containment is Containment.ISOLATED

        assert isinstance(bench.prove(request), Proven)
        bench.clear()
        bench.session.close()


def test_what_wants_more_than_a_leader_is_refused_and_leaves_nothing() -> None:
    with bare() as bench:
        leased = settled(bench, SLEEP, lease_until_ms=bench.facts.uptime_ms + 600_000)
        assert bench.refused(leased).code is RefusalCode.NO_LEASE
        secret = settled(
            bench, replace(SLEEP, more=("secret DB_PASSWORD",)), secrets=(("DB_PASSWORD", "x"),)
        )
        assert bench.refused(secret).code is RefusalCode.SECRET_UNAVAILABLE

        bench.asked_nothing()
        assert bench.left_over() == []


def test_limits_that_need_a_cgroup_are_said_to_be_unenforced() -> None:
    limits = replace(SLEEP, more=("memory_bytes 1048576", "cpu_milli 500", "pids 64"))
    with bare() as bench, bare(login="plain") as plain:
        for one, kept in ((bench, ("memory", "cpu")), (plain, ("memory", "cpu", "pids"))):
            request = settled(one, limits)
            assert one.place(request).unenforced == kept
            one.clear()


@pytest.mark.parametrize("shell", SHELLS)
def test_where_only_the_leader_is_known_its_end_is_not_proven_before_the_next_boot(
    shell: str,
) -> None:
    with bare(shell, "plain", namespaces=False) as bench:
        request = settled(bench, ESCAPES)
        assert bench.place(request).containment is Containment.LEADER_ONLY
        bench.await_log(request, "up")

        (alive,) = read(bench, request)
        (readings,) = bench.stop(request).readings

        assert alive.leader is Liveliness.ALIVE
        assert (readings.leader, readings.init) == (Liveliness.GONE, Liveliness.NONE)
        proof = judge(readings)
        assert isinstance(proof, Unproven)
        assert "only its leader" in proof.why
        assert [text for text in running(bench.node) if "run" in text], "what had left lives on"
        for answer in (bench.start(request, 3, 2), bench.unload(request, 4)):
            if isinstance(answer, Unloaded):
                assert not answer.removed
            else:
                assert isinstance(answer, Refused)
                assert answer.code is RefusalCode.BUSY

        bench.node.reboot()
        bench.reconnect()
        done = bench.unload(request, 5)
        assert isinstance(done, Unloaded)
        assert done.removed
        after = judge(done.readings[0], boot_began_at_ms=2, last_reading_at_ms=1)
        assert isinstance(after, Proven), after
        assert bench.left_over() == []


def test_a_leader_that_will_not_end_is_killed_with_all_that_stayed_in_its_session() -> None:
    stubborn = script("trap '' TERM\n(sleep 1001) &\necho up\nwhile :; do sleep 1002; done")
    with bare(login="plain", namespaces=False) as bench:
        request = settled(bench, stubborn)
        bench.place(request)
        bench.await_log(request, "up")
        other = settled(bench, SLEEP, name="other")
        bench.place(other)
        bench.await_log(other, "up")

        (readings,) = bench.stop(request, grace_ms=0).readings

        assert readings.how == "killed"
        wait_until(lambda: not beside(bench.node, "1001", "1002"), "the end of its session")
        (neighbour,) = read(bench, other)
        assert neighbour.leader is Liveliness.ALIVE
        bench.stop(other, grace_ms=0)
        quiet(bench.node)


@pytest.mark.parametrize(
    ("login", "more", "health"),
    [
        pytest.param("root", (), "healthy", id="as a uid of its own"),
        pytest.param("root", ("user root",), "healthy", id="as root"),
        pytest.param("plain", (), "healthy", id="as the login"),
    ],
)
def test_it_has_a_supervisor_that_looks_at_it_and_goes_with_it(
    login: str, more: tuple[str, ...], health: str
) -> None:
    looks = replace(
        SLEEP,
        files={**SLEEP.files, "check": b"#!/bin/sh\nexit 0\n"},
        more=(*more, "health_kind exec", "health_target check", "health_interval_ms 50"),
    )
    with bare(login=login) as bench:
        request = settled(bench, looks)
        assert bench.place(request).containment is Containment.LEADER_ONLY

        def is_so() -> bool:
            status = bench.status(request)
            assert status is not None
            return [one.health for one in status.generations] == [health]

        wait_until(is_so, "the first check")
        status = bench.status(request)
        assert status is not None
        assert status.supervisor is Liveliness.ALIVE
        proof = bench.prove(request)
        assert isinstance(proof, Proven), proof
        quiet(bench.node)
        bench.clear()


@pytest.mark.parametrize(
    ("file", "proven"),
    [
        pytest.param("go", True, id="before its launcher began"),
        pytest.param("withdrawn", True, id="when its launcher has found it closed"),
        pytest.param("gone", False, id="when its launcher had begun and is not heard of"),
    ],
)
def test_a_launch_that_was_closed_never_runs_or_is_not_said_to_have_ended(
    file: str, proven: bool
) -> None:
    """What stands for the cgroup that a late launcher would find gone."""
    with bare() as bench:
        request = settled(bench, SLEEP)
        bench.place(request)
        (first,) = bench.stop(request).readings
        run = bench.instance_dir(request) / "g2"
        shutil.copytree(run.parent / "g1", run)
        for name in ("closed", "ended", "how", "exit"):
            (run / name).unlink(missing_ok=True)
        record = f"gen 2 {first.boot_id} leader-only none - - - - - - .\nabove - - .\ngiven .\n"
        (run / "record").write_text(record, encoding="ascii")
        (run / "open").write_text("open .\n", encoding="ascii")
        (run / file).touch()

        second = bench.stop(request, 3, generation=2).readings[1]

        assert second.closed
        assert isinstance(judge(second), Proven if proven else Unproven), second
        assert not (run / "go").exists(), "a late launcher finds nothing to take"


def test_its_node_does_not_begin_it_again_by_itself() -> None:
    with bare() as bench:
        request = settled(bench, script("exit 3"), restart=RestartPolicy(backoff_base_ms=0))
        bench.place(request)

        quiet(bench.node)

        status = bench.status(request)
        assert status is not None
        assert status.supervisor is Liveliness.GONE
        assert [run.number for run in status.generations] == [1]


def test_what_ran_in_a_cgroup_is_not_begun_again_without_one() -> None:
    policy = RestartPolicy(max_restarts=9, backoff_base_ms=20, backoff_max_ms=100)
    work = script('until [ -e "$WLCTL_DATA_DIR/go" ]; do sleep 0.05; done\nexit 3')
    with sshd_nodes(1) as (node,):
        bench = Bench(node)
        request = settled(bench, work, restart=policy)
        assert bench.place(request).containment is Containment.ISOLATED
        tools = node.state / "tools"
        text = tools.read_text("ascii")
        tools.write_text(text.replace("| isolated ", "| leader-only "), encoding="ascii")

        (bench.instance_dir(request) / "g1/data/go").touch()

        wait_until((bench.instance_dir(request) / "verdict").exists, "the verdict")
        status = bench.status(request)
        assert status is not None
        assert status.restarts is not None
        assert status.restarts.held == "no_cgroup"
        tools.write_text(text, encoding="ascii")
        bench.clear()
        assert bench.left_over() == []
        bench.session.close()


def read(bench: Bench, request: PlaceRequest) -> tuple[Readings, ...]:
    found = bench.session.prove(request.installation, request.instance)
    assert isinstance(found, Read), found
    for one in found.readings:
        assert isinstance(judge(one), Disproven), one
    return found.readings


def beside(node: SshdNode, *words: str) -> list[str]:
    return [text for text in running(node) if any(word in text for word in words)]
