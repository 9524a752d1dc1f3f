"""Where a connection is to be cut so that a request is lost, or its answer."""

from collections.abc import Callable, Mapping
from itertools import pairwise

from tests.fleet.field import Fleet
from tests.fleet.proxy import Cut, Way
from wlctl.flows.ending import End
from wlctl.host import script

ANSWER_BYTES = 300
"""So many bytes before its end, a place's connection has brought a part of the answer."""

REQUEST_BYTES = 120
"""A request is longer than this; what is sent after it, to say that it was heard, is shorter."""

SHORT_BYTES = 50
"""So much is missing of a request that did not arrive whole."""

TEXT_BYTES = 6000
"""A piece that is longer than this is of an action's text, and of nothing that is asked."""

Act = Callable[[Fleet], object]


def recorded(fleet: Fleet, act: Act, cuts: Mapping[int, Cut] | None = None) -> dict[Way, list[int]]:
    """Let `act` be, and say where the messages of its last connection ended, each way."""
    fleet.ready()
    fleet.proxy.plan(cuts)
    act(fleet)
    fleet.proxy.wait()
    last = max(number for number, _ in fleet.proxy.messages)
    return {way: list(fleet.proxy.messages[last, way]) for way in Way}


def first_action(fleet: Fleet, act: Act, name: str) -> dict[Way, list[int]]:
    """Say the same of the first action alone, up to where the text of the next one begins.

    Args:
        name: Of that action.
    """
    recorded(fleet, act)
    order = fleet.proxy.order[max(fleet.proxy.order)]
    found: dict[Way, list[int]] = {way: [] for way in Way}
    for way, end in order:
        sent = found[Way.REQUEST][-1] if found[Way.REQUEST] else 0
        is_text = way is Way.REQUEST and end - sent > TEXT_BYTES
        if is_text and sent > len(script.text(name)):
            return found
        found[way].append(end)
    raise AssertionError(f"nothing came after the {name}")


def after_the_request(fleet: Fleet) -> Cut:
    """Say where to cut so that the node does all of a place, and nobody hears its answer."""
    return _measured(fleet)["answer"]


def before_the_request(fleet: Fleet) -> Cut:
    """Say where to cut so that the node gets a part of a place, and does nothing."""
    return _measured(fleet)["request"]


def with_the_request(fleet: Fleet) -> Cut:
    """Say where to cut so that the node has all of a place, and has only begun with it."""
    return _measured(fleet)["begun"]


def _measured(fleet: Fleet) -> dict[str, Cut]:
    """Measure a place whose files are on the node already; from then on they are there."""
    fleet.place()
    end_all(fleet, "its files are on the node")
    if not fleet.cuts:
        found = []
        for _ in range(2):
            ends = recorded(fleet, Fleet.place)
            end_all(fleet, "uncut")
            found.append(ends)
        answer = found[0][Way.ANSWER][-1]
        request = min(request_end(ends[Way.REQUEST]) for ends in found)
        fleet.cuts["answer"] = Cut(Way.ANSWER, answer - ANSWER_BYTES)
        fleet.cuts["request"] = Cut(Way.REQUEST, request - SHORT_BYTES)
        fleet.cuts["begun"] = Cut(Way.REQUEST, request)
    return fleet.cuts


def request_end(ends: list[int]) -> int:
    """Find the end of the last request on a connection."""
    return max(end for at, end in pairwise(ends) if end - at > REQUEST_BYTES)


def end_all(fleet: Fleet, where: str) -> None:
    """End what is there, and make sure that nothing is left."""
    assert fleet.unload().end in (End.DONE, End.ALREADY), where
    fleet.assert_empty()
