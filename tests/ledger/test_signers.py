"""Signers: one key, one name, one event."""

import pytest

from tests.ledger.made import AUTHOR, NOW_MS
from wlctl.errors import SignerConflict
from wlctl.ledger import chain, signers
from wlctl.ledger.store import Ledger
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
