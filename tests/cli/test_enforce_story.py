"""A node taken out of the reach of wlctl's own key, as an operator does it, over real sshd."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import Program, program_in
from tests.host.bench import wait_until
from tests.host.enforced import keygen, public
from tests.host.nodes import SshdNode, sshd_nodes

pytestmark = [pytest.mark.root, pytest.mark.sshd]


@dataclass(frozen=True)
class Site:
    """One installation with one node, and an operator whose agent opens that node."""

    program: Program
    node: SshdNode
    key: Path

    def says(self, *args: str, code: int = 0) -> Any:
        done = self.program.run(*args, "-o", "json", "--yes")
        assert done.returncode == code, done.stdout + done.stderr
        return json.loads(done.stdout)

    def fails(self, *args: str, code: int) -> str:
        done = self.program.run(*args)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr

    def stolen(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        """What the key of this installation does in the hands of somebody else."""
        address = self.node.address
        keys = self.program.directory / "home/.local/share/wlctl/keys/ssh_ed25519"
        argv = [
            "ssh",
            "-F",
            "none",
            "-i",
            str(keys),
            "-o",
            "IdentityAgent=none",
            "-o",
            "BatchMode=yes",
        ]
        argv += [
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
            "-p",
            str(address.port),
        ]
        argv += ["-o", "LogLevel=ERROR", f"root@{address.host}", *words]
        return subprocess.run(argv, capture_output=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    program = program_in(tmp_path_factory.mktemp("site"))
    key, sock = keygen(program.directory / "operator"), program.directory / "agent"
    with (
        sshd_nodes(1, own_etc=True) as (node,),
        subprocess.Popen(["ssh-agent", "-D", "-a", sock], stdout=subprocess.DEVNULL) as agent,
    ):
        try:
            wait_until(sock.exists, "the agent")
            variables = {
                **program.environment,
                "SSH_AUTH_SOCK": str(sock),
                "WLCTL_NODE_STATE": str(
                    program.directory / "state"
                ),  # where this machine is a node
            }
            subprocess.run(["ssh-add", "-q", key], env=variables, check=True, capture_output=True)
            found = Site(replace(program, environment=variables), node, key)
            _found(found)
            yield found
        finally:
            agent.terminate()


def _found(site: Site) -> None:
    """Make an installation with a node, a signed package and its signer."""
    own = site.says("init")["ssh_public_key"]
    keys = f"{own} wlctl\n{public(site.key)} operator\n"
    (site.node.directory / "authorized_keys").write_text(keys, encoding="ascii")
    address = site.node.address
    site.says("node", "add", "ash", f"root@{address.host}", "--port", str(address.port))
    assert site.program.run("package", "init", "hello").returncode == 0
    site.says("package", "build", "hello", "--sign", str(site.key))
    site.says("signer", "add", "me", f"{site.key}.pub")


@pytest.fixture
def site(once: Site) -> Iterator[Site]:
    """A node that is not enforced, and is left so."""
    before = _keys(once)
    yield once
    if (once.node.directory / "etc/wlctl").exists():
        once.says("node", "enforce", "ash", "--as", "root", "--remove")
    assert _keys(once) == before


def _keys(site: Site) -> str:
    return (site.node.directory / "authorized_keys").read_text("ascii")


def test_a_node_is_enforced_used_and_given_back(site: Site) -> None:
    before = _keys(site)
    assert site.stolen("echo", "open").stdout == b"open\n"

    done = site.says("node", "enforce", "ash", "--as", "root")

    assert (done["enforced"], done["signers"], done["projects"]) == (True, ["me"], [])
    assert done["key_line"] in _keys(site)
    assert site.stolen("echo", "open").stdout == b"refused -\nwhy form\n"
    shown = site.says("node", "show", "ash")
    assert (shown["enforced"], shown["enforcement"]["current"]) == (True, True)
    listed = {one["name"]: one["enforced"] for one in site.says("node", "ls")["items"]}
    assert listed["ash"] is True
    site.says("place", "hello")
    site.says("stop", "hello")
    site.says("unload", "hello")
    removed = site.says("node", "enforce", "ash", "--as", "root", "--remove")["removed"]
    assert removed[-1] == "/etc/wlctl"
    assert _keys(site) == before
    assert site.stolen("echo", "open").stdout == b"open\n"
    assert [one["answer"] for one in site.says("node", "probe", "ash")["items"]] == ["alive"]
    assert "whole" in site.program.run("audit", "verify").stdout


def test_the_lists_are_as_old_as_the_last_run(site: Site, tmp_path: Path) -> None:
    site.says("node", "enforce", "ash", "--as", "root")
    other = keygen(tmp_path / "other")
    site.says("signer", "add", "other", f"{other}.pub")
    assert "its lists are older" in site.program.run("node", "show", "ash").stdout

    again = site.says("node", "enforce", "ash", "--as", "root")
    shown = site.says("node", "show", "ash")
    removed = site.program.run("signer", "rm", "other")

    assert (again["signers"], shown["enforcement"]["current"]) == (["me", "other"], True)
    assert "still accept the signer until their lists are renewed: ash: `wlctl" in removed.stderr


def test_work_of_another_project_is_refused_by_the_node(site: Site) -> None:
    site.says("node", "enforce", "ash", "--as", "root", "--projects", "shop,web")

    refused = site.says("place", "hello", "--project", "blog", code=3)

    assert "unauthorized" in json.dumps(refused)
    assert site.says("node", "show", "ash")["enforcement"]["projects"] == ["shop", "web"]
    assert site.says("node", "enforce", "ash", "--as", "root")["projects"] == ["shop", "web"]
    assert site.says("node", "enforce", "ash", "--as", "root", "--projects", "*")["projects"] == []


def test_a_key_that_is_revoked_here_is_revoked_on_the_node(site: Site) -> None:
    site.says("revoke", "key", "me", "--reason", "stolen", "--no-enforce")
    try:
        site.says("node", "enforce", "ash", "--as", "root")
    finally:
        site.says("unrevoke", "key", "me", "--reason", "found again")

    (revoked,) = (site.node.directory / "etc/wlctl").glob("*/revoked_keys")
    assert revoked.read_text("ascii") == f"{public(site.key)}\n"


def test_a_node_that_is_enforced_is_recognised_removed_and_added_again(site: Site) -> None:
    site.says("node", "enforce", "ash", "--as", "root")
    address = site.node.address

    rekeyed = site.says("node", "rekey", "ash", "--tier", "paired")
    assert (rekeyed["replaced"], rekeyed["enforced"]) == (False, True)
    gone = site.says("node", "rm", "ash", "--clean")
    assert (gone["cleaned"], gone["enforced"]) == (True, True)
    added = site.says("node", "add", "elm", f"root@{address.host}", "--port", str(address.port))
    assert added["enforced"] is True
    site.says("node", "enforce", "elm", "--as", "root", "--remove")
    site.says("node", "rm", "elm")
    site.says("node", "add", "ash", f"root@{address.host}", "--port", str(address.port))


def test_a_node_that_was_installed_anew_is_not_enforced(site: Site) -> None:
    before = _keys(site)
    site.says("node", "enforce", "ash", "--as", "root")
    (site.node.directory / "authorized_keys").write_text(before, encoding="ascii")
    (silent,) = site.says("node", "probe", "ash", code=9)["items"]
    assert silent["answer"] == "no-shell"

    rekeyed = site.says("node", "rekey", "ash", "--tier", "paired")

    assert rekeyed["enforced"] is False
    assert site.says("node", "enforce", "ash", "--as", "root")["enforced"] is True


def test_the_lines_of_keys_can_be_kept_by_something_else(site: Site) -> None:
    before = _keys(site)

    first = site.says("node", "enforce", "ash", "--as", "root", "--leave-key")

    assert (first["enforced"], _keys(site)) == (False, before)
    assert site.says("node", "show", "ash")["enforced"] is False
    own = next(line for line in before.splitlines() if line.endswith("wlctl"))
    by_hand = before.replace(own, first["key_line"])
    (site.node.directory / "authorized_keys").write_text(by_hand, encoding="ascii")
    assert site.says("node", "enforce", "ash", "--as", "root", "--leave-key")["enforced"] is True


def test_a_key_that_opens_a_shell_by_a_certificate_is_not_taken_for_shut(site: Site) -> None:
    authority = keygen(site.node.directory / "etc/authority")
    own = site.program.directory / "home/.local/share/wlctl/keys/ssh_ed25519.pub"
    own.write_text(f"{_keys(site).splitlines()[0]}\n", encoding="ascii")
    sign = ["ssh-keygen", "-q", "-s", str(authority), "-I", "wlctl", "-n", "root", str(own)]
    subprocess.run(sign, check=True, capture_output=True)
    settings = site.node.directory / "sshd_config"
    with settings.open("a", encoding="ascii") as file:
        file.write("TrustedUserCAKeys /etc/authority.pub\n")
    site.node.kill()
    site.node.start()
    before = _keys(site)
    try:
        said = site.fails("node", "enforce", "ash", "--as", "root", "--yes", code=1)
    finally:
        own.with_name("ssh_ed25519-cert.pub").unlink()

    assert "still opens a shell on ash" in said
    assert _keys(site) == before
    assert not (site.node.directory / "etc/wlctl").exists()


REFUSED = [
    pytest.param(["ash"], 2, "usage", id="without an administrator"),
    pytest.param(["ash", "--as", "root"], 2, "needs-terminal", id="with nobody to ask"),
    pytest.param(["oak", "--as", "root", "--yes"], 2, "unknown-name", id="an unknown node"),
    pytest.param(["here", "--as", "root", "--yes"], 1, "not-enforceable", id="this machine"),
    pytest.param(
        ["ash", "--as", "nobody-here", "--yes"], 9, "auth-failed", id="a login without a key"
    ),
    pytest.param(
        ["ash", "--as", "root", "--remove", "--leave-key"], 2, "usage", id="two wishes at once"
    ),
    pytest.param(["ash", "--as", "root", "--projects", "a,,b"], 2, "usage", id="no project"),
]


@pytest.mark.parametrize(("args", "code", "reason"), REFUSED)
def test_what_cannot_be_enforced_is_left_as_it_was(
    site: Site, args: list[str], code: int, reason: str
) -> None:
    before = _keys(site)
    if "here" in args:
        site.says("node", "add", "here", "local", "--tier", "discovered")

    said = site.fails("node", "enforce", *args, code=code)

    assert f"[{reason}]" in said
    assert len(said.strip().splitlines()) <= 2
    assert _keys(site) == before
    assert not (site.node.directory / "etc/wlctl").exists()


def test_who_may_not_change_what_is_trusted_enforces_nothing(site: Site) -> None:
    policy = site.program.run("policy", "show").stdout
    text = policy + '\n[[deny]]\nid = "no-enforcing"\nactions = ["node.enforce"]\nreason = "no"\n'
    (site.program.directory / "policy.toml").write_text(text, encoding="utf-8")
    site.says("policy", "apply", "policy.toml")

    said = site.fails("node", "enforce", "ash", "--as", "root", "--yes", code=4)
    (site.program.directory / "policy.toml").write_text(policy, encoding="utf-8")
    site.says("policy", "apply", "policy.toml")

    assert "[gate-denied]" in said
    assert not (site.node.directory / "etc/wlctl").exists()
