"""Keys in an agent: a real one signs what ssh-keygen verifies, and no answer of another breaks."""

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.test_signing_keys import TYPES, Keygen, keygen, keygen_says
from tests.unit.test_signing_sshsig import MESSAGE, keygen_verifies
from wlctl import signing
from wlctl.errors import AgentFailed, AmbiguousName, UnusableKey
from wlctl.signing import agent
from wlctl.signing.wire import string

__all__ = ["keygen"]


@pytest.fixture
def ssh_agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A real ssh-agent of the test's own; the function gives it keys."""
    with TemporaryDirectory() as directory:  # pytest's own are too long for a socket
        way = f"{directory}/agent"
        running = subprocess.Popen(
            ["ssh-agent", "-D", "-a", way], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        try:
            assert running.stdout is not None
            running.stdout.readline()  # it says where it listens once it does
            monkeypatch.setenv("SSH_AUTH_SOCK", way)

            def add(*words: str | Path) -> None:
                subprocess.run(["ssh-add", "-q", *map(str, words)], check=True)

            yield add
        finally:
            running.terminate()
            running.communicate()


@pytest.mark.parametrize("arguments", TYPES)
def test_what_a_real_agent_signed_passes_ssh_keygen_and_is_verified(
    arguments: tuple[str, ...], keygen: Keygen, ssh_agent: Callable[..., None], tmp_path: Path
) -> None:
    path = keygen(*arguments)
    ssh_agent(path)

    key = signing.agent_key(keygen_says(path))
    signature = signing.sign(MESSAGE, key)

    assert keygen_verifies(tmp_path, signature, MESSAGE, key.public)
    assert not keygen_verifies(tmp_path, signature, MESSAGE + b" ", key.public)
    reading = signing.read_signature(signature.encode(), MESSAGE)
    assert (reading.fault, reading.fingerprint) == (None, keygen_says(path))


@pytest.mark.parametrize("arguments", TYPES)
def test_what_ssh_keygen_signed_through_an_agent_is_verified(
    arguments: tuple[str, ...], keygen: Keygen, ssh_agent: Callable[..., None]
) -> None:
    path = keygen(*arguments)
    ssh_agent(path)
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", "wlctl-package", "-f", f"{path}.pub"]
    theirs = subprocess.run(command, input=MESSAGE, check=True, capture_output=True).stdout

    reading = signing.read_signature(theirs, MESSAGE)

    assert (reading.fault, reading.fingerprint) == (None, keygen_says(path))


def test_ssh_keygen_with_the_same_agent_signs_alike(
    keygen: Keygen, ssh_agent: Callable[..., None]
) -> None:
    """SHA-512 was asked for: an agent's own choice for RSA would be SHA-1."""
    path = keygen("-t", "rsa", "-b", "2048")
    ssh_agent(path)
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", "wlctl-package", "-f", f"{path}.pub"]
    theirs = subprocess.run(command, input=MESSAGE, check=True, capture_output=True).stdout

    assert signing.sign(MESSAGE, signing.agent_key(keygen_says(path))).encode() == theirs


def test_an_agents_key_is_found_by_the_beginning_of_its_fingerprint(
    keygen: Keygen, ssh_agent: Callable[..., None]
) -> None:
    paths = [keygen(*TYPES[n].values[0]) for n in range(3)]  # type: ignore[misc] # words
    ssh_agent(*paths)
    wanted = keygen_says(paths[1])

    assert signing.agent_key(wanted[:20]).fingerprint == wanted
    assert {key.fingerprint for key in signing.agent_keys()} == set(map(keygen_says, paths))
    with pytest.raises(UnusableKey):
        signing.agent_key("SHA256:")
    with pytest.raises(UnusableKey, match="has no key SHA256:zzzz"):
        signing.agent_key("SHA256:zzzz")


def test_a_beginning_that_fits_two_keys_is_not_guessed_at(
    ssh_agent: Callable[..., None], tmp_path: Path
) -> None:
    """64 letters, 65 keys: two of them begin alike."""
    for number in range(65):
        signing.generate_key(tmp_path / str(number), comment="")
    ssh_agent(*(tmp_path / str(number) for number in range(65)))
    firsts = [key.fingerprint[:8] for key in signing.agent_keys()]
    twice = next(first for first in firsts if firsts.count(first) > 1)

    with pytest.raises(AmbiguousName):
        signing.agent_key(twice)


def test_a_certificate_in_the_agent_is_passed_over(
    ssh_agent: Callable[..., None], tmp_path: Path
) -> None:
    for name in ("ca", "key"):
        signing.generate_key(tmp_path / name, comment="")
    sign = ["ssh-keygen", "-q", "-s", "ca", "-I", "x", "-n", "x", "key.pub"]
    subprocess.run(sign, check=True, cwd=tmp_path)
    ssh_agent(tmp_path / "key")  # adds the certificate beside it, too

    assert [key.fingerprint for key in signing.agent_keys()] == [keygen_says(tmp_path / "key")]


def test_a_locked_agent_and_a_key_that_left_are_refusals(
    keygen: Keygen, ssh_agent: Callable[..., None]
) -> None:
    path = keygen("-t", "ed25519")
    ssh_agent(path)
    key = signing.agent_key(keygen_says(path))
    ssh_agent("-D")

    with pytest.raises(AgentFailed, match="refused"):
        signing.sign(MESSAGE, key)


def test_no_agent_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(AgentFailed, match="SSH_AUTH_SOCK is not set"):
        signing.agent_keys()
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "nobody"))
    with pytest.raises(AgentFailed, match="cannot be reached"):
        signing.agent_keys()


@contextmanager
def pretender(answer: bytes) -> Iterator[None]:
    """Something that listens where an agent should, and says `answer` to whatever comes."""
    before = os.environ.get("SSH_AUTH_SOCK")
    with (
        TemporaryDirectory() as directory,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener,
    ):
        listener.bind(f"{directory}/agent")
        listener.listen()

        def serve() -> None:
            way, _ = listener.accept()
            with way:
                way.recv(1 << 16)
                way.sendall(answer)

        served = threading.Thread(target=serve)
        served.start()
        os.environ["SSH_AUTH_SOCK"] = f"{directory}/agent"
        try:
            yield
        finally:
            served.join(30)
            if before is None:
                del os.environ["SSH_AUTH_SOCK"]
            else:
                os.environ["SSH_AUTH_SOCK"] = before


def framed(kind: int, body: bytes) -> bytes:
    return string(bytes([kind]) + body)


KEY = agent.AgentKey(
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMhOFXtrGsA/8Vx8/0L1jKDJ5ErWcfMkGR+bis9qBcoo"
)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\0\0\0\0", id="an empty answer"),
        pytest.param(b"\xff\xff\xff\xff", id="four gigabytes"),
        pytest.param(framed(5, b""), id="a failure"),
        pytest.param(framed(12, b"\0\0\0\0"), id="an answer to something else"),
        pytest.param(framed(14, b"\0\0\0\x10abc"), id="one cut short"),
        pytest.param(framed(14, string(b"")), id="an empty signature"),
        pytest.param(
            framed(14, string(string(b"ssh-ed25519") + string(b"x" * 64))),
            id="a signature that does not fit",
        ),
    ],
)
def test_what_is_no_signature_of_the_key_is_never_passed_on(answer: bytes) -> None:
    with pretender(answer), pytest.raises(AgentFailed):
        KEY.sign(MESSAGE)


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=200), st.booleans())
def test_no_list_of_keys_breaks_the_reader(body: bytes, is_framed: bool) -> None:
    with pretender(framed(12, body) if is_framed else body), suppress(AgentFailed):
        assert signing.agent_keys() == []
