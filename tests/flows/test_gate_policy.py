"""Policies applied, tried and locked; approvals given, used once, and refused."""

import itertools
import json
import os
import pwd
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.flows.conftest import write_package
from tests.flows.policed import OWNER, WORK, apply, run_by, tamper
from tests.flows.setting import Setting
from wlctl import signing
from wlctl.cli.approvals import asked
from wlctl.errors import (
    ApprovalRefused,
    GateDeferred,
    GateDenied,
    InvalidFile,
    PolicyLocksOut,
    UnknownName,
    UnusableKey,
    WlctlError,
)
from wlctl.flows import approvals as known
from wlctl.flows import gate, packages, policy
from wlctl.flows.signing import KeyChoice
from wlctl.gate.work import work_of
from wlctl.ledger import approvals
from wlctl.ledger.verify import Verified
from wlctl.model.fleet import Ruling
from wlctl.model.policy import Action, Work
from wlctl.model.workload import Kind

DAY_MS = 24 * 3_600_000


def in_force(setting: Setting) -> str:
    with setting.runtime() as rt:
        return policy.show(rt).text


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        pytest.param("permit = 1", InvalidFile, id="a mistake"),
        pytest.param(WORK, PolicyLocksOut, id="nobody could change it"),
        pytest.param(
            OWNER + '[[deny]]\nid = "a"\nactions = ["policy.apply"]\nreason = "b"',
            PolicyLocksOut,
            id="denied to all",
        ),
        pytest.param(
            OWNER + '[[approver]]\nprincipal = "a"\nkey = "ssh-ed25519 AAAAAAAAAAAAAAAAAAAA"',
            UnusableKey,
            id="an approver without a key",
        ),
    ],
)
def test_a_policy_with_a_mistake_leaves_the_one_in_force(
    setting: Setting, text: str, failure: type[WlctlError]
) -> None:
    before = in_force(setting)

    with pytest.raises(failure):
        apply(setting, text)

    assert in_force(setting) == before
    assert len(setting.events("policy.apply")) == 1


def test_the_policy_in_force_is_the_file_to_the_byte(setting: Setting) -> None:
    text = OWNER + "# a comment: é\n"

    apply(setting, text)
    apply(setting, text)

    assert in_force(setting) == text
    assert len(setting.events("policy.apply")) == 2
    assert isinstance(setting.verified(), Verified)


def test_nobody_applies_a_policy_without_a_permit_of_the_one_before(
    setting: Setting, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(OWNER.replace("tester", "mallory"))

    with run_by(setting, "mallory") as rt, pytest.raises(GateDenied):
        policy.apply(rt, file)

    assert 'principals = ["tester"]' in in_force(setting)


def test_who_takes_the_right_from_themselves_is_told(setting: Setting, tmp_path: Path) -> None:
    file = tmp_path / "theirs.toml"
    file.write_text(OWNER.replace("tester", "alice"))

    with setting.runtime() as rt:
        done = policy.apply(rt, file)
        repeated = policy.apply(rt, file)

    assert (done.is_new, done.keeps_author) == (True, False)
    assert (repeated.is_new, repeated.keeps_author) == (False, False)


@pytest.mark.parametrize("content", [b"\xff", None, b"#" * 300_000], ids=["bytes", "none", "long"])
def test_a_file_that_cannot_be_read_is_no_policy(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "policy.toml"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(InvalidFile, match=r"policy\.toml"):
        policy.check(file)


def test_a_trial_answers_as_the_gate_would_and_records_nothing(setting: Setting) -> None:
    setting.add_node("elm")
    with setting.runtime() as rt:
        before = len(setting.events("*"))
        placed = policy.try_out(rt, setting.package, "elm")
        stopped = policy.try_out(rt, setting.package, "elm", action="stop")
        unknown = policy.try_out(rt, setting.package, "elm", action="drop")
        emulated = policy.try_out(rt, setting.package, "elm", emulated=True)

    assert (placed.answer.verdict.ruling, placed.answer.verdict.rule) == (
        Ruling.ALLOWED,
        "signed-work",
    )
    assert placed.answer.effect.parts == {
        "risk": 0.1,
        "security": 0.6,
        "privacy": 0.2,
        "novelty": 0.0,
        "fairness": 1.0,
    }
    assert stopped.answer.verdict.ruling is Ruling.ALLOWED
    assert unknown.answer.verdict.rule == "unknown-action"
    assert emulated.answer.verdict.reason == "signed-work: nothing emulated"
    assert len(setting.events("*")) == before


def test_a_trial_takes_another_policy_login_and_project(setting: Setting, tmp_path: Path) -> None:
    setting.add_node("elm")
    file = tmp_path / "new.toml"
    file.write_text(OWNER + WORK.replace('"*"', '"alice"') + 'projects = ["shop"]\n')
    with setting.runtime() as rt:
        as_alice = policy.try_out(
            rt, setting.package, "elm", policy_file=file, principal="alice", project="shop"
        )
        as_self = policy.try_out(rt, setting.package, "elm", policy_file=file, project="shop")
        elsewhere = policy.try_out(rt, setting.package, "elm", policy_file=file, principal="alice")

    assert as_alice.answer.verdict.rule == "work"
    assert as_self.answer.verdict.reason == "work: not for tester"
    assert elsewhere.answer.verdict.reason == "work: only for a project"


def test_a_trial_takes_a_package_of_the_store_and_no_unsigned_one(
    setting: Setting, tmp_path: Path
) -> None:
    setting.add_node("elm")
    setting.place(dry_run=True)
    other = tmp_path / "other"
    write_package(other, name="other")
    packages.build(other)
    with setting.runtime() as rt:
        stored = policy.try_out(rt, Path("web@1.0.0"), "elm")
        with pytest.raises(WlctlError) as unsigned:
            policy.try_out(rt, other, "elm")
        with pytest.raises(UnknownName):
            policy.try_out(rt, setting.package, "oak")

    assert stored.answer.verdict.ruling is Ruling.ALLOWED
    assert unsigned.value.code == "missing-signature"


@dataclass
class Deferring:
    """A copy whose `start` needs an approver: carol, or dave, or the tester's own key."""

    setting: Setting
    keys: Path

    def start(self, *, work: Work | None = None, login: str = "tester") -> WlctlError | None:
        """Ask to start the copy; None when it is permitted."""
        node = self.setting.node("elm")
        instance = self.setting.instance("web")
        asked = work or Work(Kind.SERVICE, ("p",))
        with run_by(self.setting, login) as rt, rt.ledger.write(rt.now_ms(), rt.author) as tx:
            return gate.verb(rt, tx, Action.START, instance=instance, node=node, work=asked)

    def deferred(self) -> str:
        """Ask, and give the id to be approved."""
        refusal = self.start()
        assert isinstance(refusal, GateDeferred)
        return self.setting.events("workload.gate")[-1].payload["approval"]  # type: ignore[return-value]  # text

    def approve(self, approval: str, key: str = "carol", *, login: str = "carol") -> None:
        with run_by(self.setting, login) as rt:
            policy.approve(rt, approval, choice=KeyChoice(self.keys / key))


RULES = """
[effect]
ceiling = 0.1
human_approval = true
"""


@pytest.fixture
def deferring(setting: Setting, tmp_path: Path) -> Deferring:
    keys = tmp_path / "keys"
    keys.mkdir()
    for name in ("carol", "dave", "tester", "mallory"):
        signing.generate_key(keys / name, comment=name)
    setting.add_node("elm")
    setting.place()
    made = Deferring(setting, keys)
    apply(setting, rules_with(made, "carol", "dave", "tester"))
    return made


def rules_with(deferring: Deferring, *names: str) -> str:
    who = ", ".join(f'"{name}"' for name in ("tester", "carol", "dave", "mallory"))
    owner = OWNER.replace('"tester"', who)
    approvers = "".join(
        f'[[approver]]\nprincipal = "{name}"\nkey = "{signing.public_key(deferring.keys / name)}"\n'
        for name in names
    )
    return owner + WORK + RULES + approvers


def test_an_approval_lets_the_same_request_through_once(deferring: Deferring) -> None:
    approval = deferring.deferred()
    deferring.approve(approval)

    passed = deferring.start()
    again = deferring.start()

    assert passed is None
    assert isinstance(again, GateDeferred)
    verdicts = [event.payload for event in deferring.setting.events("workload.gate")]
    assert [verdict["rule"] for verdict in verdicts] == ["ceiling", "approved", "ceiling"]
    assert verdicts[1]["approval"] == approval
    assert verdicts[2]["approval"] != approval
    kinds = [event.kind for event in deferring.setting.events("policy.*")][-4:]
    assert kinds == ["policy.defer", "policy.approve", "policy.spend", "policy.defer"]
    assert isinstance(deferring.setting.verified(), Verified)


def test_asking_again_before_it_is_approved_gets_the_same_id(deferring: Deferring) -> None:
    assert deferring.deferred() == deferring.deferred()
    assert len(deferring.setting.events("policy.defer")) == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"refs": ("q",)}, id="another package"),
        pytest.param({"project": "shop"}, id="another project"),
        pytest.param({"cpu_cores": 2.0}, id="more cores"),
    ],
)
def test_an_approval_is_for_the_whole_request(
    deferring: Deferring, change: dict[str, object]
) -> None:
    deferring.approve(deferring.deferred())

    other = deferring.start(work=replace(Work(Kind.SERVICE, ("p",)), **change))  # type: ignore[arg-type]  # by name
    somebody = deferring.start(login="mallory")

    assert isinstance(other, GateDeferred)
    assert isinstance(somebody, GateDeferred)
    assert deferring.start() is None


def test_who_asked_cannot_approve_with_any_hands(deferring: Deferring) -> None:
    approval = deferring.deferred()

    with pytest.raises(ApprovalRefused, match="tester asked for it"):
        deferring.approve(approval, "tester", login="carol")

    assert isinstance(deferring.start(), GateDeferred)


@pytest.mark.parametrize(
    ("key", "login", "failure"),
    [
        pytest.param("mallory", "carol", ApprovalRefused, id="a key the policy does not name"),
        pytest.param("carol", "eve", GateDenied, id="a login that may not approve"),
    ],
)
def test_an_approval_by_the_wrong_one_is_refused(
    deferring: Deferring, key: str, login: str, failure: type[WlctlError]
) -> None:
    approval = deferring.deferred()

    with pytest.raises(failure):
        deferring.approve(approval, key, login=login)

    assert deferring.setting.events("policy.approve") == []


def test_an_approval_runs_out(deferring: Deferring) -> None:
    first, second = deferring.deferred(), None
    deferring.approve(first)
    real = deferring.setting.clock
    late = next(real) + DAY_MS
    deferring.setting.clock = iter(range(late, late + 10**6, 1000))

    assert isinstance(deferring.start(), GateDeferred)
    second = deferring.deferred()

    assert second != first
    with pytest.raises(ApprovalRefused, match="expired"):
        deferring.approve(first)


def test_an_approver_who_was_taken_out_of_the_policy_has_approved_nothing(
    deferring: Deferring,
) -> None:
    approval = deferring.deferred()
    deferring.approve(approval)
    apply(deferring.setting, rules_with(deferring, "dave"))

    assert isinstance(deferring.start(), GateDeferred)
    deferring.approve(approval, "dave", login="dave")
    assert deferring.start() is None


def signed_by_ssh_keygen(deferring: Deferring, text: str, namespace: str) -> Path:
    ask = deferring.keys / "ask"
    ask.write_text(text)
    (deferring.keys / "ask.sig").unlink(missing_ok=True)
    command = ["ssh-keygen", "-Y", "sign", "-n", namespace, "-f", str(deferring.keys / "carol")]
    subprocess.run([*command, str(ask)], check=True, capture_output=True)
    return deferring.keys / "ask.sig"


def test_a_signature_of_ssh_keygen_approves(deferring: Deferring) -> None:
    approval = deferring.deferred()
    with run_by(deferring.setting, "carol") as rt:
        text = policy.find_deferred(rt, approval[:8]).text
        file = signed_by_ssh_keygen(deferring, text, "wlctl-approval")
        _, approver = policy.approve(rt, approval[:8], signature_file=file)

    assert approver.principal == "carol"
    assert deferring.start() is None


@pytest.mark.parametrize(
    ("namespace", "change"),
    [
        pytest.param("wlctl-package", str, id="another namespace"),
        pytest.param("wlctl-approval", lambda text: text + "\n", id="another text"),
        pytest.param(
            "wlctl-approval", lambda text: text.replace("T", " "), id="another moment of expiry"
        ),
    ],
)
def test_a_signature_of_something_else_approves_nothing(
    deferring: Deferring, namespace: str, change: Callable[[str], str]
) -> None:
    approval = deferring.deferred()
    with run_by(deferring.setting, "carol") as rt:
        text = policy.find_deferred(rt, approval).text
        file = signed_by_ssh_keygen(deferring, change(text), namespace)
        with pytest.raises(ApprovalRefused, match="does not fit"):
            policy.approve(rt, approval, signature_file=file)

    assert isinstance(deferring.start(), GateDeferred)


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("UPDATE approvals SET principal = 'eve'", id="who asked"),
        pytest.param("UPDATE approvals SET expires_at_ms = expires_at_ms + 1", id="the expiry"),
        pytest.param(
            "UPDATE approvals SET id = iif(id GLOB 'f*', 'e', 'f') || substr(id, 2)", id="the id"
        ),
        pytest.param("UPDATE approvals SET signature = 'x'", id="the signature"),
        pytest.param("UPDATE approvals SET request = '{}'", id="the request"),
    ],
)
def test_an_approval_that_was_tampered_with_lets_nothing_through(
    deferring: Deferring, statement: str
) -> None:
    deferring.approve(deferring.deferred())
    tamper(deferring.setting, statement)

    assert isinstance(deferring.start(), GateDeferred)


def test_what_is_deferred_is_known_by_its_id_or_the_beginning_of_it(deferring: Deferring) -> None:
    approval = deferring.deferred()
    with deferring.setting.runtime() as rt:
        found = policy.find_deferred(rt, approval[:10])
        with pytest.raises(UnknownName):
            policy.find_deferred(rt, "zz")

    assert found.id == approval
    assert found.request_sha256 == approvals.digest_of(found.request)
    assert found.request["action"] == "start"


def test_what_is_deferred_is_told_by_the_name_of_its_copy(deferring: Deferring) -> None:
    approval = deferring.deferred()
    with deferring.setting.runtime() as rt:
        found = policy.find_deferred(rt, approval)
        names = known.called(rt, [found])

    assert found.request["about"] == deferring.setting.instance("web").id
    assert asked(found, names) == "start web on elm"
    assert asked(replace(found, request={}), names) == "", "one that was tampered with"


def test_an_approver_sees_what_was_asked_and_approves_it_at_the_command_line(
    deferring: Deferring, program: Program
) -> None:
    deferring.setting.clock = itertools.count(time.time_ns() // 1_000_000, 1000)
    login = pwd.getpwuid(os.geteuid()).pw_name
    rules = rules_with(deferring, "carol").replace('"mallory"', f'"{login}"')
    apply(deferring.setting, rules)
    approval = deferring.deferred()
    at = ("--db", str(deferring.setting.home / "ledger.db"))

    shown = program.run("approve", approval[:9], *at)
    text = program.run("approve", approval, "--text", *at)
    refused = program.run("approve", approval, "--key", str(deferring.keys / "dave"), *at)
    done = program.run("approve", approval, "--key", str(deferring.keys / "carol"), *at)
    told = program.run("approve", approval, *at, "-o", "json")

    assert shown.stdout.startswith("start web on elm, asked for by tester\n")
    assert "approved by: nobody yet" in shown.stdout
    assert text.stdout.startswith("wlctl-approval/1\n")
    assert (refused.returncode, "[approval-refused]" in refused.stderr) == (4, True)
    assert done.returncode == 0, done.stderr
    assert "carol approved start" in done.stdout
    assert json.loads(told.stdout)["approver"] == "carol"
    assert deferring.start() is None


def test_the_work_of_the_package_in_these_tests_is_plain(setting: Setting) -> None:
    with setting.runtime() as rt:
        spec = packages.admit(rt, setting.package).spec

    assert work_of(spec) == Work(Kind.SERVICE, spec.revocable_refs)
