"""Lists of allowed signers, as ssh-keygen has them: read strictly, and written.

What is read here is a part of the format: a name stands for itself and is never a pattern, one name
has one key, and no certificate authority vouches for others.
Source: ssh-keygen(1), ALLOWED SIGNERS; OpenSSH's sshsig.c and misc.c (parse_absolute_time).
"""

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from wlctl.errors import InvalidFile, UnusableKey
from wlctl.model.package import Signer
from wlctl.signing.keys import read_unchangeable
from wlctl.signing.public import KEY_TYPES, parse_public_key
from wlctl.signing.sshsig import PACKAGE_NAMESPACE

MAX_BYTES = 1024 * 1024
MAX_SHOWN = 3

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")
"""A signer's name: nothing that this format would read as a pattern, a list or an option."""

_OPTION = re.compile(r'([a-z-]+)(?:="((?:[^"\\]|\\.)*)")?', re.IGNORECASE)
_TIME = re.compile(r"([0-9]{8})(?:([0-9]{4})([0-9]{2})?)?(Z|UTC)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Allowed:
    """One line of a list.

    Attributes:
        line: Its number, from 1.
        for_packages: Its namespaces have that of packages, or it names none.
    """

    line: int
    signer: Signer
    for_packages: bool


class _Fault(Exception):
    """What is wrong with a line, in words."""


def load_allowed_signers(path: Path) -> tuple[Allowed, ...]:
    """Read a list that nobody else can change.

    Raises:
        InvalidFile: There is no such file, or it has a line that is not taken; each is named.
        UnsafeKey: Others can write it.
        UnusableKey: It is no plain file, or too large.
        FilesUnreadable: The system does not give it.
    """
    data = read_unchangeable(path, MAX_BYTES)
    try:
        return parse_allowed_signers(data.decode("utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{path} is not UTF-8 at byte {error.start}") from None


def parse_allowed_signers(text: str, source: str) -> tuple[Allowed, ...]:
    """Read a list; all of it or nothing.

    Args:
        source: How it is called in messages.

    Raises:
        InvalidFile: A line is not taken; each is named, up to a few.
    """
    found: list[Allowed] = []
    faults: list[str] = []
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = line.strip(" \t\r")
        if not words or words.startswith("#"):
            continue
        try:
            one = _line(number, words)
            _once(one, lines)
            found.append(one)
        except (_Fault, UnusableKey) as fault:
            faults.append(f"line {number}: {fault}")
    if faults:
        more = f"; and {len(faults) - MAX_SHOWN} more" if len(faults) > MAX_SHOWN else ""
        raise InvalidFile(
            f"{source}: {'; '.join(faults[:MAX_SHOWN])}{more}",
            hint="nothing of it was taken; mend these lines, or take them out",
        )
    return tuple(found)


def _once(one: Allowed, lines: dict[str, int]) -> None:
    for unique in (one.signer.name, one.signer.public_key):
        if (first := lines.setdefault(unique, one.line)) != one.line:
            raise _Fault(f"the same name or key as in line {first}; one name has one key")


def allowed_signers(signers: Iterable[Signer]) -> str:
    """Write the list that makes `ssh-keygen -Y verify` accept what is accepted here, and no more.

    Moments are written in UTC, with the `Z` that ssh-keygen knows since OpenSSH 9.1.
    """
    return "".join(f"{_written(signer)}\n" for signer in signers)


def _written(signer: Signer) -> str:
    times = {"valid-after": signer.valid_after_ms, "valid-before": signer.valid_before_ms}
    options = [f'namespaces="{PACKAGE_NAMESPACE}"']
    options += [f'{name}="{_stamp(at)}"' for name, at in times.items() if at is not None]
    return f"{signer.name} {','.join(options)} {signer.public_key}"


def _stamp(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms // 1000, tz=UTC).strftime("%Y%m%d%H%M%SZ")


def _line(number: int, words: str) -> Allowed:
    name, _, rest = words.partition(" ")
    rest = rest.strip(" \t")
    if NAME.fullmatch(name) is None:
        raise _Fault(
            "its first word is not one plain name; patterns, lists and quotes are not taken"
        )
    options: dict[str, str] = {}
    if rest.split(" ", 1)[0] not in KEY_TYPES:
        length = _end_of_options(rest)
        options = dict(_options(rest[:length]))
        rest = rest[length:].strip(" \t")
    key = parse_public_key(rest, "its key")
    after, before = (_moment(options.get(name)) for name in ("valid-after", "valid-before"))
    if after is not None and before is not None and after >= before:
        raise _Fault("valid-after is not before valid-before")
    listed = options.get("namespaces")
    for_packages = listed is None or _matches(listed, PACKAGE_NAMESPACE)
    return Allowed(number, Signer(name, key, 0, after, before), for_packages)


def _end_of_options(text: str) -> int:
    """Find the first space outside quotes."""
    quoted = escaped = False
    for at, letter in enumerate(text):
        if letter in " \t" and not quoted:
            return at
        if letter == '"' and not escaped:
            quoted = not quoted
        escaped = letter == "\\" and not escaped
    return len(text)


def _options(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    seen: set[str] = set()
    while at < len(text):
        match = _OPTION.match(text, at)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            raise _Fault("its options cannot be read, or its key is of a type that is not taken")
        name, value = match[1].lower(), match[2]
        if name == "cert-authority":
            raise _Fault("cert-authority is not taken: list each key that signs")
        if name not in {"namespaces", "valid-after", "valid-before"}:
            raise _Fault(f"{name[:40]} is no option, and no type of key that is taken")
        if value is None or name in seen:
            raise _Fault(f"{name} {'has no value' if value is None else 'is there twice'}")
        seen.add(name)
        yield name, re.sub(r"\\(.)", r"\1", value)
        at = match.end() + 1


def _moment(text: str | None) -> int | None:
    """Read YYYYMMDD[HHMM[SS]][Z]; without Z, in this machine's time zone."""
    if text is None:
        return None
    no_moment = _Fault(f"{text[:40]!a} is no moment; write YYYYMMDDHHMMSSZ")
    match = _TIME.fullmatch(text)
    if match is None:
        raise no_moment
    try:
        digits = f"{match[1]}{match[2] or '0000'}{match[3] or '00'}"
        at = datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        seconds = at.timestamp() if match[4] else time.mktime((*at.timetuple()[:8], -1))
    except (ValueError, OverflowError):
        raise _Fault(f"{text[:40]!a} is no moment; write YYYYMMDDHHMMSSZ") from None
    if seconds <= 0:
        raise _Fault(f"{text[:40]!a} is no moment after 1970")
    return int(seconds) * 1000


def _matches(listed: str, wanted: str) -> bool:
    """Match as ssh does: `*` and `?` are patterns, and what begins with `!` is excluded."""
    is_in = False
    for one in listed.split(","):
        pattern = re.escape(one.removeprefix("!")).replace(r"\*", ".*").replace(r"\?", ".")
        if re.fullmatch(pattern, wanted):
            if one.startswith("!"):
                return False
            is_in = True
    return is_in
