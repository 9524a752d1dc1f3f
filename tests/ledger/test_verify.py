import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ledger.made import INSTALLATION, fill, opened, tamper
from wlctl.errors import InvalidFile
from wlctl.ledger import chain
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Broken, Verified, verify
from wlctl.model.event import Author, Checkpoint, Event, Json

LAST = 12


@pytest.fixture
def events(ledger: Ledger, path: Path) -> list[Event]:
    """The twelve events of a ledger that is on disk and that nobody has open."""
    fill(ledger, LAST - 1)
    with ledger.read() as tx:
        found = list(chain.events(tx))
    ledger.close()
    assert len(found) == LAST
    return found


def verdict(path: Path, against: Checkpoint | None = None) -> Verified | Broken:
    with opened(path) as ledger:
        return verify(ledger, against=against)


def broken_at(path: Path, against: Checkpoint | None = None) -> int:
    found = verdict(path, against)
    assert isinstance(found, Broken), found
    return found.seq


def checkpoint_of(event: Event) -> Checkpoint:
    return Checkpoint(INSTALLATION, 0, event.seq, event.hash)


def test_a_chain_that_nobody_touched_holds(events: list[Event], path: Path) -> None:
    assert verdict(path) == Verified(checkpoint_of(events[-1]))


def flipped(text: str, position: int) -> str:
    """Change the lowest bit of one byte, and keep it a text."""
    return text[:position] + chr(ord(text[position]) ^ 1) + text[position + 1 :]


@pytest.mark.parametrize("seq", [1, 7, LAST], ids=["first", "middle", "last"])
@pytest.mark.parametrize("column", ["at", "kind", "actor", "payload", "prev_hash", "hash"])
@pytest.mark.parametrize("position", [0, -1], ids=["first byte", "last byte"])
def test_a_flipped_byte_is_found_in_its_event(
    events: list[Event], path: Path, column: str, seq: int, position: int
) -> None:
    event = events[seq - 1]
    stored = (
        chain.canonical(event.payload).decode() if column == "payload" else getattr(event, column)
    )
    after = flipped(stored, position % len(stored)).replace("'", "''")

    tamper(path, f"UPDATE chain SET {column} = '{after}' WHERE seq = {seq}")

    assert broken_at(path) == seq


def test_every_byte_of_every_event_counts(events: list[Event], path: Path) -> None:
    """Flip bytes in the file itself, below SQLite."""
    whole = path.read_bytes()
    chosen = random.Random(7)
    for event in events:
        text = chain.canonical(event.payload)
        start = whole.index(text)
        for offset in chosen.sample(range(len(text)), 3):
            spot = start + offset
            path.write_bytes(whole[:spot] + bytes([whole[spot] ^ 1]) + whole[spot + 1 :])

            assert broken_at(path) == event.seq


def test_a_byte_that_makes_no_text_is_found_too(events: list[Event], path: Path) -> None:
    whole = path.read_bytes()
    spot = whole.index(chain.canonical(events[4].payload)) + 20
    path.write_bytes(whole[:spot] + b"\xff" + whole[spot + 1 :])

    assert broken_at(path) == 5


REST = "at, kind, actor, payload, prev_hash, hash"
TAMPERED = [
    pytest.param(["DELETE FROM chain WHERE seq = 7"], 7, id="a deleted row"),
    pytest.param(["DELETE FROM chain WHERE seq = 1"], 1, id="the first row deleted"),
    pytest.param(["DELETE FROM chain WHERE seq IN (5, 9)"], 5, id="two rows deleted"),
    pytest.param(
        [
            "UPDATE chain SET seq = 99 WHERE seq = 5",
            "UPDATE chain SET seq = 5 WHERE seq = 8",
            "UPDATE chain SET seq = 8 WHERE seq = 99",
        ],
        5,
        id="two rows swapped",
    ),
    pytest.param(
        [
            "UPDATE chain SET seq = 99 WHERE seq = 5",
            "UPDATE chain SET seq = 5 WHERE seq = 6",
            "UPDATE chain SET seq = 6 WHERE seq = 99",
        ],
        5,
        id="two neighbours swapped",
    ),
    pytest.param(
        ["DELETE FROM chain WHERE seq = 7", "UPDATE chain SET seq = seq - 1 WHERE seq > 7"],
        7,
        id="a row deleted and the gap closed",
    ),
    pytest.param(
        [f"INSERT INTO chain SELECT 13, {REST} FROM chain WHERE seq = 12"],
        13,
        id="the last row again",
    ),
    pytest.param(
        [f"INSERT INTO chain SELECT 0, {REST} FROM chain WHERE seq = 1"],
        1,
        id="a row before the first",
    ),
    pytest.param(
        ["UPDATE chain SET payload = X'ff' WHERE seq = 3"], 3, id="a payload that is no text"
    ),
    pytest.param(["UPDATE chain SET actor = X'ff' WHERE seq = 3"], 3, id="an actor likewise"),
    pytest.param(["UPDATE chain SET kind = X'ff' WHERE seq = 3"], 3, id="a kind likewise"),
    pytest.param(["UPDATE chain SET at = '' WHERE seq = 3"], 3, id="no time"),
    pytest.param(["UPDATE chain SET hash = upper(hash) WHERE seq = 3"], 3, id="a hash in capitals"),
]


@pytest.mark.parametrize(("statements", "seq"), TAMPERED)
def test_the_first_bad_event_is_named(
    events: list[Event], path: Path, statements: list[str], seq: int
) -> None:
    tamper(path, *statements)

    assert broken_at(path) == seq


def rewritten(path: Path, seq: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Change an event and forge every hash from there on, as the owner of the file can."""
    with opened(path) as ledger, ledger.read() as tx:
        events = list(chain.events(tx))
    before = events[seq - 2].hash
    statements = []
    for event in events[seq - 1 :]:
        payload = dict(event.payload)
        if event.seq == seq:
            change(payload)
        text = chain.canonical(payload)
        content = chain.hashed_bytes(
            actor=chain.canonical(event.actor),
            at=event.at.encode(),
            kind=event.kind.encode(),
            payload=text,
            prev_hash=before.encode(),
            seq=event.seq,
        )
        digest = chain.sha256(content)
        statements.append(
            f"UPDATE chain SET payload = '{text.decode()}', prev_hash = '{before}', "
            f"hash = '{digest}' WHERE seq = {event.seq}"
        )
        before = digest
    tamper(path, *statements)


@pytest.mark.parametrize(("gone", "following"), [("7", 8), ("7, 8", 9)])
def test_a_missing_event_is_said_to_be_missing(
    events: list[Event], path: Path, gone: str, following: int
) -> None:
    tamper(path, f"DELETE FROM chain WHERE seq IN ({gone})")

    assert verdict(path) == Broken(7, f"it is missing: the next one is {following}")


def test_an_event_with_a_forged_hash_of_its_own_is_not_followed_by_the_next(
    events: list[Event], path: Path
) -> None:
    forged = events[3]
    content = chain.hashed_bytes(
        actor=chain.canonical("mallory"),
        at=forged.at.encode(),
        kind=forged.kind.encode(),
        payload=chain.canonical(forged.payload),
        prev_hash=forged.prev_hash.encode(),
        seq=forged.seq,
    )
    digest = chain.sha256(content)
    tamper(path, f"UPDATE chain SET actor = 'mallory', hash = '{digest}' WHERE seq = 4")

    assert verdict(path) == Broken(5, "it does not name the hash of the event before it")


def test_no_column_can_say_what_another_one_said(ledger: Ledger, path: Path) -> None:
    """The bytes of an event can be cut into columns in one way only."""
    payload: dict[str, Json] = {"a": "x", "kind": "slot.free", "payload": {"b": 1}}
    with ledger.write(0, Author("me")) as tx:
        chain.append(tx, "slot.tick", payload)
    cut = '","kind":"slot.tick","payload":{"a":"x'
    tamper(
        path,
        f"UPDATE chain SET at = at || '{cut}', kind = 'slot.free', payload = '{{\"b\":1}}}}' "
        "WHERE seq = 2",
    )

    assert broken_at(path) == 2


class TestAgainstACheckpointKeptElsewhere:
    def test_the_untouched_chain_holds(self, events: list[Event], path: Path) -> None:
        for event in (events[0], events[6], events[-1]):
            assert isinstance(verdict(path, checkpoint_of(event)), Verified)

    def test_a_tail_that_was_cut_is_missed_from_its_first_event(
        self, events: list[Event], path: Path
    ) -> None:
        tamper(path, "DELETE FROM chain WHERE seq > 9")

        assert isinstance(verdict(path), Verified), "without a checkpoint nobody can know"
        assert broken_at(path, checkpoint_of(events[-1])) == 10

    def test_a_cut_behind_the_checkpoint_is_not_seen(self, events: list[Event], path: Path) -> None:
        tamper(path, "DELETE FROM chain WHERE seq > 9")

        assert isinstance(verdict(path, checkpoint_of(events[8])), Verified)

    def test_a_chain_that_was_rewritten_is_not_the_one_it_was(
        self, events: list[Event], path: Path
    ) -> None:
        def lie(payload: dict[str, Any]) -> None:
            payload["node"] = "oak"

        rewritten(path, 4, lie)

        assert isinstance(verdict(path), Verified), "without a checkpoint nobody can know"
        assert broken_at(path, checkpoint_of(events[9])) == 10
        assert broken_at(path, checkpoint_of(events[3])) == 4
        assert isinstance(verdict(path, checkpoint_of(events[2])), Verified)

    def test_one_of_another_installation_says_nothing(
        self, events: list[Event], path: Path
    ) -> None:
        with pytest.raises(InvalidFile, match="of installation another"):
            verdict(path, Checkpoint("another", 0, 1, events[0].hash))


def test_a_chain_that_lost_everything_misses_its_first_event(
    events: list[Event], path: Path
) -> None:
    tamper(path, "DELETE FROM chain")

    assert broken_at(path) == 1
    assert broken_at(path, checkpoint_of(events[-1])) == 1


def test_pages_that_are_damaged_break_the_chain_where_it_cannot_be_read(
    ledger: Ledger, path: Path
) -> None:
    fill(ledger, 100)
    ledger.close()
    whole = bytearray(path.read_bytes())
    spot = whole.index(b'"n":50,')
    page = spot - spot % 4096
    whole[page : page + 4096] = bytes(4096)
    path.write_bytes(whole)

    found = verdict(path)

    assert isinstance(found, Broken)
    assert 1 < found.seq <= 52
    assert "damaged" in found.why


def test_progress_is_told_with_the_events_that_were_reached(ledger: Ledger) -> None:
    fill(ledger, 30)
    told: list[int] = []

    verify(ledger, progress=told.append)

    assert told[-1] == 31
    assert told == sorted(told)


def test_others_may_write_meanwhile(ledger: Ledger) -> None:
    fill(ledger, 30)

    def write_more(_seq: int) -> None:
        fill(ledger, 1)

    assert isinstance(verify(ledger, progress=write_more), Verified)


@pytest.mark.parametrize("text", ["", "\x00", "a\x00b", "\ud800", '"\\', "\u2028", "ü\U0001f600"])
def test_whatever_was_recorded_verifies(ledger: Ledger, text: str) -> None:
    with ledger.write(0, Author(text, text, text)) as tx:
        chain.append(tx, "slot.tick", {text: text})

    assert isinstance(verify(ledger), Verified)
