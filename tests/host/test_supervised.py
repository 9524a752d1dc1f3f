"""Restarts in place: what a supervisor begins again by itself, and what it never does."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, Bench, running, script, wait_until
from tests.host.test_health import checked, kill_supervisors, supervise, supervisors
from tests.host.test_secrets import secrets_there
from tests.host.test_upkeep import forget
from wlctl.host import script as texts
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import (
    InstanceStatus,
    Launched,
    NodeStatus,
    PlaceRequest,
    StartRequest,
    Stopped,
    StopRequest,
    Unloaded,
)
from wlctl.model.generation import Liveliness, Proven
from wlctl.model.ids import PackageId
from wlctl.model.package import RestartPolicy
from wlctl.model.upkeep import LeaseRequest, ListName, RevocationList

SOME = [("dash", "root"), ("bash", "sudo"), ("busybox", "plain")]
ROOTS = [("dash", "root"), ("bash", "sudo"), ("busybox", "root")]
ONE = [("dash", "root")]

POLICY = RestartPolicy(max_restarts=3, window_ms=600_000, backoff_base_ms=20, backoff_max_ms=100)
AT_ONCE = replace(POLICY, max_restarts=1000, backoff_base_ms=0)
CRASH = script("echo run $WLCTL_GENERATION $WLCTL_FENCE; exit 3")
FIRST_FAILS = """[ "$WLCTL_GENERATION" = 1 ] || exec sleep 1000
until [ -e "$WLCTL_RUN_DIR/go" ]; do sleep 0.02; done
exit 3"""


def seen(bench: Bench, request: PlaceRequest) -> InstanceStatus:
    found = bench.status(request)
    assert found is not None
    return found


def held(bench: Bench, request: PlaceRequest) -> str:
    restarts = seen(bench, request).restarts
    return "" if restarts is None else restarts.held


def await_held(bench: Bench, request: PlaceRequest, code: str) -> InstanceStatus:
    wait_until(lambda: held(bench, request) == code, f"it to be held: {code}")
    return seen(bench, request)


def living(bench: Bench, request: PlaceRequest) -> list[int]:
    """The runs whose leader lives."""
    runs = seen(bench, request).generations
    return [run.number for run in runs if run.leader is Liveliness.ALIVE]


def run_file(bench: Bench, request: PlaceRequest, name: str, generation: int = 1) -> Path:
    """A path in the directory that a run and this side both see."""
    spec = (bench.instance_dir(request) / "spec").read_text("ascii")
    (short,) = [line[6:] for line in spec.splitlines() if line.startswith("short ")]
    base = f"/proc/{bench.node.insider()}/root/run/wlctl"
    return Path(base) / short / f"g{generation}" / name


def fail_first(bench: Bench, request: PlaceRequest) -> None:
    run_file(bench, request, "go").touch()


@pytest.mark.kinds(SOME)
def test_a_crash_loop_is_begun_again_three_times_and_then_held_with_nobody_looking_on(
    bench: Bench,
) -> None:
    request = bench.run(CRASH, restart=POLICY)

    verdict = bench.instance_dir(request) / "verdict"
    wait_until(verdict.exists, "the verdict, by the files alone")

    wait_until(lambda: running(bench.node) == [], "the end of its supervisor")
    found = seen(bench, request)
    assert [run.number for run in found.generations] == [1, 2, 3, 4]
    assert found.restarts is not None
    assert (found.restarts.within, found.restarts.held) == (3, "exhausted")
    assert found.restarts.why.startswith("g4 ended by itself with status 3; ")
    assert not found.unsupervised
    for run in found.generations:
        assert run.ended is not None
        assert isinstance(judge(run.ended), Proven), run
    begun = [run.begun for run in found.generations]
    assert begun[0] is None
    assert [one.after for one in begun if one is not None] == [1, 2, 3]
    logs = [bench.log(request, number) for number in (2, 3, 4)]
    assert logs == [f"run {n} {1_000_000 + n - 1}\n" for n in (2, 3, 4)], "its fence grows"
    assert supervise(bench, request).started == (), "and nobody starts another"


@pytest.mark.kinds(ONE)
def test_a_start_that_is_asked_for_has_a_fresh_budget(bench: Bench) -> None:
    request = bench.run(CRASH, restart=replace(POLICY, max_restarts=1))
    await_held(bench, request, "exhausted")
    bench.stop(request, 2)

    more = replace(request, restart=replace(POLICY, max_restarts=2))
    start_again(bench, more, number=9, generation=3)

    found = await_held(bench, request, "exhausted")
    assert [run.number for run in found.generations] == [1, 2, 3, 4, 5]
    assert bench.log(request, 5) == "run 5 9000002\n"


@pytest.mark.parametrize(
    ("kind", "status", "policy", "runs"),
    [
        pytest.param("service", 0, 2, 3, id="a service that ends, even with 0, is begun again"),
        pytest.param("job", 0, 2, 1, id="a job that ends with 0 has finished"),
        pytest.param("job", 1, 1, 2, id="a job that fails is begun again where that is allowed"),
        pytest.param("job", 1, 0, 1, id="a job that fails is not, unless it is"),
        pytest.param("service", 1, 0, 1, id="a policy of none begins nothing"),
    ],
)
@pytest.mark.kinds(ONE)
def test_what_an_end_means(bench: Bench, kind: str, status: int, policy: int, runs: int) -> None:
    work = replace(script(f"exit {status}"), more=(f"kind {kind}",))

    request = bench.run(work, restart=replace(POLICY, max_restarts=policy))

    wait_until(lambda: len(seen(bench, request).generations) >= runs, "its last run")
    wait_until(lambda: seen(bench, request).generations[-1].exit_status == status, "its end")
    wait_until(lambda: running(bench.node) == [], "the end of its supervisor")
    assert [run.number for run in seen(bench, request).generations] == list(range(1, runs + 1))
    assert not seen(bench, request).unsupervised


WELL_LATER = checked(
    "exec",
    "check",
    "echo $$; trap 'echo asked; exit 0' TERM; while :; do sleep 0.05; done",
    check='[ "$WLCTL_GENERATION" -gt 1 ]',
)


@pytest.mark.kinds(SOME)
def test_what_misses_its_checks_is_ended_and_begun_again(bench: Bench) -> None:
    request = bench.run(WELL_LATER, restart=POLICY)

    wait_until(lambda: seen(bench, request).current == 2, "the second run")

    wait_until(lambda: seen(bench, request).generations[-1].health == "healthy", "it to be well")
    first, second = seen(bench, request).generations
    assert first.ended is not None
    assert isinstance(judge(first.ended), Proven)
    assert (first.ended.how, first.exit_status) == ("stopped", 0)
    assert second.begun is not None
    assert second.begun.why == "g1 failed 2 health checks in a row"
    assert second.misses == 0
    assert bench.log(request, 1).endswith("asked\n"), "by its stop signal first"


@pytest.mark.kinds(ONE)
def test_what_is_never_well_is_ended_and_held_when_the_policy_has_had_enough(bench: Bench) -> None:
    work = checked("exec", "check", "exec sleep 1000", check="false")
    request = bench.run(work, restart=replace(POLICY, max_restarts=1))

    found = await_held(bench, request, "exhausted")

    wait_until(lambda: running(bench.node) == [], "its end")
    assert [run.closed for run in found.generations] == [True, True]


@pytest.mark.kinds(ROOTS)
def test_the_next_run_has_the_ports_the_uid_the_data_and_the_secrets_of_the_one_before(
    bench: Bench,
) -> None:
    text = (
        'id -u; echo $PORT; cat "$KEY_FILE"; echo; date +%N >>"$WLCTL_DATA_DIR/kept"\n'
        'wc -l <"$WLCTL_DATA_DIR/kept"\n' + FIRST_FAILS
    )
    work = replace(script(text), more=("port http auto", "secret KEY"), keep=True)
    request = bench.run(work, restart=POLICY, secrets=(("KEY", "s3cret"),))
    bench.await_log(request, "s3cret")
    fail_first(bench, request)

    wait_until(lambda: living(bench, request) == [2], "the second run")

    before, after = bench.log(request, 1).split(), bench.await_log(request, "\n2\n").split()
    assert before[:3] == after[:3]
    assert [path.parent.parent.name for path in secrets_there(bench)] == ["g2"]
    *_, last = bench.stop(request).readings
    assert last.how == "stopped", "by its signal, which a supervisor's child does not ignore"
    assert secrets_there(bench) == []


@pytest.mark.kinds(ONE)
def test_without_its_secrets_it_is_held(bench: Bench) -> None:
    work = replace(script(FIRST_FAILS), more=("secret KEY",))
    request = bench.run(work, restart=POLICY, secrets=(("KEY", "s3cret"),))
    for path in secrets_there(bench):
        path.unlink()
        path.parent.rmdir()
    fail_first(bench, request)

    found = await_held(bench, request, "secret_unavailable")

    wait_until(lambda: running(bench.node) == [], "all of it to end")
    assert found.restarts is not None
    assert "not on the node any more" in found.restarts.why


@pytest.mark.kinds(ONE)
def test_what_is_revoked_meanwhile_is_not_begun_again(bench: Bench) -> None:
    revoked = PackageId("cd" * 32)
    request = bench.run(script(FIRST_FAILS), restart=POLICY, package=revoked)
    name = ListName(1, 1, "0" * 64)
    told = bench.session.revoke(RevocationList(INSTALLATION, name, (revoked,), ()))
    assert told is None
    fail_first(bench, request)

    await_held(bench, request, "revoked")

    wait_until(lambda: running(bench.node) == [], "all of it to end")
    assert seen(bench, request).current == 1
    forget(bench)


def uptime_ms(bench: Bench) -> int:
    found = bench.session.status(INSTALLATION)
    assert isinstance(found, NodeStatus)
    return found.uptime_ms


@pytest.mark.kinds(ONE)
def test_a_restart_keeps_the_lease_as_it_is_and_renewals_are_for_the_new_run(bench: Bench) -> None:
    request = bench.request(script(FIRST_FAILS), restart=POLICY)
    request = replace(request, lease_until_ms=uptime_ms(bench) + 60_000)
    bench.place(request)
    fail_first(bench, request)
    wait_until(lambda: living(bench, request) == [2], "the second run")

    lease = run_file(bench, request, "").parent / "lease"
    generation, boot_id, until, _ = lease.read_text("ascii").split()
    assert (generation, int(until) * 10) == ("2", request.lease_until_ms // 10 * 10)
    usual = LeaseRequest(INSTALLATION, request.instance, 2, boot_id, request.lease_until_ms + 1000)
    assert bench.session.renew_lease(usual) == usual.until_ms // 10 * 10
    late = bench.session.renew_lease(replace(usual, generation=1))
    assert not isinstance(late, int)


@pytest.mark.kinds(ONE)
def test_what_its_lease_has_ended_is_not_begun_again(bench: Bench) -> None:
    request = bench.request(script("exec sleep 1000"), restart=POLICY)
    request = replace(request, lease_until_ms=uptime_ms(bench) + 4000)
    bench.place(request)

    await_held(bench, request, "lease")

    wait_until(lambda: running(bench.node) == [], "all of it to end")
    assert seen(bench, request).current == 1


@pytest.mark.kinds(ONE)
def test_what_fails_with_a_lease_that_has_run_out_is_not_begun_again(bench: Bench) -> None:
    waits = replace(AT_ONCE, backoff_base_ms=4000, backoff_max_ms=4000)
    request = bench.request(script("exit 3"), restart=waits)
    request = replace(request, lease_until_ms=uptime_ms(bench) + 600_000)
    bench.place(request)
    wait_until(lambda: seen(bench, request).current == 2, "the one restart that waits for nothing")
    wait_until(lambda: seen(bench, request).generations[-1].exit_status == 3, "its end")
    lease = run_file(bench, request, "").parent / "lease"
    generation, boot_id, *_ = lease.read_text("ascii").split()
    lease.write_text(f"{generation} {boot_id} 1 .\n", encoding="ascii")

    found = await_held(bench, request, "lease")

    wait_until(lambda: running(bench.node) == [], "all of it to end")
    assert found.current == 2


TURNS = 4


def start_again(bench: Bench, request: PlaceRequest, number: int, generation: int) -> None:
    asked = StartRequest(
        installation=request.installation,
        instance=request.instance,
        number=number,
        generation=generation,
        fence=number,
        package=request.package,
        deadline_ms=uptime_ms(bench) + 60_000,
        restart=request.restart,
    )
    assert isinstance(bench.session.start(asked), Launched)


def never_comes_back(bench: Bench, requests: Sequence[PlaceRequest]) -> None:
    """Nothing of it runs, and nothing is there that would begin it, or could be made to."""
    assert running(bench.node) == []
    for request in requests:
        found = seen(bench, request)
        assert (found.desired, found.restarts, found.unsupervised) == ("stopped", None, False)
        assert all(run.closed for run in found.generations)
    assert supervise(bench, *requests).started == ()


@pytest.mark.kinds(ONE)
def test_a_stop_at_any_moment_of_a_crash_loop_wins_and_it_never_comes_back(bench: Bench) -> None:
    dice = random.Random(7)
    requests = [bench.run(CRASH, restart=AT_ONCE) for _ in range(3)]
    for turn in range(TURNS):
        for request in requests:
            time.sleep(dice.random() * 0.3)  # a moment like any other
            stopped = bench.stop(request, 10 * turn + 2, grace_ms=dice.choice([0, 200]))
            unproven = [one for one in stopped.readings if not isinstance(judge(one), Proven)]
            assert unproven == []
            newest = max(one.generation for one in stopped.readings)
            assert seen(bench, request).current in (newest, newest - 1)
            assert living(bench, request) == []
            if turn < TURNS - 1:
                start_again(bench, request, 10 * turn + 3, newest + 1)

    never_comes_back(bench, requests)


@pytest.mark.kinds(ONE)
def test_a_stop_that_waits_for_nothing_is_seen_by_supervisors_that_live_on(bench: Bench) -> None:
    dice = random.Random(8)
    requests = [bench.run(CRASH, restart=AT_ONCE) for _ in range(6)]
    for request in requests:
        time.sleep(dice.random() * 0.3)  # a moment like any other
        asked = StopRequest(INSTALLATION, request.instance, 2, 1, grace_ms=0, wait=False)
        assert isinstance(bench.session.stop(asked), Stopped)

    wait_until(lambda: supervisors(bench) == [], "each of them to end by itself")

    wait_until(lambda: running(bench.node) == [], "what was asked to end")
    never_comes_back(bench, requests)


@pytest.mark.kinds(ONE)
def test_a_node_that_dies_right_after_a_stop_has_nothing_that_comes_back(bench: Bench) -> None:
    requests = [bench.run(CRASH, restart=AT_ONCE) for _ in range(3)]
    for request in requests:
        asked = StopRequest(INSTALLATION, request.instance, 2, 1, grace_ms=0, wait=False)
        assert isinstance(bench.session.stop(asked), Stopped)
    for pid in bench.node.commands():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    bench.reconnect()

    wait_until(lambda: running(bench.node) == [], "their end")
    never_comes_back(bench, requests)


MAIN = "\nmounts\ntools\n"
"""Where the program begins to act, after its functions."""

POINTS = (
    *(
        f"""writes=0
made_here() {{
	writes=$((writes + 1))
	[ "$writes" != {number} ] || kill -9 "$PPID" "$$"
	{{ printf '%s' "$2" >"$1"; }} 2>/dev/null
}}"""
        for number in range(1, 15)
    ),
    'spawn() { kill -9 "$PPID" "$$"; }',
    'prune() { kill -9 "$PPID" "$$"; }',
)


@pytest.mark.kinds(ONE)
def test_a_supervisor_that_is_killed_at_any_step_of_a_restart_leaves_one_run_to_the_next(
    bench: Bench,
) -> None:
    before, main, after = texts.restart().partition(MAIN)
    assert main
    requests = [bench.run(script(FIRST_FAILS), restart=POLICY) for _ in POINTS]
    for request, point in zip(requests, POINTS, strict=True):
        program = bench.instance_dir(request) / "restart.sh"
        program.write_text(f"{before}\n{point}{main}{after}", encoding="ascii")
    for request in requests:
        fail_first(bench, request)
    wait_until(lambda: supervisors(bench) == [], "the end of each supervisor")
    owed = {one.instance for one in requests if seen(bench, one).unsupervised}

    started = supervise(bench, *requests).started

    assert set(started) == owed == {request.instance for request in requests}
    for request in requests:
        wait_until(lambda one=request: len(living(bench, one)) == 1, "the next run")  # type: ignore[misc]
        (run,) = living(bench, request)
        found = seen(bench, request)
        assert found.current == run
        assert found.restarts is not None
        assert 1 <= found.restarts.within <= 2, "a cut costs one at most"
    alive = [text for text in running(bench.node) if "sleep 1000" in text]
    assert len(alive) == len(requests)


@pytest.mark.kinds(ONE)
def test_each_supervisor_takes_up_the_budget_of_the_one_before(bench: Bench) -> None:
    told = script('until [ -e "$WLCTL_RUN_DIR/go" ]; do sleep 0.02; done; exit 3')
    request = bench.run(told, restart=replace(POLICY, max_restarts=2))
    for number in (1, 2):
        kill_supervisors(bench)
        run_file(bench, request, "go", number).touch()
        wait_until(lambda: living(bench, request) == [], "its end")
        assert supervise(bench, request).started == (request.instance,)
        wait_until(lambda one=number + 1: living(bench, request) == [one], "the next run")  # type: ignore[misc]

    run_file(bench, request, "go", 3).touch()

    found = await_held(bench, request, "exhausted")
    assert found.current == 3


STUBBORN = checked(
    "exec",
    "check",
    '[ "$WLCTL_GENERATION" -gt 1 ] || trap "" TERM; while :; do sleep 0.05; done',
    check='[ "$WLCTL_GENERATION" -gt 1 ]',
)


@pytest.mark.kinds(ONE)
def test_a_supervisor_that_dies_while_it_ends_a_run_is_followed_by_another_beside_its_work(
    bench: Bench,
) -> None:
    request = bench.run(replace(STUBBORN, grace_ms=1500), restart=POLICY)
    wait_until(lambda: seen(bench, request).generations[0].closed, "the end to begin")
    assert living(bench, request) == [1]

    kill_supervisors(bench)  # what it has begun to do goes on

    assert seen(bench, request).unsupervised
    assert supervise(bench, request).started == (request.instance,)
    wait_until(lambda: seen(bench, request).current == 2, "the second run")
    wait_until(lambda: living(bench, request) == [2], "its leader")
    found = seen(bench, request)
    assert [run.number for run in found.generations] == [1, 2]
    assert found.restarts is not None
    assert found.restarts.within == 1


@pytest.mark.kinds(ONE)
def test_a_hostile_instance_cannot_write_what_is_kept_of_its_restarts(bench: Bench) -> None:
    forge = """
cd "/var/lib/wlctl/inst-test/instances/$WLCTL_INSTANCE" || exit 9
for name in restarts verdict opnum current restart.sh sup.sh pruned g1/why g1/exit g1/closed; do
	( echo forged >"$name" ) 2>/dev/null && echo "wrote $name"
	rm "$name" 2>/dev/null && echo "removed $name"
	cat "$name" 2>/dev/null && echo "read $name"
done
echo tried; exit 3"""
    request = bench.run(script(forge), restart=POLICY)

    found = await_held(bench, request, "exhausted")

    assert [run.number for run in found.generations] == [1, 2, 3, 4]
    assert {bench.log(request, number) for number in (1, 2, 3, 4)} == {"tried\n"}


@pytest.mark.kinds(ONE)
def test_what_is_kept_of_restarts_is_bounded_and_what_went_was_read_as_gone(bench: Bench) -> None:
    work = script('echo $WLCTL_GENERATION; [ "$WLCTL_GENERATION" -gt 1 ] || sleep 0.5; exit 3')
    request = bench.run(work, restart=replace(POLICY, max_restarts=5, backoff_base_ms=0))
    program = bench.instance_dir(request) / "restart.sh"
    text = texts.restart().replace("generations_kept=16", "generations_kept=3")
    program.write_text(text, encoding="ascii")

    found = await_held(bench, request, "exhausted")

    assert [run.number for run in found.generations] == [1, 4, 5, 6], "the one asked for stays"
    assert found.pruned == 3
    stopped = bench.stop(request)
    assert [one.generation for one in stopped.readings] == [1, 4, 5, 6]
    assert stopped.pruned == 3
    done = bench.unload(request)
    assert isinstance(done, Unloaded)
    assert (done.removed, done.pruned) == (True, 3)
    again = bench.unload(request, 10)
    assert isinstance(again, Unloaded)
    assert again.pruned == 3, "also of what has departed"
