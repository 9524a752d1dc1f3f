"""How much of a campaign is run: all of it by `make campaign`, and elsewhere a sample of it."""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

FULL = bool(os.environ.get("WLCTL_CAMPAIGN"))

SEED = int(os.environ.get("WLCTL_SEED") or random.SystemRandom().randrange(1 << 32))
"""Printed with every failure: WLCTL_SEED runs the same sample again."""

TIMEOUT_S = 7200 if FULL else 300
"""For one test of a campaign."""

Case = TypeVar("Case")


def sample(cases: Sequence[Case], count: int, *, salt: str = "") -> list[Case]:
    """Take `count` of `cases`, in their order; in a campaign all of them.

    Args:
        salt: Tells samples of one seed apart.
    """
    if FULL or len(cases) <= count:
        return list(cases)
    chosen = random.Random(f"{SEED} {salt}").sample(range(len(cases)), count)
    return [cases[number] for number in sorted(chosen)]


def within(limit: int, count: int, *, salt: str) -> list[int]:
    """Make up `count` numbers from 1 to `limit`, ten times as many in a campaign."""
    many = random.Random(f"{SEED} {salt}")
    return sorted(many.randint(1, limit) for _ in range(count * 10 if FULL else count))
