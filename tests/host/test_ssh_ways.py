"""The ways to a node that ssh's configuration names: jump hosts, commands, certificates."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.host.bench import INSTALLATION, nonce, wait_until
from tests.host.nodes import SshdNode, sshd_nodes
from wlctl.errors import (
    AuthFailed,
    BannerTimeout,
    CertificateExpired,
    ConnectFailed,
    ConnectionLost,
    ConnectTimeout,
    HostKeyChanged,
    HostKeyRevoked,
    HostKeyUnknown,
    Unreachable,
    UnsafeSshConfig,
)
from wlctl.flows import fanout
from wlctl.host import ssh
from wlctl.host.node import NodeSession, connect
from wlctl.host.ssh import Credentials
from wlctl.host.transport import Deadlines
from wlctl.model.actions import NodeFacts
from wlctl.model.node import Address

pytestmark = [pytest.mark.root, pytest.mark.sshd]

NOW_MS = 1_800_000_000_000
"""For certificates; the nodes' own clock decides about those of logins."""

QUICK = Deadlines(connect_s=1.0, banner_s=1.0, auth_s=5.0, silence_s=5.0, action_s=10.0)

SLEEP = "sleep 1717.25"
"""No other program says that."""

RELAY = """
import os, socket, sys, threading
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def up():
    while data := os.read(0, 65536):
        sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while data := sock.recv(65536):
    os.write(1, data)
"""


@dataclass
class Ways:
    """Three nodes, and ssh's configuration as a test writes it."""

    near: SshdNode
    middle: SshdNode
    far: SshdNode
    directory: Path

    @property
    def config(self) -> Path:
        return self.directory / "config"

    @property
    def known_hosts(self) -> Path:
        return self.directory / "known_hosts"

    def write(self, text: str, known: str | None = None) -> None:
        """Write a configuration below which `near`, `middle` and `far` are aliases."""
        blocks = "".join(
            f"Host {name}\n HostName {node.address.host}\n Port {node.address.port}\n"
            for name, node in (("near", self.near), ("middle", self.middle), ("far", self.far))
        )
        usual = (
            f"Host *\n User root\n IdentityFile {self.near.client_key}\n"
            f" UserKnownHostsFile {self.known_hosts}\n GlobalKnownHostsFile none\n"
        )
        self.config.write_text(f"{text}\n{blocks}{usual}", encoding="utf-8")
        self.config.chmod(0o600)
        self.known_hosts.write_text(self.all_keys if known is None else known, encoding="ascii")
        self.known_hosts.chmod(0o600)

    def place(self, node: SshdNode) -> str:
        return f" HostName {node.address.host}\n Port {node.address.port}"

    @property
    def all_keys(self) -> str:
        return entry(self.near) + entry(self.middle)

    def connect(self, name: str = "far", **more: object) -> NodeSession:
        address = replace(self.far.address, host=name, port=0, user="")
        usual = {
            "keys": [],
            "nonce": nonce,
            "deadlines": QUICK,
            "configs": [self.config],
            "now_ms": NOW_MS,
        }
        return connect(address, **{**usual, **more})  # type: ignore[arg-type]  # its keywords

    def works(self, name: str = "far", **more: object) -> None:
        with self.connect(name, **more) as session:
            assert isinstance(session.facts(INSTALLATION), NodeFacts)


def entry(node: SshdNode, marker: str = "") -> str:
    return f"{marker}[{node.address.host}]:{node.address.port} {node.address.host_key}\n"


def keygen(*words: object) -> None:
    subprocess.run(["ssh-keygen", "-q", *map(str, words)], check=True, capture_output=True)


def public(key: Path) -> str:
    return " ".join(Path(f"{key}.pub").read_text("ascii").split()[:2])


@pytest.fixture(scope="module")
def nodes() -> Iterator[list[SshdNode]]:
    with sshd_nodes(3) as nodes:
        yield nodes


@pytest.fixture
def ways(nodes: list[SshdNode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ways]:
    """Nothing may be left of a way: no descriptor, thread or child, and no session on a node."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    before = left_over(nodes)
    near, middle, far = nodes
    yield Ways(near, middle, far, tmp_path)
    wait_until(
        lambda: all(now <= then for now, then in zip(left_over(nodes), before, strict=True)),
        f"no more than before: {before}",
    )


def left_over(nodes: list[SshdNode]) -> tuple[int, int, int]:
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()
    return (
        len(list(Path("/proc/self/fd").iterdir())),
        threading.active_count() + len(children),
        sum(len(node.pids()) for node in nodes),
    )


def test_an_alias_is_what_its_block_says(ways: Ways) -> None:
    ways.write("")

    ways.works("far")


def test_a_node_behind_two_jump_hosts_is_reached_through_both(ways: Ways) -> None:
    ways.write("Host far\n ProxyJump near,middle")
    before = [len(node.pids()) for node in (ways.near, ways.middle)]

    with ways.connect() as session:
        assert isinstance(session.facts(INSTALLATION), NodeFacts)
        during = [len(node.pids()) for node in (ways.near, ways.middle)]

    assert all(now > then for now, then in zip(during, before, strict=True))


def test_each_jump_host_may_have_its_own(ways: Ways) -> None:
    ways.write("Host far\n ProxyJump middle\nHost middle\n ProxyJump near")

    ways.works()


def test_a_jump_host_is_asked_by_its_own_login(ways: Ways) -> None:
    ways.write("Host far\n ProxyJump nobody-here@near")

    with pytest.raises(AuthFailed, match=r"for nobody-here at near \(127"):
        ways.connect()


def test_a_jump_host_that_cannot_go_on_says_why(ways: Ways) -> None:
    ways.write(f"Host far\n ProxyJump near\nHost far\n HostName {ways.far.address.host}\n Port 1")

    with pytest.raises(ConnectFailed, match=r"near .* cannot connect to .*:1: Connect failed"):
        ways.connect()


def test_a_jump_host_that_waits_for_a_black_hole_is_given_up_in_time(ways: Ways) -> None:
    with socket.socket() as full, socket.socket() as one, socket.socket() as two:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for filler in (one, two):
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
        host, port = full.getsockname()
        ways.write(f"Host far\n ProxyJump near\n HostName {host}\n Port {port}")
        started_at_s = time.monotonic()

        with pytest.raises(ConnectTimeout, match=r"far .* did not answer near"):
            ways.connect()

        assert time.monotonic() - started_at_s < 3


def sessions(node: SshdNode) -> int:
    """How many connections a node's sshd serves."""
    lines = [Path(f"/proc/{pid}/cmdline") for pid in node.pids()]
    words = [line.read_bytes() for line in lines if line.exists()]
    return sum(word.startswith(b"sshd: ") and b"[listener]" not in word for word in words)


def test_nodes_behind_a_jump_host_share_one_connection_to_it(ways: Ways) -> None:
    ways.write("Host far far2 far3\n ProxyJump near\nHost far2 far3\n" + ways.place(ways.far))

    with ways.connect("far") as one:
        alone = sessions(ways.near)
        with ways.connect("far2") as two, ways.connect("far3") as three:
            assert sessions(ways.near) == alone
            for session in (two, three):
                assert isinstance(session.facts(INSTALLATION), NodeFacts)
        assert isinstance(one.facts(INSTALLATION), NodeFacts)

    wait_until(lambda: sessions(ways.near) == 0, "the end of the jump host's connection")


def test_a_jump_host_that_hung_up_is_asked_again(ways: Ways) -> None:
    ways.write("Host far\n ProxyJump near")

    with ways.connect() as cut:
        for pid in ways.near.pids():
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sshd: root"):
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(ConnectionLost):
            cut.facts(INSTALLATION)
        ways.works()


def test_a_jump_host_that_is_lost_is_waited_for_once(ways: Ways) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        ways.write(f"Host far*\n ProxyJump near\nHost near\n HostName 127.0.0.1\n Port {port}")
        started_at_s = time.monotonic()

        def ask(number: int) -> type[Exception]:
            with pytest.raises(BannerTimeout) as caught:
                ways.connect(f"far{number}")
            return caught.type

        found = list(fanout.each(range(12), ask, width=12))

        assert len(found) == 12
        assert time.monotonic() - started_at_s < 3 * QUICK.banner_s


def test_nothing_knows_a_jump_host(ways: Ways) -> None:
    ways.write("Host far\n ProxyJump near,middle", known=entry(ways.near))

    with pytest.raises(HostKeyUnknown, match=r"middle .* shows SHA256:") as caught:
        ways.connect()

    assert caught.value.hint is not None
    assert "ssh -o StrictHostKeyChecking=ask middle" in caught.value.hint


def test_a_jump_host_with_another_key_is_not_passed_through(ways: Ways) -> None:
    key = ways.middle.address.host_key
    known = f"[{ways.near.address.host}]:{ways.near.address.port} {key}\n"
    ways.write("Host far\n ProxyJump near", known=known)

    with pytest.raises(HostKeyChanged, match=r"near .* SHA256:"):
        ways.connect()


def test_a_jump_host_with_a_revoked_key_is_not_passed_through(ways: Ways) -> None:
    known = entry(ways.near) + entry(ways.near, "@revoked ")
    ways.write("Host far\n ProxyJump near", known=known)

    with pytest.raises(HostKeyRevoked, match=r"near .* SHA256:"):
        ways.connect()


def test_a_jump_host_goes_by_its_alias_in_known_hosts(ways: Ways) -> None:
    text = "Host far\n ProxyJump near\nHost near\n HostKeyAlias gate"
    ways.write(text, known=f"gate {ways.near.address.host_key}\n")

    ways.works()


def test_known_hosts_that_others_can_write_know_nobody(ways: Ways) -> None:
    ways.write("Host far\n ProxyJump near")
    ways.known_hosts.chmod(0o666)

    with pytest.raises(UnsafeSshConfig, match="known_hosts"):
        ways.connect()


def test_the_recorded_key_of_a_node_counts_and_no_known_hosts(ways: Ways) -> None:
    known = f"[{ways.far.address.host}]:{ways.far.address.port} {ways.near.address.host_key}\n"
    ways.write("", known=known)

    ways.works("far")
    with pytest.raises(HostKeyChanged):
        ways.connect("near")  # with the key that is recorded of `far`


# --- Proxy commands


def test_a_command_leads_to_a_node(ways: Ways) -> None:
    relay = ways.directory / "relay.py"
    relay.write_text(RELAY, encoding="utf-8")
    ways.write(f"Host far\n ProxyCommand {sys.executable} {relay} %h %p")

    ways.works()


def test_ssh_itself_may_be_the_command(ways: Ways) -> None:
    ways.write("")
    config = ways.directory / "inner"
    config.write_text(ways.config.read_text("utf-8"), encoding="utf-8")
    ways.write(f"Host far\n ProxyCommand ssh -F {config} -W %h:%p near 2>/dev/null")

    ways.works()


def test_a_jump_host_may_be_behind_a_command(ways: Ways) -> None:
    relay = ways.directory / "relay.py"
    relay.write_text(RELAY, encoding="utf-8")
    ways.write(
        f"Host far\n ProxyJump near\nHost near\n ProxyCommand {sys.executable} {relay} %h %p"
    )

    ways.works()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        pytest.param("false", "without a greeting", id="it ends at once"),
        pytest.param("/nowhere/nc %h %p", "not found", id="it is not there"),
        pytest.param("sh -c 'echo no way >&2; exit 1'", "no way", id="it says why"),
        pytest.param(SLEEP, "does not greet", id="it is silent"),
        pytest.param("yes", "does not speak SSH", id="it talks nonsense"),
        pytest.param("sh -c 'yes >&2'", "says: y y", id="it complains without end"),
        pytest.param(f"sh -c '{SLEEP} & {SLEEP}'", "does not greet", id="it has children"),
    ],
)
def test_a_command_that_leads_nowhere_is_ended_in_time(
    ways: Ways, command: str, words: str
) -> None:
    ways.write(f"Host far\n ProxyCommand {command}")
    started_at_s = time.monotonic()

    with pytest.raises(Unreachable, match=words):
        ways.connect()

    assert time.monotonic() - started_at_s < 6
    wait_until(lambda: not processes(SLEEP), "its end")


def processes(words: str) -> list[str]:
    """The command lines on this machine that have `words` in them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
    return [line for line in found if words in line]


# --- Certificates


@pytest.fixture
def authority(nodes: list[SshdNode], tmp_path: Path) -> Path:
    """A key that `far` takes certificates of, for the login root."""
    key = tmp_path / "authority"
    keygen("-t", "ed25519", "-N", "", "-f", key)
    allowed = nodes[2].directory / "authorized_keys"
    before = allowed.read_text("ascii")
    allowed.write_text(f"{before}cert-authority {public(key)}\n", encoding="ascii")
    return key


@pytest.fixture
def own_key(tmp_path: Path) -> Path:
    key = tmp_path / "own"
    keygen("-t", "ed25519", "-N", "", "-f", key)
    return key


def certify(authority: Path, key: Path, *more: str) -> Path:
    keygen("-s", authority, "-I", "me", "-n", "root", *more, f"{key}.pub")
    return Path(f"{key}-cert.pub")


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_certificate_beside_the_key_lets_in(
    ways: Ways, authority: Path, tmp_path: Path, kind: str
) -> None:
    key = tmp_path / f"id_{kind}"
    keygen("-t", kind, "-N", "", "-f", key)
    certify(authority, key)
    ways.write(f"Host far\n IdentityFile {key}\nMatch all\n IdentitiesOnly yes")

    ways.works(keys=[key])


def test_a_certificate_elsewhere_is_named(ways: Ways, authority: Path, own_key: Path) -> None:
    moved = certify(authority, own_key).rename(ways.directory / "elsewhere")
    ways.write(f"Host far\n CertificateFile {moved}\n IdentityFile {own_key}")
    ways.config.write_text(only(ways.config, str(ways.near.client_key)), encoding="utf-8")

    ways.works()


def only(config: Path, key: str) -> str:
    """The configuration without the key that every node takes."""
    lines = config.read_text("utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if key not in line)


def test_an_expired_certificate_is_said(ways: Ways, authority: Path, own_key: Path) -> None:
    cert = certify(authority, own_key, "-V", "20200101:20200102")
    ways.write("")
    ways.config.write_text(only(ways.config, str(ways.near.client_key)), encoding="utf-8")

    with pytest.raises(CertificateExpired, match=f"{cert} expired at 2020-01-02"):
        ways.connect(keys=[own_key])


def test_a_certificate_of_tomorrow_is_said(ways: Ways, authority: Path, own_key: Path) -> None:
    certify(authority, own_key, "-V", "20400101:20400102")
    ways.write("")
    ways.config.write_text(only(ways.config, str(ways.near.client_key)), encoding="utf-8")

    with pytest.raises(CertificateExpired, match="is not valid before 20"):
        ways.connect(keys=[own_key])


def test_an_expired_certificate_does_not_stand_before_its_key(
    ways: Ways, authority: Path, own_key: Path
) -> None:
    certify(authority, own_key, "-V", "20200101:20200102")
    allowed = ways.far.directory / "authorized_keys"
    with allowed.open("a", encoding="ascii") as file:
        file.write(f"{public(own_key)}\n")
    ways.write("")

    ways.works(keys=[own_key])


def test_a_certificate_for_another_login_does_not_let_in(
    ways: Ways, authority: Path, own_key: Path
) -> None:
    keygen("-s", authority, "-I", "me", "-n", "somebody", f"{own_key}.pub")
    ways.write("")
    ways.config.write_text(only(ways.config, str(ways.near.client_key)), encoding="utf-8")

    with pytest.raises(AuthFailed):
        ways.connect(keys=[own_key])


def test_what_is_no_certificate_is_passed_over(ways: Ways, own_key: Path) -> None:
    Path(f"{own_key}-cert.pub").write_text("nonsense", encoding="ascii")
    ways.write("")
    ways.config.write_text(only(ways.config, str(ways.near.client_key)), encoding="utf-8")

    with pytest.raises(AuthFailed, match="is no certificate"):
        ways.connect(keys=[own_key])


# --- Host certificates


@pytest.fixture
def certified(nodes: list[SshdNode], tmp_path: Path) -> Iterator[Path]:
    """The authority that has signed the host key of `near`, which shows that from now on."""
    near = nodes[0]
    key = tmp_path / "host-authority"
    keygen("-t", "ed25519", "-N", "", "-f", key)
    yield key
    (near.directory / "host_key-cert.pub").unlink(missing_ok=True)
    config = near.directory / "sshd_config"
    text = config.read_text("utf-8").partition("HostCertificate")[0]
    config.write_text(text, encoding="utf-8")
    near.kill()
    near.start()


def show_certificate(node: SshdNode, authority: Path, *more: str) -> None:
    keygen("-s", authority, "-I", "near", "-h", *more, f"{node.host_key_file}.pub")
    with (node.directory / "sshd_config").open("a", encoding="utf-8") as file:
        file.write(f"HostCertificate {node.host_key_file}-cert.pub\n")
    node.kill()
    node.start()


def jump_by_authority(ways: Ways, authority: Path, more: str = "") -> None:
    ways.write("Host far\n ProxyJump near", known=f"@cert-authority * {public(authority)}\n{more}")


def test_a_jump_host_with_a_certificate_of_an_authority_is_known(
    ways: Ways, certified: Path
) -> None:
    show_certificate(ways.near, certified, "-n", ways.near.address.host)
    jump_by_authority(ways, certified)

    ways.works()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param(["-n", "elsewhere"], "not for 127.0.1.1 but for elsewhere", id="another's"),
        pytest.param(
            ["-n", "127.0.1.1", "-V", "20200101:20200102"], "expired at 2020", id="an expired one"
        ),
    ],
)
def test_a_certificate_that_does_not_hold_makes_no_jump_host_known(
    ways: Ways, certified: Path, options: list[str], words: str
) -> None:
    show_certificate(ways.near, certified, *options)
    jump_by_authority(ways, certified)

    with pytest.raises(HostKeyUnknown, match=words):
        ways.connect()


def test_a_certificate_of_an_unknown_authority_makes_no_jump_host_known(
    ways: Ways, certified: Path, own_key: Path
) -> None:
    show_certificate(ways.near, certified, "-n", ways.near.address.host)
    jump_by_authority(ways, own_key)

    with pytest.raises(HostKeyUnknown, match="nobody who may has signed it"):
        ways.connect()


def test_a_certificate_of_a_revoked_authority_makes_no_jump_host_known(
    ways: Ways, certified: Path
) -> None:
    show_certificate(ways.near, certified, "-n", ways.near.address.host)
    jump_by_authority(ways, certified, f"@revoked * {public(certified)}\n")

    with pytest.raises(HostKeyRevoked):
        ways.connect()


def test_a_recorded_key_counts_though_the_node_shows_a_certificate(
    ways: Ways, certified: Path
) -> None:
    show_certificate(ways.near, certified, "-n", "elsewhere")
    ways.write("")
    address = replace(ways.near.address, host="near", port=0)

    with connect(address, keys=[], nonce=nonce, deadlines=QUICK, configs=[ways.config]) as session:
        assert isinstance(session.facts(INSTALLATION), NodeFacts)


# --- Keys that are asked for before a node is added


def scan(ways: Ways, trusted: Path | None = None, **more: object) -> str:
    address = replace(ways.far.address, host="far", port=0, user="", host_key="")
    credentials = Credentials((), (ways.config,), NOW_MS // 1000)
    return ssh.scan_host_key(
        replace(address, **more),  # type: ignore[arg-type]  # fields of Address
        credentials=credentials,
        trusted=trusted,
        deadlines=QUICK,
    )


def test_the_key_of_a_node_behind_a_jump_host_can_be_asked_for(ways: Ways) -> None:
    ways.write("Host far\n ProxyJump near,middle")

    assert scan(ways) == ways.far.address.host_key


def test_a_known_hosts_file_may_vouch_for_the_key(ways: Ways) -> None:
    ways.write("")
    trusted = ways.directory / "trusted"
    trusted.write_text(entry(ways.far), encoding="ascii")

    assert scan(ways, trusted) == ways.far.address.host_key


def test_an_authority_in_that_file_may_too(ways: Ways, certified: Path) -> None:
    show_certificate(ways.near, certified, "-n", ways.near.address.host)
    ways.write("")
    trusted = ways.directory / "trusted"
    trusted.write_text(f"@cert-authority * {public(certified)}\n", encoding="ascii")

    assert scan(ways, trusted, host="near") == ways.near.address.host_key


@pytest.mark.parametrize(
    ("make", "failure"),
    [
        pytest.param(lambda ways: "", HostKeyUnknown, id="it says nothing"),
        pytest.param(
            lambda ways: entry(ways.far).replace(
                ways.far.address.host_key, ways.near.address.host_key
            ),
            HostKeyChanged,
            id="it says another key",
        ),
        pytest.param(
            lambda ways: entry(ways.far) + entry(ways.far, "@revoked "),
            HostKeyRevoked,
            id="it says revoked",
        ),
    ],
)
def test_a_known_hosts_file_that_does_not_vouch_is_believed(
    ways: Ways, make: object, failure: type[Exception]
) -> None:
    ways.write("")
    trusted = ways.directory / "trusted"
    trusted.write_text(make(ways), encoding="ascii")  # type: ignore[operator]  # one of those above

    with pytest.raises(failure):
        scan(ways, trusted)


def test_a_key_that_is_revoked_in_the_users_own_file_is_not_offered(ways: Ways) -> None:
    ways.write("", known=entry(ways.far, "@revoked "))

    with pytest.raises(HostKeyRevoked):
        scan(ways)


# --- Agents


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Path]:
    """An agent that holds three keys, the one that nodes take last."""
    sock = tmp_path / "agent"
    child = subprocess.Popen(
        ["ssh-agent", "-D", "-a", str(sock)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(sock.exists, "the agent's socket")
        yield sock
    finally:
        child.terminate()
        child.wait()


def hold(agent: Path, *keys: Path) -> None:
    env = {**os.environ, "SSH_AUTH_SOCK": str(agent)}
    subprocess.run(["ssh-add", "-q", *map(str, keys)], check=True, capture_output=True, env=env)


def without_keys(ways: Ways, text: str) -> None:
    ways.write(text)
    ways.config.write_text(only(ways.config, str(ways.near.client_key)), encoding="utf-8")


def test_the_agent_that_is_named_is_asked(ways: Ways, agent: Path) -> None:
    hold(agent, ways.near.client_key)
    without_keys(ways, f"Host far\n IdentityAgent {agent}\n IdentityFile none")

    ways.works()


def test_no_agent_is_asked_where_none_is_wanted(
    ways: Ways, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold(agent, ways.near.client_key)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
    without_keys(ways, "Host far\n IdentityAgent none\n IdentityFile none")

    with pytest.raises(AuthFailed, match="no key to try") as failed:
        ways.connect()
    assert failed.value.hint is not None
    assert "authorized_keys" not in failed.value.hint, "what is missing is on this side"


def test_of_an_agent_only_the_keys_that_are_named_are_tried(
    ways: Ways, agent: Path, own_key: Path
) -> None:
    hold(agent, own_key, ways.near.client_key)
    text = f"Host far\n IdentityAgent {agent}\n IdentitiesOnly yes\n IdentityFile {own_key}"
    own_key.unlink()
    without_keys(ways, text)

    with pytest.raises(AuthFailed, match="none of 1 key is taken"):
        ways.connect()


def test_an_agent_that_does_not_answer_is_given_up(ways: Ways) -> None:
    with socket.socket(socket.AF_UNIX) as mute:
        path = ways.directory / "mute"
        mute.bind(str(path))
        mute.listen()
        without_keys(ways, f"Host far\n IdentityAgent {path}\n IdentityFile none")
        started_at_s = time.monotonic()

        with pytest.raises(Unreachable):
            ways.connect(deadlines=replace(QUICK, auth_s=0.5))

        assert time.monotonic() - started_at_s < 3


@pytest.mark.parametrize(
    ("mode", "word", "words"),
    [
        pytest.param(0o644, "", "others can read", id="others can read it"),
        pytest.param(0o600, "secret", "has a passphrase: `ssh-add` it", id="it has a passphrase"),
    ],
)
def test_a_key_that_was_passed_over_is_said(
    ways: Ways, tmp_path: Path, mode: int, word: str, words: str
) -> None:
    key = tmp_path / "odd"
    keygen("-t", "ed25519", "-N", word, "-f", key)
    key.chmod(mode)
    without_keys(ways, "")

    with pytest.raises(AuthFailed, match=words):
        ways.connect(keys=[key])


def test_an_address_without_a_key_is_not_talked_to(ways: Ways) -> None:
    ways.write("")
    bare = Address(ways.far.address.transport, host="far", port=0)

    with pytest.raises(HostKeyChanged):
        connect(bare, keys=[], nonce=nonce, deadlines=QUICK, configs=[ways.config])
