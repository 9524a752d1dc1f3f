"""Host certificates as ssh-keygen makes them: read whole, and worth nothing once a bit changes."""

import base64
import subprocess
from pathlib import Path

import pytest

from wlctl.host.ssh.certificate import NoCertificate, check_host, read

NOW_S = 1_800_000_000


@pytest.fixture(scope="module", params=["ed25519", "ecdsa", "rsa"])
def blob(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A certificate for `elm` and `oak`, of a key and by an authority of the same type."""
    directory = tmp_path_factory.mktemp("certificate")
    for name in ("authority", "host"):
        keygen("-t", request.param, "-N", "", "-f", directory / name)
    keygen("-s", directory / "authority", "-h", "-I", "id", "-n", "elm,oak", directory / "host.pub")
    return base64.b64decode((directory / "host-cert.pub").read_text("ascii").split()[1])


def keygen(*words: object) -> None:
    subprocess.run(["ssh-keygen", "-q", *map(str, words)], check=True, capture_output=True)


@pytest.mark.parametrize("name", ["elm", "oak", "ELM"])
def test_a_certificate_holds_for_its_names(blob: bytes, name: str) -> None:
    check_host(read(blob), name, NOW_S)


def test_it_holds_for_no_other(blob: bytes) -> None:
    with pytest.raises(NoCertificate, match="for elm, oak"):
        check_host(read(blob), "elm.example", NOW_S)


def test_it_is_worth_nothing_once_a_bit_is_another(blob: bytes) -> None:
    for position in range(len(blob)):
        spoilt = bytearray(blob)
        spoilt[position] ^= 1 << position % 8

        with pytest.raises(NoCertificate):
            check_host(read(bytes(spoilt)), "elm", NOW_S)


def test_it_is_worth_nothing_when_it_is_cut_or_longer(blob: bytes) -> None:
    for length in range(0, len(blob), 7):
        with pytest.raises(NoCertificate):
            check_host(read(blob[:length]), "elm", NOW_S)
    with pytest.raises(NoCertificate):
        read(blob + b"\0")


def test_a_users_certificate_is_no_hosts(tmp_path: Path) -> None:
    for name in ("authority", "user"):
        keygen("-t", "ed25519", "-N", "", "-f", tmp_path / name)
    keygen("-s", tmp_path / "authority", "-I", "id", "-n", "elm", tmp_path / "user.pub")
    user = base64.b64decode((tmp_path / "user-cert.pub").read_text("ascii").split()[1])

    with pytest.raises(NoCertificate, match="no host's"):
        check_host(read(user), "elm", NOW_S)


def test_a_key_is_no_certificate(tmp_path: Path) -> None:
    keygen("-t", "ed25519", "-N", "", "-f", tmp_path / "key")
    key = base64.b64decode((tmp_path / "key.pub").read_text("ascii").split()[1])

    with pytest.raises(NoCertificate, match="no type of certificate"):
        read(key)
