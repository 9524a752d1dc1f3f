"""The runtime of the flows' tests: the real one, with a clock and a world that tests decide."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from tests.world import FakeSession, World
from wlctl.config import Origin, Settings
from wlctl.flows.deciding import Order
from wlctl.flows.ending import Ending, stop, unload
from wlctl.flows.nodes import add
from wlctl.flows.place import Report, place
from wlctl.flows.runtime import Runtime
from wlctl.ledger import attempts, chain, instances, nodes, operations
from wlctl.ledger.attempts import Attempt
from wlctl.ledger.instances import Step
from wlctl.ledger.opening import open_ledger
from wlctl.ledger.store import Ledger, WriteTx
from wlctl.ledger.verify import Broken, Verified, verify
from wlctl.model.boottime import BootTime
from wlctl.model.event import Author, Event
from wlctl.model.fleet import Hold
from wlctl.model.ids import InstanceId
from wlctl.model.instance import Instance
from wlctl.model.node import Address, Node, Tier, TransportKind
from wlctl.model.package import fingerprint


class Killed(BaseException):
    """kill -9: nothing catches it, and nothing of its process happens after it."""


class TestRuntime(Runtime):
    """A runtime whose clock ticks a second a look, and whose nodes are a `World`'s."""

    __test__ = False

    def __init__(self, settings: Settings, world: World, clock: Iterator[int]) -> None:
        super().__init__(settings, Author("tester@controller", command="wlctl test"))
        self._world = world
        self._clock = clock

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger; the world hears of every commit, as it does of every step on a node."""
        opened = open_ledger(
            self.home.ledger,
            now_ms=self.now_ms(),
            author=self.author,
            busy_timeout_s=self.settings.busy_timeout_s,
        )
        plain = opened.write

        @contextmanager
        def write(now_ms: int, author: Author) -> Iterator[WriteTx]:
            with plain(now_ms, author) as tx:
                yield tx
            self._world.hook("commit", "after")

        opened.write = write  # type: ignore[method-assign] # to be heard is all it adds
        return opened

    def now_ms(self) -> int:
        return next(self._clock)

    def connect(self, address: Address) -> FakeSession:  # type: ignore[override] # a session's twin
        return self._world.connect(address)

    def boot_time(self) -> BootTime:
        return BootTime(self._world.controller_boot_id, next(self._clock))

    def elapsed_s(self) -> float:
        return next(self._clock) / 1000

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0

    def scan_host_key(self, address: Address, known_hosts: Path | None = None) -> tuple[str, str]:
        assert known_hosts is None
        shown = self._world.nodes[address.host].host_key
        return shown, fingerprint(shown)


@dataclass(repr=False)  # hundreds of kilobytes would hide what Hypothesis found
class Setting:
    """One installation and its world; each `runtime()` is one run of the program.

    Attributes:
        running: The runs that are under way, the one that began first before the others.
    """

    home: Path
    world: World = field(repr=False)
    clock: Iterator[int]
    package: Path = Path()
    key: Path = Path()
    reports: list[Report] = field(default_factory=list, repr=False)
    busy_timeout_s: float = 0.2
    running: list[TestRuntime] = field(default_factory=list)

    @contextmanager
    def runtime(self, *, patience_s: float = 0.0) -> Iterator[TestRuntime]:
        """Run the program once; its locks are gone at the end, however it ended."""
        timeout_s = max(patience_s, self.busy_timeout_s)
        settings = replace(settings_for(self.home), busy_timeout_s=timeout_s)
        rt = TestRuntime(settings, self.world, self.clock)
        self.running.append(rt)
        try:
            yield rt
        finally:
            self.running.remove(rt)
            if "ledger" in vars(rt):
                rt.ledger.close()

    def add_node(self, name: str, *, tier: Tier = Tier.PAIRED, **fields: object) -> None:
        """Add a machine to the world and to the fleet."""
        self.world.add(name, **fields)
        with self.runtime() as rt:
            address = Address(TransportKind.LOCAL, host=name)
            add(rt, name, address, tier, accept_key=lambda _fingerprint: None)

    def place(self, **options: object) -> Report:
        """Place; several copies at once wait for each other as long as a busy machine needs."""
        with self.runtime(patience_s=30.0 if "count" in options else 0.0) as rt:
            report = place(rt, Order(package=self.package, **options))  # type: ignore[arg-type]
        self.reports.append(report)
        return report

    @property
    def last(self) -> Report:
        """What `place` did last."""
        return self.reports[-1]

    def stop(self, word: str) -> Ending:
        with self.runtime() as rt:
            return stop(rt, word)

    def unload(self, word: str) -> Ending:
        with self.runtime() as rt:
            return unload(rt, word)

    def instance(self, name: str) -> Instance:
        with self.runtime() as rt, rt.ledger.read() as tx:
            found = instances.last_of(tx, name)
            assert found is not None, f"there never was a {name}"
            return found

    def named(self, name: str) -> Instance:
        """Give the copy that has the name now."""
        with self.runtime() as rt, rt.ledger.read() as tx:
            found = instances.holder_of(tx, name)
            assert found is not None, f"nothing is called {name}"
            return found

    def open_operations(self) -> list[str]:
        """List what is under way, or was left in the middle."""
        with self.runtime() as rt, rt.ledger.read() as tx:
            return [holder.operation.verb for holder in operations.holders(tx)]

    def alive(self) -> list[tuple[str, InstanceId]]:
        """List every process there is, on whichever machine."""
        return [(name, one) for name, node in self.world.nodes.items() for one in node.alive]

    def copy(self, directory: Path) -> "Setting":
        """Make another one that is the same by now, machines and all."""
        home = directory / "home"
        shutil.copytree(self.home, home)
        return replace(self, home=home, world=deepcopy(self.world), running=[])

    def holds(self) -> tuple[Hold, ...]:
        with self.runtime() as rt, rt.ledger.read() as tx:
            return instances.holds(tx)

    def history(self, name: str) -> list[Step]:
        one = self.instance(name)
        with self.runtime() as rt, rt.ledger.read() as tx:
            return list(instances.history(tx, one.id))

    def attempts(self, name: str) -> list[Attempt]:
        one = self.instance(name)
        with self.runtime() as rt, rt.ledger.read() as tx:
            return attempts.of_instance(tx, one.id)

    def events(self, kind: str) -> list[Event]:
        with self.runtime() as rt, rt.ledger.read() as tx:
            return list(chain.events(tx, kind=kind))

    def verified(self) -> Verified | Broken:
        with self.runtime() as rt:
            return verify(rt.ledger)

    def node(self, name: str) -> Node:
        with self.runtime() as rt, rt.ledger.read() as tx:
            return nodes.get(tx, name)


def settings_for(home: Path) -> Settings:
    """Settings with a named ledger and no patience."""
    origins = {"db": Origin("--db")}
    return Settings(db=str(home / "ledger.db"), busy_timeout_s=0.2, origins=origins)
