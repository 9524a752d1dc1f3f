"""Which settings of ssh's configuration files hold for one host.

This reader is our own, because the one that comes with paramiko runs the command of a `Match exec`,
knows no `Include`, does not look at who can write a file, and passes unknown tokens on as they are.
This one runs nothing and asks no resolver: a line whose meaning would depend on that is refused
when it could apply. Keywords that are no concern of wlctl's are passed over.

Source: OpenSSH, ssh_config(5).
"""

import glob
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from wlctl.errors import InvalidSshConfig
from wlctl.host.ssh.files import read_lines
from wlctl.host.ssh.tokens import Caller

INCLUDE_DEPTH_MAX = 16

FIRST_COUNTS = frozenset(
    {
        *("hostname", "port", "user", "identitiesonly", "identityagent", "hostkeyalias"),
        *("userknownhostsfile", "globalknownhostsfile"),
    }
)
"""The first value found holds."""

ALL_COUNT = frozenset({"identityfile", "certificatefile"})
"""Every value found holds, in order."""

PROXIES = frozenset({"proxyjump", "proxycommand"})
"""The first of either holds, except that a command may follow a `ProxyJump none`."""

_LINE = re.compile(r"(?P<keyword>[A-Za-z0-9]+)(?:\s*=\s*|\s+)(?P<rest>\S.*)")
_WORD = re.compile(r'"(?P<quoted>[^"]*)"|(?P<bare>[^\s"]+)')


@dataclass(frozen=True, slots=True)
class Line:
    """One setting, and where it stands."""

    file: Path
    number: int
    keyword: str
    words: tuple[str, ...]
    rest: str

    @property
    def is_none(self) -> bool:
        """Whether its value says that there is to be none."""
        return self.rest.strip('"').lower() == "none"

    def invalid(self, why: str, *, hint: str | None = None) -> InvalidSshConfig:
        """Say what is wrong with this line."""
        return InvalidSshConfig(f"{self.file}, line {self.number}: {why}", hint=hint)


@dataclass(slots=True)
class Found:
    """What holds for a host, as it is written: tokens are not expanded yet.

    Attributes:
        words: By keyword; those of `ALL_COUNT` hold one word a line.
        proxy: The line with ProxyJump or ProxyCommand that counts.
    """

    words: dict[str, tuple[str, ...]] = field(default_factory=dict)
    proxy: Line | None = None

    def take_proxy(self, line: Line) -> None:
        """Take a line with ProxyJump or ProxyCommand, if it counts."""
        before = self.proxy
        if before is None or (
            line.keyword == "proxycommand" and before.keyword == "proxyjump" and before.is_none
        ):
            self.proxy = line

    def first(self, keyword: str) -> str:
        """Return the value of a keyword that takes one, or nothing."""
        return self.words.get(keyword, ("",))[0]


def lookup(
    name: str,
    *,
    user: str,
    files: Sequence[Path],
    caller: Caller,
    hostname_of: Callable[[str], str],
) -> Found:
    """Find what `files` say of the host that was asked for as `name`.

    Args:
        user: The login that was asked for, or empty.
        files: The user's before the system's.
        hostname_of: Expands the value of HostName.

    Raises:
        InvalidSshConfig: A line cannot be read, or whether it applies cannot be known.
        UnsafeSshConfig: Others can have written a file.
    """
    found = Found()
    asked = _Asked(name, user, caller, hostname_of)
    first = _Pass(name, asked, found, final=False)
    for file in files:
        first.read(file, applies=True, depth=0)
    if first.asked_for_final:
        # `Match final` wants everything read again, knowing what the name stands for
        host = hostname_of(found.first("hostname")) or name
        found.words["hostname"] = (host.replace("%", "%%"),)
        second = _Pass(host, asked, found, final=True)
        for file in files:
            second.read(file, applies=True, depth=0)
    return found


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is looked up, and for whom."""

    name: str
    user: str
    caller: Caller
    hostname_of: Callable[[str], str]


class _Pass:
    """One reading of all files for one host."""

    def __init__(self, host: str, asked: _Asked, found: Found, *, final: bool) -> None:
        self._host = host
        self._asked = asked
        self._caller = asked.caller
        self._found = found
        self._final = final
        self.asked_for_final = False

    def read(self, file: Path, *, applies: bool, depth: int) -> None:
        """Take what applies from `file` and from what it includes."""
        here = applies
        for line in _lines(file, self._caller.uid):
            if line.keyword == "host":
                here = applies and matches(line.words, self._host)
            elif line.keyword == "match":
                here = applies and self._match(line)
            elif here and line.keyword == "include":
                self._include(line, depth + 1)
            elif here:
                self._take(line)

    def _include(self, line: Line, depth: int) -> None:
        if depth > INCLUDE_DEPTH_MAX:
            raise line.invalid(f"files include each other more than {INCLUDE_DEPTH_MAX} deep")
        for word in line.words:
            pattern = self._caller.home_path(word)
            # as in ssh: a relative path is one beside the file that the chain began with
            pattern = pattern if pattern.is_absolute() else self._beside(line.file) / pattern
            for path in sorted(glob.glob(str(pattern))):  # noqa: PTH207 - an absolute pattern
                self.read(Path(path), applies=True, depth=depth)

    def _beside(self, file: Path) -> Path:
        system = Path("/etc/ssh")
        return system if file.is_relative_to(system) else self._caller.home / ".ssh"

    def _take(self, line: Line) -> None:
        words = self._found.words
        if line.keyword in PROXIES:
            self._found.take_proxy(line)
        elif line.keyword in ALL_COUNT:
            if len(line.words) != 1:
                raise line.invalid(f"{line.keyword} takes one file")
            so_far = words.get(line.keyword, ())
            if line.words[0] not in so_far:
                words[line.keyword] = (*so_far, line.words[0])
        elif line.keyword in FIRST_COUNTS:
            words.setdefault(line.keyword, line.words)

    def _match(self, line: Line) -> bool:
        """Decide whether a Match line applies; what would need a command cannot be decided."""
        met = True
        undecided = ""
        for criterion, argument in _criteria(line):
            name = criterion.removeprefix("!")
            answer = self._criterion(name, argument)
            if answer is None:
                undecided = undecided or name
            elif answer == criterion.startswith("!"):
                met = False
        if met and undecided:
            what = "runs a command" if undecided == "exec" else "is not understood"
            raise line.invalid(
                f"`Match {undecided}` {what}, and it could apply to {self._asked.name}",
                hint="name the hosts in a `Match host` or `Host` line instead, or exclude this one",
            )
        return met

    def _criterion(self, name: str, argument: str) -> bool | None:
        patterns = argument.split(",")
        match name:
            case "all":
                return True
            case "final":
                self.asked_for_final = True
                return self._final
            case "canonical":  # no name is made canonical; ssh takes it for `final` then
                return self._final
            case "host":
                so_far = self._found.first("hostname")
                return matches(patterns, self._asked.hostname_of(so_far) if so_far else self._host)
            case "originalhost":
                return matches(patterns, self._asked.name)
            case "user":
                user = self._asked.user or self._found.first("user") or self._caller.login
                return matches(patterns, user)
            case "localuser":
                return matches(patterns, self._caller.login)
            case _:
                return None


def _criteria(line: Line) -> Iterator[tuple[str, str]]:
    words = iter(line.words)
    for word in words:
        criterion, equals, argument = word.partition("=")
        criterion = criterion.lower()
        if criterion.removeprefix("!") in {"all", "final", "canonical"}:
            yield criterion, ""
            continue
        argument = argument if equals else next(words, "")
        if not argument:
            raise line.invalid(f"`Match {criterion}` takes an argument")
        yield criterion, argument


def matches(patterns: Sequence[str], text: str) -> bool:
    """Decide whether one of `patterns` fits and none that starts with `!` does.

    Source: OpenSSH, ssh_config(5), PATTERNS.
    """
    hit = False
    for pattern in patterns:
        if _fits(pattern.removeprefix("!"), text):
            if pattern.startswith("!"):
                return False
            hit = True
    return hit


def _fits(pattern: str, text: str) -> bool:
    wild = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(wild, text, re.DOTALL) is not None


def _lines(file: Path, uid: int) -> Iterable[Line]:
    texts = read_lines(file, uid)
    try:
        return _all_lines(file, texts)
    except InvalidSshConfig:
        return _each_line(file, texts)  # what stands before the line at fault counts first


@lru_cache
def _all_lines(file: Path, texts: tuple[str, ...]) -> tuple[Line, ...]:
    """Read a file once for all nodes, as long as it says the same."""
    return tuple(_each_line(file, texts))


def _each_line(file: Path, texts: Sequence[str]) -> Iterator[Line]:
    for number, text in enumerate(texts, 1):
        plain = text.strip()
        if not plain or plain.startswith("#"):
            continue
        read = _LINE.fullmatch(plain)
        if read is None:
            raise InvalidSshConfig(f"{file}, line {number}: is not `KEYWORD VALUE`")
        keyword, rest = read["keyword"].lower(), read["rest"]
        line = Line(file, number, keyword, (), rest)
        if keyword == "proxycommand":
            yield line
        else:
            yield Line(file, number, keyword, _words(line), rest)


def _words(line: Line) -> tuple[str, ...]:
    words: list[str] = []
    at = 0
    while at < len(line.rest):
        if line.rest[at].isspace():
            at += 1
            continue
        if line.rest[at] == "#" and words:
            break
        word = _WORD.match(line.rest, at)
        if word is None:
            raise line.invalid("a quote is not closed")
        words.append(word["bare"] if word["quoted"] is None else word["quoted"])
        at = word.end()
    return tuple(words)
