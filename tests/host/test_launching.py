"""A launch that never comes to its leader: it leaves a word, and can be called off meanwhile."""

import shutil
import subprocess
import threading
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.host.bench import Bench, running, script, wait_until
from tests.host.nodes import SHELLS, SshdNode, sshd_nodes
from tests.host.test_settle import settle
from wlctl.host import script as texts
from wlctl.model.actions import Launched, Placed, RefusalCode, Refused, SettleOutcome

pytestmark = [pytest.mark.root, pytest.mark.sshd]

SHELL_WORDS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "ash"]}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("mode", "launch", "word"),
    [
        pytest.param("enter", "gen 1\n", "its launch file is not whole", id="a cut launch file"),
        pytest.param("enter", "gen %0\nend\n", "its launch file is damaged", id="a damaged one"),
        pytest.param(
            "enter", "ctl {at}/ctl\nend\n", "its cgroup {at}/ctl cannot be entered", id="no cgroup"
        ),
        pytest.param(
            "hop",
            "ctl {at}/ctl\nend\n",
            "its cgroup {at}/ctl cannot be entered from its unit",
            id="no cgroup to leave its unit for",
        ),
        pytest.param(
            "enter", "ctl {at}/there\nend\n", "it was closed before it began", id="it was closed"
        ),
        pytest.param("enter", "ctl -\nend\n", "it was closed before it began", id="no fence left"),
        pytest.param("init", "ctl -\nend\n", "it has no namespace of its own", id="no namespace"),
    ],
)
def test_a_launcher_that_gives_up_says_why(
    tmp_path: Path, shell: str, mode: str, launch: str, word: str
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "launch").write_text(launch.format(at=quote(str(tmp_path))), encoding="ascii")
    program = tmp_path / "init.sh"
    program.write_text(texts.carried("INIT"), encoding="ascii")

    done = subprocess.run(
        [*SHELL_WORDS[shell], str(program), mode, str(tmp_path)], check=False, timeout=60
    )

    assert done.returncode == 125
    assert (tmp_path / "err").read_text("ascii") == f"{word.format(at=tmp_path)}\n"


def stand_still(node: SshdNode) -> None:
    """Have what makes a run's namespaces there stand still, and nothing else."""
    real, slow = node.directory / "unshare", node.directory / "slow"
    shutil.copy("/usr/bin/unshare", real)
    slow.write_text(
        f'#!/bin/sh\ncase "$*" in *init.sh*) exec sleep 1000 ;; esac\nexec {real} "$@"\n', "ascii"
    )
    slow.chmod(0o755)
    inside = ["nsenter", "-t", str(node.insider()), "-m"]
    subprocess.run([*inside, "mount", "--bind", str(slow), "/usr/bin/unshare"], check=True)


def test_a_place_that_waits_for_its_leader_is_called_off_at_once() -> None:
    with sshd_nodes(1) as (node,):
        bench, other = Bench(node), Bench(node)
        request = bench.request(script("exec sleep 1000"))
        stand_still(node)
        answers: list[Placed | Launched | Refused] = []
        place = threading.Thread(target=lambda: answers.append(bench.session.place(request)))
        place.start()
        wait_until((bench.instance_dir(request) / "g1/open").exists, "it to be launched")

        settled = settle(other, request)

        place.join(20)
        (answer,) = answers
        assert settled.outcome is SettleOutcome.CANCELLED
        assert isinstance(answer, Refused)
        assert answer.code in {RefusalCode.CANCELLED, RefusalCode.SUPERSEDED}
        assert running(node) == []
        assert bench.left_over() == []
        bench.session.close()
        other.session.close()
