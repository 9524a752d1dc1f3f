"""Can every exclusive need have capabilities of its own? A matching, found or shown impossible."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

STEP_BUDGET = 100_000
"""Capabilities looked at before giving up; giving up is never a match."""


class Want(NamedTuple):
    """How many of which places a need must have for itself, the better ones first."""

    number: int
    places: Sequence[int]


@dataclass(frozen=True, slots=True)
class Contended:
    """There is no assignment, or none was found within the budget.

    Attributes:
        wants: Places of those that together want more than there is.
        asked: How many they want together.
        there: How many there are for them.
    """

    wants: tuple[int, ...]
    asked: int
    there: int


def assign(wants: Sequence[Want], budget: int = STEP_BUDGET) -> list[list[int]] | Contended:
    """Give each want its own places, none twice.

    The most constrained want chooses first, and takes the first of its places that is free; a later
    one moves it only when it must. Augmenting paths find an assignment whenever there is one.
    """
    order = sorted(range(len(wants)), key=lambda n: (len(wants[n].places) - wants[n].number, n))
    holder: dict[int, int] = {}  # place -> want
    for want in order:
        for _ in range(wants[want].number):
            budget, contenders = _augment(wants, want, holder, budget)
            if contenders:
                places = {place for n in contenders for place in wants[n].places}
                return Contended(
                    wants=tuple(sorted(contenders)),
                    asked=sum(wants[n].number for n in contenders),
                    there=len(places),
                )
    return [
        [place for place in want.places if holder.get(place) == n] for n, want in enumerate(wants)
    ]


def _augment(
    wants: Sequence[Want], start: int, holder: dict[int, int], budget: int
) -> tuple[int, set[int]]:
    """Find one more place for `start`; answer what is left of the budget, and who contends."""
    taker: dict[int, int] = {}  # place -> the want that would take it
    through: dict[int, int] = {}  # want -> the place it would then give up
    queue = deque([start])
    while queue:
        want = queue.popleft()
        for place in wants[want].places:
            budget -= 1
            if budget < 0:
                return 0, {start, *through}
            if place in taker or holder.get(place) == want:
                continue
            taker[place] = want
            if place not in holder:
                _shift(place, start, taker, through, holder)
                return budget, set()
            owner = holder[place]
            if owner not in through:
                through[owner] = place
                queue.append(owner)
    return budget, {start, *through}


def _shift(
    place: int, start: int, taker: dict[int, int], through: dict[int, int], holder: dict[int, int]
) -> None:
    """Hand places on along the path from `start` that ends at the free `place`."""
    while True:
        want = taker[place]
        holder[place] = want
        if want == start:
            return
        place = through[want]
