"""The gate where it is asked: what a verdict does to placements, verbs and changes of trust."""

from pathlib import Path

import pytest

from tests.flows.conftest import write_package
from tests.flows.policed import OWNER, WORK, apply, run_by, tamper
from tests.flows.setting import Setting
from wlctl.errors import ExitCode, GateDenied, NameTaken
from wlctl.flows import doctor, gate, init, packages, policy, signers
from wlctl.flows.ending import End
from wlctl.flows.signing import KeyChoice
from wlctl.ledger import policies
from wlctl.ledger.attempts import Outcome
from wlctl.ledger.verify import Broken, Verified
from wlctl.model.event import Author
from wlctl.model.instance import Desired, State
from wlctl.model.node import Tier
from wlctl.model.policy import Action
from wlctl.placement.explain import explain


@pytest.mark.parametrize("dry_run", [True, False])
def test_each_node_has_its_own_verdict_and_the_rule_is_in_the_explanation(
    setting: Setting, dry_run: bool
) -> None:
    setting.add_node("elm")
    setting.add_node("oak", tier=Tier.TRUSTED)
    apply(setting, OWNER + WORK + 'min_node_tier = "trusted"\n')

    report = setting.place(dry_run=dry_run)

    assert report.document is not None
    (rejected,) = report.document["rejected"]
    assert (rejected["nodes"], [one["constraint"] for one in rejected["rejections"]]) == (
        ["elm"],
        ["gate"],
    )
    text = explain(report.document)
    assert "no-permit" in text
    assert "work: the node is paired, not trusted" in text
    assert report.document["placements"][0]["chosen"]["node"] == "oak"


@pytest.mark.parametrize(
    ("rules", "rule"),
    [
        pytest.param("", "no-permit", id="nothing permits it"),
        pytest.param(
            WORK + '[[deny]]\nid = "freeze"\nactions = ["place"]\nreason = "until Monday"\n',
            "freeze",
            id="a deny names it",
        ),
        pytest.param(WORK.replace('"*"', '"alice"'), "no-permit", id="for somebody else"),
        pytest.param(WORK + 'projects = ["shop"]\n', "no-permit", id="for a project"),
        pytest.param(WORK + "[effect]\nceiling = 0.1\n", "ceiling", id="over the ceiling"),
        pytest.param(
            WORK + "[effect]\nceiling = 0.1\nhuman_approval = true\n",
            "ceiling",
            id="deferred is denied",
        ),
    ],
)
def test_what_the_policy_does_not_allow_is_placed_nowhere(
    setting: Setting, rules: str, rule: str
) -> None:
    setting.add_node("elm")
    apply(setting, OWNER + rules)

    report = setting.place()

    assert not report.placeable
    assert report.document is not None
    assert f" by {rule}" in explain(report.document)
    assert setting.world.nodes["elm"].alive == {}
    assert setting.events("workload.refuse")[0].payload["counts"]["gate"] == 1  # type: ignore[index, call-overload]  # of JSON
    assert setting.holds() == ()


def test_an_order_of_a_project_is_judged_as_one_and_keeps_it(setting: Setting) -> None:
    setting.add_node("elm")
    apply(setting, OWNER + WORK + 'projects = ["shop"]\n')

    assert setting.place(project="bank").attempt is None
    report = setting.place(project="shop")

    assert report.attempt is not None
    assert report.attempt.outcome is Outcome.PLACED


def test_a_package_is_judged_by_what_its_signer_signed(setting: Setting, tmp_path: Path) -> None:
    setting.add_node("elm")
    rooted = tmp_path / "rooted"
    write_package(rooted, name="rooted")
    description = rooted / "workload.toml"
    text = description.read_text().replace("[run]", '[run]\nuser = "root"')
    description.write_text(text)
    packages.build(rooted)
    with setting.runtime() as rt:
        packages.sign(rt, rooted, KeyChoice(setting.key))
    setting.package = rooted

    apply(setting, OWNER + WORK)
    denied = setting.place()
    apply(setting, OWNER + WORK + "allow_root = true\n")
    allowed = setting.place()

    assert not denied.placeable
    assert denied.document is not None
    assert "work: nothing as root" in explain(denied.document)
    assert allowed.placeable


def test_what_the_operator_adds_to_an_order_is_judged_too(setting: Setting) -> None:
    from wlctl.placement.where import parse

    setting.add_node("elm")
    apply(setting, OWNER + WORK)

    report = setting.place(where=(parse("accel.cuda"),))

    assert report.document is not None
    assert "no accelerator accel.cuda" in explain(report.document)


@pytest.fixture
def emulated(setting: Setting, tmp_path: Path) -> Setting:
    """The only variant of the package runs through an emulator."""
    package = tmp_path / "old"
    write_package(package, name="old")
    description = package / "workload.toml"
    text = description.read_text().replace('name = "any"', 'name = "any"\nexecution = "emulated"')
    description.write_text(text)
    packages.build(package)
    with setting.runtime() as rt:
        packages.sign(rt, package, KeyChoice(setting.key))
    setting.package = package
    setting.add_node("elm")
    return setting


def test_an_emulated_candidate_is_asked_about_again_before_anything_is_sent(
    emulated: Setting,
) -> None:
    apply(emulated, OWNER + WORK)
    steps: list[str] = []
    emulated.world.hook = lambda step, _moment: steps.append(step)

    report = emulated.place(allow_emulated=True, refresh=False)

    assert report.placeable
    assert report.attempt is not None
    assert report.attempt.outcome is Outcome.GATE_DENIED
    assert (report.attempt.code, report.attempt.detail) == (
        "gate-denied",
        "no-permit: work: nothing emulated",
    )
    assert set(steps) <= {"commit"}, "nothing was asked of a node"
    assert emulated.instance("old").state is State.UNLOADED
    assert emulated.holds() == ()
    assert emulated.events("workload.refuse")[-1].payload["outcome"] == "gate_denied"
    assert isinstance(emulated.verified(), Verified)


def test_an_emulated_candidate_that_is_permitted_is_placed(emulated: Setting) -> None:
    apply(emulated, OWNER + WORK + "allow_emulated = true\n")

    report = emulated.place(allow_emulated=True)

    assert report.attempt is not None
    assert report.attempt.outcome is Outcome.PLACED


@pytest.mark.parametrize("verb", ["stop", "unload"])
def test_a_teardown_that_nothing_permits_happens_and_its_waiver_is_chained(
    setting: Setting, verb: str
) -> None:
    setting.add_node("elm")
    setting.place()
    apply(setting, OWNER)

    ending = getattr(setting, verb)("web")

    assert ending.end is End.DONE
    (event,) = setting.events("workload.gate")
    told = event.payload
    assert (told["action"], told["name"], told["node"]) == (verb, "web", "elm")
    assert (told["ruling"], told["rule"]) == ("allowed", "teardown-waiver")
    assert told["waived"] == {
        "ruling": "denied",
        "rule": "no-permit",
        "reason": f"no permit names {verb}",
    }


def test_a_teardown_that_is_permitted_is_no_waiver(setting: Setting) -> None:
    setting.add_node("elm")
    setting.place()

    setting.stop("web")

    (event,) = setting.events("workload.gate")
    assert (event.payload["rule"], "waived" in event.payload) == ("signed-work", False)


@pytest.mark.parametrize("verb", ["stop", "unload"])
def test_a_teardown_that_a_deny_names_is_not_done(setting: Setting, verb: str) -> None:
    setting.add_node("elm")
    setting.place()
    apply(setting, OWNER + f'[[deny]]\nid = "keep"\nactions = ["{verb}"]\nreason = "evidence"\n')

    ending = getattr(setting, verb)("web")

    assert (ending.end, ending.code) == (End.DENIED, "gate-denied")
    assert "keep: evidence" in ending.detail
    assert setting.instance("web").state is State.RUNNING
    assert setting.instance("web").desired is Desired.RUNNING
    assert setting.world.nodes["elm"].alive != {}
    (event,) = setting.events("workload.gate")
    assert (event.payload["ruling"], event.payload["rule"]) == ("denied", "keep")
    apply(setting, OWNER)
    assert getattr(setting, verb)("web").end is End.DONE
    assert isinstance(setting.verified(), Verified)


UNREADABLE = [
    pytest.param(
        "UPDATE policies SET text = replace(text, 'tester', 'mallory')", id="another text"
    ),
    pytest.param("UPDATE policies SET text = 'permit = 3', sha256 = 'x'", id="no policy"),
    pytest.param("DELETE FROM policies", id="gone"),
]


@pytest.mark.parametrize("statement", UNREADABLE)
def test_a_policy_that_cannot_be_read_denies_everything_but_teardown(
    setting: Setting, statement: str, tmp_path: Path
) -> None:
    setting.add_node("elm")
    setting.place()
    tamper(setting, statement)
    file = tmp_path / "policy.toml"
    file.write_text(OWNER + WORK)

    again = setting.place(name="second")
    with setting.runtime() as rt:
        with pytest.raises(GateDenied, match="policy-unreadable"):
            signers.add(rt, "you", setting.key.with_name("signer.pub"))
        with pytest.raises(GateDenied, match="policy-unreadable"):
            policy.apply(rt, file)
        with pytest.raises(GateDenied, match="policy-unreadable"):
            policy.show(rt)
    stopped = setting.stop("web")

    assert not again.placeable
    assert again.document is not None
    assert "policy-unreadable" in explain(again.document)
    assert stopped.end is End.DONE
    assert isinstance(setting.verified(), Broken)


def test_the_doctor_says_whether_the_policy_can_be_read(setting: Setting) -> None:
    with setting.runtime() as rt:
        (good,) = [one for one in doctor.examine(rt) if one.about == "policy"]
    tamper(setting, "DELETE FROM policies")
    with setting.runtime() as rt:
        (bad,) = [one for one in doctor.examine(rt) if one.about == "policy"]

    assert (good.health, good.text) == (doctor.Health.GOOD, "2 permits")
    assert (bad.health, bad.exit_code) == (doctor.Health.BAD, ExitCode.REFUSED)


@pytest.mark.parametrize("statement", UNREADABLE)
def test_init_puts_no_default_in_the_place_of_a_policy_that_was_lost(
    setting: Setting, statement: str
) -> None:
    tamper(setting, statement)

    with setting.runtime() as rt:
        init.init(rt)
        with pytest.raises(GateDenied):
            policy.show(rt)


def test_an_installation_begins_with_a_policy_in_favour_of_its_maker(setting: Setting) -> None:
    with setting.runtime() as rt:
        init.init(rt)
        text = policy.show(rt).text

    (event,) = setting.events("policy.apply")
    assert event.payload["sha256"] == policies.digest_of(text)
    assert 'principals = ["tester"]' in text


def test_a_change_of_trust_that_is_denied_changes_nothing_and_is_chained(
    setting: Setting, tmp_path: Path
) -> None:
    from wlctl import signing

    signing.generate_key(tmp_path / "other", comment="other")

    with run_by(setting, "mallory") as rt:
        before = signers.ls(rt)
        with pytest.raises(
            GateDenied, match=r"mallory is not permitted to signer\.add eve"
        ) as caught:
            signers.add(rt, "eve", tmp_path / "other.pub")
        assert signers.ls(rt) == before

    assert caught.value.exit_code is ExitCode.REFUSED
    (event,) = setting.events("policy.gate")
    assert event.actor == "mallory@controller"
    assert event.payload == {
        "action": "signer.add",
        "about": "eve",
        "ruling": "denied",
        "rule": "no-permit",
        "reason": "owner: not for mallory",
        "by": {"command": "wlctl test"},
    }
    assert isinstance(setting.verified(), Verified)


def test_a_change_of_trust_that_is_permitted_needs_no_event_but_its_own(setting: Setting) -> None:
    setting.add_node("elm")

    assert setting.events("policy.gate") == []


def test_a_machine_is_not_even_contacted_for_somebody_who_may_not_add_it(setting: Setting) -> None:
    apply(setting, OWNER.replace('"node.add", ', ""))
    steps: list[str] = []
    setting.world.hook = lambda step, _moment: steps.append(step)

    with pytest.raises(GateDenied, match=r"node\.add elm"):
        setting.add_node("elm")

    assert set(steps) <= {"commit"}, "nothing was asked of a node"
    assert len(setting.events("policy.gate")) == 1


def test_a_failure_in_the_block_leaves_no_trace_of_what_was_permitted(setting: Setting) -> None:
    with setting.runtime() as rt:

        def change() -> None:
            with gate.permitted(rt, Action.NODE_ADD, "elm") as tx:
                policies.apply(tx, "half done")
                raise NameTaken("taken")

        with pytest.raises(NameTaken):
            change()

    assert len(setting.events("policy.apply")) == 1


def test_a_cordon_is_a_teardown_on_a_node(setting: Setting) -> None:
    setting.add_node("elm")
    apply(setting, OWNER)
    node = setting.node("elm")

    with setting.runtime() as rt, gate.permitted(rt, Action.CORDON, "elm", node=node) as tx:
        assert tx.now_ms

    (event,) = setting.events("policy.gate")
    assert (event.payload["rule"], event.payload["node"]) == ("teardown-waiver", "elm")


def test_the_principal_is_the_login_and_never_who_claims_to_be_behind_sudo() -> None:
    assert Author("alice@desk").principal == "alice"
    assert Author("root, sudo alice@desk").principal == "root"
    assert Author("mallory, sudo alice@desk").principal == "mallory"
    assert Author("alice@corp.example@desk").principal == "alice@corp.example"
    assert Author("wlctl_operator").principal == "wlctl_operator"
    assert Author("\udce9@desk").principal == "?"
