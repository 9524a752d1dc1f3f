"""Where a connection is to be cut so that a request is lost, or its answer."""

from collections.abc import Callable, Mapping
from itertools import pairwise

from tests.fleet.field import Fleet
from tests.fleet.proxy import Cut, Way
from wlctl.flows.ending import End

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


def after_the_request(fleet: Fleet) -> Cut:
    """Say where to cut so that the node gets all of a place, and nobody hears its answer."""
    return _place_cut(fleet, Way.ANSWER, ANSWER_BYTES)


def before_the_request(fleet: Fleet) -> Cut:
    """Say where to cut so that the node gets a part of a place, and does nothing."""
    return _place_cut(fleet, Way.REQUEST, REQUEST_BYTES)


def with_the_request(fleet: Fleet) -> Cut:
    """Say where to cut so that the node has all of a place, and has only begun with it.

    What is sent after the request says that its answer was heard, so it is not in the smallest.
    """
    found = []
    for _ in range(3):
        ends = recorded(fleet, Fleet.place)[Way.REQUEST]
        end_all(fleet, "uncut")
        found.append(max(end for at, end in pairwise(ends) if end - at > REQUEST_BYTES))
    return Cut(Way.REQUEST, min(found))


def _place_cut(fleet: Fleet, way: Way, before_the_end: int) -> Cut:
    """Measure a place of files that the node has already; from then on it has them."""
    fleet.place()
    end_all(fleet, "its files are on the node")
    ends = recorded(fleet, Fleet.place)[way]
    end_all(fleet, "uncut")
    return Cut(way, ends[-1] - before_the_end)


def end_all(fleet: Fleet, where: str) -> None:
    """End what is there, and make sure that nothing is left."""
    assert fleet.unload().end in (End.DONE, End.ALREADY), where
    fleet.assert_empty()
