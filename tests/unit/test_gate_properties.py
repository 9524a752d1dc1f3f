"""The gate, whatever is asked: nothing in a request makes it allow more than its effect does."""

import math
from dataclasses import fields, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from wlctl.gate.judge import judge
from wlctl.model.fleet import Ruling
from wlctl.model.ids import NodeName
from wlctl.model.node import Tier
from wlctl.model.policy import (
    TEARDOWN,
    TRUST_ACTIONS,
    Action,
    Ceiling,
    Deny,
    GateRequest,
    Permit,
    Policy,
    Unreadable,
    Work,
)
from wlctl.model.workload import Kind

RANK = {Ruling.DENIED: 0, Ruling.DEFERRED: 1, Ruling.ALLOWED: 2}
words = st.sampled_from(["", "*", "alice", "shop", "accel", "CAP_KILL", "ceiling", "\0"])
some = st.lists(words, max_size=3).map(tuple)

works = st.builds(
    Work,
    kind=st.sampled_from(Kind),
    refs=some,
    project=words,
    unsigned=st.booleans(),
    secrets=st.booleans(),
    emulated=st.booleans(),
    root=st.booleans(),
    capabilities=some,
    accelerators=some,
    cpu_cores=st.floats(0, 4096),
)
requests = st.builds(
    GateRequest,
    action=st.sampled_from(Action).map(str) | words,
    principal=words,
    about=words,
    node=st.none() | words.map(NodeName),
    tier=st.none() | st.sampled_from(Tier),
    work=st.none() | works,
)
actions = st.lists(st.sampled_from(Action), min_size=1, unique=True).map(tuple)
WORSE = ["unsigned", "secrets", "emulated", "root"]
PERMISSIVE = Permit(
    "all",
    tuple(Action),
    ("*",),
    min_node_tier=Tier.DISCOVERED,
    allow_secrets=True,
    allow_emulated=True,
    allow_root=True,
    capabilities=("*",),
    accelerators=("*",),
)
permits = st.just(PERMISSIVE) | st.builds(
    Permit,
    id=st.just("permit"),
    actions=actions,
    principals=some,
    kinds=st.sampled_from([("*",), ("job",)]),
    projects=some,
    min_node_tier=st.sampled_from(Tier),
    allow_secrets=st.booleans(),
    allow_emulated=st.booleans(),
    allow_root=st.booleans(),
    capabilities=some,
    accelerators=some,
    max_cpu_cores=st.none() | st.floats(0, 4096),
)
ceilings = st.builds(Ceiling, st.floats(0, 1), st.booleans())
policies = st.builds(
    Policy,
    permits=st.lists(permits, max_size=3).map(tuple),
    denies=st.lists(st.builds(Deny, st.just("deny"), actions, words), max_size=1).map(tuple),
    ceiling=st.none() | ceilings,
)


def magnitude(request: GateRequest) -> float:
    """The effect as the design has it, told once more."""
    work = request.work
    if work is None or request.action in TRUST_ACTIONS:
        return 0.0
    security = {Tier.DISCOVERED: 0.8, Tier.PAIRED: 0.3, Tier.TRUSTED: 0.1, None: 0.8}[request.tier]
    parts = (
        min(1, (0.9 if work.unsigned else 0.1) + 0.1 * work.emulated + 0.2 * work.root),
        min(1, security + 0.3),
        (0.5 if work.secrets else 0) + 0.2,
        (0.4 if work.emulated else 0) + (0.2 if work.accelerators else 0),
        1.0 if work.cpu_cores == 0 else min(1, work.cpu_cores / 4),
    )
    return math.sqrt(sum(part**2 for part in parts)) / math.sqrt(5)


@settings(deadline=None)  # the machine may be busy
@given(policies, requests)
def test_nothing_over_the_ceiling_is_allowed_whatever_else_it_says(
    policy: Policy, request: GateRequest
) -> None:
    answer = judge(policy, (), request)

    over = policy.ceiling is not None and magnitude(request) > policy.ceiling.magnitude + 1e-5
    if over and answer.waived is None:
        assert answer.verdict.ruling is not Ruling.ALLOWED


@settings(deadline=None)  # the machine may be busy
@given(ceilings, requests)
def test_where_everything_is_permitted_only_the_effect_decides(
    ceiling: Ceiling, request: GateRequest
) -> None:
    answer = judge(Policy((PERMISSIVE,), ceiling=ceiling), (), request)

    if answer.verdict.rule in {"all", "ceiling"}:
        over = Ruling.DEFERRED if ceiling.human_approval else Ruling.DENIED
        is_over = answer.effect.magnitude > ceiling.magnitude
        assert answer.verdict.ruling is (over if is_over else Ruling.ALLOWED)


@settings(deadline=None)  # the machine may be busy
@given(policies, requests, st.data())
def test_asking_for_more_never_gets_a_better_verdict(
    policy: Policy, request: GateRequest, data: st.DataObject
) -> None:
    if request.work is None or request.action in TEARDOWN:
        return
    more: dict[str, Any] = {
        "capabilities": (*request.work.capabilities, *data.draw(some)),
        "accelerators": (*request.work.accelerators, *data.draw(some)),
        **dict.fromkeys(data.draw(st.sets(st.sampled_from(WORSE))), True),
    }
    worse = replace(request, work=replace(request.work, **more))

    before = judge(policy, (), request).verdict.ruling
    assert RANK[judge(policy, (), worse).verdict.ruling] <= RANK[before]


@settings(deadline=None)  # the machine may be busy
@given(policies, requests, st.sampled_from(Tier))
def test_a_less_trusted_node_never_gets_a_better_verdict(
    policy: Policy, request: GateRequest, tier: Tier
) -> None:
    if request.tier is None or request.tier < tier or request.action in TEARDOWN:
        return
    lower = judge(policy, (), replace(request, tier=tier)).verdict.ruling

    assert RANK[lower] <= RANK[judge(policy, (), request).verdict.ruling]


@settings(deadline=None)  # the machine may be busy
@given(requests)
def test_an_unreadable_policy_allows_teardown_and_nothing_else(request: GateRequest) -> None:
    answer = judge(Unreadable("torn"), (), request)

    assert (answer.verdict.ruling is Ruling.ALLOWED) == (request.action in TEARDOWN)


@settings(deadline=None)  # the machine may be busy
@given(policies, requests)
def test_an_unreadable_revocation_list_allows_teardown_and_nothing_else(
    policy: Policy, request: GateRequest
) -> None:
    answer = judge(policy, Unreadable("torn"), request)

    assert (answer.verdict.ruling is Ruling.ALLOWED) == (request.action in TEARDOWN)


@settings(deadline=None)  # the machine may be busy
@given(policies, requests, words, words)
def test_no_words_of_a_request_but_who_asks_and_for_which_project_change_its_verdict(
    policy: Policy, request: GateRequest, about: str, node: str
) -> None:
    """What it is about and how its node is called are for people; its effect is derived."""
    if request.node is None:
        return
    other = replace(request, about=about, node=NodeName(node))

    before, after = judge(policy, (), request), judge(policy, (), other)

    assert (after.verdict, after.effect) == (before.verdict, before.effect)


@settings(deadline=None)  # the machine may be busy
@given(policies, requests)
def test_what_names_something_revoked_never_runs(policy: Policy, request: GateRequest) -> None:
    if request.work is None or not request.work.refs or request.action in TEARDOWN | TRUST_ACTIONS:
        return
    revoked = frozenset(request.work.refs[:1])

    assert judge(policy, revoked, request).verdict.ruling is Ruling.DENIED


@settings(deadline=None)  # the machine may be busy
@given(policies, requests)
def test_teardown_is_denied_by_an_explicit_deny_and_by_nothing_else(
    policy: Policy, request: GateRequest
) -> None:
    denied = judge(policy, (), request).verdict.ruling is not Ruling.ALLOWED
    if request.action in TEARDOWN:
        assert denied == any(request.action in deny.actions for deny in policy.denies)


@settings(deadline=None)  # the machine may be busy
@given(policies, requests)
def test_every_answer_names_its_rule(policy: Policy, request: GateRequest) -> None:
    answer = judge(policy, (), request)

    assert answer.verdict.rule
    assert answer.verdict.reason or answer.verdict.rule in {"permit", "deny", "all"}


def test_a_request_has_no_field_for_an_effect_of_its_own() -> None:
    assert {field.name for field in fields(GateRequest)} == {
        *("action", "principal", "about", "node", "tier", "work"),
    }
