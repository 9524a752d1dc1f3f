"""Secrets: where they lie, who can read them, where they must not be, and when they go."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.bench import Bench, script
from wlctl.model.actions import Launched, PlaceRequest, RefusalCode, Refused, StartRequest

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


def start_of(
    request: PlaceRequest, *, number: int, secrets: tuple[tuple[str, str], ...] = ()
) -> StartRequest:
    """A start of what was placed, as the run after the one before."""
    return StartRequest(
        installation=request.installation,
        instance=request.instance,
        number=number,
        generation=number - 1,
        fence=number - 1,
        package=request.package,
        deadline_ms=request.deadline_ms,
        secrets=secrets,
    )


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

    again = start_of(request, number=3)
    without = bench.session.start(again)
    assert isinstance(without, Refused)
    assert without.code is RefusalCode.SECRET_UNAVAILABLE
    other = replace(again, number=4, generation=3, secrets=(("DB_PASSWORD", "new"), VALUES[1]))
    assert isinstance(bench.session.start(other), Launched)
    assert bench.await_log(request, "up").startswith("new\n")


@contextlib.contextmanager
def not_a_tmpfs(bench: Bench, *below: str) -> Iterator[Path]:
    """Put another kind of file system where the node keeps what belongs to runs."""
    inside = "/".join(("/run/wlctl", *below))
    enter = ["nsenter", "-t", str(bench.node.insider()), "-p", "-m"]
    subprocess.run([*enter, "mkdir", "-p", inside], check=True)
    # one that every machine has, and that needs no disk
    subprocess.run([*enter, "mount", "-t", "ramfs", "ramfs", inside], check=True)
    try:
        yield Path(f"/proc/{bench.node.insider()}/root{inside}")
    finally:
        subprocess.run([*enter, "umount", "-l", inside], check=True)


@pytest.mark.kinds(ROOT)
def test_a_secret_is_kept_nowhere_but_on_a_tmpfs(bench: Bench) -> None:
    with not_a_tmpfs(bench) as run:
        refused = bench.refused(bench.request(READ, secrets=VALUES))
        bench.asked_nothing()

        assert refused == Refused(
            RefusalCode.SECRET_UNAVAILABLE, "/run/wlctl is no tmpfs that can be written"
        )
        assert list(run.iterdir()) == []
        assert bench.left_over() == []

        bench.run(script("exec sleep 1000"))  # what needs none runs there
        bench.clear()


@pytest.mark.kinds(ROOT)
def test_a_start_where_there_is_no_tmpfs_any_more_is_refused_and_leaves_no_secret(
    bench: Bench,
) -> None:
    request = bench.run(READ, secrets=VALUES)
    bench.await_log(request, "up")
    bench.stop(request)
    again = start_of(request, number=3, secrets=VALUES)

    with not_a_tmpfs(bench) as run:
        refused = bench.session.start(again)

        assert isinstance(refused, Refused)
        assert refused.code is RefusalCode.SECRET_UNAVAILABLE
        assert [path.name for path in run.rglob("*") if path.name in ("g2", "secrets")] == []
    assert secrets_there(bench) == []

    later = replace(again, number=4, generation=3)
    assert isinstance(bench.session.start(later), Launched)


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
