"""What known_hosts files say of a host: its keys, who may certify it, and what is revoked.

Source: OpenSSH, sshd(8), SSH_KNOWN_HOSTS FILE FORMAT.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wlctl.host.ssh.config import matches
from wlctl.host.ssh.files import read_lines

AUTHORITY = "@cert-authority"
REVOKED = "@revoked"

_HASHED = "|1|"


@dataclass(frozen=True, slots=True)
class Known:
    """The entries that concern one host.

    Attributes:
        keys: What it may show, as blobs by key type.
        authorities: Whose certificates it may show.
        revoked: What neither it nor an authority may be any more.
    """

    keys: tuple[tuple[str, bytes], ...] = ()
    authorities: frozenset[bytes] = frozenset()
    revoked: frozenset[bytes] = frozenset()

    @property
    def key_types(self) -> tuple[str, ...]:
        """The types of its keys, in the order of the files, each once."""
        return tuple(dict.fromkeys(kind for kind, _ in self.keys))

    @property
    def empty(self) -> bool:
        """Whether nothing is known of the host."""
        return not self.keys and not self.authorities


def known(name: str, files: Sequence[Path], uid: int) -> Known:
    """Collect what `files` say of the host recorded as `name`.

    A line that is no entry is passed over, as ssh does.

    Args:
        name: `HOST`, or `[HOST]:PORT` where the port is not 22.
        uid: Whose files count besides root's.

    Raises:
        UnsafeSshConfig: Others can have written a file.
    """
    keys: list[tuple[str, bytes]] = []
    marked: dict[str, set[bytes]] = {AUTHORITY: set(), REVOKED: set()}
    for file in files:
        for line in read_lines(file, uid):
            entry = _entry(line)
            if entry is None or not _names(entry.hosts, name):
                continue
            if entry.marker:
                marked[entry.marker].add(entry.blob)
            elif (entry.kind, entry.blob) not in keys:
                keys.append((entry.kind, entry.blob))
    return Known(tuple(keys), frozenset(marked[AUTHORITY]), frozenset(marked[REVOKED]))


@dataclass(frozen=True, slots=True)
class _Entry:
    marker: str
    hosts: str
    kind: str
    blob: bytes


def _entry(line: str) -> _Entry | None:
    words = line.split()
    if not words or words[0].startswith("#"):
        return None
    marker = words.pop(0) if words[0].startswith("@") else ""
    if marker not in {"", AUTHORITY, REVOKED} or len(words) < 3:  # noqa: PLR2004 - hosts, type, key
        return None
    hosts, kind, text = words[:3]
    try:
        return _Entry(marker, hosts, kind, binascii.a2b_base64(text, strict_mode=True))
    except ValueError:
        return None


def _names(hosts: str, name: str) -> bool:
    if hosts.startswith(_HASHED):
        return _is_hash_of(hosts, name)
    return matches([pattern.lower() for pattern in hosts.split(",")], name.lower())


def _is_hash_of(hashed: str, name: str) -> bool:
    parts = hashed.split("|")
    if len(parts) != 4:  # noqa: PLR2004 - nothing, the version, the salt, the hash
        return False
    try:
        salt, wanted = (base64.b64decode(part, validate=True) for part in parts[2:])
    except binascii.Error:
        return False
    found = hmac.new(salt, name.lower().encode(), hashlib.sha1).digest()
    return hmac.compare_digest(found, wanted)
