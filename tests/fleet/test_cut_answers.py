"""A connection cut anywhere, on the way there or back: one copy or none, and the truth is told."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest

from tests.fleet.field import ELM, Fleet
from tests.fleet.proxy import Cut, Way
from tests.fleet.sample import SEED, TIMEOUT_S, sample, within
from wlctl.cli.placed import exit_code
from wlctl.errors import ExitCode, Indeterminate
from wlctl.flows.ending import End
from wlctl.flows.place import Report
from wlctl.host.node import NodeSession, connect
from wlctl.ledger.attempts import Outcome
from wlctl.model.actions import Launched, Placed, PlaceRequest, RefusalCode, Refused
from wlctl.model.instance import State

pytestmark = pytest.mark.timeout(TIMEOUT_S)

BOTH_WAYS = pytest.mark.parametrize("way", list(Way))

ANSWER_BYTES = 300
"""So many bytes before its end, a place's connection has brought a part of the answer."""

REQUEST_BYTES = 200
"""So many bytes before its end, it has taken a part of what is asked, after all of the text."""

Act = Callable[[Fleet], object]


def recorded(fleet: Fleet, act: Act, cuts: Mapping[int, Cut] | None = None) -> dict[Way, list[int]]:
    """Let `act` be, and say where the messages of its last connection ended, each way."""
    fleet.ready()
    fleet.proxy.plan(cuts)
    act(fleet)
    fleet.proxy.wait()
    last = max(number for number, _ in fleet.proxy.messages)
    return {way: list(fleet.proxy.messages[last, way]) for way in Way}


def places_to_cut(ends: Sequence[int], count: int, *, salt: str) -> list[int]:
    """Choose where to cut: after a message, one byte before its end, and at any byte.

    Half of the sample is in the last messages: there are the change that is asked for, and its
    answer; what is before them logs in and brings files.
    """
    edges = sorted({at for end in ends for at in (end - 1, end)})
    late = edges[-12:]
    chosen = sample(edges[:-12], count // 4, salt=salt) + sample(late, count // 2, salt=salt)
    return sorted({*chosen, *within(ends[-1], count - len(chosen), salt=salt)})


def case(way: Way, at: int, ends: Sequence[int]) -> str:
    return f"cut after byte {at} of {ends[-1]} of the {way} (WLCTL_SEED={SEED})"


def assert_true(fleet: Fleet, report: Report, where: str) -> None:
    """What a report says of its one copy is what is seen from outside."""
    (copy,) = report.copies
    there = fleet.copies()
    code = exit_code(report, {})
    if copy.is_placed:
        assert copy.instance is not None
        assert there == [copy.instance.node], where
        assert code is ExitCode.DONE, where
    elif copy.is_open:
        assert len(there) <= 1, where
        assert code is ExitCode.INDETERMINATE, where
    else:
        assert there == [], where
        assert code in (ExitCode.UNREACHABLE, ExitCode.CANNOT_PLACE), where


def end_all(fleet: Fleet, where: str) -> None:
    assert fleet.unload().end in (End.DONE, End.ALREADY), where
    fleet.assert_empty()


def place_anew(fleet: Fleet) -> Report:
    fleet.forget_files()
    return fleet.place()


@BOTH_WAYS
def test_a_place_that_is_cut_once_is_settled_and_ends_with_one_copy(fleet: Fleet, way: Way) -> None:
    ends = recorded(fleet, place_anew)[way]
    end_all(fleet, "uncut")

    for number, at in enumerate(places_to_cut(ends, 8, salt=f"place {way}")):
        where = case(way, at, ends)
        fleet.ready()
        fleet.forget_files()
        fleet.proxy.plan({1: Cut(way, at)})
        pinned = {"pin": ELM} if number % 2 else {}
        report = fleet.place(**pinned)

        assert not report.copies[0].is_open, f"its node could be asked: {where}"
        assert report.copies[0].is_placed or pinned, f"oak was there to be tried: {where}"
        assert_true(fleet, report, where)

        fleet.place(**pinned)
        assert len(fleet.copies()) == 1, where
        fleet.assert_agreement()
        end_all(fleet, where)


@BOTH_WAYS
def test_a_settling_that_is_cut_as_well_is_asked_again(fleet: Fleet, way: Way) -> None:
    lost = {1: after_the_request(fleet)}
    ends = recorded(fleet, Fleet.place, lost)[way]
    assert fleet.proxy.cuts_made == 1
    end_all(fleet, "cut once")

    for at in places_to_cut(ends, 4, salt=f"settle {way}"):
        where = f"settling {case(way, at, ends)}"
        fleet.ready()
        fleet.proxy.plan({**lost, 2: Cut(way, at)})
        report = fleet.place()

        assert report.copies[0].is_placed, where
        assert_true(fleet, report, where)
        fleet.assert_agreement()
        end_all(fleet, where)


def after_the_request(fleet: Fleet) -> Cut:
    """Say where to cut so that the node gets all of a place, and nobody hears its answer."""
    fleet.place()
    end_all(fleet, "its files are on the node from now on")
    ends = recorded(fleet, Fleet.place)[Way.ANSWER]
    end_all(fleet, "uncut")
    return Cut(Way.ANSWER, ends[-1] - ANSWER_BYTES)


ENDINGS = {"stop": Fleet.stop, "unload": Fleet.unload}


@BOTH_WAYS
@pytest.mark.parametrize("verb", ENDINGS)
def test_an_ending_that_is_cut_says_so_and_is_finished_by_typing_it_again(
    fleet: Fleet, verb: str, way: Way
) -> None:
    end = ENDINGS[verb]
    fleet.ready()
    fleet.place()
    ends = recorded(fleet, end)[way]
    end_all(fleet, "uncut")

    for at in places_to_cut(ends, 4, salt=f"{verb} {way}"):
        where = f"{verb} {case(way, at, ends)}"
        fleet.ready()
        fleet.place()
        fleet.proxy.plan({1: Cut(way, at)})
        ended = end(fleet)

        there = fleet.copies()
        match ended.end:
            case End.DONE:
                assert there == [], where
            case End.UNREACHABLE:
                assert there == [ELM], f"nothing was done on the node: {where}"
            case End.INDETERMINATE:
                assert set(there) <= {ELM}, where
            case _:
                raise AssertionError(f"{ended}: {where}")
        assert (fleet.holds() == ()) == (ended.end is End.DONE), where

        assert end(fleet).end in (End.DONE, End.ALREADY), where
        assert fleet.copies() == [], where
        fleet.assert_agreement()
        end_all(fleet, where)


@BOTH_WAYS
@pytest.mark.parametrize("verb", ENDINGS)
def test_a_copy_nobody_ever_heard_of_whose_ending_is_lost_too_is_brought_to_an_end(
    fleet: Fleet, verb: str, way: Way
) -> None:
    lost = after_the_request(fleet)
    fleet.place()
    end = recorded(fleet, ENDINGS[verb])[way][-1] - (ANSWER_BYTES if way is Way.ANSWER else 100)
    end_all(fleet, "uncut")
    fleet.ready()
    fleet.proxy.plan({1: replace(lost, stays=True)})
    assert fleet.place().copies[0].is_open
    fleet.proxy.plan({1: Cut(way, end)})
    assert ENDINGS[verb](fleet).end is End.INDETERMINATE
    fleet.proxy.plan()
    assert fleet.copies() == ([] if way is Way.ANSWER else [ELM])

    fleet.place()
    fleet.assert_agreement()
    instance = fleet.instance()
    assert instance is not None
    assert (instance.state, fleet.copies()) == (
        (State.STOPPED, []) if verb == "stop" else (State.RUNNING, [ELM])
    )
    end_all(fleet, "at last")


@pytest.mark.parametrize("way", list(Way))
def test_while_its_node_cannot_be_asked_nobody_knows_and_afterwards_the_same_command_does(
    fleet: Fleet, way: Way
) -> None:
    answer = after_the_request(fleet)
    cut = answer if way is Way.ANSWER else before_the_request(fleet)
    fleet.ready()
    fleet.proxy.plan({1: replace(cut, stays=True)})

    report = fleet.place()
    assert report.copies[0].is_open
    assert_true(fleet, report, f"{way}")
    assert [held.node for held in fleet.holds()] == [ELM]
    with pytest.raises(Indeterminate) as asked_again:
        fleet.place()
    assert asked_again.value.exit_code is ExitCode.INDETERMINATE
    assert fleet.unload().end is End.UNREACHABLE

    fleet.proxy.plan()
    fleet.place()
    assert len(fleet.copies()) == 1
    fleet.assert_agreement()
    end_all(fleet, f"{way}")


def before_the_request(fleet: Fleet) -> Cut:
    """Say where to cut so that the node gets a part of a place, and does nothing."""
    fleet.place()
    end_all(fleet, "its files are on the node from now on")
    ends = recorded(fleet, Fleet.place)[Way.REQUEST]
    end_all(fleet, "uncut")
    return Cut(Way.REQUEST, ends[-1] - REQUEST_BYTES)


def test_a_place_that_arrives_after_it_was_settled_is_refused_by_its_node(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[PlaceRequest] = []
    really = NodeSession.place

    def listened(self: NodeSession, request: PlaceRequest) -> Placed | Launched | Refused:
        sent.append(request)
        return really(self, request)

    cut = before_the_request(fleet)
    monkeypatch.setattr(NodeSession, "place", listened)
    fleet.ready()
    fleet.proxy.plan({1: cut})
    report = fleet.place(pin=ELM)

    (attempt,) = report.copies[0].attempts
    assert (attempt.outcome, attempt.settled) == (Outcome.INDETERMINATE, "cancelled")
    (late,) = sent
    with connect(
        fleet.elm.address, keys=[fleet.elm.client_key], nonce=lambda: os.urandom(16).hex()
    ) as session:
        answers = [session.place(late), session.place(replace(late, number=9))]
    codes = [answer.code for answer in answers if isinstance(answer, Refused)]
    assert codes == [RefusalCode.CANCELLED, RefusalCode.CANCELLED]
    assert fleet.copies() == []
