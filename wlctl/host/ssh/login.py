"""Logs in: with keys in files, certificates beside them, and the agent's keys after those."""

import contextlib
import os
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
from paramiko.agent import AgentSSH

from wlctl.errors import AuthFailed, AuthTimeout, CertificateExpired
from wlctl.host.ssh import keyfile
from wlctl.host.ssh.certificate import NoCertificate
from wlctl.host.ssh.connection import Connection
from wlctl.host.ssh.keyfile import CertificateFile, UnusableKey
from wlctl.host.ssh.route import Hop

CERTIFICATE_SUFFIX = "-cert.pub"


@dataclass(slots=True)
class _Tale:
    """What was tried, for the error that tells it."""

    tried: int = 0
    passed_over: list[str] = field(default_factory=list)
    expired: list[str] = field(default_factory=list)


def log_in(
    ssh: Connection,
    hop: Hop,
    keys: Sequence[Path],
    *,
    auth_s: float,
    now_s: int,
    not_with: Path | None = None,
) -> None:
    """Log in at `hop`.

    Args:
        keys: wlctl's own, tried before those of the configuration.
        now_s: The time, for certificates: seconds since the epoch.
        not_with: A private key file whose key is not tried, wherever else it is found.

    Raises:
        AuthFailed: It takes none of the keys.
        AuthTimeout: It took too long to say so.
        CertificateExpired: It takes none, and a certificate that may have been meant has run out.
    """
    ends_at_s = time.monotonic() + auth_s
    tale = _Tale()
    files = list(dict.fromkeys((*keys, *hop.identities)))
    barred = None if not_with is None else _public(not_with)
    with contextlib.ExitStack() as stack:
        for key in _keys(files, hop, tale, stack, auth_s=auth_s, now_s=now_s):
            if key.asbytes() == barred:
                continue
            tale.tried += 1
            if _accepts(ssh, hop.user, key, tale):
                return
            if time.monotonic() >= ends_at_s:
                raise AuthTimeout(
                    f"the login at {hop.where} as {hop.user} was not done in {auth_s:g} s"
                )
            if not ssh.is_active():
                break  # some servers hang up after too many keys
    raise _failure(hop, tale)


def _public(file: Path) -> bytes:
    """Return the public key of a private key file, also when the file is of no use."""
    try:
        key = keyfile.load(file)
    except UnusableKey:
        key = None
    return keyfile.public_half(file) if key is None else key.asbytes()


def _failure(hop: Hop, tale: _Tale) -> AuthFailed | CertificateExpired:
    who = f"{hop.user} at {hop.where}"
    if tale.expired:
        return CertificateExpired(
            f"no login as {who}: {tale.expired[0]}",
            hint="have a new certificate signed, and put it in that file",
        )
    hint = "add wlctl's public key to the login's ~/.ssh/authorized_keys there"
    if tale.tried:
        keys = "key" if tale.tried == 1 else "keys"
        said = f"none of {tale.tried} {keys} is taken for {who}"
    else:
        said = f"there is no key to try for {who}"
        hint = "`wlctl doctor` examines wlctl's own; others come from ~/.ssh and the ssh agent"
    if tale.passed_over:
        said += f" ({'; '.join(tale.passed_over[:3])})"
    return AuthFailed(said, hint=hint)


def _accepts(ssh: Connection, user: str, key: paramiko.PKey, tale: _Tale) -> bool:
    try:
        ssh.auth_publickey(user, key)
    except (paramiko.SSHException, OSError, EOFError) as error:
        if not ssh.is_active():
            tale.passed_over.append(f"the connection ended: {str(error) or 'it hung up'}")
        return False
    return ssh.is_authenticated()


def _keys(
    files: Sequence[Path],
    hop: Hop,
    tale: _Tale,
    stack: contextlib.ExitStack,
    *,
    auth_s: float,
    now_s: int,
) -> Iterator[paramiko.PKey]:
    """Yield the keys to try; the agent is asked only when it comes to that."""
    extra = [_certificate(path, now_s, tale) for path in hop.certificates]
    for file in files:
        try:
            key = keyfile.load(file)
        except UnusableKey as error:
            tale.passed_over.append(str(error))
            continue
        if key is None:
            continue
        beside = _certificate(Path(f"{file}{CERTIFICATE_SUFFIX}"), now_s, tale)
        for cert in (*extra, beside):
            if cert is not None and cert.says.key == key.asbytes():
                yield cert.on(key)
        yield key
    if hop.agent == "none":
        return
    wanted = {keyfile.public_half(file) for file in files} if hop.identities_only else None
    for held in stack.enter_context(_agent_keys(hop.agent, auth_s)):
        if wanted is None or held.asbytes() in wanted:
            yield held


def _certificate(path: Path, now_s: int, tale: _Tale) -> CertificateFile | None:
    """Read a certificate; one that cannot be of use is noted, and never shown."""
    try:
        found = keyfile.read_certificate(path)
    except NoCertificate as error:
        tale.passed_over.append(f"{path} is no certificate: {error}")
        return None
    if found is not None and (why := found.says.out_of_time(now_s)):
        tale.expired.append(f"the certificate {path} {why}")
        return None
    return found


class _Agent(AgentSSH):
    """An agent that may not take for ever: paramiko's own waits for it without an end."""

    def __init__(self, path: str, patience_s: float) -> None:
        super().__init__()
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.settimeout(patience_s)
            sock.connect(path)
            self._connect(sock)  # type: ignore[attr-defined]  # the stubs leave it out
        except BaseException:
            sock.close()
            raise

    def close(self) -> None:
        """Let go of it."""
        self._close()  # type: ignore[attr-defined]  # as above


@contextlib.contextmanager
def _agent_keys(path: str, patience_s: float) -> Iterator[Sequence[paramiko.PKey]]:
    """Hold the agent open while its keys are tried: it signs with them itself."""
    where = path or os.environ.get("SSH_AUTH_SOCK", "")
    if not where:
        yield ()
        return
    try:
        agent = _Agent(where, patience_s)
    except (paramiko.SSHException, OSError):
        yield ()
        return
    try:
        yield agent.get_keys()
    finally:
        agent.close()
