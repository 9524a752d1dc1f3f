"""SSH keys in files: made, read, named by fingerprint, and refused when others can reach them."""

import base64
import binascii
import fcntl
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wlctl.errors import FilesUnreadable, InvalidFile, UnsafeKey, UnusableKey
from wlctl.model.package import fingerprint
from wlctl.signing.wire import Malformed, Reader

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ED25519 = "ssh-ed25519"
RSA = "ssh-rsa"
ECDSA_CURVES = ("nistp256", "nistp384", "nistp521")
KEY_TYPES = (ED25519, RSA, *(f"ecdsa-sha2-{curve}" for curve in ECDSA_CURVES))
"""Whose signatures can be checked."""

MIN_RSA_BITS = 2048
_MAX_KEY_FILE_BYTES = 64 * 1024
_OPENSSH_HEADER = b"-----BEGIN OPENSSH PRIVATE KEY-----"
_PRIVATE_WORDS = b"PRIVATE KEY-----"
_OTHERS_READ = 0o077
_OTHERS_WRITE = 0o022


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """An Ed25519 key that can sign.

    Attributes:
        public: `TYPE BASE64`.
    """

    key: "Ed25519PrivateKey"
    public: str

    @property
    def fingerprint(self) -> str:
        """`SHA256:…` of its public half."""
        return fingerprint(self.public)


def generate_key(path: Path, *, comment: str) -> None:
    """Make an Ed25519 key pair as ssh-keygen would: `path`, mode 0600, and `path`.pub.

    A private key that is there already stays; only a missing `.pub` is written for it. It is safe
    to run twice at once and to kill at any moment.

    Args:
        path: In a directory that is there.
        comment: At the end of the public line.

    Raises:
        UnsafeKey, UnusableKey: The key that is there cannot be used.
        FilesUnreadable: The system does not take the file.
    """
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            if not path.exists():
                _write(path, _new_private_key(comment), 0o600)
            public = path.with_name(f"{path.name}.pub")
            if not public.exists():
                _write(public, f"{public_key(path)} {comment}\n".encode(), 0o644)
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise _unreadable(path, error) from error


def public_key(path: Path) -> str:
    """Give the public half, `TYPE BASE64`, of the private key in a file.

    Raises:
        InvalidFile, UnsafeKey, UnusableKey, FilesUnreadable: As `load_private_key`.
    """
    return load_private_key(path).public


def load_private_key(path: Path) -> PrivateKey:
    """Read an Ed25519 private key in OpenSSH's format that nobody else can read.

    Raises:
        InvalidFile: There is no such file.
        UnsafeKey: Others can read or write it.
        UnusableKey: It is under a passphrase, of another type or format, or no key.
        FilesUnreadable: The system does not give it.
    """
    data, mode = _read(path)
    if _PRIVATE_WORDS in data:
        _refuse(path, mode, _OTHERS_READ, "read", "chmod 600")
    if not data.lstrip().startswith(_OPENSSH_HEADER):
        if _PRIVATE_WORDS in data:
            raise UnusableKey(
                f"{path} is a private key in another format than OpenSSH's",
                hint=f"convert a copy of it: ssh-keygen -p -N '' -f {path}",
            )
        raise UnusableKey(
            f"{path} is not a private key", hint="give the file without .pub that ssh-keygen made"
        )
    key = _parse_private(path, data)
    return PrivateKey(key, public_half(key))


def load_public_key(path: Path) -> str:
    """Read `TYPE BASE64` out of a `.pub` file that nobody else can change.

    Raises:
        InvalidFile: There is no such file.
        UnsafeKey: Others can write it.
        UnusableKey: As `parse_public_key`.
        FilesUnreadable: The system does not give it.
    """
    data, mode = _read(path)
    if _PRIVATE_WORDS in data:
        raise UnusableKey(f"{path} is a private key", hint=f"give its public half: {path}.pub")
    _refuse(path, mode, _OTHERS_WRITE, "change", "chmod go-w")
    lines = [line for line in data.splitlines() if line.strip() and not line.startswith(b"#")]
    if len(lines) != 1:
        raise UnusableKey(
            f"{path} has {len(lines)} keys", hint="give a file with one line: TYPE BASE64 COMMENT"
        )
    return parse_public_key(lines[0].decode("utf-8", errors="replace"), str(path))


def parse_public_key(line: str, source: str) -> str:
    """Check a public key line and give its one spelling, `TYPE BASE64`, without the comment.

    Args:
        line: As in a `.pub` file.
        source: What the key is called in messages.

    Raises:
        UnusableKey: It is no key, of a type whose signatures cannot be checked, or too short.
    """
    words = line.split()
    if len(words) < 2:  # noqa: PLR2004  a type and a blob
        raise UnusableKey(
            f"{source} is not a public key", hint="it should say: TYPE BASE64 COMMENT"
        )
    kind = words[0]
    if kind not in KEY_TYPES:
        raise UnusableKey(
            f"{source} is of type {kind[:60]!r}", hint=f"these work: {', '.join(KEY_TYPES)}"
        )
    try:
        blob = binascii.a2b_base64(words[1], strict_mode=True)
        key_type_of(blob, kind)
    except (Malformed, ValueError) as error:
        raise UnusableKey(f"{source} is not a whole {kind} key: {error}") from error
    return f"{kind} {base64.b64encode(blob).decode()}"


def public_half(key: "Ed25519PrivateKey") -> str:
    """Write the public half as `TYPE BASE64`."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


def key_type_of(blob: bytes, wanted: str | None = None) -> str:
    """Check the wire form of a public key, and say of which type it is.

    Raises:
        Malformed: It is no whole key of a known type, not of the wanted one, or too short.
    """
    reader = Reader(blob)
    kind = reader.text()
    if kind not in KEY_TYPES or wanted not in {None, kind}:
        raise Malformed(f"its type is {kind[:60]!r}")
    if kind == RSA:
        reader.unsigned()
        if (bits := reader.unsigned().bit_length()) < MIN_RSA_BITS:
            raise Malformed(f"it has {bits} bits, at least {MIN_RSA_BITS} are needed")
        reader.end()
    load_blob(kind, blob)
    return kind


def load_blob(kind: str, blob: bytes) -> object:
    """Let cryptography load the wire form of a public key.

    Raises:
        Malformed: It does not.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    line = f"{kind} ".encode() + base64.b64encode(blob)
    try:
        return load_ssh_public_key(line)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Malformed("its numbers are no key") from error


def _parse_private(path: Path, data: bytes) -> "Ed25519PrivateKey":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    try:
        key = load_ssh_private_key(data, password=None)
    except TypeError as error:  # how the library says that a password is needed
        raise UnusableKey(
            f"{path} is under a passphrase",
            hint="keys in ssh-agent come with a later release; until then take a key without "
            f"one, or take it off a copy: ssh-keygen -p -N '' -f {path}",
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UnusableKey(f"{path} is not a whole private key") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UnusableKey(
            f"{path} is not an Ed25519 key", hint="make one: ssh-keygen -t ed25519 -f FILE"
        )
    return key


def _new_private_key(comment: str) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = Ed25519PrivateKey.generate()
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def _write(path: Path, data: bytes, mode: int) -> None:
    """Let `path` hold `data`, wholly or not at all; whoever calls holds the directory's lock."""
    temporary = path.with_name(f".{path.name}.new")
    with suppress(FileNotFoundError):
        temporary.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(temporary, flags, mode), "wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.rename(path)


def _refuse(path: Path, mode: int, forbidden: int, verb: str, command: str) -> None:
    if mode & forbidden:
        raise UnsafeKey(
            f"others can {verb} {path} (mode {stat.S_IMODE(mode):04o})", hint=f"{command} {path}"
        )


def _read(path: Path) -> tuple[bytes, int]:
    """Read a small regular file; return its bytes and its mode at that moment."""
    try:
        # O_NONBLOCK: opening a FIFO must not wait for its other end before it is seen to be one.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise InvalidFile(f"there is no key file {path}") from error
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise UnusableKey(f"{path} is not a regular file")
        data = b""
        while len(data) <= _MAX_KEY_FILE_BYTES and (chunk := os.read(file, _MAX_KEY_FILE_BYTES)):
            data += chunk
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(file)
    if len(data) > _MAX_KEY_FILE_BYTES:
        raise UnusableKey(f"{path} is too large for a key")
    return data, status.st_mode


def _unreadable(path: Path, error: OSError) -> FilesUnreadable:
    return FilesUnreadable(f"{error.filename or path}: {error.strerror or error}")
