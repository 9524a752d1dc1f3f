"""Whatever verbs, faults and ends come in whatever order: one run at most, and never unheld."""

import itertools
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.flows.setting import Killed, Setting
from tests.world import FakeNode, Hook, lost_at, peaceful
from wlctl.errors import Interrupted
from wlctl.flows import ending, starting, until
from wlctl.flows.ending import End
from wlctl.flows.runtime import Runtime
from wlctl.flows.start_intents import Begin, Beginning
from wlctl.ledger import generations
from wlctl.ledger.verify import Verified
from wlctl.model.actions import RefusalCode, Refused
from wlctl.model.instance import Instance

STEPS = ("connect", "status", "offer", "start", "stop")


@dataclass(frozen=True)
class Fault:
    """What goes wrong at a step of a verb."""

    how: str
    step: str = ""
    moment: str = "before"

    def hook(self) -> Hook:
        """Make it happen once."""
        if self.how == "lost":
            return lost_at(self.step, self.moment)
        failure = {"killed": Killed, "ctrl-c": KeyboardInterrupt}[self.how]
        passed = itertools.count()

        def fail(step: str, moment: str) -> None:
            if (step, moment) == (self.step, self.moment) and next(passed) == 0:
                raise failure

        return fail


FAULTS = st.one_of(
    st.just(Fault("none")),
    st.just(Fault("down")),
    st.just(Fault("refused")),
    st.just(Fault("unkillable")),
    st.builds(
        Fault,
        st.sampled_from(["lost", "killed", "ctrl-c"]),
        st.sampled_from(STEPS),
        st.sampled_from(["before", "after"]),
    ),
)
VERBS = st.tuples(st.sampled_from(["start", "restart", "stop", "look"]), FAULTS)
ENDS = st.tuples(
    st.sampled_from(["exit 0", "exit 3", "exit ?", "reboot", "again", "again", "held"]),
    st.just(Fault("none")),
)
LIFE = st.lists(st.one_of(VERBS, VERBS, ENDS), min_size=1, max_size=8)


def act(rt: Runtime, verb: str, one: Instance) -> object:
    match verb:
        case "start":
            return starting.start_one(rt, one)
        case "restart":
            return starting.restart_one(rt, one)
        case "stop":
            return ending.stop_one(rt, one)
        case _:
            return until.wait(rt, one, until.goal_of("unloaded"), ends_at_s=0)


def live(setting: Setting, node: FakeNode, what: str, fault: Fault) -> None:
    one = setting.instance("web")
    if what == "reboot":
        node.reboot()
    elif what in ("again", "held"):
        if node.may_begin_again(one.id):
            (node.begin_again if what == "again" else node.hold)(one.id)
    elif what.startswith("exit"):
        if one.id in node.alive:
            node.exit(one.id, {"0": 0, "3": 3}.get(what[-1]))
    else:
        with Troubled(setting, node, one, fault), setting.runtime() as rt:
            act(rt, what, one)


class Troubled:
    """Let a fault happen in the block, and mend it afterwards."""

    def __init__(self, setting: Setting, node: FakeNode, one: Instance, fault: Fault) -> None:
        self._setting, self._node, self._one, self._fault = setting, node, one, fault

    def __enter__(self) -> None:
        match self._fault.how:
            case "none":
                return
            case "down":
                self._node.up = False
            case "refused":
                self._node.refusal = Refused(RefusalCode.RUNTIME, "not now")
            case "unkillable":
                self._node.unkillable.add(self._one.id)
            case _:
                self._setting.world.hook = self._fault.hook()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self._setting.world.hook = peaceful
        self._node.up = True
        self._node.refusal = None
        self._node.unkillable.clear()
        return kind is not None and issubclass(kind, Killed | Interrupted | KeyboardInterrupt)


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as made:
        yield Path(made)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(life=LIFE, last=st.sampled_from(["start", "restart", "stop"]))
def test_a_copy_has_one_run_at_most_and_none_that_is_not_held(
    setting: Setting, scratch: Path, life: list[tuple[str, Fault]], last: str
) -> None:
    if not setting.world.nodes:
        setting.add_node("elm")
        setting.place()
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        copy = setting.copy(Path(directory))
        node, iid = copy.world.nodes["elm"], copy.instance("web").id
        for what, fault in life:
            live(copy, node, what, fault)
            assert not node.alive or len(copy.holds()) == 1, "a process without a hold"

        with copy.runtime() as rt:
            found = act(rt, last, copy.instance("web"))
        with copy.runtime() as rt, rt.ledger.read() as tx:
            runs = generations.of_instance(tx, iid)
        if isinstance(found, ending.Ending):
            assert found.end in (End.DONE, End.ALREADY)
            assert node.alive == {}
            assert copy.holds() == ()
            assert all(run.is_gone for run in runs)
        else:
            assert isinstance(found, Beginning)
            assert found.begin in (Begin.DONE, Begin.ALREADY)
            assert node.alive == {iid: runs[-1].number}
            assert all(run.is_gone for run in runs[:-1])
        assert not copy.instance("web").unsettled
        assert isinstance(copy.verified(), Verified)
