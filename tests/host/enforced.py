"""Enforced nodes, what an honest controller sends them, and what somebody with its key tries."""

import contextlib
import hashlib
import io
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.host.bench import INSTALLATION, Bench, nonce, wait_until
from tests.host.nodes import SshdNode, sshd_nodes
from wlctl.host import doorkeeper, script
from wlctl.host.transport import Deadlines
from wlctl.model.actions import PlaceRequest, Refused
from wlctl.model.enforcement import Enforcement, Keyholder, KeyLines
from wlctl.package import build

DESCRIPTION = """
kind = "service"
name = "web"
version = "1.0"
[run]
command = ["./bin/run"]
args = "{args}"
env = {{ GREETING = "hello" }}
env_allow = ["GREETING"]
[[variant]]
name = "any"
files = ["bin/"]
[lifecycle]
stop_grace = "500ms"
"""

PROGRAM = """#!/bin/sh
trap 'exit 0' TERM
echo "$GREETING with $# from $WLCTL_NAME; preload ${LD_PRELOAD:-none}"
while :; do sleep 1 & wait $!; done
"""


def keygen(path: Path) -> Path:
    """Make a key of the operator's."""
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(argv, check=True)
    return path


def public(key: Path) -> str:
    """Its public half, `TYPE BASE64`."""
    return " ".join(Path(f"{key}.pub").read_text("ascii").split()[:2])


def signature(manifest: bytes, key: Path, namespace: str = "wlctl-package") -> str:
    """What `ssh-keygen` signs."""
    argv = ["ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", str(key)]
    return subprocess.run(argv, input=manifest, capture_output=True, check=True).stdout.decode()


@dataclass(frozen=True)
class Signed:
    """A built package of one variant, and signatures of it."""

    package: str
    manifest: bytes
    sheet: str
    contents: Mapping[str, bytes]
    signatures: tuple[str, ...]


def package(
    directory: Path, key: Path, *, args: str = "none", files: Mapping[str, str] | None = None
) -> Signed:
    """Build a package and sign it."""
    directory.mkdir(parents=True)
    (directory / "workload.toml").write_text(DESCRIPTION.format(args=args), encoding="utf-8")
    for path, text in {"bin/run": PROGRAM, **(files or {})}.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text, encoding="utf-8")
        (directory / path).chmod(0o755 if text.startswith("#!") else 0o644)
    stated = build.build(directory).manifest
    contents = {}
    for file in stated.files:
        contents[file.sha256] = (directory / file.path).read_bytes()
    sheet = next(file.sha256 for file in stated.files if file.path == "sheets/any")
    manifest = stated.text.encode()
    return Signed(stated.package_id, manifest, sheet, contents, (signature(manifest, key),))


def enforcement(signers: Mapping[str, Path], **changes: object) -> Enforcement:
    """What this version puts on a node, with these signers."""
    lines = [f'{name} namespaces="wlctl-package" {public(key)}\n' for name, key in signers.items()]
    usual = Enforcement(script.doorkeeper(), doorkeeper.actions(), "".join(lines), "", ())
    return replace(usual, **changes)  # type: ignore[arg-type]  # fields of Enforcement


@dataclass(frozen=True)
class Said:
    """How a client ended."""

    code: int
    out: bytes
    err: bytes


class Door:
    """One enforced node, seen by its administrator, by wlctl, and by who has stolen wlctl's key.

    Attributes:
        signer: A key on the node's list.
    """

    def __init__(self, node: SshdNode, keys: Path) -> None:
        self.node = node
        self.keys = keys
        self.signer = keygen(keys / "signer")
        self.stranger = keygen(keys / "stranger")
        self.admin_key = keygen(keys / "admin")
        self.wanted = enforcement({"alice": self.signer})
        with self.authorized_keys.open("a", encoding="ascii") as file:
            file.write(f"{public(self.admin_key)} alice@desk\n")
        self.open_address = node.address

    @property
    def authorized_keys(self) -> Path:
        return self.node.directory / "authorized_keys"

    @property
    def etc(self) -> Path:
        """Its `/etc/wlctl`."""
        return self.node.directory / "etc/wlctl"

    @property
    def own(self) -> Path:
        """What this installation has there."""
        return self.etc / INSTALLATION

    @property
    def holder(self) -> Keyholder:
        address = self.open_address
        return Keyholder(INSTALLATION, address.user, address.sudo, public(self.node.client_key))

    @contextlib.contextmanager
    def administrator(
        self, admin: str = "root", *, number: str | None = None
    ) -> Iterator[doorkeeper.AdminSession]:
        with doorkeeper.connect(
            self.open_address,
            admin=admin,
            not_with=self.node.client_key,
            keys=[self.admin_key],
            nonce=lambda: number or nonce(),
        ) as session:
            yield session

    def put(self, wanted: Enforcement | None = None, *, admin: str = "root") -> KeyLines:
        with self.administrator(admin) as session:
            done = session.put(self.holder, wanted or self.wanted)
        assert isinstance(done, KeyLines), done
        self.node.address = replace(self.open_address, enforced=True)
        return done

    def refuses(self, wanted: Enforcement | None = None) -> Refused:
        with self.administrator() as session:
            looked = session.look(self.holder, wanted or self.wanted)
            done = session.put(self.holder, wanted or self.wanted)
        assert looked == done
        assert isinstance(done, Refused), done
        return done

    def remove(self) -> tuple[str, ...]:
        with self.administrator() as session:
            done = session.remove(self.holder)
        assert not isinstance(done, Refused), done
        self.node.address = self.open_address
        return done

    @contextlib.contextmanager
    def bench(self, deadlines: Deadlines | None = None) -> Iterator[Bench]:
        """A session of wlctl's; nothing may be left of what it placed."""
        bench = Bench(self.node, deadlines)
        try:
            yield bench
            bench.clear()
            assert bench.left_over() == []
        finally:
            bench.session.close()

    def request(self, bench: Bench, signed: Signed, **changes: object) -> PlaceRequest:
        """Bring what `signed` needs, and ask for it."""
        for content in (signed.manifest, *signed.contents.values()):
            name = hashlib.sha256(content).hexdigest()
            assert bench.session.receive(name, len(content), io.BytesIO(content)) is None
        usual = {
            "package": signed.package,
            "sheet": signed.sheet,
            "signatures": signed.signatures,
        }
        return bench.asked(**{**usual, **changes})

    def ssh(self, *words: str, options: Sequence[str] = (), data: bytes = b"") -> Said:
        """Run OpenSSH's own client with the stolen key."""
        shared = () if options else ("-S", str(self.keys / "master"))
        return self.client("ssh", *self.target([*options, *shared]), *words, data=data)

    @contextlib.contextmanager
    def master(self) -> Iterator[None]:
        """Share one connection of OpenSSH's client among the many that need no options."""
        master = self.keys / "master"
        argv = ["ssh", *self.target(["-N", "-M", "-S", str(master)])]
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL) as client:
            try:
                wait_until(master.exists, "the shared connection")
                yield
            finally:
                client.terminate()

    def client(self, program: str, *argv: str, data: bytes = b"") -> Said:
        done = subprocess.run(
            [program, *argv], input=data, capture_output=True, timeout=60, check=False
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def target(self, options: Sequence[str]) -> list[str]:
        address = self.node.address
        return [
            *self.options(),
            *options,
            "-p",
            str(address.port),
            f"{address.user}@{address.host}",
        ]

    def options(self) -> list[str]:
        known = self.keys / "known_hosts"
        address = self.node.address
        known.write_text(f"[{address.host}]:{address.port} {address.host_key}\n", encoding="ascii")
        settings = {
            "UserKnownHostsFile": str(known),
            "IdentitiesOnly": "yes",
            "IdentityAgent": "none",
            "BatchMode": "yes",
            "LogLevel": "ERROR",
        }
        words = ["-F", "none", "-i", str(self.node.client_key)]
        for name, value in settings.items():
            words += ["-o", f"{name}={value}"]
        return words


@contextlib.contextmanager
def door(keys: Path, *, shell: str = "dash", login: str = "root") -> Iterator[Door]:
    """A node that is not enforced yet; on one with bash that is the login shell itself."""
    with sshd_nodes(1, shell=shell, login=login, own_etc=True) as (node,):
        if shell == "bash":
            passwd = node.directory / "passwd"
            text = passwd.read_text("ascii").replace(":/bin/sh\n", ":/bin/bash\n")
            passwd.write_text(text, encoding="ascii")
        yield Door(node, keys)
