"""A node is emptied: what can be moved is, the rest is said or stopped, and can be resumed."""

import itertools
from pathlib import Path

import pytest

from tests.flows.conftest import write_package
from tests.flows.setting import Setting
from wlctl.errors import UnknownName
from wlctl.flows import draining, node_changes, packages
from wlctl.flows.draining import Drained
from wlctl.flows.reconcile import Pass, reconcile
from wlctl.flows.signing import KeyChoice
from wlctl.model.alert import AlertKind
from wlctl.model.ids import NodeName
from wlctl.model.instance import State

ELM = NodeName("elm")


@pytest.fixture
def fleet(setting: Setting) -> Setting:
    """Two nodes; on one of them a copy that may go anywhere, and one that was ordered for it."""
    setting.clock = itertools.count(next(setting.clock), 50)
    setting.busy_timeout_s = 10
    for name in ("elm", "oak"):
        setting.add_node(name)
    setting.place(prefer=(ELM,))
    setting.place(name="fixed", pin=ELM)
    return setting


def drain(setting: Setting, **options: bool) -> Drained:
    with setting.runtime() as rt:
        return draining.drain(rt, "elm", **options)  # type: ignore[arg-type] # flags only


def go_over(setting: Setting) -> Pass:
    with setting.runtime() as rt:
        return reconcile(rt)


def where(setting: Setting) -> dict[str, str]:
    names = {setting.instance(name).id: name for name in ("web", "fixed")}
    return {names[iid]: node for node, iid in setting.alive() if iid in names}


def test_what_can_be_moved_is_and_what_cannot_is_left_and_said(fleet: Setting) -> None:
    found = drain(fleet)

    assert where(fleet) == {"web": "oak", "fixed": "elm"}
    assert [(one.instance.name, "ordered for elm alone" in one.why) for one in found.left] == [
        ("fixed", True)
    ]
    assert fleet.node("elm").cordoned


def test_what_cannot_be_moved_is_stopped_when_that_is_asked_for_and_resumed(
    fleet: Setting,
) -> None:
    found = drain(fleet, stop_rest=True)

    assert found.left == ()
    assert where(fleet) == {"web": "oak"}
    raised = [kept.alert.kind for kept in go_over(fleet).raised]
    assert raised == [AlertKind.DRAINED]
    assert go_over(fleet).is_quiet, "it stays stopped"
    with fleet.runtime() as rt:
        node_changes.uncordon(rt, "elm")
        assert [one.name for one in draining.halted(rt, ELM)] == ["fixed"], "what would be started"
        begun = draining.resume(rt, ELM)

    assert [one.instance.name for one in begun] == ["fixed"]
    assert where(fleet) == {"web": "oak", "fixed": "elm"}
    assert [kept.alert.kind for kept in go_over(fleet).closed] == [AlertKind.DRAINED]
    with fleet.runtime() as rt:
        assert draining.halted(rt, ELM) == []
        assert draining.resume(rt, ELM) == []


def test_what_an_operator_stopped_is_not_resumed(fleet: Setting) -> None:
    fleet.stop("fixed")
    drain(fleet, stop_rest=True)

    with fleet.runtime() as rt:
        assert draining.resume(rt, ELM) == []
    assert fleet.instance("fixed").state is State.STOPPED


def test_a_dry_run_says_all_of_it_and_changes_nothing(fleet: Setting) -> None:
    found = drain(fleet, dry_run=True)

    assert [(one.instance.name, one.why == "") for one in found.copies] == [
        ("fixed", False),
        ("web", True),
    ]
    assert where(fleet) == {"web": "elm", "fixed": "elm"}
    assert not fleet.node("elm").cordoned


def test_after_its_deadline_nothing_more_is_begun(fleet: Setting) -> None:
    with fleet.runtime() as rt:
        found = draining.drain(rt, "elm", deadline_s=0.0)

    assert len(found.left) == 2
    assert where(fleet) == {"web": "elm", "fixed": "elm"}
    assert fleet.node("elm").cordoned


def test_a_drain_that_is_typed_again_does_the_rest(fleet: Setting) -> None:
    drain(fleet)
    found = drain(fleet)

    assert [one.instance.name for one in found.copies] == ["fixed"]


def test_a_running_job_is_left_to_finish(setting: Setting, tmp_path: Path) -> None:
    for name in ("elm", "oak"):
        setting.add_node(name)
    job = tmp_path / "job"
    write_package(job, name="job")
    text = (job / "workload.toml").read_text().replace('"service"', '"job"')
    (job / "workload.toml").write_text(text)
    with setting.runtime() as rt:
        packages.build(job)
        packages.sign(rt, job, KeyChoice(setting.key))
    setting.package = job
    setting.place(prefer=(ELM,))

    found = drain(setting)

    assert "is a job" in found.left[0].why
    assert [name for name, _ in setting.alive()] == ["elm"]


def test_an_interval_job_between_its_runs_is_not_run_on_a_drained_node(
    setting: Setting, tmp_path: Path
) -> None:
    setting.clock = itertools.count(next(setting.clock), 50)
    setting.add_node("elm")
    job = tmp_path / "tick"
    write_package(job, name="tick")
    text = (job / "workload.toml").read_text().replace('"service"', '"interval"')
    (job / "workload.toml").write_text(text + '[schedule]\nevery = "1h"\n')
    with setting.runtime() as rt:
        packages.build(job)
        packages.sign(rt, job, KeyChoice(setting.key))
    setting.package = job
    setting.place(name="tick")
    setting.world.nodes["elm"].exit(setting.instance("tick").id, 0)
    go_over(setting)

    assert "is a job" in drain(setting).left[0].why
    assert drain(setting, stop_rest=True).left == ()

    for _ in range(2 * 3600 * 1000 // 50):
        next(setting.clock)
    go_over(setting)
    assert setting.alive() == []
    with setting.runtime() as rt:
        assert [one.instance.name for one in draining.resume(rt, ELM)] == ["tick"]


def test_there_must_be_such_a_node(fleet: Setting) -> None:
    with fleet.runtime() as rt, pytest.raises(UnknownName):
        draining.drain(rt, "nix")
