import os
import signal
import stat
import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError

from tests.ledger.made import AUTHOR, NOW_MS, a_ledger, fill, opened, past_the_program
from wlctl.errors import ExitCode, LedgerBusy, LedgerPermissions
from wlctl.ledger import chain
from wlctl.ledger.schema import installation, life_events
from wlctl.ledger.store import Ledger


def seqs(ledger: Ledger) -> list[int]:
    with ledger.read() as tx:
        return [event.seq for event in chain.events(tx)]


def test_a_write_commits_at_its_end(ledger: Ledger, path: Path) -> None:
    with ledger.write(NOW_MS, AUTHOR) as tx:
        chain.append(tx, "node.add", {"node": "elm"})

    with opened(path) as another:
        assert seqs(another) == [1, 2]


def test_a_write_that_fails_leaves_no_trace(ledger: Ledger) -> None:
    with pytest.raises(ZeroDivisionError), ledger.write(NOW_MS, AUTHOR) as tx:
        chain.append(tx, "node.add", {"node": "elm"})
        _ = 1 / 0

    assert seqs(ledger) == [1]


def test_a_write_that_is_interrupted_leaves_no_trace_and_no_lock(ledger: Ledger) -> None:
    with pytest.raises(KeyboardInterrupt), ledger.write(NOW_MS, AUTHOR) as tx:
        chain.append(tx, "node.add", {"node": "elm"})
        raise KeyboardInterrupt

    fill(ledger, 1)
    assert seqs(ledger) == [1, 2]


def test_a_view_shows_one_state_to_its_end(ledger: Ledger) -> None:
    with ledger.read() as tx:
        before = chain.head(tx)
        fill(ledger, 1)

        assert chain.head(tx) == before
        assert [event.seq for event in chain.events(tx)] == [1]


def test_a_view_can_write_nothing(ledger: Ledger) -> None:
    row = insert(installation).values(id="x", epoch=0, created_at_ms=0)

    with pytest.raises(LedgerPermissions), ledger.read() as tx:
        tx.conn.execute(row)
    with ledger.write(NOW_MS, AUTHOR) as tx:
        tx.conn.execute(row)


def test_what_a_write_has_read_stays_true_until_it_commits(ledger: Ledger, path: Path) -> None:
    with opened(path) as another:
        started = threading.Event()

        def second() -> None:
            started.set()
            fill(another, 1)

        waiting = threading.Thread(target=second)
        with ledger.write(NOW_MS, AUTHOR) as tx:
            before = chain.head(tx)
            waiting.start()
            started.wait()
            time.sleep(0.05)  # time enough for the other to write, if it could
            assert chain.head(tx) == before
            chain.append(tx, "node.add", {"node": "elm"})
        waiting.join()

    assert seqs(ledger) == [1, 2, 3]


def test_a_write_inside_a_write_is_a_bug_that_shows_at_once(ledger: Ledger) -> None:
    with (
        ledger.write(NOW_MS, AUTHOR),
        pytest.raises(AssertionError, match="waits for itself"),
        ledger.write(NOW_MS, AUTHOR),
    ):
        pass

    assert fill(ledger, 1)


def test_threads_of_one_process_write_in_turn(ledger: Ledger) -> None:
    threads = [threading.Thread(target=fill, args=(ledger, 20)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seqs(ledger) == list(range(1, 82))


def test_a_writer_that_is_never_let_in_is_told_so_after_the_timeout(
    ledger: Ledger, path: Path
) -> None:
    with opened(path, busy_timeout_s=0.1) as another, ledger.write(NOW_MS, AUTHOR):
        begun = time.monotonic()
        with pytest.raises(LedgerBusy, match=r"0\.1 s") as failure, another.write(NOW_MS, AUTHOR):
            pass

        assert 0.1 <= time.monotonic() - begun < 5
    assert failure.value.exit_code is ExitCode.BUSY


def test_a_writer_that_waits_can_be_interrupted(ledger: Ledger, path: Path) -> None:
    with opened(path, busy_timeout_s=60) as another, ledger.write(NOW_MS, AUTHOR):
        ctrl_c = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        ctrl_c.start()
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt), another.write(NOW_MS, AUTHOR):
            pass

        assert time.monotonic() - begun < 10


def test_readers_do_not_wait_for_a_writer(ledger: Ledger, path: Path) -> None:
    with opened(path, busy_timeout_s=0.1) as another, ledger.write(NOW_MS, AUTHOR) as tx:
        chain.append(tx, "node.add", {"node": "elm"})

        assert seqs(another) == [1]


def test_a_row_needs_what_it_refers_to(ledger: Ledger) -> None:
    row = {"instance_id": "i", "to_state": "x", "at_ms": 0, "reason": "", "seq": 1}

    with pytest.raises(IntegrityError), ledger.write(NOW_MS, AUTHOR) as tx:
        tx.conn.execute(insert(life_events).values(**row))


@pytest.mark.parametrize(
    ("pragma", "wanted"),
    [
        pytest.param("journal_mode", "wal", id="readers and a writer at the same time"),
        pytest.param("synchronous", 2, id="a commit survives a power cut"),
        pytest.param("foreign_keys", 1, id="references hold"),
    ],
)
def test_every_connection_is_set_up(ledger: Ledger, pragma: str, wanted: object) -> None:
    with ledger.write(NOW_MS, AUTHOR) as tx, ledger.read() as other:
        for conn in (tx.conn, other.conn):
            assert conn.execute(text(f"PRAGMA {pragma}")).scalar_one() == wanted


def test_all_files_of_a_ledger_are_their_owners_alone_whatever_the_umask(path: Path) -> None:
    before = os.umask(0)
    try:
        with a_ledger(path) as ledger, ledger.read() as tx:
            tx.conn.execute(select(installation)).all()
            assert ledger.locks.try_lock("anything")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)

    names = ("ledger.db", "ledger.db-wal", "ledger.db-shm", "ledger.db-lock")
    assert modes == dict.fromkeys(names, 0o600)


def test_a_closed_ledger_is_one_file_and_its_lock(ledger: Ledger, path: Path) -> None:
    fill(ledger, 3)
    ledger.close()

    assert {file.name for file in path.parent.iterdir()} <= {"ledger.db", "ledger.db-lock"}
    with past_the_program(path) as conn:
        assert conn.execute("SELECT count(*) FROM chain").fetchone() == (4,)


def test_any_number_of_threads_reads_at_the_same_time(ledger: Ledger) -> None:
    inside = threading.Barrier(40, timeout=20)
    heads = []

    def look() -> None:
        with ledger.read() as tx:
            heads.append(chain.head(tx)[0])
            inside.wait()

    threads = [threading.Thread(target=look) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert heads == [1] * 40


def test_readers_wait_for_a_recovery_and_writers_do_their_own_waiting(ledger: Ledger) -> None:
    with ledger.write(NOW_MS, AUTHOR) as tx, ledger.read() as other:
        assert tx.conn.execute(text("PRAGMA busy_timeout")).scalar_one() == 0
        assert other.conn.execute(text("PRAGMA busy_timeout")).scalar_one() == 30_000
