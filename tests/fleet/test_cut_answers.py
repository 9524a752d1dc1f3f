"""A connection cut anywhere, on the way there or back: one copy or none, and the truth is told."""

import os
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.fleet.field import ELM, Fleet
from tests.fleet.lost import (
    ANSWER_BYTES,
    SHORT_BYTES,
    after_the_request,
    before_the_request,
    end_all,
    first_action,
    recorded,
    request_end,
    with_the_request,
)
from tests.fleet.proxy import Cut, Way
from tests.fleet.sample import SEED, TIMEOUT_S, sample, within
from wlctl.cli.placed import exit_code
from wlctl.errors import ExitCode, Indeterminate
from wlctl.flows import waiting
from wlctl.flows.ending import End
from wlctl.flows.place import Report
from wlctl.flows.waiting import Came, Until
from wlctl.host.node import NodeSession, connect
from wlctl.ledger.attempts import Outcome
from wlctl.model.actions import Launched, Placed, PlaceRequest, RefusalCode, Refused
from wlctl.model.instance import State

pytestmark = pytest.mark.timeout(TIMEOUT_S)

BOTH_WAYS = pytest.mark.parametrize("way", list(Way))


def places_to_cut(ends: Sequence[int], count: int, *, salt: str) -> list[int]:
    """Choose where to cut: after a message, one byte before its end, and at any byte.

    A third of the sample is in the last messages: there are the change that is asked for, and its
    answer; what is before them logs in and brings files.
    """
    edges = sorted({at for end in ends for at in (end - 1, end)})
    late = edges[-12:]
    chosen = sample(edges[:-12], count // 3, salt=salt) + sample(late, count // 3, salt=salt)
    return sorted({*chosen, *within(ends[-1], count // 3, salt=salt)})


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


def place_anew(fleet: Fleet) -> Report:
    fleet.forget_files()
    return fleet.place()


@BOTH_WAYS
def test_a_place_that_is_cut_once_is_settled_and_ends_with_one_copy(fleet: Fleet, way: Way) -> None:
    ends = recorded(fleet, place_anew)[way]
    end_all(fleet, "uncut")

    for number, at in enumerate(places_to_cut(ends, 6, salt=f"place {way}")):
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

    for at in places_to_cut(ends, 3, salt=f"settle {way}"):
        where = f"settling {case(way, at, ends)}"
        fleet.ready()
        fleet.proxy.plan({**lost, 2: Cut(way, at)})
        report = fleet.place()

        assert report.copies[0].is_placed, where
        assert_true(fleet, report, where)
        fleet.assert_agreement()
        end_all(fleet, where)


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

    for at in places_to_cut(ends, 3, salt=f"{verb} {way}"):
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
    ends = first_action(fleet, ENDINGS[verb], "stop")[way]
    end = ends[-1] - ANSWER_BYTES if way is Way.ANSWER else request_end(ends) - SHORT_BYTES
    end_all(fleet, "uncut")
    fleet.ready()
    fleet.proxy.plan({1: replace(lost, stays=True)})
    assert fleet.place().copies[0].is_open
    fleet.proxy.plan({number: Cut(way, end) for number in (1, 2)})  # it is asked twice
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


def test_an_unload_right_behind_a_lost_place_ends_what_its_node_is_still_at_work_on(
    fleet: Fleet,
) -> None:
    cut = with_the_request(fleet)

    for delay_ms in within(500, 3, salt="delay"):
        where = f"{delay_ms} ms later (WLCTL_SEED={SEED})"
        fleet.ready()
        fleet.proxy.plan({1: replace(cut, stays=True)})
        assert fleet.place().copies[0].is_open, where
        fleet.proxy.plan()
        time.sleep(delay_ms / 1000)
        ended = fleet.unload()

        assert ended.end is End.DONE, f"{ended}: {where}"
        assert fleet.copies() == [], where
        fleet.assert_empty()


def test_while_it_is_waited_for_a_look_that_is_cut_is_taken_again(fleet: Fleet) -> None:
    report = fleet.place()
    for number in (1, 2):
        fleet.ready()
        fleet.proxy.plan({number: Cut(Way.ANSWER, 2000), number + 1: Cut(Way.REQUEST, 2000)})
        with fleet.runtime() as rt:
            waits = waiting.wait_for_all(
                rt, report, until=Until.RUNNING, timeout_s=60, go_on=lambda: True
            )
        assert waits["web"].came is Came.UP
        assert fleet.proxy.cuts_made == 2
    fleet.assert_agreement()
    end_all(fleet, "it was up")
