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
CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Alerting:
    """Every way to tell somebody.

    Attributes:
        command: A program and its arguments, run without a shell; empty for none.
        urls: Name to where a URL of the notification library is got, since those hold tokens.
        closed: Whether to tell, too, when what was told of is over; None where nothing says so.
        origins: Which settings file says `command` and `closed`, where one does.
    """

    command: tuple[str, ...] = ()
    urls: Mapping[str, SecretSource] = field(default_factory=lambda: MappingProxyType({}))
    closed: bool | None = None
    origins: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def tells_closed(self) -> bool:
        """Whoever was woken wants to know that it is over, unless they say otherwise."""
        return self.closed is not False


def read(path: Path | None, table: Mapping[str, object]) -> Alerting:
    """Read the table of one settings file.

    Raises:
        InvalidFile: It says something else, or says it otherwise; no value is shown.
    """
    for name in table:
        if name not in {COMMAND, CLOSED, URLS}:
            raise InvalidFile(
                f"{path}: there is no setting {TABLE}.{name[:60]}",
                hint=f"it may set {COMMAND}, {CLOSED}, and [{TABLE}.{URLS}]",
            )
    urls = table.get(URLS, {})
    if not isinstance(urls, dict):
        raise InvalidFile(
            f"{path}: {TABLE}.{URLS} is a table",
            hint=f'write [{TABLE}.{URLS}] on a line, and NAME = {{ file = "/path" }} below it',
        )
    found = secrets.read(path, urls, title=f"{TABLE}.{URLS}")
    command, closed = _command(path, table.get(COMMAND, [])), _closed(path, table.get(CLOSED))
    said = {COMMAND: bool(command), CLOSED: closed is not None}
    origins = {name: str(path) for name, is_said in said.items() if is_said}
    return Alerting(command, MappingProxyType(found), closed, MappingProxyType(origins))


def _command(path: Path | None, said: object) -> tuple[str, ...]:
    if isinstance(said, list) and all(isinstance(word, str) and "\0" not in word for word in said):
        return tuple(said)
    raise InvalidFile(
        f"{path}: {TABLE}.{COMMAND} is a list of words",
        hint=f'write {COMMAND} = ["/path/to/program", "argument"]',
    )


def _closed(path: Path | None, said: object) -> bool | None:
    if said is None or isinstance(said, bool):
        return said
    raise InvalidFile(f"{path}: {TABLE}.{CLOSED} is yes or no", hint=f"write {CLOSED} = false")


def over(system: Alerting, user: Alerting) -> Alerting:
    """Put one's own table over the system's: the command as a whole, the URLs name by name."""
    return Alerting(
        user.command or system.command,
        MappingProxyType({**system.urls, **user.urls}),
        system.closed if user.closed is None else user.closed,
        MappingProxyType({**system.origins, **user.origins}),
    )
