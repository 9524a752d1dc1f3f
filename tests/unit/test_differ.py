"""Where ledger and node do not say the same of a copy."""

from dataclasses import replace

import pytest

from tests.unit.test_seen import GONE, RUN, WEB, listed
from wlctl.lifecycle.differ import differences
from wlctl.model.actions import InstanceStatus
from wlctl.model.generation import Liveliness
from wlctl.model.instance import Desired, Instance, State

SAME = replace(listed(RUN), package=WEB.package_id, supervisor=Liveliness.ALIVE)


@pytest.mark.parametrize(
    ("instance", "seen", "said"),
    [
        pytest.param(WEB, SAME, [], id="nothing where all is the same"),
        pytest.param(
            WEB,
            replace(SAME, generations=(replace(RUN, health="healthy"),)),
            [],
            id="nothing of health that is well",
        ),
        pytest.param(WEB, None, ["its node does not list it"], id="a node that does not list it"),
        pytest.param(
            replace(WEB, state=State.PLACED), None, [], id="what is not there yet is not missed"
        ),
        pytest.param(replace(WEB, state=State.UNLOADED), None, [], id="nor is what is gone"),
        pytest.param(
            replace(WEB, state=State.UNLOADED, desired=Desired.UNLOADED),
            replace(SAME, desired="stopped", generations=()),
            ["the ledger says unloaded, and its node lists it"],
            id="what should be gone",
        ),
        pytest.param(
            WEB,
            replace(SAME, generations=(GONE,)),
            ["the ledger says running, its node failed: g2 ended by itself with status 3"],
            id="what ended by itself",
        ),
        pytest.param(
            replace(WEB, state=State.STOPPED, desired=Desired.STOPPED),
            replace(SAME, desired="stopped"),
            ["the ledger says stopped, and it runs"],
            id="what should not run",
        ),
        pytest.param(
            WEB,
            replace(SAME, current=3, generations=(replace(RUN, number=3),)),
            ["its node launched g3, the ledger knows of g2"],
            id="a run nobody knows of",
        ),
        pytest.param(
            WEB,
            replace(SAME, package="q" * 64),
            ["its node has package qqqqqqqqqqqq of it, not pppppppppppp"],
            id="another package",
        ),
        pytest.param(
            replace(WEB, desired=Desired.STOPPED),
            SAME,
            ["stopped is wanted of it, and its node was told running"],
            id="another wish",
        ),
        pytest.param(
            WEB,
            replace(SAME, supervisor=Liveliness.GONE),
            ["it runs, and its supervisor does not: its health is not looked at"],
            id="nobody looks at it",
        ),
        pytest.param(
            WEB, replace(SAME, desired="", package=""), [], id="what is torn says nothing"
        ),
    ],
)
def test_what_differs_is_said(
    instance: Instance, seen: InstanceStatus | None, said: list[str]
) -> None:
    assert list(differences(instance, seen)) == said
