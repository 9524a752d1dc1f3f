"""Reads what operators write about nodes: addresses, tiers, claims, labels, lists of machines."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from wlctl.cli.options import Session
from wlctl.errors import ExitCode, HostKeyChanged, InvalidFile, UsageError, WlctlError
from wlctl.flows.node_changes import checked_id, label
from wlctl.flows.node_list import Wanted
from wlctl.model.facts import AttrValue, Capability, Provenance
from wlctl.model.ids import is_checked_id
from wlctl.model.node import Address, Settles, Tier, TransportKind

AskPass = Annotated[
    bool,
    typer.Option(
        "--ask-pass", help="Log in with a password that is typed here; it is kept nowhere."
    ),
]

Name = Annotated[str, typer.Argument(metavar="NAME", help="A node.")]

LIST_MAX_BYTES = 4 << 20

LABEL = "node.label."

TEXT_MAX_CHARS = 256

PORT_MAX = 65_535

_ATTR = re.compile(r"[a-z][a-z0-9_]{0,63}")
_INTEGER = re.compile(r"-?[0-9]{1,15}")
_DECIMAL = re.compile(r"-?[0-9]{1,15}\.[0-9]{1,15}")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")


def address(where: str, *, port: int, sudo: bool) -> Address:
    """Read `[USER@]HOST`, an ssh alias or `local`.

    Raises:
        UsageError: It is none of them.
    """
    if where == "local":
        return Address(TransportKind.LOCAL, sudo=sudo)
    user, _, host = where.rpartition("@")
    odd = any(c.isspace() or not c.isprintable() for c in where)
    if not host or odd or host.startswith("-") or user.startswith("-"):
        raise UsageError(f"{where} is not [USER@]HOST", hint="e.g. deploy@10.0.0.5, or local")
    return Address(TransportKind.SSH, host=host, port=port, user=user, sudo=sudo)


def tier(word: str) -> Tier:
    """Read a tier.

    Raises:
        UsageError: It is none.
    """
    try:
        return Tier[word.upper()]
    except KeyError:
        words = ", ".join(tier.word for tier in Tier)
        raise UsageError(f"{word} is not a tier", hint=f"one of {words}") from None


def log_in_by_password(session: Session, address: Address) -> None:
    """Have the command log in with a password that somebody types when it comes to that.

    Raises:
        NeedsTerminal: Nobody is there to type it; nothing was contacted.
        UsageError: Nobody logs in to this machine.
    """
    if address.transport is TransportKind.LOCAL:
        raise UsageError("nobody logs in to this machine", hint="leave out --ask-pass")
    session.runtime.passwords = session.passwords()


def settles(word: str) -> Settles:
    """Read for how little an operator settles.

    Raises:
        UsageError: It is none of the words for that.
    """
    try:
        return Settles(word)
    except ValueError:
        words = ", ".join(one.value for one in Settles)
        raise UsageError(
            f"{word} is not what containment can be set to", hint=f"one of {words}"
        ) from None


def other_key(name: str, shown: str, wanted: str) -> HostKeyChanged:
    """Say that a machine shows another host key than the one that was given."""
    return HostKeyChanged(
        f"{name} shows the host key {shown or 'of none'}, not {wanted}",
        hint="find out which is right before you trust it",
    )


def accept_key(
    session: Session, who: str, shown: str, wanted: str, known_hosts: Path | None
) -> None:
    """Have the host key that a machine shows accepted: by what was given, or by somebody's word.

    Raises:
        HostKeyChanged: Another one was given.
        Declined, NeedsTerminal: As `Session.confirm`.
    """
    if wanted and wanted != shown:
        raise other_key(who, shown, wanted)
    if not wanted and known_hosts is None:
        question = f"{who} shows the host key {shown}. Is that right?"
        session.confirm(question, flag=f"--host-key {shown}")


def claim(text: str) -> Capability:
    """Read `ID[,ATTR=VALUE…][,exclusive]`, e.g. `sensor.cam.front,resolution=1080`.

    A value that looks like a number is one, `true` and `false` are what they say, and all else is
    text; so is every version, and what stands in double quotes.

    Raises:
        UsageError: It is none.
    """
    id_, *parts = text.split(",")
    hint = "write ID[,ATTR=VALUE…], e.g. sensor.cam.front,resolution=1080"
    checked_id(id_, f"{id_!r} cannot be the id of a capability")
    if id_ == "node.label" or id_.startswith(LABEL):
        raise UsageError(f"{id_} is a node label", hint="give it with --label KEY=VALUE")
    attrs: dict[str, AttrValue] = {}
    exclusive = False
    for part in parts:
        attr, equals, value = part.partition("=")
        if part == "exclusive":
            exclusive = True
        elif not equals or _ATTR.fullmatch(attr) is None or attr == "exclusive":
            raise UsageError(f"{part!r} is not ATTR=VALUE", hint=hint)
        elif attr in attrs:
            raise UsageError(f"{id_} is given {attr} twice", hint=hint)
        else:
            attrs[attr] = _value(attr, value)
    return Capability(id_, attrs, Provenance.CLAIMED, exclusive=exclusive)


def node_label(text: str) -> Capability:
    """Read `KEY=VALUE`.

    Raises:
        UsageError: It is none.
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{text!r} is not KEY=VALUE", hint="e.g. --label env=prod")
    return label(key, _text(value))


def _value(attr: str, text: str) -> AttrValue:
    if text[:1] == text[-1:] == '"' and len(text) > 1:
        return _text(text[1:-1])
    if attr == "version" or attr.endswith("_version"):
        return _text(text)
    if text in ("true", "false"):
        return text == "true"
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else _text(text)


def _text(text: str) -> str:
    if not text or len(text) > TEXT_MAX_CHARS or not text.isprintable():
        raise UsageError(
            f"{text[:40]!r} cannot be a value", hint=f"1 to {TEXT_MAX_CHARS} printable characters"
        )
    return text


def machine_list(file: Path) -> list[Wanted]:
    """Read a list of machines: `NAME [USER@]HOST [KEY=VALUE…]` a line, `#` begins a comment.

    Keys are tier, port, sudo (yes or no), host_key (SHA256:…), and label.K.

    Raises:
        InvalidFile: A line is not one, or a name comes twice; the message names the line.
    """
    try:
        with file.open("rb") as opened:
            raw = opened.read(LIST_MAX_BYTES + 1)
        text = raw.decode("utf-8")
    except OSError as error:
        raise InvalidFile(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidFile(f"{file} is not UTF-8 at byte {error.start}") from None
    if len(raw) > LIST_MAX_BYTES:
        raise InvalidFile(f"{file} is longer than {LIST_MAX_BYTES >> 20} MiB")
    listed = list(_machines(text, str(file)))
    if not listed:
        raise InvalidFile(f"{file} lists no machine", hint="write NAME [USER@]HOST a line")
    return listed


def _machines(text: str, where: str) -> Iterator[Wanted]:
    seen: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            wanted = _machine(words)
        except UsageError as failure:
            raise InvalidFile(f"{where}:{number}: {failure.message}", hint=failure.hint) from None
        if wanted.name in seen:
            first = seen[wanted.name]
            raise InvalidFile(f"{where}:{number}: {wanted.name} is in line {first} already")
        seen[wanted.name] = number
        yield wanted


def _machine(words: list[str]) -> Wanted:
    name, *rest = words
    if not is_checked_id(name):
        raise UsageError(
            f"{name} cannot be the name of a node",
            hint="use lower-case letters, digits, and . _ - after the first",
        )
    if not rest or "=" in rest[0]:
        raise UsageError(f"{name} has no address", hint="write NAME [USER@]HOST [KEY=VALUE…]")
    where, *pairs = rest
    given: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        known = key in ("tier", "port", "sudo", "host_key") or key.startswith("label.")
        if not equals or not known:
            raise UsageError(
                f"{pair!r} is not a setting", hint="tier=, port=, sudo=, host_key= or label.K="
            )
        if key in given:
            raise UsageError(f"{key} is given twice")
        given[key] = value
    return Wanted(
        name=name,
        address=address(where, port=_port(given.get("port", "0")), sudo=_yes(given.get("sudo"))),
        tier=tier(given.get("tier", Tier.PAIRED.word)),
        fingerprint=_fingerprint(given.get("host_key", "")),
        claims=tuple(
            label(key.removeprefix("label."), _text(value))
            for key, value in given.items()
            if key.startswith("label.")
        ),
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(PORT_MAX))):
        raise UsageError(f"{text!r} is not a port")
    if int(text) > PORT_MAX:
        raise UsageError(f"{text} is not a port", hint=f"at most {PORT_MAX}")
    return int(text)


def _yes(text: str | None) -> bool:
    if text not in (None, "yes", "no"):
        raise UsageError(f"sudo={text} is neither yes nor no")
    return text == "yes"


def _fingerprint(text: str) -> str:
    if text and _FINGERPRINT.fullmatch(text) is None:
        raise UsageError(f"{text!r} is not a fingerprint", hint="SHA256:… as `ssh-keygen -lf` says")
    return text


def exit_for(failures: Sequence[WlctlError | None]) -> None:
    """End with the code of the first failure when all failed, and as partial when some did."""
    failed = [failure for failure in failures if failure is not None]
    if failed:
        code = failed[0].exit_code if len(failed) == len(failures) else ExitCode.PARTIAL
        raise typer.Exit(code)
