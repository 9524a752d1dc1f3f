"""What the kinds of workload differ in, as far as their description goes: one row each."""

from collections.abc import Mapping
from dataclasses import dataclass

from wlctl.model.workload import Kind


@dataclass(frozen=True, slots=True)
class KindRules:
    """What is so for every workload of a kind.

    Attributes:
        max_restarts: Where the description says nothing.
        has_health: It runs long enough to be asked how it is.
        has_schedule: It must say when it is due; the others must not.
    """

    max_restarts: int
    has_health: bool
    has_schedule: bool


KINDS: Mapping[Kind, KindRules] = {
    Kind.SERVICE: KindRules(max_restarts=3, has_health=True, has_schedule=False),
    Kind.JOB: KindRules(max_restarts=0, has_health=False, has_schedule=False),
    Kind.INTERVAL: KindRules(max_restarts=0, has_health=False, has_schedule=True),
}
