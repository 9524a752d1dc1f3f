"""Whether a lost copy may be placed anew: every block, both sides of each edge, their order."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.lifecycle.backoff import MAX_MS, backoff_ms, is_waiting
from wlctl.lifecycle.replacing import (
    Answer,
    Backoff,
    Block,
    Copy,
    Go,
    Held,
    LeaseWait,
    decide,
)

NOW_MS = 1_700_000_000_000
FREE = Copy(moves=0, max_moves=5)


def test_what_nothing_forbids_may_go() -> None:
    assert decide(FREE, NOW_MS) == Go()


BLOCKS = [
    pytest.param({"has_open_copy": True}, Block.OTHER_COPY, id="another copy is not settled"),
    pytest.param({"had_failed": True}, Block.FAILED, id="had failed before it was lost"),
    pytest.param({"may_have_run": True}, Block.JOB, id="a job that may have run"),
    pytest.param({"is_revoked": True}, Block.REVOKED, id="revoked"),
    pytest.param({"package_fault": "gone"}, Block.PACKAGE, id="its package is not whole"),
    pytest.param({"moves": 5}, Block.MOVED_ENOUGH, id="moved as often as it may be"),
    pytest.param({"max_moves": 0}, Block.MOVED_ENOUGH, id="may never be moved"),
    pytest.param({"migratable": False}, Block.NOT_MIGRATABLE, id="not migratable"),
    pytest.param({"pin": "elm"}, Block.PINNED, id="pinned"),
    pytest.param({"is_attached": True}, Block.ATTACHED, id="attached hardware"),
    pytest.param({"keeps_data": True}, Block.KEEPS_DATA, id="kept data"),
]


@pytest.mark.parametrize(("fields", "block"), BLOCKS)
def test_each_block_alone_holds_it(fields: dict[str, object], block: Block) -> None:
    answer = decide(replace(FREE, **fields), NOW_MS)  # type: ignore[arg-type] # a table of fields

    assert isinstance(answer, Held)
    assert answer.block is block
    assert answer.why


def test_every_block_has_a_row() -> None:
    assert {row.values[1] for row in BLOCKS} == set(Block)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"moves": 4}, Go(), id="one move below its limit"),
        pytest.param({"lease_left_ms": 1}, LeaseWait(NOW_MS + 1), id="a millisecond of lease left"),
        pytest.param({"lease_left_ms": 0}, Go(), id="no lease left"),
        pytest.param({"retry_at_ms": NOW_MS + 1}, Backoff(NOW_MS + 1), id="it is too early"),
        pytest.param({"retry_at_ms": NOW_MS}, Go(), id="it is time"),
        pytest.param(
            {"retry_at_ms": NOW_MS + MAX_MS}, Backoff(NOW_MS + MAX_MS), id="the longest wait"
        ),
        pytest.param(
            {"retry_at_ms": NOW_MS + MAX_MS + 1}, Go(), id="a clock that was set back waits no more"
        ),
        pytest.param(
            {"retry_at_ms": NOW_MS + 1, "lease_left_ms": 5},
            LeaseWait(NOW_MS + 5),
            id="the lease counts before the backoff",
        ),
    ],
)
def test_what_delays_it(fields: dict[str, object], expected: Answer) -> None:
    assert decide(replace(FREE, **fields), NOW_MS) == expected  # type: ignore[arg-type] # likewise


def test_what_forbids_counts_before_what_delays() -> None:
    answer = decide(replace(FREE, pin="elm", lease_left_ms=5, retry_at_ms=NOW_MS + 1), NOW_MS)

    assert isinstance(answer, Held)


@pytest.mark.parametrize(
    ("tries", "expected_s"),
    [(0, 10), (1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 300), (7, 300), (10**6, 300)],
)
def test_a_wait_doubles_from_ten_seconds_to_five_minutes(tries: int, expected_s: int) -> None:
    assert backoff_ms(tries) == expected_s * 1000


@given(until_ms=st.integers(0, 10**13), now_ms=st.integers(0, 10**13))
def test_no_wait_is_longer_than_the_longest(until_ms: int, now_ms: int) -> None:
    if is_waiting(until_ms, now_ms):
        assert 0 < until_ms - now_ms <= MAX_MS
