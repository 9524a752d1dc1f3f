"""Which words may stand where in a description: names, variables, capabilities, signals, paths."""

import re
from collections.abc import Collection

GIVEN_NAMES = frozenset(
    {
        "WLCTL_NAME",
        "WLCTL_INSTANCE",
        "WLCTL_NODE",
        "WLCTL_GENERATION",
        "WLCTL_FENCE",
        "WLCTL_RUN_DIR",
        "WLCTL_DATA_DIR",
        "TMPDIR",
        "HOME",
    }
)
"""Variables that every process is given."""

_CAPABILITY_WORDS = """
    AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN DAC_OVERRIDE
    DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN
    MAC_OVERRIDE MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID
    SETPCAP SETUID SYSLOG SYS_ADMIN SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE
    SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG WAKE_ALARM
"""
CAPABILITIES = frozenset(f"CAP_{word}" for word in _CAPABILITY_WORDS.split())
"""Source: capabilities(7)."""

STOP_SIGNALS = ("TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "WINCH", "KILL")

WORKLOAD_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
"""Shorter than an id, so that the copies of `--count` can be numbered behind it."""
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
VARIANT_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
PORT_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
VARIABLE_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\*?")
LOGIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")

_MAX_PATH_CHARACTERS = 1024
_MAX_NAME_BYTES = 255

_KEPT_BY_SHELLS = (
    *("_", "SHLVL", "OPTIND", "UID", "EUID", "PPID", "PIPESTATUS", "SHELLOPTS", "BASHOPTS"),
    *("BASH_ARGC", "BASH_ARGV", "BASH_LINENO", "BASH_SOURCE", "BASH_VERSINFO"),
)
"""What some shell gives to no program, or not as it was set: a shell starts every run."""

_NEVER_ALLOWED = re.compile(
    r"LD_.*|DYLD_.*|GLIBC_.*|MALLOC_.*|PATH|IFS|ENV|BASH_ENV|PS4|CDPATH"
    r"|PYTHON.*|PERL.*|RUBY.*|NODE_.*|JAVA_TOOL_OPTIONS|GCONV_PATH|LOCPATH|NLSPATH|HOSTALIASES"
    r"|RES_OPTIONS|TMPDIR|HOME|WLCTL_.*|PORT|PORT_.*"
)
"""What decides which code runs, or what wlctl itself gives."""


def is_given(name: str) -> bool:
    """Answer whether the variable is wlctl's own to give, so that nobody else sets it."""
    return name.startswith(("WLCTL_", "PORT_")) or name in GIVEN_NAMES or name == "PORT"


def is_kept_by_shells(name: str) -> bool:
    """Answer whether the variable cannot be set for a program, by a package or by an order."""
    return name in _KEPT_BY_SHELLS


def is_never_allowed(name: str) -> bool:
    """Answer whether `place` may not set the variable, whatever the package says."""
    return is_kept_by_shells(name) or _NEVER_ALLOWED.fullmatch(name) is not None


def may_set(name: str, env_allow: Collection[str]) -> bool:
    """Answer whether `place` may set the variable for a package that allows `env_allow`."""
    if VARIABLE.fullmatch(name) is None or is_never_allowed(name):
        return False
    return any(
        name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
        for pattern in env_allow
    )


def port_variable(port_name: str) -> str:
    """Name the variable that carries the port: `http-admin` is `PORT_HTTP_ADMIN`."""
    return f"PORT_{port_name.upper().replace('-', '_')}"


def is_printable(text: str, most: int) -> bool:
    """Answer whether `text` has 1 to `most` characters, all of which can be seen."""
    return 0 < len(text) <= most and text.isprintable()


def plain_path(text: str) -> str | None:
    """Bring a path inside the package to its one spelling; None unless it stays inside.

    A leading `./` and a `/` at the end are taken off; `./` alone is the package itself, spelled
    `.`. Absolute paths, `..`, empty parts and characters that cannot be seen are refused.
    """
    trimmed = text.removeprefix("./").removesuffix("/")
    if text.startswith("./") and trimmed in {"", "."}:
        return "."
    if not is_printable(trimmed, _MAX_PATH_CHARACTERS):
        return None
    return trimmed if all(_is_plain_part(part) for part in trimmed.split("/")) else None


def _is_plain_part(part: str) -> bool:
    return part not in {"", ".", ".."} and len(part.encode()) <= _MAX_NAME_BYTES
