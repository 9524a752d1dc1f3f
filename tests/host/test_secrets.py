"""Secrets: where they lie, who can read them, where they must not be, and when they go."""

import contextlib
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import Bench, script
from wlctl.model.actions import Launched, RefusalCode, Refused, StartRequest

pytestmark = [pytest.mark.root, pytest.mark.sshd]

MARK = b"s3ntinel"
SENTINEL = "s3ntinel-$(touch /tmp/no) \"quoted\" 'é' %41\nsecond line"

READ = script(
    'cat "$DB_PASSWORD_FILE"; echo; ls -l "$DB_PASSWORD_FILE"; echo "file $DB_PASSWORD_FILE";'
    "echo up; exec sleep 1000",
    more=("secret DB_PASSWORD", "secret API_KEY"),
)
VALUES = (("DB_PASSWORD", SENTINEL), ("API_KEY", "k"))
ROOT = [("dash", "root"), ("bash", "sudo"), ("busybox", "root")]


@pytest.mark.kinds(ROOT)
def test_a_secret_is_a_file_that_the_instance_alone_can_read(bench: Bench) -> None:
    request = bench.run(READ, secrets=VALUES)

    log = bench.await_log(request, "up")

    assert log.startswith(SENTINEL), "byte for byte, whatever a shell would make of it"
    assert "-r--------" in log
    (path,) = [line.split()[1] for line in log.splitlines() if line.startswith("file ")]
    assert path.endswith("/g1/secrets/DB_PASSWORD")


@pytest.mark.kinds(ROOT)
def test_no_command_line_and_no_file_on_a_disk_ever_has_a_secret(bench: Bench) -> None:
    leaks: list[bytes] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            for pid in bench.node.pids():
                with contextlib.suppress(OSError):
                    leaks.extend(
                        text
                        for kind in ("cmdline", "environ")
                        if MARK in (text := Path(f"/proc/{pid}/{kind}").read_bytes())
                    )

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        request = bench.run(replace(READ, args="none"), secrets=VALUES)
        bench.await_log(request, "up")
    finally:
        done.set()
        watcher.join()

    assert leaks == []
    files = [Path(below, name) for below, _, names in os.walk(bench.node.state) for name in names]
    # what it prints itself is its own affair
    on_disk = [
        path for path in files if path.is_file() and path.name != "out" and "logs" not in path.parts
    ]
    assert on_disk
    assert [path for path in on_disk if MARK in path.read_bytes()] == []


def secrets_there(bench: Bench) -> list[Path]:
    """Find every secret that lies in the node's `/run`."""
    root = Path(f"/proc/{bench.node.pids()[0]}/root/run/wlctl")
    return [path for path in root.glob("*/g*/secrets/*") if path.is_file()]


@pytest.mark.kinds(ROOT)
def test_a_secret_goes_when_the_end_is_asked_for_and_is_sent_anew_for_the_next_run(
    bench: Bench,
) -> None:
    request = bench.run(READ, secrets=VALUES)
    bench.await_log(request, "up")
    assert len(secrets_there(bench)) == 2

    bench.stop(request)
    assert secrets_there(bench) == []

    again = StartRequest(
        installation=request.installation,
        instance=request.instance,
        number=3,
        generation=2,
        fence=2,
        package=request.package,
        deadline_ms=request.deadline_ms,
    )
    without = bench.session.start(again)
    assert isinstance(without, Refused)
    assert without.code is RefusalCode.SECRET_UNAVAILABLE
    other = replace(again, number=4, generation=3, secrets=(("DB_PASSWORD", "new"), VALUES[1]))
    assert isinstance(bench.session.start(other), Launched)
    assert bench.await_log(request, "up").startswith("new\n")


LOOK = script(
    'look() { [ -e "$DB_PASSWORD_FILE" ] && echo it is there || echo it is gone; }\n'
    "trap 'look; exit 0' TERM; look; echo up; while :; do sleep 0.1; done",
    more=("secret DB_PASSWORD",),
)


@pytest.mark.kinds(ROOT)
def test_a_secret_goes_before_the_run_is_asked_to_end(bench: Bench) -> None:
    request = bench.run(LOOK, secrets=VALUES[:1])
    assert bench.await_log(request, "up").startswith("it is there")

    bench.stop(request, grace_ms=5_000)

    assert "it is gone" in bench.log(request)


@pytest.mark.kinds(ROOT)
@pytest.mark.parametrize("sent", [(), (("API_KEY", "k"),)], ids=["none", "another"])
def test_a_secret_that_was_not_sent_is_a_refusal_that_leaves_nothing(
    bench: Bench, sent: tuple[tuple[str, str], ...]
) -> None:
    refused = bench.refused(bench.request(READ, secrets=sent))

    assert refused == Refused(RefusalCode.SECRET_UNAVAILABLE, "DB_PASSWORD was not sent")
    assert bench.left_over() == []


@pytest.mark.kinds([("dash", "plain")])
def test_a_login_that_cannot_confine_is_given_no_secret(bench: Bench) -> None:
    refused = bench.refused(bench.request(READ, secrets=VALUES))

    assert refused.code is RefusalCode.SECRET_UNAVAILABLE
    assert bench.left_over() == []
