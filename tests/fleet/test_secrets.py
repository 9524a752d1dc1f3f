"""What is planted in a copy's environment and secrets is seen by that copy, and by nobody else."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.field import ELM, PACKAGE, WORK, Fleet, fleet_in, program, variables
from wlctl.errors import ExitCode
from wlctl.flows import node_changes, packages, policy
from wlctl.flows.node_changes import Words
from wlctl.flows.signing import KeyChoice
from wlctl.model.node import Tier

SENTINEL = "sentinel-4a6f7c1d"
SECRET = f"{SENTINEL}-secret"

POLICY = """\
[[permit]]
id = "owner"
actions = ["policy.apply", "node.tier"]
principals = ["*"]
[[permit]]
id = "work"
actions = ["place", "start", "stop", "unload"]
principals = ["*"]
allow_secrets = true
"""


@pytest.fixture
def trusting(tmp_path: Path) -> Iterator[Fleet]:
    """A fleet of which `elm` may receive secrets, and a package that takes one."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    rules = tmp_path / "policy.toml"
    rules.write_text(POLICY, encoding="ascii")
    with fleet_in(tmp_path, home) as fleet:
        text = PACKAGE.format(name="web", memory="64MiB")
        text = text.replace("env_allow", 'secrets = ["DB_PASSWORD"]\nenv_allow')
        (fleet.package / "workload.toml").write_text(text, encoding="ascii")
        with fleet.runtime() as rt:
            packages.build(fleet.package)
            packages.sign(rt, fleet.package, KeyChoice(home / "signer"))
            node_changes.say(rt, ELM, Words(tier=Tier.TRUSTED))
            policy.apply(rt, rules)
        password = tmp_path / "password"
        password.write_text(SECRET, encoding="ascii")
        password.chmod(0o600)
        config = Path(variables(fleet)["HOME"]) / ".config/wlctl/config.toml"
        config.parent.mkdir(parents=True)
        config.write_text(f'[secrets]\nDB_PASSWORD = {{ file = "{password}" }}\n', encoding="ascii")
        yield fleet
        fleet.assert_empty()


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


def having(value: str, below: Path) -> list[Path]:
    """List the files that hold a value."""
    files = [path for path in below.rglob("*") if path.is_file() and not path.is_symlink()]
    return [path for path in files if value.encode() in path.read_bytes()]


def said(fleet: Fleet, *argv: str, status: int = 0) -> str:
    """Run the program, and give all it says."""
    running = program(fleet, *argv)
    out, err = running.communicate(timeout=120)
    assert running.returncode == status, out + err
    return out + err


def given(fleet: Fleet) -> list[tuple[bool, str]]:
    """Say of each process of a copy whether it has the variable, and what its secret is."""
    found = []
    for pid in [pid for pid, command in fleet.elm.commands().items() if command == WORK]:
        words = Path(f"/proc/{pid}/environ").read_text("utf-8").split("\0")
        own = dict(word.split("=", 1) for word in words if word)
        secret = Path(f"/proc/{pid}/root{own['DB_PASSWORD_FILE']}").read_text("utf-8")
        found.append((own["SECRET_WORD"] == SENTINEL, secret))
    return found


def test_a_planted_value_is_in_no_command_line_and_nothing_that_is_told(trusting: Fleet) -> None:
    """A variable is kept with its order, by design, and on its node; a secret is kept nowhere."""
    fleet = trusting
    planted = fleet.package.with_name("planted.env")
    planted.write_text(f"SECRET_WORD={SENTINEL}\n", encoding="ascii")
    place = ("place", "web", "--pin", "elm", "--env-file", str(planted))

    with watching_argv() as shown:
        told = [
            said(fleet, *place, "--dry-run", "-o", "json"),
            said(fleet, *place, "-o", "json"),
            said(fleet, *place),
        ]
        first = given(fleet)
        modes = [path.stat().st_mode for path in having(SENTINEL, fleet.elm.state)]
        kept = [*having(SECRET, fleet.home), *having(SECRET, fleet.elm.state)]
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
            )
        ]
        second = given(fleet)
        kept += [*having(SECRET, fleet.home), *having(SECRET, fleet.elm.state)]
        told += [
            said(fleet, *words)
            for words in (("unload", "web", "-o", "json"), ("audit", "export"), ("audit", "log"))
        ]

    assert first == second == [(True, SECRET)]
    assert modes
    assert [mode & 0o077 for mode in modes] == [0] * len(modes), "its owner's alone"
    assert kept == []
    assert shown == []
    assert [text for text in told if SENTINEL in text] == []
