"""A value that is planted in the environment of a copy is seen by that copy, and by nobody else."""

import contextlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path

from tests.fleet.field import WORK, Fleet, program
from wlctl.errors import ExitCode

SENTINEL = "sentinel-4a6f7c1d"


@contextlib.contextmanager
def watching_argv() -> Iterator[list[str]]:
    """List every command line on this machine, its nodes included, that shows the value."""
    shown: list[str] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                with contextlib.suppress(OSError):
                    words = file.read_bytes()
                    if SENTINEL.encode() in words:
                        shown.append(words.decode("utf-8", "replace"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield shown
    finally:
        done.set()
        watcher.join()


def holds_it(path: Path) -> bool:
    return SENTINEL.encode() in path.read_bytes()


def said(fleet: Fleet, *argv: str, status: int = 0) -> str:
    """Run the program, and give all it says."""
    running = program(fleet, *argv)
    out, err = running.communicate(timeout=120)
    assert running.returncode == status, out + err
    return out + err


def test_a_planted_value_is_in_no_command_line_and_nothing_that_is_told(fleet: Fleet) -> None:
    """The order's row of the ledger has it by design, for every later move, and so has the node."""
    planted = fleet.package.with_name("planted.env")
    planted.write_text(f"SECRET_WORD={SENTINEL}\n", encoding="ascii")
    place = ("place", "web", "--pin", "elm", "--env-file", str(planted))

    with watching_argv() as shown:
        told = [
            said(fleet, *place, "--dry-run", "-o", "json"),
            said(fleet, *place, "-o", "json"),
            said(fleet, *place),
        ]
        environments = [
            Path(f"/proc/{pid}/environ").read_bytes()
            for pid, command in fleet.elm.commands().items()
            if command == WORK
        ]
        kept = [path for path in fleet.elm.state.rglob("*") if path.is_file() and holds_it(path)]
        modes = [path.stat().st_mode for path in kept]
        assert modes
        planted.write_text(f"SECRET_WORD={SENTINEL}-other\n", encoding="ascii")
        told.append(said(fleet, *place, status=ExitCode.REFUSED))
        told += [
            said(fleet, *words)
            for words in (
                ("ps", "-o", "json"),
                ("status", "web", "-o", "json"),
                ("logs", "web"),
                ("stop", "web", "-o", "json"),
                ("start", "web", "-o", "json"),
                ("unload", "web", "-o", "json"),
                ("audit", "export"),
                ("audit", "log"),
            )
        ]

    assert [SENTINEL.encode() in one for one in environments] == [True]
    assert [mode & 0o077 for mode in modes] == [0] * len(modes), "its owner's alone"
    assert shown == []
    assert [text for text in told if SENTINEL in text] == []
    assert SENTINEL not in json.dumps([event.payload for event in fleet.events("workload.place")])
