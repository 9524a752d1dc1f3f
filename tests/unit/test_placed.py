"""What `place` says and answers of copies that were there already."""

from dataclasses import replace

import pytest

from wlctl.cli.placed import exit_code, lines
from wlctl.errors import ExitCode
from wlctl.flows.dispatch import Dispatched
from wlctl.flows.place import Report
from wlctl.flows.waiting import Awaited, Came
from wlctl.ledger.attempts import Attempt, Outcome
from wlctl.model.ids import DecisionId, InstanceId, NodeName, PackageId
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


PLACED = Outcome.PLACED
REFUSED, AWAY, DENIED = Outcome.REFUSED, Outcome.UNREACHABLE, Outcome.GATE_DENIED
LOST = Outcome.INDETERMINATE


def copy(*outcomes: Outcome, settled: str = "", name: str = "web") -> Dispatched:
    """What came of one copy: the outcome of each attempt, and how the last one settled."""
    decision = DecisionId("d")
    attempts = tuple(
        Attempt(decision, number, InstanceId("i"), NodeName("elm"), decision, outcome)
        for number, outcome in enumerate(outcomes, 1)
    )
    last = replace(attempts[-1], settled=settled)
    return Dispatched(name, (*attempts[:-1], last), (), standing(State.RUNNING))


def late(name: str) -> dict[str, Awaited]:
    return {name: Awaited(Came.LATE, standing(State.RUNNING))}


@pytest.mark.parametrize(
    ("copies", "waits", "code"),
    [
        pytest.param([copy(PLACED)], {}, ExitCode.DONE, id="placed"),
        pytest.param([copy(PLACED)], late("web"), ExitCode.FAILED, id="placed, and not up in time"),
        pytest.param([copy(LOST, settled="placed")], {}, ExitCode.DONE, id="lost, and there"),
        pytest.param([copy(LOST)], {}, ExitCode.INDETERMINATE, id="lost, and not settled"),
        pytest.param(
            [copy(LOST, settled="cancelled")], {}, ExitCode.CANNOT_PLACE, id="lost, and called off"
        ),
        pytest.param([copy(REFUSED, PLACED)], {}, ExitCode.DONE, id="placed on the second node"),
        pytest.param([copy(REFUSED)], {}, ExitCode.CANNOT_PLACE, id="refused"),
        pytest.param([copy(AWAY, AWAY)], {}, ExitCode.UNREACHABLE, id="nobody could be reached"),
        pytest.param([copy(AWAY, REFUSED)], {}, ExitCode.CANNOT_PLACE, id="one away, one refused"),
        pytest.param([copy(DENIED)], {}, ExitCode.REFUSED, id="denied by the gate"),
        pytest.param([copy(PLACED), copy(REFUSED)], {}, ExitCode.PARTIAL, id="some of several"),
        pytest.param(
            [copy(PLACED), copy(PLACED, name="b")], late("b"), ExitCode.PARTIAL, id="one of two up"
        ),
        pytest.param(
            [copy(PLACED), copy(LOST), copy(REFUSED)],
            {},
            ExitCode.INDETERMINATE,
            id="what nobody knows is said before what was done in part",
        ),
        pytest.param(
            [copy(REFUSED), copy(REFUSED)], {}, ExitCode.CANNOT_PLACE, id="none of several"
        ),
        pytest.param(
            [copy(REFUSED), copy(AWAY)], {}, ExitCode.CANNOT_PLACE, id="none, for two reasons"
        ),
        pytest.param(
            [copy(PLACED), copy(REFUSED, name="b")],
            late("web"),
            ExitCode.PARTIAL,
            id="one not up, one nowhere",
        ),
    ],
)
def test_one_number_says_how_it_went(
    copies: list[Dispatched], waits: dict[str, Awaited], code: ExitCode
) -> None:
    report = Report("web", dry_run=False, decision=None, document=None, copies=tuple(copies))

    assert exit_code(report, waits) is code


def test_what_is_unsettled_is_said_to_be() -> None:
    report = Report("web", True, None, None, standing=(standing(State.PLACED, unsettled=True),))

    (line,) = lines(report, {}, why=(), everything=False)
    assert line == "web is unsettled on elm: that is finished before anything else"
