"""A start or restart whose connection is cut anywhere: one run or none, and the truth is told."""

from collections.abc import Callable

import pytest

from tests.fleet.field import ELM, Fleet
from tests.fleet.lost import ANSWER_BYTES, end_all, recorded
from tests.fleet.proxy import Cut, Way
from tests.fleet.sample import TIMEOUT_S
from tests.fleet.test_cut_answers import BOTH_WAYS, case, places_to_cut
from wlctl.flows import starting
from wlctl.flows.ending import End
from wlctl.flows.start_intents import Begin, Beginning
from wlctl.ledger import instances
from wlctl.model.instance import State

pytestmark = pytest.mark.timeout(TIMEOUT_S)


def start(fleet: Fleet) -> Beginning:
    with fleet.runtime() as rt:
        return starting.start(rt, "web")


def restart(fleet: Fleet) -> Beginning:
    with fleet.runtime() as rt:
        with rt.ledger.read() as tx:
            found = instances.find(tx, "web")
        return starting.restart_one(rt, found)


def stopped(fleet: Fleet) -> None:
    fleet.place()
    assert fleet.stop().end is End.DONE


def placed(fleet: Fleet) -> None:
    fleet.place()


BEGINNINGS: dict[str, tuple[Callable[[Fleet], None], Callable[[Fleet], Beginning]]] = {
    "start": (stopped, start),
    "restart": (placed, restart),
}


@BOTH_WAYS
@pytest.mark.parametrize("verb", BEGINNINGS)
def test_a_beginning_that_is_cut_says_so_and_is_finished_by_typing_it_again(
    fleet: Fleet, verb: str, way: Way
) -> None:
    prepare, begin = BEGINNINGS[verb]
    fleet.ready()
    prepare(fleet)
    ends = recorded(fleet, begin)[way]
    end_all(fleet, "uncut")

    for at in places_to_cut(ends, 3, salt=f"{verb} {way}"):
        where = f"{verb} {case(way, at, ends)}"
        fleet.ready()
        prepare(fleet)
        fleet.proxy.plan({1: Cut(way, at)})
        begun = begin(fleet)

        there = fleet.copies()
        match begun.begin:
            case Begin.DONE:
                assert there == [ELM], where
                assert begun.instance.state is State.RUNNING, where
            case Begin.UNREACHABLE | Begin.INDETERMINATE:
                assert set(there) <= {ELM}, where
                assert len(there) <= 1, where
            case _:
                raise AssertionError(f"{begun}: {where}")
        assert len(fleet.holds()) == 1, f"what may run holds its room: {where}"

        fleet.ready()
        again = begin(fleet)
        assert again.begin in (Begin.DONE, Begin.ALREADY), f"{again}: {where}"
        assert fleet.copies() == [ELM], where
        fleet.assert_agreement()
        end_all(fleet, where)


def test_a_start_whose_answer_was_lost_is_adopted_and_not_begun_anew(fleet: Fleet) -> None:
    fleet.ready()
    stopped(fleet)
    ends = recorded(fleet, start)[Way.ANSWER]
    end_all(fleet, "uncut")
    fleet.ready()
    stopped(fleet)
    fleet.proxy.plan({1: Cut(Way.ANSWER, ends[-1] - ANSWER_BYTES)})

    lost = start(fleet)
    assert lost.begin is Begin.INDETERMINATE
    assert lost.instance.unsettled

    fleet.ready()
    found = start(fleet)
    assert found.begin is Begin.DONE
    assert found.launched is not None
    assert found.launched.generation == lost.instance.generation
    assert (found.instance.state, found.instance.unsettled) == (State.RUNNING, False)
    fleet.assert_agreement()
    end_all(fleet, "adopted")
