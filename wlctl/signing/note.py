"""Signed notes: a text, and under it who vouches for it; the form our checkpoints have.

Source: C2SP signed-note (https://c2sp.org/signed-note), Ed25519 signatures.
"""

import base64
import binascii
import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from wlctl.errors import BadSignature, InvalidFile, UntrustedSigner, UnusableKey, UsageError
from wlctl.signing.keys import load_private_key
from wlctl.signing.public import ED25519, blob_of
from wlctl.signing.wire import Reader

MAX_NOTE_BYTES = 64 * 1024
MAX_SIGNATURES = 100
_PREFIX = "\N{EM DASH} "
_ED25519 = b"\x01"
_ID_BYTES = 4
_KEY_BYTES = 32
_SIGNATURE_BYTES = 64


@dataclass(frozen=True, slots=True)
class _Verifier:
    """A public key and the name it signs under; together with the id they find a signature."""

    name: str
    key_id: bytes
    key: bytes


def note_verifier(path: Path, *, name: str) -> str:
    """Write what others need to verify our notes: `NAME+HEXID+BASE64`.

    Args:
        path: Of the private key.
        name: Without spaces and `+`.

    Raises:
        InvalidFile, UnsafeKey, UnusableKey, FilesUnreadable: As `load_private_key`.
    """
    assert _is_name(name), "a checkpoint's name is made by wlctl"
    key = _raw(load_private_key(path).public)
    encoded = base64.b64encode(_ED25519 + key).decode()
    return f"{name}+{_key_id(name, key).hex()}+{encoded}"


def sign_note(text: str, *, name: str, key: Path) -> str:
    """Sign a text.

    Args:
        text: Ends in a newline, and has no other control character.
        name: Whom the signature is by: without spaces and `+`.
        key: Path of the Ed25519 private key.

    Returns:
        The text, an empty line, and the signature's line.

    Raises:
        InvalidFile, UnsafeKey, UnusableKey, FilesUnreadable: As `load_private_key`.
    """
    assert _is_name(name), "a checkpoint's name is made by wlctl"
    assert text.endswith("\n"), "so is its text"
    assert _is_text(text), "so is its text"
    private = load_private_key(key)
    raw = _raw(private.public)
    reader = Reader(private.sign(text.encode()))
    reader.string()  # the algorithm, of which there is one
    signature = reader.string()
    encoded = base64.b64encode(_key_id(name, raw) + signature).decode()
    return f"{text}\n{_PREFIX}{name} {encoded}\n"


def verify_note(note: str, verifiers: Collection[str]) -> str:
    """Give the text of a note that one of the verifiers' keys signed.

    Signatures by other keys are passed over; one by a verifier's key that does not fit spoils the
    note.

    Args:
        note: From anywhere.
        verifiers: As `note_verifier` writes them.

    Raises:
        InvalidFile: It is no signed note.
        UsageError: A verifier is not one.
        BadSignature: A signature by one of the verifiers' keys does not fit.
        UntrustedSigner: None of them signed it.
    """
    known = {(v.name, v.key_id): v for v in map(_parse_verifier, verifiers)}
    text, signatures = _parse(note)
    is_signed = False
    for name, data in signatures:
        verifier = known.get((name, data[:_ID_BYTES]))
        if verifier is None:
            continue
        if not _fits(verifier.key, data[_ID_BYTES:], text.encode()):
            raise BadSignature(f"the signature of {name} does not fit the text above it")
        is_signed = True
    if not is_signed:
        raise UntrustedSigner("none of the known keys has signed this checkpoint")
    return text


def _parse(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    text, gap, below = note.rpartition("\n\n")
    if not gap or not _is_text(note) or len(note.encode()) > MAX_NOTE_BYTES:
        raise InvalidFile("this is not a signed note: text, an empty line, signatures")
    lines = below.split("\n")
    if lines.pop() != "" or not 1 <= len(lines) <= MAX_SIGNATURES:
        raise InvalidFile(f"a signed note ends in 1 to {MAX_SIGNATURES} whole signature lines")
    return f"{text}\n", [_parse_signature(line) for line in lines]


def _parse_signature(line: str) -> tuple[str, bytes]:
    name, _, encoded = line.removeprefix(_PREFIX).partition(" ")
    data = _decoded(encoded)
    if not line.startswith(_PREFIX) or not _is_name(name) or data is None:
        raise InvalidFile("a signature line of the note is not one")
    if len(data) <= _ID_BYTES:
        raise InvalidFile("a signature of the note is too short")
    return name, data


def _parse_verifier(verifier: str) -> _Verifier:
    name, _, rest = verifier.partition("+")
    hex_id, _, encoded = rest.partition("+")
    data = _decoded(encoded) or b""
    key = data[1:]
    if not _is_name(name) or data[:1] != _ED25519 or len(key) != _KEY_BYTES:
        raise UsageError("this is not a verifier key: NAME+ID+KEY")
    if _key_id(name, key).hex() != hex_id:
        raise UsageError(f"the verifier key of {name} was changed: its id does not fit")
    return _Verifier(name, bytes.fromhex(hex_id), key)


def _fits(key: bytes, signature: bytes, text: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if len(signature) != _SIGNATURE_BYTES:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, text)
    except InvalidSignature:
        return False
    return True


def _key_id(name: str, key: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + key).digest()[:_ID_BYTES]


def _raw(public: str) -> bytes:
    if not public.startswith(f"{ED25519} "):
        raise UnusableKey("the key of the checkpoints is not an Ed25519 key")
    reader = Reader(blob_of(public))
    reader.string()  # the type
    return reader.string()


def _decoded(text: str) -> bytes | None:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        return None


def _is_name(name: str) -> bool:
    return bool(name) and "+" not in name and not any(c.isspace() for c in name)


def _is_text(text: str) -> bool:
    return all(c == "\n" or not (c < " " or "\ud800" <= c <= "\udfff") for c in text)
