"""Many processes on one ledger, and any of them killed at any moment."""

import multiprocessing
import os
import random
import signal
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from tests.ledger.made import AUTHOR, NOW_MS, opened
from wlctl.errors import LedgerBusy, LedgerExists
from wlctl.ledger import chain, operations
from wlctl.ledger.backup import backup
from wlctl.ledger.check import check
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Verified, verify

PROCESSES = 8
TRANSACTIONS = 200
KILLS = 50


@pytest.fixture(scope="module")
def context() -> ForkServerContext:
    """Processes that start fast: they are forked from one that has imported everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def write_in_turn(path: Path, writer: int, ready: Barrier) -> None:
    with opened(path) as ledger:
        ready.wait()
        for number in range(TRANSACTIONS):
            with ledger.write(NOW_MS, AUTHOR) as tx:
                chain.append(tx, "slot.tick", {"writer": writer, "number": number})


def test_eight_writers_get_through_without_an_error_a_gap_or_a_fork(
    ledger: Ledger, path: Path, context: ForkServerContext
) -> None:
    ready = context.Barrier(PROCESSES)
    writers = [
        context.Process(target=write_in_turn, args=(path, writer, ready), daemon=True)
        for writer in range(PROCESSES)
    ]
    for process in writers:
        process.start()
    for process in writers:
        process.join(120)

    assert [process.exitcode for process in writers] == [0] * PROCESSES
    with ledger.read() as tx:
        events = list(chain.events(tx, after_seq=1))
    assert [event.seq for event in events] == list(range(2, 2 + PROCESSES * TRANSACTIONS))
    for writer in range(PROCESSES):
        own = [event.payload["number"] for event in events if event.payload["writer"] == writer]
        assert own == list(range(TRANSACTIONS))
    assert isinstance(verify(ledger), Verified)


def work_until_killed(path: Path, seed: int, answered: Connection) -> None:
    """Do everything that commands do with a ledger; tell each event only when it is committed."""
    chosen = random.Random(seed)
    while True:
        with opened(path) as ledger:
            for _ in range(chosen.randrange(1, 8)):
                task = chosen.choice([append_some, operate, look, copy])
                for told in task(ledger, chosen):
                    answered.send(told)


def append_some(ledger: Ledger, chosen: random.Random) -> list[tuple[int, str]]:
    with ledger.write(NOW_MS, AUTHOR) as tx:
        events = [
            chain.append(tx, "slot.tick", {"much": "x" * chosen.randrange(3000)})
            for _ in range(chosen.randrange(1, 30))
        ]
    return [(event.seq, event.hash) for event in events]


def operate(ledger: Ledger, chosen: random.Random) -> list[tuple[int, str]]:
    scope = f"i{chosen.randrange(3)}"
    token = f"{os.getpid()}-{chosen.random()}"
    with operations.turn(ledger, scope) as mine:
        with ledger.write(NOW_MS, AUTHOR) as tx:
            left = operations.take_over(tx, mine, token=token)
        with ledger.write(NOW_MS, AUTHOR) as tx:
            if left is not None:
                operations.close(tx, left, "settled")
            operation = operations.begin(tx, mine, "stop", token=token)
        with ledger.write(NOW_MS, AUTHOR) as tx:
            event = chain.append(tx, "workload.stop", {"instance": scope})
            operations.close(tx, operation, "done")
    return [(event.seq, event.hash)]


def look(ledger: Ledger, _chosen: random.Random) -> list[tuple[int, str]]:
    with ledger.read() as tx:
        assert len(list(chain.events(tx))) == chain.head(tx)[0]
    return []


def copy(ledger: Ledger, chosen: random.Random) -> list[tuple[int, str]]:
    target = Path(f"{ledger.backend.where}.copy{chosen.randrange(3)}")
    with suppress(LedgerBusy):  # another one is making the same copy
        target.unlink(missing_ok=True)
        with suppress(LedgerExists):
            backup(ledger, target)
    return []


class Worker:
    """One process that works until it is killed."""

    def __init__(self, context: ForkServerContext, path: Path, seed: int) -> None:
        self._answers, theirs = context.Pipe(duplex=False)
        self.process: ForkServerProcess = context.Process(
            target=work_until_killed, args=(path, seed, theirs), daemon=True
        )
        self.process.start()
        theirs.close()

    def kill(self) -> list[tuple[int, str]]:
        """End it as `kill -9` does; return what it was answered before."""
        self.process.kill()
        self.process.join()
        answered = []
        try:
            while True:
                answered.append(self._answers.recv())
        except EOFError:
            self._answers.close()
        return answered


def test_killed_writers_leave_a_whole_ledger_and_lose_nothing_that_was_answered(
    ledger: Ledger, path: Path, context: ForkServerContext
) -> None:
    chosen = random.Random(random.random())  # of the seed that pytest-randomly prints
    workers = [Worker(context, path, chosen.randrange(2**32)) for _ in range(3)]
    ended = []
    answered: list[tuple[int, str]] = []
    try:
        for kill in range(KILLS):
            time.sleep(chosen.uniform(0.005, 0.08))
            ended.append(workers.pop(chosen.randrange(3)))
            answered += ended[-1].kill()
            workers.append(Worker(context, path, chosen.randrange(2**32)))
            if kill % 10 == 0:
                assert isinstance(verify(ledger), Verified)
    finally:
        for worker in workers:
            answered += worker.kill()

    codes = {worker.process.exitcode for worker in (*ended, *workers)}
    assert codes == {-signal.SIGKILL}, "one failed before it was killed"
    assert isinstance(verify(ledger), Verified)
    health = check(ledger)
    assert health.good, health
    with ledger.read() as tx:
        kept = {event.seq: event.hash for event in chain.events(tx)}
        left = operations.holders(tx)
    assert len(answered) > KILLS
    assert [told for told in answered if kept.get(told[0]) != told[1]] == []
    for holder in left:
        scope = holder.operation.scope
        with (
            operations.turn(ledger, scope, timeout_s=1) as mine,
            ledger.write(NOW_MS, AUTHOR) as tx,
        ):
            assert operations.take_over(tx, mine, token="mine")
