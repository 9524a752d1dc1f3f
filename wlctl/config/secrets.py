"""Where the values of secrets come from: references in a settings file, never the values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wlctl.errors import InvalidFile

TABLE = "secrets"
"""The table of a settings file; a project file may not have it."""

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_FORMS = (
    'write NAME = { env = "VARIABLE" }, { file = "/path" } or { command = ["program", "argument"] }'
)


@dataclass(frozen=True, slots=True)
class SecretSource:
    """Where one value is got when it is needed; exactly one of the three is set.

    Attributes:
        env: A variable of wlctl's own environment.
        file: A file that nobody else can read.
        command: Prints it; run without a shell.
        where: The settings file that says so.
    """

    where: str
    env: str = ""
    file: str = ""
    command: tuple[str, ...] = ()


def read(
    path: Path | None, table: Mapping[str, object], *, title: str = TABLE
) -> dict[str, SecretSource]:
    """Read the table of one settings file.

    Args:
        title: What stands above the table there.

    Raises:
        InvalidFile: An entry is none; its value is not shown, since somebody may have put it there.
    """
    found = {}
    for name, said in table.items():
        if NAME.fullmatch(name) is None:
            raise InvalidFile(f"{path}: {title}.{name[:60]} is not a name", hint=_FORMS)
        found[name] = _source(path, f"{title}.{name}", said)
    return found


def _source(path: Path | None, name: str, said: object) -> SecretSource:
    wrong = InvalidFile(f"{path}: {name} does not say where its value is", hint=_FORMS)
    if not isinstance(said, dict) or len(said) != 1:
        raise wrong
    (kind, value), where = next(iter(said.items())), str(path)
    match kind, value:
        case "env", str() if value and "=" not in value:
            return SecretSource(where, env=value)
        case "file", str() if Path(value).is_absolute():
            return SecretSource(where, file=value)
        case "command", list() if value and all(isinstance(word, str) for word in value):
            return SecretSource(where, command=tuple(value))
        case _:
            raise wrong
