"""People are told of what is new by a real program and a real receiver, and no pass fails by it."""

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.flows.setting import Setting, TestRuntime, settings_for
from wlctl.config.alerting import Alerting
from wlctl.config.secrets import SecretSource
from wlctl.errors import UnknownName
from wlctl.flows import alerting, doctor, notify
from wlctl.flows.doctor import Health
from wlctl.ledger import alerts
from wlctl.lifecycle.telling import BURST, LISTED_MAX
from wlctl.model.alert import Alert, AlertKind, Channel

DEAD = Alert(AlertKind.NODE_DEAD, "elm", "no answer\x1b[2J\nfor long")
HELD = Alert(AlertKind.HELD, "web", "it failed 3 times")
TOKEN = "s3ntinel-token"


@contextmanager
def telling(setting: Setting, told: Alerting) -> Iterator[TestRuntime]:
    known = replace(settings_for(setting.home), alerts=told)
    rt = TestRuntime(known, setting.world, setting.clock)
    try:
        yield rt
    finally:
        rt.ledger.close()


def script(tmp_path: Path, body: str) -> Alerting:
    """Write a hook; what it was told goes to the file `told`, a line a message."""
    path = tmp_path / "hook"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return Alerting(command=(str(path), str(tmp_path / "told")))


KEEP = 'cat >>"$1"; echo >>"$1"'


def messages(tmp_path: Path) -> list[dict[str, Any]]:
    path = tmp_path / "told"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def channels(rt: TestRuntime) -> dict[str, Channel]:
    with rt.ledger.read() as tx:
        return alerts.channels(tx)


class Receiver(ThreadingHTTPServer):
    """A web hook on loopback.

    Attributes:
        got: Path and body of each request.
        status: What it answers.
        stops: It answers nothing until this is set.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Hook)
        self.got: list[tuple[str, dict[str, Any]]] = []
        self.status = 200
        self.stops: threading.Event | None = None


class Hook(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, json.loads(body)))
        if self.server.stops is not None:
            self.server.stops.wait(60)
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
        return


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def by_url(tmp_path: Path, url: str) -> Alerting:
    """Say where a URL is: in a file that nobody else can read."""
    path = tmp_path / "url"
    path.write_text(f"{url}\n")
    path.chmod(0o600)
    return Alerting(urls=MappingProxyType({"chat": SecretSource("here", file=str(path))}))


def test_a_command_is_told_of_each_alert_once(setting: Setting, tmp_path: Path) -> None:
    with telling(setting, script(tmp_path, KEEP)) as rt:
        alerting.settle(rt, [DEAD])
        alerting.settle(rt, [DEAD])
        alerting.settle(rt, [DEAD, HELD])
        assert alerting.failing(rt) == []

    first, second = messages(tmp_path)
    assert first["schema"] == "wlctl.alert-message/1"
    assert first["held_back"] == 0
    assert [
        {key: one[key] for key in ("id", "kind", "subject", "reason", "unproven")}
        for one in first["alerts"]
    ] == [
        {
            "id": 1,
            "kind": "node-dead",
            "subject": "elm",
            "reason": DEAD.reason,
            "unproven": False,
        }
    ]
    assert [one["id"] for one in second["alerts"]] == [2]


def test_whoever_was_told_of_an_alert_is_told_once_when_it_is_over(
    setting: Setting, tmp_path: Path, receiver: Receiver
) -> None:
    url = f"json://127.0.0.1:{receiver.server_port}/"
    both = replace(by_url(tmp_path, url), command=script(tmp_path, KEEP).command)
    with telling(setting, both) as rt:
        alerting.settle(rt, [DEAD, HELD])
        alerting.settle(rt, [HELD])
        alerting.settle(rt, [HELD])
        alerting.settle(rt, [])

    _, first, second = messages(tmp_path)
    assert [(one["id"], one["reason"]) for one in first["closed"]] == [(2, DEAD.reason)]
    assert first["closed"][0]["raised_at"] < first["closed"][0]["closed_at"]
    assert (first["alerts"], first["held_back"]) == ([], 0)
    assert [one["id"] for one in second["closed"]] == [1]
    assert [body["title"] for _, body in receiver.got[1:]] == [
        "wlctl: over: node-dead elm: no answer\ufffd[2J\ufffdfor long",
        "wlctl: over: held web: it failed 3 times",
    ]


def test_what_could_not_be_told_to_be_over_is_told_by_a_later_pass(
    setting: Setting, tmp_path: Path
) -> None:
    with telling(setting, script(tmp_path, KEEP)) as rt:
        alerting.settle(rt, [DEAD])
    with telling(setting, script(tmp_path, "exit 1")) as rt:
        alerting.settle(rt, [])
    with telling(setting, script(tmp_path, KEEP)) as rt:
        alerting.settle(rt, [HELD])
        alerting.settle(rt, [HELD])

    _, both = messages(tmp_path)
    assert [one["id"] for one in both["closed"]] == [1]
    assert [one["id"] for one in both["alerts"]] == [2]


def test_nobody_is_told_that_something_is_over_who_does_not_want_to_know(
    setting: Setting, tmp_path: Path
) -> None:
    with telling(setting, replace(script(tmp_path, KEEP), closed=False)) as rt:
        alerting.settle(rt, [DEAD])
        alerting.settle(rt, [])
        alerting.settle(rt, [HELD])

    assert [(len(one["alerts"]), one["closed"]) for one in messages(tmp_path)] == [(1, []), (1, [])]


def test_where_nothing_is_new_nothing_is_written(setting: Setting, tmp_path: Path) -> None:
    def rows() -> list[str]:
        conn = sqlite3.connect(setting.home / "ledger.db")
        try:
            return list(conn.iterdump())
        finally:
            conn.close()

    with telling(setting, script(tmp_path, KEEP)) as rt:
        alerting.settle(rt, [DEAD, HELD])
        before = rows()
        alerting.settle(rt, [DEAD, HELD])
        alerting.deliver(rt)
        assert rows() == before


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        pytest.param("exit 3", "exit 3", id="that fails"),
        pytest.param("kill -9 $$", "exit -9", id="that is killed"),
        pytest.param("sleep 600 & sleep 600", "it took longer than 0.5 s", id="that hangs"),
        pytest.param(
            "head -c 3000000 /dev/zero | tr '\\0' '\\377'; echo rubbish >&2; exit 1",
            "exit 1",
            id="that prints garbage",
        ),
    ],
)
def test_a_command_that_cannot_tell_fails_no_pass_and_is_asked_again_by_a_later_one(
    setting: Setting,
    tmp_path: Path,
    body: str,
    outcome: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with pytest.MonkeyPatch.context() as patch, telling(setting, script(tmp_path, body)) as rt:
        if "sleep" in body:
            patch.setattr(alerting, "TIMEOUT_S", 0.5)
        settled = alerting.settle(rt, [DEAD])
        assert [one.alert for one in settled.raised] == [DEAD]
        assert channels(rt)["command"].outcome == outcome
        assert [one.name for one in alerting.failing(rt)] == ["command"]
    assert capfd.readouterr() == ("", "")

    with telling(setting, script(tmp_path, KEEP)) as rt:
        alerting.settle(rt, [DEAD, HELD])
        assert alerting.failing(rt) == []
    assert [one["id"] for one in messages(tmp_path)[0]["alerts"]] == [1, 2]


@pytest.mark.parametrize(
    ("told", "found", "said"),
    [
        pytest.param(Alerting(), [], ("alerts", Health.NOTE, "nobody is told"), id="nobody"),
        pytest.param(
            Alerting(command=("/bin/true",)),
            [],
            ("alerts.command", Health.GOOD, "there was nothing to tell yet"),
            id="nothing to tell",
        ),
        pytest.param(
            Alerting(command=("/bin/true",)),
            [DEAD],
            ("alerts.command", Health.GOOD, "the last message was taken"),
            id="told",
        ),
        pytest.param(
            Alerting(command=("/bin/false",)),
            [DEAD],
            ("alerts.command", Health.NOTE, "the last message was not taken: exit 1"),
            id="not told",
        ),
    ],
)
def test_the_doctor_says_how_telling_goes(
    setting: Setting, told: Alerting, found: list[Alert], said: tuple[str, Health, str]
) -> None:
    with telling(setting, told) as rt:
        alerting.settle(rt, found)
        (one,) = [one for one in doctor.examine(rt) if one.about.startswith("alerts")]

    about, health, text = said
    assert (one.about, one.health) == (about, health)
    assert text in one.text


def test_a_command_that_hangs_is_ended_with_what_it_started(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerting, "TIMEOUT_S", 5.0)
    body = 'sleep 600 & echo "$$ $!" >"$1.pids"; wait'
    with telling(setting, script(tmp_path, body)) as rt:
        alerting.settle(rt, [DEAD])

    for pid in (tmp_path / "told.pids").read_text().split():
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        pytest.param("/nowhere/hook", "/nowhere/hook: No such file or directory", id="absent"),
        pytest.param("/etc/passwd", "/etc/passwd: Permission denied", id="no program"),
    ],
)
def test_a_command_that_cannot_be_run_is_said_so(
    setting: Setting, command: str, outcome: str
) -> None:
    with telling(setting, Alerting(command=(command,))) as rt:
        alerting.settle(rt, [DEAD])
        assert channels(rt)["command"].outcome == outcome


def test_a_storm_is_a_few_messages_and_the_next_one_says_how_many_it_does_not_name(
    setting: Setting, tmp_path: Path
) -> None:
    storm = [Alert(AlertKind.MOVE_FAILED, f"web.{n}", "no room") for n in range(50)]
    with telling(setting, script(tmp_path, KEEP)) as rt:
        for count in range(1, BURST + 3):
            alerting.settle(rt, storm[:count])
        assert len(messages(tmp_path)) == BURST
        for _ in range(300):  # the clock ticks at least once a pass
            alerting.settle(rt, storm)
            if len(messages(tmp_path)) > BURST:
                break

    last = messages(tmp_path)[-1]
    assert len(last["alerts"]) == LISTED_MAX
    assert last["held_back"] == 50 - BURST - LISTED_MAX


def test_nobody_is_told_of_what_somebody_knows(setting: Setting, tmp_path: Path) -> None:
    with setting.runtime() as rt:
        alerting.settle(rt, [DEAD, HELD])
        assert [one.id for one in alerting.ack(rt, [1])] == [1]
        assert alerting.ack(rt, [1]) == []
    with telling(setting, script(tmp_path, KEEP)) as rt:
        alerting.settle(rt, [DEAD, HELD])

    assert [[one["id"] for one in message["alerts"]] for message in messages(tmp_path)] == [[2]]


def test_several_are_acknowledged_together_or_none(setting: Setting) -> None:
    with setting.runtime() as rt:
        alerting.settle(rt, [DEAD, HELD])
        with pytest.raises(UnknownName):
            alerting.ack(rt, [1, 9])
        assert [one.acked_by for one in alerting.ls(rt)] == ["", ""]
        assert [one.id for one in alerting.ack(rt, None)] == [1, 2]


def test_a_url_of_the_notification_library_is_told_too_and_its_token_is_kept_nowhere(
    setting: Setting,
    tmp_path: Path,
    receiver: Receiver,
    capfd: pytest.CaptureFixture[str],
) -> None:
    url = f"json://127.0.0.1:{receiver.server_port}/{TOKEN}"
    storm = [Alert(AlertKind.MOVE_FAILED, f"web.{n}", "no room") for n in range(LISTED_MAX)]
    both = replace(by_url(tmp_path, url), command=script(tmp_path, KEEP).command)
    with telling(setting, both) as rt:
        alerting.settle(rt, [DEAD])
        alerting.settle(rt, [DEAD, HELD, *storm])
        receiver.status = 500
        alerting.settle(rt, [])
        alerting.settle(rt, [DEAD])
        assert channels(rt)["urls.chat"].outcome == "its service did not take it"
        assert [one.name for one in alerting.failing(rt)] == ["urls.chat"]

    (path, first), (_, second), *_ = receiver.got
    assert path == f"/{TOKEN}"
    assert first["title"] == "wlctl: node-dead elm: no answer\ufffd[2J\ufffdfor long"
    assert second["title"].startswith(f"wlctl: {LISTED_MAX + 1} alerts, the first: held web: ")
    assert "1 more were held back: `wlctl alerts ls --all` lists them" in second["message"]
    assert [message["held_back"] for message in messages(tmp_path)] == [0, 1, 0, 0]
    assert capfd.readouterr() == ("", "")
    kept = [file.read_bytes() for file in setting.home.rglob("*") if file.is_file()]
    assert not [content for content in kept if TOKEN.encode() in content]
    assert TOKEN not in (tmp_path / "told").read_text()


def test_a_url_is_in_no_command_line_while_it_is_told(
    setting: Setting, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.stops = threading.Event()
    seen: list[bytes] = []

    def look() -> None:
        while not receiver.got:
            assert receiver.stops is not None
            receiver.stops.wait(0.05)
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                seen.append(process.read_bytes())
            except OSError:  # it has ended since
                continue
        assert receiver.stops is not None
        receiver.stops.set()

    watcher = threading.Thread(target=look)
    watcher.start()
    url = f"json://127.0.0.1:{receiver.server_port}/{TOKEN}"
    with telling(setting, by_url(tmp_path, url)) as rt:
        alerting.settle(rt, [DEAD])
        assert channels(rt)["urls.chat"].outcome == "told"
    watcher.join()

    assert [line for line in seen if b"wlctl.flows.notify" in line]
    assert not [line for line in seen if TOKEN.encode() in line]


def test_a_url_that_is_none_is_said_so(setting: Setting, tmp_path: Path) -> None:
    with telling(setting, by_url(tmp_path, "nonsense")) as rt:
        alerting.settle(rt, [DEAD])
        assert channels(rt)["urls.chat"].outcome == "apprise does not know that kind of URL"


def test_a_url_that_others_can_read_is_not_used(
    setting: Setting, tmp_path: Path, receiver: Receiver
) -> None:
    told = by_url(tmp_path, f"json://127.0.0.1:{receiver.server_port}/{TOKEN}")
    (tmp_path / "url").chmod(0o644)
    with telling(setting, told) as rt:
        alerting.settle(rt, [DEAD])
        assert channels(rt)["urls.chat"].outcome.startswith(
            "the secret urls.chat is open to others"
        )
    assert receiver.got == []


def test_a_service_that_answers_nothing_is_waited_for_no_longer_than_a_pass_may(
    setting: Setting, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerting, "TIMEOUT_S", 2.0)
    receiver.stops = threading.Event()
    with telling(
        setting, by_url(tmp_path, f"json://127.0.0.1:{receiver.server_port}/?rto=50&cto=50")
    ) as rt:
        alerting.settle(rt, [DEAD])
        assert channels(rt)["urls.chat"].outcome == "it took longer than 2 s"
    receiver.stops.set()


def test_without_the_library_it_is_said_what_to_install(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "apprise.py").write_text("raise ImportError('hidden')\n")
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    with telling(setting, by_url(tmp_path, "json://127.0.0.1:1/")) as rt:
        alerting.settle(rt, [DEAD])
        said = channels(rt)["urls.chat"].outcome

    assert said == "apprise is not installed: pip install 'wlctl[notify]'"


def test_what_lies_in_the_working_directory_is_not_run(
    setting: Setting, tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / "apprise.py").write_text("raise SystemExit(66)\n")
    monkeypatch.chdir(evil)
    with telling(setting, by_url(tmp_path, f"json://127.0.0.1:{receiver.server_port}/")) as rt:
        alerting.settle(rt, [DEAD])
        assert channels(rt)["urls.chat"].outcome == "told"


def test_the_ways_it_ends_have_statuses_of_their_own() -> None:
    assert len({*notify.Sent}) == len(notify.Sent.__members__)
    assert notify.send("nonsense", "", "") is notify.Sent.UNKNOWN_URL
