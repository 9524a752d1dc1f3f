"""What has been kept long enough: both sides of every edge, and clocks that were set back."""

import pytest

from wlctl.lifecycle.upkeep import DAY_MS, is_collection_due, is_past_keep
from wlctl.model.ids import InstanceId, NodeName, PackageId
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.workload import Kind

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def job(
    state: State = State.FINISHED, kind: Kind = Kind.JOB, *, unsettled: bool = False
) -> Instance:
    return Instance(
        id=InstanceId("iaaaaaaaaaaaaaaa"),
        name="job",
        kind=kind,
        workload="job",
        version="1",
        package_id=PackageId("a" * 64),
        variant="any",
        node=NodeName("elm"),
        desired=Desired.RUNNING,
        state=state,
        generation=1,
        unsettled=unsettled,
        health="",
        created_at_ms=NOW_MS - 10 * DAY_MS,
        since_ms=NOW_MS,
        seen_at_ms=NOW_MS,
    )


@pytest.mark.parametrize(
    ("instance", "passed_ms", "is_past"),
    [
        pytest.param(job(), HOUR_MS, True, id="so long ago"),
        pytest.param(job(), HOUR_MS - 1, False, id="a moment less"),
        pytest.param(job(), -DAY_MS, False, id="in what is the future by now"),
        pytest.param(job(State.FAILED), DAY_MS, False, id="what failed waits for an operator"),
        pytest.param(job(State.STOPPED), DAY_MS, False, id="what was stopped may be started"),
        pytest.param(job(State.RUNNING), DAY_MS, False, id="what runs"),
        pytest.param(job(kind=Kind.INTERVAL), DAY_MS, False, id="what has a next run"),
        pytest.param(job(kind=Kind.SERVICE), DAY_MS, False, id="a service"),
        pytest.param(job(unsettled=True), DAY_MS, False, id="of which nobody knows"),
    ],
)
def test_a_job_that_finished_is_let_go_after_its_time(
    instance: Instance, passed_ms: int, is_past: bool
) -> None:
    assert is_past_keep(instance, HOUR_MS, NOW_MS + passed_ms) is is_past


def test_a_job_that_is_not_kept_at_all_goes_at_once() -> None:
    assert is_past_keep(job(), 0, NOW_MS)


@pytest.mark.parametrize(
    ("since_ms", "left_ms", "collected_ms", "is_due"),
    [
        pytest.param(HOUR_MS, None, None, False, id="nothing was given up"),
        pytest.param(2 * HOUR_MS, HOUR_MS, None, True, id="something was, and never collected"),
        pytest.param(3 * HOUR_MS, 2 * HOUR_MS, HOUR_MS, False, id="collected when it was of age"),
        pytest.param(3 * HOUR_MS, 2 * HOUR_MS - 1, HOUR_MS, True, id="collected a moment before"),
        pytest.param(9 * HOUR_MS, HOUR_MS, HOUR_MS - 1, False, id="less than the age ago"),
        pytest.param(9 * HOUR_MS, HOUR_MS, HOUR_MS, True, id="the age ago"),
        pytest.param(DAY_MS, None, None, True, id="a day after its first use"),
        pytest.param(DAY_MS - 1, None, None, False, id="less than a day after it"),
        pytest.param(9 * DAY_MS, None, DAY_MS, True, id="a day after the last time"),
        pytest.param(9 * DAY_MS, None, DAY_MS - 1, False, id="less than a day after it"),
        pytest.param(9 * DAY_MS, None, 0, False, id="just now"),
        pytest.param(9 * DAY_MS, None, -1, True, id="in what is the future by now"),
    ],
)
def test_a_node_is_asked_to_collect_when_something_is_of_age_and_once_a_day(
    since_ms: int, left_ms: int | None, collected_ms: int | None, is_due: bool
) -> None:
    def ago(span_ms: int | None) -> int | None:
        return None if span_ms is None else NOW_MS - span_ms

    found = is_collection_due(
        NOW_MS,
        age_ms=HOUR_MS,
        since_ms=NOW_MS - since_ms,
        left_at_ms=ago(left_ms),
        collected_at_ms=ago(collected_ms),
    )

    assert found is is_due
