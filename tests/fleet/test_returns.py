"""Real nodes that come back: started anew, without their state, or with it again."""

from pathlib import Path

import pytest

from tests.fleet.sample import TIMEOUT_S
from tests.fleet.test_partitions import DEAD_AFTER_S, NAMES, Field, in_field
from wlctl.flows import packages
from wlctl.flows.deciding import Order
from wlctl.flows.place import place
from wlctl.flows.signing import KeyChoice
from wlctl.ledger import alerts, instances
from wlctl.model.actions import UnloadRequest
from wlctl.model.alert import AlertKind
from wlctl.model.instance import Instance, State

pytestmark = pytest.mark.timeout(TIMEOUT_S)


def open_alerts(field: Field) -> set[tuple[AlertKind, str]]:
    with field.runtime() as rt, rt.ledger.read() as tx:
        return {(kept.alert.kind, kept.alert.subject) for kept in alerts.ls(tx)}


def is_unloaded(field: Field, instance: Instance) -> bool:
    with field.runtime() as rt, rt.ledger.read() as tx:
        return instances.get(tx, instance.id).state is State.UNLOADED


def place_job(field: Field) -> None:
    """Place a job that would beat for ever, on the node of the service."""
    directory = field.package.with_name("job")
    (directory / "bin").mkdir(parents=True)
    for name in ("bin/run", "workload.toml"):
        text = (field.package / name).read_text("utf-8")
        text = text.replace('kind = "service"', 'kind = "job"').replace('"beat"', '"job"')
        (directory / name).write_text(text, encoding="utf-8")
    (directory / "bin/run").chmod(0o755)
    with field.runtime() as rt:
        packages.build(directory)
        packages.sign(rt, directory, KeyChoice(field.home / "signer"))
        done = place(rt, Order(package=directory, name="job", prefer=(NAMES[0],)))
        assert done.copies[0].is_placed


def test_after_a_reboot_a_service_is_started_there_again_and_a_job_is_not_run_again(
    tmp_path: Path,
) -> None:
    def story(field: Field) -> None:
        web = field.place(prefer=(NAMES[0],))
        place_job(field)
        assert field.instance("job").node == web.node
        field.passes(1)

        field.machines[web.node].reboot()
        field.passes_until(lambda: field.instance("job").state is State.FAILED)
        field.passes_until(lambda: field.instance().state is State.RUNNING)

        again = field.instance()
        assert (again.id, again.node, again.state) == (web.id, web.node, State.RUNNING)
        assert again.generation == 2
        assert field.runs(again)
        job = field.instance("job")
        assert (job.state, job.generation) == (State.FAILED, 1)
        assert open_alerts(field) == {(AlertKind.HELD, "job")}
        assert field.go_over().is_quiet
        field.unload("job")
        field.unload()

    in_field(tmp_path, story)


def test_a_node_whose_state_is_gone_is_held_and_said_and_nothing_runs_twice(
    tmp_path: Path,
) -> None:
    def story(field: Field) -> None:
        web = field.place(prefer=(NAMES[0],))
        field.passes(1)
        machine = field.machines[web.node]
        aside = machine.state.with_name("aside")
        machine.state.rename(aside)

        field.passes_until(lambda: bool(open_alerts(field)))
        field.passes(3 * DEAD_AFTER_S)

        assert field.runs(web)
        assert field.instance().id == web.id, "no second copy"
        assert open_alerts(field) == {(AlertKind.TWO_MACHINES, web.node)}
        if machine.state.exists():
            machine.state.rename(machine.state.with_name("empty"))
        aside.rename(machine.state)
        field.await_whole()
        assert field.instance().id == web.id
        field.unload()

    in_field(tmp_path, story)


def test_what_is_taken_away_on_the_node_by_hand_stays_away(tmp_path: Path) -> None:
    """By hand is the node's own unload, asked for by another one than the ledger."""

    def story(field: Field) -> None:
        web = field.place(prefer=(NAMES[0],))
        field.passes(1)
        with field.runtime() as rt, rt.connect(field.machines[web.node].address) as session:
            session.unload(UnloadRequest(rt.ledger.installation, web.id, number=99, generation=1))

        field.passes_until(lambda: is_unloaded(field, web))

        assert not field.runs(web)

    in_field(tmp_path, story)
