"""The fence: what comes late, twice or after something newer does nothing, on a real node."""

import fcntl
import shutil
import subprocess
import threading
from dataclasses import replace

import pytest

from tests.host.bench import Bench, running, script, wait_until
from wlctl.errors import Indeterminate
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import Launched, Placed, RefusalCode, Refused, Stopped, Unloaded
from wlctl.model.generation import Proven

SOME = [("dash", "root"), ("bash", "sudo"), ("busybox", "plain")]
ONE = [("dash", "root")]

SLEEP = script("exec sleep 1000")

KEPT = {"closed", "ended", "err", "exit", "how", "out", "proof", "record"}
"""What stays of a run that was proven gone."""


def test_the_same_place_again_answers_what_it_did(bench: Bench) -> None:
    request = bench.request(SLEEP)
    first = bench.place(request)

    again = bench.place(request)

    assert again == replace(first, already=True)


@pytest.mark.kinds(SOME)
def test_the_same_staging_again_answers_what_it_did(bench: Bench) -> None:
    request = bench.request(SLEEP, start=False)

    assert bench.session.place(request) == Placed(already=False)
    assert bench.session.place(request) == Placed(already=True)


@pytest.mark.kinds(SOME)
def test_the_same_start_again_answers_what_it_did(bench: Bench) -> None:
    request = bench.request(SLEEP, start=False)
    bench.session.place(request)
    first = bench.start(request, 2, 1)
    assert isinstance(first, Launched)

    assert bench.start(request, 2, 1) == replace(first, already=True)


@pytest.mark.kinds(SOME)
def test_one_number_is_one_operation(bench: Bench) -> None:
    request = bench.run(SLEEP, number=5)

    refused = bench.unload(request, 5)

    assert isinstance(refused, Refused)
    assert refused.code is RefusalCode.INVALID_REQUEST


@pytest.mark.kinds(SOME)
def test_what_is_older_than_the_newest_is_superseded(bench: Bench) -> None:
    request = bench.run(SLEEP, number=3)
    bench.stop(request, 5)

    late_place = bench.session.place(request)
    late_start = bench.start(request, 4, 2)
    late_unload = bench.unload(request, 4)

    for late in (late_place, late_start, late_unload):
        assert isinstance(late, Refused), late
        assert late.code is RefusalCode.SUPERSEDED
    status = bench.status(request)
    assert status is not None
    assert (status.number, status.desired) == (5, "stopped")


def test_a_stop_of_what_the_node_never_saw_keeps_a_late_place_out(bench: Bench) -> None:
    request = bench.request(SLEEP, number=1)

    stopped = bench.stop(request, 2)

    (readings,) = stopped.readings
    assert not readings.launched
    proof = judge(readings)
    assert isinstance(proof, Proven)
    assert proof.by == "closed before it was ever launched"
    assert bench.refused(request).code is RefusalCode.SUPERSEDED
    assert running(bench.node) == []


@pytest.mark.kinds(SOME)
def test_an_unload_of_what_the_node_never_saw_keeps_a_late_place_out(bench: Bench) -> None:
    request = bench.request(SLEEP, number=1)

    unloaded = bench.unload(request, 2)

    assert isinstance(unloaded, Unloaded)
    assert unloaded.removed
    assert [r.launched for r in unloaded.readings] == [False]
    assert bench.refused(request).code is RefusalCode.SUPERSEDED
    assert bench.refused(replace(request, number=7)).code is RefusalCode.SUPERSEDED
    assert bench.left_over() == []


@pytest.mark.kinds(SOME)
def test_an_unload_asked_again_tells_what_was_read_then(bench: Bench) -> None:
    request = bench.run(SLEEP)

    first = bench.unload(request, 2)
    again = bench.unload(request, 2)
    later = bench.unload(request, 3)
    early = bench.unload(request, 1)

    assert isinstance(first, Unloaded)
    assert first == again == later
    assert [isinstance(judge(readings), Proven) for readings in first.readings] == [True]
    assert isinstance(early, Refused)
    assert early.code is RefusalCode.SUPERSEDED


@pytest.mark.kinds(SOME)
def test_a_removal_that_was_cut_is_finished_when_the_unload_is_asked_again(bench: Bench) -> None:
    request = bench.run(script("echo last words; exec sleep 1000"))
    log = bench.await_log(request, "last words")
    bench.stop(request, 2)
    home = bench.instance_dir(request)
    aside = bench.node.state / "aside"
    subprocess.run(["cp", "-a", home, aside], check=True)
    first = bench.unload(request, 3)
    aside.rename(home)

    assert bench.unload(request, 3) == first

    assert not home.exists()
    assert bench.status(request) is None
    assert bench.log(request) == log


CLOSED = script(
    'cd "$WLCTL_DATA_DIR"; mkdir -p a/b "$TMPDIR/c/d"; touch a/b/f "$TMPDIR/c/d/f"\n'
    'chmod 0 a/b a; chmod 500 "$TMPDIR/c/d" "$TMPDIR/c"; echo up; exec sleep 1000'
)


@pytest.mark.kinds(SOME)
def test_what_a_run_closed_to_its_own_login_is_removed_with_it(bench: Bench) -> None:
    request = bench.run(CLOSED)
    bench.await_log(request, "up")

    bench.stop(request, 2)
    assert {path.name for path in (bench.instance_dir(request) / "g1").iterdir()} <= KEPT
    done = bench.unload(request, 3)

    assert isinstance(done, Unloaded)
    assert done.removed
    assert not bench.instance_dir(request).exists()


@pytest.mark.kinds(SOME)
def test_data_that_its_own_login_may_not_write_is_kept_too(bench: Bench) -> None:
    work = 'cd "$WLCTL_DATA_DIR"; echo mine >f; chmod 500 .; echo up; exec sleep 1000'
    request = bench.run(script(work, keep=True))
    bench.await_log(request, "up")

    done = bench.unload(request, 3, purge=False)

    assert isinstance(done, Unloaded)
    kept = bench.node.state / request.installation / "kept" / request.instance
    assert done.kept_data.endswith(f"{request.installation}/kept/{request.instance}")
    assert (kept / "f").read_text("ascii") == "mine\n"
    shutil.rmtree(kept)


@pytest.mark.kinds(ONE)
def test_data_that_cannot_be_kept_is_not_removed(bench: Bench) -> None:
    request = bench.run(script('echo mine >"$WLCTL_DATA_DIR/f"; exec sleep 1000', keep=True))
    bench.stop(request, 2)
    below = bench.node.state / request.installation / "kept"
    below.mkdir(exist_ok=True)
    (below / request.instance).write_text("in its way", encoding="ascii")

    with pytest.raises(Indeterminate, match="cannot be kept"):
        bench.unload(request, 3, purge=False)
    assert (bench.instance_dir(request) / "data/f").read_text("ascii") == "mine\n"

    (below / request.instance).unlink()
    done = bench.unload(request, 3, purge=False)
    assert isinstance(done, Unloaded)
    assert done.removed
    assert (below / request.instance / "f").exists()
    shutil.rmtree(below / request.instance)


@pytest.mark.kinds(ONE)
def test_what_nobody_can_remove_keeps_nothing_from_being_unloaded(bench: Bench) -> None:
    request = bench.run(SLEEP)
    bench.stop(request, 2)
    busy = bench.instance_dir(request) / "g1/busy"
    busy.mkdir()
    inside = f"/var/lib/wlctl/{busy.relative_to(bench.node.state)}"
    gone = bench.node.state / request.installation / "gone"
    enter = ["nsenter", "-t", str(bench.node.insider()), "-m"]
    subprocess.run([*enter, "mount", "-t", "tmpfs", "none", inside], check=True)

    first = bench.unload(request, 3)
    again = bench.unload(request, 3)

    (aside,) = gone.iterdir()
    moved = f"/var/lib/wlctl/{aside.relative_to(bench.node.state)}/g1/busy"
    subprocess.run([*enter, "umount", moved], check=True)
    assert isinstance(first, Unloaded)
    assert first == again
    assert first.removed
    assert bench.status(request) is None
    bench.session.collect(request.installation)
    assert not gone.exists()


@pytest.mark.kinds(SOME)
def test_the_generation_that_is_named_is_closed_though_it_never_came(bench: Bench) -> None:
    request = bench.run(SLEEP)
    bench.stop(request, 2)

    first, second = bench.stop(request, 4, generation=2).readings

    assert (first.generation, first.launched) == (1, True)
    assert (second.generation, second.launched, second.closed) == (2, False, True)
    late = bench.start(request, 3, 2)
    assert isinstance(late, Refused)
    assert late.code is RefusalCode.SUPERSEDED
    never = bench.start(request, 5, 2)
    assert isinstance(never, Refused), "its number was closed for ever"
    assert isinstance(bench.start(request, 6, 3), Launched)


@pytest.mark.kinds(SOME)
def test_a_decision_is_claimed_once(bench: Bench) -> None:
    first = bench.run(SLEEP)

    second = bench.refused(replace(bench.request(SLEEP), decision=first.decision))

    assert second.code is RefusalCode.INVALID_REQUEST
    assert bench.status(first) is not None


@pytest.mark.kinds(SOME)
def test_a_cancelled_decision_is_never_placed(bench: Bench) -> None:
    request = bench.request(SLEEP)
    claims = bench.node.state / request.installation / "decisions"
    claims.mkdir(parents=True, exist_ok=True)
    (claims / request.decision).write_text("cancelled .\n", encoding="ascii")

    assert bench.refused(request).code is RefusalCode.CANCELLED
    assert bench.left_over() == []


@pytest.mark.parametrize("content", ["", "7", "7 place running", "x place running .\n"])
@pytest.mark.kinds(ONE)
def test_a_damaged_number_refuses_what_starts_and_not_what_stops(
    bench: Bench, content: str
) -> None:
    request = bench.run(SLEEP)
    (bench.instance_dir(request) / "opnum").write_text(content, encoding="ascii")

    start = bench.start(request, 9, 2)

    assert isinstance(start, Refused)
    assert start.code is RefusalCode.VERIFY
    assert isinstance(judge(bench.stop(request, 10).readings[0]), Proven)


@pytest.mark.kinds(SOME)
def test_an_interrupted_place_is_indeterminate_until_it_is_unloaded(bench: Bench) -> None:
    """What a killed script leaves: the number was accepted, and no outcome was written."""
    request = bench.run(SLEEP)
    claim = bench.node.state / request.installation / "decisions" / request.decision
    done = claim.read_text("ascii")
    claim.write_text(f"claimed 1 1 boot 1 {request.instance} 1 .\n", encoding="ascii")
    with pytest.raises(Indeterminate):
        bench.session.place(request)
    claim.unlink()
    with pytest.raises(Indeterminate):
        bench.session.place(request)
    claim.write_text(done, encoding="ascii")

    unloaded = bench.unload(request, 2)

    assert isinstance(unloaded, Unloaded)
    assert unloaded.removed


@pytest.mark.kinds(SOME)
def test_places_and_stops_that_race_leave_what_the_newest_wants(bench: Bench) -> None:
    """Ten times a place and a stop with a higher number at once: never anything left running."""
    for _ in range(10):
        request = bench.request(SLEEP, number=1)
        other = Bench(bench.node)
        answers: list[object] = []

        def stop(other: Bench = other, answers: list[object] = answers) -> None:
            answers.append(other.stop(request, 2, grace_ms=0))  # noqa: B023 - joined in the loop

        racer = threading.Thread(target=stop)
        racer.start()
        placed = bench.session.place(request)
        racer.join()
        other.session.close()

        assert isinstance(answers[0], Stopped)
        assert isinstance(placed, Launched) or (
            isinstance(placed, Refused) and placed.code is RefusalCode.SUPERSEDED
        ), placed
        assert all(isinstance(judge(r), Proven) for r in answers[0].readings), answers
        left = [text for text in bench.node.commands().values() if "sleep 1000" in text]
        assert left == []


MANY_FILES = replace(SLEEP, files={**SLEEP.files, **{f"d/{n}": b"x" for n in range(150)}})
"""A workload whose files take a while to lay out."""


@pytest.mark.parametrize("verb", ["stop", "unload"])
@pytest.mark.kinds(SOME)
def test_a_place_that_is_overtaken_while_it_lays_out_files_starts_nothing(
    bench: Bench, verb: str
) -> None:
    request = bench.request(MANY_FILES, number=1)
    answers: list[object] = []
    placing = threading.Thread(target=lambda: answers.append(bench.session.place(request)))
    placing.start()
    other = Bench(bench.node)
    wait_until((bench.instance_dir(request) / "g1/work/d").exists, "the first of its files")

    ended = other.stop(request, 2) if verb == "stop" else other.unload(request, 2)
    placing.join()
    other.session.close()

    (placed,) = answers
    assert isinstance(placed, Refused), placed
    assert placed.code is RefusalCode.SUPERSEDED
    assert isinstance(ended, Stopped | Unloaded)
    assert [isinstance(judge(r), Proven) for r in ended.readings] == [True]
    assert running(bench.node) == []
    assert bench.instance_dir(request).exists() == (verb == "stop")


@pytest.mark.kinds(ONE)
def test_the_lock_is_waited_for_and_then_said_to_be_busy(bench: Bench) -> None:
    request = bench.request(SLEEP)
    holder = threading.Event()
    with (bench.node.state / "lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)

        def let_go() -> None:
            holder.set()
            fcntl.flock(file, fcntl.LOCK_UN)

        threading.Timer(0.5, let_go).start()
        bench.place(request)
    assert holder.is_set(), "it waited for the lock"


@pytest.mark.kinds([("dash", "root"), ("bash", "root"), ("busybox", "root")])
def test_nothing_that_stays_behind_holds_the_lock(bench: Bench) -> None:
    bench.run(SLEEP)
    with (bench.node.state / "lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
