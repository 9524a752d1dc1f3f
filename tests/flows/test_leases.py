"""Leases: armed by every start, renewed by every pass, and never too short to be renewed."""

import pytest

from tests.flows.setting import Setting
from wlctl.errors import NameTaken, UsageError
from wlctl.flows.reconcile import reconcile
from wlctl.flows.starting import restart_one

MINUTE_MS = 60_000


@pytest.fixture
def leased(setting: Setting) -> Setting:
    """A copy that its node ends five minutes after the last renewal."""
    setting.add_node("elm")
    setting.place(lease_ms=5 * MINUTE_MS)
    return setting


def until_ms(setting: Setting) -> int:
    return setting.world.nodes["elm"].leases[setting.instance("web").id]


def pass_over(setting: Setting) -> None:
    with setting.runtime() as rt:
        reconcile(rt)


def test_a_lease_counts_from_a_reading_of_the_connection_that_starts_it(leased: Setting) -> None:
    assert until_ms(leased) == 1_000_100 + 5 * MINUTE_MS


def test_a_copy_without_a_lease_has_none(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()
    pass_over(setting)

    assert setting.world.nodes["elm"].leases == {}


def test_every_pass_renews_it_from_its_own_reading(leased: Setting) -> None:
    node = leased.world.nodes["elm"]
    for uptime_ms in (1_060_000, 1_120_000):
        node.uptime_ms = uptime_ms

        pass_over(leased)

        assert until_ms(leased) == uptime_ms + 5 * MINUTE_MS


def test_a_dry_run_renews_nothing(leased: Setting) -> None:
    before = until_ms(leased)
    leased.world.nodes["elm"].uptime_ms = 1_060_000

    with leased.runtime() as rt:
        reconcile(rt, dry_run=True)

    assert until_ms(leased) == before


def test_the_next_run_has_the_lease_of_its_order_too(leased: Setting) -> None:
    with leased.runtime() as rt:
        restart_one(rt, leased.instance("web"))

    assert leased.instance("web").generation == 2
    assert until_ms(leased) > 5 * MINUTE_MS


def test_a_lease_is_a_part_of_the_order(leased: Setting) -> None:
    with pytest.raises(NameTaken, match="other options"):
        leased.place(lease_ms=6 * MINUTE_MS)


@pytest.mark.parametrize("lease_ms", [3 * MINUTE_MS - 1, 1])
def test_a_lease_shorter_than_three_passes_is_refused(setting: Setting, lease_ms: int) -> None:
    setting.add_node("elm")

    with pytest.raises(UsageError, match="between two passes"):
        setting.place(lease_ms=lease_ms)
    assert setting.events("workload.place") == []


def test_a_lease_of_just_three_passes_is_one(setting: Setting) -> None:
    setting.add_node("elm")

    assert setting.place(lease_ms=3 * MINUTE_MS).copies[0].is_placed
