"""Time goes by, passes go over the fleet, and others meet them in their moments."""

from collections.abc import Callable

from tests.flows.setting import Setting
from tests.world import peaceful
from wlctl.flows.reconcile import Pass, reconcile

TICK_MS = 50
"""What a look at a setting's clock takes, where passes and verbs meet in their moments."""


def let_pass(setting: Setting, seconds: int) -> None:
    for _ in range(seconds * 1000 // TICK_MS):
        next(setting.clock)


def go_over(setting: Setting, times: int = 1, *, after_s: int = 60) -> list[Pass]:
    """Let `times` passes go over it, each `after_s` after what was before."""
    found = []
    for _ in range(times):
        let_pass(setting, after_s)
        with setting.runtime() as rt:
            found.append(reconcile(rt))
    return found


def at(setting: Setting, step: str, moment: str, act: Callable[[], object]) -> None:
    """Let another process do something in the very moment, once."""

    def hook(here: str, when: str) -> None:
        if (here, when) == (step, moment):
            setting.world.hook = peaceful
            act()

    setting.world.hook = hook


def lose_web(setting: Setting) -> None:
    """Let the copy's node fall silent; the next pass finds it dead."""
    go_over(setting)
    setting.world.nodes["elm"].up = False
    go_over(setting, 3, after_s=40)
