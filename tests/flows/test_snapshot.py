"""A decision from a saved fleet comes out as the live one did, the gate's verdicts included."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.flows.policed import OWNER, WORK, apply, run_by, tamper
from tests.flows.setting import Setting
from wlctl.errors import InvalidFile
from wlctl.flows import place, snapshot
from wlctl.flows.deciding import Order
from wlctl.flows.place import Report
from wlctl.model.node import Tier
from wlctl.placement.shapes import Document

FREEZE = '[[deny]]\nid = "freeze"\nactions = ["place"]\nreason = "until Monday"\n'
BY = "tester"


def save(setting: Setting, to: Path, login: str = BY) -> Path:
    with run_by(setting, login) as rt:
        to.write_text(snapshot.take(rt), encoding="utf-8")
    return to


def document(report: Report) -> Document:
    assert report.document is not None
    return report.document


@pytest.mark.parametrize(
    ("rules", "login"),
    [
        pytest.param(WORK, BY, id="permitted on paired nodes"),
        pytest.param(WORK + 'min_node_tier = "trusted"\n', BY, id="permitted on trusted nodes"),
        pytest.param("", BY, id="no permit"),
        pytest.param(WORK + FREEZE, BY, id="a deny"),
        pytest.param(WORK.replace('"*"', '"ann"'), BY, id="for somebody else"),
        pytest.param(WORK.replace('"*"', '"ann"'), "ann", id="for whoever took the snapshot"),
        pytest.param(WORK + 'projects = ["shop"]\n', BY, id="for a project"),
        pytest.param(WORK + "max_cpu = 0.25\n", BY, id="with a limit of cores"),
        pytest.param(WORK + "[effect]\nceiling = 0.6\n", BY, id="under a ceiling for signed work"),
        pytest.param(WORK + "[effect]\nceiling = 0.1\n", BY, id="over a ceiling"),
        pytest.param(
            WORK + "[effect]\nceiling = 0.1\nhuman_approval = true\n", BY, id="to be approved"
        ),
    ],
)
def test_the_replay_is_gated_as_the_live_decision_was(
    setting: Setting, tmp_path: Path, rules: str, login: str
) -> None:
    for name, tier in (("elm", Tier.PAIRED), ("fir", Tier.DISCOVERED), ("oak", Tier.TRUSTED)):
        setting.add_node(name, tier=tier)
    apply(setting, OWNER + rules)
    file = save(setting, tmp_path / "fleet.json", login)

    replayed = document(snapshot.decide(Order(setting.package), file))

    with run_by(setting, login) as rt:
        live = document(place.place(rt, Order(setting.package, dry_run=True)))
    assert replayed["gated"] == live["gated"]
    assert replayed["rejected"] == live["rejected"]
    assert replayed["eligible"] == live["eligible"]
    assert [one["chosen"] for one in replayed["placements"]] == [
        one["chosen"] for one in live["placements"]
    ]


def test_what_is_revoked_is_denied_in_a_replay_too(setting: Setting, tmp_path: Path) -> None:
    setting.add_node("elm")
    file = save(setting, tmp_path / "fleet.json")
    saved = json.loads(file.read_text())
    package = json.loads((setting.package / "manifest.json").read_text())
    [sha256, *_] = [one["sha256"] for one in package["files"]]
    file.write_text(json.dumps(saved | {"revoked": [sha256]}))

    gated = document(snapshot.decide(Order(setting.package), file))["gated"]

    assert [(one["ruling"], one["rule"]) for one in gated] == [("denied", "revoked")]


def test_a_workload_that_was_never_built_is_judged_as_unsigned(
    setting: Setting, tmp_path: Path
) -> None:
    setting.add_node("elm")
    apply(setting, OWNER + WORK + "[effect]\nceiling = 0.6\n")
    file = save(setting, tmp_path / "fleet.json")
    unbuilt = Order(setting.package / "workload.toml")

    signed = document(snapshot.decide(Order(setting.package), file))
    unsigned = document(snapshot.decide(unbuilt, file))

    assert signed["outcome"] == "placed"
    assert [one["rule"] for one in unsigned["gated"]] == ["ceiling"]


def test_a_policy_that_cannot_be_read_denies_in_a_replay_too(
    setting: Setting, tmp_path: Path
) -> None:
    setting.add_node("elm")
    tamper(setting, "UPDATE policies SET text = 'no policy ['")
    file = save(setting, tmp_path / "fleet.json")

    gated = document(snapshot.decide(Order(setting.package), file))["gated"]

    assert [(one["ruling"], one["rule"]) for one in gated] == [("denied", "policy-unreadable")]


def test_a_node_with_a_verdict_of_its_own_keeps_it(setting: Setting, tmp_path: Path) -> None:
    setting.add_node("elm")
    setting.add_node("oak")
    file = save(setting, tmp_path / "fleet.json")
    saved = json.loads(file.read_text())
    saved["nodes"][0]["gate"] = {"ruling": "denied", "rule": "mine", "reason": "to try it"}
    file.write_text(json.dumps(saved))

    found = document(snapshot.decide(Order(setting.package), file))

    assert {one["rule"]: one["number"] for one in found["gated"]} == {"mine": 1, "signed-work": 1}


def test_a_snapshot_tells_the_rules_a_line_each_and_neither_approvers_nor_comments(
    setting: Setting, tmp_path: Path
) -> None:
    public = " ".join(setting.key.with_suffix(".pub").read_text().split()[:2])
    approver = f'[[approver]]\nprincipal = "ann"\nkey = "{public}"\n'
    apply(setting, OWNER + WORK + FREEZE + approver + "# the word is xyzzy\n")

    text = save(setting, tmp_path / "fleet.json").read_text()

    assert json.loads(text)["schema"] == "wlctl.snapshot/2"
    assert json.loads(text)["gate"]["principal"] == BY
    assert sum('"id": "' in line and '"actions"' in line for line in text.splitlines()) == 3
    assert "xyzzy" not in text
    assert public not in text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        pytest.param({"more": 1}, "$.gate.policy: more: unknown key", id="an unknown table"),
        pytest.param(
            {"permit": [{"id": "a", "actions": ["fly"], "principals": ["*"]}]},
            "$.gate.policy: permit[0].actions",
            id="an unknown action",
        ),
        pytest.param({"permit": 3}, "$.gate.policy: permit", id="no list of permits"),
    ],
)
def test_a_policy_that_was_changed_wrongly_is_refused_with_its_path(
    setting: Setting, tmp_path: Path, changed: dict[str, Any], message: str
) -> None:
    setting.add_node("elm")
    file = save(setting, tmp_path / "fleet.json")
    saved = json.loads(file.read_text())
    saved["gate"]["policy"] |= changed
    file.write_text(json.dumps(saved))

    with pytest.raises(InvalidFile) as refusal:
        snapshot.decide(Order(setting.package), file)

    assert refusal.value.message.startswith(f"{file}: {message}")
