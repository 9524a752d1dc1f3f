"""By which hops a node is reached, and with which files: ssh's configuration, made plain."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wlctl.errors import InvalidSshConfig
from wlctl.host.ssh import config
from wlctl.host.ssh.config import Found
from wlctl.host.ssh.tokens import Caller, expand, expand_path

SSH_PORT = 22

HOPS_MAX = 8

SYSTEM_KNOWN_HOSTS = (Path("/etc/ssh/ssh_known_hosts"), Path("/etc/ssh/ssh_known_hosts2"))

OWN_KNOWN_HOSTS = (".ssh/known_hosts", ".ssh/known_hosts2")

OWN_KEYS = ("id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk")
"""What ssh tries when no IdentityFile is set."""

_PLAIN = re.compile(r"[A-Za-z0-9_.:@%+=,/\[\]][A-Za-z0-9_.:@%+=,/\[\]-]*")
"""What may stand in a command that a shell reads."""

_SPEC = re.compile(
    r"(?:ssh://)?(?:(?P<user>[^@]+)@)?(?P<host>\[[^\]]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?/?"
)


@dataclass(frozen=True, slots=True)
class Hop:
    """One machine on the way.

    Attributes:
        name: As it was asked for, for messages.
        identities: Private key files to try.
        certificates: Certificates for them, besides the one beside each.
        agent: Path of the agent's socket, `none`, or empty for the one of the environment.
        known_hosts: Files with host keys; those of a node itself are not asked.
        key_name: Under which name its host key is recorded there.
    """

    name: str
    host: str
    port: int
    user: str
    identities: tuple[Path, ...]
    certificates: tuple[Path, ...]
    identities_only: bool
    agent: str
    known_hosts: tuple[Path, ...]
    key_name: str

    @property
    def where(self) -> str:
        """Its address, for messages, after its name where that is another."""
        address = f"{self.host}:{self.port}"
        return address if self.name == self.host else f"{self.name} ({address})"


@dataclass(frozen=True, slots=True)
class Route:
    """The way to a node.

    Attributes:
        hops: In the order of travel; the node is the last.
        command: Whose input and output lead to the first hop; empty for a connection of our own.
    """

    hops: tuple[Hop, ...]
    command: str = ""


def route(name: str, *, user: str, port: int, files: Sequence[Path], caller: Caller) -> Route:
    """Find the way to the host or alias `name`.

    Args:
        user: The login, or empty for what the files say.
        port: Of its sshd, or 0 for what the files say.
        files: ssh's configuration, the user's before the system's; none for a plain address.

    Raises:
        InvalidSshConfig: A line cannot be read, or leads nowhere.
        UnsafeSshConfig: Others can have written a file.
    """
    return _Router(files, caller).to(name, user, port, jumps=None, depth=1)


class _Router:
    def __init__(self, files: Sequence[Path], caller: Caller) -> None:
        self._files = files
        self._caller = caller

    def to(
        self, name: str, user: str, port: int, *, jumps: tuple[str, ...] | None, depth: int
    ) -> Route:
        """Find the way; `jumps` are the hops that somebody else has decided on."""
        if depth > HOPS_MAX:
            raise InvalidSshConfig(f"the way to {name} has more than {HOPS_MAX} hops")
        found = config.lookup(
            name,
            user=user,
            files=self._files,
            caller=self._caller,
            hostname_of=lambda text: expand(text, {"h": name}, "HostName"),
        )
        hop = self._hop(name, user, port, found)
        command = ""
        if jumps is None:
            jumps, command = self._proxy(hop, found)
        if not jumps:
            return Route((hop,), command)
        last = _spec(jumps[-1])
        if last.host in {name, hop.host} and last.port in {0, hop.port}:
            return Route((hop,))  # as in ssh: `Host *` may name a jump host that it fits itself
        # As `ssh -J A,B HOST` does: B is reached by A, and A by what the files say of it
        before = jumps[:-1] or None
        way = self.to(last.host, last.user, last.port, jumps=before, depth=depth + 1)
        return Route((*way.hops, hop), way.command)

    def _hop(self, name: str, user: str, port: int, found: Found) -> Hop:
        host = expand(found.first("hostname"), {"h": name}, "HostName") or name
        port = port or _port(found.first("port"))
        user = user or found.first("user") or self._caller.login
        alias = found.first("hostkeyalias")
        tokens = {
            "h": host,
            "n": name,
            "p": str(port),
            "r": user,
            "k": alias or name,
            **self._caller.tokens,
        }

        def paths(keyword: str, otherwise: Sequence[Path] = ()) -> tuple[Path, ...]:
            words = found.words.get(keyword)
            if words is None:
                return tuple(otherwise)
            kept = [word for word in words if word.lower() != "none"]
            return tuple(expand_path(word, tokens, self._caller, keyword) for word in kept)

        home = self._caller.home
        known = paths("userknownhostsfile", [home / file for file in OWN_KNOWN_HOSTS])
        system = paths("globalknownhostsfile", SYSTEM_KNOWN_HOSTS)
        agent = found.first("identityagent")
        if agent.lower() not in {"", "none", "ssh_auth_sock"} and not agent.startswith("$"):
            agent = str(expand_path(agent, tokens, self._caller, "IdentityAgent"))
        elif agent.startswith("$"):
            agent = self._caller.environment.get(agent.strip("${}"), "none")
        return Hop(
            name=name,
            host=host,
            port=port,
            user=user,
            identities=paths("identityfile", [home / ".ssh" / key for key in OWN_KEYS]),
            certificates=paths("certificatefile"),
            identities_only=found.first("identitiesonly").lower() in {"yes", "true"},
            agent="" if agent.lower() == "ssh_auth_sock" else agent,
            known_hosts=(*known, *system),
            key_name=alias or _recorded_as(host, port),
        )

    def _proxy(self, hop: Hop, found: Found) -> tuple[tuple[str, ...], str]:
        """Return the jump hosts, or the command, that lead to `hop`."""
        line = found.proxy
        if line is None or line.is_none:
            return (), ""
        tokens = {"h": hop.host, "n": hop.name, "p": str(hop.port), "r": hop.user}
        if line.keyword == "proxyjump":
            if len(line.words) != 1:
                raise line.invalid("ProxyJump takes one word, its hosts separated by commas")
            jumps = expand(line.words[0], tokens, "ProxyJump").split(",")
            return tuple(jump.strip() for jump in jumps), ""
        for value in (hop.host, hop.name, hop.user):
            if not _PLAIN.fullmatch(value):
                raise line.invalid(f"{value!r} cannot stand in a command")
        return (), expand(line.rest, tokens, "ProxyCommand")


@dataclass(frozen=True, slots=True)
class _Spec:
    host: str
    port: int
    user: str


def _spec(text: str) -> _Spec:
    read = _SPEC.fullmatch(text)
    if read is None or read["host"].startswith("-"):
        raise InvalidSshConfig(f"ProxyJump {text}: is not [USER@]HOST[:PORT]")
    port = _port(read["port"]) if read["port"] else 0
    return _Spec(read["host"].strip("[]"), port, read["user"] or "")


def _port(text: str) -> int:
    if not text:
        return SSH_PORT
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 16:
        raise InvalidSshConfig(f"Port {text}: is not a port")
    return int(text)


def _recorded_as(host: str, port: int) -> str:
    """Write a host as known_hosts does."""
    return host if port == SSH_PORT else f"[{host}]:{port}"
