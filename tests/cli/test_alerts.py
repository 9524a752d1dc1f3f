"""`wlctl alerts`: listed for people and programs, acknowledged by number."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program
from tests.ledger.made import a_ledger
from wlctl.cli import topics
from wlctl.ledger import alerts
from wlctl.model.alert import Alert, AlertKind, Channel
from wlctl.model.event import Author

DEAD = Alert(AlertKind.NODE_DEAD, "elm", "no answer\x1b[2J")
ORPHAN = Alert(AlertKind.ORPHAN, "web", "it is not proven gone")


@pytest.fixture
def alerted(program: Program) -> Program:
    """A ledger with two alerts that are open, and one that is closed."""
    with (
        a_ledger(program.directory / "ledger.db") as ledger,
        ledger.write(1_700_000_000_000, Author("ann@here")) as tx,
    ):
        alerts.settle(tx, [Alert(AlertKind.HELD, "old", "gone")])
        alerts.settle(tx, [DEAD, ORPHAN])
        alerts.record_channel(tx, Channel("command", 0, 0, 0, "exit 3"))
    return Program(program.directory, {**program.environment, "WLCTL_DB": "ledger.db"})


def said(program: Program, *words: str) -> str:
    done = program.run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def items(program: Program, *words: str) -> list[dict[str, Any]]:
    found = json.loads(said(program, *words, "-o", "json"))
    assert found["schema"] == "wlctl.alerts/1"
    listed: list[dict[str, Any]] = found["items"]
    return listed


def test_what_is_open_is_listed_and_what_was_failed_to_be_told(alerted: Program) -> None:
    config = alerted.directory / "home/.config/wlctl/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    assert alerted.run("alerts").stderr == ""
    config.write_text('[alerts]\ncommand = ["/hook"]\n')

    listed = items(alerted, "alerts", "ls")
    assert [(one["id"], one["kind"], one["unproven"]) for one in listed] == [
        (2, "node-dead", False),
        (3, "orphan", True),
    ]
    shown = alerted.run("alerts")
    assert re.search(r"^2 +node-dead +elm +open .*no answer", shown.stdout, re.MULTILINE)
    assert "\x1b" not in shown.stdout
    assert "alerts.command could not be told" in shown.stderr


def test_what_was_acknowledged_is_said_and_the_second_time_is_no_harm(alerted: Program) -> None:
    first = said(alerted, "alerts", "ack", "2", "-m", "seen to")
    assert first == "2 is acknowledged: node-dead elm\n"
    assert json.loads(said(alerted, "alerts", "ack", "2", "-o", "json"))["acked"] == []
    assert said(alerted, "alerts", "ack", "--all") == "3 is acknowledged: orphan web\n"
    assert said(alerted, "alerts", "ack", "--all") == "nothing was left to know of\n"

    listed = items(alerted, "alerts", "--all")
    assert [one["state"] for one in listed] == ["closed", "acked", "acked"]
    assert listed[1]["acked_by"] is not None
    told = json.loads(said(alerted, "audit", "log", "--kind", "alert.ack", "-o", "json"))["items"]
    assert told[0]["payload"]["by"]["message"] == "seen to"


def test_a_dry_run_of_acknowledging_says_which_and_changes_nothing(alerted: Program) -> None:
    said(alerted, "alerts", "ack", "3")
    before = said(alerted, "audit", "export"), items(alerted, "alerts")

    assert said(alerted, "alerts", "ack", "--all", "--dry-run") == (
        "2 would be acknowledged: node-dead elm\n"
    )
    told = json.loads(said(alerted, "alerts", "ack", "2", "3", "--dry-run", "-o", "json"))
    assert (told["dry_run"], told["acked"]) == (True, [2])
    assert alerted.run("alerts", "ack", "2", "1", "--dry-run").returncode == 2

    assert (said(alerted, "audit", "export"), items(alerted, "alerts")) == before


def test_a_mistake_is_one_line_and_changes_nothing(alerted: Program) -> None:
    mistakes = {
        "none named": ("ack",),
        "one and all": ("ack", "2", "--all"),
        "no number": ("ack", "x"),
        "one that is closed": ("ack", "2", "1"),
        "one that never was": ("ack", "2", "9"),
        "a misspelling": ("akc", "2"),
    }
    for what, words in mistakes.items():
        done = alerted.run("alerts", *words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), what

    assert [one["state"] for one in items(alerted, "alerts")] == ["open", "open"]


def test_help_is_of_the_group(program: Program) -> None:
    assert "ack" in said(program, "alerts", "--help")


@pytest.mark.parametrize("kind", AlertKind)
def test_guide_and_help_say_the_same_of_what_to_do_about_each_kind(kind: AlertKind) -> None:
    guide = (Path(__file__).parents[2] / "docs/guide/alerts.md").read_text()
    mark = " (unproven)" if kind.is_unproven else ""
    (to_do,) = re.findall(rf"^\| `{kind}`{re.escape(mark)} \|[^|]*\| (.*) \|$", guide, re.MULTILINE)
    (topic,) = [one for one in topics.every() if (one.kind, one.word) == ("alert kind", kind)]
    _, _, said = topic.text.partition("\n\n")

    assert " ".join(said.split()) == f"{to_do[0].upper()}{to_do[1:]}."
