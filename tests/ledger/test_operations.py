import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.ledger.made import AUTHOR, NOW_MS, opened, tamper
from wlctl.errors import Busy, ExitCode, Overtaken
from wlctl.ledger import chain, operations
from wlctl.ledger.operations import Operation
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Verified, verify
from wlctl.model.event import Author

WEB = "iwebwebwebwebweb"
OTHER = Author("bob@ash", "wlctl unload web")


@pytest.fixture
def another(ledger: Ledger, path: Path) -> Iterator[Ledger]:
    """The same ledger, as another process has it open."""
    with opened(path) as another:
        yield another


def begun(ledger: Ledger, verb: str = "stop", token: str = "mine") -> Operation:
    """Begin and leave it open; the turn is over, as when its process had died."""
    with operations.turn(ledger, WEB) as mine, ledger.write(NOW_MS, AUTHOR) as tx:
        return operations.begin(tx, mine, verb, token=token)


def closed(ledger: Ledger, operation: Operation) -> None:
    with ledger.write(NOW_MS, AUTHOR) as tx:
        operations.close(tx, operation, "done")


def open_of(ledger: Ledger) -> Operation | None:
    with ledger.read() as tx:
        holder = operations.holder_of(tx, WEB)
    return None if holder is None else holder.operation


def test_an_operation_is_open_until_it_is_closed(ledger: Ledger) -> None:
    operation = begun(ledger)
    assert open_of(ledger) == operation

    closed(ledger, operation)
    assert open_of(ledger) is None


def test_numbers_grow_by_one_for_each_scope(ledger: Ledger) -> None:
    numbers = []
    for _ in range(3):
        operation = begun(ledger)
        closed(ledger, operation)
        numbers.append(operation.number)
    with operations.turn(ledger, "iother") as mine, ledger.write(NOW_MS, AUTHOR) as tx:
        numbers.append(operations.begin(tx, mine, "stop", token="t").number)

    assert numbers == [1, 2, 3, 1]


def test_numbers_go_on_where_old_operations_were_pruned(ledger: Ledger, path: Path) -> None:
    for _ in range(3):
        closed(ledger, begun(ledger))
    tamper(path, "DELETE FROM operations WHERE number < 3")

    assert begun(ledger).number == 4


def test_the_phase_is_kept_for_who_takes_over(ledger: Ledger, another: Ledger) -> None:
    operation = begun(ledger)
    with ledger.write(NOW_MS, AUTHOR) as tx:
        operations.advance(tx, operation, "sent")

    with operations.turn(another, WEB) as mine, another.write(NOW_MS + 1, OTHER) as tx:
        taken = operations.take_over(tx, mine, token="theirs")

    assert taken == Operation(WEB, 1, "stop", "theirs", "sent", NOW_MS)


def test_nothing_is_taken_over_where_nothing_is_open(ledger: Ledger) -> None:
    with operations.turn(ledger, WEB) as mine, ledger.write(NOW_MS, AUTHOR) as tx:
        assert operations.take_over(tx, mine, token="theirs") is None


def test_who_was_overtaken_can_write_nothing(ledger: Ledger, another: Ledger) -> None:
    operation = begun(ledger)
    with operations.turn(another, WEB) as mine, another.write(NOW_MS, OTHER) as tx:
        assert operations.take_over(tx, mine, token="theirs")

    for late in (
        lambda tx: operations.check(tx, operation),
        lambda tx: operations.advance(tx, operation, "sent"),
        lambda tx: operations.close(tx, operation, "done"),
    ):
        with pytest.raises(Overtaken) as failure, ledger.write(NOW_MS, AUTHOR) as tx:
            chain.append(tx, "workload.stop", {"instance": WEB})
            late(tx)
        assert failure.value.exit_code is ExitCode.BUSY
    with ledger.read() as view:
        assert not list(chain.events(view, kind="workload.*"))


def test_who_was_overtaken_can_write_nothing_after_the_end_either(
    ledger: Ledger, another: Ledger
) -> None:
    operation = begun(ledger)
    with operations.turn(another, WEB) as mine, another.write(NOW_MS, OTHER) as tx:
        taken = operations.take_over(tx, mine, token="theirs")
        assert taken
        operations.close(tx, taken, "settled")

    with pytest.raises(Overtaken), ledger.write(NOW_MS, AUTHOR) as tx:
        operations.check(tx, operation)


def test_a_closed_operation_is_not_closed_again(ledger: Ledger) -> None:
    operation = begun(ledger)
    closed(ledger, operation)

    with pytest.raises(Overtaken):
        closed(ledger, operation)


def test_a_take_over_is_recorded_with_whose_it_was(ledger: Ledger, another: Ledger) -> None:
    begun(ledger)
    with operations.turn(another, WEB) as mine, another.write(NOW_MS + 1, OTHER) as tx:
        operations.take_over(tx, mine, token="theirs")

    with ledger.read() as tx:
        (event,) = chain.events(tx, kind="ledger.takeover")
        holder = operations.holder_of(tx, WEB)
    assert event.actor == "bob@ash"
    assert event.payload["from"] == "root@elm"
    assert "mine" not in str(event.payload)
    assert "theirs" not in str(event.payload)
    assert holder is not None
    assert (holder.author, holder.pid, holder.since_ms) == (OTHER, os.getpid(), NOW_MS + 1)


def test_a_second_open_operation_of_a_scope_is_a_bug_that_the_ledger_refuses(
    ledger: Ledger,
) -> None:
    begun(ledger)

    with pytest.raises(AssertionError, match="take over what is open"):
        begun(ledger)


def test_who_waits_too_long_is_told_who_is_at_work(ledger: Ledger, another: Ledger) -> None:
    with operations.turn(ledger, WEB) as mine:
        with ledger.write(NOW_MS, AUTHOR) as tx:
            operations.begin(tx, mine, "stop", token="mine")
        start = time.monotonic()
        with pytest.raises(Busy) as failure, operations.turn(another, WEB, timeout_s=0.1):
            pass

    assert 0.1 <= time.monotonic() - start < 5
    assert failure.value.exit_code is ExitCode.BUSY
    for told in ("root@elm", "wlctl stop web", str(os.getpid()), "2023-11-14T22:13:20", WEB):
        assert told in failure.value.message


def test_who_waits_before_the_intent_is_recorded_is_told_so_too(
    ledger: Ledger, another: Ledger
) -> None:
    with (
        operations.turn(ledger, WEB),
        pytest.raises(Busy, match=f"another wlctl is at work on {WEB}"),
        operations.turn(another, WEB, timeout_s=0),
    ):
        pass


def test_a_turn_excludes_the_own_process_too(ledger: Ledger) -> None:
    with (
        operations.turn(ledger, WEB),
        pytest.raises(Busy),
        operations.turn(ledger, WEB, timeout_s=0),
    ):
        pass


def test_turns_of_different_scopes_do_not_meet(ledger: Ledger, another: Ledger) -> None:
    with operations.turn(ledger, WEB), operations.turn(another, "iother", timeout_s=0):
        pass


def test_the_next_one_waits_for_the_turn(ledger: Ledger, another: Ledger) -> None:
    order: list[str] = []
    let_go = threading.Event()

    def hold() -> None:
        with operations.turn(ledger, WEB):
            order.append("first")
            held.set()
            let_go.wait(30)
            order.append("over")

    held = threading.Event()
    first = threading.Thread(target=hold)
    first.start()
    assert held.wait(30)
    threading.Timer(0.2, let_go.set).start()
    with operations.turn(another, WEB, timeout_s=30):
        order.append("next")
    first.join()

    assert order == ["first", "over", "next"]


def test_a_turn_ends_with_an_error_too(ledger: Ledger, another: Ledger) -> None:
    with pytest.raises(ZeroDivisionError), operations.turn(ledger, WEB):
        _ = 1 / 0

    with operations.turn(another, WEB, timeout_s=0):
        pass


def test_all_who_hold_something_are_listed(ledger: Ledger) -> None:
    for scope in ("ib", "ia"):
        with operations.turn(ledger, scope) as mine, ledger.write(NOW_MS, AUTHOR) as tx:
            operations.begin(tx, mine, "stop", token="t")

    with ledger.read() as tx:
        assert [holder.operation.scope for holder in operations.holders(tx)] == ["ia", "ib"]


def hold_until_killed(path: Path, told: Connection) -> None:
    """Be a process in the middle of an operation."""
    with opened(path) as ledger, operations.turn(ledger, WEB) as mine:
        with ledger.write(NOW_MS, AUTHOR) as tx:
            operations.begin(tx, mine, "stop", token="killed")
        told.send("begun")
        signal.pause()


@pytest.mark.parametrize("stopped", [False, True], ids=["running", "paused"])
def test_a_process_that_is_killed_loses_its_turn_and_one_that_lives_does_not(
    ledger: Ledger, path: Path, stopped: bool
) -> None:
    mine, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=hold_until_killed, args=(path, theirs))
    process.start()
    assert process.pid is not None
    try:
        assert mine.poll(30)
        mine.recv()
        if stopped:
            os.kill(process.pid, signal.SIGSTOP)
        with pytest.raises(Busy, match=str(process.pid)), operations.turn(ledger, WEB, timeout_s=0):
            pass
    finally:
        process.kill()
        process.join()

    with operations.turn(ledger, WEB, timeout_s=5) as turn, ledger.write(NOW_MS, OTHER) as tx:
        taken = operations.take_over(tx, turn, token="mine")
    assert taken is not None
    closed(ledger, taken)
    assert begun(ledger).number == 2
    assert isinstance(verify(ledger), Verified)
