"""Signatures of hardware tokens, made as a token makes them; the real ssh-keygen is the referee.

Source: OpenSSH, PROTOCOL.u2f.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.unit.test_signing_sshsig import MESSAGE, keygen_verifies
from wlctl import signing
from wlctl.signing.public import SK_ECDSA, SK_ED25519, spelled
from wlctl.signing.wire import string, unsigned

ED25519 = Ed25519PrivateKey.from_private_bytes(b"\7" * 32)
ECDSA_KEY = generate_private_key(SECP256R1())


@dataclass(frozen=True)
class Token:
    """A key that a token would keep; what it says besides the signature can be anything."""

    kind: str
    flags: int = 1
    counter: int = 5
    application: bytes = b"ssh:"
    after: bytes = b""
    algorithm: str = ""
    told_flags: int | None = field(default=None)

    @property
    def blob(self) -> bytes:
        if self.kind == SK_ED25519:
            point = ED25519.public_key().public_bytes_raw()
            parts = [point, self.application]
        else:
            form = Encoding.X962, PublicFormat.UncompressedPoint
            point = ECDSA_KEY.public_key().public_bytes(*form)
            parts = [b"nistp256", point, self.application]
        return string(self.kind.encode()) + b"".join(map(string, parts))

    @property
    def public(self) -> str:
        return spelled(self.kind, self.blob)

    @property
    def fingerprint(self) -> str:
        return signing.fingerprint(self.public)

    def sign(self, data: bytes) -> bytes:
        tail = bytes([self.flags]) + self.counter.to_bytes(4)
        digests = [hashlib.sha256(one).digest() for one in (self.application, data)]
        told = digests[0] + tail + digests[1]
        if self.kind == SK_ED25519:
            value = ED25519.sign(told)
        else:
            pair = decode_dss_signature(ECDSA_KEY.sign(told, ECDSA(SHA256())))
            value = b"".join(map(unsigned, pair))
        if self.told_flags is not None:
            tail = bytes([self.told_flags]) + tail[1:]
        algorithm = (self.algorithm or self.kind).encode()
        return string(algorithm) + string(value) + tail + self.after


KINDS = [pytest.param(SK_ED25519, id="ed25519"), pytest.param(SK_ECDSA, id="ecdsa")]


def fault_of(token: Token, message: bytes = MESSAGE) -> str | None:
    reading = signing.read_signature(signing.sign(MESSAGE, token).encode(), message)
    assert reading.fingerprint == token.fingerprint
    return reading.fault


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("flags", "counter"), [(1, 0), (1, 2**32 - 1), (5, 7)])
def test_what_a_touched_token_signed_is_verified_here_and_by_ssh_keygen(
    kind: str, flags: int, counter: int, tmp_path: Path
) -> None:
    token = Token(kind, flags, counter)

    assert keygen_verifies(tmp_path, signing.sign(MESSAGE, token), MESSAGE, token.public)
    assert fault_of(token) is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flags", [0, 4])
def test_what_nobody_touched_a_token_for_does_not_count_whatever_ssh_keygen_says(
    kind: str, flags: int, tmp_path: Path
) -> None:
    token = Token(kind, flags)

    assert keygen_verifies(tmp_path, signing.sign(MESSAGE, token), MESSAGE, token.public)
    assert "was not touched" in (fault_of(token) or "")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda token: replace(token, flags=0, told_flags=1), id="the touch is a lie"),
        pytest.param(lambda token: replace(token, after=b"\0"), id="a byte after it"),
        pytest.param(lambda token: replace(token, algorithm="ssh-ed25519"), id="no token's name"),
    ],
)
def test_nothing_that_a_token_says_can_be_changed(
    kind: str, spoil: Callable[[Token], Token], tmp_path: Path
) -> None:
    token = spoil(Token(kind))

    assert not keygen_verifies(tmp_path, signing.sign(MESSAGE, token), MESSAGE, token.public)
    assert fault_of(token) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokens_signature_fits_its_message_and_its_application_alone(kind: str) -> None:
    token = Token(kind)
    elsewhere = replace(token, application=b"ssh:web")

    assert fault_of(token, MESSAGE + b" ") is not None
    assert token.fingerprint != elsewhere.fingerprint
    assert fault_of(elsewhere) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_tokens_public_key_is_taken_and_named_as_ssh_keygen_names_it(
    kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "key.pub"
    path.write_text(f"{Token(kind).public} a token\n")
    path.chmod(0o644)

    assert signing.load_public_key(path) == Token(kind).public


def test_a_tokens_signature_is_none_of_a_key_in_a_file() -> None:
    """The same numbers, and another type of key: the type is part of what is compared."""
    raw = ED25519.public_key().public_bytes_raw()
    blob = string(b"ssh-ed25519") + string(raw)

    class Passed(Token):
        @property
        def blob(self) -> bytes:
            return blob

        @property
        def public(self) -> str:
            return spelled("ssh-ed25519", blob)

    reading = signing.read_signature(signing.sign(MESSAGE, Passed(SK_ED25519)).encode(), MESSAGE)
    assert reading.fault is not None
