"""Nodes behind aliases and jump hosts, as people add them and look at them."""

import os
import pwd
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.host.nodes import SshdNode, sshd_nodes
from wlctl.config import Origin, Settings
from wlctl.errors import HostKeyChanged, HostKeyUnknown, WlctlError
from wlctl.flows import fanout, init, nodes, runtime
from wlctl.flows.runtime import Runtime, build
from wlctl.ledger import nodes as ledger_nodes
from wlctl.model.node import Address, Liveness, Node, Tier, TransportKind

pytestmark = [pytest.mark.root, pytest.mark.sshd]


@pytest.fixture(scope="module")
def fleet() -> Iterator[list[SshdNode]]:
    with sshd_nodes(2) as fleet:
        yield fleet


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write what `~/.ssh/config` says."""
    path = tmp_path / "config"

    def write(text: str) -> None:
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)

    monkeypatch.setattr(runtime, "ssh_configs", lambda: (path,))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return write


@pytest.fixture
def rt(tmp_path: Path, fleet: list[SshdNode]) -> Iterator[Runtime]:
    """An installation whose key the nodes take."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    origins = {"db": Origin("--db")}
    settings = Settings(db=str(home / "ledger.db"), connect_timeout_s=1.0, origins=origins)
    rt = build(settings, command="wlctl test", message="")
    init.init(rt)
    rt.home.ssh_key.write_bytes(fleet[0].client_key.read_bytes())
    yield rt
    rt.ledger.close()


def block(name: str, node: SshdNode, more: str = "") -> str:
    return f"Host {name}\n HostName {node.address.host}\n Port {node.address.port}\n{more}"


def alias(name: str) -> Address:
    return Address(TransportKind.SSH, host=name, port=0)


def entry(node: SshdNode) -> str:
    return f"[{node.address.host}]:{node.address.port} {node.address.host_key}\n"


def test_a_node_is_added_by_its_alias_and_found_where_the_alias_leads(
    rt: Runtime, fleet: list[SshdNode], config: Callable[[str], None]
) -> None:
    shown: list[str] = []
    config(block("web", fleet[0]))

    added = nodes.add(rt, "elm", alias("web"), Tier.PAIRED, accept_key=shown.append)

    assert added.address.host_key == fleet[0].address.host_key
    assert (added.address.host, added.address.port) == ("web", 0)
    assert shown[0].startswith("SHA256:")
    (contact,) = nodes.probe(rt, ["elm"])
    assert contact.failure is None
    config(block("web", fleet[1]))
    (contact,) = nodes.probe(rt, ["elm"])
    assert isinstance(contact.failure, HostKeyChanged)
    (node,) = nodes.ls(rt)
    assert node.liveness is Liveness.SUSPECT


def test_a_node_behind_a_jump_host_is_added_and_probed(
    rt: Runtime, fleet: list[SshdNode], config: Callable[[str], None], tmp_path: Path
) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(entry(fleet[0]), encoding="ascii")
    usual = f"Host *\n UserKnownHostsFile {known}\n"
    config(block("gate", fleet[0]) + block("web", fleet[1], " ProxyJump gate\n") + usual)

    nodes.add(rt, "elm", alias("web"), Tier.PAIRED, accept_key=lambda _: None)

    (contact,) = nodes.probe(rt, ["elm"])
    assert contact.failure is None


@pytest.mark.parametrize("knows", [True, False])
def test_a_known_hosts_file_may_vouch_for_a_node(
    rt: Runtime,
    fleet: list[SshdNode],
    config: Callable[[str], None],
    tmp_path: Path,
    *,
    knows: bool,
) -> None:
    config(block("web", fleet[0]))
    known = tmp_path / "known"
    known.write_text(entry(fleet[0]) if knows else "", encoding="ascii")

    def add() -> None:
        nodes.add(
            rt,
            "elm",
            alias("web"),
            Tier.PAIRED,
            accept_key=lambda _: None,
            known_hosts=known,
        )

    if knows:
        add()
    else:
        with pytest.raises(HostKeyUnknown):
            add()
    assert len(nodes.ls(rt)) == int(knows)


def test_a_configuration_that_cannot_be_read_makes_nodes_unreachable_and_no_more(
    rt: Runtime, fleet: list[SshdNode], config: Callable[[str], None]
) -> None:
    config(block("web", fleet[0]) + block("app", fleet[1]))
    for name, where in (("elm", "web"), ("oak", "app")):
        nodes.add(rt, name, alias(where), Tier.PAIRED, accept_key=lambda _: None)
    config(block("web", fleet[0]) + "Match host app exec true\n" + block("app", fleet[1]))

    failures = [contact.failure for contact in nodes.probe(rt, ["elm", "oak"])]

    assert failures[0] is None
    assert isinstance(failures[1], WlctlError)
    assert failures[1].code == "invalid-ssh-config"


def test_what_was_seen_before_an_interrupt_is_kept(
    rt: Runtime,
    fleet: list[SshdNode],
    config: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config("")
    for name, node in zip(("elm", "oak"), fleet, strict=True):
        nodes.add(rt, name, node.address, Tier.PAIRED, accept_key=lambda _: None)
    with rt.ledger.read() as tx:
        before = {node.name: node.facts for node in ledger_nodes.ls(tx)}
    real = fanout.each

    def interrupted(
        items: Sequence[Node], work: Callable[[Node], nodes.Contact]
    ) -> Iterator[tuple[int, nodes.Contact]]:
        yield next(real(items, work))
        raise KeyboardInterrupt

    monkeypatch.setattr(fanout, "each", interrupted)
    with pytest.raises(KeyboardInterrupt):
        nodes.probe(rt, ["elm", "oak"])

    with rt.ledger.read() as tx:
        after = {node.name: node.facts for node in ledger_nodes.ls(tx)}
    assert sum(after[name] != before[name] for name in after) == 1


def test_ssh_looks_at_the_passwd_entry_and_not_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/elsewhere")

    own, system = runtime.ssh_configs()

    assert own == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh/config"
    assert system == Path("/etc/ssh/ssh_config")
