"""SSHSIG: what the real ssh-keygen signs is read here, and what is signed here it verifies."""

import base64
import hashlib
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_signing_keys import TYPES, Keygen, keygen
from wlctl import signing
from wlctl.signing.public import blob_of
from wlctl.signing.wire import string

__all__ = ["keygen"]

MESSAGE = b'{"schema":"wlctl-package/1"}'


def keygen_signs(key: Path, message: bytes, namespace: str, *options: str) -> bytes:
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", namespace, *options]
    return subprocess.run(command, input=message, check=True, capture_output=True).stdout


def keygen_verifies(
    directory: Path, signature: str, message: bytes, public: str, *options: str
) -> bool:
    (directory / "allowed").write_text(f"ann {public}\n")
    (directory / "signature").write_text(signature)
    command = ["ssh-keygen", "-Y", "verify", "-f", str(directory / "allowed"), "-I", "ann"]
    command += ["-n", "wlctl-package", "-s", str(directory / "signature"), *options]
    return subprocess.run(command, input=message, check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize("arguments", TYPES)
@pytest.mark.parametrize("hash_name", ["sha512", "sha256"])
def test_what_ssh_keygen_signed_is_verified(
    arguments: tuple[str, ...], hash_name: str, keygen: Keygen
) -> None:
    key = keygen(*arguments)
    signature = keygen_signs(key, MESSAGE, "wlctl-package", "-O", f"hashalg={hash_name}")

    reading = signing.read_signature(signature, MESSAGE)

    assert reading.fault is None
    public = signing.load_public_key(key.with_suffix(".pub"))
    assert reading.fingerprint == signing.fingerprint(public)


@pytest.mark.parametrize("arguments", TYPES)
def test_what_ssh_keygen_signed_fits_nothing_else(
    arguments: tuple[str, ...], keygen: Keygen
) -> None:
    signature = keygen_signs(keygen(*arguments), MESSAGE, "wlctl-package")

    assert signing.read_signature(signature, MESSAGE + b" ").fault is not None
    assert signing.read_signature(signature, b"").fault is not None


def test_a_signature_for_another_purpose_does_not_fit(keygen: Keygen) -> None:
    signature = keygen_signs(keygen("-t", "ed25519"), MESSAGE, "file")

    reading = signing.read_signature(signature, MESSAGE)

    assert reading.fault == 'made for the namespace "file", not "wlctl-package"'
    assert reading.fingerprint


def test_a_hostile_namespace_is_escaped_and_cut_when_it_is_shown(
    signer: signing.PrivateKey,
) -> None:
    signature = signing.sign(MESSAGE, signer, "\x1b[2J\n" + "x" * 1000).encode()

    fault = signing.read_signature(signature, MESSAGE).fault

    assert fault is not None
    assert fault.isprintable()
    assert len(fault) < 200


@pytest.mark.parametrize("arguments", TYPES)
def test_what_is_signed_here_passes_ssh_keygen(
    arguments: tuple[str, ...], keygen: Keygen, tmp_path: Path
) -> None:
    key = signing.load_private_key(keygen(*arguments))
    signature = signing.sign(MESSAGE, key)

    assert keygen_verifies(tmp_path, signature, MESSAGE, key.public)
    assert not keygen_verifies(tmp_path, signature, MESSAGE + b" ", key.public)
    assert signing.read_signature(signature.encode(), MESSAGE).fault is None


@pytest.mark.parametrize("arguments", TYPES)
def test_what_is_signed_here_fails_ssh_keygen_once_revoked(
    arguments: tuple[str, ...], keygen: Keygen, tmp_path: Path
) -> None:
    key = signing.load_private_key(keygen(*arguments))
    other = signing.load_public_key(keygen("-t", "ed25519", "-q").with_suffix(".pub"))
    signature = signing.sign(MESSAGE, key)
    revoked = tmp_path / "revoked"

    revoked.write_text(f"{other}\n")
    assert keygen_verifies(tmp_path, signature, MESSAGE, key.public, "-r", str(revoked))
    revoked.write_text(f"{other}\n{key.public}\n")
    assert not keygen_verifies(tmp_path, signature, MESSAGE, key.public, "-r", str(revoked))


@pytest.mark.parametrize("arguments", TYPES[:2])
def test_both_sign_alike(arguments: tuple[str, ...], keygen: Keygen) -> None:
    """What has no randomness in it: RSA with SHA-512, then, and Ed25519."""
    path = keygen(*arguments)
    theirs = keygen_signs(path, MESSAGE, "wlctl-package").decode()

    assert signing.sign(MESSAGE, signing.load_private_key(path)) == theirs


@given(message=st.binary(max_size=200), other=st.binary(max_size=200))
def test_a_signature_fits_its_message_alone(
    signer: signing.PrivateKey, message: bytes, other: bytes
) -> None:
    signature = signing.sign(message, signer).encode()

    assert signing.read_signature(signature, message).fault is None
    assert (signing.read_signature(signature, other).fault is None) == (message == other)


@pytest.fixture(scope="session")
def signer(tmp_path_factory: pytest.TempPathFactory) -> signing.PrivateKey:
    path = tmp_path_factory.mktemp("signer") / "key"
    signing.generate_key(path, comment="signer")
    return signing.load_private_key(path)


def _blob(armored: str) -> bytes:
    return base64.b64decode("".join(armored.splitlines()[1:-1]))


def _armor(blob: bytes) -> bytes:
    body = base64.b64encode(blob).decode()
    return f"-----BEGIN SSH SIGNATURE-----\n{body}\n-----END SSH SIGNATURE-----\n".encode()


def test_no_bit_of_a_signature_can_change(signer: signing.PrivateKey) -> None:
    blob = _blob(signing.sign(MESSAGE, signer))
    fingerprint = signer.fingerprint

    for at in range(len(blob)):
        for bit in range(8):
            changed = blob[:at] + bytes([blob[at] ^ (1 << bit)]) + blob[at + 1 :]
            reading = signing.read_signature(_armor(changed), MESSAGE)
            assert reading.fault is not None or reading.fingerprint != fingerprint


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda text: "", id="nothing"),
        pytest.param(lambda text: text.splitlines()[1], id="without its frame"),
        pytest.param(lambda text: "\n".join(text.splitlines()[:-1]), id="without its end"),
        pytest.param(lambda text: "\n".join(text.splitlines()[1:]), id="without its beginning"),
        pytest.param(lambda text: text.replace("END SSH", "END OF"), id="with another end"),
        pytest.param(lambda text: text[: len(text) // 2], id="cut in the middle"),
        pytest.param(lambda text: text.replace("U1NIU0lH", "U1NIU0l"), id="a letter missing"),
        pytest.param(lambda text: text.replace("U1NIU0lH", "!!!!"), id="no base64"),
        pytest.param(lambda text: text.replace("U1NIU0lH", "U1NIU0lH*"), id="a letter too many"),
        pytest.param(lambda text: text.replace("SSH SIGNATURE", "PGP SIGNATURE"), id="another"),
        pytest.param(lambda text: text + text, id="two of them"),
        pytest.param(lambda text: "é" + text, id="no ASCII"),
    ],
)
def test_what_is_no_signature_names_no_key(
    spoil: Callable[[str], str], signer: signing.PrivateKey
) -> None:
    reading = signing.read_signature(spoil(signing.sign(MESSAGE, signer)).encode(), MESSAGE)

    assert reading.fingerprint == ""
    assert reading.fault is not None


def test_space_around_a_signature_does_not_matter(signer: signing.PrivateKey) -> None:
    armored = f"\n{signing.sign(MESSAGE, signer)}\n\n".replace("\n", "\r\n").encode()

    assert signing.read_signature(armored, MESSAGE).fault is None


def test_bytes_after_the_signature_spoil_it(signer: signing.PrivateKey) -> None:
    blob = _blob(signing.sign(MESSAGE, signer))

    assert signing.read_signature(_armor(blob + b"\0"), MESSAGE).fingerprint == ""


def test_a_version_of_the_future_is_not_read(signer: signing.PrivateKey) -> None:
    blob = bytearray(_blob(signing.sign(MESSAGE, signer)))
    blob[9] = 2

    assert signing.read_signature(_armor(bytes(blob)), MESSAGE).fault == (
        "not an SSH signature: version 2, only 1 is known"
    )


RSA = ("-t", "rsa", "-b", "2048")


def test_an_rsa_signature_with_sha1_does_not_fit(keygen: Keygen) -> None:
    """Its bytes are even right for SHA-512: the algorithm's name alone decides."""
    blob = _blob(keygen_signs(keygen(*RSA), MESSAGE, "wlctl-package").decode())
    renamed = blob.replace(string(b"rsa-sha2-512"), string(b"ssh-rsa"))
    at = renamed.rindex(string(b"ssh-rsa"))
    whole = renamed[: at - 4] + string(renamed[at:])

    fault = signing.read_signature(_armor(whole), MESSAGE).fault

    assert fault is not None
    assert "where rsa-sha2-256 or rsa-sha2-512 is needed" in fault


def test_a_message_hashed_with_sha1_is_not_taken(signer: signing.PrivateKey) -> None:
    """The key did sign it; but another message with that hash could be made."""
    digest = hashlib.sha1(MESSAGE, usedforsecurity=False).digest()
    named = [b"wlctl-package", b"", b"sha1"]
    signature = signer.sign(b"SSHSIG" + b"".join(map(string, [*named, digest])))
    fields = [blob_of(signer.public), *named, signature]

    fault = signing.read_signature(
        _armor(b"SSHSIG" + (1).to_bytes(4) + b"".join(map(string, fields))), MESSAGE
    ).fault

    assert fault == "hashed in another way than with sha256 or sha512"


def test_a_key_of_an_unknown_type_is_only_named() -> None:
    key = string(b"ssh-xmss@openssh.com") + string(b"x" * 32) + string(b"ssh:")
    fields = (key, b"wlctl-package", b"", b"sha512", string(b"sk") + string(b""))
    blob = b"SSHSIG" + (1).to_bytes(4) + b"".join(map(string, fields))

    reading = signing.read_signature(_armor(blob), MESSAGE)

    assert reading.fingerprint.startswith("SHA256:")
    assert reading.fault is not None
    assert "ssh-xmss@openssh.com" in reading.fault


@given(st.binary(max_size=400))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    for armored in (data, _armor(data), _armor(b"SSHSIG\0\0\0\1" + data)):
        assert signing.read_signature(armored, MESSAGE).fault is not None


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from([b"ssh-ed25519", b"ssh-rsa", b"wlctl-package", b"", b"sha512"]),
        ).map(string),
        min_size=5,
        max_size=5,
    ).map(b"".join)
)
def test_no_fields_break_the_reader(fields: bytes) -> None:
    armored = _armor(b"SSHSIG" + (1).to_bytes(4) + fields)

    assert signing.read_signature(armored, MESSAGE).fault is not None
