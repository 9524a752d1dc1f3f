"""Did this key sign these bytes? One answer for every type of key that ssh has.

Source: RFC 8332 (RSA with SHA-2), RFC 5656 (ECDSA), RFC 8709 (Ed25519), OpenSSH's PROTOCOL.u2f
(tokens).
"""

import hashlib
from typing import Any

from wlctl.signing.public import (
    ED25519,
    RSA,
    SK_ED25519,
    SK_TYPES,
    key_type_of,
    load_blob,
    load_sk_blob,
)
from wlctl.signing.wire import Reader

RSA_HASHES = {"rsa-sha2-256": "SHA256", "rsa-sha2-512": "SHA512"}
ECDSA_HASHES = {"nistp256": "SHA256", "nistp384": "SHA384", "nistp521": "SHA512"}

TOUCHED = 0x01
"""The flag by which a token says that somebody touched it for this signature."""


class Misfit(Exception):
    """The signature can be read, and it is not a signature of this message."""


def check(blob: bytes, signature: bytes, signed: bytes) -> None:
    """Make sure that a key signed exactly these bytes.

    A token must have been touched for it: its signature alone would not tell that anybody was
    there, and whoever has the machine it is plugged into could make one.

    Args:
        blob: The public key in its wire form.
        signature: In its wire form: algorithm, bytes, and what a token adds.

    Raises:
        Misfit: It did not, or in a way that does not count.
        Malformed: Key or signature are none.
    """
    kind = key_type_of(blob)
    reader = Reader(signature)
    algorithm, value = reader.text(), reader.string()
    if kind in SK_TYPES:
        flags, counter = reader.take(1), reader.take(4)
        reader.end()
        _check_token(kind, blob, algorithm, value, _told(blob, flags, counter, signed))
        if not flags[0] & TOUCHED:
            raise Misfit("the token was not touched for it; sign with a key that asks for touch")
        return
    reader.end()
    key: Any = load_blob(kind, blob)
    if kind == ED25519:
        _same(algorithm, (ED25519,))
        _verify(key, value, signed)
    elif kind == RSA:
        _check_rsa(key, algorithm, value, signed)
    else:
        _same(algorithm, (kind,))
        _check_ecdsa(key, kind.rpartition("-")[2], value, signed)


def _told(blob: bytes, flags: bytes, counter: bytes, signed: bytes) -> bytes:
    """Write what a token signs: it never sees the message, and puts itself into the statement."""
    _, application = load_sk_blob(blob)
    digest = hashlib.sha256(signed).digest()
    return hashlib.sha256(application.encode()).digest() + flags + counter + digest


def _check_token(kind: str, blob: bytes, algorithm: str, value: bytes, told: bytes) -> None:
    _same(algorithm, (kind,))
    key: Any = load_sk_blob(blob)[0]
    if kind == SK_ED25519:
        _verify(key, value, told)
    else:
        _check_ecdsa(key, "nistp256", value, told)


def _check_rsa(key: Any, algorithm: str, value: bytes, signed: bytes) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15

    _same(algorithm, tuple(RSA_HASHES))
    # Some signers leave leading zeros out; RFC 8332 wants the length of the modulus.
    whole = value.rjust((key.key_size + 7) // 8, b"\0")
    _verify(key, whole, signed, PKCS1v15(), getattr(hashes, RSA_HASHES[algorithm])())


def _check_ecdsa(key: Any, curve: str, value: bytes, signed: bytes) -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

    reader = Reader(value)
    pair = encode_dss_signature(reader.unsigned(), reader.unsigned())
    reader.end()
    _verify(key, pair, signed, ECDSA(getattr(hashes, ECDSA_HASHES[curve])()))


def _verify(key: Any, *arguments: Any) -> None:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(*arguments)
    except InvalidSignature:
        raise Misfit("it does not fit the manifest as it stands") from None


def _same(algorithm: str, allowed: tuple[str, ...]) -> None:
    if algorithm not in allowed:
        raise Misfit(f"algorithm {algorithm[:60]!r} where {' or '.join(allowed)} is needed")
