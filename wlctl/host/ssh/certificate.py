"""Reads OpenSSH certificates, and decides whether one may stand for a host.

Source: OpenSSH, PROTOCOL.certkeys.
"""

from dataclasses import dataclass

import paramiko
from paramiko.message import Message

from wlctl.model.event import rfc3339

SUFFIX = "-cert-v01@openssh.com"

HOST = 2

FOREVER_S = (1 << 64) - 1

_PUBLIC_PARTS = {"ssh-ed25519": 1, "ssh-rsa": 2}
"""How many strings a public key of the type has; ECDSA keys, and unlisted ones, have two."""


class NoCertificate(Exception):
    """Bytes that are no certificate, or none that can be checked; the text says why, for people."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a certificate says; whether that is so, only `verify` knows.

    Attributes:
        key: The public key that it is for, as a blob.
        kind: 1 for a user's, 2 for a host's.
        valid_before_s: Seconds since the epoch; `FOREVER_S` for no end.
        critical: Names of options that whoever accepts it must understand.
        authority: The public key that signed it, as a blob.
        signed: The bytes that `signature` is for.
    """

    key: bytes
    kind: int
    key_id: str
    principals: tuple[str, ...]
    valid_after_s: int
    valid_before_s: int
    critical: tuple[str, ...]
    authority: bytes
    signature: bytes
    signed: bytes

    def out_of_time(self, now_s: int) -> str:
        """Say why it does not hold at `now_s`; nothing if it does."""
        if now_s < self.valid_after_s:
            return f"is not valid before {_moment(self.valid_after_s)}"
        if now_s >= self.valid_before_s:
            return f"expired at {_moment(self.valid_before_s)}"
        return ""


def read(blob: bytes) -> Certificate:
    """Take a certificate apart.

    Raises:
        NoCertificate: It is none.
    """
    message = Message(blob)
    kind = _text(message)
    if not kind.endswith(SUFFIX):
        raise NoCertificate(f"{kind[:60]!r} is no type of certificate")
    plain = kind.removesuffix(SUFFIX)
    message.get_string()  # the nonce
    key = Message()
    key.add_string(plain)
    for _ in range(_PUBLIC_PARTS.get(plain, 2)):
        key.add_string(message.get_binary())
    message.get_int64()  # the serial number
    found = Certificate(
        key=key.asbytes(),
        kind=message.get_int(),
        key_id=_text(message),
        principals=_texts(message.get_binary(), pairs=False),
        valid_after_s=message.get_int64(),
        valid_before_s=message.get_int64(),
        critical=_texts(message.get_binary(), pairs=True),
        # extensions and a reserved field stand between the two
        authority=_after_two(message),
        signed=message.get_so_far(),
        signature=message.get_binary(),
    )
    # paramiko fills up what is too short: only bytes that say the same when written again count
    if blob != found.signed + Message().add_string(found.signature).asbytes():
        raise NoCertificate("it ends too early, or too late")
    if not _is_exact(found.signature):
        raise NoCertificate("its signature is no signature")
    return found


def check_host(cert: Certificate, name: str, now_s: int) -> None:
    """Make sure that a certificate holds for the host `name`.

    Whether the authority that signed it is one, is asked elsewhere.

    Raises:
        NoCertificate: It does not.
    """
    if cert.kind != HOST:
        raise NoCertificate("it is no host's certificate")
    if why := cert.out_of_time(now_s):
        raise NoCertificate(f"it {why}")
    if name.lower() not in {principal.lower() for principal in cert.principals}:
        raise NoCertificate(f"it is not for {name} but for {', '.join(cert.principals) or 'none'}")
    if cert.critical:
        raise NoCertificate(f"it has conditions that are not understood: {cert.critical[0]}")
    authority_type = _text(Message(cert.authority))
    try:
        authority = paramiko.PKey.from_type_string(authority_type, cert.authority)
        good = authority.verify_ssh_sig(cert.signed, Message(cert.signature))
    except (
        paramiko.SSHException,
        ArithmeticError,  # of a number that is negative
        ValueError,
        TypeError,
        paramiko.pkey.UnknownKeyType,
    ) as error:
        raise NoCertificate(f"its signature cannot be checked: {error}") from error
    if not good:
        raise NoCertificate("its signature does not fit")


def _is_exact(signature: bytes) -> bool:
    """Answer whether a signature is a name and a string (of ECDSA two within), no byte more."""
    message = Message(signature)
    name, value = message.get_binary(), message.get_binary()
    whole = Message().add_string(name).add_string(value).asbytes() == signature
    if not name.startswith(b"ecdsa-"):
        return whole
    pair = Message(value)
    first, second = pair.get_binary(), pair.get_binary()
    return whole and Message().add_string(first).add_string(second).asbytes() == value


def _after_two(message: Message) -> bytes:
    message.get_binary()
    message.get_binary()
    return bytes(message.get_binary())


def _text(message: Message) -> str:
    return str(message.get_binary().decode("utf-8", errors="replace"))


def _texts(data: bytes, *, pairs: bool) -> tuple[str, ...]:
    message = Message(data)
    found = []
    while message.get_remainder():
        found.append(_text(message))
        if pairs:
            message.get_binary()
    return tuple(found)


def _moment(at_s: int) -> str:
    return rfc3339(at_s * 1000) if at_s < 1 << 37 else "a time far away"
