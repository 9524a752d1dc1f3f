"""Every moment at which a command can die: after each commit, and around each step on a node."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.flows.setting import Killed, Setting
from wlctl.errors import WlctlError

Verb = Callable[[Setting], object]


@dataclass
class Points:
    """Counts the moments of one run, and ends it at one of them, all its threads included.

    Attributes:
        fatal: Number of the moment to die at, from 1; 0 to live.
    """

    fatal: int = 0
    passed: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, step: str, moment: str) -> None:
        self.passed.append((step, moment))
        if self.fatal and len(self.passed) >= self.fatal:
            raise Killed


def moments_of(setting: Setting, verb: Verb, directory: Path) -> list[tuple[str, str]]:
    """Run `verb` once on a copy of everything; list every moment that it goes through."""
    scratch = setting.copy(directory)
    scratch.world.hook = points = Points()
    verb(scratch)
    assert points.passed, "a verb without a moment cannot be cut"
    return points.passed


def killed_at(setting: Setting, verb: Verb, number: int, directory: Path) -> Setting:
    """Run `verb` on a copy of everything and end it at its moment `number`; give what is left.

    Where several threads are at work the last moments may not be reached; then nothing was cut.
    """
    left = setting.copy(directory)
    left.world.hook = points = Points(fatal=number)
    threads = threading.active_count()
    try:
        verb(left)
    except Killed:
        while threading.active_count() > threads:
            time.sleep(0.001)
    except WlctlError as failure:
        raise AssertionError(f"it ended by itself before moment {number}") from failure
    else:
        assert len(points.passed) < number, f"it lived through moment {number}"
    left.world.heal()
    return left
