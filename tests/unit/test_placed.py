"""What `place` says and answers of copies that were there already."""

import pytest

from wlctl.cli.placed import exit_code, lines
from wlctl.errors import ExitCode
from wlctl.flows.place import Report
from wlctl.model.ids import InstanceId, NodeName, PackageId
from wlctl.model.instance import Desired, Instance, State
from wlctl.model.workload import Kind


def standing(state: State, *, unsettled: bool = False) -> Instance:
    return Instance(
        id=InstanceId("i1"),
        name="web",
        kind=Kind.SERVICE,
        workload="web",
        version="1",
        package_id=PackageId("p"),
        variant="any",
        node=NodeName("elm"),
        desired=Desired.RUNNING,
        state=state,
        generation=1,
        unsettled=unsettled,
        created_at_ms=0,
        since_ms=0,
        seen_at_ms=0,
        health="",
    )


@pytest.mark.parametrize(
    ("state", "code", "said"),
    [
        pytest.param(State.RUNNING, ExitCode.DONE, "on elm: nothing to do", id="what runs"),
        pytest.param(
            State.STOPPED,
            ExitCode.DONE,
            "on elm, and is stopped (`wlctl start web`): nothing to do",
            id="what somebody stopped",
        ),
        pytest.param(
            State.FAILED,
            ExitCode.FAILED,
            "on elm, and is failed (`wlctl start web`): nothing to do",
            id="what failed is not what a script asked for",
        ),
        pytest.param(
            State.FINISHED, ExitCode.DONE, "on elm, and has finished: nothing to do", id="a job"
        ),
    ],
)
def test_what_is_there_already_is_said_as_it_is(state: State, code: ExitCode, said: str) -> None:
    report = Report("web", dry_run=False, decision=None, document=None, standing=(standing(state),))

    assert exit_code(report, {}) is code
    (line,) = lines(report, {}, why=(), everything=False)
    assert line == f"web is placed already, {said}"


def test_a_dry_run_of_what_failed_has_failed_at_nothing() -> None:
    report = Report("web", True, None, None, standing=(standing(State.FAILED),))

    assert exit_code(report, {}) is ExitCode.DONE


def test_what_is_unsettled_is_said_to_be() -> None:
    report = Report("web", True, None, None, standing=(standing(State.PLACED, unsettled=True),))

    (line,) = lines(report, {}, why=(), everything=False)
    assert line == "web is unsettled on elm: that is finished before anything else"
