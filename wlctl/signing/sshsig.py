"""SSHSIG, the signatures of `ssh-keygen -Y sign`: made, read, and judged.

Source: OpenSSH, PROTOCOL.sshsig; RFC 8332 (RSA with SHA-2), RFC 5656 (ECDSA), RFC 8709 (Ed25519).
"""

import base64
import binascii
import hashlib
from dataclasses import dataclass
from typing import Any

from wlctl.model.package import SignatureReading, fingerprint_of_blob
from wlctl.signing.keys import (
    ED25519,
    RSA,
    PrivateKey,
    key_type_of,
    load_blob,
)
from wlctl.signing.wire import Malformed, Reader, string

PACKAGE_NAMESPACE = "wlctl-package"

_BEGIN = "-----BEGIN SSH SIGNATURE-----"
_END = "-----END SSH SIGNATURE-----"
_LINE_CHARACTERS = 70
_MAGIC = b"SSHSIG"
_VERSION = 1
_HASHES = ("sha512", "sha256")
_RSA_HASHES = {"rsa-sha2-256": "SHA256", "rsa-sha2-512": "SHA512"}
_ECDSA_HASHES = {"nistp256": "SHA256", "nistp384": "SHA384", "nistp521": "SHA512"}


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


class _Misfit(Exception):
    """The signature can be read, and it is not a signature of this message."""


def sign(message: bytes, key: PrivateKey, namespace: str = PACKAGE_NAMESPACE) -> str:
    """Sign a message as `ssh-keygen -Y sign -n NAMESPACE` does."""
    hash_name = _HASHES[0]
    signed = _signed_data(message, namespace.encode(), b"", hash_name)
    signature = string(ED25519.encode()) + string(key.key.sign(signed))
    blob = base64.b64decode(key.public.split(" ")[1])
    fields = (blob, namespace.encode(), b"", hash_name.encode(), signature)
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
    except (_Misfit, Malformed) as error:
        fault = str(error)
    return SignatureReading(fingerprint_of_blob(parts.blob), fault)


def _judge(parts: _Parts, message: bytes, namespace: str) -> None:
    if parts.namespace != namespace.encode():
        made_for = parts.namespace[:60].decode("ascii", errors="backslashreplace")
        raise _Misfit(f'made for the namespace "{made_for}", not "{namespace}"')
    hash_name = parts.hash_name.decode("ascii", errors="replace")
    if hash_name not in _HASHES:
        raise _Misfit("hashed in another way than with sha256 or sha512")
    signed = _signed_data(message, parts.namespace, parts.reserved, hash_name)
    kind = key_type_of(parts.blob)
    reader = Reader(parts.signature)
    algorithm, value = reader.text(), reader.string()
    reader.end()
    key: Any = load_blob(kind, parts.blob)
    if kind == ED25519:
        _same(algorithm, (ED25519,))
        _check(key, value, signed)
    elif kind == RSA:
        _check_rsa(key, algorithm, value, signed)
    else:
        _check_ecdsa(key, kind, algorithm, value, signed)


def _check_rsa(key: Any, algorithm: str, value: bytes, signed: bytes) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

    _same(algorithm, tuple(_RSA_HASHES))
    # Some signers leave leading zeros out; RFC 8332 wants the length of the modulus.
    whole = value.rjust((key.key_size + 7) // 8, b"\0")
    _check(key, whole, signed, PKCS1v15(), getattr(hashes, _RSA_HASHES[algorithm])())


def _check_ecdsa(key: Any, kind: str, algorithm: str, value: bytes, signed: bytes) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    _same(algorithm, (kind,))
    reader = Reader(value)
    pair = encode_dss_signature(reader.unsigned(), reader.unsigned())
    reader.end()
    curve = kind.rpartition("-")[2]
    _check(key, pair, signed, ECDSA(getattr(hashes, _ECDSA_HASHES[curve])()))


def _check(key: Any, *arguments: Any) -> None:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(*arguments)
    except InvalidSignature:
        raise _Misfit("it does not fit the manifest as it stands") from None


def _same(algorithm: str, allowed: tuple[str, ...]) -> None:
    if algorithm not in allowed:
        raise _Misfit(f"algorithm {algorithm[:60]!r} where {' or '.join(allowed)} is needed")


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
