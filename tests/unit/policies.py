"""The edges of the restart policy, for both who decide by it: this side, and a node's shell."""

from dataclasses import dataclass

from wlctl.lifecycle.restart import Answer, Exhausted, Restart, Wait
from wlctl.model.package import RestartPolicy

POLICY = RestartPolicy(
    max_restarts=3, window_ms=600_000, backoff_base_ms=1_000, backoff_max_ms=30_000
)
NOW = 1_800_000_000_000


@dataclass(frozen=True)
class Case:
    """What was, and what follows.

    Attributes:
        ages_ms: Of earlier restarts, by the clock of now.
    """

    rule: str
    ages_ms: tuple[int, ...]
    answer: Answer
    policy: RestartPolicy = POLICY

    @property
    def at_ms(self) -> list[int]:
        return [NOW - age_ms for age_ms in self.ages_ms]


MANY = RestartPolicy(max_restarts=100, window_ms=10**9, backoff_max_ms=30_000)
HUGE = 10**15 - 1
BOUNDLESS = RestartPolicy(
    max_restarts=100, window_ms=HUGE, backoff_base_ms=HUGE, backoff_max_ms=HUGE
)

EDGES = (
    Case("the first one waits for nothing", (), Restart(1)),
    Case("the second waits for the base, not yet over", (999,), Wait(NOW + 1)),
    Case("the second, when the base is just over", (1_000,), Restart(2)),
    Case("the third waits for twice the base", (5_000, 1_999), Wait(NOW + 1)),
    Case("the third, when that is just over", (5_000, 2_000), Restart(3)),
    Case("after three there is no more", (9_000, 5_000, 4_000), Exhausted(3)),
    Case("just inside the window they count", (599_999, 599_999, 599_999), Exhausted(3)),
    Case("at its very end they do not", (600_000, 600_000, 600_000), Restart(1)),
    Case("one of the future is as old as now", (-5_000,), Wait(NOW + 1_000)),
    Case("a policy of none is exhausted at once", (), Exhausted(0), RestartPolicy(max_restarts=0)),
    Case("the wait is never longer than the longest", (0,) * 50, Wait(NOW + 30_000), MANY),
    Case(
        "a longest that is shorter than the base is the longest",
        (0,),
        Wait(NOW + 5),
        RestartPolicy(backoff_base_ms=1_000, backoff_max_ms=5),
    ),
    Case(
        "without a base there is no wait",
        (0, 0),
        Restart(3),
        RestartPolicy(backoff_base_ms=0),
    ),
    Case("nothing overflows when it is doubled", (0,) * 90, Wait(NOW + HUGE), BOUNDLESS),
    Case(
        "a window of nothing remembers nothing",
        (0, 0, 0, 0),
        Restart(1),
        RestartPolicy(window_ms=0),
    ),
)
