"""Whether a copy is proven gone: asked anew, and never less than was known."""

import pytest

from tests.flows.setting import Setting
from tests.world import FakeNode
from wlctl.cli import proving as cli
from wlctl.flows import proving, starting
from wlctl.flows.proving import Proved
from wlctl.ledger.generations import DISPROVEN, PROVEN, UNPROVEN
from wlctl.model.actions import RefusalCode, Refused


@pytest.fixture
def elm(setting: Setting) -> FakeNode:
    setting.add_node("elm")
    setting.place()
    return setting.world.nodes["elm"]


def proved(setting: Setting, *, stored: bool = False) -> Proved:
    with setting.runtime() as rt:
        return proving.prove(rt, setting.instance("web"), stored=stored)


def words(found: Proved) -> list[tuple[int, str, bool]]:
    return [(run.number, run.judgement, run.is_stored) for run in found.runs]


def said(found: Proved) -> tuple[int, str]:
    assert cli._json(found)["judgement"] == found.judgement
    first, *_rest = cli._lines(found, 0)  # all of them, also where a run has nothing to tell
    return cli._exit_code(found), first


def test_what_runs_is_seen_to_run_and_left_to_run(setting: Setting, elm: FakeNode) -> None:
    before = setting.events("workload.*")

    found = proved(setting)

    assert words(found) == [(1, DISPROVEN, False)]
    assert said(found) == (1, "web on elm runs")
    assert elm.alive == {setting.instance("web").id: 1}
    assert setting.events("workload.*") == before


def test_what_ended_by_itself_is_not_proven_gone_before_it_is_closed(
    setting: Setting, elm: FakeNode
) -> None:
    elm.exit(setting.instance("web").id, 0)

    found = proved(setting)

    assert words(found) == [(1, UNPROVEN, False)]
    assert found.runs[0].evidence is not None
    assert "not closed" in found.runs[0].evidence["because"]
    assert said(found) == (5, "web on elm is not proven gone")


def test_what_was_proven_once_stays_so_with_its_evidence(setting: Setting, elm: FakeNode) -> None:
    setting.stop("web")
    elm.runs.clear()

    found = proved(setting)

    assert words(found) == [(1, PROVEN, True)]
    assert found.detail.endswith("(unknown_instance)")
    assert said(found)[0] == 0
    assert found.runs[0].at_ms is not None


def test_only_what_is_seen_alive_is_more_than_a_proof(setting: Setting, elm: FakeNode) -> None:
    iid = setting.instance("web").id
    setting.stop("web")
    elm.alive[iid] = 1

    assert words(proved(setting)) == [(1, DISPROVEN, False)]


def test_of_several_runs_the_worst_one_counts(setting: Setting, elm: FakeNode) -> None:
    setting.stop("web")
    with setting.runtime() as rt:
        from wlctl.flows import starting

        starting.start(rt, "web")

    found = proved(setting)

    assert words(found) == [(1, PROVEN, True), (2, DISPROVEN, False)]
    assert found.judgement == DISPROVEN
    assert elm.alive


def test_a_node_that_cannot_be_asked_proves_nothing(setting: Setting, elm: FakeNode) -> None:
    elm.up = False

    found = proved(setting)

    assert words(found) == [(1, UNPROVEN, True)]
    assert said(found) == (9, "web on elm is not proven gone")
    elm.up = True
    elm.node_id = "f" * 32
    assert cli._exit_code(proved(setting)) == 9


def test_stored_asks_nobody(setting: Setting, elm: FakeNode) -> None:
    steps: list[str] = []
    setting.world.hook = lambda step, _moment: steps.append(step)

    found = proved(setting, stored=True)

    assert steps == []
    assert words(found) == [(1, UNPROVEN, True)]
    assert list(cli._lines(found, 0))[1] == "  g1 unproven: nothing was read of it so far"
    assert elm.alive


def test_what_was_never_started_has_nothing_to_prove(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place(start=False)

    assert said(proved(setting)) == (
        0,
        "web on elm was never started, so there is nothing to prove",
    )


def test_the_lines_say_what_was_read(setting: Setting, elm: FakeNode) -> None:
    setting.stop("web")
    assert elm.alive == {}
    _, run, read = cli._lines(proved(setting, stored=True), setting.instance("web").since_ms)

    assert run.startswith("  g1 proven, ")
    assert read == (
        "     confined yes (isolated), closed yes, leader gone, init gone, cgroups removed and"
        " removed, uid 61200: 0 left, stopped, status 143 (signal 15)"
    )


def test_what_its_node_refused_to_start_never_was_and_that_is_its_proof(
    setting: Setting, elm: FakeNode
) -> None:
    setting.stop("web")
    elm.refusal = Refused(RefusalCode.RUNTIME, "no curl")
    with setting.runtime() as rt:
        starting.start(rt, "web")

    found = proved(setting, stored=True)

    assert words(found) == [(1, PROVEN, True), (2, PROVEN, True)]
    assert said(found) == (0, "web on elm is proven gone: no process of it is left")
    assert list(cli._lines(found, 0))[-1].endswith(": never launched: runtime")


def test_of_what_its_node_has_forgotten_that_is_said_and_no_more(
    setting: Setting, elm: FakeNode
) -> None:
    iid = setting.instance("web").id
    elm.begin_again(iid)
    elm.prune(iid, 1)

    found = proved(setting)

    assert words(found)[0] == (1, PROVEN, False)
    assert said(found) == (1, "web on elm runs")
