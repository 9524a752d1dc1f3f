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

from tests.fleet.sample import FULL, TIMEOUT_S
from tests.flows.conftest import write_package
from tests.flows.setting import Setting
from tests.world import lost_at, peaceful
from wlctl.errors import WlctlError
from wlctl.flows import attesting, draining, moving, node_changes, packages, revocations
from wlctl.flows.ending import unload
from wlctl.flows.moving import Way
from wlctl.flows.rebuild import rebuild
from wlctl.flows.reconcile import Pass, reconcile
from wlctl.flows.signing import KeyChoice
from wlctl.flows.starting import restart_one, start
from wlctl.ledger import chain, instances, witnesses
from wlctl.ledger.verify import Verified
from wlctl.model.ids import NodeName
from wlctl.model.instance import Desired, State
from wlctl.model.node import Liveness
from wlctl.model.revocation import RevocationKind

NODES = ("elm", "oak", "yew")
NAMES = ("web", "api", "job", "tick")
PACKAGES = {"job": "job", "tick": "tick"}
"""The package of each name; the others are services of one."""

PACKAGE = RevocationKind.PACKAGE
TICK_MS = 20
EXAMPLES = 300 if FULL else 25
"""A campaign tries more histories."""

CHANGES = ("place", "start", "stop", "unload", "settle", "lease")

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

    def believe(self) -> None:
        """Bring a rebuild to its end that missed a node: till then no pass does anything."""
        with self.setting.runtime() as rt, rt.ledger.read() as tx:
            is_doubted = witnesses.doubt_of(tx) is not None
        if is_doubted:
            for node in self.setting.world.nodes.values():
                node.up = True
            build_anew(self.setting)


def place(name: str, **options: object) -> Callable[[Fleet], None]:
    def act(setting: Setting) -> None:
        setting.package = setting.package.with_name(PACKAGES.get(name, "web"))
        setting.place(name=name, **options)

    return lambda fleet: fleet.verb("place", act)


def verb(verb_: str, name: str) -> Callable[[Fleet], None]:
    return lambda fleet: fleet.verb(verb_, lambda one: getattr(one, verb_)(name))


def begin(name: str) -> Callable[[Fleet], None]:
    def act(setting: Setting) -> None:
        with setting.runtime() as rt:
            start(rt, name)

    return lambda fleet: fleet.verb("start", act)


def again(name: str) -> Callable[[Fleet], None]:
    def act(setting: Setting) -> None:
        with setting.runtime() as rt:
            restart_one(rt, moving.find(rt, name))

    return lambda fleet: fleet.verb("restart", act)


def move(name: str, *, stop_first: bool = False) -> Callable[[Fleet], None]:
    def act(setting: Setting) -> None:
        with setting.runtime() as rt:
            moving.move(rt, moving.find(rt, name), Way(timeout_s=1, stop_first=stop_first))

    return lambda fleet: fleet.verb("move", act)


def purge(name: str) -> Callable[[Fleet], None]:
    def act(setting: Setting) -> None:
        with setting.runtime() as rt:
            unload(rt, name, purge=True)

    return lambda fleet: fleet.verb("unload", act)


def drain(name: str) -> Callable[[Fleet], None]:
    def act(setting: Setting) -> None:
        with setting.runtime() as rt:
            draining.drain(rt, name, stop_rest=True)

    return lambda fleet: fleet.verb("drain", act)


def resume(name: str) -> Callable[[Fleet], None]:
    def act(setting: Setting) -> None:
        with setting.runtime() as rt:
            draining.resume(rt, node_changes.uncordon(rt, name)[0].name)

    return lambda fleet: fleet.verb("uncordon", act)


def attest(name: str) -> Callable[[Fleet], None]:
    def act(setting: Setting) -> None:
        with setting.runtime() as rt:
            attesting.attest_dead(rt, name, replaced=False, accept=lambda _held: None)

    return lambda fleet: fleet.verb("attest-dead", act)


def revoked(*, is_so: bool) -> Callable[[Fleet], None]:
    def act(setting: Setting) -> None:
        with setting.runtime() as rt:
            change = revocations.revoke if is_so else revocations.unrevoke
            change(rt, PACKAGE, "web@1.0.0", "a test")

    return lambda fleet: fleet.verb("revoke", act)


def build_anew(setting: Setting) -> None:
    with setting.runtime() as rt:
        rebuild(rt, (), accept_key=lambda _where, _shown: None, accept=lambda: None)


def lose_answer(step: str, moment: str) -> Callable[[Fleet], None]:
    """Lose the next answer of that kind, or the way to it."""

    def act(fleet: Fleet) -> None:
        lose = lost_at(step, moment)

        def hook(here: str, when: str) -> None:
            if (here, when) == (step, moment):
                fleet.setting.world.hook = peaceful
            lose(here, when)

        fleet.setting.world.hook = hook

    return act


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


def restart_in_place(name: str, *, once_more: bool) -> Callable[[Fleet], None]:
    """Let the supervisors of a node begin again what runs there, or give it up."""

    def step(fleet: Fleet) -> None:
        node = fleet.setting.world.nodes[name]
        for iid in [one for one in node.alive if node.may_begin_again(one)]:
            (node.begin_again if once_more else node.hold)(iid)

    return step


def finish(name: str) -> Callable[[Fleet], None]:
    def step(fleet: Fleet) -> None:
        node = fleet.setting.world.nodes[name]
        for iid in list(node.alive):
            node.exit(iid, 0)

    return step


def wait(seconds: int) -> Callable[[Fleet], None]:
    return lambda fleet: fleet.wait(seconds)


def some_pass(fleet: Fleet) -> None:
    fleet.verb("pass", lambda _setting: fleet.go_over())


def later_pass(fleet: Fleet) -> None:
    fleet.wait(60)
    some_pass(fleet)


STEPS = {
    **{f"place {name}": place(name) for name in NAMES},
    **{f"{each} {name}": verb(each, name) for each in ("stop", "unload") for name in NAMES},
    **{f"start {name}": begin(name) for name in NAMES},
    **{f"place {name} with a lease": place(name, lease_ms=300_000) for name in ("web", "api")},
    **{f"restart {name}": again(name) for name in NAMES},
    **{f"move {name}": move(name) for name in NAMES},
    **{f"move {name}, stopped first": move(name, stop_first=True) for name in ("web", "api")},
    **{f"unload {name} with its data": purge(name) for name in ("web", "tick")},
    **{f"drain {name}": drain(name) for name in NODES},
    **{f"uncordon {name} and resume": resume(name) for name in NODES},
    **{f"attest {name} dead": attest(name) for name in NODES},
    "revoke web": revoked(is_so=True),
    "take that back": revoked(is_so=False),
    "rebuild": lambda fleet: fleet.verb("rebuild", build_anew),
    **{f"lose an answer to {verb_}": lose_answer(verb_, "after") for verb_ in CHANGES},
    **{f"lose the way to {verb_}": lose_answer(verb_, "before") for verb_ in ("status", "offer")},
    **{f"{name} falls silent": turn(name, up=False) for name in NODES},
    **{f"{name} is back": turn(name, up=True) for name in NODES},
    **{f"{name} is started anew": reboot(name) for name in NODES},
    **{f"what runs on {name} crashes": crash(name) for name in NODES},
    **{f"what runs on {name} ends well": finish(name) for name in NODES},
    **{
        f"what runs on {name} is {word} in place": restart_in_place(name, once_more=once_more)
        for name in NODES
        for word, once_more in (("begun again", True), ("given up", False))
    },
    "a pass": some_pass,
    "a pass, a minute later": later_pass,
    "a long time": wait(400),
    "an hour": wait(3600),
}


@pytest.fixture
def template(setting: Setting) -> Setting:
    """Three nodes with nothing on them, a service and two jobs; each history has a copy of it."""
    setting.busy_timeout_s = 10
    kinds = {"job": ("job", ""), "tick": ("interval", '[schedule]\nevery = "10m"\n')}
    for name, (kind, more) in kinds.items():
        package = setting.package.with_name(name)
        write_package(package, name=name)
        described = (package / "workload.toml").read_text().replace('"service"', f'"{kind}"')
        (package / "workload.toml").write_text(described + more)
        with setting.runtime() as rt:
            packages.build(package)
            packages.sign(rt, package, KeyChoice(setting.key))
    for name in NODES:
        setting.add_node(name)
    return setting


@pytest.mark.timeout(TIMEOUT_S)
@given(
    history=st.lists(st.sampled_from(sorted(STEPS)), min_size=3, max_size=16),
    last=st.sampled_from([0, 60, 400]),
)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_pass_after_a_pass_does_nothing(template: Setting, history: list[str], last: int) -> None:
    with TemporaryDirectory(prefix="wlctl-fixpoint-") as directory:
        fleet = Fleet(template.copy(Path(directory)))
        fleet.setting.clock = itertools.count(next(template.clock), TICK_MS)
        for name in history:
            STEPS[name](fleet)
        fleet.setting.world.hook = peaceful
        fleet.believe()
        fleet.wait(last)
        fleet.go_over()
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
