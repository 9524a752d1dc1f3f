"""What settle makes of a decision whose answer was lost, wherever its request was cut."""

import contextlib
import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import Bench, running, script, wait_until
from tests.host.nodes import sshd_nodes
from tests.host.test_cut import _begin, _place_params
from wlctl.host import transport
from wlctl.host.transport import Call
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import (
    Launched,
    PlaceRequest,
    RefusalCode,
    Refused,
    Settled,
    SettleOutcome,
    SettleRequest,
)
from wlctl.model.generation import Liveliness, Proven
from wlctl.model.ids import InstallationId

ONE = [("dash", "root")]
SOME = [("dash", "root"), ("bash", "sudo"), ("busybox", "plain")]

SLEEP = script("exec sleep 1000")

MANY_FILES = replace(SLEEP, files={**SLEEP.files, **{f"d/{n}": b"x" for n in range(150)}})
"""A workload whose files take a while to lay out."""


def ask(bench: Bench, request: PlaceRequest, number: int = 2) -> Settled | Refused:
    return bench.session.settle(
        SettleRequest(
            request.installation, request.instance, request.decision, number, request.generation
        )
    )


def settle(bench: Bench, request: PlaceRequest, number: int = 2) -> Settled:
    done = ask(bench, request, number)
    assert isinstance(done, Settled), done
    return done


def claim(bench: Bench, request: PlaceRequest) -> Path:
    return bench.node.state / request.installation / "decisions" / request.decision


def test_what_never_came_is_called_off_and_refused_when_it_comes(bench: Bench) -> None:
    request = bench.request(SLEEP)

    first = settle(bench, request)
    again = settle(bench, request, 3)

    assert first.outcome is again.outcome is SettleOutcome.CANCELLED
    assert first.readings == ()
    assert first.node_id == bench.facts.node_id
    assert bench.refused(request).code is RefusalCode.CANCELLED
    assert bench.refused(replace(request, number=7)).code is RefusalCode.CANCELLED
    assert bench.left_over() == []


@pytest.mark.kinds(SOME)
def test_what_was_placed_is_said_and_left_alone(bench: Bench) -> None:
    request = bench.run(SLEEP)

    done = settle(bench, request)

    assert (done.outcome, done.readings) == (SettleOutcome.PLACED, ())
    status = bench.status(request)
    assert status is not None
    assert status.number == 1, "the adoption is the controller's decision"
    assert status.generations[0].leader is Liveliness.ALIVE


@pytest.mark.kinds(SOME)
def test_what_was_refused_is_said_with_its_reason(bench: Bench) -> None:
    request = bench.request(replace(SLEEP, command=()))
    refused = bench.refused(request)

    done = settle(bench, request)

    assert (done.outcome, done.refused) == (SettleOutcome.REFUSED, refused)


@pytest.mark.kinds(SOME)
def test_a_place_that_lays_out_files_is_called_off_before_it_launches(bench: Bench) -> None:
    request = bench.request(MANY_FILES)
    answers: list[object] = []
    placing = threading.Thread(target=lambda: answers.append(bench.session.place(request)))
    placing.start()
    other = Bench(bench.node)
    wait_until((bench.instance_dir(request) / "g1/work/d").exists, "the first of its files")

    done = settle(other, request)
    placing.join()
    other.session.close()

    assert done.outcome is SettleOutcome.CANCELLED
    (placed,) = answers
    assert isinstance(placed, Refused), placed
    assert placed.code is RefusalCode.CANCELLED
    assert bench.refused(request).code is RefusalCode.CANCELLED
    assert bench.left_over() == []
    mark_or_draft = claim(bench, request).parent.glob(f"{request.decision}.*")
    assert not list(mark_or_draft)


@pytest.mark.kinds(ONE)
def test_a_place_that_stands_still_is_told_to_stop_and_stays_unsettled(bench: Bench) -> None:
    request = bench.request(MANY_FILES)
    channel, _ = _begin(bench, "place")
    channel.send(transport._request(Call("place", b"", _place_params(request))), 5.0)
    wait_until((bench.instance_dir(request) / "g1/work/d").exists, "the first of its files")
    pids = [pid for pid, text in bench.node.commands().items() if text.startswith("sh -s ")]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    other = Bench(bench.node)
    try:
        assert settle(other, request).outcome is SettleOutcome.WORKING
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)

    wait_until(
        lambda: settle(other, request, 3).outcome is SettleOutcome.CANCELLED, "the end of it"
    )
    other.session.close()
    channel.close()
    assert running(bench.node) == []


@pytest.mark.kinds([("dash", "root"), ("bash", "root"), ("busybox", "root")])
def test_a_place_that_was_killed_anywhere_is_settled_at_once(bench: Bench) -> None:
    """Whatever it had done: it is placed and runs, or nothing of it is left and nothing comes."""
    seen = set()
    for delay_ms in range(0, 120, 12):
        request = bench.request(SLEEP)
        channel, _ = _begin(bench, "place")
        channel.send(transport._request(Call("place", b"", _place_params(request))), 5.0)
        time.sleep(delay_ms / 1000)
        for pid, text in bench.node.commands().items():
            if text.startswith("sh -s "):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        channel.close()

        done = settle(bench, request)

        seen.add(done.outcome)
        if done.outcome is SettleOutcome.PLACED:
            bench.unload(request, 5)
            continue
        assert done.outcome is SettleOutcome.CANCELLED, done
        assert all(isinstance(judge(readings), Proven) for readings in done.readings)
        assert bench.status(request) is None
        assert bench.refused(request).code is RefusalCode.CANCELLED
        assert running(bench.node) == []
    assert SettleOutcome.CANCELLED in seen


@pytest.mark.kinds(SOME)
def test_a_generation_whose_place_was_cut_after_the_launch_is_ended(bench: Bench) -> None:
    request = bench.run(SLEEP)
    claim(bench, request).write_text(
        f"claimed 1 1 boot 1 {request.instance} 1 .\n", encoding="ascii"
    )

    done = settle(bench, request)

    assert done.outcome is SettleOutcome.CANCELLED
    (readings,) = done.readings
    assert readings.launched
    assert isinstance(judge(readings), Proven)
    assert bench.left_over() == []
    assert bench.refused(request).code is RefusalCode.CANCELLED


@pytest.mark.parametrize("content", ["", "claimed", "nonsense .\n"])
@pytest.mark.kinds(ONE)
def test_a_torn_claim_is_never_read_as_absent(bench: Bench, content: str) -> None:
    request = bench.run(SLEEP)
    claim(bench, request).write_text(content, encoding="ascii")

    done = settle(bench, request)

    assert done.outcome is SettleOutcome.CANCELLED
    assert [isinstance(judge(readings), Proven) for readings in done.readings] == [True]


@pytest.mark.kinds(ONE)
def test_what_cannot_be_read_as_gone_stays_unsettled(bench: Bench) -> None:
    request = bench.run(script("exit 0"))
    claim(bench, request).write_text(
        f"claimed 1 1 boot 1 {request.instance} 1 .\n", encoding="ascii"
    )
    limit = bench.cgroup(request)
    wait_until(lambda: not (limit / "cgroup.procs").read_text("ascii"), "its end")
    limit.rmdir()
    limit.mkdir()

    assert settle(bench, request).outcome is SettleOutcome.UNPROVEN
    assert bench.status(request) is not None
    limit.rmdir()
    assert settle(bench, request, 3).outcome is SettleOutcome.CANCELLED
    assert bench.status(request) is None


@pytest.mark.kinds(ONE)
def test_a_settle_ends_nothing_but_what_its_decision_began(bench: Bench) -> None:
    running_one = bench.run(SLEEP)
    foreign = replace(running_one, decision=bench.request(SLEEP).decision)
    stranger = replace(bench.request(SLEEP), decision=running_one.decision)

    for wrong in (foreign, stranger):
        refused = ask(bench, wrong)
        assert isinstance(refused, Refused), refused
        assert refused.code is RefusalCode.INVALID_REQUEST
    late = bench.run(SLEEP, number=5)
    claim(bench, late).write_text(f"claimed 1 1 boot 1 {late.instance} 1 .\n", encoding="ascii")
    refused = ask(bench, late, 4)
    assert isinstance(refused, Refused), refused
    assert refused.code is RefusalCode.SUPERSEDED
    for request in (running_one, late):
        status = bench.status(request)
        assert status is not None
        assert status.generations[0].leader is Liveliness.ALIVE


@pytest.mark.kinds(ONE)
def test_what_was_unloaded_after_its_answer_was_lost_is_settled(bench: Bench) -> None:
    request = bench.run(SLEEP)
    claim(bench, request).write_text(
        f"claimed 1 1 boot 1 {request.instance} 1 .\n", encoding="ascii"
    )
    bench.unload(request, 2)

    assert settle(bench, request, 3).outcome is SettleOutcome.CANCELLED
    assert bench.left_over() == []


@pytest.mark.root
@pytest.mark.sshd
@pytest.mark.parametrize("options", ["size=600k", "size=8m,nr_inodes=60"])
def test_a_full_disk_keeps_nothing_from_being_settled(options: str) -> None:
    with sshd_nodes(1, state_options=options) as (node,):
        bench = Bench(node)
        cut = bench.run(SLEEP)
        inside = Path(f"/proc/{node.pids()[0]}/root/var/lib/wlctl")
        (inside / cut.installation / "decisions" / cut.decision).write_text(
            f"claimed 1 1 boot 1 {cut.instance} 1 .\n", encoding="ascii"
        )
        never = bench.request(SLEEP)
        fresh = replace(never, installation=InstallationId("inst-fresh"))
        fill(inside)

        done = [settle(bench, request) for request in (fresh, cut, never)]

        assert {one.outcome for one in done} == {SettleOutcome.CANCELLED}
        assert isinstance(judge(done[1].readings[0]), Proven)
        for path in inside.glob("fill*"):
            path.unlink()
        for request in (cut, never, fresh):
            assert bench.refused(request).code is RefusalCode.CANCELLED
        assert isinstance(bench.session.place(bench.request(SLEEP)), Launched)
        assert (inside / "reserve").exists(), "it is put by again"
        bench.clear()
        bench.session.close()


def fill(directory: Path) -> None:
    """Leave neither a block nor an inode."""
    with contextlib.suppress(OSError):
        for number in range(1000):
            (directory / f"fill{number}").touch()
    with contextlib.suppress(OSError), (directory / "fill0").open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
