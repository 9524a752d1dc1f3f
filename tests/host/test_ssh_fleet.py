"""A hundred nodes at once: each fails alone, none waits for another, and nothing is left."""

import contextlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, nonce, wait_until
from tests.host.nodes import SshdNode, sshd_nodes
from wlctl.errors import BannerTimeout, ConnectFailed, ConnectTimeout, HostKeyChanged, WlctlError
from wlctl.flows import fanout
from wlctl.host.node import connect
from wlctl.host.transport import Deadlines
from wlctl.model.actions import NodeFacts
from wlctl.model.node import Address

pytestmark = [pytest.mark.root, pytest.mark.sshd, pytest.mark.slow]

COUNT = 100

PATIENT = Deadlines(connect_s=4.0, banner_s=4.0, auth_s=30.0)
"""What is lost is given up after 4 s; on a busy machine a login may take its time."""


@pytest.fixture(scope="module")
def fleet() -> Iterator[list[SshdNode]]:
    with sshd_nodes(COUNT) as nodes:
        yield nodes
        made = [node.cgroup for node in nodes]
    assert [path.name for path in made if path.exists()] == []


@contextlib.contextmanager
def lost_places() -> Iterator[tuple[int, int]]:
    """A port whose queue is full, as behind a firewall, and one that accepts and says nothing."""
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.socket())
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(2):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        mute = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        yield full.getsockname()[1], mute.getsockname()[1]


def ask(node: SshdNode, address: Address) -> NodeFacts | WlctlError:
    try:
        with connect(address, keys=[node.client_key], nonce=nonce, deadlines=PATIENT) as session:
            found = session.facts(INSTALLATION)
    except WlctlError as failure:
        return failure
    assert isinstance(found, NodeFacts)
    return found


def test_a_hundred_nodes_are_probed_though_some_are_lost(fleet: list[SshdNode]) -> None:
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    threads = threading.active_count()
    with lost_places() as (full, mute):
        here = replace(fleet[0].address, host="127.0.0.1")
        wrong: dict[int, tuple[Address, type[WlctlError]]] = {
            0: (replace(here, port=full), ConnectTimeout),
            1: (replace(here, port=mute), BannerTimeout),
            2: (replace(here, port=1), ConnectFailed),
            50: (replace(fleet[50].address, host_key=fleet[51].address.host_key), HostKeyChanged),
            **{index: (replace(here, port=mute), BannerTimeout) for index in range(3, 13)},
        }
        places = [
            (node, wrong[index][0] if index in wrong else node.address)
            for index, node in enumerate(fleet)
        ]
        answers = dict(fanout.each(places, lambda place: ask(*place)))

    for index, answer in answers.items():
        assert isinstance(answer, wrong[index][1] if index in wrong else NodeFacts), answer
    assert len(answers) == COUNT
    identities = [answer.node_id for answer in answers.values() if isinstance(answer, NodeFacts)]
    assert len(set(identities)) == COUNT - len(wrong), "each is a machine of its own"
    wait_until(lambda: threading.active_count() <= threads, "the end of every thread")
    wait_until(
        lambda: len(list(Path("/proc/self/fd").iterdir())) <= descriptors, "every descriptor closed"
    )
    wait_until(lambda: not any(node.commands() for node in fleet), "the end of every action")


PROGRAM = r"""
import os, sys, time
from wlctl.flows import fanout

def work(item):
    os.write(1, b"begun\n")  # in one piece: `print` writes the end of the line by itself
    time.sleep(60)

try:
    for _ in fanout.each(range(20), work, width=3, patience_s=30):
        pass
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_an_interrupt_ends_it_at_once() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for _ in range(3):
            assert child.stdout.readline() == b"begun\n"
        started_at_s = time.monotonic()

        child.send_signal(signal.SIGINT)

        assert child.wait(10) == 130
        assert time.monotonic() - started_at_s < 5
