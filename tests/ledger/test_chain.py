import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import rfc8785
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.ledger.made import AUTHOR, NOW_MS, fill
from wlctl.ledger import chain
from wlctl.ledger.store import Ledger
from wlctl.model.event import Author, Event, Json
from wlctl.model.instance import State

HOUR_MS = 3_600_000

valid_text = st.text(st.characters(exclude_categories=["Cs"]))
any_text = st.text(st.characters())  # half surrogates too, as os.fsdecode makes them
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-chain.SAFE_INT, chain.SAFE_INT)
    | st.floats(-chain.SAFE_INT, chain.SAFE_INT)  # a larger one would read like an integer
)


def json_of(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars | text,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
        max_leaves=8,
    )


def payloads_of(text: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(text, json_of(text), max_size=4)


def append(ledger: Ledger, payload: Mapping[str, Json], author: Author = AUTHOR) -> Event:
    with ledger.write(NOW_MS, author) as tx:
        return chain.append(tx, "node.add", payload)


def stored(ledger: Ledger) -> list[Event]:
    with ledger.read() as tx:
        return list(chain.events(tx))


def test_the_first_event_follows_zeros_and_each_other_the_one_before_it(ledger: Ledger) -> None:
    fill(ledger, 3)

    events = stored(ledger)
    assert [event.seq for event in events] == [1, 2, 3, 4]
    assert [event.prev_hash for event in events] == ["0" * 64, *(e.hash for e in events[:-1])]


def test_what_is_appended_is_what_is_read(ledger: Ledger) -> None:
    added = fill(ledger, 3)

    assert stored(ledger)[1:] == added


def test_an_event_says_who_when_and_with_which_words(ledger: Ledger) -> None:
    event = append(ledger, {"node": "elm"})

    assert event.actor == "root@elm"
    assert event.at == "2023-11-14T22:13:20.000Z"
    assert event.payload == {
        "node": "elm",
        "by": {"command": "wlctl stop web", "message": "for a test"},
    }


def test_words_that_were_not_said_are_not_recorded(ledger: Ledger) -> None:
    assert append(ledger, {}, Author("root@elm", message="why")).payload == {
        "by": {"message": "why"}
    }
    assert append(ledger, {}, Author("root@elm")).payload == {}


def test_the_head_is_the_newest_event(ledger: Ledger) -> None:
    newest = fill(ledger, 2)[-1]

    with ledger.read() as tx:
        assert chain.head(tx) == (newest.seq, newest.hash)


def test_an_empty_chain_has_a_head_too(ledger: Ledger) -> None:
    with ledger.write(NOW_MS, AUTHOR) as tx:
        tx.conn.exec_driver_sql("DELETE FROM chain")
        assert chain.head(tx) == (0, "0" * 64)


@given(actor=valid_text, payload=payloads_of(valid_text), seq=st.integers(1, chain.SAFE_INT))
@example(actor="", payload={"\U0001f600": 1, "\ufb33": 2, "\r": 1e21, "a": 1e-7}, seq=1)
@settings(max_examples=200)
def test_the_bytes_put_together_are_the_canonical_json_of_the_whole(
    actor: str, payload: dict[str, Any], seq: int
) -> None:
    at, kind, before = "2023-11-14T22:13:20.000Z", "node.add", "0" * 64
    together = chain.hashed_bytes(
        actor=chain.canonical(actor),
        at=at.encode(),
        kind=kind.encode(),
        payload=chain.canonical(payload),
        prev_hash=before.encode(),
        seq=seq,
    )

    whole: dict[str, Any] = {
        "seq": seq,
        "at": at,
        "kind": kind,
        "actor": actor,
        "payload": payload,
        "prev_hash": before,
    }
    assert together == rfc8785.dumps(whole)


@given(actor=any_text, command=any_text, payload=payloads_of(any_text))
@example(actor="\ud800", command="", payload={"\ud800": "\udfff"})
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_no_text_from_outside_makes_an_event_unencodable(
    ledger: Ledger, actor: str, command: str, payload: dict[str, Any]
) -> None:
    event = append(ledger, payload, Author(actor, command))

    with ledger.read() as tx:
        kept = next(chain.events(tx, after_seq=event.seq - 1))
    assert kept == event
    content: dict[str, Any] = {
        "seq": kept.seq,
        "at": kept.at,
        "kind": kept.kind,
        "actor": kept.actor,
        "payload": kept.payload,
        "prev_hash": kept.prev_hash,
    }
    assert kept.hash == hashlib.sha256(rfc8785.dumps(content)).hexdigest()


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param("half \ud83d a pair", "half \ufffd a pair", id="half a surrogate pair"),
        pytest.param("\udcff", "\ufffd", id="a byte that was no UTF-8"),
        pytest.param("\x00\x1b[31m", "\x00\x1b[31m", id="control characters are for the reader"),
        pytest.param(2**53 - 1, 2**53 - 1, id="the largest integer that JSON keeps"),
        pytest.param(2**53, "9007199254740992", id="one more is kept as text"),
        pytest.param(-(2**53), "-9007199254740992", id="and so it is below zero"),
        pytest.param(("a", "b"), ["a", "b"], id="a tuple"),
        pytest.param(MappingProxyType({"a": 1}), {"a": 1}, id="a mapping that is no dict"),
        pytest.param(State.RUNNING, "running", id="a word of an enum"),
        pytest.param(True, True, id="a truth is no number"),
    ],
)
def test_what_json_cannot_say_is_kept_as_what_comes_closest(
    ledger: Ledger, value: Any, kept: object
) -> None:
    assert append(ledger, {"key": {"nested": value}}).payload["key"] == {"nested": kept}
    assert json.dumps(stored(ledger)[-1].payload["key"]) == json.dumps({"nested": kept})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: "one"}])
def test_what_has_no_place_in_json_at_all_is_a_bug(ledger: Ledger, value: Any) -> None:
    with pytest.raises((rfc8785.CanonicalizationError, TypeError, AttributeError)):
        append(ledger, {"key": value})

    assert len(stored(ledger)) == 1


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        pytest.param("workload.place", True, id="a verb"),
        pytest.param("workload.unrevoke", True, id="another"),
        pytest.param("workload.places", False, id="not quite a verb"),
        pytest.param("workload.", False, id="no verb"),
        pytest.param("node.attest_dead", True, id="whatever happens to a node"),
        pytest.param("node.", False, id="but not nothing"),
        pytest.param("node.Add", False, id="in small letters"),
        pytest.param("node." + "a" * 33, False, id="in a word, not a text"),
        pytest.param("ledger.init\n", False, id="and no more than that"),
        pytest.param("fleet.add", False, id="nothing else happens"),
    ],
)
def test_only_known_kinds_are_recorded(ledger: Ledger, kind: str, known: bool) -> None:
    with ledger.write(NOW_MS, AUTHOR) as tx:
        if known:
            assert chain.append(tx, kind, {}).kind == kind
        else:
            with pytest.raises(AssertionError, match="is not a kind of event"):
                chain.append(tx, kind, {})


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param({}, [1, 2, 3, 4, 5, 6, 7], id="everything"),
        pytest.param({"kind": "workload.start"}, [2, 5], id="one kind"),
        pytest.param({"kind": "workload.*"}, [2, 3, 5, 6], id="a family of kinds"),
        pytest.param({"kind": "workload"}, [], id="a family is asked for with its star"),
        pytest.param({"kind": "%"}, [], id="nothing but the star is special"),
        pytest.param({"instance": "i0"}, [2, 4, 6], id="an instance"),
        pytest.param({"node": "ash"}, [3, 5, 7], id="a node"),
        pytest.param({"node": "as"}, [], id="a node by its whole name"),
        pytest.param({"node": "ash", "kind": "node.drain"}, [7], id="all that is asked for"),
        pytest.param({"after_seq": 5}, [6, 7], id="after a number"),
        pytest.param({"since_ms": NOW_MS + 4000}, [6, 7], id="since that very moment"),
        pytest.param({"since_ms": NOW_MS + 4001}, [7], id="since a little later"),
        pytest.param({"until_ms": NOW_MS + 1000}, [1, 2], id="until before that very moment"),
        pytest.param({"until_ms": NOW_MS + 1001}, [1, 2, 3], id="until a little later"),
    ],
)
def test_events_are_found_by(ledger: Ledger, wanted: dict[str, Any], found: list[int]) -> None:
    fill(ledger, 6)

    with ledger.read() as tx:
        assert [event.seq for event in chain.events(tx, **wanted)] == found


def test_an_instance_is_found_by_its_own_name_only_where_it_is_the_subject(ledger: Ledger) -> None:
    append(ledger, {"instance": "i1"})
    append(ledger, {"replaces": {"instance": "i1"}})
    append(ledger, {"reason": '"instance":"i1"'})

    with ledger.read() as tx:
        assert [event.seq for event in chain.events(tx, instance="i1")] == [2]


@pytest.mark.parametrize("name", ["a_b", "100%", 'a"b', "a\\b", "ü", "\udcff"])
def test_a_name_is_found_however_it_is_spelled(ledger: Ledger, name: str) -> None:
    append(ledger, {"node": name})
    append(ledger, {"node": "axb"})

    with ledger.read() as tx:
        assert [event.seq for event in chain.events(tx, node=name)] == [2]


def test_a_clock_that_was_set_back_changes_no_order(ledger: Ledger) -> None:
    for now_ms in (NOW_MS + HOUR_MS, NOW_MS):
        with ledger.write(now_ms, AUTHOR) as tx:
            chain.append(tx, "node.add", {})

    first, second = stored(ledger)[1:]
    assert (second.seq, second.prev_hash) == (first.seq + 1, first.hash)
    assert second.at < first.at


def test_an_event_cannot_be_appended_twice(ledger: Ledger, path: Path) -> None:
    with ledger.write(NOW_MS, AUTHOR) as tx:
        first = chain.append(tx, "node.add", {"node": "elm"})
        second = chain.append(tx, "node.add", {"node": "elm"})

    assert (first.seq, second.seq) == (2, 3)
    assert first.hash != second.hash
