"""The real program in a process of its own, and how a session with it is written down."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

REDACTIONS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"), "<time>"),
    (re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12}…"), "<sha256>"),
    (re.compile(r"\b[0-9a-f]{32}\b"), "<id>"),
    (re.compile(r"SHA256:[A-Za-z0-9+/]{43}"), "<fingerprint>"),
    (re.compile(r"\bsignatures/[A-Za-z0-9_-]{43}\.sig\b"), "<signature>"),
    (re.compile(r"\bw[a-z2-7]{15}\b"), "<installation>"),
    (re.compile(r"\b\d+(\.\d+)? ?m?s\b"), "<s>"),
)

GAP = re.compile(r"(?<=\S) {2,}")


@dataclass(frozen=True, slots=True)
class Program:
    """`wlctl` where nothing of this machine's user shows through.

    Attributes:
        directory: Where it runs; its home is `home` below it.
    """

    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = (sys.executable, "-m", "wlctl")

    def run(
        self,
        *args: str,
        environment: Mapping[str, str | None] | None = None,
        stdin: str = "",
        timeout_s: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end; a variable set to None is not set at all."""
        return subprocess.run(
            [*self.command, *args],
            cwd=self.directory,
            env=self.variables(environment),
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=timeout_s,
            check=False,
        )

    def sh(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a shell line in which `wlctl` is the program."""
        return subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=self.directory,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    def files(self) -> set[str]:
        """Name what lies in its directory."""
        return {path.name for path in self.directory.iterdir()}

    def variables(self, more: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """Give the environment it runs in."""
        merged = {**self.environment, **(more or {})}
        return {name: value for name, value in merged.items() if value is not None}


def program_in(place: Path) -> Program:
    """Make a program with an empty home and a working directory of its own, below `place`."""
    directory = place / "work"
    home = directory / "home"
    home.mkdir(parents=True)
    commands = place / "bin"
    commands.mkdir()
    shim = commands / "wlctl"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m wlctl "$@"\n')
    shim.chmod(0o755)
    environment = {
        "PATH": f"{commands}:{os.environ.get('PATH', os.defpath)}",
        "HOME": str(home),
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    return Program(directory, environment)


def replayed(program: Program, session: str) -> str:
    """Run every `$ line` of a session again and write down what it does now.

    A session has comments (`# …`), and lines to run, each followed by its stdout, its stderr with
    `! ` before each line, and `[exit n]`. What differs from run to run is redacted.
    """
    said: list[str] = []
    for line in session.splitlines():
        if line.startswith("#"):
            said.append(line)
        elif line.startswith("$ "):
            done = program.sh(line[2:])
            output = done.stdout.splitlines()
            output += [f"! {warning}".rstrip() for warning in done.stderr.splitlines()]
            said += [line, *(redacted(each, program) for each in output)]
            said += [f"[exit {done.returncode}]", ""]
    return "\n".join(said).rstrip() + "\n"


def redacted(line: str, program: Program) -> str:
    """Replace times, ids, hashes, durations and the directory; their width goes with them."""
    line = line.replace(str(program.directory), "<here>")
    for pattern, word in REDACTIONS:
        line = pattern.sub(word, line)
    return GAP.sub("  ", line)
