"""`wlctl alerts`: listed for people and programs, acknowledged by number."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.program import Program
from wlctl.ledger import alerts
from wlctl.ledger.opening import open_ledger
from wlctl.ledger.store import WriteTx
from wlctl.model.alert import Alert, AlertKind, Channel
from wlctl.model.event import Author

DEAD = Alert(AlertKind.NODE_DEAD, "elm", "no answer\x1b[2J")
HELD = Alert(AlertKind.ORPHAN, "web", "it is not proven gone")


@contextmanager
def writing(path: Path) -> Iterator[WriteTx]:
    author = Author("ann@here")
    ledger = open_ledger(path, now_ms=0, author=author)
    with ledger.write(1_700_000_000_000, author) as tx:
        yield tx
    ledger.close()


@pytest.fixture
def alerted(program: Program) -> Program:
    """A ledger with two alerts that are open, and one that is closed."""
    made = json.loads(program.run("init", "-o", "json").stdout)
    with writing(Path(made["ledger"])) as tx:
        alerts.settle(tx, [Alert(AlertKind.HELD, "old", "gone")])
        alerts.settle(tx, [DEAD, HELD])
        alerts.record_channel(tx, Channel("command", 0, 0, 0, "exit 3"))
    return program


def said(program: Program, *words: str) -> str:
    done = program.run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("words", [("alerts",), ("alerts", "ls")], ids=["alone", "with ls"])
def test_what_is_open_is_listed(alerted: Program, words: tuple[str, ...]) -> None:
    found = json.loads(said(alerted, *words, "-o", "json"))

    assert found["schema"] == "wlctl.alerts/1"
    assert [(one["id"], one["kind"], one["unproven"]) for one in found["items"]] == [
        (2, "node-dead", False),
        (3, "orphan", True),
    ]
    shown = said(alerted, *words)
    assert re.search(r"^2 +node-dead +elm +open .*no answer", shown, re.MULTILINE)
    assert "\x1b" not in shown


def test_all_are_listed_with_what_became_of_them(alerted: Program) -> None:
    said(alerted, "alerts", "ack", "2", "-m", "seen to")

    found = json.loads(said(alerted, "alerts", "--all", "-o", "json"))["items"]
    assert [one["state"] for one in found] == ["closed", "acked", "open"]
    assert found[1]["acked_by"] is not None
    (event,) = json.loads(said(alerted, "audit", "log", "--kind", "alert.ack", "-o", "json"))[
        "items"
    ]
    assert event["payload"]["by"]["message"] == "seen to"


def test_what_was_acknowledged_is_said_and_the_second_time_is_no_harm(alerted: Program) -> None:
    assert said(alerted, "alerts", "ack", "2") == "2 is acknowledged: node-dead elm\n"
    assert said(alerted, "alerts", "ack", "--all") == "3 is acknowledged: orphan web\n"
    assert said(alerted, "alerts", "ack", "--all") == "nothing was left to know of\n"
    assert json.loads(said(alerted, "alerts", "ack", "2", "-o", "json"))["acked"] == []


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("ack",), id="none named"),
        pytest.param(("ack", "2", "--all"), id="one and all"),
        pytest.param(("ack", "x"), id="no number"),
        pytest.param(("ack", "2", "1"), id="one that is closed"),
        pytest.param(("ack", "2", "9"), id="one that never was"),
        pytest.param(("akc", "2"), id="a misspelling"),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(
    alerted: Program, words: tuple[str, ...]
) -> None:
    done = alerted.run("alerts", *words)

    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    listed = json.loads(said(alerted, "alerts", "-o", "json"))["items"]
    assert [one["state"] for one in listed] == ["open", "open"]


def test_a_way_to_tell_that_failed_is_named_where_it_is_still_in_use(alerted: Program) -> None:
    config = alerted.directory / "home/.config/wlctl/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)

    assert alerted.run("alerts").stderr == ""
    config.write_text('[alerts]\ncommand = ["/hook"]\n')
    assert "alerts.command could not be told" in alerted.run("alerts").stderr


def test_help_is_of_the_group(program: Program) -> None:
    assert "ack" in said(program, "alerts", "--help")


@pytest.mark.parametrize("kind", AlertKind)
def test_the_guide_says_what_to_do_about_each_kind(kind: AlertKind) -> None:
    guide = Path(__file__).parents[2] / "docs/guide/alerts.md"
    mark = " (unproven)" if kind.is_unproven else ""

    assert f"\n| `{kind.value}`{mark} | " in guide.read_text()
