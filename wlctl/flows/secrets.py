"""Get the values of secrets where the operator's settings say they are, each time anew.

A value is in memory from here to the request that carries it, and nowhere else: not in the ledger,
the chain, a log, an error or an argv.
"""

import os
import stat
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from wlctl.config.secrets import SecretSource
from wlctl.errors import SecretUnavailable
from wlctl.flows.runtime import Runtime
from wlctl.model.actions import Secrets

MAX_BYTES = 64 << 10
COMMAND_TIMEOUT_S = 30.0
"""A command that asks somebody for something would hang for ever under cron."""


def sources(
    rt: Runtime, names: Iterable[str], entries: Mapping[str, str]
) -> dict[str, SecretSource]:
    """Find where each secret is to be got, without getting it.

    Args:
        names: As the package has them.
        entries: Name to the entry of the settings it stands for; by default that of its own name.

    Raises:
        SecretUnavailable: The settings have no such entry.
    """
    found = {}
    for name in names:
        entry = entries.get(name, name)
        if entry not in rt.settings.secrets:
            raise SecretUnavailable(
                f"nothing says where the secret {entry} is",
                hint=f'add [secrets] {entry} = {{ file = "/path" }} to your config.toml',
            )
        found[name] = rt.settings.secrets[entry]
    return found


def resolve(rt: Runtime, names: Iterable[str], entries: Mapping[str, str]) -> Secrets:
    """Get the value of each secret.

    Raises:
        SecretUnavailable: One cannot be had, or cannot be a secret.
    """
    return tuple(
        (name, value_of(name, source)) for name, source in sources(rt, names, entries).items()
    )


def value_of(name: str, source: SecretSource) -> str:
    """Get one value.

    Args:
        name: What to call it where it cannot be had.

    Raises:
        SecretUnavailable: It cannot be had, or cannot be a secret.
    """
    if source.env:
        text = os.environ.get(source.env)
        if text is None:
            raise SecretUnavailable(f"the secret {name} is not there: {source.env} is not set")
        return _checked(name, os.fsencode(text))
    if source.file:
        return _checked(name, _of_file(name, Path(source.file)))
    return _checked(name, _of_command(name, source.command))


def _of_file(name: str, path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise SecretUnavailable(f"the secret {name} is not there: {path} is no file")
            if status.st_mode & 0o077:
                raise SecretUnavailable(
                    f"the secret {name} is open to others: {path}", hint=f"chmod 600 {path}"
                )
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SecretUnavailable(
            f"the secret {name} is not there: {path}: {error.strerror}"
        ) from None


def _of_command(name: str, command: tuple[str, ...]) -> bytes:
    """Run it; what it prints on stderr is its own affair, and may hold what must not be shown."""
    try:
        done = subprocess.run(  # noqa: S603 - the operator's own settings name it
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except OSError as error:
        raise SecretUnavailable(
            f"the secret {name} is not there: {command[0]}: {error.strerror}"
        ) from None
    except subprocess.TimeoutExpired:
        raise SecretUnavailable(
            f"the secret {name} is not there: {command[0]} took longer than {COMMAND_TIMEOUT_S:g} s"
        ) from None
    if done.returncode != 0:
        raise SecretUnavailable(
            f"the secret {name} is not there: {command[0]} ended with status {done.returncode}"
        )
    return done.stdout.removesuffix(b"\n")


def _checked(name: str, value: bytes) -> str:
    if len(value) > MAX_BYTES:
        raise SecretUnavailable(f"the secret {name} is longer than {MAX_BYTES} bytes")
    if not value or b"\0" in value:
        raise SecretUnavailable(f"the secret {name} is empty, or has a NUL byte in it")
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise SecretUnavailable(
            f"the secret {name} is not UTF-8", hint="encode it, e.g. with base64"
        ) from None
