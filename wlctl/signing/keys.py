"""SSH keys in files: made, read, used, and refused when others can reach them."""

import fcntl
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wlctl.errors import FilesUnreadable, InvalidFile, UnsafeKey, UnusableKey
from wlctl.model.package import fingerprint
from wlctl.signing.check import ECDSA_HASHES
from wlctl.signing.public import ED25519, KEY_TYPES, parse_public_key
from wlctl.signing.wire import string, unsigned

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    _Key = Ed25519PrivateKey | RSAPrivateKey | EllipticCurvePrivateKey

Passphrase = Callable[[str], str]
"""Puts a question to whoever is there, and returns what was typed, unseen."""

_MAX_KEY_FILE_BYTES = 64 * 1024
_OPENSSH_HEADER = b"-----BEGIN OPENSSH PRIVATE KEY-----"
_PRIVATE_WORDS = b"PRIVATE KEY-----"
_PUBLIC_WORDS = tuple(f"{kind} ".encode() for kind in KEY_TYPES)
_OTHERS_READ = 0o077
_OTHERS_WRITE = 0o022


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A key out of a file, that can sign.

    Attributes:
        public: `TYPE BASE64`.
    """

    key: "_Key"
    public: str

    @property
    def fingerprint(self) -> str:
        """`SHA256:…` of its public half."""
        return fingerprint(self.public)

    def sign(self, data: bytes) -> bytes:
        """Sign the bytes as they are; return algorithm and signature in their wire form."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

        if isinstance(self.key, Ed25519PrivateKey):
            return string(ED25519.encode()) + string(self.key.sign(data))
        if isinstance(self.key, RSAPrivateKey):
            return _sign_rsa(self.key, data)
        return _sign_ecdsa(self.key, self.public.split(" ")[0], data)


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


def load_private_key(path: Path, passphrase: Passphrase | None = None) -> PrivateKey:
    """Read a private key in OpenSSH's format that nobody else can read.

    Args:
        passphrase: Asks for it, where the key is under one; without it such a key is refused.

    Raises:
        InvalidFile: There is no such file.
        UnsafeKey: Others can read or write it.
        UnusableKey: It is under a passphrase, of another type or format, too short, or no key.
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
    key = _parse_private(path, data, passphrase)
    return PrivateKey(key, parse_public_key(_public_half(key), str(path)))


def holds_public_key(path: Path) -> bool:
    """Answer whether a file looks like the public half of a key: text, and nothing private in it.

    Raises:
        InvalidFile, UnusableKey, FilesUnreadable: As `load_private_key`.
    """
    data, _ = _read(path)
    return _PRIVATE_WORDS not in data and data.lstrip().startswith(_PUBLIC_WORDS)


def read_unchangeable(path: Path, max_bytes: int) -> bytes:
    """Read a file that nobody else can change.

    Raises:
        InvalidFile: There is no such file.
        UnsafeKey: Others can write it.
        UnusableKey: It is no plain file, or has more bytes than that.
        FilesUnreadable: The system does not give it.
    """
    data, mode = _read(path, max_bytes)
    _refuse(path, mode, _OTHERS_WRITE, "change", "chmod go-w")
    return data


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


def _parse_private(path: Path, data: bytes, passphrase: Passphrase | None) -> "_Key":
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    key: object
    try:
        key = load_ssh_private_key(data, password=None)
    except TypeError as error:  # how the library says that a password is needed
        key = _unlocked(path, data, passphrase, error)
    except UnsupportedAlgorithm as error:
        raise UnusableKey(
            f"{path} is of a type that cannot sign from a file",
            hint=f"a token's key signs through ssh-agent: ssh-add {path}, then --agent FINGERPRINT",
        ) from error
    except ValueError as error:
        raise UnusableKey(f"{path} is not a whole private key") from error
    if not isinstance(key, Ed25519PrivateKey | RSAPrivateKey | EllipticCurvePrivateKey):
        raise UnusableKey(
            f"{path} is of a type whose signatures nobody checks",
            hint="make another: ssh-keygen -t ed25519 -f FILE",
        )
    return key


def _unlocked(path: Path, data: bytes, passphrase: Passphrase | None, found: TypeError) -> object:
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key

    if passphrase is None:
        raise UnusableKey(
            f"{path} is under a passphrase",
            hint=f"let ssh-agent keep it: ssh-add {path}, then give {path}.pub in its place",
        ) from found
    try:
        return load_ssh_private_key(data, password=passphrase(f"passphrase of {path}:").encode())
    except (ValueError, TypeError) as error:  # TypeError: the passphrase is empty
        raise UnusableKey(f"the passphrase of {path} is another, or it is no whole key") from error


def _sign_rsa(key: "RSAPrivateKey", data: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.hashes import SHA512

    return string(b"rsa-sha2-512") + string(key.sign(data, PKCS1v15(), SHA512()))


def _sign_ecdsa(key: "EllipticCurvePrivateKey", kind: str, data: bytes) -> bytes:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

    hash_name = ECDSA_HASHES[kind.rpartition("-")[2]]
    pair = decode_dss_signature(key.sign(data, ECDSA(getattr(hashes, hash_name)())))
    return string(kind.encode()) + string(b"".join(map(unsigned, pair)))


def _public_half(key: "_Key") -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()


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


def _read(path: Path, max_bytes: int = _MAX_KEY_FILE_BYTES) -> tuple[bytes, int]:
    """Read a small regular file; return its bytes and its mode at that moment."""
    try:
        # O_NONBLOCK: opening a FIFO must not wait for its other end before it is seen to be one.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise InvalidFile(f"there is no file {path}") from error
    except OSError as error:
        raise _unreadable(path, error) from error
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise UnusableKey(f"{path} is not a regular file")
        data = b""
        while len(data) <= max_bytes and (chunk := os.read(file, max_bytes)):
            data += chunk
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(file)
    if len(data) > max_bytes:
        raise UnusableKey(f"{path} is too large for keys")
    return data, status.st_mode


def _unreadable(path: Path, error: OSError) -> FilesUnreadable:
    return FilesUnreadable(f"{error.filename or path}: {error.strerror or error}")
