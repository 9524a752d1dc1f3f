"""Reads private keys and certificates, each file once for all nodes.

Source: OpenSSH, PROTOCOL.key.
"""

import binascii
import copy
import io
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import paramiko
from paramiko.message import Message
from paramiko.pkey import PublicBlob

from wlctl.host.ssh import certificate
from wlctl.host.ssh.certificate import Certificate, NoCertificate

MAX_BYTES = 64 * 1024

_CLASSES: dict[str, type[paramiko.PKey]] = {
    "ssh-ed25519": paramiko.Ed25519Key,
    "ssh-rsa": paramiko.RSAKey,
    "ecdsa-sha2-nistp256": paramiko.ECDSAKey,
    "ecdsa-sha2-nistp384": paramiko.ECDSAKey,
    "ecdsa-sha2-nistp521": paramiko.ECDSAKey,
}

_OLD_FORMATS = {
    "-----BEGIN RSA PRIVATE KEY-----": "ssh-rsa",
    "-----BEGIN EC PRIVATE KEY-----": "ecdsa-sha2-nistp256",
}

_BEGIN = "-----BEGIN OPENSSH PRIVATE KEY-----"
_END = "-----END OPENSSH PRIVATE KEY-----"
_MAGIC = b"openssh-key-v1\0"
_OTHERS = 0o077


class UnusableKey(Exception):
    """A key file that cannot be used; the text says why, for people."""


@dataclass(frozen=True, slots=True)
class CertificateFile:
    """A certificate, and where it lies."""

    path: Path
    says: Certificate

    def on(self, key: paramiko.PKey) -> paramiko.PKey:
        """Return a second copy of `key`, that shows this certificate."""
        certified = copy.copy(key)
        certified.load_certificate(str(self.path))
        return certified


_loaded: dict[tuple[int, ...], paramiko.PKey] = {}
"""By device, inode, size and times: what is parsed for the first node serves them all."""


def load(file: Path) -> paramiko.PKey | None:
    """Read a private key that only its owner can read; None when there is no such file.

    Raises:
        UnusableKey: It is of no use without help: open to others, behind a passphrase, on a token.
    """
    try:
        with open(file, "rb", opener=_opener) as opened:
            about = os.fstat(opened.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise UnusableKey(f"{file} is no regular file")
            if about.st_mode & _OTHERS:
                raise UnusableKey(f"others can read {file}")
            version = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
            if version in _loaded:
                return _loaded[version]
            text = opened.read(MAX_BYTES).decode("ascii", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnusableKey(f"{file} cannot be read: {error.strerror}") from error
    _loaded[version] = key = _parse(file, text)
    return key


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _parse(file: Path, text: str) -> paramiko.PKey:
    try:
        kind = _type_in(text)
        if kind not in _CLASSES:
            raise UnusableKey(f"{file} has a key of type {kind[:40]!r}: `ssh-add` it")
        return _CLASSES[kind].from_private_key(io.StringIO(text))
    except paramiko.PasswordRequiredException as error:
        raise UnusableKey(f"{file} has a passphrase: `ssh-add` it") from error
    except (ValueError, TypeError, IndexError, paramiko.SSHException) as error:
        raise UnusableKey(f"{file} is no private key: {error}") from error


def _type_in(text: str) -> str:
    """Say of which type a private key is, without its passphrase."""
    first = text.lstrip().partition("\n")[0].strip()
    if first in _OLD_FORMATS:
        return _OLD_FORMATS[first]
    body = text.partition(_BEGIN)[2].partition(_END)[0]
    blob = binascii.a2b_base64(body.encode())
    if not blob.startswith(_MAGIC):
        raise ValueError("it is in no format of OpenSSH's")
    message = Message(blob[len(_MAGIC) :])
    for _ in range(3):  # cipher, key derivation, its options
        message.get_binary()
    message.get_int()
    return Message(message.get_binary()).get_binary().decode("ascii", errors="replace")


def public_half(file: Path) -> bytes:
    """Return the public key of a private key that may be out of reach; nothing if there is none."""
    try:
        return _blob_of(_read(Path(f"{file}.pub")))
    except (OSError, ValueError, paramiko.SSHException):
        return b""


def read_certificate(path: Path) -> CertificateFile | None:
    """Read a certificate; None when there is no such file.

    Raises:
        NoCertificate: It is none.
    """
    try:
        return CertificateFile(path, certificate.read(_blob_of(_read(path))))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, paramiko.SSHException) as error:
        raise NoCertificate(str(error)) from error


def _read(path: Path) -> bytes:
    with open(path, "rb", opener=_opener) as opened:
        return opened.read(MAX_BYTES)


def _blob_of(line: bytes) -> bytes:
    text = line.decode("ascii", errors="replace")
    return bytes(PublicBlob.from_string(text).key_blob)
