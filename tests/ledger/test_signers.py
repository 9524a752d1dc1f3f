"""Signers: one key, one name, one event."""

from dataclasses import replace

import pytest

from tests.ledger.made import AUTHOR, NOW_MS
from wlctl.errors import SignerConflict, UnknownName
from wlctl.ledger import chain, signers
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Verified, verify
from wlctl.model.package import Signer

ANN = Signer("ann", "ssh-ed25519 AAAA", NOW_MS)


def add(ledger: Ledger, name: str = "ann", key: str = "AAAA", *, now_ms: int = NOW_MS) -> bool:
    with ledger.write(now_ms, AUTHOR) as tx:
        return signers.add(tx, name, f"ssh-ed25519 {key}")


def test_an_added_signer_is_accepted(ledger: Ledger) -> None:
    assert add(ledger)

    with ledger.read() as tx:
        assert signers.ls(tx) == [ANN]
        assert signers.accepted(tx) == {ANN.fingerprint: ANN}


def test_adding_a_signer_is_an_event(ledger: Ledger) -> None:
    add(ledger)

    with ledger.read() as tx:
        [event] = chain.events(tx, kind="signer.add")
    payload = {key: value for key, value in event.payload.items() if key != "by"}
    assert payload == {
        "signer": "ann",
        "public_key": "ssh-ed25519 AAAA",
        "fingerprint": ANN.fingerprint,
    }


def test_adding_a_signer_again_is_nothing(ledger: Ledger) -> None:
    add(ledger)

    assert not add(ledger, now_ms=NOW_MS + 1)

    with ledger.read() as tx:
        assert signers.ls(tx) == [ANN]
        assert len(list(chain.events(tx, kind="signer.add"))) == 1


@pytest.mark.parametrize(
    ("name", "key", "said"),
    [
        pytest.param("ann", "BBBB", "signer ann has another key", id="one name for two keys"),
        pytest.param("bob", "AAAA", "is signer ann already", id="one key under two names"),
    ],
)
def test_a_name_and_a_key_belong_together(name: str, key: str, said: str, ledger: Ledger) -> None:
    add(ledger)

    with pytest.raises(SignerConflict, match=said):
        add(ledger, name, key)

    with ledger.read() as tx:
        assert signers.ls(tx) == [ANN]


def test_signers_are_listed_by_name(ledger: Ledger) -> None:
    for name in ("cat", "ann", "bob"):
        add(ledger, name, f"{name.upper()}A")

    with ledger.read() as tx:
        assert [signer.name for signer in signers.ls(tx)] == ["ann", "bob", "cat"]


def test_a_signer_is_accepted_within_its_time_by_the_second() -> None:
    signer = replace(ANN, valid_after_ms=5000, valid_before_ms=7000)

    valid = [now_ms for now_ms in range(4000, 9001, 250) if signer.is_valid_at(now_ms)]
    assert valid == list(range(5000, 8000, 250))
    assert replace(ANN, valid_after_ms=5000).is_valid_at(10**15)
    assert replace(ANN, valid_before_ms=5000).is_valid_at(0)


def test_the_time_of_a_signer_is_kept_and_told(ledger: Ledger) -> None:
    for_a_while = replace(ANN, valid_after_ms=1000, valid_before_ms=2000)
    times = {"valid_after_ms": 1000, "valid_before_ms": 2000}
    with ledger.write(NOW_MS, AUTHOR) as tx:
        signers.add(tx, "ann", ANN.public_key, **times)
        assert not signers.add(tx, "ann", ANN.public_key, **times)
        assert signers.get(tx, "ann") == for_a_while
        [event] = chain.events(tx, kind="signer.add")
        with pytest.raises(SignerConflict, match="from or until another moment"):
            signers.add(tx, "ann", ANN.public_key)

    assert {key: event.payload[key] for key in times} == times


def test_a_removed_signer_is_gone_and_the_chain_keeps_that_it_was(ledger: Ledger) -> None:
    add(ledger)
    with ledger.write(NOW_MS + 1, AUTHOR) as tx:
        assert signers.rm(tx, "ann") == ANN

    with ledger.read() as tx:
        assert signers.ls(tx) == []
        [event] = chain.events(tx, kind="signer.rm")
    assert (event.payload["signer"], event.payload["fingerprint"]) == ("ann", ANN.fingerprint)
    assert isinstance(verify(ledger), Verified)
    with ledger.write(NOW_MS + 2, AUTHOR) as tx, pytest.raises(UnknownName, match="no signer ann"):
        signers.rm(tx, "ann")


def test_a_removed_signer_can_come_back_with_another_key(ledger: Ledger) -> None:
    add(ledger)
    with ledger.write(NOW_MS + 1, AUTHOR) as tx:
        signers.rm(tx, "ann")
    add(ledger, key="BBBB")

    with ledger.read() as tx:
        assert [signer.public_key for signer in signers.ls(tx)] == ["ssh-ed25519 BBBB"]
    assert isinstance(verify(ledger), Verified)
