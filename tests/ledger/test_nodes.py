"""What contacts with nodes leave in the ledger, one at a time and many at once."""

from dataclasses import replace

import pytest

from tests.ledger.made import AUTHOR, NOW_MS
from tests.ledger.test_agreement import ELM
from tests.unit.test_placement_view import FACTS
from wlctl.errors import UnknownName
from wlctl.ledger import chain, nodes
from wlctl.ledger.store import Ledger, ReadTx
from wlctl.ledger.verify import Verified, verify
from wlctl.model.facts import Facts
from wlctl.model.ids import NodeName
from wlctl.model.node import Liveness, Node

NAMES = [NodeName(name) for name in ("ash", "elm", "oak")]
SEEN = {
    name: replace(FACTS, boot_id=f"boot-{name}", probed_at_ms=NOW_MS + n, cpu_cores=n + 1)
    for n, name in enumerate(NAMES)
}


@pytest.fixture
def fleet(ledger: Ledger) -> Ledger:
    """Three nodes: one that was seen before, one that was not, and one that fell silent."""
    with ledger.write(NOW_MS, AUTHOR) as tx:
        for n, name in enumerate(NAMES):
            nodes.add(tx, replace(ELM, name=name, node_id=f"{n}" * 32))
        nodes.record_contact(tx, NAMES[0], FACTS)
        nodes.record_silence(tx, NAMES[2], "connect-timeout")
    return ledger


def stands(tx: ReadTx) -> list[Node]:
    return [replace(node, added_at_ms=0) for node in nodes.ls(tx)]


def test_what_is_recorded_at_once_is_what_is_recorded_one_after_the_other(fleet: Ledger) -> None:
    with fleet.write(NOW_MS, AUTHOR) as tx:
        numbered = nodes.record_contacts(tx, SEEN)
        at_once = stands(tx)

    assert {name: facts.seq for name, facts in numbered.items()} == dict(
        zip(NAMES, (2, 1, 1), strict=True)
    )
    assert [node.facts for node in at_once] == [numbered[name] for name in NAMES]
    assert [node.boot_id for node in at_once] == ["boot-ash", "boot-elm", "boot-oak"]
    assert {(node.liveness, node.failed_contacts) for node in at_once} == {(Liveness.ALIVE, 0)}
    with fleet.write(NOW_MS, AUTHOR) as tx:
        for name, facts in SEEN.items():
            again = nodes.record_contact(tx, name, facts)
            assert again == replace(numbered[name], seq=numbered[name].seq + 1)
        one_by_one = stands(tx)
    assert [replace(node, facts=None) for node in at_once] == [
        replace(node, facts=None) for node in one_by_one
    ]
    assert isinstance(verify(fleet), Verified)


def test_only_what_had_fallen_silent_is_told_to_answer(fleet: Ledger) -> None:
    with fleet.write(NOW_MS, AUTHOR) as tx:
        before = chain.head(tx)[0]
        nodes.record_contacts(tx, SEEN)
        told = list(chain.events(tx, after_seq=before))

    assert [(event.kind, event.payload["node"]) for event in told] == [("node.liveness", "oak")]


@pytest.mark.parametrize("seen", [{}, {NodeName("yew"): FACTS}, {**SEEN, NodeName("yew"): FACTS}])
def test_of_a_node_that_is_not_there_nothing_is_recorded(
    fleet: Ledger, seen: dict[NodeName, Facts]
) -> None:
    with fleet.read() as tx:
        before = nodes.ls(tx)

    if seen:
        with pytest.raises(UnknownName), fleet.write(NOW_MS, AUTHOR) as tx:
            nodes.record_contacts(tx, seen)
    else:
        with fleet.write(NOW_MS, AUTHOR) as tx:
            assert nodes.record_contacts(tx, seen) == {}

    with fleet.read() as tx:
        assert nodes.ls(tx) == before
