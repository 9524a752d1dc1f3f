"""Wait until a copy or a node is in a state, or cannot come into it any more.

What is seen of a copy meanwhile is kept in its history. A node that does not answer is asked again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from wlctl.errors import ForeignNode, TwoMachines, Unreachable, UsageError
from wlctl.flows import looking, staged
from wlctl.flows import nodes as fleet
from wlctl.flows.looking import Look
from wlctl.flows.mirror import changes, mirror
from wlctl.flows.nodes import check_placed_there
from wlctl.flows.runtime import Runtime
from wlctl.ledger import instances, nodes
from wlctl.lifecycle import goal as judging
from wlctl.lifecycle import seen
from wlctl.lifecycle.goal import HEALTHY, Reach
from wlctl.lifecycle.machine import LIVE
from wlctl.model.instance import Instance, State
from wlctl.model.node import Liveness, Node

POLL_S = 0.1
POLL_MAX_S = 5.0
GROWTH = 1.5


class Came(StrEnum):
    """What came of the waiting."""

    THERE = "there"
    NEVER = "never"
    """It cannot come into that state any more."""
    TIMEOUT = "timeout"
    CALLED_OFF = "called_off"
    """Whoever waited did not want to any longer."""


@dataclass(frozen=True, slots=True)
class Waited:
    """What was waited for.

    Attributes:
        name: Of the copy or node.
        state: It is in by now.
        detail: Why it cannot come, or why nothing is known; text from outside.
    """

    name: str
    came: Came
    state: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Goal:
    """A state that is waited for, as a word.

    Attributes:
        healthy: And it has to be healthy.
    """

    word: str
    state: State
    healthy: bool = False


def goal_of(word: str) -> Goal:
    """Read what is waited for of a copy.

    Raises:
        UsageError: It is no state.
    """
    if word == HEALTHY:
        return Goal(word, State.RUNNING, healthy=True)
    try:
        return Goal(word, State(word))
    except ValueError:
        raise UsageError(
            f"{word!r} is no state of an instance",
            hint="e.g. running, healthy, finished, stopped, unloaded; `wlctl help topics`",
        ) from None


class _Patience:
    """Lets time pass in steps that grow, to a bound."""

    def __init__(self, rt: Runtime, ends_at_s: float) -> None:
        self._rt = rt
        self._ends_at_s = ends_at_s
        self._pause_s = POLL_S

    def is_over(self) -> bool:
        """Answer whether the time has passed."""
        return self._rt.elapsed_s() >= self._ends_at_s

    def pause(self) -> None:
        """Wait a little longer than the time before."""
        left_s = self._ends_at_s - self._rt.elapsed_s()
        self._rt.sleep(max(0.0, min(self._pause_s, left_s)))
        self._pause_s = min(POLL_MAX_S, self._pause_s * GROWTH)


def wait(
    rt: Runtime,
    instance: Instance,
    goal: Goal,
    *,
    ends_at_s: float,
    go_on: Callable[[], bool] = lambda: True,
) -> Waited:
    """Wait for a copy; it is looked at once at least, however little time there is.

    Args:
        ends_at_s: On the clock of `Runtime.elapsed_s`.
        go_on: Answers False once nobody wants to wait any longer.
    """
    with rt.ledger.read() as tx:
        checked = staged.read(tx, instance).health is not None
    patience = _Patience(rt, ends_at_s)
    while True:
        instance, failure = _observe(rt, instance)
        state = instance.state.value
        found = judging.judge(instance, goal.state, healthy=goal.healthy, checked=checked)
        match found.reach:
            case Reach.THERE:
                return Waited(instance.name, Came.THERE, state)
            case Reach.NEVER:
                return Waited(instance.name, Came.NEVER, state, found.why)
            case Reach.NOT_YET if not go_on():
                return Waited(instance.name, Came.CALLED_OFF, state, failure)
            case Reach.NOT_YET if patience.is_over():
                return Waited(instance.name, Came.TIMEOUT, state, failure or _health(instance))
            case Reach.NOT_YET:
                patience.pause()


def _health(instance: Instance) -> str:
    """Say what its health is instead; of one that is healthy its state is what keeps it."""
    return f"its health is {instance.health}" if instance.health not in ("", HEALTHY) else ""


def _observe(rt: Runtime, instance: Instance) -> tuple[Instance, str]:
    """Read what the ledger says by now and, of what lives, see whether it still does.

    Returns:
        The copy, and why its node told nothing.
    """
    with rt.ledger.read() as tx:
        now = instances.get(tx, instance.id)
        node = nodes.get(tx, now.node) if now.state in LIVE else None
    if node is None:
        return now, ""
    try:
        found = _look(rt, now, node)
    except (Unreachable, ForeignNode, TwoMachines) as failure:
        return now, failure.message
    status = found.of(now.id)
    if status is None:
        return now, f"{node.name} does not list it"
    if changes(now, seen.judge(now, status, twice=found.twice)):
        with rt.ledger.write(rt.now_ms(), rt.author) as tx:
            now = instances.get(tx, now.id)
            return mirror(tx, now, status, at_ms=found.at_ms, twice=found.twice), ""
    return now, ""


def _look(rt: Runtime, instance: Instance, node: Node) -> Look:
    check_placed_there(node, instance.created_at_ms)
    with rt.connect(node.address) as session:
        return looking.look(rt, session, node)


def wait_for_node(
    rt: Runtime,
    name: str,
    word: str,
    *,
    ends_at_s: float,
    go_on: Callable[[], bool] = lambda: True,
) -> Waited:
    """Wait for a node; `alive` is waited for by probing it, which is recorded as ever.

    Raises:
        UnknownName: The fleet has no such node.
        UsageError: `word` is no liveness.
    """
    try:
        goal = Liveness(word)
    except ValueError:
        hint = f"one of {', '.join(Liveness)}"
        raise UsageError(f"{word!r} is no liveness of a node", hint=hint) from None
    patience = _Patience(rt, ends_at_s)
    while True:
        detail = ""
        if goal is Liveness.ALIVE:
            (found,) = fleet.probe(rt, [name])
            detail = "" if found.failure is None else found.failure.message
        with rt.ledger.read() as tx:
            state = nodes.get(tx, name).liveness
        if state is goal and not detail:
            return Waited(name, Came.THERE, state.value)
        if not go_on():
            return Waited(name, Came.CALLED_OFF, state.value, detail)
        if patience.is_over():
            return Waited(name, Came.TIMEOUT, state.value, detail)
        patience.pause()
