"""Composes the constant text of each action: one brace group that a cut leaves unable to run."""

from functools import cache
from pathlib import Path

_DIRECTORY = Path(__file__).parent / "actions"

_INSTANCE = ("state", "way", "tools", "process", "fence", "spec", "end")

_LAUNCH = (
    *_INSTANCE,
    *("sheet", "staging", "signed", "revoked", "user", "health", "supervisor", "leases"),
    *("cgroups", "secrets", "names", "policy", "budget", "launch"),
)
"""What launches a generation: in an action, and again in the program that a supervisor starts."""

_PARTS: dict[str, tuple[str, ...]] = {
    "facts": ("state", "way", "tools", "ask", "runtimes", "hardware", "storage", "macos", "facts"),
    "offer": ("state", "offer"),
    "receive": ("state", "receive"),
    "fetch": ("state", "fetch"),
    "place": ("release", "place"),
    "start": ("start",),
    "stop": (*_INSTANCE, "sheet", "names", "release", "stop"),
    "prove": (*_INSTANCE, "prove"),
    "settle": (*_INSTANCE, "names", "release", "settle"),
    "status": (
        *("state", "way", "process", "fence", "revoked", "supervisor", "policy", "budget"),
        "status",
    ),
    "supervise": (
        *("state", "way", "tools", "process", "fence", "supervisor", "policy", "budget"),
        "supervise",
    ),
    "logs": ("state", "fence", "logs"),
    "lease": ("state", "fence", "spec", "leases", "lease"),
    "gc": ("state", "process", "gc"),
    "revoke": ("state", "revoked", "revoke"),
    "checkpoint": ("state", "checkpoint"),
    "witness": ("state", "witness"),
    "recall": ("state", "recall"),
    "measure": ("state", "ask", "measure"),
    "clean": ("state", "way", "tools", "clean"),
}
"""Action to the files it is made of, in this order, after the prelude, or the kit it carries."""

_ADMINISTRATIVE: dict[str, tuple[str, ...]] = {"enforce": ("state", "sshd", "keyline", "enforce")}
"""Likewise, what only an administrator's login runs; no doorkeeper lists these."""

CARRIED: dict[str, tuple[str, ...]] = {
    "INIT": ("codec", "environ", "init"),
    "SUP": ("codec", "policy", "budget", "sup"),
    "LAST": ("last",),
}
"""Programs that stay on the node: the variable that carries each, and the files it is made of."""

_CARRIERS = frozenset({"place", "start", "supervise"})
"""Actions that leave them there, and with them, as `KIT` and `AGAIN`, the program by which a
supervisor begins a run."""

_LAUNCHERS = frozenset({"place", "start"})
"""Those that begin a run themselves: by the kit that they carry, so that it travels once."""

ACTIONS = tuple(_PARTS)

ADMINISTRATIVE = tuple(_ADMINISTRATIVE)

DOORKEEPER = "doorkeeper"
"""The part that is a program of its own: it stays on an enforced node, and starts the others."""


@cache
def text(action: str) -> bytes:
    """Return the bytes of `action`: a shell parses all of them before it runs any.

    The closing line comes last, so a text that was cut anywhere is a syntax error and nothing else.
    """
    parts = [_source(part) for part in _PARTS.get(action) or _ADMINISTRATIVE[action]]
    begin = []
    if action in _CARRIERS:
        programs = {"SUP": carried("SUP"), "AGAIN": _source("again"), "KIT": kit()}
        begin += [f"{name}={_quoted(program)}" for name, program in programs.items()]
    if action in _LAUNCHERS:
        begin.append('eval "$KIT"')
    else:
        begin += [_source("prelude"), _source("codec")]
    return _group([*begin, *parts]).encode("ascii")


@cache
def kit() -> str:
    """Return what begins a generation, whoever asks for it: the prelude and all parts it takes."""
    init = f"INIT={_quoted(carried('INIT'))}"
    return "\n".join([init, *map(_source, ("prelude", "codec", *_LAUNCH))])


@cache
def restart() -> str:
    """Return the program that a supervisor starts, as the actions above write it down."""
    return _group([kit(), _source("again")])


def carried(name: str) -> str:
    """Return the program that travels in the variable `name`: one brace group, like an action."""
    last = [] if name == "LAST" else [f"LAST={_quoted(carried('LAST'))}"]
    return _group([*last, *map(_source, CARRIED[name])])


@cache
def doorkeeper() -> str:
    """Return the program that an enforced node starts for wlctl's key."""
    return f"{_source(DOORKEEPER)}\n"


def _group(body: list[str]) -> str:
    return "\n".join(["{", *body, "exit", "}", ""])


def _source(part: str) -> str:
    return (_DIRECTORY / f"{part}.sh").read_text(encoding="ascii").rstrip("\n")


def _quoted(program: str) -> str:
    return "'" + program.replace("'", "'\\''") + "'"
