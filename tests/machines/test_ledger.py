"""Whatever a few processes do with one ledger, in whatever order, these hold."""

import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.ledger.made import AUTHOR, NOW_MS, a_ledger, opened
from wlctl.errors import Busy, Overtaken
from wlctl.ledger import chain, operations
from wlctl.ledger.backup import backup
from wlctl.ledger.operations import Operation, Turn
from wlctl.ledger.store import Ledger
from wlctl.ledger.verify import Verified, verify

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where syncing costs nothing: here it is only about the order of things."""

SCOPES = ("ia", "ib")
texts = st.text(max_size=5)


class Writers(RuleBasedStateMachine):
    """The ledger is compared with a list that saw the same commits."""

    @initialize()
    def make(self) -> None:
        self.directory = Path(tempfile.mkdtemp(dir=MEMORY))
        self.path = self.directory / "ledger.db"
        with a_ledger(self.path):
            pass
        self.seen: list[tuple[str, str]] = [("ledger.init", "")]
        self.now_ms = NOW_MS

    @rule(notes=st.lists(texts, max_size=3), kind=st.sampled_from(["slot.tick", "ledger.note"]))
    def commit(self, notes: list[str], kind: str) -> None:
        with opened(self.path) as ledger, ledger.write(self.now_ms, AUTHOR) as tx:
            for note in notes:
                chain.append(tx, kind, {"note": note})
        self.seen += [(kind, note) for note in notes]

    @rule(notes=st.lists(texts, min_size=1, max_size=3))
    def fail(self, notes: list[str]) -> None:
        with (
            opened(self.path) as ledger,
            pytest.raises(ZeroDivisionError),
            ledger.write(self.now_ms, AUTHOR) as tx,
        ):
            for note in notes:
                chain.append(tx, "slot.tick", {"note": note})
            _ = 1 / 0

    @rule(hours=st.integers(-5, 5))
    def set_the_clock(self, hours: int) -> None:
        self.now_ms += hours * 3_600_000

    @rule()
    def go_on_from_a_backup(self) -> None:
        with opened(self.path) as ledger:
            copy = backup(ledger, self.path.with_name(f"copy{len(list(self.directory.iterdir()))}"))
        self.path = copy

    @invariant()
    def the_chain_is_what_was_committed(self) -> None:
        with opened(self.path) as ledger:
            with ledger.read() as tx:
                events = list(chain.events(tx))
            assert isinstance(verify(ledger), Verified)
        assert [(event.kind, event.payload.get("note", "")) for event in events] == self.seen
        assert [event.seq for event in events] == list(range(1, len(events) + 1))

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            shutil.rmtree(self.directory)


@dataclass
class Process:
    """One process: its ledger, and while it has a turn, that and its operation."""

    ledger: Ledger
    alive: ExitStack
    turns: dict[str, tuple[Turn, ExitStack]] = field(default_factory=dict)
    operation: dict[str, Operation] = field(default_factory=dict)


class Operators(RuleBasedStateMachine):
    """Processes that begin, finish, die, and come back too late."""

    processes: Bundle[Process] = Bundle("processes")
    late: Bundle[Operation] = Bundle("late")

    @initialize()
    def make(self) -> None:
        self.directory = Path(tempfile.mkdtemp(dir=MEMORY))
        self.path = self.directory / "ledger.db"
        self.everything = ExitStack()
        self.ledger = self.everything.enter_context(a_ledger(self.path))
        self.holders: dict[str, Process] = {}
        self.open: dict[str, Operation] = {}
        self.begun: dict[str, int] = dict.fromkeys(SCOPES, 0)
        self.tokens = 0

    def token(self) -> str:
        self.tokens += 1
        return f"token {self.tokens}"

    @rule(target=processes)
    def come(self) -> Process:
        alive = ExitStack()
        self.everything.push(alive)
        return Process(alive.enter_context(opened(self.path)), alive)

    @rule(process=processes, scope=st.sampled_from(SCOPES))
    def take_a_turn(self, process: Process, scope: str) -> None:
        turns = ExitStack()
        self.everything.push(turns)
        try:
            turn = turns.enter_context(operations.turn(process.ledger, scope, timeout_s=0))
        except Busy:
            assert scope in self.holders, "nobody has it, and it was refused"
            return
        assert scope not in self.holders, "two have the same turn"
        process.turns[scope] = (turn, turns)
        self.holders[scope] = process
        with process.ledger.write(NOW_MS, AUTHOR) as tx:
            left = operations.take_over(tx, turn, token=self.token())
        assert (left is None) == (scope not in self.open)
        if left is not None:
            assert left.number == self.open[scope].number
            assert left.token != self.open[scope].token
            self.open[scope] = process.operation[scope] = left

    @rule(scope=st.sampled_from(SCOPES))
    def begin(self, scope: str) -> None:
        process = self.holders.get(scope)
        if process is None or scope in self.open:
            return
        with process.ledger.write(NOW_MS, AUTHOR) as tx:
            begun = operations.begin(tx, process.turns[scope][0], "stop", token=self.token())
        self.begun[scope] += 1
        assert begun.number == self.begun[scope], "a number was left out or given twice"
        self.open[scope] = process.operation[scope] = begun

    @rule(scope=st.sampled_from(SCOPES))
    def finish(self, scope: str) -> None:
        process = self.holders.get(scope)
        if process is None or scope not in self.open:
            return
        with process.ledger.write(NOW_MS, AUTHOR) as tx:
            operations.close(tx, self.open.pop(scope), "done")
        del process.operation[scope]

    @rule(scope=st.sampled_from(SCOPES))
    def end_the_turn(self, scope: str) -> None:
        process = self.holders.get(scope)
        if process is None or scope in self.open:
            return
        process.turns.pop(scope)[1].close()
        del self.holders[scope]

    @rule(target=late, process=consumes(processes))
    def die(self, process: Process) -> Operation:
        """Lose every turn at once; a paused process would wake up later with what it had."""
        had = next(iter(process.operation.values()), Operation("ia", 99, "stop", "none", "", 0))
        process.ledger.locks.close()
        for scope, (_, turn) in process.turns.items():
            del self.holders[scope]
            turn.close()
        process.ledger.backend.close()
        return had

    @rule(operation=late)
    def come_back_too_late(self, operation: Operation) -> None:
        still = self.open.get(operation.scope) == operation
        try:
            with self.ledger.write(NOW_MS, AUTHOR) as tx:
                operations.check(tx, operation)
        except Overtaken:
            assert not still, "nobody has overtaken it"
        else:
            assert still, "it was overtaken, and could have written"

    @precondition(lambda self: self.begun)
    @invariant()
    def the_ledger_has_exactly_what_is_open(self) -> None:
        with self.ledger.read() as tx:
            found = {h.operation.scope: h.operation for h in operations.holders(tx)}
        assert found == self.open

    def teardown(self) -> None:
        if hasattr(self, "directory"):
            assert isinstance(verify(self.ledger), Verified)
            self.everything.close()
            shutil.rmtree(self.directory)


TestWriters = Writers.TestCase
TestWriters.settings = settings(max_examples=10, stateful_step_count=12, deadline=None)
TestOperators = Operators.TestCase
TestOperators.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
