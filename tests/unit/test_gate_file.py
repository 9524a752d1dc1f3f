"""Policy files: what is read, what is refused with its path, and what `init` begins with."""

import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wlctl.errors import InvalidFile
from wlctl.gate import file
from wlctl.gate.default import can_be_changed, default_text
from wlctl.gate.file import parse
from wlctl.gate.judge import BUILT_IN, judge
from wlctl.model.fleet import Ruling
from wlctl.model.ids import NodeName
from wlctl.model.node import Tier
from wlctl.model.policy import (
    TRUST_ACTIONS,
    Action,
    Approver,
    Ceiling,
    Deny,
    Effect,
    GateRequest,
    Permit,
    Policy,
    Work,
)
from wlctl.model.workload import Kind

GUIDE = (Path(__file__).parents[2] / "docs/guide/policy.md").read_text(encoding="utf-8")
WHOLE = """\
[[permit]]
id = "paired-signed"
actions = ["place", "slot.boot"]
kinds = ["service", "job"]
principals = ["alice", "bob"]
projects = ["shop"]
min_node_tier = "trusted"
allow_secrets = true
allow_emulated = true
allow_root = true
capabilities = ["CAP_NET_BIND_SERVICE"]
accelerators = ["accel.cuda"]
max_cpu = 4.0
[[permit]]
id = "short"
actions = ["policy.apply"]
principals = ["*"]
[[deny]]
id = "freeze"
actions = ["place", "swap"]
reason = "change freeze until Monday"
[effect]
ceiling = 0.8
human_approval = true
[[approver]]
principal = "carol"
key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE carol@desk"
"""


def test_every_key_is_read() -> None:
    assert parse(WHOLE) == Policy(
        permits=(
            Permit(
                id="paired-signed",
                actions=(Action.PLACE, Action.SLOT_BOOT),
                principals=("alice", "bob"),
                kinds=("service", "job"),
                projects=("shop",),
                min_node_tier=Tier.TRUSTED,
                allow_secrets=True,
                allow_emulated=True,
                allow_root=True,
                capabilities=("CAP_NET_BIND_SERVICE",),
                accelerators=("accel.cuda",),
                max_cpu_cores=4.0,
            ),
            Permit("short", (Action.POLICY_APPLY,), ("*",)),
        ),
        denies=(Deny("freeze", (Action.PLACE, Action.SWAP), "change freeze until Monday"),),
        ceiling=Ceiling(0.8, human_approval=True),
        approvers=(Approver("carol", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE"),),
    )


@pytest.mark.parametrize("text", re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL))
def test_a_policy_in_the_guide_is_read_and_can_be_changed(text: str) -> None:
    assert can_be_changed(parse(text))


@pytest.mark.parametrize(
    "word",
    sorted(
        {
            *(action.value for action in Action),
            *(*file._PERMIT, *file._DENY, *file._EFFECT, *file._APPROVER),
            *BUILT_IN - {"approved"},
            *Effect().parts,
        }
    ),
)
def test_the_guide_tells_of_every_action_key_rule_and_part(word: str) -> None:
    assert re.search(rf"(?<![a-z.-]){re.escape(word)}(?![a-z-])", GUIDE)


def test_an_empty_file_permits_nothing() -> None:
    assert parse("# nothing\n") == Policy()


PERMIT = 'id = "a"\nactions = ["place"]\nprincipals = ["*"]\n'
MISTAKES = [
    pytest.param("[[permit", "p.toml is not TOML: ", id="no TOML"),
    pytest.param("a = " + "[" * 5000, "p.toml is nested too deeply", id="nested"),
    pytest.param("x" * (file.MAX_CHARACTERS + 1), "p.toml: at most 262144", id="too long"),
    pytest.param("[[permits]]", "p.toml: permits: unknown key; did you mean permit?", id="a typo"),
    pytest.param("permit = 3", "permit: expected [[permit]] tables, found 3", id="no tables"),
    pytest.param("permit = [3]", "permit[0]: expected a table, found 3", id="no table"),
    pytest.param("[permit]", "permit: expected [[permit]] tables, found a table", id="one bracket"),
    pytest.param("effect = 1", "effect: expected a table, found 1", id="no effect"),
    pytest.param(f"[[permit]]\n{PERMIT}kind = 1", "permit[0].kind: unknown key", id="a key"),
    pytest.param(
        f'[[deny]]\n{PERMIT}reason="x"', "deny[0].principals: unknown", id="deny is short"
    ),
    pytest.param("[[permit]]", "permit[0].id: missing", id="no id"),
    pytest.param('[[permit]]\nid = ""', 'permit[0].id: expected text, found ""', id="empty id"),
    pytest.param('[[permit]]\nid = "A b"', 'permit[0].id: found "A b"; allowed', id="odd id"),
    pytest.param('[[permit]]\nid = "a"', "permit[0].actions: missing", id="no actions"),
    pytest.param(
        '[[permit]]\nid = "a"\nactions = []', "permit[0].actions: the list is empty", id="none"
    ),
    pytest.param(
        '[[permit]]\nid = "a"\nactions = "place"',
        'permit[0].actions: expected a list of texts, found "place"',
        id="no list",
    ),
    pytest.param(
        '[[permit]]\nid = "a"\nactions = ["place", "plce"]',
        'permit[0].actions[1]: found "plce"; did you mean place?',
        id="an unknown action",
    ),
    pytest.param(
        '[[permit]]\nid = "a"\nactions = ["*"]',
        'permit[0].actions: "*" names no action',
        id="a bare star",
    ),
    pytest.param(
        '[[deny]]\nid = "a"\nactions = ["place", "*"]\nreason = "x"',
        'deny[0].actions: "*" names no action',
        id="a star among actions",
    ),
    pytest.param(
        '[[permit]]\nid = "a"\nactions = ["place", "place"]',
        'permit[0].actions[1]: "place" is there twice',
        id="an action twice",
    ),
    pytest.param(
        '[[permit]]\nid = "a"\nactions = ["place"]', "permit[0].principals: missing", id="nobody"
    ),
    pytest.param(
        '[[permit]]\nid = "a"\nactions = ["place"]\nprincipals = [1]',
        "permit[0].principals[0]: expected text, found 1",
        id="a number for a login",
    ),
    pytest.param(f'[[permit]]\n{PERMIT}kinds=["jobs"]', "kinds[0]: found", id="an unknown kind"),
    pytest.param(
        f'[[permit]]\n{PERMIT}min_node_tier = "Paired"',
        'min_node_tier: found "Paired"; did you mean paired?',
        id="an unknown tier",
    ),
    pytest.param(
        f"[[permit]]\n{PERMIT}allow_root = 1", "allow_root: expected true or false", id="no flag"
    ),
    pytest.param(f"[[permit]]\n{PERMIT}max_cpu = nan", "max_cpu: expected 0 to 4096", id="nan"),
    pytest.param(f"[[permit]]\n{PERMIT}max_cpu = -1", "max_cpu: expected 0 to 4096", id="negative"),
    pytest.param(f"[[permit]]\n{PERMIT}max_cpu = true", "max_cpu: expected 0 to", id="no number"),
    pytest.param(
        f"[[permit]]\n{PERMIT}[[permit]]\n{PERMIT}", "permit[1].id: a is there twice", id="twice"
    ),
    pytest.param(
        f'[[permit]]\n{PERMIT}[[deny]]\nid="a"\nactions=["place"]\nreason="x"',
        "deny[0].id: a is there twice",
        id="a deny called as a permit",
    ),
    pytest.param('[[deny]]\nid="a"\nactions=["place"]', "deny[0].reason: missing", id="no reason"),
    pytest.param("[effect]", "effect.ceiling: missing", id="no ceiling"),
    pytest.param("[effect]\nceiling = 1.5", "effect.ceiling: expected 0 to 1", id="over one"),
    pytest.param('[[approver]]\nprincipal = "c"', "approver[0].key: missing", id="no key"),
    pytest.param(
        '[[approver]]\nprincipal = "c"\nkey = "carol"', "key: expected a public key", id="odd key"
    ),
    pytest.param(
        '[[approver]]\nprincipal = "*"\nkey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"',
        "principal: an approver is one login",
        id="everybody approves",
    ),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_a_mistake_is_said_with_its_file_and_path(text: str, said: str) -> None:
    with pytest.raises(InvalidFile) as caught:
        parse(text, "p.toml")

    assert caught.value.message.startswith("p.toml")
    assert said in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("second", "said"),
    [
        pytest.param(("carol", "BBBB"), "approver[1].principal: carol is there", id="one login"),
        pytest.param(("dave", "AAAA"), "approver[1].key: two approvers cannot", id="one key"),
    ],
)
def test_approvers_are_told_apart_by_login_and_by_key(second: tuple[str, str], said: str) -> None:
    one = '[[approver]]\nprincipal = "{}"\nkey = "ssh-ed25519 {}AAAAAAAAAAAAAAAA"\n'

    parse(one.format("carol", "AAAA") + one.format("dave", "BBBB"))
    with pytest.raises(InvalidFile) as caught:
        parse(one.format("carol", "AAAA") + one.format(*second))

    assert said in caught.value.message


@pytest.mark.parametrize("word", sorted(BUILT_IN))
def test_no_rule_may_pass_itself_off_as_one_of_the_gate(word: str) -> None:
    with pytest.raises(InvalidFile, match="rule of the gate itself"):
        parse(f'[[permit]]\nid = "{word}"\nactions = ["place"]\nprincipals = ["*"]')


@settings(deadline=None)  # the machine may be busy
@given(st.text(max_size=200) | st.sampled_from(WHOLE.splitlines()).map(lambda line: line * 2))
def test_whatever_is_read_is_a_policy_or_a_fault(text: str) -> None:
    with suppress(InvalidFile):
        parse(text)


@settings(deadline=None)  # the machine may be busy
@given(st.integers(0, len(WHOLE)), st.integers(0, 40), st.text(max_size=5))
def test_a_damaged_file_is_read_or_refused_and_never_fails(
    at: int, length: int, instead: str
) -> None:
    with suppress(InvalidFile):
        parse(WHOLE[:at] + instead + WHOLE[at + length :])


def test_the_default_lets_its_maker_change_trust_and_nobody_else() -> None:
    policy = parse(default_text("alice"))

    for action in TRUST_ACTIONS:
        assert judge(policy, (), GateRequest(action, "alice")).verdict.ruling is Ruling.ALLOWED
        assert judge(policy, (), GateRequest(action, "bob")).verdict.ruling is Ruling.DENIED
    assert can_be_changed(policy)


SIGNED = Work(Kind.JOB, ("p",), accelerators=("accel",), cpu_cores=64.0)
ASKED = GateRequest("place", "bob", "", NodeName("elm"), Tier.PAIRED, SIGNED)


@pytest.mark.parametrize(
    ("request_", "allowed"),
    [
        pytest.param(ASKED, True, id="signed work on a paired node"),
        pytest.param(replace(ASKED, action="slot.boot", work=None), True, id="a slot"),
        pytest.param(replace(ASKED, tier=Tier.DISCOVERED), False, id="a discovered node"),
        pytest.param(replace(ASKED, work=replace(SIGNED, root=True)), False, id="root"),
        pytest.param(replace(ASKED, work=replace(SIGNED, emulated=True)), False, id="emulated"),
        pytest.param(
            replace(ASKED, tier=Tier.TRUSTED, work=replace(SIGNED, secrets=True)),
            False,
            id="secrets",
        ),
        pytest.param(
            replace(ASKED, work=replace(SIGNED, capabilities=("CAP_KILL",))), False, id="capability"
        ),
    ],
)
def test_the_default_lets_everybody_run_signed_work_and_nothing_more(
    request_: GateRequest, allowed: bool
) -> None:
    verdict = judge(parse(default_text("alice")), (), request_).verdict

    assert (verdict.ruling is Ruling.ALLOWED) is allowed


@pytest.mark.parametrize(
    "login", ["alice", 'a"b\\c', "DOM\\alice", "zoë", "\U0001f600", "a\nb\x7f"]
)
def test_the_default_names_its_maker_whatever_the_login_is_called(login: str) -> None:
    assert parse(default_text(login)).permits[0].principals == (login,)


def test_each_rule_of_the_default_has_a_comment() -> None:
    text = default_text("alice")

    for rule in text.split("\n\n")[1:]:
        assert rule.startswith("# ")


@pytest.mark.parametrize(
    ("text", "changeable"),
    [
        pytest.param("", False, id="no permit"),
        pytest.param(f"[[permit]]\n{PERMIT}", False, id="a permit for something else"),
        pytest.param(f"[[permit]]\n{PERMIT}".replace("place", "policy.apply"), True, id="anybody"),
        pytest.param(
            f"[[permit]]\n{PERMIT}".replace("place", "policy.apply").replace("*", "alice"),
            True,
            id="somebody",
        ),
        pytest.param(
            f"[[permit]]\n{PERMIT}".replace("place", "policy.apply")
            + '[[deny]]\nid = "no"\nactions = ["policy.apply"]\nreason = "never"',
            False,
            id="denied for all",
        ),
        pytest.param(
            f"[[permit]]\n{PERMIT}".replace("place", "policy.apply") + "[effect]\nceiling = 0",
            True,
            id="a ceiling is about work",
        ),
    ],
)
def test_a_policy_that_nobody_could_change_is_seen(text: str, changeable: bool) -> None:
    assert can_be_changed(parse(text)) is changeable
