"""Many copies lost with one node: the budget holds, and each move has its explanation.

A campaign loses a thousand; elsewhere it is a hundred.
"""

import itertools
import json
import zlib

import pytest
from sqlalchemy import select

from tests.fleet.sample import FULL, TIMEOUT_S
from tests.flows.setting import Setting
from wlctl.flows.reconcile import reconcile
from wlctl.ledger import instances
from wlctl.ledger.schema import decisions
from wlctl.ledger.verify import Verified
from wlctl.model.ids import NodeName
from wlctl.model.instance import State

COPIES = 1000 if FULL else 100


@pytest.mark.timeout(TIMEOUT_S)
def test_many_lost_copies_are_placed_anew_by_the_budget_and_each_is_explained(
    setting: Setting,
) -> None:
    setting.clock = itertools.count(next(setting.clock), 1)
    setting.busy_timeout_s = 30
    for name in ("elm", "oak", "yew"):
        setting.add_node(name, memory_bytes=1 << 40)
    setting.place(count=COPIES, prefer=(NodeName("elm"),))
    _moved(setting)  # a place that had to wait too long for the ledger is finished by a pass
    assert [name for name, _ in setting.alive()] == ["elm"] * COPIES
    setting.world.nodes["elm"].up = False
    moved: list[int] = []
    while not moved or moved[-1] == 0:
        for _ in range(40_000):
            next(setting.clock)
        moved.append(_moved(setting))
        assert len(moved) < 6, "it is dead after three silent passes"

    assert moved[-1] == 10
    states = _states(setting)
    assert states == {State.LOST: COPIES - 10, State.RUNNING: 10, State.RESCHEDULED: 10}
    before = _states(setting)
    assert _moved(setting) == 10, "the next pass goes on with the next ten"
    assert _states(setting)[State.LOST] == before[State.LOST] - 10
    with setting.runtime() as rt, rt.ledger.read() as tx:
        for one in instances.current(tx):
            if one.state is State.RUNNING:
                query = select(decisions.c.document).where(decisions.c.name == one.name)
                told = [json.loads(zlib.decompress(row[0])) for row in tx.conn.execute(query)]
                assert any("elm" in json.dumps(each) for each in told), one.name
    assert isinstance(setting.verified(), Verified)


def _moved(setting: Setting) -> int:
    with setting.runtime() as rt:
        found = reconcile(rt)
    return sum(one.came.startswith("placed on") for one in found.done)


def _states(setting: Setting) -> dict[State, int]:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        found = [*instances.current(tx), *instances.rescheduled(tx)]
    return {state: sum(one.state is state for one in found) for state in {o.state for o in found}}
