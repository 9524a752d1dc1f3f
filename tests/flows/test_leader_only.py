"""A node without a cgroup: nothing runs there, unless its operator settles for less."""

import pytest

from tests.flows.policed import OWNER, WORK, apply, run_by
from tests.flows.setting import Setting
from wlctl.errors import GateDenied
from wlctl.flows import listing, node_changes, proving
from wlctl.flows.node_changes import Words
from wlctl.flows.start_intents import Begin
from wlctl.flows.starting import restart_one, start_one
from wlctl.ledger.attempts import Outcome
from wlctl.ledger.generations import PROVEN
from wlctl.ledger.verify import Verified
from wlctl.model.instance import State
from wlctl.model.node import Node, Settles, Tier
from wlctl.placement.explain import explain


def settle_for(setting: Setting, settles: Settles) -> Node:
    with setting.runtime() as rt:
        return node_changes.say(rt, "elm", Words(settles=settles))


@pytest.fixture
def elm(setting: Setting) -> Setting:
    """An installation whose only node has no cgroup to give."""
    setting.add_node("elm", has_cgroup=False)
    return setting


def test_nothing_is_placed_there_while_nobody_settles_for_it(elm: Setting) -> None:
    report = elm.place()

    (attempt,) = report.copies[0].attempts
    assert (attempt.outcome, attempt.code) == (Outcome.REFUSED, "no_cgroup")
    assert elm.holds() == ()


def test_by_its_operator_s_word_it_runs_there_and_everything_says_how(elm: Setting) -> None:
    assert settle_for(elm, Settles.LEADER_ONLY).is_leader_only

    report = elm.place()

    assert report.copies[0].is_placed
    assert report.document is not None
    assert "[leader_only]" in explain(report.document)
    assert elm.events("workload.place")[-1].payload["containment"] == "leader-only"
    with elm.runtime() as rt:
        (listed,) = listing.ps(rt)
        assert (listed.containment, listed.confined) == ("leader-only", False)
    ending = elm.stop("web")
    assert ending.instance.state is State.STOPPED
    with elm.runtime() as rt:
        proved = proving.prove(rt, ending.instance, stored=True)
    assert proved.judgement == PROVEN
    assert proved.runs[0].evidence is not None
    assert proved.runs[0].evidence["containment"] == "leader-only"
    assert elm.holds() == ()


def test_the_word_is_chained_once_and_taken_back_for_what_starts_later(elm: Setting) -> None:
    settle_for(elm, Settles.LEADER_ONLY)
    settle_for(elm, Settles.LEADER_ONLY)
    instance = elm.place().copies[0].instance
    assert instance is not None

    settle_for(elm, Settles.AUTO)

    told = [event.payload.get("containment") for event in elm.events("node.set")]
    assert told == ["leader-only", "auto"]
    with elm.runtime() as rt:
        assert start_one(rt, instance).begin is Begin.ALREADY, "what runs goes on"
        refused = restart_one(rt, elm.instance("web"))
    assert (refused.begin, refused.code) == (Begin.REFUSED, "no_cgroup")
    assert isinstance(elm.verified(), Verified)


def test_where_the_node_has_a_cgroup_the_word_changes_nothing(setting: Setting) -> None:
    setting.add_node("elm")
    assert not settle_for(setting, Settles.LEADER_ONLY).is_leader_only

    report = setting.place()

    assert report.document is not None
    assert "leader_only" not in explain(report.document)
    with setting.runtime() as rt:
        (listed,) = listing.ps(rt)
    assert (listed.containment, listed.confined) == ("isolated", True)


@pytest.mark.parametrize("tier", [None, Tier.TRUSTED])
def test_who_may_not_change_trust_may_not_say_it(elm: Setting, tier: Tier | None) -> None:
    apply(elm, OWNER + WORK)

    with run_by(elm, "alice") as rt, pytest.raises(GateDenied) as caught:
        node_changes.say(rt, "elm", Words(tier=tier, settles=Settles.LEADER_ONLY))

    assert "node.containment" in str(caught.value)
    assert elm.node("elm").settles is Settles.AUTO
    assert elm.node("elm").tier is Tier.PAIRED


def test_it_is_said_of_a_machine_and_not_of_the_one_that_replaces_it(elm: Setting) -> None:
    settle_for(elm, Settles.LEADER_ONLY)

    with elm.runtime() as rt:
        node_changes.rekey(rt, "elm", Tier.PAIRED, accept=lambda *_: None)
    assert elm.node("elm").settles is Settles.LEADER_ONLY, "it is the same machine"

    elm.world.nodes["elm"].node_id = "f" * 32
    with elm.runtime() as rt:
        node_changes.rekey(rt, "elm", Tier.PAIRED, accept=lambda *_: None)
    assert elm.node("elm").settles is Settles.AUTO
    assert isinstance(elm.verified(), Verified)
