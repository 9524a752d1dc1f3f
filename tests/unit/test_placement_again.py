"""Whether what was stopped still fits where it is staged."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.fleets import (
    GIB,
    NOW,
    a_capability,
    a_hold,
    a_node,
    a_workload,
    emulated,
    native,
    needs,
)
from wlctl.model.fleet import Claim, Hold, NodeView
from wlctl.model.ids import InstanceId
from wlctl.model.node import Liveness, Tier
from wlctl.model.workload import PerfTarget, WorkloadSpec
from wlctl.placement.again import Fits, Taken, fits_again

OURS = InstanceId("i-web")
GPU = replace(a_capability("accel.cuda.0"), exclusive=True)


def asked(
    spec: WorkloadSpec, node: NodeView, *holds: Hold, variant: str = "default"
) -> Fits | Taken:
    return fits_again(spec, variant, node, holds, instance=OURS, now_ms=NOW)


@pytest.mark.parametrize(
    ("spec", "hold", "why"),
    [
        pytest.param(
            {"memory_bytes": 9 * GIB}, {"memory_bytes": 8 * GIB}, "memory: needs 9 GiB", id="memory"
        ),
        pytest.param({"cpu_cores": 5}, {"cpu_cores": 4}, "cpu: needs 5 cores", id="cores"),
        pytest.param(
            {"disk_bytes": 60 * GIB}, {"disk_bytes": 50 * GIB}, "disk: needs 60 GiB", id="disk"
        ),
        pytest.param(
            {"ports": (("http", 80),)}, {"ports": (80,)}, "port: port 80", id="a fixed port"
        ),
        pytest.param(
            {"excludes": ("noisy",)}, {"labels": ("noisy",)}, "co_residency:", id="a neighbour"
        ),
    ],
)
def test_what_others_took_meanwhile_is_said(
    spec: dict[str, Any], hold: dict[str, Any], why: str
) -> None:
    found = asked(a_workload(**spec), a_node(), a_hold(**hold))

    assert isinstance(found, Taken)
    assert [reason for reason in found.reasons if reason.startswith(why)] == list(found.reasons)
    assert isinstance(asked(a_workload(**spec), a_node()), Fits)


def test_what_it_holds_itself_is_not_in_its_own_way() -> None:
    own = a_hold(instance=OURS, memory_bytes=9 * GIB)

    assert isinstance(asked(a_workload(memory_bytes=9 * GIB), a_node(), own), Fits)


def test_an_exclusive_capability_is_claimed_anew_or_taken() -> None:
    spec = a_workload(needs("accel.cuda.*"))
    held = a_hold(claims=(Claim("accel.cuda.0", exclusive=True),))

    free = asked(spec, a_node("a", GPU))
    taken = asked(spec, a_node("a", GPU), held)

    assert isinstance(free, Fits)
    assert [claim.exclusive for claim in free.claims] == [True]
    assert isinstance(taken, Taken)
    assert taken.reasons[0].startswith("requirements:")


@pytest.mark.parametrize(
    "node",
    [
        pytest.param({"liveness": Liveness.SUSPECT}, id="silent when it was asked last"),
        pytest.param({"cordoned": True}, id="cordoned"),
        pytest.param({"facts_expire_at_ms": NOW}, id="not looked at for long"),
        pytest.param({"tier": Tier.DISCOVERED}, id="of another tier now"),
        pytest.param({"gate": None}, id="judged by the gate elsewhere"),
        pytest.param({"ports_listening": (80,)}, id="something listens, perhaps it did itself"),
    ],
)
def test_only_room_is_judged(node: dict[str, Any]) -> None:
    spec = a_workload(
        ports=(("http", 80),),
        min_trust=Tier.TRUSTED,
        perf=PerfTarget("perf.cpu.single", 1e9),
    )

    assert isinstance(asked(spec, a_node(**node)), Fits)


def test_only_the_variant_that_is_staged_counts() -> None:
    spec = a_workload(variants=(native("arm", needs("cpu.arm")), emulated("any")))

    assert isinstance(asked(spec, a_node(), variant="any"), Fits)
    assert isinstance(asked(spec, a_node(), variant="arm"), Taken)
