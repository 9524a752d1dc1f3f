"""A node that is reached elsewhere: it is the same one, or nothing changes."""

from collections.abc import Callable

import pytest

from tests.flows.setting import Setting
from tests.world import FakeNode
from wlctl.errors import ForeignNode, TwoMachines, Unreachable, UsageError, WlctlError
from wlctl.flows import node_changes, nodes
from wlctl.ledger.verify import Verified
from wlctl.model.node import Address, Node, Tier, TransportKind


def ssh(host: str, **given: object) -> Address:
    return Address(TransportKind.SSH, host=host, **given)  # type: ignore[arg-type]  # its fields


@pytest.fixture
def elm(setting: Setting) -> FakeNode:
    """The node `elm`, reached over SSH, and under `new` too."""
    found = setting.world.add("elm")
    setting.world.nodes["new"] = found
    with setting.runtime() as rt:
        nodes.add(rt, "elm", ssh("elm", sudo=True), Tier.PAIRED, accept_key=lambda _shown: None)
    return found


def move(setting: Setting, where: Address, *, sudo: bool | None = None) -> tuple[Node, bool]:
    with setting.runtime() as rt:
        return node_changes.move_address(rt, "elm", where, sudo=sudo)


def test_it_is_reached_there_and_who_it_is_stays_as_it_was(setting: Setting, elm: FakeNode) -> None:
    before = setting.node("elm")

    node, changed = move(setting, ssh("new", port=2222, user="ops"))

    assert changed
    address = node.address
    assert (address.host, address.port, address.user, address.sudo) == ("new", 2222, "ops", True)
    assert (address.host_key, node.node_id, node.tier) == (
        before.address.host_key,
        before.node_id,
        before.tier,
    )
    assert node.facts is not None
    assert node.facts.seq == 2, "it was looked at there"
    (event,) = setting.events("node.set")
    assert event.payload == {
        "node": "elm", "host": "new", "port": 2222, "user": "ops", "sudo": True,
        "by": event.payload["by"],
    }  # fmt: skip
    assert isinstance(setting.verified(), Verified)


def test_sudo_can_be_left_out_from_then_on(setting: Setting, elm: FakeNode) -> None:
    node, _ = move(setting, ssh("new"), sudo=False)

    assert not node.address.sudo


def test_the_same_address_is_not_contacted(setting: Setting, elm: FakeNode) -> None:
    elm.up = False

    _, changed = move(setting, ssh("elm"))

    assert not changed
    assert not setting.events("node.set")


def gone(_setting: Setting, elm: FakeNode) -> None:
    elm.up = False


def another(setting: Setting, _elm: FakeNode) -> None:
    del setting.world.nodes["new"]
    setting.world.add("new")


def a_twin(_setting: Setting, elm: FakeNode) -> None:
    elm.boot_id = "b2"
    elm.uptime_ms = 1 << 40


@pytest.mark.parametrize(
    ("happens", "error"),
    [
        pytest.param(gone, Unreachable, id="nothing answers there"),
        pytest.param(another, ForeignNode, id="another machine answers there"),
        pytest.param(a_twin, TwoMachines, id="a copy of the machine answers there"),
    ],
)
def test_nothing_changes_unless_the_node_itself_answers(
    setting: Setting,
    elm: FakeNode,
    happens: Callable[[Setting, FakeNode], None],
    error: type[WlctlError],
) -> None:
    before = setting.node("elm")
    happens(setting, elm)

    with pytest.raises(error):
        move(setting, ssh("new"))

    assert setting.node("elm") == before
    assert not setting.events("node.set")


def test_this_machine_has_no_address(setting: Setting, elm: FakeNode) -> None:
    with pytest.raises(UsageError, match="this one"):
        move(setting, Address(TransportKind.LOCAL))
