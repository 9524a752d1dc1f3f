"""What stands for what in a value of ssh's configuration: `~`, `%h`, `${HOME}`."""

import os
import pwd
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wlctl.errors import InvalidSshConfig

_TOKEN = re.compile(r"%(.?)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and from where: ssh looks for its files at the passwd entry's home, not at HOME."""

    login: str
    uid: int
    home: Path
    hostname: str
    environment: Mapping[str, str]

    @property
    def tokens(self) -> dict[str, str]:
        """What stands for this user and this machine."""
        return {
            "u": self.login,
            "d": str(self.home),
            "i": str(self.uid),
            "l": self.hostname,
            "L": self.hostname.partition(".")[0],
        }

    def home_path(self, text: str) -> Path:
        """Return the path that `text` means, whose `~` is this user's home.

        Raises:
            InvalidSshConfig: It is somebody else's home.
        """
        if text == "~":
            return self.home
        if text.startswith("~/"):
            return self.home / text[2:]
        if text.startswith("~"):
            raise InvalidSshConfig(f"{text}: only ~/ is understood, no other user's home")
        return Path(text)


def caller() -> Caller:
    """Return who runs this process."""
    uid = os.getuid()
    try:
        entry = pwd.getpwuid(uid)
        login, home = entry.pw_name, entry.pw_dir
    except KeyError:  # a container's user without a name
        login, home = str(uid), os.environ.get("HOME", "/nonexistent")
    return Caller(login, uid, Path(home), socket.gethostname(), os.environ)


def expand(text: str, tokens: Mapping[str, str], what: str) -> str:
    """Replace every `%x` in `text` by what it stands for.

    Args:
        tokens: By letter; `%%` needs no entry.
        what: The keyword, for the error.

    Raises:
        InvalidSshConfig: A token is not one of `tokens`.
    """

    def value(found: re.Match[str]) -> str:
        letter = found[1]
        if letter == "%":
            return "%"
        if letter not in tokens:
            raise InvalidSshConfig(f"{what} {text}: %{letter} stands for nothing there")
        return tokens[letter]

    return _TOKEN.sub(value, text)


def expand_path(text: str, tokens: Mapping[str, str], who: Caller, what: str) -> Path:
    """Return the path that a value of the keyword `what` means.

    Raises:
        InvalidSshConfig: A token or a variable in it stands for nothing.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in who.environment:
            raise InvalidSshConfig(f"{what} {text}: {found[1]} is not in the environment")
        return who.environment[found[1]]

    # Tokens first: what a variable holds is not looked at again
    return who.home_path(_VARIABLE.sub(value, expand(text, tokens, what)))
