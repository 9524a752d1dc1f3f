"""Whatever is placed, started, stopped and unloaded, and lost on the way: one copy, and held."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.flows.setting import Killed, Setting
from tests.world import Hook
from wlctl.errors import ConnectionLost, Indeterminate, WlctlError
from wlctl.flows import ending, recover, starting
from wlctl.flows.ending import End
from wlctl.flows.place import Report
from wlctl.ledger import instances
from wlctl.ledger.verify import Verified
from wlctl.model.ids import NodeName
from wlctl.model.instance import Desired, State

CHANGES = frozenset({"place", "start", "stop", "unload", "settle"})

VERBS = ("place", "start", "restart", "stop", "unload")


@dataclass(frozen=True)
class Loss:
    """What becomes of a step that changes something.

    Attributes:
        how: The `answer` or the `request` is lost, the connection ends `before`, or the command is
            `killed`.
        at: Which of the steps of a verb that change something, from 0.
        stays: Its node cannot be reached any more, until the next verb.
    """

    how: str
    at: int = 0
    stays: bool = False

    def hook(self, setting: Setting) -> Hook:
        left = [self.at]

        def lose(step: str, moment: str) -> None:
            if step not in CHANGES or moment != ("before" if self.how != "answer" else "after"):
                return
            left[0] -= 1
            if left[0] != -1:
                return
            if self.stays:
                for node in setting.world.nodes.values():
                    node.up = False
            match self.how:
                case "killed":
                    raise Killed
                case "before":
                    raise ConnectionLost(f"{step}: the connection ended")
                case _:
                    raise Indeterminate(f"{step}: no whole answer came")

        return lose


NONE = Loss("none", at=-2)

LOSSES = st.one_of(
    st.just(NONE),
    st.builds(
        Loss,
        st.sampled_from(["answer", "request", "before", "killed"]),
        st.integers(0, 2),
        st.booleans(),
    ),
)

LIFE = st.lists(st.tuples(st.sampled_from(VERBS), LOSSES), min_size=2, max_size=6)


def act(setting: Setting, verb: str) -> object:
    if verb == "place":
        return setting.place(prefer=(NodeName("elm"),))
    with setting.runtime() as rt:
        with rt.ledger.read() as tx:
            one = instances.find(tx, "web")
        match verb:
            case "start":
                return starting.start_one(rt, one)
            case "restart":
                return starting.restart_one(rt, one)
            case "stop":
                return ending.stop_one(rt, one)
            case _:
                return ending.unload_one(rt, one)


def live(setting: Setting, verb: str, loss: Loss) -> None:
    setting.world.hook = loss.hook(setting)
    try:
        found = act(setting, verb)
    except (WlctlError, Killed):
        return
    finally:
        setting.world.heal()
    if isinstance(found, Report) and found.copies:
        (copy,) = found.copies
        assert copy.is_placed or copy.is_open or setting.alive() == [], "it says what is true"


@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(life=LIFE)
def test_after_any_losses_one_place_and_one_unload_bring_everything_to_agreement(
    setting: Setting, life: list[tuple[str, Loss]]
) -> None:
    if not setting.world.nodes:
        setting.add_node("elm")
        setting.add_node("oak")
    with tempfile.TemporaryDirectory() as directory:
        copy = setting.copy(Path(directory))
        for verb, loss in life:
            live(copy, verb, loss)
            held = {(hold.node, hold.instance) for hold in copy.holds()}
            assert len(copy.alive()) <= 1
            assert set(copy.alive()) <= held, "what may run is held"

        copy.place(prefer=(NodeName("elm"),))
        one = copy.instance("web")
        assert not recover.is_unfinished(one)
        assert copy.open_operations() == []
        runs = [iid for _, iid in copy.alive()]
        if one.state is State.STOPPING:  # a place leaves it to `stop` and to `reconcile`
            assert one.desired is Desired.STOPPED
            assert runs in ([], [one.id])
        else:
            assert one.state in (State.RUNNING, State.STOPPED, State.FAILED)
            assert runs == ([one.id] if one.state is State.RUNNING else [])

        assert copy.unload("web").end is End.DONE
        assert copy.alive() == []
        assert copy.holds() == ()
        assert copy.open_operations() == []
        assert isinstance(copy.verified(), Verified)
