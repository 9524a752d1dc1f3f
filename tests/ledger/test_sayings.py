"""What is said of nodes, held to the events that tell of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.ledger.made import AUTHOR, NOW_MS, opened, tamper
from tests.ledger.test_agreement import ELM
from wlctl.errors import UnknownName
from wlctl.ledger import nodes, sayings
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Broken, Verified, verify
from wlctl.model.facts import Capability, Provenance
from wlctl.model.ids import NodeName
from wlctl.model.node import Tier

CAMERA = Capability(
    "sensor.cam", {"lines": 1080, "name": "front", "gain": 2.5}, Provenance.CLAIMED, exclusive=True
)
LABEL = Capability("node.label.env", {"value": "prod"}, Provenance.CLAIMED)
FIGURE = Capability("perf.memory", {"value": 512.0, "unit": "MiB/s"}, Provenance.MEASURED)
OAK = replace(ELM, name=NodeName("oak"), node_id="c" * 32)


@pytest.fixture
def told(ledger: Ledger) -> Ledger:
    """Two nodes, one of which much is said of."""
    with ledger.write(NOW_MS, AUTHOR) as tx:
        nodes.add(tx, ELM)
        nodes.add(tx, OAK)
        sayings.say(tx, ELM.name, tier=Tier.TRUSTED, claims=(CAMERA, LABEL))
        sayings.measured(tx, ELM.name, (FIGURE,))
        nodes.cordon(tx, ELM.name, NOW_MS + 5)
    return ledger


def test_what_is_said_is_read_back_as_it_was(told: Ledger) -> None:
    with told.read() as tx:
        said = sayings.of_node(tx, ELM.name)

        assert [one.capability for one in said] == [LABEL, FIGURE, CAMERA]
        assert {one.at_ms for one in said} == {NOW_MS}
        assert sayings.of_fleet(tx) == {ELM.name: (LABEL, FIGURE, CAMERA)}
        assert sayings.of_node(tx, OAK.name) == []
    assert isinstance(verify(told), Verified)


def test_figures_are_replaced_whole(told: Ledger) -> None:
    other = replace(FIGURE, id="perf.cpu.single")
    with told.write(NOW_MS, AUTHOR) as tx:
        sayings.measured(tx, ELM.name, (other,))
        assert [one.capability for one in sayings.of_node(tx, ELM.name)] == [LABEL, other, CAMERA]
    assert isinstance(verify(told), Verified)


def test_withdrawing_what_was_only_measured_is_refused(told: Ledger) -> None:
    with pytest.raises(UnknownName), told.write(NOW_MS, AUTHOR) as tx:
        sayings.say(tx, ELM.name, withdrawn=(FIGURE.id,))


def test_all_of_it_goes_with_the_node(told: Ledger) -> None:
    with told.write(NOW_MS, AUTHOR) as tx:
        nodes.remove(tx, ELM.name, cleaned=False)
        assert sayings.of_fleet(tx) == {}
        nodes.add(tx, ELM)
        assert sayings.of_fleet(tx) == {}
        assert not nodes.get(tx, ELM.name).cordoned
    assert isinstance(verify(told), Verified)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("""UPDATE node_capabilities SET attrs = '{"value": "dev"}'
                     WHERE id = 'node.label.env'""", id="a label says otherwise"),
        pytest.param("DELETE FROM node_capabilities WHERE id = 'sensor.cam'", id="a claim is gone"),
        pytest.param("""INSERT INTO node_capabilities (node, provenance, id, attrs, at_ms)
                     VALUES ('oak', 'claimed', 'a.b', '{}', 1)""", id="nobody said it"),
        pytest.param("""UPDATE node_capabilities SET provenance = 'measured'
                     WHERE id = 'sensor.cam'""", id="a claim passes for a measurement"),
        pytest.param("""UPDATE node_capabilities SET node = 'oak'
                     WHERE id = 'perf.memory'""", id="a figure of another node"),
        pytest.param("UPDATE nodes SET tier = 'paired' WHERE name = 'elm'", id="another tier"),
        pytest.param("UPDATE nodes SET cordoned = 0 WHERE name = 'elm'", id="no cordon"),
        pytest.param("UPDATE nodes SET cordoned_until_ms = 1 WHERE cordoned", id="a sooner end"),
        pytest.param("UPDATE nodes SET removed = 1 WHERE name = 'oak'", id="a node is gone"),
    ],
)  # fmt: skip
def test_a_row_that_no_event_tells_of_is_found(told: Ledger, path: Path, change: str) -> None:
    told.close()
    tamper(path, change)

    with opened(path) as again:
        assert isinstance(verify(again), Broken)
