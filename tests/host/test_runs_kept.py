"""A copy that is started for years leaves so many runs on its node, and its newest ones."""

import shutil

import pytest

from tests.host.bench import Bench, script
from wlctl.lifecycle.proof import judge
from wlctl.model.actions import Launched
from wlctl.model.generation import Proven

KEPT = 100
"""As `start.sh` has it."""


@pytest.mark.kinds([("dash", "root"), ("busybox", "root")])
def test_the_newest_runs_stay_and_of_the_others_only_that_they_are_gone(bench: Bench) -> None:
    request = bench.run(script("exec sleep 1000"))
    bench.stop(request, 2)
    home = bench.instance_dir(request)
    for number in range(2, KEPT + 10):
        shutil.copytree(home / "g1", home / f"g{number}", symlinks=True)
        proof = home / f"g{number}" / "proof"
        proof.write_text(proof.read_text().replace("generation 1 ", f"generation {number} ", 1))
    (home / "g3" / "ended").unlink()  # not proven gone, as far as the node knows
    (home / "gone").mkdir()
    (home / "gone" / "left").touch()  # by a cut

    refused = bench.start(request, 3, KEPT + 10)
    assert not isinstance(refused, Launched), "g3 may still run"
    (home / "g3" / "ended").touch()
    assert isinstance(bench.start(request, 4, KEPT + 11), Launched)

    left = sorted(int(path.name[1:]) for path in home.glob("g[0-9]*"))
    newest = KEPT + 11
    assert left[-1] == newest
    assert len(left) == KEPT
    assert not (home / "gone").exists()
    status = bench.status(request)
    assert status is not None
    assert (status.current, status.pruned) == (newest, left[0] - 1)
    assert [one.number for one in status.generations] == left

    ended = bench.stop(request, 5, generation=newest)
    assert ended.pruned == left[0] - 1
    assert isinstance(judge(ended.readings[-1]), Proven)
