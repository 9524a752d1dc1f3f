"""Key files: what is taken, what is refused, and what is made."""

import base64
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from wlctl import signing
from wlctl.errors import FilesUnreadable, InvalidFile, UnsafeKey, UnusableKey, WlctlError
from wlctl.signing.wire import string

Keygen = Callable[..., Path]


@pytest.fixture(scope="session")
def keygen(tmp_path_factory: pytest.TempPathFactory) -> Keygen:
    """Make keys with the real ssh-keygen; the same arguments give the same key."""
    made: dict[tuple[str, ...], Path] = {}

    def make(*arguments: str, passphrase: str = "") -> Path:
        wanted = (*arguments, passphrase)
        if wanted not in made:
            path = tmp_path_factory.mktemp("keys") / "key"
            command = ["ssh-keygen", "-q", "-N", passphrase, "-C", "a comment", "-f", str(path)]
            subprocess.run([*command, *arguments], check=True, stdin=subprocess.DEVNULL)
            made[wanted] = path
        return made[wanted]

    return make


def keygen_says(path: Path) -> str:
    """Ask ssh-keygen for the fingerprint of a key file."""
    command = ["ssh-keygen", "-l", "-f", str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[1]


TYPES = [
    pytest.param(("-t", "ed25519"), id="ed25519"),
    pytest.param(("-t", "rsa", "-b", "2048"), id="rsa"),
    pytest.param(("-t", "ecdsa", "-b", "256"), id="ecdsa of 256 bits"),
    pytest.param(("-t", "ecdsa", "-b", "384"), id="ecdsa of 384 bits"),
    pytest.param(("-t", "ecdsa", "-b", "521"), id="ecdsa of 521 bits"),
]


@pytest.mark.parametrize("arguments", TYPES)
def test_a_public_key_has_the_fingerprint_ssh_keygen_gives_it(
    arguments: tuple[str, ...], keygen: Keygen
) -> None:
    path = keygen(*arguments).with_suffix(".pub")

    assert signing.fingerprint(signing.load_public_key(path)) == keygen_says(path)


def test_a_public_key_is_spelled_without_its_comment(keygen: Keygen) -> None:
    path = keygen("-t", "ed25519").with_suffix(".pub")

    assert signing.load_public_key(path) == " ".join(path.read_text().split()[:2])


def test_the_public_half_of_a_private_key_is_its_pub_file(keygen: Keygen) -> None:
    path = keygen("-t", "ed25519")

    assert signing.public_key(path) == signing.load_public_key(path.with_suffix(".pub"))


def test_a_made_key_is_one_that_ssh_keygen_reads(tmp_path: Path) -> None:
    path = tmp_path / "key"

    signing.generate_key(path, comment="wlctl of me")

    public = tmp_path / "key.pub"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert public.read_text() == f"{signing.public_key(path)} wlctl of me\n"
    assert keygen_says(path) == keygen_says(public) == signing.load_private_key(path).fingerprint
    assert sorted(tmp_path.iterdir()) == [path, public]


def test_a_key_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "key"
    signing.generate_key(path, comment="one")
    before = path.read_bytes(), (tmp_path / "key.pub").read_bytes()

    signing.generate_key(path, comment="two")

    assert (path.read_bytes(), (tmp_path / "key.pub").read_bytes()) == before


def test_a_key_whose_making_was_cut_short_is_completed(tmp_path: Path) -> None:
    path = tmp_path / "key"
    signing.generate_key(path, comment="one")
    (tmp_path / "key.pub").unlink()
    (tmp_path / ".key.pub.new").write_text("half of i")

    signing.generate_key(path, comment="one")

    assert (tmp_path / "key.pub").read_text() == f"{signing.public_key(path)} one\n"
    assert len(list(tmp_path.iterdir())) == 2


def test_two_who_make_a_key_at_once_get_the_same(tmp_path: Path) -> None:
    path = tmp_path / "key"
    threads = [
        threading.Thread(target=signing.generate_key, args=(path,), kwargs={"comment": "c"})
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert (tmp_path / "key.pub").read_text() == f"{signing.public_key(path)} c\n"


def test_a_directory_that_is_not_there_takes_no_key(tmp_path: Path) -> None:
    with pytest.raises(FilesUnreadable):
        signing.generate_key(tmp_path / "nowhere" / "key", comment="c")


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o610, 0o604, 0o602, 0o601, 0o777], ids=oct)
def test_a_private_key_that_others_reach_is_refused(
    mode: int, keygen: Keygen, tmp_path: Path
) -> None:
    path = tmp_path / "key"
    path.write_bytes(keygen("-t", "ed25519").read_bytes())
    path.chmod(mode)

    with pytest.raises(UnsafeKey) as refusal:
        signing.load_private_key(path)

    assert f"mode {mode:04o}" in refusal.value.message
    assert refusal.value.hint == f"chmod 600 {path}"


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700], ids=oct)
def test_a_private_key_that_only_its_owner_reaches_is_taken(
    mode: int, keygen: Keygen, tmp_path: Path
) -> None:
    path = tmp_path / "key"
    made = keygen("-t", "ed25519")
    path.write_bytes(made.read_bytes())
    path.chmod(mode)

    assert signing.load_private_key(path).fingerprint == keygen_says(made)


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666], ids=oct)
def test_a_public_key_that_others_can_change_is_refused(
    mode: int, keygen: Keygen, tmp_path: Path
) -> None:
    path = tmp_path / "key.pub"
    path.write_bytes(keygen("-t", "ed25519").with_suffix(".pub").read_bytes())
    path.chmod(mode)

    with pytest.raises(UnsafeKey, match="others can change"):
        signing.load_public_key(path)


def test_a_key_under_a_passphrase_says_what_to_do(keygen: Keygen) -> None:
    path = keygen("-t", "ed25519", passphrase="secret")

    with pytest.raises(UnusableKey, match="under a passphrase") as refusal:
        signing.load_private_key(path)

    assert refusal.value.hint == (
        f"let ssh-agent keep it: ssh-add {path}, then give {path}.pub in its place"
    )


def test_a_key_under_a_passphrase_is_taken_with_it_and_not_with_another(keygen: Keygen) -> None:
    path = keygen("-t", "ed25519", passphrase="secret")
    asked: list[str] = []

    def tell(question: str) -> str:
        asked.append(question)
        return "secret"

    assert signing.load_private_key(path, tell).fingerprint == keygen_says(path)
    assert asked == [f"passphrase of {path}:"]
    with pytest.raises(UnusableKey, match="the passphrase of"):
        signing.load_private_key(path, lambda _: "Secret")
    with pytest.raises(UnusableKey, match="the passphrase of"):
        signing.load_private_key(path, lambda _: "")


def test_nobody_is_asked_for_the_passphrase_of_a_key_without_one(keygen: Keygen) -> None:
    def tell(question: str) -> str:
        raise AssertionError(question)

    signing.load_private_key(keygen("-t", "ed25519"), tell)


@pytest.mark.parametrize("arguments", TYPES)
def test_a_private_key_of_every_type_has_the_fingerprint_ssh_keygen_gives_it(
    arguments: tuple[str, ...], keygen: Keygen
) -> None:
    path = keygen(*arguments)

    assert signing.load_private_key(path).fingerprint == keygen_says(path)


def test_the_file_of_a_tokens_key_says_that_an_agent_signs_with_it(tmp_path: Path) -> None:
    """What ssh-keygen -t ed25519-sk writes: a handle, which only the token can use."""
    kind, application = string(b"sk-ssh-ed25519@openssh.com"), string(b"ssh:")
    public = kind + string(b"x" * 32) + application
    secret = b"\0\0\0\1" * 2 + public + b"\1" + string(b"handle") + string(b"") + string(b"me")
    secret += bytes(range(1, 1 + -len(secret) % 8))
    head = b"openssh-key-v1\0" + string(b"none") * 2 + string(b"") + b"\0\0\0\1"
    body = base64.encodebytes(head + string(public) + string(secret)).decode()
    path = tmp_path / "key"
    path.write_text(
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}-----END OPENSSH PRIVATE KEY-----\n"
    )
    path.chmod(0o600)
    assert keygen_says(path).startswith("SHA256:")

    with pytest.raises(UnusableKey, match="cannot sign from a file") as refusal:
        signing.load_private_key(path)

    assert "ssh-add" in (refusal.value.hint or "")


def test_a_short_rsa_key_does_not_sign(keygen: Keygen) -> None:
    with pytest.raises(UnusableKey, match="1024 bits, at least 2048"):
        signing.load_private_key(keygen("-t", "rsa", "-b", "1024"))


def test_a_private_key_in_another_format_says_how_to_convert_it(keygen: Keygen) -> None:
    with pytest.raises(UnusableKey, match="another format") as refusal:
        signing.load_private_key(keygen("-t", "rsa", "-b", "2048", "-m", "PEM"))

    assert refusal.value.hint is not None
    assert refusal.value.hint.startswith("convert a copy of it: ssh-keygen -p")


def test_each_half_of_a_key_says_where_the_other_is(keygen: Keygen) -> None:
    path = keygen("-t", "ed25519")

    with pytest.raises(UnusableKey, match="is not a private key"):
        signing.load_private_key(path.with_suffix(".pub"))
    with pytest.raises(UnusableKey, match="is a private key") as refusal:
        signing.load_public_key(path)
    assert refusal.value.hint == f"give its public half: {path}.pub"


ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMhOFXtrGsA/8Vx8/0L1jKDJ5ErWcfMkGR+bis9qBcoo"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("hello", id="one word"),
        pytest.param(f"{ED25519}\n{ED25519}\n", id="two keys"),
        pytest.param("ssh-ed25519 !!!!", id="no base64"),
        pytest.param("ssh-ed25519 AAAA", id="a blob cut short"),
        pytest.param(ED25519.replace("ssh-ed25519 ", "ssh-rsa "), id="another type than its blob"),
        pytest.param(ED25519[:-4], id="three bytes missing"),
        pytest.param(f"{ED25519}AAAA", id="three bytes more"),
        pytest.param(f"cert-authority {ED25519}", id="options before it"),
        pytest.param("ssh-dss AAAAB3NzaC1kc3M=", id="a type nobody should use"),
        pytest.param(
            "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29t",
            id="a token's type alone",
        ),
    ],
)
def test_what_is_no_public_key_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "key.pub"
    path.write_text(text)
    path.chmod(0o644)

    with pytest.raises(UnusableKey):
        signing.load_public_key(path)


def test_a_short_rsa_key_is_refused(keygen: Keygen) -> None:
    with pytest.raises(UnusableKey, match="1024 bits, at least 2048"):
        signing.load_public_key(keygen("-t", "rsa", "-b", "1024").with_suffix(".pub"))


@pytest.mark.parametrize("load", [signing.load_private_key, signing.load_public_key])
@pytest.mark.parametrize(
    ("name", "error"),
    [
        pytest.param("nowhere", InvalidFile, id="nothing"),
        pytest.param("directory", UnusableKey, id="a directory"),
        pytest.param("zero", UnusableKey, id="an endless device"),
        pytest.param("large", UnusableKey, id="a large file"),
    ],
)
def test_what_is_no_key_file_is_refused(
    name: str, error: type[WlctlError], load: Callable[[Path], object], tmp_path: Path
) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "large").write_bytes(b"x" * (64 * 1024 + 1))
    (tmp_path / "large").chmod(0o600)

    with pytest.raises(error) as refusal:
        load(tmp_path / name)

    assert "\n" not in refusal.value.message


@pytest.mark.parametrize("cut", [2, 20, 100, 200])
def test_a_private_key_cut_short_is_refused(cut: int, keygen: Keygen, tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(keygen("-t", "ed25519").read_bytes()[:-cut])
    path.chmod(0o600)

    with pytest.raises(UnusableKey):
        signing.load_private_key(path)
