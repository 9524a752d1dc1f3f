"""The gate: each step and each condition on both sides of its edge, and the parts of an effect."""

from dataclasses import replace
from typing import Any

import pytest

from wlctl.gate.effect import effect_of
from wlctl.gate.judge import judge
from wlctl.gate.work import work_of
from wlctl.model.fleet import Ruling
from wlctl.model.ids import NodeName
from wlctl.model.node import Tier
from wlctl.model.policy import (
    TEARDOWN,
    TRUST_ACTIONS,
    WORK_ACTIONS,
    Action,
    Ceiling,
    Deny,
    Effect,
    GateRequest,
    Permit,
    Policy,
    Unreadable,
    Work,
)
from wlctl.model.workload import Kind, Requirement, Resources, Variant, WorkloadSpec

ALLOWED, DENIED, DEFERRED = Ruling.ALLOWED, Ruling.DENIED, Ruling.DEFERRED
WIDE = Permit("wide", tuple(Action), ("*",))
PLAIN = Work(Kind.SERVICE, ("package",), cpu_cores=1.0)


def asked(action: str = "place", *, tier: Tier | None = Tier.PAIRED, **work: Any) -> GateRequest:
    return GateRequest(action, "alice", "web", NodeName("elm"), tier, replace(PLAIN, **work))


def answer_of(request: GateRequest, *permits: Permit, **policy: Any) -> tuple[Ruling, str]:
    verdict = judge(Policy(permits or (WIDE,), **policy), (), request).verdict
    return verdict.ruling, verdict.rule


def test_nothing_is_permitted_by_default() -> None:
    for action in set(Action) - TEARDOWN:
        assert judge(Policy(), (), asked(action)).verdict.ruling is DENIED


CONDITIONS = [
    pytest.param({"actions": (Action.PLACE,)}, asked("place"), asked("swap"), id="actions"),
    pytest.param({"kinds": ("service",)}, asked(), asked(kind=Kind.JOB), id="kinds"),
    pytest.param(
        {"principals": ("alice",)}, asked(), replace(asked(), principal="bob"), id="principals"
    ),
    pytest.param(
        {"principals": ("alice",)},
        asked(),
        replace(asked(), principal=""),
        id="nobody in particular",
    ),
    pytest.param(
        {"projects": ("shop",)}, asked(project="shop"), asked(project="bank"), id="projects"
    ),
    pytest.param({"projects": ("shop",)}, asked(project="shop"), asked(), id="no project at all"),
    pytest.param(
        {"min_node_tier": Tier.PAIRED}, asked(), asked(tier=Tier.DISCOVERED), id="a lower tier"
    ),
    pytest.param(
        {"min_node_tier": Tier.TRUSTED}, asked(tier=Tier.TRUSTED), asked(), id="the tier below"
    ),
    pytest.param({"allow_emulated": False}, asked(), asked(emulated=True), id="emulated"),
    pytest.param({"allow_root": False}, asked(), asked(root=True), id="root"),
    pytest.param(
        {"allow_secrets": False},
        asked(tier=Tier.TRUSTED),
        asked(tier=Tier.TRUSTED, secrets=True),
        id="secrets",
    ),
    pytest.param(
        {"capabilities": ("CAP_CHOWN",)},
        asked(capabilities=("CAP_CHOWN",)),
        asked(capabilities=("CAP_CHOWN", "CAP_KILL")),
        id="capabilities",
    ),
    pytest.param(
        {"accelerators": ("accel.cuda",)},
        asked(accelerators=("accel.cuda",)),
        asked(accelerators=("accel", "accel.cuda")),
        id="accelerators",
    ),
    pytest.param(
        {"max_cpu_cores": 2.0}, asked(cpu_cores=2.0), asked(cpu_cores=2.001), id="max_cpu"
    ),
    pytest.param({"max_cpu_cores": 2.0}, asked(cpu_cores=2.0), asked(cpu_cores=0.0), id="no limit"),
]


@pytest.mark.parametrize(("condition", "inside", "outside"), CONDITIONS)
def test_a_condition_of_a_permit_holds_up_to_its_edge_and_not_beyond(
    condition: dict[str, Any], inside: GateRequest, outside: GateRequest
) -> None:
    permit = replace(WIDE, **condition)

    assert answer_of(inside, permit) == (ALLOWED, "wide")
    assert answer_of(outside, permit) == (DENIED, "no-permit")


@pytest.mark.parametrize(
    ("condition", "request_"),
    [
        pytest.param({"allow_emulated": True}, asked(emulated=True), id="emulated"),
        pytest.param({"allow_root": True}, asked(root=True), id="root"),
        pytest.param({"allow_secrets": True}, asked(tier=Tier.TRUSTED, secrets=True), id="secrets"),
        pytest.param(
            {"capabilities": ("*",)}, asked(capabilities=("CAP_KILL",)), id="capabilities"
        ),
        pytest.param({"accelerators": ("*",)}, asked(accelerators=("accel",)), id="accelerators"),
        pytest.param(
            {"min_node_tier": Tier.DISCOVERED}, asked(tier=Tier.DISCOVERED), id="discovered"
        ),
    ],
)
def test_what_a_permit_says_it_allows_is_allowed(
    condition: dict[str, Any], request_: GateRequest
) -> None:
    assert answer_of(request_, WIDE) == (DENIED, "no-permit")
    assert answer_of(request_, replace(WIDE, **condition)) == (ALLOWED, "wide")


def test_one_matching_permit_is_enough_and_is_the_one_named() -> None:
    for_jobs = replace(WIDE, id="jobs", kinds=("job",))
    for_all = replace(WIDE, id="all")

    assert answer_of(asked(), for_jobs, for_all) == (ALLOWED, "all")


def test_a_denial_says_of_every_permit_of_that_action_what_it_lacks() -> None:
    policy = Policy((replace(WIDE, kinds=("job",)), replace(WIDE, id="few", max_cpu_cores=0.5)))

    verdict = judge(policy, (), asked()).verdict

    assert verdict.reason == "wide: not for a service; few: 1 cores are over 0.5"


@pytest.mark.parametrize("action", sorted(TRUST_ACTIONS))
def test_conditions_about_package_and_node_do_not_hold_up_what_has_none(action: Action) -> None:
    narrow = replace(WIDE, kinds=("job",), projects=("x",), min_node_tier=Tier.TRUSTED)

    assert answer_of(GateRequest(action, "alice"), narrow) == (ALLOWED, "wide")
    assert answer_of(asked(action, root=True, secrets=True), narrow) == (ALLOWED, "wide")
    revoked = judge(Policy((narrow,)), frozenset({"package"}), asked(action)).verdict
    assert revoked.ruling is ALLOWED, "who takes a revocation back names what is revoked"


STEPS = [
    pytest.param("unknown-action", replace(asked("drop"), work=None), id="action known"),
    pytest.param("invalid-context", replace(asked(), work=None), id="context valid"),
    pytest.param("revoked", asked(refs=("package", "bad")), id="revocation"),
    pytest.param("freeze", asked("swap", secrets=True), id="explicit deny"),
    pytest.param("secrets-need-trusted", asked("move", secrets=True), id="secrets"),
    pytest.param("no-permit", asked(kind=Kind.JOB, emulated=True), id="a permit matches"),
    pytest.param("ceiling", asked(cpu_cores=4.0), id="ceiling"),
]
STEP_POLICY = Policy(
    permits=(Permit("services", tuple(WORK_ACTIONS), ("*",), kinds=("service",)),),
    denies=(Deny("freeze", (Action.SWAP,), "change freeze"),),
    ceiling=Ceiling(0.5),
)


@pytest.mark.parametrize(("rule", "request_"), STEPS)
def test_a_step_that_fails_decides_and_is_named(rule: str, request_: GateRequest) -> None:
    verdict = judge(STEP_POLICY, frozenset({"bad"}), request_).verdict

    assert (verdict.ruling, verdict.rule) == (DENIED, rule)


def test_what_passes_every_step_is_allowed_by_its_permit() -> None:
    verdict = judge(STEP_POLICY, frozenset({"bad"}), asked()).verdict

    assert (verdict.ruling, verdict.rule) == (ALLOWED, "services")


def test_of_several_steps_that_fail_the_first_decides() -> None:
    everything_wrong = asked("swap", refs=("bad",), secrets=True, kind=Kind.JOB, cpu_cores=64.0)
    rules = []
    assert everything_wrong.work is not None
    good = replace(everything_wrong.work, refs=("good",))
    mends: list[dict[str, Any]] = [
        {"action": "nothing", "work": None},
        {"work": None},
        {},
        {"work": good},
        {"action": "move", "work": good},
    ]
    for mend in mends:
        request = replace(everything_wrong, **mend)
        rules.append(judge(STEP_POLICY, frozenset({"bad"}), request).verdict.rule)

    assert rules == [
        *("unknown-action", "invalid-context", "revoked", "freeze", "secrets-need-trusted"),
    ]


@pytest.mark.parametrize("action", sorted(WORK_ACTIONS))
@pytest.mark.parametrize(
    "mend",
    [
        pytest.param({"work": None}, id="no package"),
        pytest.param({"work": replace(PLAIN, refs=())}, id="no ref"),
        pytest.param({"work": replace(PLAIN, refs=("",))}, id="an empty ref"),
        pytest.param({"node": None}, id="no node"),
        pytest.param({"tier": None}, id="no tier"),
    ],
)
def test_what_starts_work_names_a_package_and_a_node(action: Action, mend: dict[str, Any]) -> None:
    assert answer_of(asked(action)) == (ALLOWED, "wide")
    assert answer_of(replace(asked(action), **mend)) == (DENIED, "invalid-context")


@pytest.mark.parametrize("action", list(Action))
@pytest.mark.parametrize(
    ("policy", "revoked", "rule"),
    [
        pytest.param(Unreadable("torn"), (), "policy-unreadable", id="the policy"),
        pytest.param(
            Policy((WIDE,)), Unreadable("torn"), "revocations-unreadable", id="the revocations"
        ),
    ],
)
def test_what_cannot_be_read_denies_everything_but_teardown(
    action: Action, policy: Policy | Unreadable, revoked: Any, rule: str
) -> None:
    answer = judge(policy, revoked, asked(action))

    if action in TEARDOWN:
        assert answer.verdict.ruling is ALLOWED
        assert answer.waived is not None
        assert answer.waived.rule == rule
    else:
        assert (answer.verdict.ruling, answer.verdict.rule) == (DENIED, rule)
        assert answer.verdict.reason == "torn"


@pytest.mark.parametrize("action", sorted(TEARDOWN))
def test_no_denial_keeps_a_teardown_from_happening_but_an_explicit_one(action: Action) -> None:
    waived = judge(Policy(), (), asked(action))
    named = judge(Policy(denies=(Deny("keep", (action,), "evidence"),)), (), asked(action))
    other = judge(Policy(denies=(Deny("keep", (Action.PLACE,), "evidence"),)), (), asked(action))
    over = judge(Policy((WIDE,), ceiling=Ceiling(0, human_approval=True)), (), asked(action))
    allowed = judge(Policy((WIDE,)), (), asked(action))

    assert waived.verdict.rule == "teardown-waiver"
    assert waived.waived is not None
    assert waived.waived.rule == "no-permit"
    assert (named.verdict.ruling, named.verdict.rule, named.waived) == (DENIED, "keep", None)
    assert other.verdict.ruling is ALLOWED
    assert over.verdict.ruling is ALLOWED
    assert over.waived is not None
    assert over.waived.ruling is DEFERRED
    assert (allowed.verdict.rule, allowed.waived) == ("wide", None)


def test_an_explicit_deny_beats_every_permit() -> None:
    denies = (Deny("freeze", (Action.PLACE,), "until Monday"),)

    assert answer_of(asked(), denies=denies) == (DENIED, "freeze")
    assert answer_of(asked("move"), denies=denies) == (ALLOWED, "wide")


@pytest.mark.parametrize(
    ("ceiling", "ruling"),
    [
        pytest.param(None, ALLOWED, id="no ceiling"),
        pytest.param(Ceiling(0.3075), ALLOWED, id="just under it"),
        pytest.param(
            Ceiling(effect_of(asked(cpu_cores=1.0)).magnitude), ALLOWED, id="exactly at it"
        ),
        pytest.param(Ceiling(0.3074), DENIED, id="just over it"),
        pytest.param(Ceiling(0.3074, human_approval=True), DEFERRED, id="over it, with people"),
        pytest.param(Ceiling(0.3075, human_approval=True), ALLOWED, id="under it, with people"),
    ],
)
def test_the_ceiling_lets_through_what_is_not_over_it(
    ceiling: Ceiling | None, ruling: Ruling
) -> None:
    request = asked(cpu_cores=1.0)

    assert effect_of(request).magnitude == pytest.approx(0.307409, abs=1e-5)
    assert answer_of(request, ceiling=ceiling)[0] is ruling


EFFECTS = [
    pytest.param(asked(cpu_cores=2.0), (0.1, 0.6, 0.2, 0.0, 0.5), id="plain on a paired node"),
    pytest.param(asked(tier=Tier.TRUSTED), (0.1, 0.4, 0.2, 0.0, 0.25), id="a trusted node"),
    pytest.param(asked(tier=Tier.DISCOVERED), (0.1, 1.0, 0.2, 0.0, 0.25), id="discovered: clamped"),
    pytest.param(asked(emulated=True), (0.2, 0.6, 0.2, 0.4, 0.25), id="emulated"),
    pytest.param(asked(root=True), (0.3, 0.6, 0.2, 0.0, 0.25), id="root"),
    pytest.param(asked(unsigned=True), (0.9, 0.6, 0.2, 0.0, 0.25), id="unsigned"),
    pytest.param(
        asked(unsigned=True, root=True, emulated=True),
        (1.0, 0.6, 0.2, 0.4, 0.25),
        id="unsigned, as root, emulated: clamped",
    ),
    pytest.param(asked(secrets=True), (0.1, 0.6, 0.7, 0.0, 0.25), id="secrets"),
    pytest.param(asked(accelerators=("accel",)), (0.1, 0.6, 0.2, 0.2, 0.25), id="an accelerator"),
    pytest.param(
        asked(accelerators=("accel",), emulated=True), (0.2, 0.6, 0.2, 0.6, 0.25), id="both new"
    ),
    pytest.param(asked(cpu_cores=4.0), (0.1, 0.6, 0.2, 0.0, 1.0), id="four cores"),
    pytest.param(asked(cpu_cores=64.0), (0.1, 0.6, 0.2, 0.0, 1.0), id="many cores: clamped"),
    pytest.param(asked(cpu_cores=0.0), (0.1, 0.6, 0.2, 0.0, 1.0), id="no limit is all there are"),
    pytest.param(asked(tier=None), (0.1, 1.0, 0.2, 0.0, 0.25), id="no node is the worst node"),
    pytest.param(replace(asked(), work=None), (0, 0, 0, 0, 0), id="nothing is started"),
    pytest.param(asked("signer.add", root=True), (0, 0, 0, 0, 0), id="trust is no effect"),
]


@pytest.mark.parametrize(("request_", "parts"), EFFECTS)
def test_an_effect_has_the_parts_that_follow_from_the_work_and_the_node(
    request_: GateRequest, parts: tuple[float, ...]
) -> None:
    assert tuple(effect_of(request_).parts.values()) == parts


def test_the_magnitude_is_a_share_of_the_worst() -> None:
    assert Effect(1, 1, 1, 1, 1).magnitude == 1.0
    assert Effect().magnitude == 0.0
    assert Effect(risk=1).magnitude == 0.447214


def test_the_work_of_a_package_is_read_from_all_that_it_may_become() -> None:
    spec = WorkloadSpec(
        Kind.JOB,
        "train",
        common=(Requirement(id="os.linux"),),
        variants=(
            Variant("gpu", requirements=(Requirement(id="accel.cuda"),)),
            Variant("cpu", requirements=(Requirement(id_prefix="accelerated"),)),
        ),
        resources=Resources(cpu_cores=3.0),
        secrets=("TOKEN",),
        revocable_refs=("p", "k"),
        user="root",
        capabilities=("CAP_KILL", "CAP_CHOWN"),
    )

    work = work_of(spec, where=(Requirement(id_prefix="accel"),), project="lab", emulated=True)

    assert work == Work(
        Kind.JOB,
        ("p", "k"),
        project="lab",
        secrets=True,
        emulated=True,
        root=True,
        capabilities=("CAP_CHOWN", "CAP_KILL"),
        accelerators=("accel", "accel.cuda"),
        cpu_cores=3.0,
    )


def test_plain_work_is_nothing_special() -> None:
    work = work_of(WorkloadSpec(Kind.SERVICE, "web", user="www-data"))

    assert work == Work(Kind.SERVICE, ())


def test_accelerator_memory_alone_asks_for_an_accelerator() -> None:
    spec = WorkloadSpec(Kind.JOB, "train", resources=Resources(accel_memory_bytes=1))

    assert work_of(spec).accelerators == ("accel",)


def test_every_action_is_of_one_sort_at_most() -> None:
    assert not WORK_ACTIONS & TEARDOWN
    assert not WORK_ACTIONS & TRUST_ACTIONS
    assert not TEARDOWN & TRUST_ACTIONS
    assert set(Action) - WORK_ACTIONS - TEARDOWN - TRUST_ACTIONS == {Action.SLOT_BOOT}
