"""Measuring a node and taking an installation off it, on real nodes of every kind."""

import shutil
import time

import pytest

from tests.host.bench import INSTALLATION, Bench, script, wait_until
from wlctl.model.actions import Cleaned, Measured, NodeFacts, RefusalCode, Refused
from wlctl.model.facts import Provenance
from wlctl.model.ids import InstallationId

SLEEP = script("exec sleep 1000")


def test_a_node_is_measured_quickly_and_nothing_is_left(bench: Bench) -> None:
    node_id = bench.facts.node_id
    before = sorted(path.name for path in bench.node.state.iterdir())
    began_s = time.monotonic()

    measured = bench.session.measure(INSTALLATION)

    assert isinstance(measured, Measured)
    assert time.monotonic() - began_s < 5, "under three seconds, on a machine with nothing else"
    assert measured.node_id == node_id
    ids = {one.id for one in measured.figures}
    assert ids == {"perf.cpu.single", "perf.cpu.all", "perf.memory", "perf.disk.write"}
    for figure in measured.figures:
        value = figure.attrs["value"]
        assert isinstance(value, float)
        assert value > 0
        assert figure.attrs["unit"] == "MiB/s"
        assert figure.provenance is Provenance.MEASURED
    assert sorted(path.name for path in bench.node.state.iterdir()) == before
    wait_until(lambda: not _measuring(bench), "nothing of it runs on")


def _measuring(bench: Bench) -> list[str]:
    words = ("dd if=/dev/zero", "sha256sum")
    return [line for line in bench.node.commands().values() if line.startswith(words)]


ONE = [("dash", "root"), ("bash", "sudo"), ("busybox", "plain")]


@pytest.mark.kinds(ONE)
def test_a_node_that_was_never_looked_at_is_not_measured(bench: Bench) -> None:
    assert bench.facts.node_id  # it was looked at, and what it kept of that is gone
    moved = bench.node.state.rename(bench.node.state.with_name("moved"))

    refused = bench.session.measure(INSTALLATION)

    assert isinstance(refused, Refused)
    assert refused.code is RefusalCode.VERIFY
    moved.rename(bench.node.state)


@pytest.mark.kinds(ONE)
def test_only_what_is_this_installation_s_goes_while_another_one_is_there(bench: Bench) -> None:
    forget_others(bench)
    other = InstallationId("another")
    assert isinstance(bench.session.facts(other), NodeFacts)
    node_id = bench.facts.node_id

    cleaned = bench.session.clean(INSTALLATION, node_id)

    assert isinstance(cleaned, Cleaned)
    assert [path.rpartition("/")[2] for path in cleaned.removed] == [INSTALLATION]
    assert cleaned.kept_for == (other,)
    assert (bench.node.state / "node_id").exists()
    last = bench.session.clean(other, node_id)
    assert isinstance(last, Cleaned)
    assert last.kept_for == ()
    assert not bench.node.state.exists()
    assert not (bench.node.cgroup / "wlctl").exists()


@pytest.mark.kinds(ONE)
def test_cleaning_what_is_clean_is_nothing_to_do(bench: Bench) -> None:
    forget_others(bench)
    node_id = bench.facts.node_id
    assert isinstance(bench.session.clean(INSTALLATION, node_id), Cleaned)

    assert bench.session.clean(INSTALLATION, node_id) == Cleaned((), ())


@pytest.mark.kinds(ONE)
def test_nothing_goes_while_an_instance_is_there(bench: Bench) -> None:
    request = bench.run(SLEEP)

    for ready in (lambda: None, lambda: bench.stop(request, 2)):
        ready()
        refused = bench.session.clean(INSTALLATION, bench.facts.node_id)
        assert isinstance(refused, Refused)
        assert refused.code is RefusalCode.ADMISSION
        assert request.instance in refused.detail


@pytest.mark.kinds(ONE)
def test_nothing_goes_from_another_node(bench: Bench) -> None:
    assert bench.facts.node_id != "f" * 32

    refused = bench.session.clean(INSTALLATION, "f" * 32)

    assert isinstance(refused, Refused)
    assert refused.code is RefusalCode.VERIFY
    assert bench.node.state.exists()


def forget_others(bench: Bench) -> None:
    """Take from the node whatever other tests left in its state directory."""
    if bench.node.state.exists():
        shutil.rmtree(bench.node.state)
