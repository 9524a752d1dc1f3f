"""Whom alerts are told to: the table `[alerts]` of a settings file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from wlctl.config import secrets
from wlctl.config.secrets import SecretSource
from wlctl.errors import InvalidFile

TABLE = "alerts"
"""A project file may not have it: it names programs to run."""

URLS = "urls"
COMMAND = "command"


@dataclass(frozen=True, slots=True)
class Alerting:
    """Every way to tell somebody.

    Attributes:
        command: A program and its arguments, run without a shell; empty for none.
        urls: Name to where a URL of the notification library is got, since those hold tokens.
    """

    command: tuple[str, ...] = ()
    urls: Mapping[str, SecretSource] = field(default_factory=lambda: MappingProxyType({}))


def read(path: Path | None, table: Mapping[str, object]) -> Alerting:
    """Read the table of one settings file.

    Raises:
        InvalidFile: It says something else, or says it otherwise; no value is shown.
    """
    for name in table:
        if name not in {COMMAND, URLS}:
            raise InvalidFile(
                f"{path}: there is no setting {TABLE}.{name[:60]}",
                hint=f"it may set {COMMAND}, and [{TABLE}.{URLS}]",
            )
    urls = table.get(URLS, {})
    if not isinstance(urls, dict):
        raise InvalidFile(
            f"{path}: {TABLE}.{URLS} is a table",
            hint=f'write [{TABLE}.{URLS}] on a line, and NAME = {{ file = "/path" }} below it',
        )
    found = secrets.read(path, urls, title=f"{TABLE}.{URLS}")
    return Alerting(_command(path, table.get(COMMAND, [])), MappingProxyType(found))


def _command(path: Path | None, said: object) -> tuple[str, ...]:
    if isinstance(said, list) and all(isinstance(word, str) and "\0" not in word for word in said):
        return tuple(said)
    raise InvalidFile(
        f"{path}: {TABLE}.{COMMAND} is a list of words",
        hint=f'write {COMMAND} = ["/path/to/program", "argument"]',
    )


def over(system: Alerting, user: Alerting) -> Alerting:
    """Put one's own table over the system's: the command as a whole, the URLs name by name."""
    urls = MappingProxyType({**system.urls, **user.urls})
    return Alerting(user.command or system.command, urls)
