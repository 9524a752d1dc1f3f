"""A port that somebody else took between the moment it was given and the moment it was bound."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import Bench, Work, wait_until
from wlctl.model.actions import InstanceStatus, PlaceRequest
from wlctl.model.generation import Liveliness
from wlctl.model.package import RestartPolicy

ROOTS = [("dash", "root"), ("bash", "sudo"), ("busybox", "root")]
ONE = [("dash", "root")]

POLICY = RestartPolicy(max_restarts=3, window_ms=600_000, backoff_base_ms=20, backoff_max_ms=100)

BINDS = b"""import os, pathlib, socket, time
run = pathlib.Path(os.environ["WLCTL_RUN_DIR"])
(run / "waits").touch()
while os.environ["WLCTL_GENERATION"] == "1" and not (run / "go").exists():
    time.sleep(0.02)
bound = socket.create_server(("127.0.0.1", int(os.environ["PORT"])))
print("listens on", os.environ["PORT"], flush=True)
time.sleep(1000)
"""

WORK = Work(("python3", "run"), files={"run": BINDS}, more=("port http auto",))


def run_dir(bench: Bench, request: PlaceRequest) -> Path:
    spec = (bench.instance_dir(request) / "spec").read_text("ascii")
    (short,) = [line[6:] for line in spec.splitlines() if line.startswith("short ")]
    return Path(f"/proc/{bench.node.insider()}/root/run/wlctl/{short}/g1")


@contextmanager
def taken_before_it_binds(bench: Bench, request: PlaceRequest) -> Iterator[int]:
    """Listen on the port that was given to a run, and only then let it go on."""
    port = dict(bench.place(request).ports)["http"]
    run = run_dir(bench, request)
    wait_until((run / "waits").exists, "it to begin")
    with socket.create_server(("127.0.0.1", port)):
        (run / "go").touch()
        yield port


def status(bench: Bench, request: PlaceRequest) -> InstanceStatus:
    found = bench.status(request)
    assert found is not None
    return found


@pytest.mark.kinds(ROOTS)
def test_what_fails_to_bind_is_begun_again_with_another_port(bench: Bench) -> None:
    request = bench.request(WORK, restart=POLICY)

    with taken_before_it_binds(bench, request) as port:
        log = bench.await_log(request, "listens on ")

    another = int(log.split()[-1])
    assert another != port
    found = status(bench, request)
    assert [run.number for run in found.generations] == [1, 2]
    second = found.generations[-1]
    assert second.launch is not None
    assert dict(second.launch.ports) == {"http": another}, "as is told to whoever asks"


@pytest.mark.kinds(ONE)
def test_what_is_never_begun_again_is_not_for_a_port_either(bench: Bench) -> None:
    request = bench.request(WORK, restart=replace(POLICY, max_restarts=0))

    with taken_before_it_binds(bench, request):
        wait_until(lambda: status(bench, request).generations[-1].exit_status == 1, "its end")
        wait_until(
            lambda: not any("/sup.sh" in text for text in bench.node.commands().values()),
            "the end of its supervisor",
        )

    (run,) = status(bench, request).generations
    assert run.leader is Liveliness.GONE
