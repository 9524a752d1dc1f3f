"""A pass right after a pass does nothing, over whatever has happened to a fleet before.

No event, nothing asked of a node but how it is, and never two copies where one is meant: random
histories of a small fleet in memory. Time goes on between the steps, so that nodes die in some.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.flows.conftest import write_package
from tests.flows.setting import Setting
from wlctl.errors import WlctlError
from wlctl.flows import moving, packages
from wlctl.flows.moving import Way
from wlctl.flows.reconcile import Pass, reconcile
from wlctl.flows.signing import KeyChoice
from wlctl.flows.starting import start
from wlctl.ledger import chain, instances
from wlctl.ledger.verify import Verified
from wlctl.model.ids import NodeName
from wlctl.model.instance import Desired, State
from wlctl.model.node import Liveness

NODES = ("elm", "oak", "yew")
NAMES = ("web", "api", "job")
TICK_MS = 20

LOOKS = frozenset({"connect", "status", "facts", "checkpoint", "witness", "lease"})
"""What a pass may do on a node where nothing is to be done."""


@dataclass
class Fleet:
    """What the steps act on; a verb that is refused has done nothing, and that is a step too."""

    setting: Setting
    steps: list[str] = field(default_factory=list)

    def verb(self, name: str, act: Callable[[Setting], object]) -> None:
        try:
            act(self.setting)
        except WlctlError as failure:
            note(f"{name}: {failure.code}")

    def wait(self, seconds: int) -> None:
        for _ in range(seconds * 1000 // TICK_MS):
            next(self.setting.clock)
        for node in self.setting.world.nodes.values():
            node.uptime_ms += seconds * 1000

    def go_over(self) -> Pass:
        with self.setting.runtime() as rt:
            return reconcile(rt)


def place(name: str) -> Callable[[Fleet], None]:
    def act(setting: Setting) -> None:
        web = setting.package.with_name("web")
        setting.package = setting.package.with_name("job") if name == "job" else web
        setting.place(name=name)

    return lambda fleet: fleet.verb("place", act)


def verb(verb_: str, name: str) -> Callable[[Fleet], None]:
    return lambda fleet: fleet.verb(verb_, lambda one: getattr(one, verb_)(name))


def begin(name: str) -> Callable[[Fleet], None]:
    def act(setting: Setting) -> None:
        with setting.runtime() as rt:
            start(rt, name)

    return lambda fleet: fleet.verb("start", act)


def move(name: str) -> Callable[[Fleet], None]:
    def act(setting: Setting) -> None:
        with setting.runtime() as rt:
            moving.move(rt, moving.find(rt, name), Way(timeout_s=1))

    return lambda fleet: fleet.verb("move", act)


def turn(name: str, *, up: bool) -> Callable[[Fleet], None]:
    def step(fleet: Fleet) -> None:
        fleet.setting.world.nodes[name].up = up

    return step


def reboot(name: str) -> Callable[[Fleet], None]:
    def step(fleet: Fleet) -> None:
        fleet.wait(120)
        fleet.setting.world.nodes[name].reboot()

    return step


def crash(name: str) -> Callable[[Fleet], None]:
    def step(fleet: Fleet) -> None:
        node = fleet.setting.world.nodes[name]
        for iid in list(node.alive):
            node.exit(iid, 1)

    return step


def wait(seconds: int) -> Callable[[Fleet], None]:
    return lambda fleet: fleet.wait(seconds)


def some_pass(fleet: Fleet) -> None:
    fleet.go_over()


STEPS = {
    **{f"place {name}": place(name) for name in NAMES},
    **{f"{each} {name}": verb(each, name) for each in ("stop", "unload") for name in NAMES},
    **{f"start {name}": begin(name) for name in NAMES},
    **{f"move {name}": move(name) for name in NAMES},
    **{f"{name} falls silent": turn(name, up=False) for name in NODES},
    **{f"{name} is back": turn(name, up=True) for name in NODES},
    **{f"{name} is started anew": reboot(name) for name in NODES},
    **{f"what runs on {name} crashes": crash(name) for name in NODES},
    "a pass": some_pass,
    "a pass, a minute later": lambda fleet: (fleet.wait(60), fleet.go_over())[0],
    "a long time": wait(400),
}


@pytest.fixture
def template(setting: Setting) -> Setting:
    """Three nodes with nothing on them, a service and a job; each history acts on a copy of it."""
    setting.busy_timeout_s = 10
    job = setting.package.with_name("job")
    write_package(job, name="job")
    described = (job / "workload.toml").read_text().replace('"service"', '"job"')
    (job / "workload.toml").write_text(described)
    with setting.runtime() as rt:
        packages.build(job)
        packages.sign(rt, job, KeyChoice(setting.key))
    for name in NODES:
        setting.add_node(name)
    return setting


@given(
    history=st.lists(st.sampled_from(sorted(STEPS)), min_size=3, max_size=14),
    last=st.sampled_from([0, 60, 400]),
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_pass_after_a_pass_does_nothing(template: Setting, history: list[str], last: int) -> None:
    with TemporaryDirectory(prefix="wlctl-fixpoint-") as directory:
        fleet = Fleet(template.copy(Path(directory)))
        fleet.setting.clock = itertools.count(next(template.clock), TICK_MS)
        for name in history:
            STEPS[name](fleet)
        fleet.wait(last)
        fleet.go_over()
        fleet.go_over()  # what the first one began, e.g. an adoption, the next look tells more of
        before, did = head(fleet.setting), watched(fleet.setting)

        found = fleet.go_over()

        assert found.is_quiet, found
        assert head(fleet.setting) == before
        assert {step for step, _ in did} <= LOOKS
        assert isinstance(fleet.setting.verified(), Verified)
        assert_one_each(fleet.setting)


def head(setting: Setting) -> tuple[int, str]:
    with setting.runtime() as rt, rt.ledger.read() as tx:
        return chain.head(tx)


def watched(setting: Setting) -> list[tuple[str, str]]:
    """Watch what is done from now on, commits left out."""
    seen: list[tuple[str, str]] = []

    def hook(step: str, moment: str) -> None:
        if step != "commit":
            seen.append((step, moment))

    setting.world.hook = hook
    return seen


def assert_one_each(setting: Setting) -> None:
    """Hold the world to the ledger: on nodes that answer, one process of what shall run, no other.

    What is on a node that is silent may run on: at least once.
    """
    with setting.runtime() as rt, rt.ledger.read() as tx:
        known = {one.id: one for one in instances.current(tx)}
    for where, iid in setting.alive():
        node = setting.world.nodes[where]
        if not node.up or setting.node(where).liveness is not Liveness.ALIVE:
            continue
        assert iid in known, f"{where} runs {iid}, which the ledger does not have"
        one = known[iid]
        assert one.node == where
        assert one.desired is Desired.RUNNING, f"{one.name} runs and shall be {one.desired.value}"
        assert one.state is State.RUNNING, f"{one.name} runs and is {one.state.value}"
    reached = [
        known[iid].name
        for where, iid in setting.alive()
        if setting.world.nodes[where].up and iid in known
    ]
    assert len(reached) == len(set(reached)), f"two copies of one name: {reached}"
    assert {one.node for one in known.values()} <= set(map(NodeName, NODES))
