"""SSHSIG, the signatures of `ssh-keygen -Y sign`: made, read, and judged.

Source: OpenSSH, PROTOCOL.sshsig.
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Protocol

from wlctl.model.package import SignatureReading, fingerprint_of_blob
from wlctl.signing.check import Misfit, check
from wlctl.signing.public import blob_of
from wlctl.signing.wire import Malformed, Reader, string

PACKAGE_NAMESPACE = "wlctl-package"

_BEGIN = "-----BEGIN SSH SIGNATURE-----"
_END = "-----END SSH SIGNATURE-----"
_LINE_CHARACTERS = 70
_MAGIC = b"SSHSIG"
_VERSION = 1
_HASHES = ("sha512", "sha256")


@dataclass(frozen=True, slots=True)
class _Parts:
    """What stands in a signature.

    Attributes:
        blob: The public key in its wire form.
        signature: In its wire form: algorithm, then bytes.
    """

    blob: bytes
    namespace: bytes
    reserved: bytes
    hash_name: bytes
    signature: bytes


class SigningKey(Protocol):
    """A key that can sign, wherever it is kept."""

    @property
    def public(self) -> str:
        """`TYPE BASE64`."""
        ...

    @property
    def fingerprint(self) -> str:
        """`SHA256:…` of its public half."""
        ...

    def sign(self, data: bytes) -> bytes:
        """Sign the bytes as they are; return the signature in its wire form."""
        ...


def sign(message: bytes, key: SigningKey, namespace: str = PACKAGE_NAMESPACE) -> str:
    """Sign a message as `ssh-keygen -Y sign -n NAMESPACE` does.

    Raises:
        AgentFailed: The key is in an agent, and that did not sign.
    """
    hash_name = _HASHES[0]
    signature = key.sign(_signed_data(message, namespace.encode(), b"", hash_name))
    fields = (blob_of(key.public), namespace.encode(), b"", hash_name.encode(), signature)
    data = _MAGIC + _VERSION.to_bytes(4) + b"".join(string(field) for field in fields)
    body = base64.b64encode(data).decode()
    starts = range(0, len(body), _LINE_CHARACTERS)
    lines = [body[start : start + _LINE_CHARACTERS] for start in starts]
    return "\n".join([_BEGIN, *lines, _END, ""])


def read_signature(
    armored: bytes, message: bytes, namespace: str = PACKAGE_NAMESPACE
) -> SignatureReading:
    """Read a signature and judge whether it is one of `message` in `namespace`; never fail.

    Args:
        armored: A signature file, whatever it holds.
        message: What should have been signed.
        namespace: What it should have been signed for.
    """
    try:
        parts = _parse(_unarmored(armored))
    except Malformed as error:
        return SignatureReading("", f"not an SSH signature: {error}")
    fault = None
    try:
        _judge(parts, message, namespace)
    except (Misfit, Malformed) as error:
        fault = str(error)
    return SignatureReading(fingerprint_of_blob(parts.blob), fault)


def _judge(parts: _Parts, message: bytes, namespace: str) -> None:
    if parts.namespace != namespace.encode():
        made_for = ascii(parts.namespace[:60].decode("latin-1"))[1:-1]
        raise Misfit(f'made for the namespace "{made_for}", not "{namespace}"')
    hash_name = parts.hash_name.decode("ascii", errors="replace")
    if hash_name not in _HASHES:
        raise Misfit("hashed in another way than with sha256 or sha512")
    signed = _signed_data(message, parts.namespace, parts.reserved, hash_name)
    check(parts.blob, parts.signature, signed)


def _signed_data(message: bytes, namespace: bytes, reserved: bytes, hash_name: str) -> bytes:
    digest = hashlib.new(hash_name, message).digest()
    fields = (namespace, reserved, hash_name.encode(), digest)
    return _MAGIC + b"".join(string(field) for field in fields)


def _parse(data: bytes) -> _Parts:
    reader = Reader(data)
    if reader.take(len(_MAGIC)) != _MAGIC:
        raise Malformed("it does not begin as one")
    if (version := reader.number()) != _VERSION:
        raise Malformed(f"version {version}, only {_VERSION} is known")
    parts = _Parts(*(reader.string() for _ in range(5)))
    reader.end()
    return parts


def _unarmored(armored: bytes) -> bytes:
    try:
        lines = armored.decode("ascii").strip().splitlines()
    except UnicodeDecodeError as error:
        raise Malformed("it is not text") from error
    if not lines or lines[0] != _BEGIN:
        raise Malformed(f"it does not begin with {_BEGIN}")
    if lines[-1] != _END:
        raise Malformed(f"it does not end with {_END}")
    try:
        return binascii.a2b_base64("".join(lines[1:-1]), strict_mode=True)
    except binascii.Error as error:
        raise Malformed("its middle is not base64") from error
