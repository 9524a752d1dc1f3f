"""What the supervisor of an instance sees and records, and that it ends with what it looks at."""

import contextlib
import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, Bench, Work, running, script, wait_until
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import (
    GenerationStatus,
    InstanceStatus,
    Launched,
    Placed,
    PlaceRequest,
    Refused,
)
from wlctl.model.generation import Liveliness, Proven
from wlctl.model.ids import InstallationId, InstanceId
from wlctl.model.upkeep import Supervised

SOME = [("dash", "root"), ("bash", "sudo"), ("busybox", "plain")]
ROOTS = [("dash", "root"), ("bash", "sudo"), ("busybox", "root")]
ONE = [("dash", "root")]


def checked(kind: str, target: str, text: str, *more: str, check: str = "") -> Work:
    work = script(text)
    lines: tuple[str, ...] = (
        f"health_kind {kind}",
        f"health_target {target}",
        "health_interval_ms 50",
    )
    lines += ("health_timeout_ms 1500", "health_misses 2", *more)
    files = {"check": f"#!/bin/sh\n{check}\n".encode()} if check else {}
    return replace(work, files={**work.files, **files}, more=lines)


def seen(bench: Bench, request: PlaceRequest) -> GenerationStatus:
    status = bench.status(request)
    assert status is not None
    return status.generations[-1]


def await_health(bench: Bench, request: PlaceRequest, word: str) -> GenerationStatus:
    wait_until(lambda: seen(bench, request).health == word, f"it to be {word}")
    return seen(bench, request)


def proven_gone(bench: Bench, request: PlaceRequest) -> None:
    (readings,) = bench.stop(request).readings
    assert isinstance(judge(readings), Proven), readings
    assert running(bench.node) == []
    assert not bench.cgroup(request, "ctl").parent.joinpath("sup").exists()


def supervisors(bench: Bench) -> list[int]:
    return [pid for pid, text in bench.node.commands().items() if "/sup.sh" in text]


BY_FILE = checked(
    "exec",
    "check",
    'echo x >"$WLCTL_DATA_DIR/well"; exec sleep 1000',
    check='id -u; cat /proc/self/cgroup; test -e "$WLCTL_DATA_DIR/well"',
)


@pytest.mark.kinds(SOME)
def test_a_check_runs_as_the_instance_and_what_it_finds_is_recorded(bench: Bench) -> None:
    request = bench.run(BY_FILE)

    well = await_health(bench, request, "healthy")

    directory = bench.instance_dir(request) / "g1"
    said = (directory / "health.out").read_text("ascii").split("\n")
    assert well.misses == 0
    assert well.uid is None or said[0] == str(well.uid)
    assert f"{request.instance}/limit/g1/hook" in " ".join(said)
    (directory / "data/well").unlink()
    assert await_health(bench, request, "unhealthy").misses >= 2
    (directory / "data/well").touch()
    assert await_health(bench, request, "healthy").misses == 0
    proven_gone(bench, request)


@pytest.mark.kinds(SOME)
def test_no_command_line_shows_a_value_of_the_environment(bench: Bench) -> None:
    """Neither of what starts a run nor of what starts a check of it."""
    work = checked(
        "exec",
        "check",
        "exec sleep 1000",
        "env PLANTED=sh0wn",
        check='echo x >>"$WLCTL_DATA_DIR/checks"; exec test "$PLANTED" = sh0wn',
    )
    shown: list[bytes] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            for pid in bench.node.pids():
                with contextlib.suppress(OSError):
                    words = Path(f"/proc/{pid}/cmdline").read_bytes()
                    if b"PLANTED=s" in words:
                        shown.append(words)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        request = bench.run(work)
        asked = bench.instance_dir(request) / "g1/data/checks"
        wait_until(lambda: asked.exists() and len(asked.read_bytes()) >= 8, "four checks")
    finally:
        done.set()
        watcher.join()

    assert shown == []
    assert seen(bench, request).health == "healthy"
    proven_gone(bench, request)


SERVER = "exec python3 -m http.server --bind 127.0.0.1 $PORT"


@pytest.mark.parametrize(
    ("kind", "target", "text", "word"),
    [
        pytest.param("http", "http://127.0.0.1:${PORT}/run", SERVER, "healthy", id="http, 200"),
        pytest.param("http", "http://127.0.0.1:${PORT}/no", SERVER, "unhealthy", id="http, 404"),
        pytest.param(
            "http", "http://127.0.0.1:${PORT}/", "exec sleep 1000", "unhealthy", id="http, nobody"
        ),
        pytest.param("tcp", "127.0.0.1:${PORT}", SERVER, "healthy", id="tcp"),
        pytest.param("tcp", "127.0.0.1:${PORT}", "exec sleep 1000", "unhealthy", id="tcp, nobody"),
    ],
)
@pytest.mark.kinds(ONE)
def test_what_listens_is_asked(bench: Bench, kind: str, target: str, text: str, word: str) -> None:
    request = bench.run(checked(kind, target, text, "port http auto"))

    await_health(bench, request, word)

    proven_gone(bench, request)


@pytest.mark.kinds(SOME)
def test_a_heartbeat_is_young_or_missed(bench: Bench) -> None:
    beating = checked(
        "heartbeat",
        "beat",
        'for n in 1 2 3; do touch "$WLCTL_RUN_DIR/beat"; sleep 0.5; done; exec sleep 1000',
        "health_max_age_ms 1000",
    )
    request = bench.run(beating)

    await_health(bench, request, "healthy")
    await_health(bench, request, "unhealthy")

    proven_gone(bench, request)


@pytest.mark.kinds(ROOTS)
def test_whatever_a_check_leaves_is_gone_before_the_next(bench: Bench) -> None:
    work = checked(
        "exec", "check", "exec sleep 1000", check="setsid sleep 1234 & trap '' TERM; sleep 1235"
    )
    request = bench.run(
        replace(work, more=(*work.more[:3], "health_timeout_ms 200", *work.more[4:]))
    )

    ill = await_health(bench, request, "unhealthy")

    assert ill.misses >= 2
    left = [text for text in running(bench.node) if "sleep 123" in text]
    assert len(left) <= 2, "of one check at most"
    proven_gone(bench, request)


@pytest.mark.kinds(SOME)
def test_a_supervisor_ends_with_its_generation_and_the_next_has_its_own(bench: Bench) -> None:
    request = bench.run(replace(BY_FILE, more=BY_FILE.more))
    await_health(bench, request, "healthy")
    assert len(supervisors(bench)) == 1
    bench.stop(request, 2)
    assert supervisors(bench) == []

    assert isinstance(bench.start(request, 3, 2), Launched)

    await_health(bench, request, "healthy")
    assert len(supervisors(bench)) == 1


@pytest.mark.kinds(ONE)
def test_a_workload_that_ends_takes_its_supervisor_with_it(bench: Bench) -> None:
    request = bench.run(checked("exec", "check", "exec sleep 1", check="true"))

    wait_until(lambda: seen(bench, request).exit_status == 0, "its end")

    wait_until(lambda: running(bench.node) == [], "the end of its supervisor")


@pytest.mark.kinds(SOME)
def test_a_supervisor_that_dies_takes_nothing_with_it_and_is_started_again(bench: Bench) -> None:
    request = bench.run(BY_FILE)
    await_health(bench, request, "healthy")
    assert not standing(bench, request).unsupervised

    kill_supervisors(bench)

    assert [text for text in running(bench.node) if "sleep 1000" in text]
    alone = standing(bench, request)
    assert (alone.supervisor, alone.unsupervised) == (Liveliness.GONE, True)
    assert supervise(bench, request).started == (request.instance,)
    wait_until(lambda: not standing(bench, request).unsupervised, "another supervisor")
    (bench.instance_dir(request) / "g1/data/well").unlink()
    await_health(bench, request, "unhealthy")
    assert supervise(bench, request) == Supervised(bench.facts.node_id, (), ())
    assert len(supervisors(bench)) == 1
    proven_gone(bench, request)


def kill_supervisors(bench: Bench) -> None:
    for pid in supervisors(bench):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: supervisors(bench) == [], "their end")


def standing(bench: Bench, request: PlaceRequest) -> InstanceStatus:
    status = bench.status(request)
    assert status is not None
    return status


def supervise(bench: Bench, *requests: PlaceRequest) -> Supervised:
    asked = [request.instance for request in requests]
    done = bench.session.supervise(INSTALLATION, asked)
    assert isinstance(done, Supervised), done
    return done


@pytest.mark.kinds(ONE)
def test_only_what_runs_is_given_a_supervisor(bench: Bench) -> None:
    runs, ended, stopped = (
        bench.run(script(text)) for text in ("exec sleep 1000", "exit 0", "sleep 9")
    )
    never = bench.request(script("exec sleep 1000"), start=False)
    assert isinstance(bench.session.place(never), Placed)
    bench.stop(stopped)
    wait_until(lambda: seen(bench, ended).exit_status == 0, "its end")
    kill_supervisors(bench)

    done = supervise(
        bench, ended, runs, stopped, never, replace(never, instance=InstanceId("other"))
    )

    assert done.started == (runs.instance,)
    assert done.failed == ()


@pytest.mark.kinds(ONE)
def test_a_supervisor_that_has_nowhere_to_be_is_said_to_have_failed(bench: Bench) -> None:
    request = bench.run(BY_FILE)
    await_health(bench, request, "healthy")
    kill_supervisors(bench)
    (bench.instance_dir(request) / "sup.sh").unlink()
    (bench.instance_dir(request) / "sup.sh").mkdir()

    done = supervise(bench, request)

    (bench.instance_dir(request) / "sup.sh").rmdir()
    assert (done.started, done.failed) == ((), (request.instance,))
    assert isinstance(bench.session.supervise(InstallationId("../up"), []), Refused)
    assert isinstance(bench.session.supervise(INSTALLATION, [InstanceId("../up")]), Refused)


@pytest.mark.kinds(ONE)
def test_a_process_beside_the_supervisor_is_ended_and_part_of_the_proof(bench: Bench) -> None:
    request = bench.run(BY_FILE)
    await_health(bench, request, "healthy")
    pid = os.fork()
    if pid == 0:
        os.execvp("sleep", ["sleep", "1000"])
    beside = bench.cgroup(request, "ctl").parent / "sup/cgroup.procs"
    beside.write_text(str(pid), encoding="ascii")

    proven_gone(bench, request)

    assert os.waitpid(pid, 0)[1] == signal.SIGKILL


FLOOD = """yes line | head -c 9000000; echo before
until [ -e "$WLCTL_DATA_DIR/go" ]; do sleep 0.1; done
echo later; exec sleep 1000"""


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(checked("exec", "check", FLOOD, check="true"), id="of what is looked at"),
        pytest.param(script(FLOOD), id="of what says nothing of its health"),
    ],
)
@pytest.mark.kinds(ONE)
def test_output_is_copied_and_cut_at_its_bound(bench: Bench, work: Work) -> None:
    request = bench.run(work)
    output = bench.instance_dir(request) / "g1/out"
    wait_until(lambda: _size(output) > 8_388_608, "the flood")

    wait_until(lambda: _size(output) < 1000, "the cut")

    assert _size(output.with_name("out.1")) > 8_388_608
    (bench.instance_dir(request) / "g1/data/go").touch()
    log = bench.await_log(request, "later")
    assert log.endswith("line\nbefore\nlater\n"), "it writes on, and what was before is not lost"
    assert output.read_text("ascii") == "later\n"
    proven_gone(bench, request)
    bench.unload(request)
    assert bench.log(request) == log, "it is kept like this"


@pytest.mark.kinds(ONE)
def test_what_a_run_printed_last_is_bounded_too(bench: Bench) -> None:
    request = bench.run(script("yes line | head -c 9000000; echo last"))
    output = bench.instance_dir(request) / "g1/out"

    wait_until(lambda: output.with_name("out.1").exists() and _size(output) == 0, "the cut")

    assert bench.log(request).endswith("line\nlast\n")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
