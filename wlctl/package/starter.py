"""The package a first-time user starts from: it builds, it runs with sh, and it says what it is."""

import os
import re
from pathlib import Path

from wlctl.errors import InvalidFile
from wlctl.package import tree, words
from wlctl.package.workload import FILE_NAME

_PROGRAM = "bin/run"

_SCRIPT = """\
#!/bin/sh
# Says every five seconds that it is there, until it is told to stop.
trap 'echo stopping; exit 0' TERM INT
echo "$WLCTL_NAME started on $WLCTL_NODE, generation $WLCTL_GENERATION"
while :; do
	echo "$GREETING from process $$"
	sleep 5 &
	wait $!
done
"""

_DESCRIPTION = """\
# What runs, with what, and where it may go. After a change: wlctl package build DIR
# Every key is explained in docs/guide/package.md; a key that is not known is an error.

kind = "service"        # service (runs until stopped), job (runs once), interval (on a schedule)
name = "@NAME@"
version = "0.1.0"

[run]
command = ["./bin/run"] # argv, no shell; $NAME is substituted, $$ is a dollar
env = { GREETING = "hello" }
env_allow = ["GREETING"] # what `place --env` may set
# args = "append"       # let `place` add arguments after --
# user = "web"          # an existing login; without it, a uid of its own

[[variant]]
name = "any"
files = ["bin/"]        # files, and directories with all that is below them
# requires = [{ id = "cpu.arch.x86_64" }]

[requires]              # what the node must have, whichever variant runs
common = [{ id = "os.linux" }]

[resources]             # what it is promised, and held to
cpu = 0.1               # cores
memory = "32MiB"
pids = 32

[policy]
min_trust = "paired"    # discovered, paired, trusted
# labels = ["@NAME@"]
# excludes = ["@NAME@"] # never two of these on one node

[lifecycle]
stop_signal = "TERM"
stop_grace = "5s"       # after it, what is left is killed

# [ports]
# http = "auto"         # $PORT and $PORT_HTTP; or a number, which is then its own on the node

# [health]
# http = "http://127.0.0.1:$PORT/healthz"
# interval = "10s"
# timeout = "2s"
# misses = 3

# [restart]
# max = 3               # within the window
# window = "10m"

# [data]
# keep = true           # $WLCTL_DATA_DIR stays over restarts and new versions
"""


def write(directory: Path) -> tuple[str, ...]:
    """Write a starter package; whatever else is in the directory stays.

    Args:
        directory: Made if need be; the workload is called after it.

    Returns:
        The files written.

    Raises:
        InvalidFile: There is a package already.
        FilesUnreadable: The system does not take a file.
    """
    contents = {
        _PROGRAM: (_SCRIPT, 0o777),
        FILE_NAME: (_DESCRIPTION.replace("@NAME@", _name_for(directory)), 0o666),
    }
    try:
        for path in contents:
            if (directory / path).exists():
                raise InvalidFile(
                    f"{directory / path} is already there",
                    hint="give another directory; nothing is overwritten",
                )
        (directory / _PROGRAM).parent.mkdir(parents=True, exist_ok=True)
        for path, (text, mode) in contents.items():
            _create(directory / path, text, mode)
    except OSError as error:
        raise tree.unreadable(str(directory / (error.filename or "")), error) from error
    return tuple(contents)


def _create(path: Path, text: str, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, mode), "w", encoding="utf-8") as stream:
        stream.write(text)


def _name_for(directory: Path) -> str:
    name = re.sub(r"[^a-z0-9]+", "-", directory.resolve().name.lower()).strip("-")
    return name if words.WORKLOAD_NAME.fullmatch(name) else "hello"
