"""Public keys: which types are taken, and how one is read from its line or its wire form."""

import base64
import binascii

from wlctl.errors import UnusableKey
from wlctl.signing.wire import Malformed, Reader

ED25519 = "ssh-ed25519"
RSA = "ssh-rsa"
ECDSA_CURVES = ("nistp256", "nistp384", "nistp521")
SK_ED25519 = "sk-ssh-ed25519@openssh.com"
SK_ECDSA = "sk-ecdsa-sha2-nistp256@openssh.com"
SK_TYPES = (SK_ED25519, SK_ECDSA)
"""Keys that never leave a hardware token. Source: OpenSSH, PROTOCOL.u2f."""

KEY_TYPES = (ED25519, RSA, *(f"ecdsa-sha2-{curve}" for curve in ECDSA_CURVES), *SK_TYPES)
"""Whose signatures can be checked."""

MIN_RSA_BITS = 2048


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
    return spelled(kind, blob)


def spelled(kind: str, blob: bytes) -> str:
    """Write a key as `TYPE BASE64`."""
    return f"{kind} {base64.b64encode(blob).decode()}"


def blob_of(public: str) -> bytes:
    """Give the wire form of a key that is written as `TYPE BASE64`."""
    return base64.b64decode(public.split(" ")[1])


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
    if kind in SK_TYPES:
        load_sk_blob(blob)
    else:
        load_blob(kind, blob)
    return kind


def load_blob(kind: str, blob: bytes) -> object:
    """Let cryptography load the wire form of a public key.

    Raises:
        Malformed: It does not.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    try:
        return load_ssh_public_key(spelled(kind, blob).encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Malformed("its numbers are no key") from error


def load_sk_blob(blob: bytes) -> tuple[object, str]:
    """Read the wire form of a token's public key: the key, and the application it is made for.

    Raises:
        Malformed: It is none.
    """
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    reader = Reader(blob)
    kind = reader.text()
    if kind == SK_ECDSA and (curve := reader.text()) != ECDSA_CURVES[0]:
        raise Malformed(f"its curve is {curve[:60]!r}")
    point = reader.string()
    application = reader.text()
    reader.end()
    try:
        if kind == SK_ED25519:
            return Ed25519PublicKey.from_public_bytes(point), application
        return EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point), application
    except ValueError as error:
        raise Malformed("its numbers are no key") from error
