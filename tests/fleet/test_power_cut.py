"""The power of this machine is cut while a node goes on: what was intended is still known."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fleet.dies import DIED, Dying
from tests.fleet.disk import Disk, disk
from tests.fleet.field import ELM, Fleet, fleet_in, variables
from tests.fleet.sample import SEED, TIMEOUT_S, sample
from tests.fleet.test_killed import PLACE, STORIES, Story, unload, whole
from wlctl.errors import LedgerForked, LedgerRolledBack
from wlctl.host.node import connect
from wlctl.model.actions import Unloaded, UnloadRequest
from wlctl.model.ids import InstallationId, InstanceId

pytestmark = pytest.mark.timeout(TIMEOUT_S)

CASES = 3

TOLD = ("a place on the first candidate", "a stop", "an unload", "a start")


@dataclass(frozen=True)
class Machine:
    """This side: a ledger on a disk of its own, and what runs the program on it."""

    disk: Disk
    fleet: Fleet
    dying: Dying


@contextmanager
def machine_in(directory: Path) -> Iterator[Machine]:
    with disk(directory) as its_disk:
        home = its_disk.point / "home"
        home.mkdir(mode=0o700)
        with fleet_in(directory, home) as fleet:
            dying = Dying(directory, variables(fleet))
            fleet.place()  # from then on its files are on the node, whichever test comes first
            unload(fleet)
            try:
                os.sync()
                yield Machine(its_disk, fleet, dying)
            finally:
                dying.close()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with machine_in(tmp_path_factory.mktemp("power")) as one:
        yield one


@pytest.mark.parametrize("name", TOLD)
def test_a_power_cut_at_any_moment_loses_nothing_that_was_acted_on(
    machine: Machine, name: str
) -> None:
    story, fleet = STORIES[name], machine.fleet
    moments = whole(fleet, machine.dying, story)

    for number in sample(range(1, len(moments) + 1), CASES, salt=name):
        where = f"cut at {number}, {moments[number - 1]} (WLCTL_SEED={SEED})"
        fleet.ready()
        story.prepare(fleet)
        killed = machine.dying.run(*story.argv, die_at=number)
        machine.disk.cut_power()
        assert killed.status == DIED, f"{where}: {killed}"

        try:
            story.recover(fleet)
            fleet.assert_agreement()
            unload(fleet)
            fleet.assert_empty()
        except BaseException as failure:
            failure.add_note(where)
            raise


def acted_on(machine: Machine, *, synchronous: str = "") -> None:
    """Have the power cut when a node has acted and nobody here has written down what it said."""
    story = Story(PLACE, Fleet.ready, unload)
    moments = whole(machine.fleet, machine.dying, story)
    moment = moments.index("after place") + 1
    killed = machine.dying.run(*PLACE, die_at=moment, synchronous=synchronous)
    machine.disk.cut_power()
    assert killed.status == DIED
    assert machine.fleet.copies() == [ELM]


def test_what_a_node_has_acted_on_is_known_after_a_power_cut(machine: Machine) -> None:
    acted_on(machine)

    assert [hold.node for hold in machine.fleet.holds()] == [ELM]
    machine.fleet.place()
    unload(machine.fleet)
    machine.fleet.assert_empty()


def test_without_syncs_the_same_cut_loses_the_intent_so_these_tests_can_fail(
    tmp_path: Path,
) -> None:
    """On a machine of its own: its node was told of what is lost, and says so from then on."""
    with machine_in(tmp_path) as machine:
        acted_on(machine, synchronous="OFF")

        fleet = machine.fleet
        assert fleet.holds() == (), "it was committed, and nobody here knows of it any more"
        with pytest.raises((LedgerForked, LedgerRolledBack)):
            fleet.place()
        (path,) = fleet.elm.instances()
        installation, _, instance = path.rsplit("/", 2)
        end(fleet, installation.rsplit("/", 1)[1], instance)
        fleet.assert_empty()


def end(fleet: Fleet, installation: str, instance: str) -> None:
    """Take an orphan from its node, which alone knows of it."""
    keys = [fleet.elm.client_key]
    with connect(fleet.elm.address, keys=keys, nonce=lambda: os.urandom(16).hex()) as session:
        whose, which = InstallationId(installation), InstanceId(instance)
        ended = session.unload(UnloadRequest(whose, which, 99, 1, grace_ms=0, purge=True))
    assert isinstance(ended, Unloaded)
