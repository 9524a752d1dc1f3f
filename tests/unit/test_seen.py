"""What one look at a node says of a copy: never more than it can."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wlctl.lifecycle.machine import IllegalTransition, walk
from wlctl.lifecycle.seen import Seen, ended, judge, number_of, status_text
from wlctl.model.actions import Begun, GenerationStatus, InstanceStatus, Restarts
from wlctl.model.generation import Liveliness
from wlctl.model.ids import InstanceId, NodeName, PackageId
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.workload import Kind

WEB = Instance(
    id=InstanceId("i" + "a" * 15),
    name="web",
    kind=Kind.SERVICE,
    workload="web",
    version="1.0.0",
    package_id=PackageId("p" * 64),
    variant="any",
    node=NodeName("elm"),
    desired=Desired.RUNNING,
    state=State.RUNNING,
    generation=2,
    unsettled=False,
    health="",
    created_at_ms=0,
    since_ms=0,
    seen_at_ms=None,
)
RUN = GenerationStatus(
    number=2,
    closed=False,
    torn=False,
    boot_id="boot-a",
    leader=Liveliness.ALIVE,
    populated=True,
    exit_status=None,
    pid=7,
    uid=61184,
)
GONE = replace(RUN, leader=Liveliness.GONE, populated=False, exit_status=3)


def listed(run: GenerationStatus, *, current: int | None = 2) -> InstanceStatus:
    return InstanceStatus(WEB.id, "running", 5, current, "web", "p", (run,))


@pytest.mark.parametrize(
    ("instance", "run", "state"),
    [
        pytest.param(WEB, RUN, State.RUNNING, id="what lives runs"),
        pytest.param(
            WEB, replace(RUN, health="unhealthy"), State.UNHEALTHY, id="what fails its checks"
        ),
        pytest.param(
            replace(WEB, state=State.UNHEALTHY),
            replace(RUN, health="healthy"),
            State.RUNNING,
            id="what passes its checks again",
        ),
        pytest.param(
            replace(WEB, state=State.UNHEALTHY),
            replace(RUN, health=""),
            State.RUNNING,
            id="nobody says any longer that it is unhealthy",
        ),
        pytest.param(WEB, replace(RUN, health="starting"), State.RUNNING, id="no check is due"),
        pytest.param(WEB, GONE, State.FAILED, id="a service that ended"),
        pytest.param(WEB, replace(GONE, exit_status=0), State.FAILED, id="a service ended well"),
        pytest.param(
            replace(WEB, kind=Kind.JOB),
            replace(GONE, exit_status=0),
            State.FINISHED,
            id="a job that ended well",
        ),
        pytest.param(
            replace(WEB, kind=Kind.INTERVAL),
            replace(GONE, exit_status=0),
            State.FINISHED,
            id="a job on a schedule that ended well",
        ),
        pytest.param(
            replace(WEB, kind=Kind.JOB),
            replace(GONE, exit_status=0, oom_kills=1),
            State.FINISHED,
            id="a job that ended well whatever became of a child",
        ),
        pytest.param(replace(WEB, kind=Kind.JOB), GONE, State.FAILED, id="a job ended badly"),
        pytest.param(
            replace(WEB, state=State.UNHEALTHY), GONE, State.FAILED, id="the unhealthy end too"
        ),
        pytest.param(
            replace(WEB, state=State.RESTARTING), RUN, State.RUNNING, id="a restart that is done"
        ),
        pytest.param(
            WEB, replace(GONE, populated=True), State.RUNNING, id="what its leader left lives on"
        ),
        pytest.param(
            WEB, replace(GONE, populated=None), State.FAILED, id="an ended run without a cgroup"
        ),
        pytest.param(
            WEB, replace(GONE, exit_status=None), State.RUNNING, id="an exit not written yet"
        ),
        pytest.param(
            WEB, replace(RUN, leader=Liveliness.UNKNOWN), State.LOST, id="a node started anew"
        ),
        pytest.param(
            WEB, replace(RUN, leader=Liveliness.NONE), State.RUNNING, id="no leader recorded yet"
        ),
        pytest.param(WEB, replace(GONE, closed=True), State.RUNNING, id="a run being ended"),
        pytest.param(WEB, replace(GONE, torn=True), State.RUNNING, id="a torn record"),
        pytest.param(WEB, replace(GONE, number=1), State.RUNNING, id="an earlier run"),
        pytest.param(WEB, replace(GONE, number=3), State.RUNNING, id="a run of nobody's"),
        *(
            pytest.param(replace(WEB, state=state), GONE, state, id=f"the end of what is {state}")
            for state in State
            if state not in (State.RUNNING, State.UNHEALTHY, State.RESTARTING)
        ),
        *(
            pytest.param(replace(WEB, state=state), RUN, state, id=f"the life of what is {state}")
            for state in State
            if state not in (State.RUNNING, State.UNHEALTHY, State.RESTARTING)
        ),
        *(
            pytest.param(
                replace(WEB, state=state, unsettled=True),
                RUN,
                State.RUNNING if may_be_late else state,
                id=f"a late launch of what is {state}",
            )
            for state, may_be_late in (
                (State.REQUESTED, False),
                (State.PLACED, False),
                (State.FETCHING, False),
                (State.VERIFIED, False),
                (State.LOADED, True),
                (State.STOPPING, False),
                (State.STOPPED, True),
                (State.FINISHED, True),
                (State.FAILED, True),
                (State.LOST, True),
                (State.RESCHEDULED, False),
                (State.REVOKED, False),
                (State.UNLOADED, False),
            )
        ),
        pytest.param(
            replace(WEB, state=State.STOPPED, unsettled=True),
            GONE,
            State.STOPPED,
            id="a late launch that has ended is for the proof",
        ),
    ],
)
def test_a_look_says_which_state_a_copy_is_in(
    instance: Instance, run: GenerationStatus, state: State
) -> None:
    found = judge(instance, listed(run, current=run.number))

    assert found.state is state
    assert (found.reason == "") == (state is instance.state)


POLICY = Restarts(once=False, most=3, window_ms=600_000, within=1)
HELD = replace(POLICY, held="exhausted", why="g2 ended by itself with status 3; enough")
JOB = replace(WEB, kind=Kind.JOB)
THIRD = replace(RUN, number=3, begun=Begun(after=2, age_ms=1_000, why="g2 ended"))
NOT_YET = replace(THIRD, leader=Liveliness.NONE, populated=False)


@pytest.mark.parametrize(
    ("instance", "runs", "restarts", "state"),
    [
        pytest.param(WEB, [GONE], POLICY, State.UNHEALTHY, id="what ended is to be begun again"),
        pytest.param(
            replace(WEB, state=State.UNHEALTHY), [GONE], POLICY, State.UNHEALTHY, id="and waits"
        ),
        pytest.param(
            WEB, [replace(GONE, populated=True)], POLICY, State.RUNNING, id="not while others live"
        ),
        pytest.param(
            WEB, [replace(GONE, closed=True)], POLICY, State.RESTARTING, id="it is being replaced"
        ),
        pytest.param(
            WEB, [replace(RUN, closed=True)], POLICY, State.RESTARTING, id="and may live still"
        ),
        pytest.param(WEB, [replace(GONE, closed=True)], HELD, State.FAILED, id="it is held"),
        pytest.param(WEB, [RUN], POLICY, State.RUNNING, id="what lives runs"),
        pytest.param(
            JOB,
            [replace(GONE, exit_status=0)],
            replace(POLICY, once=True),
            State.FINISHED,
            id="a job that ended well is not begun again",
        ),
        pytest.param(
            JOB, [GONE], replace(POLICY, once=True), State.UNHEALTHY, id="one that failed is"
        ),
        pytest.param(
            WEB,
            [replace(RUN, leader=Liveliness.UNKNOWN)],
            POLICY,
            State.LOST,
            id="nobody begins anything again after a reboot",
        ),
        pytest.param(WEB, [GONE, THIRD], POLICY, State.RUNNING, id="it was begun again"),
        pytest.param(WEB, [GONE, NOT_YET], POLICY, State.RUNNING, id="a moment ago"),
        pytest.param(
            WEB,
            [GONE, replace(THIRD, leader=Liveliness.GONE, exit_status=1, populated=False)],
            POLICY,
            State.UNHEALTHY,
            id="and ended again",
        ),
        pytest.param(
            replace(WEB, state=State.STOPPING), [GONE, THIRD], None, State.STOPPING, id="too late"
        ),
    ],
)
def test_a_look_knows_what_a_supervisor_does(
    instance: Instance, runs: list[GenerationStatus], restarts: Restarts | None, state: State
) -> None:
    current = runs[-1].number
    seen = InstanceStatus(WEB.id, "running", 5, current, "web", "p", tuple(runs), restarts=restarts)

    found = judge(instance, seen)

    assert found.state is state
    assert found.begun == tuple(runs[1:])
    assert number_of(instance, seen) == current


FOURTH = replace(THIRD, number=4, begun=Begun(after=3, age_ms=1_000, why="g3 ended"))


@pytest.mark.parametrize(
    ("generation", "runs", "news"),
    [
        pytest.param(2, [GONE, replace(THIRD, begun=None)], (), id="nobody says how it was begun"),
        pytest.param(3, [GONE, THIRD], (), id="it is known"),
        pytest.param(4, [GONE, THIRD], (), id="a later one has its number already"),
        pytest.param(2, [GONE, THIRD, FOURTH], (3, 4), id="two since the one that is known"),
        pytest.param(3, [GONE, THIRD, FOURTH], (4,), id="one since another that was begun so"),
        pytest.param(
            2,
            [GONE, THIRD, replace(FOURTH, begun=None)],
            (),
            id="nobody says how the newest was begun",
        ),
    ],
)
def test_only_a_run_that_a_supervisor_began_is_news(
    generation: int, runs: list[GenerationStatus], news: tuple[int, ...]
) -> None:
    instance = replace(WEB, generation=generation)
    current = runs[-1].number
    seen = InstanceStatus(WEB.id, "running", 5, current, "web", "p", tuple(runs), restarts=POLICY)

    assert tuple(run.number for run in judge(instance, seen).begun) == news
    assert number_of(instance, seen) == (news[-1] if news else generation)


def test_an_exit_that_is_missing_twice_is_unknown() -> None:
    found = judge(WEB, listed(replace(GONE, exit_status=None)), twice=True)

    assert found.state is State.FAILED
    assert "exit-unknown" in found.reason


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(None, id="a node that does not list it"),
        pytest.param(listed(GONE, current=None), id="nobody knows which run is current"),
        pytest.param(listed(GONE, current=0), id="none was ever launched"),
    ],
)
def test_silence_changes_nothing(seen: InstanceStatus | None) -> None:
    assert judge(WEB, seen) == Seen(State.RUNNING)


@pytest.mark.parametrize(
    ("status", "said"), [(0, "status 0"), (128, "status 128"), (137, "status 137 (signal 9)")]
)
def test_a_status_above_128_is_a_signal(status: int, said: str) -> None:
    assert status_text(status) == said


def test_a_failure_says_that_memory_ran_out() -> None:
    _, why = ended(Kind.JOB, 137, "g1", oom_kills=1)

    assert why == "g1 ended by itself with status 137 (signal 9), out of memory"


@given(
    instance=st.builds(
        lambda state, kind, unsettled: replace(WEB, state=state, kind=kind, unsettled=unsettled),
        st.sampled_from(State),
        st.sampled_from(Kind),
        st.booleans(),
    ),
    run=st.builds(
        GenerationStatus,
        number=st.integers(1, 3),
        closed=st.booleans(),
        torn=st.booleans(),
        boot_id=st.just("b"),
        leader=st.sampled_from(Liveliness),
        populated=st.sampled_from([True, False, None]),
        exit_status=st.sampled_from([None, 0, 1, 137]),
        pid=st.none(),
        uid=st.none(),
        health=st.sampled_from(["", "starting", "healthy", "unhealthy"]),
        begun=st.sampled_from([None, THIRD.begun]),
    ),
    twice=st.booleans(),
    restarts=st.sampled_from([None, POLICY, HELD, replace(POLICY, once=True)]),
)
def test_whatever_is_seen_there_is_a_legal_way_to_what_is_said(
    instance: Instance, run: GenerationStatus, twice: bool, restarts: Restarts | None
) -> None:
    seen = replace(listed(run, current=run.number), restarts=restarts)

    found = judge(instance, seen, twice=twice)

    assert not isinstance(walk(instance.state, found.state), IllegalTransition)
    if found.state is not instance.state:
        assert found.state not in (State.STOPPED, State.UNLOADED), "a look proves no end"
