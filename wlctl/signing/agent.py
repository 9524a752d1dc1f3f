"""Keys in an ssh-agent: found by fingerprint, and asked to sign; the key itself is never seen.

A small reader of its own: two requests are all that signing takes, and an answer is believed only
as far as the public key vouches for it. Source: draft-ietf-sshm-ssh-agent, 3.5 and 3.6.
"""

import os
import socket
from dataclasses import dataclass

from wlctl.errors import AgentFailed, AmbiguousName, UnusableKey
from wlctl.model.package import fingerprint
from wlctl.signing.check import Misfit, check
from wlctl.signing.public import RSA, blob_of, key_type_of, spelled
from wlctl.signing.wire import Malformed, Reader, string

SOCKET_VARIABLE = "SSH_AUTH_SOCK"
LIST_TIMEOUT_S = 10.0
SIGN_TIMEOUT_S = 120.0
"""Somebody may have to touch a token, or to confirm."""

MAX_ANSWER_BYTES = 256 * 1024
MAX_KEYS = 2048
_FAILURE = 5
_LIST, _LISTED = 11, 12
_SIGN, _SIGNED = 13, 14
_RSA_SHA2_512 = 4
_LENGTH_BYTES = 4


@dataclass(frozen=True, slots=True)
class AgentKey:
    """A key that an agent keeps.

    Attributes:
        public: `TYPE BASE64`.
    """

    public: str

    @property
    def fingerprint(self) -> str:
        """`SHA256:…` of its public half."""
        return fingerprint(self.public)

    def sign(self, data: bytes) -> bytes:
        """Let the agent sign the bytes as they are; return the signature in its wire form.

        Raises:
            AgentFailed: It does not, in time, or its signature is not one of this key.
        """
        blob = blob_of(self.public)
        flags = _RSA_SHA2_512 if self.public.startswith(f"{RSA} ") else 0
        request = string(blob) + string(data) + flags.to_bytes(4)
        answer = _ask(_SIGN, request, _SIGNED, SIGN_TIMEOUT_S)
        try:
            signature = answer.string()
            answer.end()
            check(blob, signature, data)
        except (Malformed, Misfit) as error:
            raise AgentFailed(
                f"ssh-agent's signature with {self.fingerprint} is none: {error}"
            ) from error
        return signature


def agent_key(wanted: str) -> AgentKey:
    """Find the key that an agent keeps, by its fingerprint, `SHA256:…`, or the beginning of it.

    Raises:
        AgentFailed: There is no agent, or it does not answer as one.
        UnusableKey: It has no such key, or none that can sign here.
        AmbiguousName: It has several that begin so.
    """
    keys = agent_keys()
    found = [key for key in keys if key.fingerprint == wanted]
    if not found and len(wanted) > len("SHA256:") and wanted.startswith("SHA256:"):
        found = [key for key in keys if key.fingerprint.startswith(wanted)]
    if not found:
        raise UnusableKey(
            f"ssh-agent has no key {wanted}",
            hint="`ssh-add -l` lists what it has, `ssh-add FILE` gives it one",
        )
    if len(found) > 1:
        raise AmbiguousName(
            f"{wanted} fits {len(found)} keys of ssh-agent", hint="write more of it"
        )
    return found[0]


def agent_keys() -> list[AgentKey]:
    """List the keys of the agent whose signatures can be checked; certificates are passed over.

    Raises:
        AgentFailed: There is no agent, or it does not answer as one.
    """
    answer = _ask(_LIST, b"", _LISTED, LIST_TIMEOUT_S)
    try:
        blobs = [_next_blob(answer) for _ in range(min(answer.number(), MAX_KEYS))]
    except Malformed as error:
        raise AgentFailed(f"ssh-agent's list of keys is none: {error}") from error
    return [key for key in map(_usable, blobs) if key is not None]


def _next_blob(answer: Reader) -> bytes:
    blob = answer.string()
    answer.string()  # the comment
    return blob


def _usable(blob: bytes) -> AgentKey | None:
    try:
        return AgentKey(spelled(key_type_of(blob), blob))
    except Malformed:
        return None  # a certificate, a type of the future, or too short


def _ask(kind: int, body: bytes, wanted: int, timeout_s: float) -> Reader:
    path = os.environ.get(SOCKET_VARIABLE, "")
    if not path:
        raise AgentFailed(
            f"there is no ssh-agent here: {SOCKET_VARIABLE} is not set",
            hint="start one: eval $(ssh-agent) && ssh-add",
        )
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as way:
            way.settimeout(timeout_s)
            way.connect(path)
            way.sendall(string(bytes([kind]) + body))
            found = _taken(way, int.from_bytes(_taken(way, _LENGTH_BYTES)))
    except TimeoutError as error:
        raise AgentFailed(
            f"ssh-agent did not answer for {timeout_s:g} s",
            hint="if it waits for a touch or a confirmation, give it and repeat the command",
        ) from error
    except OSError as error:
        raise AgentFailed(
            f"ssh-agent at {path} cannot be reached: {error.strerror or error}"
        ) from error
    if found[:1] == bytes([_FAILURE]):
        raise AgentFailed(
            "ssh-agent refused", hint="is the key locked, or was it not confirmed? `ssh-add -l`"
        )
    if found[:1] != bytes([wanted]):
        raise AgentFailed("ssh-agent answered something else than it was asked")
    return Reader(found[1:])


def _taken(way: socket.socket, count: int) -> bytes:
    if not 0 < count <= MAX_ANSWER_BYTES:
        raise AgentFailed(f"ssh-agent's answer has {count} bytes, at most {MAX_ANSWER_BYTES}")
    taken = bytearray()
    while len(taken) < count:
        chunk = way.recv(count - len(taken))
        if not chunk:
            raise AgentFailed("ssh-agent hung up before its answer was whole")
        taken += chunk
    return bytes(taken)
