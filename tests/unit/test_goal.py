"""What can still come of a copy, and what not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_seen import WEB
from wlctl.lifecycle.goal import Judged, Reach, judge
from wlctl.lifecycle.machine import IllegalTransition, walk
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.workload import Kind

JOB = replace(WEB, kind=Kind.JOB)
OFF = replace(WEB, desired=Desired.STOPPED)


def reach(instance: Instance, goal: State, **given_: bool) -> Reach:
    return judge(instance, goal, checked=given_.pop("checked", False), **given_).reach


@pytest.mark.parametrize("state", State)
def test_what_is_there_is_there(state: State) -> None:
    assert judge(replace(WEB, state=state), state, checked=True) == Judged(Reach.THERE)


@pytest.mark.parametrize(
    ("health", "checked", "found"),
    [
        ("healthy", True, Reach.THERE),
        ("starting", True, Reach.NOT_YET),
        ("", True, Reach.NOT_YET),
        ("", False, Reach.THERE),
    ],
)
def test_healthy_is_running_and_what_the_check_says_where_there_is_one(
    health: str, checked: bool, found: Reach
) -> None:
    instance = replace(WEB, health=health)

    assert reach(instance, State.RUNNING, healthy=True, checked=checked) is found


@pytest.mark.parametrize(
    ("instance", "goal", "found"),
    [
        pytest.param(WEB, State.FINISHED, Reach.NEVER, id="a service does not finish"),
        pytest.param(JOB, State.FINISHED, Reach.NOT_YET, id="a job that runs may finish"),
        pytest.param(
            replace(JOB, state=State.FAILED), State.FINISHED, Reach.NEVER, id="a failed one not"
        ),
        pytest.param(
            replace(JOB, state=State.STOPPED), State.FINISHED, Reach.NEVER, id="nor a stopped one"
        ),
        pytest.param(
            replace(JOB, state=State.LOADED), State.FINISHED, Reach.NOT_YET, id="nor one to start"
        ),
        pytest.param(
            replace(JOB, state=State.LOADED, desired=Desired.STOPPED),
            State.FINISHED,
            Reach.NEVER,
            id="one that nobody wants to run does not finish",
        ),
        pytest.param(
            replace(WEB, state=State.STOPPED), State.RUNNING, Reach.NOT_YET, id="it is wanted"
        ),
        pytest.param(
            replace(OFF, state=State.STOPPED), State.RUNNING, Reach.NEVER, id="it is not wanted"
        ),
        pytest.param(
            replace(OFF, state=State.STOPPING), State.RUNNING, Reach.NEVER, id="it is being stopped"
        ),
        pytest.param(
            replace(WEB, state=State.FAILED), State.RUNNING, Reach.NEVER, id="failed is held"
        ),
        pytest.param(
            replace(WEB, state=State.FINISHED), State.UNHEALTHY, Reach.NEVER, id="so is finished"
        ),
        pytest.param(WEB, State.STOPPED, Reach.NOT_YET, id="somebody may stop it"),
        pytest.param(
            replace(WEB, state=State.FAILED), State.STOPPED, Reach.NEVER, id="a stop leaves failed"
        ),
        pytest.param(
            replace(WEB, state=State.FINISHED), State.FAILED, Reach.NEVER, id="it ended otherwise"
        ),
        pytest.param(WEB, State.FAILED, Reach.NOT_YET, id="what runs may fail"),
        pytest.param(WEB, State.UNLOADED, Reach.NOT_YET, id="somebody may unload it"),
        pytest.param(
            replace(WEB, state=State.UNLOADED), State.RUNNING, Reach.NEVER, id="gone is gone"
        ),
        pytest.param(
            replace(WEB, state=State.RESCHEDULED),
            State.RUNNING,
            Reach.NEVER,
            id="so is what another copy replaced",
        ),
        pytest.param(
            replace(WEB, state=State.LOST), State.RUNNING, Reach.NOT_YET, id="the lost may return"
        ),
        pytest.param(WEB, State.PLACED, Reach.NEVER, id="what is behind it does not come again"),
        pytest.param(
            replace(WEB, state=State.PLACED), State.RUNNING, Reach.NOT_YET, id="it is on its way"
        ),
    ],
)
def test_what_can_still_come(instance: Instance, goal: State, found: Reach) -> None:
    judged = judge(instance, goal, checked=False)

    assert judged.reach is found
    assert bool(judged.why) is (found is Reach.NEVER)


@given(
    st.sampled_from(State),
    st.sampled_from(State),
    st.sampled_from(Kind),
    st.sampled_from(Desired),
)
def test_nobody_waits_for_what_no_step_leads_to(
    state: State, goal: State, kind: Kind, desired: Desired
) -> None:
    instance = replace(WEB, state=state, kind=kind, desired=desired)

    if isinstance(walk(state, goal), IllegalTransition):
        assert reach(instance, goal) is Reach.NEVER
